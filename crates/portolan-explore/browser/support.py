"""A server and a browser for tests and measurements."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

ROOT = Path(__file__).resolve().parents[3]
COMMAND = os.environ.get("PORTOLAN", str(ROOT / "target" / "debug" / "portolan"))
CHROMIUM = os.environ.get("CHROMIUM", "/usr/bin/chromium")
# Without these the browser looks for its maker's servers at every start.
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Server:
    """The command, running."""

    def __init__(self, *words: str, port: int | None = None, folder: Path | None = None) -> None:
        self.words, self.port, self.folder = words, port or free_port(), folder
        self.url = f"http://127.0.0.1:{self.port}/"
        self.start()

    def start(self) -> None:
        line = [COMMAND, "explore", *self.words, "--no-open", "--port", str(self.port)]
        self.process = subprocess.Popen(line, cwd=self.folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        for _ in range(600):
            if self.process.poll() is not None:
                raise RuntimeError(self.process.stderr.read().decode() if self.process.stderr else "it ended")
            with contextlib.suppress(OSError), urllib.request.urlopen(f"{self.url}api/state", timeout=5):
                return
            time.sleep(0.05)
        raise RuntimeError("the server does not answer")

    def stop(self) -> None:
        self.process.kill()
        self.process.wait()

    def memory(self, what: str = "VmRSS") -> float:
        """Megabytes of the server."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return next(int(line.split()[1]) for line in status.splitlines() if line.startswith(what)) / 1024


@contextlib.contextmanager
def serving(*words: str, **more: object) -> Iterator[Server]:
    server = Server(*words, **more)  # type: ignore[arg-type]
    try:
        yield server
    finally:
        server.stop()


@contextlib.contextmanager
def browsing() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        try:
            yield browser
        finally:
            browser.close()


def ready(page: Page, url: str) -> None:
    """Opens the page and waits until it has drawn what it shows."""
    page.goto(url)
    page.wait_for_selector("html[data-ready]")


def drawn(page: Page, timeout: float = 60_000) -> None:
    """Waits until every tile that is seen is there in its final detail."""
    page.wait_for_function(
        """() => { const app = window.portolan; return app.item && app.item.kind !== 'readings' && app.views.every((view) => {
            const seen = view.seen(), host = view.host(), tiles = app.tiles;
            if (!seen || !host.source) return false;
            for (let y = seen.y0; y <= seen.y1; y++) for (let x = seen.x0; x <= seen.x1; x++) {
              const tile = tiles.kept.get(tiles.key(host.source, seen.z, x, y));
              if (!tile || tile.draft) return false;
            }
            return view.whole && !view.frame;
        }); }""",
        timeout=timeout,
    )
