"""Grids, and what is drawn on them as ``xarray`` holds it."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from . import _native
from ._optional import needed
from ._readings import Floats

Grid = tuple[int, int, float, float, float]
Region = tuple[float, float, float, float]


class Layers(NamedTuple):
    """Layers over band, y, x: power in decibels; where they are known its standard deviation, the
    chance that a receiver hears the band, and the decibels that it reports where it does."""

    power: Any
    spread: Any = None
    chance_heard: Any = None
    heard: Any = None

    @classmethod
    def cells_last(cls, layers: tuple[Any, ...]) -> Layers:
        """Of native layers, whose bands come last."""
        return cls(*(None if layer is None else bands_first(layer) for layer in layers))


def grid_of(default: Grid, around: Region, cell_m: float | None, region: Region | None, grid: Grid | None) -> Grid:
    """The grid that a user asks for: nothing, a cell size, a region, or everything."""
    if grid is not None:
        if cell_m is not None or region is not None:
            raise ValueError("grid says everything: leave out cell_m and region")
        return grid
    if cell_m is None and region is None:
        return default
    size = default[2] if cell_m is None else float(cell_m)
    if not (np.isfinite(size) and size > 0):
        raise ValueError(f"cell_m={cell_m}: metres per cell, above 0")
    x_low, y_low, x_high, y_high = around if region is None else region
    if not (x_low <= x_high and y_low <= y_high):
        raise ValueError("region: give x low, y low, x high, y high")
    along_x, along_y = (
        int(np.floor((high - low) / size + 1e-9)) + 1 for low, high in ((x_low, x_high), (y_low, y_high))
    )
    return along_x, along_y, size, float(x_low), float(y_low)


def dataset(
    layers: Layers,
    grid: Grid,
    unit: tuple[str, float | None],
    names: list[str] | None,
    freq_hz: Floats | None,
    source: str,
    emitters: Floats | None = None,
    crs: str | None = None,
) -> Any:
    """Layers over band, y, x as an ``xarray.Dataset`` with CF attributes."""
    xarray = needed("xarray", "xarray", "a map")
    along_x, along_y, size, x_low, y_low = grid
    (kind, offset), power = unit, layers.power

    def axis(name: str, low: float, cells: int) -> Any:
        about = {
            "units": "m",
            "axis": name.upper(),
            "standard_name": f"projection_{name}_coordinate",
            "long_name": name,
        }
        return name, low + size * np.arange(cells), about

    coords: dict[str, Any] = {
        "band": ("band", np.arange(power.shape[0]) if names is None else np.array(names)),
        "y": axis("y", y_low, along_y),
        "x": axis("x", x_low, along_x),
    }
    if freq_hz is not None:
        coords["frequency"] = ("band", freq_hz, {"units": "Hz", "long_name": "frequency"})
    decibels, level = ("dBm", "dbm") if kind == "dbm" else ("dB", "db")
    described = [
        (f"power_{level}", power, decibels, "power"),
        ("spread_db", layers.spread, "dB", "spread"),
        ("chance_heard", layers.chance_heard, "1", "chance that a receiver hears the band"),
        (f"heard_{level}", layers.heard, decibels, "power that a receiver reports where it hears the band"),
    ]
    variables: dict[str, Any] = {
        name: (("band", "y", "x"), layer, {"units": units, "long_name": about})
        for name, layer, units, about in described
        if layer is not None
    }
    if emitters is not None:
        for column, name in enumerate(("emitter_x", "emitter_y")):
            variables[name] = ("emitter", emitters[:, column], {"units": "m"})
    # The unit of the map and the size of a cell travel with it: an axis of one cell has no size.
    attributes: dict[str, Any] = {"Conventions": "CF-1.11", "source": source, "unit": kind, "cell_m": size}
    if offset is not None:
        attributes["offset"] = offset
    if crs is not None:
        # As rioxarray and CF want it: a scalar that says where on Earth, named by every layer.
        text = _native.well_known_text(crs)
        coords["spatial_ref"] = ((), 0, {"crs_wkt": text, "spatial_ref": text})
        attributes["crs"] = crs
        for _, _, about in (variables[name] for name in variables if not name.startswith("emitter")):
            about["grid_mapping"] = "spatial_ref"
    return xarray.Dataset(variables, coords=coords, attrs=attributes)


def cells_first(layer: NDArray[Any]) -> Floats:
    """(band, y, x) to (x, y, band), as the native side counts: rows run along x."""
    return np.asarray(layer, dtype=np.float64).transpose(2, 1, 0)


def bands_first(layer: NDArray[Any]) -> NDArray[Any]:
    """(x, y, band) to (band, y, x)."""
    return layer.transpose(2, 1, 0)
