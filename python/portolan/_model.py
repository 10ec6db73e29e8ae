"""Models: what a fit found. They predict anywhere."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from . import _native
from ._optional import needed
from ._readings import Floats, Readings, as_floats

Grid = tuple[int, int, float, float, float]
Tell = Callable[[float], Any]


class Model:
    """A fitted model; predicts power and spread at any place, draws maps, lists emitters."""

    def __init__(self, native: _native.NativeModel) -> None:
        self._native = native

    def predict(
        self, places: ArrayLike, *, return_std: bool = False, of_reading: bool = False
    ) -> Any:
        """Levels (places, bands) in decibels, and with ``return_std`` their standard deviation.

        The deviation is that of the field; with ``of_reading`` that of a reading taken there.
        """
        at = as_floats(places, "places")
        if at.ndim != 2:
            raise ValueError(f"places have shape {at.shape}: give (places, 2), x and y in metres")
        level, field, reading = self._native.predict(at)
        if not return_std:
            return level
        spread = reading if of_reading else field
        if spread is None:
            raise ValueError(f"{self.report['chosen']} knows no spread: kriging, field and auto do")
        return level, spread

    def map(
        self,
        cell_m: float | None = None,
        *,
        region: tuple[float, float, float, float] | None = None,
        grid: Grid | None = None,
    ) -> Any:
        """The map as an ``xarray.Dataset``: ``power_dbm`` and ``spread_db`` over band, y, x.

        ``region`` is (x low, y low, x high, y high) in metres, by default that of the sensors;
        ``grid`` says everything at once: cells along x and along y, metres per cell, x and y of the
        first centre.
        """
        xarray = needed("xarray", "xarray", "a map")
        rows, cols, size, x_low, y_low = self._grid(cell_m, region, grid)
        power, spread = self._native.map((rows, cols, size, x_low, y_low))
        unit, offset = self._native.unit
        decibels = {"dbm": "dBm", "db": "dB"}.get(unit, "dB")
        name = "power_dbm" if unit == "dbm" else "power_db"
        coords: dict[str, Any] = {
            "y": ("y", y_low + size * np.arange(cols), {"units": "m", "axis": "Y"}),
            "x": ("x", x_low + size * np.arange(rows), {"units": "m", "axis": "X"}),
        }
        names, freq = self._native.names, self._native.freq_hz
        if names is not None:
            coords["band"] = ("band", np.array(names))
        elif freq is None:
            coords["band"] = ("band", np.arange(self._native.bands))
        if freq is not None:
            about = {"units": "Hz", "long_name": "frequency"}
            coords["frequency"] = ("band", freq, about)
            coords.setdefault("band", ("band", np.arange(self._native.bands)))
        layers = {
            name: (
                ("band", "y", "x"),
                power.transpose(2, 1, 0),
                {"units": decibels, "long_name": "power"},
            )
        }
        if spread is not None:
            about = {"units": "dB", "long_name": "standard deviation of the power"}
            layers["spread_db"] = (("band", "y", "x"), spread.transpose(2, 1, 0), about)
        attributes: dict[str, Any] = {"Conventions": "CF-1.11", "source": f"portolan {self.report['chosen']}"}
        if offset is not None:
            attributes["offset"] = offset
        return xarray.Dataset(layers, coords=coords, attrs=attributes)

    def _grid(
        self,
        cell_m: float | None,
        region: tuple[float, float, float, float] | None,
        grid: Grid | None,
    ) -> Grid:
        if grid is not None:
            if cell_m is not None or region is not None:
                raise ValueError("grid says everything: leave out cell_m and region")
            return grid
        if cell_m is None and region is None:
            return self._native.default_grid()
        size = self._native.default_grid()[2] if cell_m is None else float(cell_m)
        if not (np.isfinite(size) and size > 0):
            raise ValueError(f"cell_m={cell_m}: metres per cell, above 0")
        x_low, y_low, x_high, y_high = self._native.region if region is None else region
        if not (x_low <= x_high and y_low <= y_high):
            raise ValueError("region: give x low, y low, x high, y high")
        steps = [int(np.floor((high - low) / size + 1e-9)) for low, high in ((x_low, x_high), (y_low, y_high))]
        return steps[0] + 1, steps[1] + 1, size, float(x_low), float(y_low)

    @property
    def emitters(self) -> Any:
        """The emitters told apart: a data frame where pandas is there, else a list of dictionaries."""
        rows = self._native.emitters
        try:
            import pandas
        except ImportError:
            return rows
        columns = ["x_m", "y_m", "x_se_m", "y_se_m", "exponent", "exponent_se", "power_share"]
        return pandas.DataFrame(rows, columns=columns)

    @property
    def report(self) -> dict[str, Any]:
        """What the fit says about itself: method, what was chosen and why, parameters, notes."""
        return self._native.report

    def write(self, path: str | os.PathLike[str], *, force: bool = False) -> None:
        """Writes the model (.npz); the command ``portolan predict`` reads it too."""
        self._native.write(os.fspath(path), force)

    def __repr__(self) -> str:
        return f"<portolan.Model: {self.report['chosen']}, {self._native.bands} bands>"

    def __reduce__(self) -> Any:
        return Model, (self._native,)


def read_model(path: str | os.PathLike[str]) -> Model:
    """A model from its file, written here or by ``portolan fit``."""
    return Model(_native.read_model(os.fspath(path)))


def _texts(options: dict[str, Any]) -> list[tuple[str, str]]:
    def text(value: Any) -> str:
        if isinstance(value, (bool, np.bool_)):
            return "true" if value else "false"
        return repr(float(value)) if isinstance(value, (float, np.floating)) else str(value)

    return [(name, text(value)) for name, value in options.items() if value is not None]


def _noted(model: Model, level: int) -> Model:
    for note in model.report["notes"]:
        warnings.warn(note, stacklevel=level + 1)
    return model


def fit(
    readings: Readings,
    method: str = "auto",
    *,
    emitters: int | None = None,
    grid: Grid | None = None,
    seed: int = 0,
    tell: Tell | None = None,
    **options: Any,
) -> Model:
    """Fits a method to readings. ``tell`` is called with the share done, now and then."""
    native = _native.fit(
        method,
        _texts(options),
        readings._native,
        emitters=emitters,
        seed=seed,
        grid=grid,
        tell=tell,
    )
    return Model(native)


def fit_many(
    many: Iterable[Readings],
    method: str = "auto",
    *,
    emitters: int | None = None,
    grid: Grid | None = None,
    seed: int = 0,
    tell: Tell | None = None,
    **options: Any,
) -> list[Model]:
    """Fits a method to many sets of readings, on all cores."""
    natives = _native.fit_many(
        method,
        _texts(options),
        [readings._native for readings in many],
        emitters=emitters,
        seed=seed,
        grid=grid,
        tell=tell,
    )
    return [Model(native) for native in natives]


__all__ = ["Floats", "Grid", "Model", "fit", "fit_many", "read_model"]
