"""Readings: what sensors read, where, in which unit."""

from __future__ import annotations

import os
import tempfile
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _native
from ._optional import needed

Floats = NDArray[np.float64]


def as_floats(values: ArrayLike, what: str) -> Floats:
    """Doubles, without a copy where they are doubles already."""
    if hasattr(values, "toarray"):
        raise TypeError(f"{what} is a sparse matrix: give a dense array")
    array = np.asarray(values)
    if np.iscomplexobj(array):
        raise ValueError(f"{what} holds complex numbers: Complex data not supported")
    return np.asarray(array, dtype=np.float64)


class Readings:
    """What sensors read: places in metres, values in dBm (or another unit that is said).

    ``values`` is (sensors,) or (sensors, bands), NaN where nothing was read. A place that was read
    twice is two rows: how far they differ tells the noise. ``unit`` is "dbm",
    "db" for a receiver without calibration, or "relative" (with its ``offset``) for maps as the
    paper simulates them. ``not_heard`` marks entries that are only known to lie below ``floor``
    (one level for all bands or one each); ``repeats`` says how often an entry was read, ``noise_db``
    its standard deviation, ``time_s`` when a sensor read; ``crs`` where on Earth the metres are
    counted ("EPSG:32632"). ``further`` readings are to update a model (:meth:`Model.update`): one is
    enough, and bands may be empty.
    """

    def __init__(
        self,
        places: ArrayLike,
        values: ArrayLike,
        *,
        unit: str = "dbm",
        offset: float | None = None,
        names: Sequence[str] | None = None,
        freq_hz: ArrayLike | None = None,
        not_heard: ArrayLike | None = None,
        floor: ArrayLike | None = None,
        repeats: ArrayLike | None = None,
        noise_db: ArrayLike | None = None,
        time_s: ArrayLike | None = None,
        z: ArrayLike | None = None,
        crs: str | None = None,
        further: bool = False,
    ) -> None:
        db = as_floats(values, "values")
        self._native = _made(
            places,
            db[:, None] if db.ndim == 1 else db,
            unit=unit,
            offset=offset,
            names=names,
            freq_hz=freq_hz,
            not_heard=not_heard,
            floor=floor,
            repeats=repeats,
            noise_db=noise_db,
            time_s=time_s,
            z=z,
            crs=crs,
            further=further,
        )

    @classmethod
    def _of(cls, native: _native.NativeReadings) -> Readings:
        made = cls.__new__(cls)
        made._native = native
        return made

    @classmethod
    def from_levels(
        cls,
        places: ArrayLike,
        levels: ArrayLike,
        *,
        edges: ArrayLike,
        sigma: float | None = 0.0,
        offset: float,
        unit: str = "relative",
        names: Sequence[str] | None = None,
        freq_hz: ArrayLike | None = None,
    ) -> Readings:
        """Readings of a receiver that reports levels 0, 1, .. of a quantiser, 255 = missing.

        ``edges`` are the inner edges in ln(x + offset), ``sigma`` the deviation of the noise there
        before quantising: None estimates it from the levels.
        """
        table = np.asarray(levels)
        if not np.issubdtype(table.dtype, np.integer):
            raise TypeError(f"levels are {table.dtype}: give whole numbers, 0 to 255")
        if table.size and (table.min() < 0 or table.max() > 255):
            raise ValueError("levels: whole numbers from 0 to 255, 255 where nothing was read")
        table = np.ascontiguousarray(table[:, None] if table.ndim == 1 else table, dtype=np.uint8)
        known = None if sigma is None else float(sigma)
        quantiser = ([float(e) for e in as_floats(edges, "edges")], known, float(offset))
        native = _made(
            places,
            table,
            quantiser=quantiser,
            unit=unit,
            offset=float(offset) if unit == "relative" else None,
            names=names,
            freq_hz=freq_hz,
        )
        return cls._of(native)

    @classmethod
    def from_degrees(
        cls, lat: ArrayLike, lon: ArrayLike, values: ArrayLike, *, crs: str | None = None, **known: Any
    ) -> Readings:
        """Readings at latitudes and longitudes, which become metres of ``crs`` or of the UTM zone
        around them; the other arguments are those of :class:`Readings`.
        """
        north, east = as_floats(lat, "lat").reshape(-1), as_floats(lon, "lon").reshape(-1)
        if north.shape != east.shape:
            raise ValueError(f"{len(north)} latitudes and {len(east)} longitudes")
        places, system = _native.to_metres(north, east, crs)
        return cls(places, values, crs=system, **known)

    @classmethod
    def read(
        cls,
        path: str | os.PathLike[str],
        *,
        unit: str | None = None,
        cell_m: float | None = None,
        not_heard: float | str | Sequence[float] | None = None,
        missing: float | Sequence[float] | None = None,
        floor: float | None = None,
        crs: str | None = None,
        format: str | None = None,
        columns: Mapping[str, str] | None = None,
        where: str | None = None,
        band_by: str | Sequence[str] | None = None,
        combine: str | None = None,
        freq_unit: str | None = None,
        time_unit: str | None = None,
        floor_height: float | None = None,
        min_places: int | None = None,
        gather_m: float | None = None,
        track: str | os.PathLike[str] | None = None,
        utc_offset: str | None = None,
        track_gap_s: float | None = None,
        band_width_hz: float | None = None,
        band_edges_hz: Sequence[float] | None = None,
        measured: str | os.PathLike[str] | None = None,
        further: bool = False,
        strict: bool = False,
        accept: bool = False,
    ) -> Readings:
        """Readings from a file of any kind that the command ``portolan`` reads.

        The options are the command's: ``columns`` says which column is what ({"lat": "breite",
        "value": "pegel"}), ``where`` which lines are wanted ("floor = 2 and technology = 'LTE'"),
        ``band_by`` what tells bands apart (bssid, ssid, freq, channel, or names of columns),
        ``combine`` how the transmitters of a network become one band (strongest, sum, mean),
        ``not_heard`` is a code, several, "absent" or "below-serving", ``missing`` codes of no reading; ``strict``
        refuses a table with a line that cannot be read, ``floor_height``, metres from floor to
        floor, makes heights of a column of floors, ``accept`` accepts doubtful input,
        ``gather_m`` makes one place of readings close by, ``track`` and ``utc_offset`` tell where
        sweeps were made.
        """
        native, said = _native.read_readings(
            os.fspath(path),
            unit=unit,
            cell_m=cell_m,
            not_heard=_listed(not_heard),
            missing=None if missing is None else [float(code) for code in np.atleast_1d(missing)],
            floor_db=floor,
            crs=crs,
            format=format,
            columns=None if columns is None else ",".join(f"{k}={v}" for k, v in columns.items()),
            band_by=_listed(band_by),
            combine=combine,
            filter=where,
            freq_unit=freq_unit,
            time_unit=time_unit,
            floor_height=floor_height,
            strict=strict,
            accept=accept,
            min_places=min_places,
            gather_m=gather_m,
            track=None if track is None else os.fspath(track),
            utc_offset=utc_offset,
            track_gap_s=track_gap_s,
            band_width_hz=band_width_hz,
            band_edges_hz=None if band_edges_hz is None else [float(edge) for edge in band_edges_hz],
            measured=None if measured is None else os.fspath(measured),
            further=further,
        )
        for line in said:
            warnings.warn(line, stacklevel=2)
        return cls._of(native)

    @classmethod
    def from_dataframe(
        cls,
        frame: Any,
        *,
        x: str = "x_m",
        y: str = "y_m",
        value: str | None = None,
        band: str | None = None,
        unit: str = "dbm",
    ) -> Readings:
        """Readings from a data frame.

        Wide: a row for each sensor, every column but x and y a band. Long: ``value`` names the
        column of the readings and ``band`` that of their bands; the second reading of a band at a
        place is in the second row of that place, and so on.
        """
        missing = [name for name in (x, y, value, band) if name is not None and name not in frame]
        if missing:
            raise ValueError(f"no column {missing[0]!r}: there are {', '.join(map(str, frame.columns))}")
        if value is None:
            columns = [name for name in frame.columns if name not in (x, y)]
            return cls(
                frame[[x, y]].to_numpy(dtype=float),
                frame[columns].to_numpy(dtype=float),
                names=[str(name) for name in columns],
                unit=unit,
            )
        bands = ["all"] if band is None else sorted(frame[band].dropna().unique(), key=str)
        at, row_of = np.unique(frame[[x, y]].to_numpy(dtype=float), axis=0, return_inverse=True)
        row_of = row_of.reshape(-1)
        db = frame[value].to_numpy(dtype=float)
        if band is None:
            column_of = np.zeros(len(db), dtype=int)
        else:
            number = {name: k for k, name in enumerate(bands)}
            column_of = np.array([number.get(name, -1) for name in frame[band]])
        there = np.isfinite(db) & (column_of >= 0)
        place_of, column_of = row_of[there], column_of[there]
        visit = _visits(place_of * len(bands) + column_of)
        rows = np.ones(len(at), dtype=int)
        np.maximum.at(rows, place_of, visit + 1)
        first = np.cumsum(rows) - rows
        values = np.full((rows.sum(), len(bands)), np.nan)
        values[first[place_of] + visit, column_of] = db[there]
        names = None if band is None else [str(name) for name in bands]
        return cls(np.repeat(at, rows, axis=0), values, names=names, unit=unit)

    def write(self, path: str | os.PathLike[str], *, force: bool = False) -> None:
        """Writes a file that the command reads too (.npz, .csv or .mat)."""
        self._native.write(os.fspath(path), force)

    @property
    def places(self) -> Floats:
        """(sensors, 2) in metres."""
        return self._native.places

    @property
    def values(self) -> Floats:
        """(sensors, bands) in decibels; NaN where nothing was read."""
        return self._native.db

    @property
    def unit(self) -> str:
        """"dbm", "db" or "relative"."""
        return self._native.unit[0]

    @property
    def crs(self) -> str | None:
        """Where on Earth the metres are counted, such as "EPSG:32632"; None where unknown."""
        return self._native.crs

    @property
    def names(self) -> list[str] | None:
        """Names of the bands."""
        return self._native.names

    @property
    def freq_hz(self) -> Floats | None:
        """Frequencies of the bands."""
        return self._native.freq_hz

    @property
    def devices(self) -> dict[str, tuple[float, float]]:
        """Offset and standard error in dB of every device whose offset was taken out.

        Device offsets are removed from a file or table with a column ``device`` (or ``phone``):
        readings are then those of the survey's average device.
        """
        found = self._native.devices
        if found is None:
            return {}
        names, offsets, errors, _ = found
        return {name: (offset, error) for name, offset, error in zip(names, offsets, errors)}

    def __len__(self) -> int:
        return len(self._native.places)

    def __getitem__(self, sensors: Any) -> Readings:
        """Some of the sensors, by slice, indices or mask; as few as one, to update a model."""
        chosen = np.arange(len(self))[sensors]
        return self._of(self._native.subset([int(i) for i in np.atleast_1d(chosen)]))

    def __repr__(self) -> str:
        sensors, bands = self.values.shape
        return f"<portolan.Readings: {sensors} sensors x {bands} bands, {self.unit}>"

    def __reduce__(self) -> Any:
        native = self._native
        unit, offset = native.unit
        silent, levels = native.not_heard, native.levels
        parts = {
            "linear": True,
            "unit": unit,
            "offset": offset,
            "names": native.names,
            "freq_hz": native.freq_hz,
            "not_heard": None if silent is None else silent[0],
            "floor": None if silent is None else silent[1],
            "repeats": native.repeats,
            "noise_db": native.noise_db,
            "time_s": native.time_s,
            "crs": native.crs,
            "further": native.further,
            "quantiser": None if levels is None else levels[1:],
        }
        values = native.power if levels is None else levels[0]
        return _remade, (native.places, values, parts, native.grid, native.devices)


def _listed(given: float | str | Sequence[float] | Sequence[str] | None) -> str | None:
    """One or several words as the command takes them."""
    if given is None or isinstance(given, str):
        return given
    return ",".join(map(str, given)) if isinstance(given, Sequence) else str(given)


def _remade(
    places: Floats, values: Any, parts: dict[str, Any], grid: Any, devices: Any = None
) -> Readings:
    native = _made(places, values, **parts).with_devices(devices)
    return Readings._of(native if grid is None else native.with_grid(grid))


def _visits(keys: NDArray[np.intp]) -> NDArray[np.intp]:
    """How many equal keys stand before each."""
    order = np.argsort(keys, kind="stable")
    number = np.arange(len(keys))
    fresh = np.ones(len(keys), dtype=bool)
    fresh[1:] = keys[order][1:] != keys[order][:-1]
    visit = np.empty_like(number)
    visit[order] = number - np.maximum.accumulate(np.where(fresh, number, 0))
    return visit


def _made(
    places: ArrayLike,
    table: Any,
    *,
    quantiser: tuple[list[float], float | None, float] | None = None,
    linear: bool = False,
    unit: str = "dbm",
    offset: float | None = None,
    names: Sequence[str] | None = None,
    freq_hz: ArrayLike | None = None,
    not_heard: ArrayLike | None = None,
    floor: ArrayLike | None = None,
    repeats: ArrayLike | None = None,
    noise_db: ArrayLike | None = None,
    time_s: ArrayLike | None = None,
    z: ArrayLike | None = None,
    crs: str | None = None,
    further: bool = False,
) -> _native.NativeReadings:
    """Native readings of a table of values or of levels."""
    at = as_floats(places, "places")
    if at.ndim != 2:
        raise ValueError(f"places have shape {at.shape}: give (sensors, 2), x and y in metres, or (sensors, 3), z too")
    if z is not None:
        if at.shape[1] != 2:
            raise ValueError(f"places have shape {at.shape} and z is given too: give heights once")
        at = np.column_stack([at, np.broadcast_to(as_floats(z, "z"), len(at))])
    if table.ndim != 2 or len(table) != len(at):
        raise ValueError(f"{len(at)} places, but values of shape {table.shape}")
    bands = table.shape[1]

    def wide(given: ArrayLike | None, what: str) -> Floats | None:
        if given is None:
            return None
        array = as_floats(given, what)
        array = array[:, None] if array.ndim == 1 else array
        return np.ascontiguousarray(np.broadcast_to(array, table.shape))

    silent = None
    if not_heard is not None:
        flags = np.asarray(not_heard, dtype=bool)
        flags = flags[:, None] if flags.ndim == 1 else flags
        silent = np.ascontiguousarray(np.broadcast_to(flags, table.shape))
    level = None
    if floor is not None:
        level = np.ascontiguousarray(np.broadcast_to(as_floats(floor, "floor"), (bands,)))
    hertz = None if freq_hz is None else list(map(float, np.atleast_1d(as_floats(freq_hz, "freq_hz"))))
    made = _native.readings(
        at,
        table if quantiser is None else None,
        linear=linear,
        levels=None if quantiser is None else (table, *quantiser),
        unit=unit,
        offset=offset,
        names=None if names is None else list(names),
        freq_hz=hertz,
        not_heard=silent,
        floor_db=level,
        repeats=wide(repeats, "repeats"),
        noise_db=wide(noise_db, "noise_db"),
        time_s=None if time_s is None else as_floats(time_s, "time_s"),
        further=further,
    )
    return made if crs is None else made.with_crs(crs)


def read_table(table: Any, **options: Any) -> Readings:
    """Readings from a data frame or a Parquet file, its columns known by their names.

    Takes the options of :meth:`Readings.read` and understands what it understands: wide and long
    tables, latitude and longitude, logs of frames. Parquet needs pyarrow.
    """
    if isinstance(table, (str, os.PathLike)):
        pandas = needed("pandas", "pandas", "a table")
        table = pandas.read_parquet(table)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "table.csv")
        table.to_csv(path, index=False)
        return Readings.read(path, **options)
