"""Pictures of the command, opened by readers of others."""

from __future__ import annotations

import io
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
from conftest import Command
from pypdf import PdfReader

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def folder(command: Command, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with ``map.npz``, which has a spread, and a plan to lie under it."""
    folder = tmp_path_factory.mktemp("pictures")
    truth, readings, drawn = (folder / f"{name}.npz" for name in ("truth", "readings", "map"))
    command("simulate", "-o", truth, "--grid", "20x12", "--bands", "6", "--seed", "1")
    command("sense", truth, "-o", readings, "--count", "40")
    command("estimate", readings, "-o", drawn, "--method", "kriging")
    command("plot", drawn, "-o", folder / "plan.png", "--width", "400")
    return folder


LOOKS = {
    "plain": [],
    "levels": ["--levels", "-40,-30,-20", "--contours", "-30,-20"],
    "above": ["--above", "-25"],
    "spectrum": ["--by-frequency"],
    "under": ["--under", "plan.png", "--extent", "-4,-4,24,16", "--opacity", "0.5"],
}


@pytest.mark.parametrize("look", LOOKS)
def test_a_pdf_is_read(command: Command, folder: Path, look: str) -> None:
    words = [folder / word if word == "plan.png" else word for word in LOOKS[look]]
    output = folder / f"{look}.pdf"
    command("plot", folder / "map.npz", "-o", output, "--title", "Größe (a) <b>", "--width", 400, *words)
    reader = PdfReader(io.BytesIO(output.read_bytes()), strict=True)
    assert len(reader.pages) == 1
    assert reader.metadata is not None and str(reader.metadata.title).startswith("Größe (a) <b>: ")
    page = reader.pages[0]
    assert float(page.mediabox.width) == 400
    content = page.get_contents()
    assert content is not None
    operators = [operator for _, operator in content.operations]
    assert operators.count(b"q") == operators.count(b"Q")
    assert operators.count(b"BDC") == operators.count(b"EMC") > 5
    images = page.images
    # Every image decodes, and is drawn.
    assert len(images) >= 2 and all(image.image is not None for image in images)
    assert operators.count(b"Do") >= len(images)
    if look == "under":
        assert operators.count(b"Do") > len(images), "the plan is stored once"


@pytest.mark.parametrize("look", LOOKS)
def test_an_svg_is_read(command: Command, folder: Path, look: str) -> None:
    words = [folder / word if word == "plan.png" else word for word in LOOKS[look]]
    output = folder / f"{look}.svg"
    command("plot", folder / "map.npz", "-o", output, "--title", "Größe & <b>", *words)
    root = ElementTree.parse(output).getroot()
    assert root.tag == f"{SVG}svg"
    title = root.find(f"{SVG}title")
    assert title is not None and title.text is not None and title.text.startswith("Größe & <b>: ")
    assert not list(root.iter(f"{SVG}text")), "text is outlines"
    labels = {group.get("aria-label") for group in root.iter(f"{SVG}g")}
    assert {"x [m]", "y [m]"} <= labels
    images = list(root.iter(f"{SVG}image"))
    assert len(images) >= 2
    named = {f"#{image.get('id')}" for image in images if image.get("id")}
    used = [use.get("href") for use in root.iter(f"{SVG}use")]
    assert named == set(used)
    assert (len(used) == 2) == (look == "under"), "a plan under two maps is written once"
    clips = {f"url(#{clip.get('id')})" for clip in root.iter(f"{SVG}clipPath")}
    assert {group.get("clip-path") for group in root.iter(f"{SVG}g")} - {None} <= clips


def test_coverage_is_drawn(command: Command, folder: Path) -> None:
    output = folder / "coverage.pdf"
    printed = command("coverage", folder / "map.npz", "--above", "-25", "-o", output)
    assert "best server" in printed
    assert len(PdfReader(output).pages) == 1
