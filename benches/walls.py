"""Walls and floors between transmitters and places: errors at held-out places of a measured building.

    python3 benches/walls.py FOLDER [--splits 10] [--method field] [--rows known,unknown,wrong]
                                    [--train 0.05,blocks] [--portolan PATH]

FOLDER holds places.csv (x_m, y_m, z_m, level, gain_db_*), transmitters.csv and walls.csv. Every row
fits and predicts with the command. A row prints the rmse in dB and the share of readings that lie in
their 90 % interval: without the plan, with it, and with wrong plans.
"""

import argparse
import csv
import math
import random
import subprocess
import tempfile
from pathlib import Path

BUILT = Path(__file__).resolve().parent.parent / "target/release/portolan"
SHARES = [0.05, 0.1, 0.25, 0.5]


def read(path):
    with open(path) as file:
        header, *rows = csv.reader(file)
    return header, rows


def write(path, header, rows):
    with open(path, "w", newline="") as file:
        csv.writer(file).writerows([header, *rows])


class Survey:
    def __init__(self, folder, portolan):
        self.portolan = portolan
        header, rows = read(folder / "places.csv")
        self.bands = [name.removeprefix("gain_db_") for name in header[4:]]
        self.sites = [row[:3] for row in rows]
        self.levels = [int(row[3]) for row in rows]
        self.values = [row[4:] for row in rows]
        self.folder = folder

    def splits(self, name, count):
        """Training rows of each split."""
        n = len(self.sites)
        x, y = ([float(site[axis]) for site in self.sites] for axis in (0, 1))
        for seed in range(count):
            rng = random.Random(seed)
            if name == "blocks":
                centre = sum(x) / n, sum(y) / n
                own = [2 * (x[i] > centre[0]) + (y[i] > centre[1]) for i in range(n)]
                if seed < 4:
                    yield [i for i in range(n) if own[i] != seed]
            elif name.startswith("level"):
                level = int(name.split()[1])
                near = [i for i in range(n) if self.levels[i] == level]
                rng.shuffle(near)
                yield [i for i in range(n) if self.levels[i] != level] + near[:5]
            else:
                rows = list(range(n))
                rng.shuffle(rows)
                yield rows[: round(float(name) * n)]

    def judge(self, train, arguments, method, work):
        """Squared errors and how many lie within their interval."""
        test = sorted(set(range(len(self.sites))) - set(train))
        table = [self.sites[i] + self.values[i] for i in train]
        write(work / "readings.csv", ["x_m", "y_m", "z_m", *self.bands], table)
        write(work / "places.csv", ["x_m", "y_m", "z_m"], [self.sites[i] for i in test])
        run = [self.portolan, "fit", str(work / "readings.csv"), "--columns", "bands=tx*"]
        run += ["--unit", "db", "--method", method, "-o", str(work / "model.npz"), "--force"]
        subprocess.run(run + arguments, check=True, capture_output=True)
        asked = [self.portolan, "predict", str(work / "model.npz"), str(work / "places.csv")]
        subprocess.run([*asked, "-o", str(work / "out.csv"), "--force"], check=True, capture_output=True)
        header, rows = read(work / "out.csv")
        squares, inside = [], 0
        for i, row in zip(test, rows):
            found = dict(zip(header, row))
            for band, text in zip(self.bands, self.values[i]):
                if text in ("", "nan"):
                    continue
                error = float(found[f"db_{band}"]) - float(text)
                squares.append(error**2)
                inside += abs(error) < 1.645 * float(found[f"reading_spread_db_{band}"])
        return squares, inside


def plans(folder, work):
    """Wrong plans: mirrored along x, moved by 5 m, and another building's."""
    header, rows = read(folder / "walls.csv")
    ends = [[float(v) for v in row[:4]] for row in rows]
    low = min(min(e[0], e[2]) for e in ends)
    high = max(max(e[0], e[2]) for e in ends)
    rng = random.Random(7)
    changes = {
        "mirrored": lambda e: [low + high - e[0], e[1], low + high - e[2], e[3]],
        "moved 5 m": lambda e: [e[0] + 3.5, e[1] + 3.5, e[2] + 3.5, e[3] + 3.5],
    }
    found = {}
    for name, change in changes.items():
        found[name] = work / f"{name}.csv"
        write(found[name], header, [change(e) + row[4:] for e, row in zip(ends, rows)])
    other = []
    for row in rows:
        x, y = rng.uniform(low, high), rng.uniform(low, high)
        along, length = rng.choice([0, 1]), rng.uniform(2, 8)
        other.append([x, y, x + length * along, y + length * (1 - along), row[4]])
    found["another"] = work / "another.csv"
    write(found["another"], header, other)
    found["no facade"] = work / "facade.csv"
    write(found["no facade"], header, [row for row in rows if row[4] != "glass"])
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--method", default="field")
    parser.add_argument("--rows", default="known,unknown,wrong")
    parser.add_argument("--train", default=",".join([*map(str, SHARES), "blocks", "level 7", "level 8"]))
    parser.add_argument("--portolan", default=str(BUILT))
    args = parser.parse_args()
    survey = Survey(args.folder, args.portolan)
    known = ["--transmitters", str(args.folder / "transmitters.csv")]
    floors = ["--floor-height", "3"]
    plan = ["--walls", str(args.folder / "walls.csv"), *floors]
    names = args.train.split(",")
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        variants = {}
        if "known" in args.rows:
            variants |= {"known": known, "+floors": known + floors, "+walls": known + plan}
        if "unknown" in args.rows:
            variants |= {"unknown": [], "+plan": plan}
        if "wrong" in args.rows:
            for name, path in plans(args.folder, work).items():
                variants[name] = [*known, "--walls", str(path), *floors]
        print(f"{args.method}, {args.splits} splits: rmse dB (90 % interval holds)")
        print(f"{'':9}" + "".join(f"{name:>14}" for name in variants))
        for name in names:
            line = f"{name:9}"
            for arguments in variants.values():
                squares, inside = [], 0
                for train in survey.splits(name, args.splits):
                    own, within = survey.judge(train, arguments, args.method, work)
                    squares += own
                    inside += within
                rmse = math.sqrt(sum(squares) / len(squares))
                line += f"{rmse:8.2f} ({100 * inside / len(squares):3.0f})"
            print(line, flush=True)


if __name__ == "__main__":
    main()
