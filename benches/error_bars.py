"""Error bars where `portolan study calibration` does not go: surveys repeated by the month, readings
gathered at a place, long drives, sparse readings, and rows in another order.

    python benches/error_bars.py SCENARIO.. [--portolan PATH] [--data DIR]

SCENARIO is any of months, gathered, place, sparse, beside, shuffled, or all. Every figure comes from
`portolan fit` and `predict` with their defaults on files. Needs numpy; months needs the library floor
(`surveys_over_time/uji_floor3.csv` below DIR).
"""

import argparse
import csv
import json
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np

NINETY = 1.645
METHODS = ("kriging", "field", "auto")


class Command:
    """The command, and a folder for its files."""

    def __init__(self, portolan, folder):
        self.portolan, self.folder = portolan, Path(folder)

    def run(self, *words):
        done = subprocess.run([self.portolan, *map(str, words)], capture_output=True, text=True)
        if done.returncode != 0:
            raise SystemExit(done.stderr)
        return done.stdout

    def fit(self, sites, dbm, method):
        """Fits bands in dBm (rows x bands) and returns what `fit --json` says."""
        header = ["x_m", "y_m"] + [f"dbm_b{k}" for k in range(dbm.shape[1])]
        write(self.folder / "survey.csv", header, np.column_stack([sites, dbm]))
        survey, model = self.folder / "survey.csv", self.folder / "model.npz"
        words = ["fit", survey, "-o", model, "--method", method, "--force", "--json"]
        return json.loads(self.run(*words))

    def predict(self, sites):
        """Levels, spreads and reading spreads in dB at some places, rows x bands."""
        write(self.folder / "places.csv", ["x_m", "y_m"], sites)
        out = self.folder / "out.csv"
        model, places = self.folder / "model.npz", self.folder / "places.csv"
        self.run("predict", model, places, "-o", out, "--force")
        with open(out) as file:
            header = next(csv.reader(file))
        table = np.loadtxt(out, delimiter=",", skiprows=1, ndmin=2)
        starts = ("dbm_", "spread_db_", "reading_spread_db_")
        return [table[:, [i for i, name in enumerate(header) if name.startswith(s)]] for s in starts]


def write(path, header, rows):
    with open(path, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(header)
        writer.writerows(["" if np.isnan(v) else repr(float(v)) for v in row] for row in rows)


def covered(error, spread):
    known = ~np.isnan(error)
    return 100 * np.mean(np.abs(error[known]) <= NINETY * spread[known])


def process(rng, sites, deviation, reach, bands=1):
    """A Gaussian process with the exponential covariance: sites x bands."""
    gap = np.hypot(*(sites[:, None] - sites[None]).transpose(2, 0, 1))
    covariance = deviation**2 * np.exp(-gap / reach) + 1e-9 * np.eye(len(sites))
    return np.linalg.cholesky(covariance) @ rng.standard_normal((len(sites), bands))


def months(command, data):
    """All months before one pooled, and that one predicted at the places visited before."""
    path = Path(data) / "surveys_over_time" / "uji_floor3.csv"
    with open(path) as file:
        rows = list(csv.DictReader(file))
    rows = [row for row in rows if row["device"] != "a5"]
    bands = [name for name in rows[0] if name.startswith("ap")]
    site = np.array([[float(row["x_m"]), float(row["y_m"])] for row in rows])
    month = np.array([int(row["month"]) for row in rows])
    dbm = np.array([[float(row[band] or "nan") for band in bands] for row in rows])
    print("the library floor, months before pooled: 90 % interval of a reading, rmse, stated spread")
    for method in METHODS:
        told = []
        for held in (7, 13, 19, 25):
            before = month < held
            heard = (~np.isnan(dbm[before])).sum(axis=0) > 0
            known = {tuple(s) for s in site[before]}
            asked = np.array([m == held and tuple(s) in known for m, s in zip(month, site)])
            command.fit(site[before], dbm[before][:, heard], method)
            level, _, spread = command.predict(site[asked])
            error = level - dbm[asked][:, heard]
            told.append((covered(error, spread), np.sqrt(np.nanmean(error**2)), spread.mean()))
            print(f"  {method} month {held}: {told[-1][0]:.1f} %, {told[-1][1]:.2f} dB, "
                  f"{told[-1][2]:.2f} dB")
        mean = np.mean(told, axis=0)
        print(f"  {method} mean: {mean[0]:.1f} %, {mean[1]:.2f} dB, {mean[2]:.2f} dB")


def gathered(command, _):
    """Each of 40 readings ten times, 1 um apart."""
    print("40 places read ten times, 1 um apart, noise 2 dB, process 6 dB over 30 m: 90 % interval of")
    print("another reading there and its spread; the field far away, all round")
    for method in METHODS:
        again, spreads, round_about = [], [], []
        for seed in range(10):
            rng = np.random.default_rng(seed)
            places = rng.uniform(0, 100, (40, 2))
            truth = -70 + process(rng, places, 6, 30)
            sites = np.repeat(places, 10, axis=0) + 1e-6 * rng.standard_normal((400, 2))
            dbm = np.repeat(truth, 10, axis=0) + 2 * rng.standard_normal((400, 1))
            command.fit(sites, dbm, method)
            angle = np.arange(12) / 12 * 2 * np.pi
            far = 50 + 2000 * np.column_stack([np.cos(angle), np.sin(angle)])
            level, spread, reading = command.predict(np.vstack([places, far]))
            error = level[:40] - truth - 2 * rng.standard_normal((40, 1))
            again.append(covered(error, reading[:40]))
            spreads.append(reading[:40].mean())
            round_about.append([spread[40:].min(), spread[40:].max()])
        low, high = np.mean(round_about, axis=0)
        print(f"  {method}: {np.mean(again):.1f} %, {np.mean(spreads):.2f} dB; "
              f"{low:.2f} to {high:.2f} dB")


def place(command, _):
    """39 readings at one place among 30 others; 5 dB of noise everywhere and one place ten times."""
    print("39 readings of sd 1 dB at one place, 30 others elsewhere: the reading's spread there")
    for method in METHODS:
        one, five, gathered_five = [], [], []
        for seed in range(10):
            rng = np.random.default_rng(seed)
            others = rng.uniform(0, 100, (30, 2))
            places = np.vstack([[[50.0, 50.0]], others])
            truth = -70 + process(rng, places, 6, 30)
            sites = np.vstack([np.repeat(places[:1], 39, axis=0), others])
            level = np.vstack([np.repeat(truth[:1], 39, axis=0), truth[1:]])
            command.fit(sites, level + rng.standard_normal(level.shape), method)
            one.append(command.predict(places[:1])[2][0, 0])
            noisy = np.repeat(truth, 5, axis=0) + 5 * rng.standard_normal((155, 1))
            command.fit(np.repeat(places, 5, axis=0), noisy, method)
            five.append(command.predict(places)[2].mean())
            sites = np.vstack([np.repeat(places[:1], 10, axis=0), others])
            level = np.vstack([np.repeat(truth[:1], 10, axis=0), truth[1:]])
            command.fit(sites, level + 5 * rng.standard_normal(level.shape), method)
            gathered_five.append(command.predict(places[:1])[2][0, 0])
        said = [f"{np.median(s):.2f} ({min(s):.2f} to {max(s):.2f})" for s in (one, five, gathered_five)]
        print(f"  {method}: {said[0]} dB; noise 5 dB five times everywhere {said[1]}; "
              f"5 dB ten times at one {said[2]}")


def sparse(command, _):
    """Readings of a field that changes within their distance."""
    print("sparse readings of a field of 6 dB over 10 m, 1 km square, noise 1 dB: 90 % of the field")
    for count in (300, 1000):
        for method in METHODS:
            found, again = [], []
            for seed in range(10):
                rng = np.random.default_rng(seed)
                sites = rng.uniform(0, 1000, (count + 200, 2))
                truth = -70 + process(rng, sites, 6, 10)
                noise = rng.standard_normal(truth.shape)
                command.fit(sites[:count], (truth + noise)[:count], method)
                level, spread, reading = command.predict(sites)
                found.append(covered((level - truth)[count:], spread[count:]))
                noise = rng.standard_normal(truth.shape)
                again.append(covered((level - truth - noise)[:count], reading[:count]))
            error = np.std(found) / np.sqrt(len(found) - 1)
            print(f"  {count} {method}: {np.mean(found):.1f} +- {error:.1f} %; "
                  f"a reading repeated {np.mean(again):.1f} %")


def drive(rng, count):
    """Readings every 20 m along the streets of a square of 20 km, and places 60 m beside them."""
    side, cell = 2048, 10.0
    steps = np.minimum(np.arange(2 * side), 2 * side - np.arange(2 * side)) * cell
    field = np.zeros((side, side))
    for deviation, reach in ((3.0, 3000.0), (2.0, 300.0)):
        covariance = deviation**2 * np.exp(-np.hypot(steps[:, None], steps[None]) / reach)
        power = np.maximum(np.fft.fft2(covariance).real, 0.0)
        white = rng.standard_normal(power.shape) + 1j * rng.standard_normal(power.shape)
        field += np.fft.fft2(np.sqrt(power / power.size) * white).real[:side, :side]
    streets = rng.choice(side - 40, size=200, replace=False) + 20
    along = rng.uniform(400, side * cell - 400, (count + 2000))
    street = rng.choice(streets, size=along.size)
    across = (street + 0.5) * cell
    across[count:] += 60.0 * rng.choice([-1, 1], size=2000)
    north = rng.random(along.size) < 0.5
    order = np.lexsort((along[:count], street[:count], north[:count]))
    sites = np.where(north[:, None], np.column_stack([across, along]), np.column_stack([along, across]))
    at = np.floor(sites / cell).astype(int)
    dbm = -80 + field[at[:, 0], at[:, 1]][:, None]
    own = np.abs(sites[count:, :, None] - ((streets + 0.5) * cell)[None, None]).min(axis=(1, 2))
    beside = own > 59.0
    return sites[:count][order], dbm[:count][order], sites[count:][beside], dbm[count:][beside]


def beside(command, _):
    """10^5 readings on streets, and the field 60 m beside them."""
    print("10^5 readings on 400 streets of 20 km, noise 1 dB: 90 % of the field 60 m beside any street")
    for method in ("kriging", "auto"):
        for seed in (0, 1, 2):
            rng = np.random.default_rng(seed)
            sites, dbm, places, truth = drive(rng, 100_000)
            command.fit(sites, dbm + rng.standard_normal(dbm.shape), method)
            level, spread, _ = command.predict(places)
            error = level - truth
            print(f"  {method} seed {seed}: {covered(error, spread):.1f} % of {len(places)} places, "
                  f"rmse {np.sqrt(np.mean(error**2)):.2f} dB, spread {spread.mean():.2f} dB")


def shuffled(command, _):
    """The same rows in another order, and rounded to mm."""
    print("rows as they came, then shuffled, then shuffled and rounded to mm: law, predictions, fit")
    for count in (10_000, 100_000, 1_000_000):
        rng = np.random.default_rng(5)
        sites, dbm, places, _ = drive(rng, count)
        dbm = dbm + rng.standard_normal(dbm.shape)
        order = rng.permutation(count)
        cases = [(sites, dbm), (sites[order], dbm[order]), (sites[order].round(3), dbm[order])]
        first = None
        for case, (own, level) in enumerate(cases):
            told = command.fit(own, level, "kriging")
            law = [told["fitted"][name] for name in ("decorrelation_m", "sill", "nugget")]
            found = command.predict(places)[0]
            first = first or (law, found, told["seconds"])
            apart = max(abs(a / b - 1) for a, b in zip(law, first[0]))
            rms = np.sqrt(np.mean((found - first[1]) ** 2))
            print(f"  {count} {('as came', 'shuffled', 'shuffled, mm')[case]}: law "
                  f"{law[0]:.0f} m {law[1]:.2f} {law[2]:.2f} dB^2, apart {100 * apart:.2f} %, "
                  f"predictions {rms:.4f} dB rms, fit {told['seconds']:.2f} s "
                  f"({told['seconds'] / first[2]:.2f})")


SCENARIOS = {f.__name__: f for f in (months, gathered, place, sparse, beside, shuffled)}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("scenarios", nargs="+", choices=[*SCENARIOS, "all"])
    parser.add_argument("--portolan", default="target/release/portolan")
    parser.add_argument("--data", default=".")
    own = parser.parse_args()
    for name in SCENARIOS if "all" in own.scenarios else own.scenarios:
        start = time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            SCENARIOS[name](Command(own.portolan, folder), own.data)
        print(f"  ({name}: {time.monotonic() - start:.0f} s)", flush=True)


if __name__ == "__main__":
    main()
