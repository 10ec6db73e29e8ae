"""Simulated, sensed and scored maps are those of the command."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import portolan
from conftest import Command
from test_estimators import survey


def test_simulated_maps_and_their_files_are_those_of_the_command(tmp_path: Path, command: Command) -> None:
    settings: dict[str, Any] = {"bands": 6, "emitters": 2, "seed": 7}
    ours = portolan.simulate((20, 30), **settings)
    assert ours["power_db"].dims == ("band", "y", "x") and ours["power_db"].shape == (6, 30, 20)
    options = [word for key, value in settings.items() for word in (f"--{key}", value)]
    command("simulate", "--grid", "20x30", *options, "-o", tmp_path / "map.npz")
    theirs = portolan.read_map(tmp_path / "map.npz")
    assert np.array_equal(ours["power_db"], theirs["power_db"])
    assert np.array_equal(ours["emitter_x"], theirs["emitter_x"]) and theirs.attrs["offset"] > 0

    sensing: dict[str, Any] = {"count": 60, "snr_db": 20.0, "cover": 0.5, "seed": 3}
    readings = portolan.sense(ours, **sensing)
    words = ["--count", 60, "--snr-db", 20, "--cover", 0.5, "--seed", 3]
    command("sense", tmp_path / "map.npz", *words, "-o", tmp_path / "readings.npz")
    again = portolan.Readings.read(tmp_path / "readings.npz")
    assert np.array_equal(readings.places, again.places)
    assert np.allclose(readings.values, again.values, atol=1e-9, equal_nan=True)
    assert np.isnan(readings.values).mean() == 0.5

    drawn = portolan.fit(readings, "kriging").map(grid=(20, 30, 1.0, 0.0, 0.0))
    portolan.write_map(drawn, tmp_path / "estimate.npz")
    told = json.loads(command("score", tmp_path / "estimate.npz", tmp_path / "map.npz", "--json"))
    found = portolan.score(drawn, ours)
    assert found.keys() == told.keys()
    for key, value in told.items():
        assert found[key] == pytest.approx(value, rel=1e-9), key


def test_a_model_of_the_command_is_a_model_here(tmp_path: Path, command: Command) -> None:
    places, levels = survey()
    readings = portolan.Readings(places, levels)
    readings.write(tmp_path / "readings.npz")
    command("fit", tmp_path / "readings.npz", "--method", "kriging", "-o", tmp_path / "model.npz")
    at = np.array([[3.0, 4.0], [20.5, 21.5]])
    theirs = portolan.read_model(tmp_path / "model.npz").predict(at)
    ours = portolan.fit(portolan.Readings.read(tmp_path / "readings.npz"), "kriging").predict(at)
    assert np.array_equal(theirs, ours)


def test_levels_are_fitted_and_survive_a_pickle() -> None:
    truth = portolan.simulate((24, 24), bands=5, emitters=2, seed=1)
    readings = portolan.sense(truth, fraction=0.3, bits=3, edges="authors", sigma=0.5, seed=1)
    again = pickle.loads(pickle.dumps(readings))
    for some in (readings, again):
        levels = some._native.levels
        assert levels is not None and levels[0].max() <= 7 and len(levels[1]) == 7
    at = readings.places[:5]
    first, second = (portolan.fit(some, "kriging").predict(at) for some in (readings, again))
    assert np.array_equal(first, second)
    table, edges, sigma, offset = readings._native.levels or pytest.fail("levels")
    made = portolan.Readings.from_levels(readings.places, table, edges=edges, sigma=sigma, offset=offset)
    assert np.array_equal(portolan.fit(made, "kriging").predict(at), first)
    with pytest.raises(TypeError, match="whole numbers"):
        portolan.Readings.from_levels(readings.places, table.astype(float), edges=edges, offset=offset)


def test_a_study_is_the_command_s(command: Command) -> None:
    told = command(
        "study", "--maps", 2, "--seed", 5, "--grid", "24x24", "--bands", 6, "--emitters", 2,
        "--methods", "kriging,idw:power=2", "--json",
    )
    theirs = json.loads(told)[0]["methods"]
    ours = portolan.study(
        ["kriging", ("idw", {"power": 2})], maps=2, seed=5, shape=(24, 24), bands=6, emitters=2
    ).to_dict("records")
    for mine, other in zip(ours, theirs):
        for key in ("ssim", "ssim_se", "rmse_db", "rmse_db_se"):
            assert mine[key] == other[key], key
        assert set(mine) == set(other)


def test_validation_is_the_command_s(tmp_path: Path, command: Command) -> None:
    places, levels = survey()
    readings = portolan.Readings(places, levels)
    readings.write(tmp_path / "readings.npz")
    told = json.loads(
        command("validate", tmp_path / "readings.npz", "--methods", "kriging,idw", "--split", "blocks", "--json")
    )
    rows = portolan.validate(readings, ["kriging", "idw"], split="blocks").to_dict("records")
    for mine, other in zip(rows, told["methods"]):
        assert mine["rmse_db"] == pytest.approx(other["rmse_db"], rel=1e-6)
        assert mine["entries"] == other["entries"]
    failed = portolan.validate(readings, ["btd"], emitters=500).iloc[0]
    assert isinstance(failed["failed"], str)
    with pytest.raises(ValueError, match="krigging"):
        portolan.validate(readings, ["krigging"])


def test_advice_lies_where_nobody_measured() -> None:
    places, levels = survey(sensors=80)
    crowded = places[:, 0] < 15
    model = portolan.fit(portolan.Readings(places[crowded], levels[crowded]), "kriging")
    pond = (24.0, 0.0, 30.0, 30.0)
    advice = portolan.advise(model, 4, cell_m=1.0, region=(0.0, 0.0, 30.0, 30.0), leave_out=[pond])
    assert list(advice["rank"]) == [1, 2, 3, 4]
    assert (advice["x_m"] > 14).all() and (advice["x_m"] < 24).all()
    assert (advice["reduction_percent"] > 0).all()
    with pytest.raises(ValueError, match="spread"):
        portolan.advise(portolan.fit(portolan.Readings(places, levels), "idw"))


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (lambda: portolan.simulate((8, 8), psd="square"), "gaussian"),
        (lambda: portolan.sense(portolan.simulate((8, 8), bands=2), cells=[(8, 0)]), "off the 8 x 8"),
        (lambda: portolan.sense(portolan.simulate((8, 8), bands=2), count=4, lattice=2), "one of"),
        (lambda: portolan.sense(portolan.simulate((8, 8), bands=2), count=4, cover=0.0), "more than 0"),
        (lambda: portolan.score(1, 2), "xarray.Dataset"),
        (lambda: portolan.study(["kriging"], maps=0), "maps=0"),
    ],
)
def test_wrong_requests_are_refused_in_a_sentence(wrong: Any, said: str) -> None:
    with pytest.raises((ValueError, TypeError), match=said):
        wrong()
