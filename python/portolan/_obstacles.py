"""What stands between transmitters and places: the walls of a plan, floors."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

from . import _native
from ._readings import Readings
from ._transmitters import table_text

#: A path to a plan (.csv, .geojson), GeoJSON, anything with ``__geo_interface__``, or columns by name.
Walls = Any


def obstacles_to(
    readings: Readings, walls: Walls, floor_height: float | None, *, accept: bool = False
) -> Any:
    """Walls and floors around readings; None without any.

    ``accept`` takes a plan that lies far from the readings or is tiny beside them.
    """
    if walls is None and floor_height is None:
        return None
    path = text = None
    if isinstance(walls, (str, os.PathLike)):
        path = os.fspath(walls)
    elif hasattr(walls, "__geo_interface__"):
        text = json.dumps(walls.__geo_interface__)
    elif isinstance(walls, Mapping) and "type" in walls:
        text = json.dumps(walls)
    elif walls is not None:
        text = table_text(walls, "walls")
    height = None if floor_height is None else float(floor_height)
    return _native.NativeObstacles(
        readings._native, path=path, text=text, floor_height=height, accept=accept
    )


__all__ = ["Walls", "obstacles_to"]
