"""Models that take further readings."""

from __future__ import annotations

import pickle

import numpy as np
import portolan
import pytest


def survey(rows: int = 80) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(5)
    places = rng.uniform(0, 100, (rows, 2))
    level = -60 - 0.2 * places[:, 0] + 3 * np.sin(places[:, 1] / 12)
    return places, np.column_stack([level, level - 5]) + rng.normal(0, 1, (rows, 2))


def test_one_by_one_is_all_at_once() -> None:
    places, values = survey()
    readings = portolan.Readings(places, values)
    single, at_once = portolan.Kriging().fit(places[:50], values[:50]), None
    model = portolan.fit(readings[:50], method="kriging")
    at_once = portolan.fit(readings[:50], method="kriging")
    for row in range(50, 80):
        model.update(readings[row : row + 1])
    at_once.update(readings[50:])
    asked = np.random.default_rng(1).uniform(0, 100, (30, 2))
    for a, b in zip(model.predict(asked, return_std=True), at_once.predict(asked, return_std=True)):
        np.testing.assert_allclose(a, b, atol=1e-8)
    before = single.predict(asked)
    assert np.abs(model.predict(asked) - before).max() > 0.1


def test_further_readings_are_few_and_keep_their_kind() -> None:
    places, values = survey()
    model = portolan.fit(portolan.Readings(places, values), method="kriging")
    one = portolan.Readings([[50.0, 50.0]], [[np.nan, -30.0]], further=True)
    again = pickle.loads(pickle.dumps(one))
    before = model.predict([[50.0, 50.0]])
    model.update(again)
    after = model.predict([[50.0, 50.0]])
    assert abs(after[0, 0] - before[0, 0]) < 1e-9 and after[0, 1] > before[0, 1] + 1
    with pytest.raises(ValueError, match="at least 2 places"):
        portolan.fit(one, method="kriging")
    with pytest.raises(ValueError, match="at least 2 places"):
        portolan.Readings([[50.0, 50.0]], [[-30.0]])
    with pytest.raises(ValueError, match="other"):
        model.update(portolan.Readings([[50.0, 50.0, 3.0]], [[-30.0, -40.0]], further=True))
