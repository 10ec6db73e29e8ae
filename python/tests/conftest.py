"""The command and a cluster, for the tests that need them."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from distributed import Client, LocalCluster

ROOT = Path(__file__).resolve().parents[2]
Command = Callable[..., str]


@pytest.fixture(scope="session")
def command() -> Command:
    """Runs ``portolan`` with arguments and gives what it prints."""
    built = [ROOT / "target" / profile / "portolan" for profile in ("debug", "release")]
    binaries = [binary for binary in built if binary.exists()]
    if not binaries:
        subprocess.run(["cargo", "build", "--quiet"], cwd=ROOT, check=True)
        binaries = built[:1]
    newest = max(binaries, key=lambda binary: binary.stat().st_mtime)

    def run(*arguments: Any) -> str:
        words = [str(newest), *map(str, arguments)]
        return subprocess.run(words, check=True, capture_output=True, text=True).stdout

    return run


@pytest.fixture(scope="session")
def client() -> Iterator[Client]:
    """A cluster of two worker processes of a gigabyte each."""
    # Workers that are ended on purpose are missed in the log; nothing else is.
    os.environ.setdefault("DASK_LOGGING__DISTRIBUTED", "error")
    with LocalCluster(
        n_workers=2, threads_per_worker=1, memory_limit="3GiB", dashboard_address=None
    ) as cluster, Client(cluster) as client:
        yield client
