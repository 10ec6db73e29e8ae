"""How well methods do: on held-out sensors, on simulated maps; and where to measure next."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from . import _native
from ._grids import Grid, Region, grid_of
from ._model import Model, as_texts, table
from ._progress import Tell, bar
from ._readings import Readings, as_floats
from ._obstacles import Walls, obstacles_to
from ._transmitters import Transmitters, known_to

Method = str | tuple[str, dict[str, Any]]


def _call(method: Method) -> tuple[str, str, list[tuple[str, str]]]:
    """Label, name and options of "kriging", "kriging:trend=linear" or ("kriging", {..})."""
    if isinstance(method, str):
        name, *settings = method.split(":")
        options = []
        for setting in settings:
            key, equals, value = setting.partition("=")
            if not equals:
                raise ValueError(f"{method!r}: options are written name=value")
            options.append((key, value))
        return method, name, options
    name, given = method
    options = as_texts(given)
    return ":".join([name, *(f"{key}={value}" for key, value in options)]), name, options


def validate(
    readings: Readings,
    methods: Sequence[Method] = ("kriging", "field", "auto"),
    *,
    split: str = "random",
    folds: int = 5,
    emitters: int | None = None,
    seed: int = 0,
    transmitters: Transmitters = None,
    walls: Walls = None,
    floor_height: float | None = None,
    accept: bool = False,
    tell: Tell | None = None,
) -> Any:
    """Cross-validates methods on a survey's own sensors.

    ``split`` is "random" (how well gaps are filled) or "blocks" (how well places far from any
    sensor are predicted). A row for each method, as ``portolan validate --json`` gives them: a data
    frame where pandas is there. A method that fails has a row that says why. ``transmitters``,
    ``walls``, ``floor_height`` and ``accept`` are as in :func:`fit`; methods that make no use of them do not look
    at them.
    """
    dealt = _native.folds(readings.places, folds, split, seed)
    if len(dealt) < 2:
        raise ValueError(f"{len(readings)} sensors cannot be split in parts")
    calls = [_call(method) for method in methods]
    known = known_to(readings, transmitters, [name for _, name, _ in calls])
    between = obstacles_to(readings, walls, floor_height, accept=accept)
    rows = []
    for label, name, options in calls:
        row: dict[str, Any] = {"method": label}
        try:
            with bar(label, tell) as hears:
                row |= _native.validate(
                    name,
                    options,
                    readings._native,
                    dealt,
                    emitters=emitters,
                    seed=seed,
                    transmitters=known,
                    obstacles=between,
                    tell=hears,
                )
            row["failed"] = None
        except ValueError as error:
            if name not in {method[0] for method in _native.methods()}:
                raise
            row["failed"] = str(error)
        rows.append(row)
    columns = ["method", "rmse_db", "mae_db", "median_abs_db", "coverage_90", "entries", "seconds"]
    return table(rows, [*columns, "predict_seconds", "failed"])


def advise(
    model: Model,
    count: int = 5,
    *,
    cell_m: float | None = None,
    region: Region | None = None,
    grid: Grid | None = None,
    leave_out: Sequence[Region] = (),
    tell: Tell | None = None,
) -> Any:
    """Places for new sensors, best first: place and share of the variance removed.

    ``leave_out`` lists regions (x low, y low, x high, y high) where none can stand.
    """
    asked = grid_of(model._default_grid(), model._region(), cell_m, region, grid)
    with bar("advising", tell) as hears:
        rows = _native.advise(model._native, asked, count, [tuple(map(float, r)) for r in leave_out], hears)
    return table(rows, ["rank", "x_m", "y_m", "reduction_percent", "reduction_db2"])


def study(
    methods: Sequence[Method],
    *,
    maps: int = 20,
    seed: int = 0,
    shape: tuple[int, int] = (64, 64),
    bands: int = 64,
    emitters: int = 4,
    shadow_db: float = 6.0,
    decorrelation_m: float = 90.0,
    psd: str = "gaussian",
    assumed: int | str | None = None,
    fraction: float | None = None,
    count: int | None = None,
    snr_db: float | None = None,
    gaps: float = 0.0,
    cover: float = 1.0,
    bits: int | None = None,
    sigma: float = 1.7,
    tell: Tell | None = None,
) -> Any:
    """Methods over many simulated maps: mean scores and their standard errors, as ``portolan study``.

    ``assumed`` is the number of emitters that methods are given: the true one by default, "auto" for
    none. ``place_m`` is the median distance of emitters from where a method found them,
    ``count_right`` the share of maps whose number of emitters it found, ``share`` how far it comes
    from the better of "thin_plate" and "kriging" to "oracle", where these are compared too.
    """
    if maps < 1:
        raise ValueError(f"maps={maps}: 1 or more")
    known = None if assumed == "auto" else emitters if assumed is None else int(assumed)
    with bar("study", tell) as hears:
        rows = _native.study(
            [_call(method) for method in methods],
            (int(shape[0]), int(shape[1]), 1.0, 0.0, 0.0),
            bands=bands,
            emitters=emitters,
            shadow_db=shadow_db,
            decorrelation_m=decorrelation_m,
            psd=psd,
            assumed=known,
            fraction=fraction,
            count=count,
            snr_db=snr_db,
            gaps=gaps,
            cover=cover,
            bits=bits,
            sigma=sigma,
            maps=maps,
            seed=seed,
            tell=hears,
        )
    return table(rows)


class SpatialFold:
    """Splits places into folds for ``cross_val_score`` and ``GridSearchCV``, as ``validate`` does.

    ``split="blocks"`` holds out whole boxes of the survey: neighbours of a held-out sensor are held
    out too.
    """

    def __init__(self, n_splits: int = 5, *, split: str = "blocks", random_state: int | None = None) -> None:
        self.n_splits = n_splits
        self.split_by = split
        self.random_state = random_state

    def split(self, X: Any, y: Any = None, groups: Any = None) -> Iterator[tuple[Any, Any]]:
        """Numbers of the sensors to fit to and of those held out, fold by fold."""
        at = as_floats(X, "X")
        dealt = _native.folds(at, self.n_splits, self.split_by, self.random_state or 0)
        for held in dealt:
            kept = np.ones(len(at), dtype=bool)
            kept[held] = False
            yield np.flatnonzero(kept), np.array(held)

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """How many folds there are."""
        return self.n_splits


__all__ = ["SpatialFold", "advise", "study", "validate"]
