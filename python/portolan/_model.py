"""Models: the results of fits. They predict anywhere."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from . import _native
from ._cluster import fit_on_cluster, lazy_layers
from ._grids import Grid, Layers, Region, dataset, grid_of
from ._progress import Tell, bar
from ._readings import Floats, Readings, as_floats
from ._obstacles import Walls, obstacles_to
from ._transmitters import Transmitters, known_to


@dataclass(frozen=True)
class Prediction:
    """All that a model says about places: arrays (places, bands), None where it does not know.

    ``level`` is the field in decibels and ``spread_db`` its standard deviation; ``reading_spread_db``
    is that of a reading taken there. Where readings said what was not heard, ``chance_heard`` is the
    chance that a receiver hears the band, ``heard`` the level that it reports where it does, and
    ``reading_spread_db`` the deviation of that report.
    """

    level: Floats
    spread_db: Floats | None = None
    reading_spread_db: Floats | None = None
    chance_heard: Floats | None = None
    heard: Floats | None = None


class Drawable:
    """What draws maps: a model, or several that are joined."""

    _unit: tuple[str, float | None]
    _names: list[str] | None
    _freq_hz: Floats | None
    _crs: str | None
    _bands: int
    _source: str
    _gives_spread: bool
    _gives_heard: bool

    def prediction(self, places: ArrayLike) -> Prediction:
        """All that is known about places, what is heard there too."""
        raise NotImplementedError

    def predict(
        self, places: ArrayLike, *, return_std: bool = False, of_reading: bool = False
    ) -> Any:
        """Levels (places, bands) in decibels, and with ``return_std`` their standard deviation.

        They are those of the field; with ``of_reading`` those of a reading taken there, which is what
        a receiver reports where it hears the band (:meth:`prediction` has the chance of that).
        """
        return self._told(self.prediction(places), return_std, of_reading)

    def _told(self, found: Prediction, return_std: bool, of_reading: bool) -> Any:
        level = found.heard if of_reading and found.heard is not None else found.level
        if not return_std:
            return level
        spread = found.reading_spread_db if of_reading else found.spread_db
        if spread is None:
            raise ValueError(f"{self._chosen} knows no spread: kriging, field and auto do")
        return level, spread

    @property
    def _chosen(self) -> str:
        return self._source

    def _default_grid(self) -> Grid:
        raise NotImplementedError

    def _region(self) -> Region:
        raise NotImplementedError

    def _layers(self, grid: Grid) -> Layers:
        """Power, and what else is known, over band, y, x."""
        raise NotImplementedError

    def _parts(self, grid: Grid) -> tuple[Callable[[list[Any]], Drawable], list[Any]]:
        """What is needed to draw a grid, and what makes something to draw with of it."""
        return _alone, [self]

    def map(
        self,
        cell_m: float | None = None,
        *,
        region: Region | None = None,
        grid: Grid | None = None,
        chunks: int | tuple[int, int] | None = None,
        dtype: Any = None,
    ) -> Any:
        """The map as an ``xarray.Dataset``: ``power_dbm`` and ``spread_db`` over band, y, x.

        Where readings said what was not heard, ``chance_heard`` and ``heard_dbm`` too.
        ``region`` is (x low, y low, x high, y high) in metres, by default that of the sensors;
        ``grid`` says everything at once: cells along x and along y, metres per cell, x and y of the
        first centre. With ``chunks`` (cells along y and x of a block, or one number) the layers are
        Dask arrays of float32: nothing is computed until they are asked for, and blocks are
        predicted wherever Dask runs them.
        """
        asked = grid_of(self._default_grid(), self._region(), cell_m, region, grid)
        if chunks is None:
            layers = self._layers(asked)
            if dtype is not None:
                layers = Layers(*(None if a is None else a.astype(dtype) for a in layers))
        else:
            block = (chunks, chunks) if isinstance(chunks, int) else (int(chunks[0]), int(chunks[1]))
            if min(block) < 1:
                raise ValueError(f"chunks={chunks}: cells along y and x of a block, 1 or more")
            layers = lazy_layers(self, asked, block, np.dtype(np.float32 if dtype is None else dtype))
        return dataset(
            layers, asked, self._unit, self._names, self._freq_hz, self._source, crs=self._crs
        )


def _alone(parts: list[Any]) -> Drawable:
    only: Drawable = parts[0]
    return only


class Model(Drawable):
    """A fitted model; predicts power and spread at any place, draws maps, lists emitters."""

    def __init__(self, native: _native.NativeModel) -> None:
        self._native = native

    def prediction(self, places: ArrayLike) -> Prediction:
        """All that the model says about places, what is heard there too."""
        at = as_floats(places, "places")
        if at.ndim != 2:
            raise ValueError(f"places have shape {at.shape}: give (places, 2), x and y in metres, or (places, 3), z too")
        return Prediction(*self._native.predict(at))

    def predict(
        self,
        places: ArrayLike,
        *,
        return_std: bool = False,
        of_reading: bool = False,
        time: Any = None,
    ) -> Any:
        """Levels (places, bands) in decibels, and with ``return_std`` their standard deviation.

        ``time`` is a moment, or one for each place: seconds since 1970, or dates and times that know
        their zone. Without it places are asked about at the moment of the latest reading.
        """
        if time is None:
            return super().predict(places, return_std=return_std, of_reading=of_reading)
        if np.ndim(time) == 0:
            return self.at(time).predict(places, return_std=return_std, of_reading=of_reading)
        at = as_floats(places, "places")
        moments = [seconds(moment) for moment in time]
        found = Prediction(*self._native.predict_at_times(at, moments))
        return self._told(found, return_std, of_reading)

    def at(self, time: Any) -> Model:
        """The model at a moment: it predicts and draws as any other.

        ``time`` is in seconds since 1970, or a date and time that knows its zone.
        """
        return Model(self._native.at_time(seconds(time)))

    @property
    def time_span(self) -> tuple[float, float] | None:
        """The first and the last moment of its readings, in seconds since 1970."""
        return self._native.time_span

    def changes(self, readings: Readings, rate: float = 0.05) -> Any:
        """What new readings show to have changed, for every band.

        ``rate`` is the share of the bands called changed that may be so by chance. A data frame where
        pandas is there, else a list of dictionaries.
        """
        columns = ["band", "readings", "level_db", "level_z", "shape_p", "kind"]
        found = self._native.changes(readings._native, rate)
        return table([dict(zip(columns, row)) for row in found], columns)

    @property
    def emitters(self) -> Any:
        """The emitters told apart: a data frame where pandas is there, else a list of dictionaries."""
        rows = self._native.emitters
        columns = ["x_m", "y_m", "x_se_m", "y_se_m", "exponent", "exponent_se", "power_share"]
        return table(rows, columns)

    @property
    def report(self) -> dict[str, Any]:
        """What the fit says about itself: method, what was chosen and why, parameters, notes."""
        return self._native.report

    def update(self, readings: Readings) -> None:
        """Adds readings of the same bands; the law is not refitted.

        Then the model predicts what all readings say under it, whichever came first. Kriging,
        ``field`` with independent bands, and the interpolators take further readings.
        """
        self._native = self._native.updated(readings._native)

    def write(self, path: str | os.PathLike[str], *, force: bool = False) -> None:
        """Writes the model (.npz); the command ``portolan predict`` reads it too."""
        self._native.write(os.fspath(path), force)

    def __repr__(self) -> str:
        return f"<portolan.Model: {self.report['chosen']}, {self._native.bands} bands>"

    def __reduce__(self) -> Any:
        return Model, (self._native,)

    @property
    def crs(self) -> str | None:
        """Where on Earth the metres are counted, such as "EPSG:32632"; None where unknown."""
        return self._native.crs

    @property
    def _crs(self) -> str | None:  # type: ignore[override]
        return self._native.crs

    @property
    def _unit(self) -> tuple[str, float | None]:  # type: ignore[override]
        return self._native.unit

    @property
    def _names(self) -> list[str] | None:  # type: ignore[override]
        return self._native.names

    @property
    def _freq_hz(self) -> Floats | None:  # type: ignore[override]
        return self._native.freq_hz

    @property
    def _bands(self) -> int:  # type: ignore[override]
        return self._native.bands

    @property
    def _source(self) -> str:  # type: ignore[override]
        return f"portolan {self.report['chosen']}"

    @property
    def _chosen(self) -> str:
        chosen: str = self.report["chosen"]
        return chosen

    @property
    def _gives_spread(self) -> bool:  # type: ignore[override]
        return self._native.gives_spread

    @property
    def _gives_heard(self) -> bool:  # type: ignore[override]
        return self._native.gives_heard

    def _default_grid(self) -> Grid:
        return self._native.default_grid()

    def _region(self) -> Region:
        return self._native.region

    def _layers(self, grid: Grid) -> Layers:
        return Layers.cells_last(self._native.map(grid))


def read_model(path: str | os.PathLike[str]) -> Model:
    """A model from its file, written here or by ``portolan fit``."""
    return Model(_native.read_model(os.fspath(path)))


def seconds(moment: Any) -> float:
    """A moment in seconds since 1970: a number, or a date and time that knows its zone."""
    if isinstance(moment, str):
        moment = datetime.fromisoformat(moment.replace("Z", "+00:00"))
    if isinstance(moment, datetime):
        if moment.tzinfo is None:
            raise ValueError(f"{moment} has no zone: give one, such as tzinfo=timezone.utc")
        return moment.timestamp()
    if isinstance(moment, np.datetime64):
        # NumPy's times are those of UTC.
        return float((moment - np.datetime64(0, "s")) / np.timedelta64(1, "s"))
    return float(moment)


def table(rows: list[dict[str, Any]], columns: list[str] | None = None) -> Any:
    """Rows as a data frame where pandas is there."""
    try:
        import pandas
    except ImportError:
        return rows
    return pandas.DataFrame(rows, columns=columns)


def as_texts(options: dict[str, Any]) -> list[tuple[str, str]]:
    """Options as the register takes them; None is the method's own default."""

    def text(value: Any) -> str:
        if isinstance(value, (bool, np.bool_)):
            return "true" if value else "false"
        return repr(float(value)) if isinstance(value, (float, np.floating)) else str(value)

    return [(name, text(value)) for name, value in options.items() if value is not None]


def fit(
    readings: Readings,
    method: str = "auto",
    *,
    emitters: int | None = None,
    grid: Grid | None = None,
    seed: int = 0,
    transmitters: Transmitters = None,
    walls: Walls = None,
    floor_height: float | None = None,
    accept: bool = False,
    tell: Tell | None = None,
    **options: Any,
) -> Model:
    """Fits a method to readings.

    ``transmitters`` are those whose places are known, for ``field`` and ``auto``: a path to a table
    (.csv) of ``x_m``, ``y_m`` (or ``lat``, ``lon``) and, where known, ``band``, ``power_dbm`` and
    ``z_m``; the same columns as a data frame, a dictionary or a list of dictionaries; or places
    (n, 2) in metres, for all bands.
    ``walls`` are those of a plan, for the same methods: a path (.csv, .geojson), GeoJSON, a
    GeoDataFrame, or a table of ``x1_m``, ``y1_m``, ``x2_m``, ``y2_m`` and, where known, ``material``
    and ``floor``. With ``floor_height``, metres from floor to floor, floors between a transmitter and
    a place are counted. ``Model.report["columns"]`` says what each of them takes. ``accept`` takes a
    plan that lies far from the readings or is tiny beside them.
    ``tell`` is called with the share done, now and then; without it a bar is shown where tqdm is
    there and the output is a terminal.
    """
    known = known_to(readings, transmitters, [method])
    with bar(method, tell) as hears:
        native = _native.fit(
            method,
            as_texts(options),
            readings._native,
            emitters=emitters,
            seed=seed,
            grid=grid,
            transmitters=known,
            obstacles=obstacles_to(readings, walls, floor_height, accept=accept),
            tell=hears,
        )
    model = Model(native)
    for note in model.report["notes"]:
        warnings.warn(note, stacklevel=2)
    return model


def fit_many(
    many: Iterable[Readings],
    method: str = "auto",
    *,
    emitters: int | None = None,
    grid: Grid | None = None,
    seed: int = 0,
    transmitters: Transmitters = None,
    threads: int | None = None,
    device: str = "cpu",
    client: Any = None,
    tell: Tell | None = None,
    **options: Any,
) -> list[Model]:
    """Fits a method to many sets of readings: on ``threads`` cores (all by default), or on the
    workers of a Dask ``client``. The models come in the order of the readings. ``transmitters`` are
    as in :func:`fit`, the same for all. With ``device="cuda"`` the fits of ``unn`` run together on
    the first CUDA device; "auto" takes it where there is one."""
    many = list(many)
    known = None
    if transmitters is not None:
        known = [known_to(readings, transmitters, [method]) or [] for readings in many]
    settings: dict[str, Any] = {"emitters": emitters, "seed": seed, "grid": grid, "transmitters": known}
    texts = as_texts(options)
    if threads is not None and threads < 1:
        raise ValueError(f"threads={threads}: 1 or more")
    settings["device"] = device
    if client is not None:
        return fit_on_cluster(client, many, method, texts, {**settings, "threads": threads}, tell)
    with bar(method, tell) as hears:
        natives = _native.fit_many(
            method,
            texts,
            [readings._native for readings in many],
            threads=threads,
            tell=hears,
            **settings,
        )
    return [Model(native) for native in natives]


__all__ = ["Drawable", "Floats", "Grid", "Model", "Prediction", "fit", "fit_many", "read_model"]
