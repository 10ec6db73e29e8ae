"""The explorer from Python: a server in the process, shown by a notebook."""

from __future__ import annotations

import json
import struct
import time
import urllib.error
import urllib.request

import numpy as np
import pytest

import portolan
from test_estimators import survey


def asked(page: portolan.Explorer, path: str) -> bytes:
    with urllib.request.urlopen(page.url + path, timeout=30) as answer:
        return bytes(answer.read())


def test_the_page_draws_what_the_model_predicts() -> None:
    places, levels = survey()
    readings = portolan.Readings(places, levels)
    model = portolan.fit(readings, "kriging")
    with portolan.explore(model, walk=readings) as page:
        items = json.loads(asked(page, "api/state"))["items"]
        assert [(i["name"], i["kind"]) for i in items] == [("kriging", "model"), ("walk", "readings")]
        assert items[0]["readings"] == 2
        tile = asked(page, "api/items/1/tile/2/0/0?band=0&step=16")
        values = np.array(struct.unpack("<289h", tile)).reshape(17, 17) / 100
        side = 256 / 2**2
        for row, col in [(14, 3), (16, 0), (10, 5)]:
            at = [[col * side / 16, side - row * side / 16]]
            assert abs(values[row, col] - model.predict(at)[0, 0]) < 0.006
        assert b"<!doctype html>" in asked(page, "")
        shown = page._repr_html_()
        assert f'src="{page.url}"' in shown and "<iframe" in shown
        url = page.url
    with pytest.raises(urllib.error.URLError):
        urllib.request.urlopen(url, timeout=5)


def test_readings_alone_are_fitted_and_estimators_are_shown() -> None:
    places, levels = survey()
    with portolan.explore(portolan.Readings(places, levels), method="idw") as page:
        for _ in range(200):
            jobs = json.loads(asked(page, "api/state"))["jobs"]
            if jobs[0]["state"] != "running":
                break
            time.sleep(0.05)
        assert jobs[0]["state"] == "done"
    with portolan.explore(portolan.Kriging().fit(places, levels)) as page:
        assert json.loads(asked(page, "api/items/1"))["name"] == "Kriging"


def test_what_cannot_be_shown_is_refused() -> None:
    with pytest.raises(TypeError, match="give a fitted estimator"):
        portolan.explore(3)
    with pytest.raises(TypeError, match="give a fitted estimator"):
        portolan.explore(portolan.Kriging())
    with pytest.raises(ValueError, match="magic"):
        portolan.explore(portolan.Readings(*survey()), method="magic")
