"""The Python of the documentation runs as it is printed."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import portolan

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "README.md"
PAGES = [ROOT / "docs" / "python.md", ROOT / "python" / "README.md"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
@pytest.mark.filterwarnings("ignore")
def test_the_blocks_of_a_page_run(page: Path) -> None:
    blocks = re.findall(r"^```python[^\n]*\n(.*?)^```", page.read_text(), flags=re.S | re.M)
    assert blocks
    names: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, str(page), "exec"), names)
    if "whole" in names:
        # What Ray drew in strips is the map.
        drawn = names["model"].map(grid=(40, 40, 1.0, 0.0, 0.0))["power_dbm"].values  # type: ignore[attr-defined]
        assert np.allclose(names["whole"], drawn, atol=1e-9)  # type: ignore[arg-type]


@pytest.mark.filterwarnings("ignore")
def test_the_ten_lines_of_the_readme_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = README.read_text()
    survey = re.findall(r"^```text\n(x_m.*?)^```", text, flags=re.S | re.M)[0]
    lines = re.findall(r"^```python\n(.*?)^```", text, flags=re.S | re.M)[0]
    assert len(lines.splitlines()) <= 10
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("matplotlib.pyplot.show", lambda: None)
    Path("survey.csv").write_text(survey)
    truth = portolan.simulate((30, 30), bands=5)
    portolan.sense(truth, seed=2).write("readings.npz")
    names: dict[str, object] = {}
    exec(compile(lines, str(README), "exec"), names)
    assert Path("map.zarr").is_dir()
