"""Readings of several times."""

from __future__ import annotations

import pickle
from datetime import datetime, timezone

import numpy as np
import portolan
import pytest

MONTH = 30 * 86400.0
ZERO = 1.7e9


def survey(months: int = 8, drift: float = 4.0) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Places, levels and times of rows, and the level of each month above the mean."""
    rng = np.random.default_rng(3)
    places = rng.uniform(0, 60, (30, 2))
    field = -70 + 8 * np.sin(places[:, :1] / 9 + np.arange(5)) + 0.1 * places[:, 1:]
    level = drift * rng.standard_normal((months, 1, 5))
    values = field[None] + level + rng.standard_normal((months, 30, 5))
    time_s = ZERO + MONTH * np.repeat(np.arange(months), 30)
    return np.tile(places, (months, 1)), values.reshape(-1, 5), time_s, level[:, 0]


def test_a_model_is_asked_at_a_moment() -> None:
    places, values, time_s, level = survey()
    model = portolan.fit(portolan.Readings(places, values, time_s=time_s), method="kriging")
    assert model.time_span == (ZERO, ZERO + 7 * MONTH)
    first, last = model.at(ZERO), model.at(ZERO + 7 * MONTH)
    apart = first.predict(places[:30]) - last.predict(places[:30])
    np.testing.assert_allclose(apart.mean(axis=0), level[0] - level[7], atol=1.5)
    np.testing.assert_array_equal(model.predict(places[:5]), last.predict(places[:5]))
    np.testing.assert_array_equal(model.predict(places[:5], time=ZERO), first.predict(places[:5]))
    each = model.predict(places[:2], time=[ZERO, ZERO + 7 * MONTH])
    np.testing.assert_allclose(each[0], first.predict(places[:1])[0])
    np.testing.assert_allclose(each[1], last.predict(places[1:2])[0])
    again = pickle.loads(pickle.dumps(first))
    np.testing.assert_array_equal(again.predict(places[:5]), first.predict(places[:5]))
    when = datetime.fromtimestamp(ZERO, timezone.utc)
    for same in (when, when.isoformat(), np.datetime64(int(ZERO), "s")):
        np.testing.assert_array_equal(model.predict(places[:5], time=same), first.predict(places[:5]))
    with pytest.raises(ValueError, match="no zone"):
        model.at(datetime(2024, 5, 1))
    with pytest.raises(ValueError, match="no times"):
        portolan.fit(portolan.Readings(places, values), method="kriging").at(ZERO)


def test_changes_are_told() -> None:
    places, values, time_s, _ = survey(drift=2.0)
    names = list("abcde")
    readings = portolan.Readings(places, values, time_s=time_s, names=names)
    model = portolan.fit(readings[:210], method="kriging")
    louder = values[210:220] + np.array([0.0, 20.0, 0.0, 0.0, 0.0])
    new = portolan.Readings(places[210:220], louder, time_s=time_s[210:220], names=names, further=True)
    found = model.changes(new)
    rows = found if isinstance(found, list) else found.to_dict("records")
    assert [row["band"] for row in rows] == names
    assert rows[1]["kind"] == "level" and abs(rows[1]["level_db"] - 20) < 8
