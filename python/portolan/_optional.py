"""Optional packages."""

from __future__ import annotations

import importlib
from typing import Any


def needed(name: str, package: str, what: str) -> Any:
    """The module, or an error that says what needs it and how to get it."""
    try:
        return importlib.import_module(name)
    except ImportError as missing:
        raise ImportError(f"{what} needs {package}: pip install {package}") from missing
