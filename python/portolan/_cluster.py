"""Work on a cluster that the user has: blocks of maps and batches of fits on Dask."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _native
from ._grids import Grid, Layers
from ._optional import needed
from ._progress import Tell, bar
from ._readings import Readings
from ._transmitters import Known

if TYPE_CHECKING:
    from ._model import Drawable, Model

#: Batches of fits for every thread of the cluster: few enough to cost little, enough to share.
BATCHES = 4


def lazy_layers(model: Drawable, grid: Grid, block: tuple[int, int], dtype: np.dtype[Any]) -> Layers:
    """Layers over band, y, x as Dask arrays, predicted block by block."""
    delayed = needed("dask", "dask[array]", "a map in chunks").delayed
    array = needed("dask.array", "dask[array]", "a map in chunks")
    along_x, along_y, size, x_low, y_low = grid
    # As `_block` stacks them: what is not there is left out.
    there = (True, model._gives_spread, model._gives_heard, model._gives_heard)
    # What several blocks need travels to a worker once.
    sent: dict[int, Any] = {}

    def part(piece: Any) -> Any:
        if id(piece) not in sent:
            sent[id(piece)] = delayed(piece, name=f"portolan-{uuid.uuid4().hex}", traverse=False)
        return sent[id(piece)]

    rows = []
    for low_y in range(0, along_y, block[0]):
        row = []
        for low_x in range(0, along_x, block[1]):
            cells = (min(block[1], along_x - low_x), min(block[0], along_y - low_y))
            own = (*cells, size, x_low + size * low_x, y_low + size * low_y)
            joined, pieces = model._parts(own)
            drawn = delayed(_block, pure=False)(joined, [part(piece) for piece in pieces], own, dtype)
            shape = (sum(there), model._bands, cells[1], cells[0])
            row.append(array.from_delayed(drawn, shape=shape, dtype=dtype))
        rows.append(row)
    whole = array.block(rows)
    drawn_layers = iter(range(sum(there)))
    return Layers(*(whole[next(drawn_layers)] if known else None for known in there))


def _block(joined: Callable[[list[Any]], Drawable], parts: list[Any], grid: Grid, dtype: np.dtype[Any]) -> Any:
    layers = [layer for layer in joined(parts)._layers(grid) if layer is not None]
    return np.stack([np.asarray(layer, dtype=dtype) for layer in layers])


def gathered(client: Any, futures: list[Any], what: str, tell: Tell | None) -> list[Any]:
    """The results of futures, in their order; a bar or ``tell`` hears how many are there."""
    completed = needed("distributed", "dask[distributed]", "a Dask client").as_completed
    with bar(what, tell) as hears:
        for done, _ in enumerate(completed(futures), start=1):
            if hears is not None:
                hears(done / len(futures))
    found: list[Any] = client.gather(futures)
    return found


def fit_on_cluster(
    client: Any,
    many: list[Readings],
    method: str,
    options: list[tuple[str, str]],
    settings: dict[str, Any],
    tell: Tell | None,
) -> list[Model]:
    """Fits on the workers of a Dask client, in batches; a batch whose worker dies is done again."""
    threads = max(1, sum(client.nthreads().values()))
    size = max(1, -(-len(many) // (BATCHES * threads)))
    batches = [many[first : first + size] for first in range(0, len(many), size)]
    known = settings.pop("transmitters")
    cut = [None if known is None else known[first : first + size] for first in range(0, len(many), size)]
    futures = client.map(_fit_batch, batches, cut, method=method, options=options, settings=settings, pure=False)
    return [model for batch in gathered(client, futures, method, tell) for model in batch]


def _fit_batch(
    batch: list[Readings],
    known: list[list[Known]] | None,
    *,
    method: str,
    options: list[tuple[str, str]],
    settings: dict[str, Any],
) -> list[Model]:
    from ._model import Model

    # A worker with several threads runs several batches: each then takes one core.
    natives = _native.fit_many(
        method,
        options,
        [readings._native for readings in batch],
        transmitters=known,
        **{**settings, "threads": settings["threads"] or 1},
    )
    return [Model(native) for native in natives]
