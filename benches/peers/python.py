#!/usr/bin/env python3
"""The Python package beside its peers: fit included, the same readings, one run, one thread.

    pip install ./python scikit-learn pykrige gstools xarray
    RAYON_NUM_THREADS=1 python benches/peers/python.py [--bands 64] [--peer-bands 64] [--repeat 3]

410 sensors x 64 bands onto 4,096 cells. Peers krige band by band and their time is proportional to
the number of bands: with fewer `--peer-bands` they are scaled up. Every method is
scored on the bands that the peers did. A peer that is not installed is left out and said.
"""

import os

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "RAYON_NUM_THREADS"):
    os.environ[name] = "1"

import argparse
import statistics
import time
import warnings

import numpy as np

import portolan

warnings.filterwarnings("ignore")


def ours(at, levels, cells):
    return portolan.Kriging().fit(at, levels).predict(cells)


def pykrige(at, levels, cells):
    from pykrige.ok import OrdinaryKriging

    maps = []
    for band in levels.T:
        kriging = OrdinaryKriging(at[:, 0], at[:, 1], band, variogram_model="exponential")
        maps.append(np.asarray(kriging.execute("points", cells[:, 0], cells[:, 1])[0]))
    return np.stack(maps, axis=1)


def scikit_learn(at, levels, cells):
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel

    maps = []
    for band in levels.T:
        kernel = ConstantKernel(30.0) * Matern(20.0, nu=0.5) + WhiteKernel(0.1)
        process = GaussianProcessRegressor(kernel, normalize_y=True).fit(at, band)
        maps.append(process.predict(cells))
    return np.stack(maps, axis=1)


def gstools(at, levels, cells):
    import gstools

    maps = []
    for band in levels.T:
        bins = gstools.standard_bins((at[:, 0], at[:, 1]), max_dist=45)
        centres, gamma = gstools.vario_estimate((at[:, 0], at[:, 1]), band, bins)
        model = gstools.Exponential(dim=2)
        model.fit_variogram(centres, gamma, nugget=True)
        kriging = gstools.krige.Ordinary(model, (at[:, 0], at[:, 1]), band)
        maps.append(kriging((cells[:, 0], cells[:, 1]), return_var=False))
    return np.stack(maps, axis=1)


def xarray_spatial(at, levels, cells):
    from xrspatial.interpolate import kriging  # in releases that have it
    import xarray

    x, y = np.unique(cells[:, 0]), np.unique(cells[:, 1])
    template = xarray.DataArray(np.zeros((len(y), len(x))), coords={"y": y, "x": x}, dims=("y", "x"))
    maps = []
    for band in levels.T:
        found = kriging(at[:, 0], at[:, 1], band, template)
        maps.append(found.transpose("x", "y").to_numpy().ravel())
    return np.stack(maps, axis=1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bands", type=int, default=64)
    parser.add_argument("--peer-bands", type=int, default=64)
    parser.add_argument("--repeat", type=int, default=3)
    args = parser.parse_args()
    truth = portolan.simulate(bands=args.bands, seed=1)
    readings = portolan.sense(truth, count=410, seed=1)
    # In dB of (x + 1e-6): the paper's scale, for everybody alike.
    offset = 1e-6
    db = 10 * np.log10(10 ** (0.1 * truth["power_db"].values.transpose(2, 1, 0)) + offset)
    levels = 10 * np.log10(10 ** (0.1 * readings.values) + offset)
    x, y = np.meshgrid(truth.x.values, truth.y.values, indexing="ij")
    cells = np.column_stack([x.ravel(), y.ravel()])
    known = db.reshape(-1, args.bands)
    some = args.peer_bands

    def measured(method, bands, repeat):
        seconds = []
        for _ in range(repeat):
            start = time.perf_counter()
            found = method(readings.places, np.ascontiguousarray(levels[:, :bands]), cells)
            seconds.append(time.perf_counter() - start)
        error = np.sqrt(np.mean((found[:, :some] - known[:, :some]) ** 2))
        return statistics.median(seconds) * args.bands / bands, error

    base, error = measured(ours, args.bands, args.repeat)
    print(f"{'portolan.Kriging':26} {base:9.3f} s   rmse {error:.3f} dB")
    for name, method in {
        "PyKrige": pykrige,
        "scikit-learn GP": scikit_learn,
        "GSTools": gstools,
        "xarray-spatial": xarray_spatial,
    }.items():
        try:
            seconds, error = measured(method, some, 1)
        except ImportError as missing:
            print(f"{name:26} left out: {missing}")
            continue
        print(f"{name:26} {seconds:9.3f} s   rmse {error:.3f} dB   {seconds / base:6.0f} times ours")


main()
