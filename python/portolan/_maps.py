"""Maps: simulated, read and written, sensed and scored. A map is an ``xarray.Dataset``."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from . import _native
from ._grids import Grid, Layers, cells_first, dataset
from ._readings import Readings, as_floats

Cells = Sequence[tuple[int, int]]


def simulate(
    shape: tuple[int, int] = (64, 64),
    *,
    cell_m: float = 1.0,
    bands: int = 64,
    emitters: int = 4,
    shadow_db: float = 6.0,
    decorrelation_m: float = 90.0,
    psd: str = "gaussian",
    seed: int = 0,
) -> Any:
    """A simulated map: emitters with path loss and shadowing. The defaults are the paper's.

    ``shape`` counts cells along x and along y.
    """
    grid = (int(shape[0]), int(shape[1]), float(cell_m), 0.0, 0.0)
    native = _native.simulate(
        grid,
        bands=bands,
        emitters=emitters,
        shadow_db=shadow_db,
        decorrelation_m=decorrelation_m,
        psd=psd,
        seed=seed,
    )
    return _dataset(native, "portolan simulate")


def read_map(path: str | os.PathLike[str], *, unit: str | None = None, cell_m: float | None = None) -> Any:
    """A map from a file of any kind that the command ``portolan`` reads."""
    native, said = _native.read_map(os.fspath(path), unit=unit, cell_m=cell_m)
    for line in said:
        warnings.warn(line, stacklevel=2)
    return _dataset(native, "portolan")


def write_map(drawn: Any, path: str | os.PathLike[str], *, force: bool = False) -> None:
    """Writes a map as the command does: .npz, .mat, .csv, .tif, .nc, .zarr, .geojson, .kmz or .png by the name."""
    native_map(drawn).write(os.fspath(path), force)


def sense(
    truth: Any,
    *,
    fraction: float | None = None,
    count: int | None = None,
    cells: Cells | None = None,
    lattice: int | None = None,
    path: Cells | None = None,
    every: int = 1,
    snr_db: float | None = None,
    gaps: float = 0.0,
    cover: float = 1.0,
    bits: int | None = None,
    edges: ArrayLike | str | None = None,
    sigma: float = 1.7,
    seed: int = 0,
) -> Readings:
    """Readings of a map at some of its cells: a tenth of them unless said otherwise.

    Give one of ``fraction``, ``count``, ``cells`` ((cell along x, cell along y), ..), ``lattice``
    (one every so many cells) and ``path`` (waypoints; one reading ``every`` so many cells). ``gaps``
    is the share of readings lost at random, ``cover`` the share of neighbouring bands that a sensor
    reads. With ``bits`` the sensors report levels; ``edges="authors"`` are those of the paper.
    """
    if isinstance(edges, str):
        if edges != "authors":
            raise ValueError(f"edges={edges!r}: give numbers or 'authors'")
        inner: list[float] | None = _native.authors_edges()
    else:
        inner = None if edges is None else [float(e) for e in as_floats(edges, "edges")]
    native = native_map(truth).sense(
        fraction=fraction,
        count=count,
        cells=None if cells is None else [(int(i), int(j)) for i, j in cells],
        lattice=lattice,
        path=None if path is None else [(int(i), int(j)) for i, j in path],
        every=every,
        snr_db=snr_db,
        gaps=gaps,
        cover=cover,
        bits=bits,
        edges=inner,
        sigma=sigma,
        seed=seed,
    )
    return Readings._of(native)


def score(
    estimate: Any, truth: Any, *, offset: float | None = None, readings: Readings | None = None
) -> dict[str, float | None]:
    """How close a map is to the truth: SSIM, errors, coverage of the 90 % interval.

    With ``readings`` also the coverage of the cells that they leave out.
    """
    told = None if readings is None else readings._native
    return native_map(estimate).score(native_map(truth), offset, told)


def native_map(drawn: Any) -> _native.NativeMap:
    """A Dataset as the native side holds it."""
    known = [name for name in ("power_dbm", "power_db") if name in getattr(drawn, "data_vars", ())]
    if not known:
        raise TypeError("a map is an xarray.Dataset with power_dbm or power_db over band, y, x")
    power = drawn[known[0]].transpose("band", "y", "x")
    unit = drawn.attrs.get("unit", "dbm" if known[0] == "power_dbm" else "db")
    x, y = np.asarray(drawn["x"], dtype=float), np.asarray(drawn["y"], dtype=float)
    spread = drawn["spread_db"].transpose("band", "y", "x") if "spread_db" in drawn else None
    labels = np.asarray(drawn["band"])
    names = [str(name) for name in labels] if labels.dtype.kind in "UOST" else None
    freq = [float(f) for f in np.asarray(drawn["frequency"])] if "frequency" in drawn.coords else None
    emitters = None
    if "emitter_x" in drawn:
        emitters = np.column_stack([drawn["emitter_x"], drawn["emitter_y"]]).astype(float)
    return _native.map_of(
        cells_first(power.to_numpy()),
        _grid(x, y, drawn.attrs.get("cell_m")),
        unit=unit,
        offset=drawn.attrs.get("offset"),
        spread_db=None if spread is None else cells_first(spread.to_numpy()),
        names=names,
        freq_hz=freq,
        emitters=emitters,
        crs=drawn.attrs.get("crs"),
    )


def _grid(x: Any, y: Any, cell_m: float | None) -> Grid:
    """The grid of evenly spaced, rising coordinates."""
    longer = x if len(x) >= len(y) else y
    if len(longer) == 1:
        if cell_m is None:
            raise ValueError("a map of one cell needs the attribute cell_m")
        size = float(cell_m)
    else:
        size = float(longer[-1] - longer[0]) / (len(longer) - 1)
    for name, values in (("x", x), ("y", y)):
        even = values[0] + size * np.arange(len(values))
        if not np.allclose(values, even, rtol=0, atol=1e-6 * size):
            raise ValueError(f"{name} must rise in even steps of the same size as the other axis")
    # The steps of coordinates that were computed are the size that was asked for, but for rounding.
    size = float(cell_m) if cell_m is not None and abs(size / cell_m - 1) < 1e-9 else size
    return len(x), len(y), size, float(x[0]), float(y[0])


def _dataset(native: _native.NativeMap, source: str) -> Any:
    layers = Layers.cells_last((native.db, native.spread_db))
    about = (native.unit, native.names, native.freq_hz)
    return dataset(layers, native.grid, *about, source, native.emitters, native.crs)


__all__ = ["read_map", "score", "sense", "simulate", "write_map"]
