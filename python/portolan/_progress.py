"""A bar where tqdm is there and somebody is looking."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

Tell = Callable[[float], Any]


@contextmanager
def bar(what: str, tell: Tell | None = None) -> Iterator[Tell | None]:
    """What hears the share done: the caller's own function, or a bar on a terminal, or nothing."""
    if tell is not None or not sys.stderr.isatty():
        yield tell
        return
    try:
        from tqdm.auto import tqdm
    except ImportError:
        yield None
        return
    form = "{desc}: {percentage:3.0f} %|{bar}| {elapsed}<{remaining}"
    with tqdm(total=1.0, desc=what, delay=1.0, leave=False, bar_format=form) as shown:

        def update(share: float) -> None:
            shown.update(max(0.0, share - shown.n))

        yield update
