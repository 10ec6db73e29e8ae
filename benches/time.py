"""Surveys repeated over time: a new month predicted from all earlier ones and a share of its own
readings, at places visited before, by models with and without times.

    python benches/time.py [floor] [changes] [speed] [--portolan PATH] [--data DIR] [--months 6-25]
                           [--shares 0,10,20] [--seeds 1] [--method kriging] [--ways pooled,latest,times]

Every figure comes from `portolan fit` and `predict` on files. `exact` averages the visits to a
place and knows neither times nor noise, as version 0.2 came out; `pooled` is the same with the noise
that this version fits; `latest` has the readings of the last month alone, and
the new ones; `visits` has all rows without times; `times` has them with their times. Needs the
library floor (`surveys_over_time/uji_floor3.csv` below DIR) and nothing else.
"""

import argparse
import csv
import json
import math
import random
import subprocess
import tempfile
import time
from pathlib import Path

NINETY = 1.645
MONTH_S = 30.44 * 86400


class Command:
    """The command, and a folder for its files."""

    def __init__(self, portolan, folder, method):
        self.portolan, self.folder, self.method = portolan, Path(folder), method

    def run(self, *words):
        done = subprocess.run([self.portolan, *map(str, words)], capture_output=True, text=True)
        if done.returncode != 0:
            raise SystemExit(done.stderr)
        return done.stdout

    def fit(self, rows, bands, times=True, exact=False):
        """Fits rows of (x, y, month, levels) and returns what `fit --json` says."""
        names = ["x_m", "y_m"] + ["time_s"] * times + [f"dbm_{band}" for band in bands]
        write(self.folder / "survey.csv", names, [
            [x, y, *([month * MONTH_S] if times else []), *(dbm[band] for band in bands)]
            for x, y, month, dbm in rows
        ])
        survey, model = self.folder / "survey.csv", self.folder / "model.npz"
        words = ["fit", survey, "-o", model, "--method", self.method, "--force", "--json"]
        words += ["--set", "nugget=0"] if exact else []
        return json.loads(self.run(*words))

    def predict(self, places, bands, month):
        """Level and reading spread of every place and band."""
        asked, out = self.folder / "places.csv", self.folder / "out.csv"
        write(asked, ["x_m", "y_m", "time_s"], [[x, y, month * MONTH_S] for x, y in places])
        self.run("predict", self.folder / "model.npz", asked, "-o", out, "--force")
        with open(out) as file:
            for line in csv.DictReader(file):
                yield {
                    band: (float(line[f"dbm_{band}"]), float(line[f"reading_spread_db_{band}"]))
                    for band in bands
                }


def write(path, header, rows):
    with open(path, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(header)
        writer.writerows(["" if v is None else v for v in row] for row in rows)


def floor(data, device="s3"):
    """Rows of the library floor: x, y, month, levels by band."""
    with open(Path(data) / "surveys_over_time" / "uji_floor3.csv") as file:
        lines = list(csv.DictReader(file))
    bands = [name for name in lines[0] if name.startswith("ap")]
    return bands, [
        (float(line["x_m"]), float(line["y_m"]), int(line["month"]),
         {band: float(line[band]) if line[band] else None for band in bands})
        for line in lines if line["device"] in device.split(",")
    ]


def averaged(rows, bands):
    """One row a place: the mean of its visits in dB."""
    places = {}
    for x, y, _, dbm in rows:
        places.setdefault((x, y), []).append(dbm)
    found = []
    for (x, y), visits in places.items():
        levels = {}
        for band in bands:
            own = [dbm[band] for dbm in visits if dbm[band] is not None]
            levels[band] = sum(own) / len(own) if own else None
        found.append((x, y, 0, levels))
    return found


def library(own):
    ways, shares = own.ways.split(","), [int(share) for share in own.shares.split(",")]
    first, last = (int(month) for month in own.months.split("-"))
    print(f"library floor, months {first} to {last}, {own.method}: rmse in dB, share of readings in "
          "their 90 % interval")
    bands, rows = floor(own.data)
    for share in shares:
        sums = {way: [0.0, 0, 0] for way in ways}
        for month in range(first, last + 1):
            for seed in range(own.seeds if share else 1):
                rng = random.Random(1000 * month + seed)
                before = [row for row in rows if row[2] < month]
                now = [row for row in rows if row[2] == month]
                known = {row[:2] for row in before}
                kept = set(rng.sample(range(len(now)), round(share / 100 * len(now))))
                new = [now[i] for i in sorted(kept)]
                held = [now[i] for i in range(len(now)) if i not in kept and now[i][:2] in known]
                heard = [b for b in bands if any(row[3][b] is not None for row in before)]
                for way in ways:
                    latest = [row for row in before if row[2] == month - 1]
                    train = {
                        "exact": lambda: averaged(before + new, heard),
                        "pooled": lambda: averaged(before + new, heard),
                        "latest": lambda: averaged(latest + new, heard),
                        "visits": lambda: before + new,
                        "times": lambda: before + new,
                    }[way]()
                    able = [b for b in heard if any(row[3][b] is not None for row in train)]
                    own_command = Command(own.portolan, own.folder, own.method)
                    own_command.fit(train, able, way == "times", way == "exact")
                    found = own_command.predict([row[:2] for row in held], able, month)
                    for row, told in zip(held, found):
                        for band in able:
                            if row[3][band] is None:
                                continue
                            level, spread = told[band]
                            error = level - row[3][band]
                            sums[way][0] += error * error
                            sums[way][1] += abs(error) <= NINETY * spread
                            sums[way][2] += 1
        best = min((math.sqrt(s / n) for way, (s, _, n) in sums.items() if way in ("exact", "pooled", "latest")),
                   default=math.nan)
        for way, (squares, inside, count) in sums.items():
            rmse = math.sqrt(squares / count)
            print(f"  {share:2d} % {way:7s} {rmse:.3f} dB ({100 * inside / count:.1f} %), "
                  f"{100 * (rmse / best - 1):+.1f} % of the better without times, {count} readings",
                  flush=True)


def changes(own):
    """Alarms in a new month as it is, and with 6 dB more in every band, by five readings of each."""
    print(f"library floor, changes in months {own.months} seen by five readings of a band ({own.method})")
    bands, rows = floor(own.data)
    first, last = (int(month) for month in own.months.split("-"))
    found = {0: [], 6: []}
    called = {0: [0, 0], 6: [0, 0]}
    shapes = []
    for month in range(first, last + 1):
        rng = random.Random(month)
        before = [row for row in rows if row[2] < month]
        now = [row for row in rows if row[2] == month]
        heard = [b for b in bands if sum(row[3][b] is not None for row in before) >= 20]
        command = Command(own.portolan, own.folder, own.method)
        command.fit(before, heard)
        kept = {band: set() for band in heard}
        for band in heard:
            able = [i for i, row in enumerate(now) if row[3][band] is not None]
            kept[band] = set(rng.sample(able, 5)) if len(able) >= 5 else set()
        for jump in found:
            new = command.folder / "new.csv"
            write(new, ["x_m", "y_m", "time_s"] + [f"dbm_{band}" for band in heard], [
                [x, y, month * MONTH_S,
                 *(dbm[band] + jump if i in kept[band] else None for band in heard)]
                for i, (x, y, month, dbm) in enumerate(now)
            ])
            told = json.loads(command.run("changes", command.folder / "model.npz", new, "--json"))
            judged = [band for band in told["bands"] if band["readings"]]
            found[jump] += [abs(band["level_z"]) for band in judged]
            called[jump][0] += sum(band["kind"] != "same" for band in judged)
            called[jump][1] += len(judged)
            if not jump:
                shapes += [band["shape_p"] for band in judged]
    for nominal, score in ((5, 1.960), (1, 2.576)):
        shares = [100 * sum(z > score for z in found[jump]) / len(found[jump]) for jump in (0, 6)]
        shape = 100 * sum(p < nominal / 100 for p in shapes) / len(shapes)
        print(f"  at {nominal} %: alarms {shares[0]:.1f} % (level) {shape:.1f} % (shape) of "
              f"{len(found[0])} bands as they are; jumps of 6 dB found {shares[1]:.1f} %")
    for jump, (some, all_of) in called.items():
        print(f"  called changed with {jump} dB: {some} of {all_of}")


def speed(own):
    bands, rows = floor(own.data, "s3,a5")
    rng = random.Random(7)
    command = Command(own.portolan, own.folder, own.method)
    for times in (False, True):
        start = time.monotonic()
        told = command.fit(rows, bands, times)
        fitted = time.monotonic() - start
        start = time.monotonic()
        out = command.folder / "map.npz"
        command.run("predict", command.folder / "model.npz", "-o", out, "--grid", "317x316",
                    "--cell-m", "0.05", "--origin", "2,15", "--force")
        print(f"  {own.method}, {len(rows)} rows x {len(bands)} bands, "
              f"{'with' if times else 'without'} times: fit {told['seconds']:.2f} s (command "
              f"{fitted:.2f} s), 317 x 316 cells {time.monotonic() - start:.2f} s", flush=True)
        print("   ", told["notes"], told["fitted"])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("what", nargs="*", default=["floor", "changes", "speed"])
    parser.add_argument("--portolan", default="target/release/portolan")
    parser.add_argument("--data", default=".")
    parser.add_argument("--months", default="6-25")
    parser.add_argument("--shares", default="0,10,20")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--method", default="kriging")
    parser.add_argument("--ways", default="pooled,latest,times")
    own = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        own.folder = folder
        for what in own.what:
            start = time.monotonic()
            {"floor": library, "changes": changes, "speed": speed}[what](own)
            print(f"  ({what}: {time.monotonic() - start:.0f} s)", flush=True)


if __name__ == "__main__":
    main()
