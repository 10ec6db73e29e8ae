"""Readings from arrays, tables and files; maps as xarray sees them; many fits at once."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import portolan
from test_estimators import survey


def test_readings_survive_files_and_pickles(tmp_path: Path) -> None:
    places, levels = survey()
    silent = np.zeros(levels.shape, dtype=bool)
    silent[2, 0] = True
    levels[2, 0] = np.nan
    made = portolan.Readings(
        places, levels, names=["a", "b", "c"], not_heard=silent, floor=-95.0,
        repeats=np.full(levels.shape, 3.0), time_s=np.arange(len(places), dtype=float),
    )
    made.write(tmp_path / "readings.npz")
    for again in (portolan.Readings.read(tmp_path / "readings.npz"), pickle.loads(pickle.dumps(made))):
        assert np.array_equal(again.places, places) and again.names == ["a", "b", "c"]
        known = ~silent
        assert np.allclose(again.values[known], levels[known], atol=1e-9)
        assert again.unit == "dbm" and len(again[:10]) == 10
    assert "60 sensors x 3 bands" in repr(made)


def test_long_and_wide_tables_say_the_same() -> None:
    places, levels = survey(sensors=12, bands=2)
    wide = pd.DataFrame({"east": places[:, 0], "north": places[:, 1], "a": levels[:, 0], "b": levels[:, 1]})
    long = wide.melt(id_vars=["east", "north"], var_name="channel", value_name="rssi")
    first = portolan.Readings.from_dataframe(wide, x="east", y="north")
    second = portolan.Readings.from_dataframe(
        pd.concat([long, long]), x="east", y="north", value="rssi", band="channel"
    )
    assert first.names == second.names == ["a", "b"]
    # Read twice: two rows of every place.
    order = np.lexsort((first.places[:, 1], first.places[:, 0])).repeat(2)
    assert np.allclose(first.places[order], second.places)
    assert np.allclose(first.values[order], second.values)
    with pytest.raises(ValueError, match="no column 'lat'"):
        portolan.Readings.from_dataframe(wide, x="lat")


def test_two_visits_to_one_place_are_two_rows(tmp_path: Path) -> None:
    places, levels = survey(sensors=30, bands=2)
    places, levels = np.vstack([places, places[:9]]), np.vstack([levels, levels[:9] + 1.0])
    readings = portolan.Readings(places, levels)
    assert len(readings) == 39
    readings.write(tmp_path / "rows.npz")
    again = portolan.Readings.read(tmp_path / "rows.npz")
    assert np.array_equal(again.places, places) and np.allclose(again.values, levels)
    mean = np.vstack([0.5 * (levels[:9] + levels[30:]), levels[9:30]])
    for kind in (portolan.Nearest, portolan.InverseDistance, portolan.ThinPlate):
        with pytest.warns(UserWarning, match="9 readings at places read before were averaged"):
            found = kind().fit(places, levels)
        expected = kind().fit(places[:30], mean)
        at = places[:5] + 0.3
        assert np.allclose(found.predict(at), expected.predict(at))
    assert np.isfinite(portolan.Kriging().fit(places, levels).predict(places)).all()
    for _, held in portolan.SpatialFold(4, split="random").split(places):
        assert all(number + 30 in held for number in held if number < 9)
    with pytest.warns(UserWarning, match="averaged"):
        light = portolan.Nearest().fit(places, levels, sample_weight=np.ones(39))
    with pytest.warns(UserWarning, match="averaged"):
        heavy = portolan.Nearest().fit(places, levels, sample_weight=np.where(np.arange(39) < 30, 3, 1))
    assert np.allclose(light.predict(places[:9]), levels[:9] + 0.5)
    assert np.allclose(heavy.predict(places[:9]), levels[:9] + 0.25)


def test_a_map_is_what_the_model_predicts(tmp_path: Path) -> None:
    places, levels = survey()
    freq = [2412e6, 2437e6, 2462e6]
    model = portolan.fit(portolan.Readings(places, levels, freq_hz=freq), "kriging")
    drawn = model.map(cell_m=2.0, region=(0.0, 0.0, 30.0, 20.0))
    assert drawn["power_dbm"].dims == ("band", "y", "x")
    assert drawn["power_dbm"].shape == drawn["spread_db"].shape == (3, 11, 16)
    assert drawn["power_dbm"].attrs["units"] == "dBm" and list(drawn["frequency"].values) == freq
    there = drawn["power_dbm"].sel(x=8.0, y=14.0).values
    assert np.allclose(there, model.predict([[8.0, 14.0]])[0], atol=1e-9)
    model.write(tmp_path / "model.npz")
    again = portolan.read_model(tmp_path / "model.npz")
    at = np.array([[3.3, 4.4]])
    assert np.array_equal(again.predict(at), model.predict(at))
    assert np.array_equal(pickle.loads(pickle.dumps(model)).predict(at), model.predict(at))
    with pytest.raises(ValueError, match="already exists|exists"):
        model.write(tmp_path / "model.npz")


def test_the_transmitter_is_found() -> None:
    places, levels = survey(sensors=120, bands=6)
    model = portolan.fit(portolan.Readings(places, levels), "field", emitters=1)
    found = model.emitters.iloc[0]
    assert np.hypot(found.x_m - 11, found.y_m - 17) < 3
    assert model.report["chosen"] == "field"


def test_a_device_that_is_not_there_is_said() -> None:
    many = [portolan.Readings(*survey(seed=seed)) for seed in range(2)]
    with pytest.raises(ValueError, match="device: not used by kriging"):
        portolan.fit_many(many, "kriging", device="cuda")
    with pytest.raises(ValueError, match="'cpu', 'cuda' or 'auto'"):
        portolan.fit_many(many, "kriging", device="gpu")
    at = np.array([[10.0, 12.0]])
    for device in ("cpu", "auto"):
        models = portolan.fit_many(many, "kriging", device=device)
        assert np.array_equal(models[0].predict(at), portolan.fit(many[0], "kriging").predict(at))


def test_many_fits_are_the_single_ones() -> None:
    many = [portolan.Readings(*survey(seed=seed)) for seed in range(6)]
    heard: list[float] = []
    together = portolan.fit_many(many, "kriging", tell=heard.append)
    at = np.array([[10.0, 12.0], [25.0, 1.0]])
    for readings, model in zip(many, together):
        assert np.array_equal(model.predict(at), portolan.fit(readings, "kriging").predict(at))
