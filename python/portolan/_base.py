"""The base of all estimators: the scikit-learn API, with or without scikit-learn."""

from __future__ import annotations

import inspect
import warnings
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from . import _native
from ._grids import Grid
from ._model import Model, as_texts
from ._readings import Readings, as_floats
from ._space import SpaceModel, fit_space
from ._transmitters import Transmitters, known_to

Option = float | int | str | bool | None
Self = TypeVar("Self", bound="Estimator")

try:
    from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
    from sklearn.exceptions import NotFittedError
    from sklearn.utils.validation import validate_data

    HAS_SKLEARN = True
except ImportError:
    HAS_SKLEARN = False

    class NotFittedError(ValueError, AttributeError):  # type: ignore[no-redef]
        """The estimator was asked before it was fitted."""

    class MultiOutputMixin:  # type: ignore[no-redef]
        """Stands in for scikit-learn's."""

    class RegressorMixin:  # type: ignore[no-redef]
        """Stands in for scikit-learn's: the coefficient of determination."""

        def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
            found, known = self.predict(X), np.asarray(y, dtype=float)  # type: ignore[attr-defined]
            weight = np.ones(len(known)) if sample_weight is None else np.asarray(sample_weight)
            weight = weight.reshape(-1, *[1] * (known.ndim - 1))
            mean = (weight * known).sum(axis=0) / weight.sum(axis=0)
            missed = (weight * (known - found) ** 2).sum(axis=0)
            total = (weight * (known - mean) ** 2).sum(axis=0)
            return float(np.mean(1 - missed / total))

    class BaseEstimator:  # type: ignore[no-redef]
        """Stands in for scikit-learn's: parameters by the signature of ``__init__``."""

        def get_params(self, deep: bool = True) -> dict[str, Any]:
            names = inspect.signature(type(self)).parameters
            return {name: getattr(self, name) for name in names}

        def set_params(self, **params: Any) -> Any:
            known = self.get_params()
            for name, value in params.items():
                if name not in known:
                    raise ValueError(f"no parameter {name!r}: there are {', '.join(known)}")
                setattr(self, name, value)
            return self


class Estimator(MultiOutputMixin, RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """A method with its options: ``fit(X, y)``, ``predict(X)``.

    X holds places in metres, (n, 2) (nearest, inverse distances, thin plates and kriging take any
    number of coordinates); y levels in dBm, (n,) or (n, bands), NaN where nothing was
    read. ``sample_weight`` says how often a reading was taken: it counts as so many.
    """

    _method = ""
    model_: Model | SpaceModel
    n_features_in_: int

    def fit(
        self: Self, X: ArrayLike | Readings, y: ArrayLike | None = None, sample_weight: Any = None
    ) -> Self:
        """Fits to places and levels, or to :class:`portolan.Readings`."""
        params = self.get_params(deep=False)
        seed, emitters = params.pop("random_state", None), params.pop("emitters", None)
        grid: Grid | None = params.pop("grid", None)
        transmitters: Transmitters = params.pop("transmitters", None)
        options = as_texts(params)
        if isinstance(X, Readings):
            if y is not None:
                raise TypeError("Readings hold their values: leave y out")
            readings, self.n_features_in_, self._flat = X, 2, False
        else:
            at, levels = self._checked(X, y)
            self.n_features_in_ = at.shape[1]
            self._flat = levels.ndim == 1
            at, table, repeats = _rows(at, levels, sample_weight)
            if self.n_features_in_ != 2:
                self.model_ = fit_space(self._method, options, at, table, repeats)
                return self
            readings = Readings(at, table, repeats=repeats)
        native = _native.fit(
            self._method,
            options,
            readings._native,
            emitters=emitters,
            seed=_seed(seed),
            grid=grid,
            transmitters=known_to(readings, transmitters, [self._method]),
        )
        self.model_ = model = Model(native)
        for note in model.report["notes"]:
            warnings.warn(note, stacklevel=2)
        return self

    def predict(self, X: ArrayLike, return_std: bool = False) -> Any:
        """Levels at places, and with ``return_std`` the standard deviation of the field there."""
        if not hasattr(self, "model_"):
            raise NotFittedError(
                f"This {type(self).__name__} instance is not fitted yet: call fit first."
            )
        if HAS_SKLEARN:
            at = validate_data(self, X, reset=False, dtype=np.float64)
        else:
            at = as_floats(X, "X")
            if at.ndim != 2 or at.shape[1] != self.n_features_in_:
                raise ValueError(f"X has shape {at.shape}: give (places, {self.n_features_in_})")
        found = self.model_.predict(at, return_std=return_std)
        if not self._flat:
            return found
        return tuple(part[:, 0] for part in found) if return_std else found[:, 0]

    def _checked(self, X: Any, y: Any) -> tuple[Any, Any]:
        if y is None:
            message = f"{type(self).__name__} requires y to be passed, but the target y is None"
            raise ValueError(message)
        if HAS_SKLEARN:
            at = validate_data(self, X, dtype=np.float64, ensure_min_samples=2)
        else:
            at = as_floats(X, "X")
            if at.ndim != 2:
                raise ValueError(f"X has shape {at.shape}: give (sensors, 2), metres")
            if not np.isfinite(at).all():
                raise ValueError("X holds NaN or infinity: every reading needs a place")
        levels = as_floats(y, "y")
        if levels.ndim == 0 or levels.ndim > 2:
            raise ValueError(f"y has shape {levels.shape}: give (n,) or (n, bands)")
        if len(levels) != len(at):
            raise ValueError(f"X has {len(at)} rows and y {len(levels)}: inconsistent numbers of samples")
        if np.isinf(levels).any():
            raise ValueError("y holds infinity: a reading is a finite number, NaN where nothing was read")
        if np.isnan(levels).all():
            raise ValueError("y holds NaN alone: nothing was read")
        return at, levels

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags


def _rows(at: Any, levels: Any, sample_weight: Any) -> tuple[Any, Any, Any]:
    """Places, levels (n, bands) and how often each was read.

    In the plane two readings of one place are two rows; elsewhere they are merged.
    """
    table = levels[:, None] if levels.ndim == 1 else levels
    weight = None if sample_weight is None else as_floats(sample_weight, "sample_weight")
    if weight is None or weight.ndim == 0:
        if at.shape[1] == 2:
            return at, table, None
        weight = np.ones(len(table))
    if weight.shape != (len(levels),):
        raise ValueError(f"sample_weight has shape {weight.shape}: give ({len(levels)},)")
    if not (np.isfinite(weight).all() and (weight >= 0).all()):
        raise ValueError("sample_weight: how often each reading was taken, 0 or more")
    if not (weight > 0).any():
        raise ValueError("all of sample_weight is zero: no reading is left")
    at, table, weight = at[weight > 0], table[weight > 0], weight[weight > 0]
    if at.shape[1] == 2:
        # Shares below one are relative: the lightest row counts as one reading.
        often = weight / min(1.0, weight.min())
        return at, table, np.repeat(often[:, None], table.shape[1], axis=1)
    places, place_of = np.unique(at, axis=0, return_inverse=True)
    total, count = np.zeros((2, len(places), table.shape[1]))
    known = ~np.isnan(table)
    share = weight[:, None] * known
    np.add.at(total, place_of.reshape(-1), np.where(known, table, 0.0) * share)
    np.add.at(count, place_of.reshape(-1), share)
    with np.errstate(invalid="ignore"):
        mean = np.where(count > 0, total / count, np.nan)
    # Shares below one are relative: the lightest entry counts as one reading.
    least = min(1.0, count[count > 0].min())
    return places, mean, np.where(count > 0, count / least, 1.0)


def _seed(random_state: Any) -> int:
    if random_state is None:
        return 0
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(0, 2**31 - 1))
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(0, 2**31 - 1))
    seed = int(random_state)
    if seed < 0:
        raise ValueError(f"random_state={random_state}: a whole number, 0 or more")
    return seed


__all__ = ["Estimator", "Grid", "Option", "Transmitters"]
