#!/usr/bin/env python3
"""Kriging side by side: PyKrige and portolan, same readings, same fixed hyperparameters, one run.

    pip install numpy pykrige
    benches/peers/kriging.py [--binary target/release/portolan] [--repeat 5]

Simulates 64 x 64 x 64 with 410 sensors, kriges all 64 bands onto 4,096 cells with both tools in
turn, prints the median seconds of each, their ratio and the largest difference in dB; then the
seconds that portolan takes when it fits the hyperparameters as well. Everything runs on one thread.
"""
import os

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"

import argparse, json, statistics, subprocess, tempfile, time
from pathlib import Path

import numpy as np
from pykrige.ok import OrdinaryKriging

DECORRELATION, SILL, NUGGET = 40.0, 60.0, 0.5


def portolan(binary, *words):
    run = subprocess.run([binary, *words], check=True, capture_output=True, text=True)
    return json.loads(run.stdout) if run.stdout.strip() else None


def peer(readings):
    """PyKrige on every band, in dB of (x + 1e-6): predictions, cells x bands."""
    rows, cols = readings["grid"]
    at = readings["cells"].astype(float)
    log = 10 * np.log10(readings["values"] + 1e-6)
    maps = []
    for band in range(log.shape[1]):
        # PyKrige's exponential model reaches 95 % of the sill at `range` = 3 decorrelations.
        parameters = {"psill": SILL, "range": 3 * DECORRELATION, "nugget": NUGGET}
        kriging = OrdinaryKriging(at[:, 1], at[:, 0], log[:, band], variogram_model="exponential",
                                  variogram_parameters=parameters)
        predicted, _ = kriging.execute("grid", np.arange(cols, dtype=float), np.arange(rows, dtype=float))
        maps.append(np.asarray(predicted))
    return np.stack(maps, axis=-1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--binary", default="target/release/portolan")
    parser.add_argument("--repeat", type=int, default=5)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        truth, readings, out = (str(Path(folder) / name) for name in ("truth.npz", "readings.npz", "map.npz"))
        portolan(args.binary, "simulate", "-o", truth, "--seed", "1")
        portolan(args.binary, "sense", truth, "-o", readings, "--count", "410", "--seed", "1")
        data = dict(np.load(readings))
        estimate = ["estimate", readings, "-o", out, "--force", "--json", "--threads", "1", "--method", "kriging"]
        fixed = [f"--set=decorrelation={DECORRELATION}", f"--set=sill={SILL}", f"--set=nugget={NUGGET}", "--set=exact=true"]
        ours, theirs, fitted = [], [], []
        for _ in range(args.repeat):
            start = time.perf_counter()
            predicted = peer(data)
            theirs.append(time.perf_counter() - start)
            ours.append(portolan(args.binary, *estimate, *fixed)["seconds"])
            fitted.append(portolan(args.binary, *estimate)["seconds"])
        portolan(args.binary, *estimate, *fixed)
        mine = 10 * np.log10(np.load(out)["map"] + 1e-6)
        apart = np.abs(mine - predicted).max()
        a, b = statistics.median(theirs), statistics.median(ours)
        print(f"PyKrige, 64 bands, fixed hyperparameters:   {a:.3f} s")
        print(f"portolan, 64 bands, fixed hyperparameters:  {b:.4f} s")
        print(f"ratio {a / b:.0f}, largest difference {apart:.1e} dB")
        print(f"portolan, hyperparameters fitted:           {statistics.median(fitted):.3f} s")


if __name__ == "__main__":
    main()
