"""Maps, fits and tiles on a real Dask cluster; the same recipe on Ray."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray
from distributed import Client

import portolan
from test_estimators import survey


def rough(sensors: int, seed: int = 0, side: float = 300.0) -> tuple[Any, Any]:
    """A survey of a field with hills of many sizes."""
    rng = np.random.default_rng(seed)
    places = rng.uniform(0, side, (sensors, 2))
    return places, hills(places) + rng.normal(0, 0.5, (sensors, 2))


def hills(places: Any) -> Any:
    rng = np.random.default_rng(99)
    level = np.zeros((len(places), 2))
    for _ in range(60):
        wave, phase = rng.normal(0, 0.15, 2), rng.uniform(0, 6, 2)
        level += np.sin(places @ wave[:, None] + phase)
    return level - 70


def test_blocks_are_the_map(client: Client, tmp_path: Path) -> None:
    places, levels = survey(sensors=150)
    model = portolan.fit(portolan.Readings(places, levels), "kriging")
    whole = model.map(cell_m=0.5)
    lazy = model.map(cell_m=0.5, chunks=(25, 17))
    assert lazy["power_dbm"].dtype == np.float32 and lazy["power_dbm"].chunks[1][0] == 25
    lazy.to_zarr(tmp_path / "map.zarr", zarr_format=3, consolidated=False)
    again = xarray.open_zarr(tmp_path / "map.zarr", consolidated=False).load()
    for layer in ("power_dbm", "spread_db"):
        assert np.array_equal(again[layer], whole[layer].astype(np.float32))
    assert again.attrs["Conventions"] == "CF-1.11"
    # Methods without a spread have one layer.
    alone = portolan.fit(portolan.Readings(places, levels), "idw").map(cell_m=1.0, chunks=20)
    assert "spread_db" not in alone and np.isfinite(alone["power_dbm"].compute()).all()


def test_fits_on_a_cluster_are_those_on_this_machine(client: Client) -> None:
    many = [portolan.Readings(*survey(seed=seed)) for seed in range(9)]
    at = np.array([[10.0, 12.0], [25.0, 1.0]])
    here = portolan.fit_many(many, "kriging", threads=2, trend="linear")
    heard: list[float] = []
    there = portolan.fit_many(many, "kriging", client=client, trend="linear", tell=heard.append)
    assert heard[-1] == 1 and heard == sorted(heard)
    assert [m.predict(at).tobytes() for m in here] == [m.predict(at).tobytes() for m in there]


def test_a_killed_worker_changes_nothing(client: Client) -> None:
    many = [portolan.Readings(*survey(seed=seed)) for seed in range(16)]
    slow: dict[str, Any] = {"iterations": 2000, "start_iterations": 500, "emitters": 1}
    at = np.array([[10.0, 12.0], [25.0, 1.0]])
    before = set(client.scheduler_info(n_workers=-1)["workers"])
    ended: list[str] = []

    def end_one() -> None:
        while not any(client.processing().values()):
            time.sleep(0.01)
        time.sleep(0.3)
        address = next(worker for worker, tasks in client.processing().items() if tasks)
        ended.append(address)
        client.run(_end, workers=[address], nanny=False, on_error="ignore")

    killer = threading.Thread(target=end_one)
    killer.start()
    there = portolan.fit_many(many, "unn", client=client, **slow)
    killer.join()
    client.wait_for_workers(2)
    assert ended and set(client.scheduler_info(n_workers=-1)["workers"]) != before
    here = portolan.fit_many(many, "unn", **slow)
    assert [m.predict(at).tobytes() for m in here] == [m.predict(at).tobytes() for m in there]


def _end() -> None:
    import os
    import signal

    os.kill(os.getpid(), signal.SIGKILL)


@pytest.fixture(scope="module")
def tiled() -> portolan.TiledModel:
    return portolan.fit_tiled(portolan.Readings(*rough(4000)), "kriging", sensors=600)


def test_tiles_are_as_good_as_one_fit(tiled: portolan.TiledModel) -> None:
    assert len(tiled.tiles) == 8
    model = portolan.fit(portolan.Readings(*rough(4000)), "kriging")
    at = np.random.default_rng(5).uniform(5, 295, (3000, 2))
    errors, covered = [], []
    for some in (model, tiled):
        level, spread = some.predict(at, return_std=True)
        errors.append(np.sqrt(np.mean((level - hills(at)) ** 2)))
        covered.append(np.mean(np.abs(level - hills(at)) < 1.645 * spread))
    assert errors[1] < 1.01 * errors[0], errors
    # The hills are smoother than either law: intervals hold more than they promise, those of tiles,
    # whose laws are of less, a little less so.
    assert 0.88 < covered[1] < covered[0] + 0.02, covered


def test_no_seam_shows_between_tiles(tiled: portolan.TiledModel) -> None:
    """Steps across borders are like steps elsewhere: in size, and in how they change."""
    drawn = tiled.map(grid=(300, 300, 1.0, 0.5, 0.5))
    x, y = drawn["x"].values, drawn["y"].values
    for layer in ("power_dbm", "spread_db"):
        field = drawn[layer].isel(band=0).values
        for axis, along in ((1, x), (0, y)):
            steps = np.abs(np.diff(field, axis=axis))
            borders = {t.low[1 - axis] for t in tiled.tiles} | {t.high[1 - axis] for t in tiled.tiles}
            middle = 0.5 * (along[1:] + along[:-1])
            beside = np.any([np.abs(middle - b) <= 1.0 for b in borders if np.isfinite(b)], axis=0)
            assert 0 < beside.sum() < 20
            across, inside = np.compress(beside, steps, axis), np.compress(~beside, steps, axis)
            assert across.max() <= inside.max(), (layer, axis)


def test_tiles_on_a_cluster_are_those_on_this_machine(client: Client, tiled: portolan.TiledModel) -> None:
    there = portolan.fit_tiled(portolan.Readings(*rough(4000)), "kriging", sensors=600, client=client)
    at = np.random.default_rng(6).uniform(0, 300, (200, 2))
    assert np.array_equal(there.predict(at), tiled.predict(at))
    lazy = there.map(grid=(90, 120, 2.5, 0.0, 0.0), chunks=40)
    whole = tiled.map(grid=(90, 120, 2.5, 0.0, 0.0))
    assert np.array_equal(lazy["power_dbm"].compute(), whole["power_dbm"].astype(np.float32))


def test_one_tile_is_the_plain_fit() -> None:
    places, levels = survey()
    readings = portolan.Readings(places, levels)
    at = np.array([[3.0, 4.0], [20.5, 21.5], [-40.0, 90.0]])
    assert np.allclose(
        portolan.fit_tiled(readings).predict(at), portolan.fit(readings, "kriging").predict(at), atol=1e-12
    )
    with pytest.raises(ValueError, match="256 or more"):
        portolan.fit_tiled(readings, sensors=10)
