"""One browser for all tests; a page that must not complain."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page
from support import Server, browsing, serving

PICTURES = Path(os.environ.get("PICTURES", "pictures"))


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with browsing() as one:
        yield one


@pytest.fixture(scope="session")
def demo() -> Iterator[Server]:
    with serving() as server:
        yield server


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A page on a laptop. Errors of its scripts fail the test."""
    context = browser.new_context(viewport={"width": 1280, "height": 800}, accept_downloads=True)
    page = context.new_page()
    wrong: list[str] = []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    yield page
    context.close()
    assert not wrong, wrong


@pytest.fixture(scope="session")
def pictures() -> Path:
    PICTURES.mkdir(parents=True, exist_ok=True)
    return PICTURES


@pytest.fixture(scope="session")
def survey(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A walk with two bands, times and two columns that need to be named."""
    path = tmp_path_factory.mktemp("survey") / "walk.csv"
    lines = ["east,north,when,ap hall,ap lab"]
    for i in range(48):
        x, y = 2.5 * (i % 8) + 0.1 * (i % 3), 2.0 * (i // 8)
        lines.append(f"{x:.2f},{y:.2f},2024-05-01T10:{i:02}:00Z,{-48 - 1.3 * x - 0.6 * y:.1f},{-72 + 0.8 * x + 0.3 * y:.1f}")
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture
def town(tmp_path: Path) -> Path:
    """A map whose unit must be said, under a name that must be quoted."""
    levels = [-60 - 0.7 * i for i in range(40)]
    header = "{'descr': '<f8', 'fortran_order': False, 'shape': (5, 4, 2), }"
    header += " " * (63 - (10 + len(header)) % 64) + "\n"
    path = tmp_path / "alte Stadt.npy"
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + struct.pack("<40d", *levels))
    return path
