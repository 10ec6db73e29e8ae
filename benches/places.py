"""Places of transmitters in simulated towns: `portolan locate` beside simpler ways.

    python benches/places.py [--towns 6] [--seed 0] [--row N] [--portolan PATH]

Towns of 400 x 400 m with 12 transmitters, exponents from 2 to 4, shadowing over 40 m. A row prints
median errors in metres; how many transmitters were found; how many of these lie in the 90 and the
50 % region (the polygons of `locate --json`); the median area of the 90 % region; and how many
exponents lie within two standard errors. Needs numpy and scipy.
"""

import argparse
import csv
import json
import subprocess
import tempfile
from pathlib import Path

import numpy as np
from scipy.optimize import least_squares

BUILT = Path(__file__).resolve().parent.parent / "target/release/portolan"
BANDS = 12
SIDE_M = 400.0
RANGE_M = 40.0
# Places, shadowing in dB, noise in dB.
ROWS = [(120, 4, 2), (400, 4, 2), (120, 0, 3), (400, 0, 2), (120, 8, 2), (400, 8, 2)]


def town(seed, places, shadow, noise):
    """Sites, transmitters, exponents and readings in dBm."""
    rng = np.random.default_rng(seed)
    sites = rng.uniform(0, SIDE_M, (places, 2))
    masts = rng.uniform(0, SIDE_M, (BANDS, 2))
    exponents = rng.uniform(2, 4, BANDS)
    levels = rng.uniform(-40, -20, BANDS)
    apart = np.linalg.norm(sites[:, None] - sites[None], axis=2)
    lower = np.linalg.cholesky(np.exp(-apart / RANGE_M) + 1e-9 * np.eye(places))
    far = np.linalg.norm(sites[:, None] - masts[None], axis=2).clip(1.0)
    loss = 10 * exponents * np.log10(far)
    fading = shadow * lower @ rng.normal(size=far.shape) + noise * rng.normal(size=far.shape)
    return sites, masts, exponents, levels - loss + fading


def located(portolan, sites, levels):
    """The emitter of every band, as the command finds it."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "survey.csv"
        with open(path, "w", newline="") as file:
            rows = csv.writer(file)
            rows.writerow(["x_m", "y_m", *(f"dbm_b{band}" for band in range(BANDS))])
            rows.writerows([f"{v:.3f}" for v in row] for row in np.column_stack([sites, levels]))
        words = [portolan, "locate", path, "--method", "field", "--json"]
        done = subprocess.run(words, check=True, capture_output=True, text=True)
    return {emitter["band"]: emitter for emitter in json.loads(done.stdout)["emitters"]}


def holds(region, place):
    """Whether a place lies in a region: inside an odd number of its rings."""
    x, y = place
    inside = False
    for ring in (ring for polygon in region["polygons"] for ring in polygon):
        for (x1, y1), (x2, y2) in zip(ring, [*ring[1:], ring[0]]):
            if (y1 > y) != (y2 > y) and x < x1 + (x2 - x1) * (y - y1) / (y2 - y1):
                inside = not inside
    return inside


def simple(sites, levels):
    """Strongest reading, centroid weighted by power, least squares of path loss."""
    order = np.argsort(-levels)
    power = 10 ** (levels / 10)
    centroid = (power[:, None] * sites).sum(0) / power.sum()

    def residual(x):
        far = np.linalg.norm(sites - x[:2], axis=1).clip(1.0)
        return x[2] - 10 * x[3] * np.log10(far) - levels

    starts = [sites[order[0]], sites[order[:5]].mean(0), sites.mean(0)]
    fits = [least_squares(residual, [*(s + 0.5), levels.max() + 40, 3.0]) for s in starts]
    best = min(fits, key=lambda fit: fit.cost)
    return sites[order[0]], centroid, best.x[:2]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--towns", type=int, default=6)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--row", type=int, help="one row only, from 0")
    parser.add_argument("--portolan", default=str(BUILT))
    args = parser.parse_args()
    heads = ["strongest", "centroid", "squares", "field", "found", "in 90 %", "in 50 %", "area"]
    print("places shadow noise" + "".join(f"{head:>10}" for head in [*heads, "exponent"]))
    for places, shadow, noise in ROWS if args.row is None else [ROWS[args.row]]:
        errors, inside, areas, within = [], [], [], []
        for seed in range(args.seed, args.seed + args.towns):
            sites, masts, exponents, levels = town(seed, places, shadow, noise)
            found = located(args.portolan, sites, levels)
            for band in range(BANDS):
                own = [np.linalg.norm(at - masts[band]) for at in simple(sites, levels[:, band])]
                emitter = found.get(f"b{band}")
                if emitter is None:
                    errors.append([*own, SIDE_M / 2])
                    continue
                off = np.array([emitter["x_m"], emitter["y_m"]]) - masts[band]
                errors.append([*own, np.linalg.norm(off)])
                regions = {region["share"]: region for region in emitter["regions"]}
                inside.append([holds(regions[share], masts[band]) for share in (0.9, 0.5)])
                areas.append(regions[0.9]["area_m2"])
                miss = abs(emitter["exponent"] - exponents[band])
                within.append(miss < 2 * emitter["exponent_se"])
        medians = "".join(f"{m:10.1f}" for m in np.median(errors, axis=0))
        shares = [len(inside) / len(errors), *np.mean(inside, axis=0)]
        shares = "".join(f"{100 * share:10.0f}" for share in shares)
        rest = f"{np.median(areas):10.0f}{100 * np.mean(within):10.0f}"
        print(f"{places:6}{shadow:7}{noise:6}{medians}{shares}{rest}", flush=True)


if __name__ == "__main__":
    main()
