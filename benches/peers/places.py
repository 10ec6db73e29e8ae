"""Kriging at fixed hyperparameters, from sensors between cells to places between cells, beside PyKrige.

    python benches/peers/places.py [path to portolan]

Prints the largest difference in dB of power and of spread. Needs numpy and pykrige.
"""

import csv
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from pykrige.ok import OrdinaryKriging

PORTOLAN = sys.argv[1] if len(sys.argv) > 1 else "target/release/portolan"
DECORRELATION, SILL, NUGGET = 23.0, 37.0, 2.5


def main():
    rng = np.random.default_rng(3)
    sensors = rng.uniform([1200.5, -80.25], [1290.0, -10.0], size=(160, 2))
    dbm = -70 + 6 * np.sin(sensors[:, 0] / 9) + 4 * rng.standard_normal(160)
    places = rng.uniform([1195.0, -85.0], [1295.0, -5.0], size=(400, 2))
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        write(folder / "survey.csv", ["x_m", "y_m", "dbm_hall"], np.column_stack([sensors, dbm]))
        write(folder / "places.csv", ["x_m", "y_m"], places)
        settings = {"decorrelation": DECORRELATION, "sill": SILL, "nugget": NUGGET, "exact": "true"}
        options = [word for k, v in settings.items() for word in ("--set", f"{k}={v}")]
        run("fit", folder / "survey.csv", "-o", folder / "model.npz", "--method", "kriging", *options)
        run("predict", folder / "model.npz", folder / "places.csv", "-o", folder / "out.csv")
        with open(folder / "out.csv") as file:
            rows = list(csv.DictReader(file))
    ours = np.array([float(row["dbm_hall"]) for row in rows])
    spread = np.array([float(row["spread_db_hall"]) for row in rows])
    # PyKrige's exponential model is psill (1 - exp(-3 d / range)) + nugget.
    parameters = {"psill": SILL, "range": 3 * DECORRELATION, "nugget": NUGGET}
    peer = OrdinaryKriging(*sensors.T, dbm, "exponential", parameters)
    theirs, variance = peer.execute("points", *places.T)
    print(f"power differs by at most {np.abs(ours - theirs).max():.2e} dB")
    print(f"spread differs by at most {np.abs(spread - np.sqrt(variance)).max():.2e} dB")


def write(path, header, rows):
    with open(path, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(header)
        writer.writerows([repr(float(v)) for v in row] for row in rows)


def run(*words):
    subprocess.run([PORTOLAN, *map(str, words)], check=True, capture_output=True)


if __name__ == "__main__":
    main()
