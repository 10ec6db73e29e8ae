"""Degrees and metres: where on Earth a survey lies."""

from __future__ import annotations

from numpy.typing import ArrayLike

from . import _native
from ._readings import Floats, as_floats


def to_metres(lat: ArrayLike, lon: ArrayLike, crs: str | None = None) -> tuple[Floats, str]:
    """Metres (places, 2) of latitudes and longitudes in degrees, and the coordinate system.

    Without ``crs`` ("EPSG:32632", "local:49.4875,8.466") that is the UTM zone around them.
    """
    north, east = as_floats(lat, "lat").reshape(-1), as_floats(lon, "lon").reshape(-1)
    if north.shape != east.shape:
        raise ValueError(f"{len(north)} latitudes and {len(east)} longitudes")
    return _native.to_metres(north, east, crs)


def to_degrees(places: ArrayLike, crs: str) -> Floats:
    """Latitude and longitude (places, 2) of places in metres."""
    at = as_floats(places, "places")
    if at.ndim != 2:
        raise ValueError(f"places have shape {at.shape}: give (places, 2), x and y in metres")
    return _native.to_degrees(at, crs)
