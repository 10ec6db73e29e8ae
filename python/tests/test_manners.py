"""Processes: interrupts, forks, and interpreters that go on while we compute."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np

import portolan
from test_estimators import survey

SLOW = """
    import signal, numpy as np, portolan
    # A shell that starts the tests in the background lets its children ignore interrupts.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    rng = np.random.default_rng(0)
    places = rng.uniform(0, 100, (400, 2))
    levels = rng.normal(-70, 5, (400, 8))
    print("ready", flush=True)
    portolan.Unn(emitters=4, iterations=1000000, start_iterations=10).fit(places, levels)
"""


def test_an_interrupt_stops_a_long_fit_within_half_a_second() -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(SLOW)], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None
    assert process.stdout.readline().strip() == b"ready"
    time.sleep(0.5)
    sent = time.monotonic()
    process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=20)
    assert b"KeyboardInterrupt" in error
    # The interpreter's own end is part of what is measured.
    assert time.monotonic() - sent < 1.5


def test_a_fork_after_use_does_not_hang() -> None:
    places, levels = survey()
    expected = portolan.Kriging().fit(places, levels).predict(places)
    child = os.fork()
    if child == 0:
        found = portolan.Kriging().fit(places, levels).predict(places)
        os._exit(0 if np.array_equal(found, expected) else 1)
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            assert os.waitstatus_to_exitcode(status) == 0
            return
        time.sleep(0.05)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    raise AssertionError("the child hung")


def test_other_threads_go_on_while_a_fit_runs() -> None:
    places, levels = survey(sensors=300, bands=8)
    counted = 0
    stop = threading.Event()

    def count() -> None:
        nonlocal counted
        while not stop.is_set():
            counted += 1
            time.sleep(0.005)

    thread = threading.Thread(target=count)
    thread.start()
    portolan.Unn(emitters=2, iterations=300, start_iterations=300).fit(places, levels)
    stop.set()
    thread.join()
    assert counted >= 3
