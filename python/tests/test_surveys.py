"""Surveys as people have them, and where on Earth they lie."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pandas
import portolan
import pyproj
import pytest

RECIPES = Path(__file__).parents[2] / "docs" / "recipes"


def test_projections_are_those_of_proj() -> None:
    lat, lon = (a.ravel() for a in np.meshgrid(np.arange(-90, 90.5, 2.5), np.arange(-180, 180.5, 2.5)))
    for north, east in zip(lat, lon):
        metres, crs = portolan.to_metres([north], [east])
        x, y = _proj(crs).transform(east, north)
        assert np.hypot(metres[0, 0] - x, metres[0, 1] - y) < 1e-3, (north, east, crs)
        back = portolan.to_degrees(metres, crs)[0]
        turn = (back[1] - east + 180) % 360 - 180
        assert abs(back[0] - north) < 1e-9 and abs(turn) * np.cos(np.radians(north)) < 1e-9


@pytest.mark.parametrize(
    ("crs", "lat", "lon"),
    [
        ("EPSG:25832", 49.5, 8.5),
        ("EPSG:26918", 40.7, -74.0),
        ("EPSG:28356", -33.9, 151.2),
        ("EPSG:7856", -33.9, 151.2),
        ("EPSG:3857", 35.7, 139.7),
        ("EPSG:3035", 60.2, 24.9),
        ("EPSG:2154", 48.9, 2.35),
        ("local:49.4875,8.466", 49.51, 8.40),
    ],
)
def test_named_systems(crs: str, lat: float, lon: float) -> None:
    metres, named = portolan.to_metres([lat], [lon], crs)
    x, y = _proj(crs).transform(lon, lat)
    assert named == crs
    assert np.hypot(metres[0, 0] - x, metres[0, 1] - y) < 1e-3


_KNOWN: dict[str, pyproj.Transformer] = {}


def _proj(crs: str) -> pyproj.Transformer:
    if crs not in _KNOWN:
        target = crs
        if crs.startswith("local:"):
            lat, lon = crs.removeprefix("local:").split(",")
            target = f"+proj=tmerc +lat_0={lat} +lon_0={lon} +k=1 +datum=WGS84 +units=m"
        # The text that our files carry means the same.
        text = pyproj.CRS.from_wkt(portolan._native.well_known_text(crs))
        by_text = pyproj.Transformer.from_crs("EPSG:4326", text, always_xy=True)
        by_name = pyproj.Transformer.from_crs("EPSG:4326", target, always_xy=True)
        centre = pyproj.Transformer.from_crs(target, "EPSG:4326", always_xy=True).transform(5e5, 5e6)
        if np.all(np.isfinite(centre)):
            assert np.hypot(*np.subtract(by_text.transform(*centre), by_name.transform(*centre))) < 1e-3
        _KNOWN[crs] = by_name
    return _KNOWN[crs]


def test_what_is_not_on_earth_is_said() -> None:
    for lat, lon, crs in [(91.0, 0.0, None), (0.0, 80.0, "EPSG:32632")]:
        with pytest.raises(ValueError, match="on Earth|too far"):
            portolan.to_metres([lat], [lon], crs)
    with pytest.raises(ValueError, match="degrees"):
        portolan.to_metres([1.0], [1.0], "EPSG:4326")


def test_a_log_of_frames(tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="fewer than 5 places"):
        readings = portolan.Readings.read(RECIPES / "wigle.csv", gather_m=5)
    assert readings.crs == "EPSG:32632" and readings.values.shape[1] == 6
    assert pickle.loads(pickle.dumps(readings)).crs == "EPSG:32632"
    model = portolan.fit(readings, method="kriging")
    assert model.crs == "EPSG:32632"
    drawn = model.map(10.0)
    assert pyproj.CRS.from_wkt(drawn["spatial_ref"].attrs["crs_wkt"]).to_epsg() == 32632
    portolan.write_map(drawn, tmp_path / "map.npz")
    assert portolan.read_map(tmp_path / "map.npz").attrs["crs"] == "EPSG:32632"


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_tables_from_pandas_and_parquet(tmp_path: Path) -> None:
    frame = pandas.read_csv(RECIPES / "phone.csv", sep=";")
    told = {"lat": "lat", "lon": "lng", "value": "level", "band": "cellid"}
    plain = portolan.Readings.read(RECIPES / "phone.csv", unit="dbm", gather_m=5)
    frame.to_parquet(tmp_path / "phone.parquet")
    for found in (
        portolan.read_table(frame, unit="dbm", gather_m=5),
        portolan.read_table(tmp_path / "phone.parquet", unit="dbm", gather_m=5, columns=told),
    ):
        np.testing.assert_allclose(found.places, plain.places, atol=1e-6)
        np.testing.assert_allclose(found.values, plain.values)
    with pytest.raises(ValueError, match="unit"):
        portolan.read_table(frame)
    silent = portolan.read_table(frame, unit="dbm", gather_m=20, not_heard="absent")
    assert silent._native.not_heard is not None


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_sweeps_and_degrees() -> None:
    readings = portolan.Readings.read(
        RECIPES / "rtl_power.csv",
        track=RECIPES / "walk.gpx",
        utc_offset="Europe/Berlin",
        band_width_hz=2e6,
    )
    assert readings.unit == "db" and readings.values.shape[1] == 4
    lat, lon = portolan.to_degrees(readings.places, str(readings.crs)).T
    again = portolan.Readings.from_degrees(lat, lon, readings.values, unit="db")
    assert again.crs == readings.crs
    np.testing.assert_allclose(again.places, readings.places, atol=1e-3)
    with pytest.raises(ValueError, match="track"):
        portolan.Readings.read(RECIPES / "rtl_power.csv")


def test_devices_are_brought_to_one_level() -> None:
    rng = np.random.default_rng(0)
    at = rng.uniform(0, 20, (90, 2))
    phone = np.arange(90) % 3
    offset = np.array([-4.0, 0.0, 4.0])
    db = -60 - at[:, :1] + rng.normal(0, 1, (90, 2)) + offset[phone, None]
    frame = pandas.DataFrame({"x_m": at[:, 0], "y_m": at[:, 1], "phone": phone, "dbm_1GHz": db[:, 0], "dbm_2GHz": db[:, 1]})
    with pytest.warns(UserWarning, match="3 devices differ"):
        readings = portolan.read_table(frame)
    found = readings.devices
    for name, truth in zip("012", offset):
        assert abs(found[name][0] - truth) < max(0.7, 3 * found[name][1])
    assert pickle.loads(pickle.dumps(readings)).devices == found
    assert portolan.read_table(frame, columns={"device": "none"}).devices == {}
