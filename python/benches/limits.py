#!/usr/bin/env python3
"""How far the package goes, and what it costs.

    python benches/limits.py overhead --binary ../target/release/portolan
    python benches/limits.py copies
    python benches/limits.py many [--maps 2000]
    python benches/limits.py zarr [--side 20000] [--part 2000, or 20000 for the whole] [--sensors 100000]
    python benches/limits.py million [--readings 1000000] [--compare 40000]

Needs the package and, for the last two, dask[distributed], xarray and zarr.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np


def overhead(args: argparse.Namespace) -> None:
    """Kriging of 410 sensors x 64 bands onto 4,096 places, one thread, each time in a new process:
    the package beside the command, which reads the same file."""
    import portolan

    once = """
import sys, time
import numpy as np
import portolan
readings = portolan.Readings.read(sys.argv[1])
places, levels = readings.places, readings.values
x, y = np.meshgrid(np.arange(64.0), np.arange(64.0), indexing="ij")
cells = np.column_stack([x.ravel(), y.ravel()])
start = time.perf_counter()
portolan.Kriging().fit(places, levels).predict(cells, return_std=True)
print(time.perf_counter() - start)
"""
    theirs, ours = [], []
    with tempfile.TemporaryDirectory() as folder:
        file, out = Path(folder) / "readings.npz", Path(folder) / "map.npz"
        readings = portolan.sense(portolan.simulate(seed=1), count=410, seed=1)
        portolan.Readings(readings.places, readings.values).write(file)
        words = [args.binary, "estimate", file, "--method", "kriging", "-o", out, "--json", "--force"]
        words += ["--threads", "1", "--grid", "64x64"]
        for _ in range(args.repeat):
            told = json.loads(subprocess.run(words, check=True, capture_output=True).stdout)
            theirs.append(told["seconds"] + told["predict_seconds"])
            alone = {**os.environ, "RAYON_NUM_THREADS": "1"}
            python = [sys.executable, "-W", "ignore", "-c", once, str(file)]
            ours.append(float(subprocess.run(python, check=True, capture_output=True, env=alone).stdout))
    command, package = statistics.median(theirs), statistics.median(ours)
    print(f"command {command:.4f} s, package {package:.4f} s: {package / command:.3f} times")


def copies(_: argparse.Namespace) -> None:
    """Peak memory while 1 GB of doubles crosses; each in a process of its own."""
    import multiprocessing

    for job in (_places_in, _readings_in, _map_out):
        process = multiprocessing.get_context("spawn").Process(target=job)
        process.start()
        process.join()
        assert process.exitcode == 0


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def _few(bands: int):  # type: ignore[no-untyped-def]
    import portolan

    warnings.filterwarnings("ignore")
    rng = np.random.default_rng(0)
    places = rng.uniform(0, 10, (20, 2))
    model = portolan.fit(portolan.Readings(places, rng.normal(-60, 5, (20, bands))), "nearest")
    model.predict(places)
    return model


def _places_in() -> None:
    model, places = _few(1), np.full((2**26, 2), 3.25)
    before = _peak()
    found = model.predict(places)
    grown, own = _peak() - before, found.nbytes / 2**30
    print(f"{places.nbytes / 2**30:.2f} GB of places in, {own:.2f} GB of levels out: memory grew by {grown:.2f} GB")


def _readings_in() -> None:
    import portolan

    _few(1)
    values = np.full((2000, 2**27 // 2000), -60.0)
    before = _peak()
    readings = portolan.Readings(np.random.default_rng(0).uniform(0, 10, (2000, 2)), values)
    grown = _peak() - before
    print(f"{values.nbytes / 2**30:.2f} GB of readings in, kept as power ({len(readings)} sensors): memory grew by {grown:.2f} GB")


def _map_out() -> None:
    model = _few(32)
    before = _peak()
    drawn = model._native.map((2048, 2048, 0.005, 0.0, 0.0))[0]
    print(f"{drawn.nbytes / 2**30:.2f} GB of a map out: memory grew by {_peak() - before:.2f} GB")


def many(args: argparse.Namespace) -> None:
    """`fit_many` beside plain processes, one for each core."""
    cores = os.cpu_count() or 1
    part = args.maps // cores
    single = """
import sys, time, portolan
first, count = int(sys.argv[1]), int(sys.argv[2])
def made(seed):
    return portolan.sense(portolan.simulate(seed=seed), count=82, seed=seed)
some = [made(seed % 100) for seed in range(first, first + count)]
print("ready", flush=True)
sys.stdin.readline()
start = time.perf_counter()
if len(sys.argv) > 3:
    portolan.fit_many(some, "field", emitters=4)
else:
    for readings in some:
        portolan._native.fit("field", [], readings._native, emitters=4)
print(time.perf_counter() - start, flush=True)
"""

    def run(jobs: list[tuple[list[str], dict[str, str]]]) -> float:
        started = []
        for words, more in jobs:
            started.append(
                subprocess.Popen(
                    [sys.executable, "-W", "ignore", "-c", single, *words],
                    stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ, **more},
                )
            )
        for process in started:
            assert process.stdout is not None and process.stdout.readline() == "ready\n"
        begin = time.perf_counter()
        for process in started:
            assert process.stdin is not None
            process.stdin.write("\n")
            process.stdin.flush()
        for process in started:
            assert process.stdout is not None
            process.stdout.readline()
        seconds = time.perf_counter() - begin
        for process in started:
            process.wait()
        return seconds

    ratios = []
    for _ in range(args.repeat):
        plain = run([([str(k * part), str(part)], {"RAYON_NUM_THREADS": "1"}) for k in range(cores)])
        together = run([(["0", str(part * cores), "many"], {})])
        ratios.append(plain / together)
        print(f"{part * cores} maps: {cores} processes {plain:.1f} s, fit_many {together:.1f} s", flush=True)
    print(f"throughput of fit_many: {statistics.median(ratios):.3f} of the processes'")


def _cluster(memory: str):  # type: ignore[no-untyped-def]
    from distributed import Client, LocalCluster

    cluster = LocalCluster(n_workers=2, threads_per_worker=1, memory_limit=memory, dashboard_address=None)
    return cluster, Client(cluster)


def hilly(places: np.ndarray, bands: int) -> np.ndarray:
    """A field with hills of many sizes: slow in the large, rough in the small."""
    rng = np.random.default_rng(7)
    level = np.zeros((len(places), bands))
    for size in np.geomspace(20.0, 2000.0, 40):
        wave = rng.normal(0, 1 / size, (2, bands))
        level += 1.2 * np.sin(places @ wave + rng.uniform(0, 6, bands))
    return level - 80


def _watched(client, job) -> float:  # type: ignore[no-untyped-def]
    """Greatest memory of a worker, in GB, while a job runs."""
    import threading

    greatest, stop = [0.0], threading.Event()

    def look() -> None:
        while not stop.wait(0.5):
            workers = client.scheduler_info(n_workers=-1)["workers"].values()
            greatest[0] = max([greatest[0], *(w["metrics"]["memory"] / 2**30 for w in workers)])

    thread = threading.Thread(target=look)
    thread.start()
    job()
    stop.set()
    thread.join()
    return greatest[0]


def zarr(args: argparse.Namespace) -> None:
    """A large map to Zarr through Dask: parts of growing size, and what the whole takes."""
    import portolan

    side, bands = 10_000.0, 4
    rng = np.random.default_rng(0)
    places = rng.uniform(0, side, (args.sensors, 2))
    readings = portolan.Readings(places, hilly(places, bands) + rng.normal(0, 1, (args.sensors, bands)))
    start = time.perf_counter()
    model = portolan.fit(readings, "kriging")
    print(f"{args.sensors} sensors x {bands} bands fitted in {time.perf_counter() - start:.1f} s", flush=True)
    cluster, client = _cluster("1GiB")
    cell = side / args.side
    with tempfile.TemporaryDirectory() as folder:
        for part in [args.part] if args.part == args.side else [args.part // 2, args.part]:
            drawn = model.map(grid=(part, part, cell, 3000.0, 3000.0), chunks=500)
            start = time.perf_counter()
            job = drawn.to_zarr(Path(folder) / f"{part}.zarr", zarr_format=3, consolidated=False, compute=False)
            memory = _watched(client, lambda: _shown(client.compute(job)))
            seconds = time.perf_counter() - start
            whole = seconds * (args.side / part) ** 2 / 60
            print(
                f"{part} x {part} x {bands}: {seconds:.1f} s, {1e6 * seconds / part**2:.1f} us a cell, "
                f"worker up to {memory:.2f} GB; {args.side} x {args.side} would take {whole:.0f} min",
                flush=True,
            )
    client.close()
    cluster.close()


def _shown(future) -> None:  # type: ignore[no-untyped-def]
    from distributed import progress

    progress(future, notebook=False)
    future.result()


def million(args: argparse.Namespace) -> None:
    """A tiled fit of a survey beyond one fit, on two workers; then tiles beside one fit."""
    import portolan

    cluster, client = _cluster("4GiB")

    def survey(count: int, side: float) -> tuple[np.ndarray, np.ndarray]:
        rng = np.random.default_rng(3)
        places = rng.uniform(0, side, (count, 2))
        return places, hilly(places, 1) + rng.normal(0, 1, (count, 1))

    fresh = np.random.default_rng(4)
    side = 32_000.0 * (args.readings / 1e6) ** 0.5
    places, levels = survey(args.readings, side)
    start = time.perf_counter()
    model = portolan.fit_tiled(portolan.Readings(places, levels), "kriging", client=client)
    print(f"{args.readings} readings: {len(model.tiles)} tiles in {time.perf_counter() - start:.1f} s", flush=True)
    at = fresh.uniform(0, side, (20_000, 2))
    start = time.perf_counter()
    level, spread = model.predict(at, return_std=True)
    error = level - hilly(at, 1)
    print(
        f"20,000 places in {time.perf_counter() - start:.1f} s: rmse {np.sqrt(np.mean(error**2)):.3f} dB, "
        f"90 % interval covers {100 * np.mean(np.abs(error) < 1.645 * spread):.1f} %", flush=True
    )
    # A strip of the map around a corner where tiles meet, drawn on the workers.
    tile = next(t for t in model.tiles if np.isfinite(t.high).all())
    cell, cells = 4.0, 600
    corner = [float(c) - cell * cells / 2 for c in tile.high]
    start = time.perf_counter()
    drawn = model.map(grid=(cells, cells, cell, *corner), chunks=200, dtype=float).compute()
    print(f"{cells} x {cells} cells in {time.perf_counter() - start:.1f} s", flush=True)
    field = drawn["power_dbm"].values[0]
    for axis, along, name in ((1, drawn.x.values, "x"), (0, drawn.y.values, "y")):
        steps = np.abs(np.diff(field, axis=axis))
        borders = {t.low[1 - axis] for t in model.tiles} | {t.high[1 - axis] for t in model.tiles}
        middle = 0.5 * (along[1:] + along[:-1])
        beside = np.any([np.abs(middle - b) <= cell / 2 for b in borders if np.isfinite(b)], axis=0)
        across, inside = np.compress(beside, steps, axis), np.compress(~beside, steps, axis)
        print(f"largest step along {name}: {across.max():.3f} dB across a border, {inside.max():.3f} dB elsewhere")

    side = 32_000.0 * (args.compare / 1e6) ** 0.5
    places, levels = survey(args.compare, side)
    readings = portolan.Readings(places, levels)
    at = fresh.uniform(0, side, (20_000, 2))
    errors = []
    for some in (portolan.fit(readings, "kriging"), portolan.fit_tiled(readings, "kriging", client=client)):
        errors.append(np.sqrt(np.mean((some.predict(at) - hilly(at, 1)) ** 2)))
    print(f"{args.compare} readings: rmse {errors[0]:.4f} dB in one fit, {errors[1]:.4f} dB tiled: {errors[1] / errors[0]:.4f} times")
    client.close()
    cluster.close()


def main() -> None:
    warnings.filterwarnings("ignore")
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["overhead", "copies", "many", "zarr", "million"])
    parser.add_argument("--binary", default=str(Path(__file__).resolve().parents[2] / "target/release/portolan"))
    parser.add_argument("--repeat", type=int, default=7)
    parser.add_argument("--maps", type=int, default=2000)
    parser.add_argument("--side", type=int, default=20_000)
    parser.add_argument("--part", type=int, default=2000)
    parser.add_argument("--sensors", type=int, default=100_000)
    parser.add_argument("--readings", type=int, default=1_000_000)
    parser.add_argument("--compare", type=int, default=40_000)
    args = parser.parse_args()
    {"overhead": overhead, "copies": copies, "many": many, "zarr": zarr, "million": million}[args.what](args)


if __name__ == "__main__":
    main()
