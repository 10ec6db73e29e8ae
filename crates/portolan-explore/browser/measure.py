"""What the explorer must hold, measured. Each measurement ends by itself and talks to this machine only.

    measure.py first       from the address to the first picture of the demonstration
    measure.py slider      new bands and panning at 1920 x 1080, from 20,000 sensors in 64 bands
    measure.py load        50 clients for a minute, five tiles a second each, and three that stall: places
                           that nobody has drawn, from the moment the server starts, then places drawn before
    measure.py storm       10,000 random and malformed requests
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import socket
import statistics
import subprocess
import time
import urllib.request
from pathlib import Path
from typing import NamedTuple

from support import COMMAND, Server, browsing, drawn, ready, serving

LARGE = ["--grid", "1024x1024", "--bands", "64", "--emitters", "4"]


def made(folder: Path) -> list[str]:
    """A model of 20,000 sensors on 1024 x 1024 cells in 64 bands, and its readings."""
    folder.mkdir(parents=True, exist_ok=True)
    truth, readings, model = (folder / name for name in ("truth.npz", "readings.npz", "kriging.npz"))
    lines = [
        (truth, ["simulate", "-o", str(truth), *LARGE]),
        (readings, ["sense", str(truth), "-o", str(readings), "--count", "20000"]),
        (model, ["fit", str(readings), "-o", str(model), "--method", "kriging"]),
    ]
    for output, line in lines:
        if not output.exists():
            subprocess.run([COMMAND, *line], check=True)
    return [str(readings), str(model)]


def told(name: str, values: list[float], unit: str = "ms", digits: int = 1) -> None:
    values = sorted(values)
    at = lambda share: values[min(len(values) - 1, int(share * len(values)))]  # noqa: E731
    print(f"{name}: median {statistics.median(values):.{digits}f} {unit}, 95 % {at(0.95):.{digits}f} {unit}, most {values[-1]:.{digits}f} {unit} of {len(values)}")


def first() -> None:
    with serving() as server, browsing() as browser:
        times = []
        for n in range(8):
            page = browser.new_context(viewport={"width": 1440, "height": 900}).new_page()
            start = time.perf_counter()
            page.goto(server.url)
            page.wait_for_function("() => [...(window.portolan?.tiles?.kept?.values() ?? [])].some((tile) => tile.painted)")
            if n > 0:
                times.append(1000 * (time.perf_counter() - start))
            else:
                # The server has only begun to fit: what is seen first are the sensors.
                print(f"first sight with the fit still to be made: {1000 * (time.perf_counter() - start):.0f} ms")
                drawn(page)
            page.context.close()
        told("first picture", times)


def slider(folder: Path) -> None:
    with serving(*made(folder)) as server, browsing() as browser:
        page = browser.new_page(viewport={"width": 1920, "height": 1080})
        ready(page, f"{server.url}#wide=1")
        # The map fills the screen: no header, no strip, nothing but the canvas.
        page.evaluate("() => { for (const part of [document.querySelector('header'), document.getElementById('bands')]) part.style.display = 'none'; }")
        page.wait_for_timeout(300)
        start = time.perf_counter()
        page.evaluate("() => { const app = window.portolan; app.camera.set({ x: 512, y: 512, zoom: 1 }); }")
        drawn(page, 120_000)
        print(f"first sight of a full screen, all bands drawn: {time.perf_counter() - start:.1f} s")
        size = page.evaluate("() => [window.portolan.views[0].canvas.width, window.portolan.views[0].canvas.height]")
        tiles = page.evaluate("() => { const s = window.portolan.views[0].seen(); return (s.x1 - s.x0 + 1) * (s.y1 - s.y0 + 1); }")
        print(f"canvas {size[0]} x {size[1]}, {tiles} tiles")
        page.evaluate("""() => {
            window.newBand = (band) => new Promise((done) => {
                const app = window.portolan, start = performance.now();
                app.tiles.clear();
                const look = () => {
                    const view = app.views[0];
                    // One frame more: by then what was drawn has been handed to the screen.
                    if (app.band === band && view.whole && view.shownBand === band) requestAnimationFrame(() => done(performance.now() - start));
                    else requestAnimationFrame(look);
                };
                app.drawn = (view) => { if (view.whole) view.shownBand = app.band; };
                app.views[0].whole = false;
                const slider = document.getElementById('band');
                slider.value = band;
                slider.dispatchEvent(new Event('input', { bubbles: true }));
                look();
            });
        }""")
        order = list(range(64))
        random.Random(1).shuffle(order)
        times = [page.evaluate("(band) => window.newBand(band)", band) for band in order]
        told("new band on the screen", times)
        frames = page.evaluate("""() => new Promise((done) => {
            const app = window.portolan, times = [];
            let last = performance.now(), n = 0;
            const step = () => {
                const now = performance.now();
                times.push(now - last);
                last = now;
                if (n++ > 240) return done(times.slice(5));
                app.views[0].settle();
                app.camera.set({ x: 512 + 40 * Math.sin(n / 20), y: 512 + 30 * Math.cos(n / 17) });
                requestAnimationFrame(step);
            };
            requestAnimationFrame(step);
        })""")
        told("frame while panning", frames)
        print(f"server: {server.memory():.0f} MB now, {server.memory('VmHWM'):.0f} MB at most")
        fidelity(server)


def fidelity(server: Server) -> None:
    """How far the picture is from the model between the places that it was asked at."""
    import struct

    def tile(step: int) -> list[int]:
        with urllib.request.urlopen(f"{server.url}api/items/2/tile/1/3/3?band=30&step={step}&wait=true") as answer:
            data = answer.read()
        return list(struct.unpack(f"<{len(data) // 2}h", data))

    coarse, fine = tile(2), tile(1)
    m, n = 129, 257
    errors = []
    for row in range(1, n - 1, 2):
        for col in range(1, n - 1, 2):
            j, i = row // 2, col // 2
            four = coarse[j * m + i] + coarse[j * m + i + 1] + coarse[(j + 1) * m + i] + coarse[(j + 1) * m + i + 1]
            errors.append(abs(four / 4 - fine[row * n + col]) / 100)
    told("picture minus model in the middle of four places", errors, "dB", 3)


class Told(NamedTuple):
    """An answer: when it was asked for and how long it took, in seconds and ms."""

    path: str
    asked: float
    took: float
    status: int
    draft: bool
    body: bytes


async def fetch(port: int, path: str, begun: float) -> Told:
    start = time.perf_counter()
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n\r\n".encode())
        await writer.drain()
        head, _, body = (await reader.read(-1)).partition(b"\r\n\r\n")
        took = 1000 * (time.perf_counter() - start)
        return Told(path, start - begun, took, int(head.split(b" ", 2)[1]), b"portolan-detail: draft" in head, body)
    finally:
        writer.close()


async def crowd(port: int, seconds: float, clients: int, paths: list[str]) -> list[Told]:
    told: list[Told] = []
    start = time.perf_counter()

    async def one(path: str) -> None:
        answer = await fetch(port, path, start)
        # The values of some drafts are kept, to be compared with what they become.
        keep = answer.draft and len(told) % 20 == 0
        told.append(answer if keep else answer._replace(body=b""))

    async def client(n: int) -> None:
        # Five a second whatever happens to those before: a server that is slow is not asked less.
        rng = random.Random(n)
        await asyncio.sleep(rng.random() / 5)
        begun, sent = time.perf_counter(), []
        for i in range(int(5 * seconds)):
            await asyncio.sleep(max(0.0, begun + i / 5 - time.perf_counter()))
            sent.append(asyncio.create_task(one(rng.choice(paths))))
        await asyncio.gather(*sent)

    stalled = [socket.create_connection(("127.0.0.1", port)) for _ in range(3)]
    for connection in stalled:
        # A request whose answer is never read, and half of one.
        connection.sendall(f"GET {paths[0]} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode() * 40 + b"GET /api")
    await asyncio.gather(*(client(n) for n in range(clients)))
    for connection in stalled:
        connection.close()
    return told


def summed(name: str, answers: list[Told], server: Server) -> None:
    if not answers:
        return
    times = [answer.took for answer in answers if answer.status == 200]
    wrong = [answer.status for answer in answers if answer.status != 200]
    told(name, times)
    quick = sum(took <= 200 for took in times) / max(1, len(times))
    print(f"  {100 * quick:.1f} % within 200 ms, {len(wrong)} errors {sorted(set(wrong))}, {100 * sum(a.draft for a in answers) / len(answers):.1f} % drafts, server {server.memory():.0f} MB, {server.memory('VmHWM'):.0f} MB at most")


def load(folder: Path, seconds: float) -> None:
    rng = random.Random(0)
    layers = ["power", "power", "power", "spread", "above&level=-30"]

    def paths(zooms: range) -> list[str]:
        """Tiles anywhere on the map, in any band and layer, every zoom as often."""
        out = []
        for _ in range(20_000):
            z = rng.choice(zooms)
            x, y = rng.randrange(2 ** (z + 2)), rng.randrange(2 ** (z + 2))
            out.append(f"/api/items/2/tile/{z}/{x}/{y}?band={rng.randrange(64)}&layer={rng.choice(layers)}")
        return out

    with serving(*made(folder)) as server:
        asked = paths(range(-2, 4))
        answers = asyncio.run(crowd(server.port, seconds, 50, asked))
        distinct = len({answer.path.partition("?")[0] for answer in answers})
        summed(f"places never drawn before (zooms -2 to 3, {distinct} different tiles) for 50 clients over {seconds:.0f} s, beside three that stall", answers, server)
        summed("  of these in the first 5 s", [a for a in answers if a.asked < 5], server)
        summed("  after 20 s, zooms -2 to 0", [a for a in answers if a.asked > 20 and a.path.split("/")[5] in ("-2", "-1", "0")], server)
        for name, low, high in (("first 5 s", 0, 5), ("time after 20 s", 20, seconds)):
            errors = []
            for draft in [a for a in answers if a.body and low <= a.asked < high and "layer=power" in a.path][:40]:
                with urllib.request.urlopen(f"{server.url[:-1]}{draft.path}&wait=true") as answer:
                    full = memoryview(answer.read()).cast("h")
                errors += [abs(a - b) / 100 for a, b in zip(memoryview(draft.body).cast("h"), full) if b != -32768]
            if errors:
                told(f"  drafts of the {name} minus the model", errors, "dB", 2)
        start = time.perf_counter()
        places = [(z, x, y) for z in range(-2, 1) for x in range(2 ** (z + 2)) for y in range(2 ** (z + 2))]
        for z, x, y in places:
            urllib.request.urlopen(f"{server.url}api/items/2/tile/{z}/{x}/{y}?wait=true").read()
        print(f"{len(places)} places in full, as far as they were not: {time.perf_counter() - start:.1f} s")
        answers = asyncio.run(crowd(server.port, seconds, 50, paths(range(-2, 1))))
        summed(f"tiles of these places for 50 clients over {seconds:.0f} s, beside three that stall", answers, server)


# Requests before those that are counted.
FILLING = 15_000


def storm(count: int) -> None:
    rng = random.Random(7)
    words = ["api", "items", "1", "2", "tile", "tiles", "..", "%2e%2e", "page", "app.js", "at", "export", "jobs", "uploads", "preview", "open", "-1", "1e9", "99999999999999999999", "é", "%00", "{}", "sensor", "levels", "places", "commands", "state"]
    keys = ["band", "x", "y", "z", "x0", "x1", "y0", "y1", "layer", "level", "step", "what", "format", "cell-m", "grid", "mask", "region", "n", "count", "token", "bands", "above"]
    values = ["0", "1", "-1", "63", "64", "1e308", "NaN", "inf", "-0", "", "power", "above", "best", "spread", "2", "16", "map", "model", "npz", "csv", "exe", "0.0001", "1x1", "99999x99999", "hull", "spread=-1", "/etc/passwd", "0,0,1,1", "%ff", "a" * 300]
    verbs = ["GET", "GET", "GET", "GET", "POST", "DELETE", "PUT", "HEAD", "OPTIONS", "BREW"]
    bodies = [b"", b"{}", b"[1,2", b'{"kind":"fit"}', b'{"kind":"fit","readings":1,"method":"idw"}', b'{"kind":"validate","readings":1,"folds":-1}', b"\xff\xfe", b"x_m,y_m,dbm_1GHz\n0,0,-1\n1,1,nan\n", b'{"words":{"unit":"volt"}}', b"PK\x03\x04" + b"\x00" * 50]
    with serving() as server:
        while len(json.load(urllib.request.urlopen(f"{server.url}api/state"))["items"]) < 2:
            time.sleep(0.2)
        # What is kept on purpose is filled first: more tiles than the budget holds.
        for z, x, y in [(z, x, y) for z, most in ((4, 4), (5, 5)) for x in range(most) for y in range(most)]:
            urllib.request.urlopen(f"{server.url}api/items/2/tile/{z}/{x}/{y}?step=1&wait=true").read()
        counts: dict[str, int] = {}
        before = 0.0
        # The first requests fill the rest: uploads, a few models, the allocator's own stock.
        for n in range(-FILLING, count):
            if n == 0:
                counts, before = {}, server.memory()
            path = "/" + "/".join(rng.choice(words) for _ in range(rng.randrange(1, 7)))
            if rng.random() < 0.7:
                path = rng.choice(["/api/items/2/tile/0/0/0", "/api/items/2/tiles", "/api/items/2/at", "/api/items/2/export", "/api/items/1/levels", "/api/items/2/sensor", "/api/jobs", "/api/uploads", "/api/uploads/1/open", "/api/items/2/commands", f"/api/items/2/tile/{rng.randrange(-20, 20)}/{rng.randrange(-3, 3)}/{rng.randrange(-3, 3)}"])
            path += "?" + "&".join(f"{rng.choice(keys)}={rng.choice(values)}" for _ in range(rng.randrange(5)))
            verb, body = rng.choice(verbs), rng.choice(bodies)
            head = f"{verb} {path} HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\nConnection: close\r\nContent-Length: {len(body)}\r\nContent-Type: application/json\r\n\r\n".encode()
            data = head + body
            damaged = rng.random() < 0.3
            if damaged:
                # Some of its bytes are others.
                data = bytearray(data)
                for _ in range(rng.randrange(1, 9)):
                    data[rng.randrange(len(data))] = rng.randrange(256)
                data = bytes(data)
            if rng.random() < 0.05:
                damaged = True
                data = rng.randbytes(rng.randrange(1, 400))
            with socket.create_connection(("127.0.0.1", server.port)) as connection:
                connection.settimeout(30)
                answer = b""
                try:
                    connection.sendall(data)
                    if damaged:
                        # It may promise more than it sends.
                        connection.shutdown(socket.SHUT_WR)
                    answer = connection.recv(64)
                    while connection.recv(1 << 16):
                        pass
                except OSError:
                    pass
            status = answer.split(b" ", 2)[1].decode() if answer.startswith(b"HTTP/1.") else "closed without an answer (damaged)" if damaged else "closed without an answer"
            counts[status] = counts.get(status, 0) + 1
            if n > 0 and n % 2500 == 2499:
                print(f"{n + 1} requests: server {server.memory():.0f} MB")
        with urllib.request.urlopen(f"{server.url}api/state") as answer:
            state = json.load(answer)
        print(f"answers: {dict(sorted(counts.items()))}")
        print(f"failures that the server counted: {state['failures']}; alive: {server.process.poll() is None}")
        print(f"server: {before:.0f} MB before, {server.memory():.0f} MB after")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["first", "slider", "load", "storm"])
    parser.add_argument("--data", type=Path, default=Path("explore-data"), help="where the large model is made, or found")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--count", type=int, default=10_000)
    args = parser.parse_args()
    if args.what == "first":
        first()
    elif args.what == "slider":
        slider(args.data)
    elif args.what == "load":
        load(args.data, args.seconds)
    else:
        storm(args.count)


if __name__ == "__main__":
    main()
