from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
Levels = NDArray[np.uint8]
Grid = tuple[int, int, float, float, float]
Known = tuple[float, float, int | None, float | None, float]
Maybe = Floats | None

class NativeReadings:
    @property
    def further(self) -> bool: ...
    @property
    def places(self) -> Floats: ...
    @property
    def db(self) -> Floats: ...
    @property
    def unit(self) -> tuple[str, float | None]: ...
    @property
    def power(self) -> Floats: ...
    @property
    def levels(self) -> tuple[Levels, list[float], float, float] | None: ...
    @property
    def grid(self) -> Grid | None: ...
    def with_grid(self, parts: Grid) -> NativeReadings: ...
    def with_crs(self, crs: str | None) -> NativeReadings: ...
    @property
    def freq_hz(self) -> Floats | None: ...
    @property
    def crs(self) -> str | None: ...
    @property
    def names(self) -> list[str] | None: ...
    @property
    def not_heard(self) -> tuple[Flags, Floats] | None: ...
    @property
    def repeats(self) -> Floats | None: ...
    @property
    def devices(self) -> tuple[list[str], list[float], list[float], float] | None: ...
    def with_devices(
        self, devices: tuple[list[str], list[float], list[float], float] | None
    ) -> NativeReadings: ...
    @property
    def noise_db(self) -> Floats | None: ...
    @property
    def time_s(self) -> Floats | None: ...
    def subset(self, sensors: list[int]) -> NativeReadings: ...
    def updated(self, readings: NativeReadings) -> NativeModel: ...
    def write(self, path: str, force: bool) -> None: ...

class NativeModel:
    @property
    def bands(self) -> int: ...
    @property
    def unit(self) -> tuple[str, float | None]: ...
    @property
    def gives_spread(self) -> bool: ...
    @property
    def gives_heard(self) -> bool: ...
    @property
    def freq_hz(self) -> Floats | None: ...
    @property
    def crs(self) -> str | None: ...
    @property
    def names(self) -> list[str] | None: ...
    @property
    def report(self) -> dict[str, Any]: ...
    @property
    def emitters(self) -> list[dict[str, float]]: ...
    @property
    def region(self) -> tuple[float, float, float, float]: ...
    def default_grid(self) -> Grid: ...
    def predict(self, places: Floats) -> tuple[Floats, Maybe, Maybe, Maybe, Maybe]: ...
    def predict_at_times(
        self, places: Floats, time_s: list[float]
    ) -> tuple[Floats, Maybe, Maybe, Maybe, Maybe]: ...
    def at_time(self, time_s: float) -> NativeModel: ...
    @property
    def time_span(self) -> tuple[float, float] | None: ...
    def changes(
        self, readings: NativeReadings, rate: float
    ) -> list[tuple[str, int, float, float, float, str]]: ...
    def map(self, parts: Grid) -> tuple[Floats, Maybe, Maybe, Maybe]: ...
    def updated(self, readings: NativeReadings) -> NativeModel: ...
    def write(self, path: str, force: bool) -> None: ...
    def to_arrays(self) -> dict[str, Any]: ...
    @staticmethod
    def from_arrays(arrays: dict[str, Any]) -> NativeModel: ...

class NativeMap:
    @property
    def db(self) -> Floats: ...
    @property
    def spread_db(self) -> Floats | None: ...
    @property
    def grid(self) -> Grid: ...
    @property
    def unit(self) -> tuple[str, float | None]: ...
    @property
    def freq_hz(self) -> Floats | None: ...
    @property
    def crs(self) -> str | None: ...
    @property
    def names(self) -> list[str] | None: ...
    @property
    def emitters(self) -> Floats | None: ...
    def sense(
        self,
        *,
        fraction: float | None = ...,
        count: int | None = ...,
        cells: list[tuple[int, int]] | None = ...,
        lattice: int | None = ...,
        path: list[tuple[int, int]] | None = ...,
        every: int = ...,
        snr_db: float | None = ...,
        gaps: float = ...,
        cover: float = ...,
        bits: int | None = ...,
        edges: list[float] | None = ...,
        sigma: float = ...,
        seed: int = ...,
    ) -> NativeReadings: ...
    def score(
        self, truth: NativeMap, offset: float | None = ..., readings: NativeReadings | None = ...
    ) -> dict[str, float | None]: ...
    def write(self, path: str, force: bool) -> None: ...

class NativeSpace:
    def predict(self, places: Floats) -> tuple[Floats, Floats | None, Floats | None]: ...
    def parts(self) -> tuple[Any, ...]: ...

def fit_space(
    method: str,
    options: list[tuple[str, str]],
    places: Floats,
    power: Floats,
    *,
    repeats: Floats | None = ...,
    laws: list[tuple[float, float, float, float]] | None = ...,
) -> NativeSpace: ...
def simulate(
    parts: Grid,
    *,
    bands: int,
    emitters: int,
    shadow_db: float,
    decorrelation_m: float,
    psd: str,
    seed: int,
) -> NativeMap: ...
def read_map(
    path: str, *, unit: str | None = ..., cell_m: float | None = ...
) -> tuple[NativeMap, list[str]]: ...
def map_of(
    db: Floats,
    parts: Grid,
    *,
    unit: str,
    offset: float | None = ...,
    spread_db: Floats | None = ...,
    names: list[str] | None = ...,
    freq_hz: list[float] | None = ...,
    emitters: Floats | None = ...,
    crs: str | None = ...,
) -> NativeMap: ...
def authors_edges() -> list[float]: ...
def folds(places: Floats, count: int, split: str, seed: int) -> list[list[int]]: ...
def validate(
    method: str,
    options: list[tuple[str, str]],
    readings: NativeReadings,
    folds: list[list[int]],
    *,
    emitters: int | None = ...,
    seed: int = ...,
    transmitters: list[Known] | None = ...,
    obstacles: NativeObstacles | None = ...,
    tell: Callable[[float], Any] | None = ...,
) -> dict[str, Any]: ...
def study(
    calls: list[tuple[str, str, list[tuple[str, str]]]],
    parts: Grid,
    *,
    bands: int,
    emitters: int,
    shadow_db: float,
    decorrelation_m: float,
    psd: str,
    assumed: int | None,
    fraction: float | None,
    count: int | None,
    snr_db: float | None,
    gaps: float,
    cover: float,
    bits: int | None,
    sigma: float,
    maps: int,
    seed: int,
    tell: Callable[[float], Any] | None = ...,
) -> list[dict[str, Any]]: ...
def advise(
    model: NativeModel,
    parts: Grid,
    count: int,
    leave_out: list[tuple[float, ...]],
    tell: Callable[[float], Any] | None = ...,
) -> list[dict[str, Any]]: ...
def readings(
    places: Floats,
    values: Floats | None,
    *,
    linear: bool = ...,
    levels: tuple[Levels, list[float], float | None, float] | None = ...,
    unit: str = ...,
    offset: float | None = ...,
    names: list[str] | None = ...,
    freq_hz: list[float] | None = ...,
    not_heard: Flags | None = ...,
    floor_db: Floats | None = ...,
    repeats: Floats | None = ...,
    noise_db: Floats | None = ...,
    time_s: Floats | None = ...,
    further: bool = ...,
) -> NativeReadings: ...
def read_readings(
    path: str,
    *,
    unit: str | None = ...,
    cell_m: float | None = ...,
    not_heard: str | None = ...,
    floor_db: float | None = ...,
    crs: str | None = ...,
    format: str | None = ...,
    columns: str | None = ...,
    band_by: str | None = ...,
    min_places: int | None = ...,
    gather_m: float | None = ...,
    track: str | None = ...,
    utc_offset: str | None = ...,
    track_gap_s: float | None = ...,
    band_width_hz: float | None = ...,
    band_edges_hz: list[float] | None = ...,
    measured: str | None = ...,
    further: bool = ...,
    missing: list[float] | None = ...,
    strict: bool = ...,
    accept: bool = ...,
    combine: str | None = ...,
    filter: str | None = ...,
    freq_unit: str | None = ...,
    time_unit: str | None = ...,
    floor_height: float | None = ...,
) -> tuple[NativeReadings, list[str]]: ...
def to_metres(lat: Floats, lon: Floats, crs: str | None = ...) -> tuple[Floats, str]: ...
def to_degrees(places: Floats, crs: str) -> Floats: ...
def well_known_text(crs: str) -> str: ...
def fit(
    method: str,
    options: list[tuple[str, str]],
    readings: NativeReadings,
    *,
    emitters: int | None = ...,
    seed: int = ...,
    grid: Grid | None = ...,
    transmitters: list[Known] | None = ...,
    obstacles: NativeObstacles | None = ...,
    tell: Callable[[float], Any] | None = ...,
) -> NativeModel: ...
def fit_many(
    method: str,
    options: list[tuple[str, str]],
    readings: list[NativeReadings],
    *,
    emitters: int | None = ...,
    seed: int = ...,
    grid: Grid | None = ...,
    transmitters: list[list[Known]] | None = ...,
    threads: int | None = ...,
    device: str = ...,
    tell: Callable[[float], Any] | None = ...,
) -> list[NativeModel]: ...
def read_model(path: str) -> NativeModel: ...
def transmitters(
    readings: NativeReadings, *, path: str | None = ..., text: str | None = ...
) -> tuple[list[Known], list[str]]: ...
def methods() -> list[tuple[str, str, bool, bool, list[tuple[str, str, str]]]]: ...

class NativeObstacles:
    def __init__(
        self,
        readings: NativeReadings,
        *,
        path: str | None = ...,
        text: str | None = ...,
        floor_height: float | None = ...,
        accept: bool = ...,
    ) -> None: ...

class NativeExplorer:
    @property
    def url(self) -> str: ...
    def close(self) -> None: ...

def explore(
    items: list[tuple[str, object]], *, port: int = 0, method: str | None = None
) -> NativeExplorer: ...
