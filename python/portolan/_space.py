"""Models of places with other than two coordinates."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from . import _native
from ._readings import Floats, as_floats


class SpaceModel:
    """A fit at places with any number of coordinates: a line, or a building with its heights.

    It predicts; maps are drawn of the plane alone.
    """

    def __init__(self, native: _native.NativeSpace) -> None:
        self._native = native

    def predict(
        self, places: ArrayLike, *, return_std: bool = False, of_reading: bool = False
    ) -> Any:
        """As :meth:`Model.predict`."""
        level, field, reading = self._native.predict(as_floats(places, "places"))
        if not return_std:
            return level
        spread = reading if of_reading else field
        if spread is None:
            raise ValueError(f"{self._native.parts()[0]} knows no spread: kriging does")
        return level, spread

    def __repr__(self) -> str:
        method, _, places, power, *_ = self._native.parts()
        return f"<portolan.SpaceModel: {method}, {places.shape[1]} coordinates, {power.shape[1]} bands>"

    def __reduce__(self) -> Any:
        return _remade, self._native.parts()


def _remade(method: str, options: Any, places: Floats, power: Floats, repeats: Any, laws: Any) -> SpaceModel:
    return SpaceModel(_native.fit_space(method, options, places, power, repeats=repeats, laws=laws))


def fit_space(
    method: str, options: list[tuple[str, str]], places: Floats, db: Floats, repeats: Floats | None
) -> SpaceModel:
    """Fits a method that asks for nothing but distances to levels in decibels, (n, bands)."""
    power = 10.0 ** (0.1 * db)
    return SpaceModel(_native.fit_space(method, options, places, np.ascontiguousarray(power), repeats=repeats))
