"""Every file that a geographic information system opens, read by the reference readers."""

from __future__ import annotations

import csv
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import netCDF4
import numpy as np
import pyproj
import pytest
import rasterio
import shapely
import xarray
import zarr
from fastkml import kml
from rasterio.io import MemoryFile
from rio_cogeo.cogeo import cog_validate
from shapely.geometry import shape

Command = Callable[..., str]

ROWS, COLS = 37, 61
CELL = 2.5
PLACES = {
    "utm": ("EPSG:32632", (459_000.0, 5_480_000.0)),
    "nowhere": (None, (-20.0, 7.0)),
    "local": ("local:49.5,8.5", (-300.0, 120.0)),
}


def levels(rows: int, cols: int) -> Any:
    """dBm without any symmetry: rows x columns x bands, a corner unknown."""
    i, j, k = np.meshgrid(np.arange(rows), np.arange(cols), np.arange(2), indexing="ij")
    level = -60 - 0.4 * i - 0.1 * j - 7.0 * k + 3 * np.sin(i / 5.0)
    level[: rows // 6, : cols // 5] = np.nan
    return level


def spreads(rows: int, cols: int) -> Any:
    i, j, k = np.meshgrid(np.arange(rows), np.arange(cols), np.arange(2), indexing="ij")
    return 1.0 + 0.1 * i + 0.02 * j + 0.5 * k


def save(path: Path, place: str, rows: int = ROWS, cols: int = COLS) -> Path:
    crs, origin = PLACES[place]
    arrays: dict[str, Any] = {
        "map": 10 ** (levels(rows, cols) / 10),
        "spread_db": spreads(rows, cols),
        "unit": "dbm",
        "cell_m": CELL,
        "origin_m": np.array(origin),
        "freq_hz": np.array([2.412e9, 2.437e9]),
    }
    if crs:
        arrays["crs"] = crs
    np.savez(path, **arrays)
    return path


def raster(values: Any) -> Any:
    """Rows with x, columns with y -> band, y from the north, x."""
    return np.transpose(values, (2, 1, 0))[:, ::-1, :]


def system(place: str) -> pyproj.CRS | None:
    crs, _ = PLACES[place]
    if crs and crs.startswith("local:"):
        lat, lon = crs[6:].split(",")
        text = f"+proj=tmerc +lat_0={lat} +lon_0={lon} +k=1 +x_0=0 +y_0=0 +datum=WGS84 +units=m"
        return pyproj.CRS.from_proj4(text)
    return pyproj.CRS(crs) if crs else None


def same_system(found: Any, place: str) -> None:
    """Two systems are the same if they put the same places within a millimetre."""
    there = pyproj.Transformer.from_crs(system(place), 4326, always_xy=True)
    back = pyproj.Transformer.from_crs(4326, pyproj.CRS(found), always_xy=True)
    _, (x, y) = PLACES[place]
    for at in [(x, y), (x + 900.0, y + 400.0)]:
        assert np.allclose(back.transform(*there.transform(*at)), at, atol=1e-3, rtol=0)


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("sides", [(ROWS, COLS), (700, 1100)])
def test_geotiff(command: Command, tmp_path: Path, place: str, sides: tuple[int, int]) -> None:
    source = save(tmp_path / "map.npz", place, *sides)
    target = tmp_path / "map.tif"
    command("convert", source, target)
    valid, errors, warnings = cog_validate(target, strict=True)
    assert valid and not errors and not warnings
    _, (x, y) = PLACES[place]
    with rasterio.open(target) as file:
        assert (file.width, file.height) == sides
        assert file.descriptions == (
            "2412MHz dBm",
            "2437MHz dBm",
            "spread of 2412MHz dB",
            "spread of 2437MHz dB",
        )
        assert file.units == ("dBm", "dBm", "dB", "dB") and np.isnan(file.nodata)
        found = file.read()
        np.testing.assert_allclose(found[:2], raster(levels(*sides)), rtol=1e-6)
        np.testing.assert_allclose(found[2:], raster(spreads(*sides)), rtol=1e-6)
        at = file.xy(sides[1] - 1, 0)
        np.testing.assert_allclose(at, (x, y), atol=0.01, rtol=0)
        cell = (sides[0] // 2, sides[1] // 3)
        here = (x + cell[0] * CELL, y + cell[1] * CELL)
        assert next(file.sample([here]))[0] == pytest.approx(levels(*sides)[cell][0], rel=1e-6)
        if max(sides) > 512:
            assert file.overviews(1) == [2, 4]
        if PLACES[place][0] is None:
            assert file.crs is None
        else:
            same_system(file.crs.to_wkt(), place)
            if place == "utm":
                assert file.crs.to_epsg() == 32632
    if max(sides) > 512:
        with rasterio.open(target, overview_level=0) as file:
            full = raster(levels(*sides))[0]
            blocks = full.reshape(550, 2, 350, 2)
            with np.errstate(invalid="ignore"):
                known = ~np.isnan(blocks)
                mean = np.where(known, blocks, 0).sum((1, 3)) / known.sum((1, 3))
            np.testing.assert_allclose(file.read(1), mean, rtol=1e-6)


@pytest.mark.parametrize("place", PLACES)
def test_netcdf(command: Command, tmp_path: Path, place: str) -> None:
    source = save(tmp_path / "map.npz", place)
    target = tmp_path / "map.nc"
    command("convert", source, target)
    _, (x, y) = PLACES[place]
    with netCDF4.Dataset(target) as file:
        assert file.Conventions == "CF-1.11" and file.data_model == "NETCDF4"
        assert file["power_dbm"].dimensions == ("band", "y", "x")
        assert file["power_dbm"].units == "dBm" and file["spread_db"].units == "1"
        assert np.isnan(file["power_dbm"]._FillValue)
        power = np.ma.filled(file["power_dbm"][:], np.nan)
        np.testing.assert_allclose(power, raster(levels(ROWS, COLS)), rtol=1e-6)
        spread = np.ma.filled(file["spread_db"][:], np.nan)
        np.testing.assert_allclose(spread, raster(spreads(ROWS, COLS)), rtol=1e-6)
        np.testing.assert_allclose(file["x"][:], x + CELL * np.arange(ROWS), atol=0.01, rtol=0)
        north_first = y + CELL * np.arange(COLS)[::-1]
        np.testing.assert_allclose(file["y"][:], north_first, atol=0.01, rtol=0)
        assert list(file["frequency"][:]) == [2.412e9, 2.437e9]
        assert list(file["band_label"][:]) == ["2412MHz", "2437MHz"]
        if PLACES[place][0] is None:
            assert "crs" not in file.variables
        else:
            assert file["power_dbm"].grid_mapping == "crs"
            words = {name: file["crs"].getncattr(name) for name in file["crs"].ncattrs()}
            same_system(words["crs_wkt"], place)
            words.pop("crs_wkt")
            words.pop("spatial_ref")
            same_system(pyproj.CRS.from_cf(words), place)
    with xarray.open_dataset(target) as data:
        assert set(data.coords) == {"x", "y", "frequency", "band_label"}
        here = data.power_dbm.sel(x=x + 9 * CELL, y=y + 30 * CELL)
        np.testing.assert_allclose(here, levels(ROWS, COLS)[9, 30], rtol=1e-6)


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("sides", [(ROWS, COLS), (700, 1100)])
def test_zarr(command: Command, tmp_path: Path, place: str, sides: tuple[int, int]) -> None:
    source = save(tmp_path / "map.npz", place, *sides)
    target = tmp_path / "map.zarr"
    command("convert", source, target)
    _, (x, y) = PLACES[place]
    group = zarr.open_group(target, mode="r")
    assert group.metadata.zarr_format == 3
    power = group["power_dbm"]
    np.testing.assert_allclose(power[:], raster(levels(*sides)), rtol=1e-6)
    assert power.metadata.dimension_names == ("band", "y", "x")
    assert group["band"].attrs["labels"] == ["2412MHz", "2437MHz"]
    for consolidated in [True, False]:
        with xarray.open_zarr(target, consolidated=consolidated) as data:
            i, j = sides[0] // 2, sides[1] // 3
            here = data.power_dbm.sel(x=x + i * CELL, y=y + j * CELL)
            np.testing.assert_allclose(here, levels(*sides)[i, j], rtol=1e-6)
            np.testing.assert_allclose(data.spread_db, raster(spreads(*sides)), rtol=1e-6)
            assert list(data.freq_hz.values) == [2.412e9, 2.437e9]
            if PLACES[place][0] is not None:
                same_system(data.spatial_ref.attrs["crs_wkt"], place)
    assert {path.name for path in tmp_path.iterdir()} == {"map.npz", "map.zarr"}


@pytest.mark.parametrize("save_as", [np.savez, np.savez_compressed])
@pytest.mark.parametrize("unit", ["linear", "dbm"])
def test_large_maps_are_read_in_parts(
    command: Command, tmp_path: Path, save_as: Any, unit: str
) -> None:
    sides = (2100, 2050)
    level = levels(*sides).astype(np.float32) / 10 - 30
    source = tmp_path / "map.npz"
    stored = level if unit == "dbm" else 10 ** (level / 10)
    about: dict[str, Any] = {"unit": "dbm", "crs": "EPSG:32632", "origin_m": [459e3, 5480e3]}
    save_as(source, map=stored, spread_db=spreads(*sides).astype(np.float32), **about)
    target = tmp_path / "map.tif"
    command("convert", source, target, "--bands", "1,0", "--mask", "spread=150.01")
    shown = np.where(spreads(*sides) <= 150.01, level, np.nan)
    with rasterio.open(target) as file:
        assert file.descriptions[0] == "band1 dBm" and file.overviews(1) == [2, 4, 8]
        np.testing.assert_allclose(file.read([2, 1]), raster(shown), rtol=1e-5)


def to_metres(place: str) -> Any:
    return pyproj.Transformer.from_crs(4326, system(place), always_xy=True)


@pytest.mark.parametrize("place", PLACES)
def test_areas_above_levels(command: Command, tmp_path: Path, place: str) -> None:
    source = save(tmp_path / "map.npz", place)
    target = tmp_path / "areas.geojson"
    command("convert", source, target, "--levels", "-75,-70,-20", "--bands", "2437MHz")
    found = json.loads(target.read_text())
    assert ("coordinates_in" in found) == (PLACES[place][0] is None)
    crs, (x, y) = PLACES[place]
    for feature, level in zip(found["features"], [-75, -70, -20], strict=True):
        about = feature["properties"]
        assert (about["band"], about["level"], about["unit"]) == ("2437MHz", level, "dBm")
        area = shape(feature["geometry"])
        assert area.is_valid
        for polygon in area.geoms:
            assert polygon.exterior.is_ccw and not any(hole.is_ccw for hole in polygon.interiors)
        if crs:
            metres = to_metres(place)
            area = shapely.transform(
                area, lambda at: np.column_stack(metres.transform(at[:, 0], at[:, 1]))
            )
        assert about["area_m2"] == pytest.approx(area.area, rel=1e-5)
        values = levels(ROWS, COLS)[..., 1]
        for (i, j), value in np.ndenumerate(values):
            # Crossings keep a thousandth of a cell away from centres.
            if np.isnan(value) or abs(value - level) > 0.01:
                centre = shapely.Point(x + i * CELL, y + j * CELL)
                assert area.contains(centre) == (value >= level)
        if level == -70:
            # Along a row of cells the outline lies where the level is met.
            i = 7
            line = values[i]
            at = np.interp(-level, -line, np.arange(COLS))
            ends = shapely.LineString([(x + i * CELL, y - 9), (x + i * CELL, y + 999)])
            top = shapely.intersection(area, ends).bounds[3]
            assert top == pytest.approx(y + at * CELL, abs=0.01)


def test_sensors_and_emitters(command: Command, tmp_path: Path) -> None:
    scene = tmp_path / "truth.npz"
    words = ["--grid", "24x20", "--bands", "6", "--emitters", "2", "--seed", "3"]
    command("simulate", "-o", scene, *words)
    readings = tmp_path / "readings.npz"
    command("sense", scene, "-o", readings, "--count", "80", "--seed", "4")
    where = ["--crs", "EPSG:32632"]
    sensors = tmp_path / "sensors.geojson"
    command("convert", readings, sensors, *where)
    found = json.loads(sensors.read_text())["features"]
    assert len(found) == 80
    back = pyproj.Transformer.from_crs(4326, 32632, always_xy=True)
    for feature in found:
        about = feature["properties"]
        at = back.transform(*feature["geometry"]["coordinates"])
        np.testing.assert_allclose(at, (about["x_m"], about["y_m"]), atol=0.01)
        assert "db_band0" in about
    model = tmp_path / "model.npz"
    command("fit", readings, "-o", model, "--method", "field", "--emitters", "2", *where)
    emitters = tmp_path / "emitters.geojson"
    command("convert", model, emitters)
    found = json.loads(emitters.read_text())["features"]
    points = [f for f in found if f["geometry"]["type"] == "Point"]
    assert len(points) == 2
    for feature in found:
        about = feature["properties"]
        if about["kind"] == "ellipse":
            centre = next(p for p in points if p["properties"]["emitter"] == about["emitter"])
            ring = shape(feature["geometry"])
            assert ring.is_valid and ring.contains(shape(centre["geometry"]))
            x, _ = back.transform(*np.array(ring.exterior.coords).T)
            wide = 2 * about["sigma"] * centre["properties"]["x_se_m"]
            assert np.ptp(x) == pytest.approx(wide, abs=0.01)


def test_kmz_is_warped_to_degrees(command: Command, tmp_path: Path) -> None:
    source = save(tmp_path / "map.npz", "utm")
    target = tmp_path / "map.kmz"
    command("convert", source, target)
    with zipfile.ZipFile(target) as archive:
        assert archive.testzip() is None
        text = archive.read("doc.kml")
        images = {name: archive.read(name) for name in archive.namelist() if name != "doc.kml"}
    document = next(iter(kml.KML.from_string(text).features))
    folders = list(next(iter(document.features)).features)
    assert [folder.name for folder in folders] == ["2412MHz", "2437MHz"]
    assert [bool(folder.visibility) for folder in folders] == [True, False]
    to_degrees = pyproj.Transformer.from_crs(32632, 4326, always_xy=True)
    _, (x, y) = PLACES["utm"]
    for band, folder in enumerate(folders):
        overlay, legend = list(folder.features)
        assert overlay.icon.href == f"band{band}.png" and overlay.icon.href in images
        assert legend.icon.href in images
        box = overlay.lat_lon_box
        with MemoryFile(images[f"band{band}.png"]) as memory, memory.open() as file:
            pixels = file.read()
        _, height, width = pixels.shape
        colours = set()
        values = levels(ROWS, COLS)[..., band]
        for (i, j), value in np.ndenumerate(values):
            lon, lat = to_degrees.transform(x + i * CELL, y + j * CELL)
            column = int((lon - box.west) / (box.east - box.west) * width)
            line = int((box.north - lat) / (box.north - box.south) * height)
            pixel = pixels[:, line, column]
            assert (pixel[3] == 0) == bool(np.isnan(value))
            if not np.isnan(value):
                colours.add((round(float(value), 3), *(int(c) for c in pixel[:3])))
        # The colours say the order of the levels: green grows from violet to yellow.
        greens = [colour[2] for colour in sorted(colours)]
        assert all(a <= b for a, b in zip(greens, greens[1:], strict=False))
        corners = [(-0.5, -0.5), (ROWS - 0.5, -0.5), (-0.5, COLS - 0.5), (ROWS - 0.5, COLS - 0.5)]
        lons, lats = np.array(
            [to_degrees.transform(x + i * CELL, y + j * CELL) for i, j in corners]
        ).T
        centimetre = 1e-7
        assert abs(box.west - lons.min()) < centimetre and abs(box.east - lons.max()) < centimetre
        assert abs(box.south - lats.min()) < centimetre and abs(box.north - lats.max()) < centimetre


@pytest.mark.parametrize("place", PLACES)
def test_bare_picture_with_a_world_file(command: Command, tmp_path: Path, place: str) -> None:
    source = save(tmp_path / "map.npz", place)
    target = tmp_path / "map.png"
    command("convert", source, target, "--bands", "2437MHz")
    _, (x, y) = PLACES[place]
    with rasterio.open(target) as file:
        assert (file.width, file.height, file.count) == (ROWS, COLS, 4)
        np.testing.assert_allclose(file.xy(COLS - 1, 0), (x, y), atol=0.01)
        unknown = np.isnan(raster(levels(ROWS, COLS))[1])
        np.testing.assert_array_equal(file.read(4) == 0, unknown)
    prj = tmp_path / "map.prj"
    assert prj.exists() == (PLACES[place][0] is not None)
    if prj.exists():
        same_system(prj.read_text(), place)


WORLD = [
    *range(32601, 32661),
    *range(32701, 32761),
    *range(25828, 25839),
    *range(26901, 26924),
    *range(28348, 28359),
    *range(7846, 7860),
    32661,
    32761,
    3857,
    3035,
    2154,
]


def test_projections_agree_with_proj_over_the_world(command: Command, tmp_path: Path) -> None:
    for code in WORLD:
        crs = pyproj.CRS.from_epsg(code)
        area = crs.area_of_use
        assert area is not None
        west, east = area.west, area.east if area.east > area.west else area.east + 360
        lon, lat = np.meshgrid(np.linspace(west, east, 9), np.linspace(area.south, area.north, 9))
        x, y = pyproj.Proj(crs)(lon, lat)
        wide = [(v[np.isfinite(v)].min(), v[np.isfinite(v)].max()) for v in (x, y)]
        cell = min(wide[0][1] - wide[0][0], wide[1][1] - wide[1][0]) / 8
        shape_ = [int((high - low) / cell) + 1 for low, high in wide]
        source = tmp_path / f"{code}.npz"
        origin = np.array([wide[0][0], wide[1][0]])
        arrays = {"map": np.ones((*shape_, 1)), "unit": "dbm", "cell_m": cell, "origin_m": origin}
        np.savez(source, crs=f"EPSG:{code}", **arrays)
        target = tmp_path / f"{code}.csv"
        command("convert", source, target)
        with target.open() as lines:
            rows = [[float(v) for v in list(row.values())[2:6]] for row in csv.DictReader(lines)]
        x, y, lat, lon = np.array(rows).T
        # Where the system is in use; beyond it series differ.
        ahead = (lon - west) % 360 <= east - west
        used = ahead & (lat >= area.south) & (lat <= area.north)
        assert used.sum() > 3, code
        # PROJ's way there: its way back from equal areas is off by a millimetre itself.
        found_x, found_y = pyproj.Proj(crs)(lon, lat)
        off = np.hypot(found_x - x, found_y - y)[used]
        assert off.max() < 1e-3, (code, off.max())


def test_drawn_from_a_model(command: Command, tmp_path: Path) -> None:
    readings = tmp_path / "readings.npz"
    random = np.random.default_rng(5)
    places = random.uniform(0, 60, (40, 2)) + [459_000, 5_480_000]
    heard = -60 - 0.3 * (places[:, 0] - 459_000) + random.normal(0, 1, 40)
    power = 10 ** (heard[:, np.newaxis] / 10)
    about: dict[str, Any] = {"unit": "dbm", "crs": "EPSG:32632", "freq_hz": [2.412e9]}
    np.savez(readings, sites=places, values=power, **about)
    model = tmp_path / "model.npz"
    command("fit", readings, "-o", model, "--method", "kriging")
    grid = ["--grid", "40x30", "--cell-m", "2", "--origin", "458990,5479990"]
    masks = ["--mask", "distance=12", "--mask", "hull", "--mask", "spread=3"]
    for name in ["map.npz", "map.tif", "map.nc", "map.zarr", "map.geojson", "map.kmz", "map.png"]:
        command("predict", model, "-o", tmp_path / name, *grid, *masks)
    with np.load(tmp_path / "map.npz") as file:
        with np.errstate(invalid="ignore"):
            level = raster(10 * np.log10(file["map"]))[0]
        spread = raster(file["spread_db"])[0]
    assert 50 < np.isnan(level).sum() < level.size - 50
    np.testing.assert_array_equal(np.isnan(level), np.isnan(spread))
    x = 458_990 + 2.0 * np.arange(40)
    y = (5_479_990 + 2.0 * np.arange(30))[::-1]
    hull = shapely.MultiPoint(places).convex_hull
    for (line, column), value in np.ndenumerate(level):
        at = shapely.Point(x[column], y[line])
        near = np.hypot(*(places - [at.x, at.y]).T).min() <= 12
        if np.isnan(value):
            continue
        assert near and hull.distance(at) < 1e-6 and spread[line, column] <= 3
    with rasterio.open(tmp_path / "map.tif") as file:
        np.testing.assert_allclose(file.read(1), level, rtol=1e-6)
        np.testing.assert_allclose(file.read(2), spread, rtol=1e-5)
    with netCDF4.Dataset(tmp_path / "map.nc") as file:
        np.testing.assert_allclose(np.ma.filled(file["power_dbm"][0], np.nan), level, rtol=1e-6)
    with xarray.open_zarr(tmp_path / "map.zarr") as data:
        np.testing.assert_allclose(data.power_dbm[0], level, rtol=1e-6)
    with rasterio.open(tmp_path / "map.png") as file:
        np.testing.assert_array_equal(file.read(4) == 0, np.isnan(level))


def test_uncalibrated_levels_are_not_called_dbm(command: Command, tmp_path: Path) -> None:
    source = tmp_path / "map.npz"
    np.savez(source, map=10 ** (levels(ROWS, COLS) / 10), unit="db")
    for name in ["map.tif", "map.nc", "map.zarr"]:
        command("convert", source, tmp_path / name)
    with rasterio.open(tmp_path / "map.tif") as file:
        assert file.units == ("dB", "dB") and file.descriptions == ("band0 dB", "band1 dB")
    with netCDF4.Dataset(tmp_path / "map.nc") as file:
        assert file["power_db"].units == "1" and "dB" in file["power_db"].long_name
    assert "power_db" in zarr.open_group(tmp_path / "map.zarr", mode="r")
