"""Radio maps from a handful of sensors: fit once, predict anywhere.

>>> import numpy as np, portolan
>>> places = np.array([[0.0, 0.0], [12.5, 3.0], [4.0, 9.5], [9.0, 8.0]])  # metres
>>> dbm = np.array([-60.0, -71.0, -66.0, -75.0])
>>> kriging = portolan.Kriging().fit(places, dbm)
>>> level, spread = kriging.predict(np.array([[6.0, 4.0]]), return_std=True)
>>> bool(-75 < level[0] < -60 and spread[0] > 0)
True
"""

from __future__ import annotations

from ._base import Estimator
from ._earth import to_degrees, to_metres
from ._explore import Explorer, explore
from ._judge import SpatialFold, advise, study, validate
from ._maps import read_map, score, sense, simulate, write_map
from ._model import Model, Prediction, fit, fit_many, read_model
from ._native import methods as _methods
from ._readings import Readings, read_table
from ._space import SpaceModel
from ._tiled import TiledModel, fit_tiled
from .estimators import (
    Auto,
    Btd,
    Dgm,
    Field,
    InverseDistance,
    Kriging,
    Linear,
    NaiveUnn,
    Nearest,
    ThinPlate,
    Unn,
)

__version__ = "0.2.0"


def methods() -> dict[str, str]:
    """Every method by name, with what it does."""
    return {name: summary for name, summary, *_ in _methods()}


__all__ = [
    "Auto",
    "Btd",
    "Dgm",
    "Estimator",
    "Explorer",
    "Field",
    "InverseDistance",
    "Kriging",
    "Linear",
    "Model",
    "NaiveUnn",
    "Nearest",
    "Prediction",
    "Readings",
    "SpaceModel",
    "SpatialFold",
    "ThinPlate",
    "TiledModel",
    "Unn",
    "advise",
    "explore",
    "fit",
    "fit_many",
    "fit_tiled",
    "methods",
    "read_map",
    "read_model",
    "read_table",
    "score",
    "sense",
    "simulate",
    "study",
    "to_degrees",
    "to_metres",
    "validate",
    "write_map",
]
