"""What was not heard, and transmitters whose places are known."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import portolan
from conftest import Command

NAMES = ["WAP1", "WAP2", "WAP3", "WAP4"]
FLOOR = -88.0


def floor_survey(seed: int, sensors: int = 70) -> tuple[portolan.Readings, Any]:
    """Four access points on a floor of 60 m x 40 m, each silent where it is weak; their places."""
    rng = np.random.default_rng(seed)
    places = rng.uniform(0, [60, 40], (sensors, 2))
    masts = rng.uniform(0, [60, 40], (len(NAMES), 2))
    distance = np.linalg.norm(places[:, None] - masts[None], axis=-1)
    levels = -45 - 32 * np.log10(1 + distance) + rng.normal(0, 3, distance.shape)
    silent = levels < FLOOR + rng.normal(0, 1.5, levels.shape)
    assert silent.any() and not silent.all(axis=0).any()
    values = np.where(silent, np.nan, levels)
    readings = portolan.Readings(places, values, names=NAMES, not_heard=silent, floor=np.nanmin(values))
    return readings, masts


def places_of(seed: int) -> Any:
    return np.random.default_rng(seed + 500).uniform(-10, [70, 50], (40, 2))


@pytest.fixture(scope="module", params=[1, 2])
def seed(request: pytest.FixtureRequest) -> int:
    return int(request.param)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("method", ["kriging", "field", "auto"])
def test_what_is_heard_is_told_beside_the_field(tmp_path: Path, seed: int, method: str) -> None:
    readings, _ = floor_survey(seed)
    at = places_of(seed)
    model = portolan.fit(readings, method)
    found = model.prediction(at)
    assert found.chance_heard is not None and found.heard is not None and found.reading_spread_db is not None
    assert (found.chance_heard >= 0).all() and (found.chance_heard <= 1).all()
    assert found.chance_heard.min() < 0.6 and found.chance_heard.max() > 0.9
    assert (found.heard >= found.level - 1e-9).all()
    # The field is that of `predict`; a reading is what a receiver reports.
    assert np.array_equal(model.predict(at), found.level)
    report, deviation = model.predict(at, return_std=True, of_reading=True)
    assert np.array_equal(report, found.heard) and np.array_equal(deviation, found.reading_spread_db)
    assert np.array_equal(model.predict(at, of_reading=True), found.heard)
    model.write(tmp_path / "model.npz")
    for again in (portolan.read_model(tmp_path / "model.npz"), pickle.loads(pickle.dumps(model))):
        other = again.prediction(at)
        for name in ("level", "spread_db", "reading_spread_db", "chance_heard", "heard"):
            assert np.array_equal(getattr(other, name), getattr(found, name)), name
    estimator = {"kriging": portolan.Kriging, "field": portolan.Field, "auto": portolan.Auto}[method]
    assert np.array_equal(estimator().fit(readings).predict(at), found.level)


@pytest.mark.filterwarnings("ignore")
def test_maps_hold_the_chance_of_being_heard(tmp_path: Path, seed: int) -> None:
    readings, _ = floor_survey(seed)
    model = portolan.fit(readings, "kriging")
    drawn = model.map(cell_m=5.0, region=(0, 0, 60, 40))
    assert drawn["chance_heard"].dims == ("band", "y", "x") and drawn["chance_heard"].attrs["units"] == "1"
    assert drawn["heard_dbm"].shape == drawn["power_dbm"].shape == drawn["spread_db"].shape == (4, 9, 13)
    assert drawn["heard_dbm"].attrs["units"] == "dBm"
    there, found = drawn.sel(x=20.0, y=35.0), model.prediction([[20.0, 35.0]])
    assert found.chance_heard is not None and found.heard is not None
    assert np.allclose(there["chance_heard"], found.chance_heard[0], atol=1e-12)
    assert np.allclose(there["heard_dbm"], found.heard[0], atol=1e-9)
    assert np.allclose(there["power_dbm"], found.level[0], atol=1e-9)
    lazy = model.map(cell_m=5.0, region=(0, 0, 60, 40), chunks=(4, 5))
    assert lazy["chance_heard"].dtype == np.float32 and lazy["chance_heard"].chunks is not None
    assert set(lazy.data_vars) == set(drawn.data_vars)
    for name in drawn.data_vars:
        assert np.allclose(lazy[name].compute(), drawn[name], atol=1e-4), name
    # A map's file holds the field; what is heard there is asked of the model.
    portolan.write_map(drawn, tmp_path / "map.npz")
    assert np.allclose(portolan.read_map(tmp_path / "map.npz")["power_dbm"], drawn["power_dbm"])
    # Where everything was heard nothing is said.
    everywhere = portolan.Readings(readings.places, np.nan_to_num(readings.values, nan=FLOOR), names=NAMES)
    heard = portolan.fit(everywhere, "kriging")
    assert heard.prediction([[1.0, 2.0]]).chance_heard is None
    assert "chance_heard" not in heard.map(cell_m=10.0)


@pytest.mark.filterwarnings("ignore")
def test_tiles_are_heard_as_one(seed: int) -> None:
    readings, _ = floor_survey(seed, sensors=600)
    tiled = portolan.fit_tiled(readings, "kriging", sensors=256)
    assert len(tiled.tiles) > 1
    at = places_of(seed)
    found = tiled.prediction(at)
    assert found.chance_heard is not None and found.heard is not None and found.reading_spread_db is not None
    assert ((found.chance_heard >= 0) & (found.chance_heard <= 1)).all()
    assert (found.heard >= found.level - 1e-9).all()
    report, deviation = tiled.predict(at, return_std=True, of_reading=True)
    assert np.array_equal(report, found.heard) and np.array_equal(deviation, found.reading_spread_db)
    drawn, lazy = tiled.map(cell_m=8.0), tiled.map(cell_m=8.0, chunks=3)
    for name in ("power_dbm", "spread_db", "chance_heard", "heard_dbm"):
        assert np.allclose(lazy[name].compute(), drawn[name], atol=1e-4), name


@pytest.mark.filterwarnings("ignore")
def test_transmitters_are_the_same_from_everywhere(tmp_path: Path, seed: int) -> None:
    readings, masts = floor_survey(seed)
    at = places_of(seed)
    frame = pd.DataFrame({"x_m": masts[:, 0], "y_m": masts[:, 1], "band": NAMES, "height_m": [2.5, np.nan, 2.5, 3.0]})
    frame.to_csv(tmp_path / "known.csv", index=False)
    columns = {name: list(frame[name]) for name in frame}
    kinds: dict[str, Any] = {
        "path": tmp_path / "known.csv",
        "text of a path": str(tmp_path / "known.csv"),
        "frame": frame,
        "columns": columns,
        "rows": frame.to_dict("records"),
        "structured": frame.to_records(index=False),
        "numbers of bands": frame.assign(band=np.arange(4.0)),
    }
    first: Any = None
    for kind, given in kinds.items():
        level = portolan.fit(readings, "field", transmitters=given).predict(at)
        first = level if first is None else first
        assert np.array_equal(level, first), kind
    assert not np.array_equal(first, portolan.fit(readings, "field").predict(at))
    estimator = portolan.Field(transmitters=frame).fit(readings)
    assert np.array_equal(estimator.predict(at), first)
    assert np.array_equal(pickle.loads(pickle.dumps(estimator)).predict(at), first)
    many = portolan.fit_many([readings, readings], "field", transmitters=frame)
    assert all(np.array_equal(model.predict(at), first) for model in many)
    # Places alone are those of every band.
    places = [portolan.fit(readings, "field", transmitters=t).predict(at) for t in (
        masts, masts.tolist(), frame[["x_m", "y_m"]], [{"x_m": x, "y_m": y, "band": "all"} for x, y in masts],
    )]
    assert all(np.array_equal(places[0], other) for other in places[1:])


@pytest.mark.filterwarnings("ignore")
def test_transmitters_on_earth_and_of_the_command(tmp_path: Path, command: Command, seed: int) -> None:
    readings, masts = floor_survey(seed)
    origin = np.array([460_000.0, 5_480_000.0])
    silent = np.isnan(readings.values)
    moved = portolan.Readings(
        readings.places + origin, readings.values, names=NAMES, crs="EPSG:32632",
        not_heard=silent, floor=np.nanmin(readings.values),
    )
    degrees = portolan.to_degrees(masts + origin, "EPSG:32632")
    frame = pd.DataFrame({"lat": degrees[:, 0], "lon": degrees[:, 1], "band": NAMES})
    frame.to_csv(tmp_path / "known.csv", index=False)
    moved.write(tmp_path / "survey.npz")
    command(
        "fit", tmp_path / "survey.npz", "--method", "field", "--transmitters", tmp_path / "known.csv",
        "-o", tmp_path / "model.npz",
    )
    at = places_of(seed) + origin
    theirs = portolan.read_model(tmp_path / "model.npz").prediction(at)
    ours = portolan.fit(portolan.Readings.read(tmp_path / "survey.npz"), "field", transmitters=frame).prediction(at)
    assert np.array_equal(theirs.level, ours.level)
    assert np.array_equal(theirs.chance_heard, ours.chance_heard)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="coordinate system"):
        portolan.fit(readings, "field", transmitters=frame)


@pytest.mark.filterwarnings("ignore")
def test_validation_takes_transmitters(tmp_path: Path, command: Command, seed: int) -> None:
    readings, masts = floor_survey(seed)
    frame = pd.DataFrame({"x_m": masts[:, 0], "y_m": masts[:, 1], "band": NAMES})
    frame.to_csv(tmp_path / "known.csv", index=False)
    readings.write(tmp_path / "survey.npz")
    told = json.loads(command(
        "validate", tmp_path / "survey.npz", "--methods", "kriging,field",
        "--transmitters", tmp_path / "known.csv", "--json",
    ))["methods"]
    read = portolan.Readings.read(tmp_path / "survey.npz")
    rows = portolan.validate(read, ["kriging", "field"], transmitters=frame)
    for mine, other in zip(rows.to_dict("records"), told):
        assert mine["failed"] is None and mine["rmse_db"] == pytest.approx(other["rmse_db"], rel=1e-9)
        assert mine["coverage_90"] == pytest.approx(other["coverage_90"], rel=1e-9)
    plain = portolan.validate(read, ["kriging", "field"])
    assert plain["rmse_db"][0] == rows["rmse_db"][0] and plain["rmse_db"][1] != rows["rmse_db"][1]
    with pytest.raises(ValueError, match="field, auto"):
        portolan.validate(readings, ["kriging", "idw"], transmitters=frame)


def test_candidates_have_their_weights() -> None:
    rng = np.random.default_rng(4)
    places = rng.uniform(0, 50, (60, 2))
    masts = rng.uniform(0, 50, (4, 2))
    distance = np.linalg.norm(places[:, None] - masts[None], axis=-1)
    levels = -40 - 25 * np.log10(1 + distance) + rng.normal(0, 2, distance.shape)
    with pytest.warns(UserWarning, match="combined"):
        model = portolan.fit(portolan.Readings(places, levels), "auto", transmitters=masts)
    candidates = model.report["candidates"]
    weights = [weight for _, _, weight in candidates]
    assert sum(weights) == pytest.approx(1) and min(weights) >= 0
    assert model.report["chosen"] == candidates[int(np.argmax(weights))][0]
    assert portolan.fit(portolan.Readings(places, levels), "kriging").report["candidates"] == []


MAST = {"x_m": [1.0], "y_m": [2.0]}


@pytest.mark.parametrize(
    ("method", "given", "said"),
    [
        ("kriging", MAST, "transmitters: not used by kriging; choose from field, auto"),
        ("nearest", [[1.0, 2.0]], "choose from field, auto"),
        ("field", {**MAST, "band": ["WAP9"]}, "'WAP9' is no band of the readings .WAP1, WAP2, WAP3, WAP4"),
        ("field", {"x_m": [1.0, 2.0], "y_m": [2.0]}, "differ in length"),
        ("field", {"name": ["a"]}, "x_m"),
        ("field", {}, "x_m"),
        ("field", [], "shape"),
        ("field", [[1.0, 2.0, 3.0]], "shape"),
        ("field", [[np.nan, 2.0]], "."),
        ("field", {**MAST, "power_dbm": ["loud"]}, "'loud' is not a number"),
        ("field", 7, "shape"),
        ("field", object(), "give a path"),
        ("field", "/nowhere/known.csv", "known.csv"),
    ],
)
def test_wrong_transmitters_are_refused_in_a_sentence(method: str, given: Any, said: str) -> None:
    readings, _ = floor_survey(1)
    with pytest.raises((ValueError, TypeError), match=said):
        portolan.fit(readings, method, transmitters=given)


@pytest.mark.filterwarnings("ignore:(?!transmitters 1)")
def test_two_transmitters_at_one_place_are_said() -> None:
    readings, masts = floor_survey(1)
    with pytest.warns(UserWarning, match="transmitters 1 and 2 stand at the same place"):
        portolan.fit(readings, "field", transmitters=np.vstack([masts[0], masts[0]]))
