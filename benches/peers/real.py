"""Public surveys: scikit-learn, PyKrige and GSTools beside us, on the very same splits.

    python benches/peers/real.py DATA [path to portolan] [splits]

Runs `portolan study real --data DATA --export ..`, fits each peer to the same training readings, band
by band in dB, and prints rmse in dB at the same held-out places (and what the 90 % intervals cover).
Needs numpy, scikit-learn, pykrige and gstools. The peers, as their users call them:

- scikit-learn: GaussianProcessRegressor, ConstantKernel * Matern(nu = 0.5) + WhiteKernel;
- PyKrige: OrdinaryKriging, exponential variogram fitted by PyKrige;
- GSTools: krige.Ordinary, exponential model with a nugget, fitted to GSTools' own variogram.

Where a peer fails, or a band has fewer than three training readings, it predicts the mean of the band.
"""

import csv
import json
import subprocess
import sys
import tempfile
import warnings
from collections import defaultdict
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import gstools
import numpy as np
from pykrige.ok import OrdinaryKriging
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel

DATA = sys.argv[1]
PORTOLAN = sys.argv[2] if len(sys.argv) > 2 else "target/release/portolan"
SPLITS = sys.argv[3] if len(sys.argv) > 3 else "5"
FEWEST = 3
NINETY = 1.645


def scikit_learn(at, level, places):
    extent = np.ptp(at, axis=0).max()
    variance = max(level.var(), 1e-3)
    reach = Matern(0.1 * extent, (1e-3 * extent, 10 * extent), nu=0.5)
    sill = ConstantKernel(variance, (1e-3 * variance, 1e3 * variance))
    noise = WhiteKernel(0.1 * variance, (1e-5 * variance, 10 * variance))
    process = GaussianProcessRegressor(sill * reach + noise)
    mean = level.mean()
    found, spread = process.fit(at, level - mean).predict(places, return_std=True)
    return mean + found, spread


def pykrige(at, level, places):
    found, variance = OrdinaryKriging(*at.T, level, "exponential").execute("points", *places.T)
    # The variance is that of a reading: PyKrige's nugget is part of it away from the sensors.
    return np.asarray(found), np.sqrt(np.maximum(variance, 0))


def gstools_(at, level, places):
    bins, variogram = gstools.vario_estimate(at.T, level)
    variance, reach = max(level.var(), 1e-3), 0.1 * np.ptp(at, axis=0).max()
    model = gstools.Exponential(dim=2, var=variance, len_scale=reach, nugget=0.1 * variance)
    model.fit_variogram(bins, variogram, nugget=True)
    found, variance = gstools.krige.Ordinary(model, at.T, level)(places.T, return_var=True)
    return found, np.sqrt(np.maximum(variance, 0))


PEERS = {"scikit-learn": scikit_learn, "PyKrige": pykrige, "GSTools": gstools_}


def run_split(folder):
    """Sum of squares, readings, readings in their interval, and bands left to their mean, by peer."""
    warnings.simplefilter("ignore")
    at, train = read(folder / "train.csv")
    places, test = read(folder / "test.csv")
    sums = {peer: np.zeros(4) for peer in PEERS}
    for band in range(train.shape[1]):
        known, asked = np.isfinite(train[:, band]), np.isfinite(test[:, band])
        if not asked.any():
            continue
        level, truth = train[known, band], test[asked, band]
        for peer, fit in PEERS.items():
            found = attempt(fit, at[known], level, places[asked])
            failed = found is None
            if failed:
                found = np.full(len(truth), level.mean()), np.full(len(truth), max(level.std(), 1e-9))
            error = found[0] - truth
            covered = np.abs(error) <= NINETY * found[1]
            sums[peer] += [(error**2).sum(), len(error), covered.sum(), failed]
    return sums


def attempt(fit, at, level, places):
    if len(level) < FEWEST:
        return None
    try:
        found = fit(at, level, places)
    except Exception:
        return None
    return found if np.isfinite(found).all() else None


def read(path):
    """Places, and levels with NaN where nothing was heard."""
    with open(path) as file:
        rows = list(csv.reader(file))[1:]
    table = np.array([[float(cell) if cell else np.nan for cell in row] for row in rows])
    return table[:, :2], table[:, 2:]


def main():
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        command = [PORTOLAN, "study", "real", "--data", DATA, "--splits", SPLITS]
        command += ["--export", str(folder), "--json"]
        ours = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
        with open(folder / "splits.csv") as file:
            splits = list(csv.DictReader(file))
        with ProcessPoolExecutor() as pool:
            found = list(pool.map(run_split, [folder / split["folder"] for split in splits]))
    sums = defaultdict(lambda: np.zeros(4))
    for split, result in zip(splits, found):
        for peer, values in result.items():
            sums[split["survey"], split["train"], peer] += values
    report(ours, sums)


def report(ours, sums):
    base = ours["ratio_to"]
    methods = [entry["method"] for entry in ours["means"]]
    names = methods + list(PEERS)
    errors, covers, ratios, pooled = [], [], defaultdict(list), defaultdict(lambda: np.zeros(2))
    for row in ours["rows"]:
        known = {entry["method"]: entry for entry in row["methods"]}
        rmse = {name: known[name]["rmse_db"] for name in methods}
        cover = {name: known[name]["coverage_90"] for name in methods}
        for peer in PEERS:
            squares, count, covered, _ = sums[row["survey"], row["train"], peer]
            rmse[peer], cover[peer] = np.sqrt(squares / count), covered / count
            pooled[peer] += [covered, count]
        for name in names:
            ratios[name].append(rmse[name] / rmse[base])
        title = [row["survey"], row["train"]]
        errors.append(title + [f"{rmse[name]:.2f}" for name in names])
        covers.append(title + [f"{100 * cover[name]:.1f}" for name in names])
    errors.append(["mean ratio", ""] + [f"{np.mean(ratios[name]):.3f}" for name in names])
    together = {entry["method"]: entry["coverage_90"] for entry in ours["means"]}
    together.update({peer: covered / count for peer, (covered, count) in pooled.items()})
    covers.append(["all readings", ""] + [f"{100 * together[name]:.1f}" for name in names])
    print(f"rmse in dB at held-out places, {ours['splits']} splits; mean ratio to {base}")
    table(["survey", "train"] + names, errors)
    print("\nreadings within their 90 % interval, in percent")
    table(["survey", "train"] + names, covers)
    print()
    for peer in PEERS:
        failed = sum(values[3] for (_, _, name), values in sums.items() if name == peer)
        print(f"{peer}: {failed:.0f} fits of a band left to its mean")


def table(header, rows):
    widths = [max(len(row[i]) for row in [header, *rows]) for i in range(len(header))]
    for row in [header, *rows]:
        print("  ".join(cell.rjust(w) if i else cell.ljust(w) for i, (cell, w) in enumerate(zip(row, widths))))


if __name__ == "__main__":
    main()
