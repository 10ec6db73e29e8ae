"""The explorer: a page over models and readings, inside a notebook or in a browser."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Any

from . import _native
from ._base import Estimator
from ._model import Model
from ._readings import Readings


class Explorer:
    """A page that runs in this process until it is closed; a notebook shows it.

    The server answers this machine only. ``url`` is where the page is.
    """

    def __init__(self, native: _native.NativeExplorer, height: int) -> None:
        self._native = native
        self._height = height

    @property
    def url(self) -> str:
        """The address of the page."""
        return self._native.url

    def open(self) -> Explorer:
        """Opens the page in a browser."""
        import webbrowser

        webbrowser.open(self.url)
        return self

    def close(self) -> None:
        """Ends the server."""
        self._native.close()

    def __enter__(self) -> Explorer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _repr_html_(self) -> str:
        url = escape(self.url, quote=True)
        return (
            f'<iframe src="{url}" title="Portolan explorer" width="100%" height="{self._height}" '
            f'style="border: 1px solid #8884; border-radius: 8px"></iframe>'
        )

    def __repr__(self) -> str:
        return f"<portolan.Explorer: {self.url}>"


def _native_of(name: str, item: Any) -> object:
    if isinstance(item, Estimator):
        item = getattr(item, "model_", None)
    if isinstance(item, Model | Readings):
        return item._native
    raise TypeError(f"{name}: give a fitted estimator, a Model or Readings")


def explore(
    *items: Any, port: int = 0, method: str | None = None, height: int = 720, **named: Any
) -> Explorer:
    """Opens the explorer over models, readings and fitted estimators; named ones keep their names.

    As the last line of a notebook's cell it shows the page there; ``.open()`` shows it in a browser.
    Readings without a model are fitted by ``method``, by default ``auto``. Without anything a
    demonstration opens.

    >>> import portolan
    >>> page = portolan.explore()
    >>> page.url.startswith("http://127.0.0.1:")
    True
    >>> page.close()
    """
    given: list[tuple[str, Any]] = []
    for i, item in enumerate(items):
        if isinstance(item, Mapping):
            given.extend((str(name), one) for name, one in item.items())
        else:
            given.append((_name_of(item, i), item))
    given.extend(named.items())
    listed = [(name, _native_of(name, item)) for name, item in given]
    return Explorer(_native.explore(listed, port=port, method=method), height)


def _name_of(item: Any, i: int) -> str:
    if isinstance(item, Readings):
        return "readings" if i == 0 else f"readings {i + 1}"
    if isinstance(item, Estimator):
        return type(item).__name__
    if isinstance(item, Model):
        return str(item.report["chosen"])
    return f"item {i + 1}"

