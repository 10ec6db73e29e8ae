"""Transmitters whose places are known: from a file, a table or an array."""

from __future__ import annotations

import csv
import io
import math
import os
import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from . import _native
from ._readings import Readings

#: A path to a table, a data frame, columns by name, rows by name, or places (n, 2) in metres.
Transmitters = Any
Known = tuple[float, float, int | None, float | None, float]


def known_to(readings: Readings, given: Transmitters, methods: Sequence[str]) -> list[Known] | None:
    """Transmitters of the bands of readings; refused where none of the methods makes use of them."""
    if given is None:
        return None
    register = {name: takes for name, _, _, takes, _ in _native.methods()}
    if methods and all(register.get(name) is False for name in methods):
        who = ", ".join(name for name, takes in register.items() if takes)
        raise ValueError(f"transmitters: not used by {', '.join(methods)}; choose from {who}")
    if isinstance(given, (str, os.PathLike)):
        found, notes = _native.transmitters(readings._native, path=os.fspath(given))
    else:
        found, notes = _native.transmitters(readings._native, text=table_text(given, "transmitters"))
    for note in notes:
        warnings.warn(note, stacklevel=3)
    return found


def table_text(given: Any, what: str) -> str:
    """A table in memory as the text of its file: numbers come back to the last bit."""
    columns = _columns(given, what)
    lengths = {len(values) for values in columns.values()}
    if len(lengths) != 1:
        raise ValueError(f"{what}: its columns differ in length")
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(columns)
    writer.writerows(zip(*([_field(value) for value in values] for values in columns.values())))
    return out.getvalue()


def _columns(given: Any, what: str) -> dict[str, Sequence[Any]]:
    if isinstance(given, Mapping):
        columns = {str(name): np.atleast_1d(np.asarray(values)).tolist() for name, values in given.items()}
        if not columns:
            raise ValueError(f"{what}: no columns: give x_m and y_m, or lat and lon")
        return columns
    if hasattr(given, "columns") and hasattr(given, "to_numpy"):
        return {str(name): list(given[name]) for name in given.columns}
    names = getattr(getattr(given, "dtype", None), "names", None)
    if names:
        return {name: np.atleast_1d(given[name]).tolist() for name in names}
    if isinstance(given, Iterable) and not isinstance(given, np.ndarray):
        given = list(given)
        if given and all(isinstance(row, Mapping) for row in given):
            every = list(dict.fromkeys(str(name) for row in given for name in row))
            return {name: [row.get(name) for row in given] for name in every}
    try:
        places = np.asarray(given, dtype=float)
    except (TypeError, ValueError):
        kinds = "a path, a data frame, columns or rows by name, or places (n, 2) in metres"
        raise TypeError(f"{what}: give {kinds}") from None
    places = places[None, :] if places.shape == (2,) else places
    if places.ndim != 2 or places.shape[1] != 2 or not len(places):
        raise ValueError(f"{what} have shape {places.shape}: give (n, 2), x and y in metres")
    return {"x_m": places[:, 0].tolist(), "y_m": places[:, 1].tolist()}


def _field(value: Any) -> str:
    """Empty where there is nothing; a whole number without its point, as bands are counted."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or (isinstance(value, float) and math.isnan(value)) or repr(value) in ("<NA>", "NaT"):
        return ""
    return repr(value).removesuffix(".0") if isinstance(value, float) else str(value)


__all__ = ["Known", "Transmitters", "known_to", "table_text"]
