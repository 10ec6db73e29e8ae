"""Surveys beyond one fit: overlapping tiles fitted apart, joined without seams.

The survey is halved along its longer side, and again, until a tile holds few enough sensors. A tile
is fitted to its own sensors and to those around it. Beside a border the models of both sides are
mixed: each weighs less the farther a place lies outside its tile, by a curve without a kink, and the
weights sum to one.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from . import _native
from ._cluster import gathered
from ._grids import Grid, Layers, Region
from ._model import Drawable, Model, Prediction, as_texts
from ._progress import Tell, bar
from ._readings import Floats, Readings, as_floats
from ._transmitters import Transmitters, known_to

#: Sensors within reach of a border: as many as kriging looks at from a place.
NEIGHBOURS = 128


@dataclass(frozen=True)
class Tile:
    """A model and the part of the survey that it speaks for.

    ``low`` and ``high`` are corners in metres, infinite where the survey ends; ``reach`` is how far
    beyond them the model has a say.
    """

    low: tuple[float, float]
    high: tuple[float, float]
    reach: float
    model: Model

    def weight(self, at: Floats) -> Floats:
        """1 well inside, 0 from ``reach`` outside, half on the border."""
        total = np.ones(len(at))
        for axis in range(2):
            inside = np.minimum(at[:, axis] - self.low[axis], self.high[axis] - at[:, axis])
            share = np.clip(0.5 + 0.5 * inside / self.reach, 0.0, 1.0)
            total *= share * share * (3.0 - 2.0 * share)
        return total

    def touches(self, region: Region) -> bool:
        x_low, y_low, x_high, y_high = region
        apart = (
            x_high < self.low[0] - self.reach
            or x_low > self.high[0] + self.reach
            or y_high < self.low[1] - self.reach
            or y_low > self.high[1] + self.reach
        )
        return not apart


class TiledModel(Drawable):
    """Models of overlapping tiles that answer as one."""

    def __init__(
        self, tiles: Sequence[Tile], around: Region, grid: Grid | None = None, heard: bool | None = None
    ) -> None:
        self.tiles = list(tiles)
        first = self.tiles[0].model
        self._around, self._given_grid = around, grid
        self._unit, self._names, self._freq_hz = first._unit, first._names, first._freq_hz
        self._crs = first._crs
        self._bands = first._bands
        self._source = f"{first._source}, {len(self.tiles)} tiles"
        self._gives_spread = all(tile.model._gives_spread for tile in self.tiles)
        # Some tiles of a survey with silent places may have none: everything is heard there.
        self._gives_heard = (
            any(tile.model._gives_heard for tile in self.tiles) if heard is None else heard
        )

    def prediction(self, places: ArrayLike) -> Prediction:
        """As :meth:`Model.prediction`."""
        at = as_floats(places, "places")
        if at.ndim != 2 or at.shape[1] != 2:
            raise ValueError(f"places have shape {at.shape}: give (places, 2), x and y in metres")
        if not np.isfinite(at).all():
            raise ValueError("places hold NaN or infinity")
        # Levels and chances are mixed as they are, deviations as variances.
        mixed = {"level": False}
        if self._gives_spread:
            mixed |= {"spread_db": True, "reading_spread_db": True}
        if self._gives_heard:
            mixed |= {"chance_heard": False, "heard": False}
        sums = {name: np.zeros((len(at), self._bands)) for name in mixed}
        total = np.zeros(len(at))
        for tile in self.tiles:
            weight = tile.weight(at)
            here = np.flatnonzero(weight)
            if not len(here):
                continue
            found = tile.model.prediction(at[here])
            for name, squared in mixed.items():
                values = getattr(found, name)
                if values is None:
                    values = np.ones_like(found.level) if name == "chance_heard" else found.level
                sums[name][here] += weight[here, None] * (values**2 if squared else values)
            total[here] += weight[here]
        means = {name: values / total[:, None] for name, values in sums.items()}
        return Prediction(**{name: np.sqrt(mean) if mixed[name] else mean for name, mean in means.items()})

    def __repr__(self) -> str:
        return f"<portolan.TiledModel: {self._source}, {self._bands} bands>"

    def _default_grid(self) -> Grid:
        if self._given_grid is not None:
            return self._given_grid
        # As many cells as a tile's own map has, over the whole survey.
        size = min(tile.model._default_grid()[2] for tile in self.tiles)
        x_low, y_low, x_high, y_high = self._around
        cells = [int((high - low) / size + 1e-9) + 1 for low, high in ((x_low, x_high), (y_low, y_high))]
        return cells[0], cells[1], size, x_low, y_low

    def _region(self) -> Region:
        return self._around

    def _parts(self, grid: Grid) -> tuple[Callable[[list[Any]], Drawable], list[Any]]:
        return partial(_joined, self._gives_heard), [tile for tile in self.tiles if tile.touches(_corners(grid))]

    def _layers(self, grid: Grid) -> Layers:
        along_x, along_y, size, x_low, y_low = grid
        x, y = x_low + size * np.arange(along_x), y_low + size * np.arange(along_y)
        at = np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)
        found = self.prediction(at)

        def shaped(values: Floats | None) -> Floats | None:
            return None if values is None else values.T.reshape(self._bands, along_y, along_x)

        return Layers(*map(shaped, (found.level, found.spread_db, found.chance_heard, found.heard)))


def _joined(heard: bool, tiles: list[Any]) -> Drawable:
    return TiledModel(tiles, (0.0, 0.0, 0.0, 0.0), heard=heard)


def _corners(grid: Grid) -> Region:
    along_x, along_y, size, x_low, y_low = grid
    return x_low, y_low, x_low + size * (along_x - 1), y_low + size * (along_y - 1)


@dataclass(frozen=True)
class _Cut:
    """Sensors of a tile before it is fitted."""

    low: tuple[float, float]
    high: tuple[float, float]
    reach: float
    sensors: Any


def _cut(places: Floats, most: int) -> list[_Cut]:
    """Halves the survey until no part holds more than ``most`` sensors."""
    cuts = []
    pending = [((-np.inf, -np.inf), (np.inf, np.inf), np.arange(len(places)))]
    while pending:
        low, high, inside = pending.pop()
        own = places[inside]
        side = own.max(axis=0) - own.min(axis=0)
        axis = int(np.argmax(side))
        if len(inside) > most and side[axis] > 0:
            border = float(np.median(own[:, axis]))
            below = own[:, axis] < border
            if not below.any():
                below = own[:, axis] <= border
            if below.any() and not below.all():
                # Between the two nearest sensors, so that none lies on the border.
                border = 0.5 * (own[below, axis].max() + own[~below, axis].min())
                far = (high[0], border) if axis else (border, high[1])
                near = (low[0], border) if axis else (border, low[1])
                pending.append((low, far, inside[below]))
                pending.append((near, high, inside[~below]))
                continue
        # How far the nearest neighbours reach where sensors are as dense as in this tile.
        area = max(side[0], 1e-3 * side.max()) * max(side[1], 1e-3 * side.max())
        reach = float(np.sqrt(NEIGHBOURS * area / (np.pi * len(inside))))
        cuts.append(_Cut(low, high, max(reach, 1e-6), inside))
    if len(cuts) == 1:
        return [_Cut(cuts[0].low, cuts[0].high, 1.0, np.arange(len(places)))]
    # A model sees twice as far as it has a say, so that places at the end of its say are not at the
    # end of its readings.
    widened = []
    for cut in cuts:
        beyond = np.array([cut.low, cut.high]) + 2 * cut.reach * np.array([[-1.0], [1.0]])
        seen = np.flatnonzero(((places >= beyond[0]) & (places <= beyond[1])).all(axis=1))
        widened.append(_Cut(cut.low, cut.high, cut.reach, seen))
    return widened


def fit_tiled(
    readings: Readings,
    method: str = "kriging",
    *,
    sensors: int = 5000,
    emitters: int | None = None,
    seed: int = 0,
    transmitters: Transmitters = None,
    threads: int | None = None,
    client: Any = None,
    tell: Tell | None = None,
    **options: Any,
) -> TiledModel:
    """Fits a method to a survey of any size, tile by tile of about ``sensors`` sensors.

    Tiles are fitted on ``threads`` cores (all by default), or on the workers of a Dask ``client``.
    ``transmitters`` are as in :func:`fit`.
    """
    if sensors < 2 * NEIGHBOURS:
        raise ValueError(f"sensors={sensors}: a tile takes {2 * NEIGHBOURS} or more")
    places = readings.places
    cuts = _cut(places, sensors)
    known = known_to(readings, transmitters, [method])
    settings: dict[str, Any] = {"emitters": emitters, "seed": seed, "grid": None}
    texts = as_texts(options)
    many = [readings[cut.sensors] for cut in cuts]
    if client is None:
        with bar(method, tell) as hears:
            natives = _native.fit_many(
                method,
                texts,
                [part._native for part in many],
                transmitters=None if known is None else [known] * len(many),
                threads=threads,
                tell=hears,
                **settings,
            )
        models = [Model(native) for native in natives]
    else:
        # One task a tile: a part of a survey travels to one worker and comes back as a model.
        settings |= {"transmitters": None if known is None else [known]}
        futures = client.map(
            _fit_tile, many, method=method, options=texts, settings={**settings, "threads": threads or 1}, pure=False
        )
        models = gathered(client, futures, method, tell)
    for note in {note for model in models for note in model.report["notes"]}:
        warnings.warn(note, stacklevel=2)
    tiles = [Tile(cut.low, cut.high, cut.reach, model) for cut, model in zip(cuts, models)]
    low, high = places.min(axis=0), places.max(axis=0)
    around = (float(low[0]), float(low[1]), float(high[0]), float(high[1]))
    return TiledModel(tiles, around, readings._native.grid)


def _fit_tile(part: Readings, *, method: str, options: list[tuple[str, str]], settings: dict[str, Any]) -> Model:
    return Model(_native.fit_many(method, options, [part._native], **settings)[0])


__all__ = ["Tile", "TiledModel", "fit_tiled"]
