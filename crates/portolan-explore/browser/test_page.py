"""The explorer's page in a real browser: look, ask, fit, drop, cancel, export, survive."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import time
import zipfile
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect
from support import COMMAND, Server, drawn, ready, serving

LEVEL = re.compile(r"−?\d+\.\d")


def colours(page: Page) -> list[int]:
    """How many colours the map shows, and the colour of its middle."""
    return page.evaluate(
        """() => { const view = window.portolan.views[0], c = view.canvas;
            const data = new Uint32Array(view.context.getImageData(0, 0, c.width, c.height).data.buffer);
            return [new Set(data).size, data[(c.height >> 1) * c.width + (c.width >> 1)]]; }"""
    )


def asked(page: Page, x: float, y: float) -> None:
    """Clicks the place at x, y metres."""
    px, py = page.evaluate("([x, y]) => window.portolan.views[0].pixel(x, y)", [x, y])
    page.locator(".view").first.click(position={"x": px, "y": py})


def tab(page: Page, name: str) -> None:
    page.get_by_role("tab", name=name).click()


def link_of(page: Page, *words: str) -> str:
    """The address, as soon as it holds all these words."""
    page.wait_for_function("(words) => { const said = decodeURIComponent(location.hash).replaceAll('+', ' '); return words.every((word) => said.includes(word)); }", arg=list(words))
    return page.url


RUN: set[tuple[Path, str]] = set()


def by_command(lines: str, folder: Path) -> None:
    """Runs the commands that the page shows, each once in a folder: they write the same every time."""
    for line in lines.strip().splitlines():
        if (folder, line) in RUN:
            continue
        RUN.add((folder, line))
        words = shlex.split(line)
        if words[0] == "printf":
            subprocess.run(line, shell=True, check=True, cwd=folder)
            continue
        assert words[0] == "portolan"
        if words[-2] == ">":
            answer = subprocess.run([COMMAND, *words[1:-2]], check=True, cwd=folder, capture_output=True)
            (folder / words[-1]).write_bytes(answer.stdout)
            continue
        subprocess.run([COMMAND, *words[1:], *([] if words[1] == "validate" else ["--force"])], check=True, cwd=folder, capture_output=True)


def downloaded(page: Page, what: str, ending: str, folder: Path) -> tuple[Path, str]:
    """Exports in the page; returns the file and the commands that are shown for it."""
    page.select_option("#take-what", what)
    page.select_option("#take-format", ending)
    expect(page.locator("#take-command")).to_contain_text(f".{ending}")
    expect(page.locator("#take-command")).to_have_attribute("aria-busy", "false")
    with page.expect_download() as waiting:
        page.locator("#take-form button").click()
    path = folder / f"page-{waiting.value.suggested_filename}"
    waiting.value.save_as(path)
    return path, page.locator("#take-command").inner_text()


def test_the_first_picture_comes_within_a_second(page: Page, demo: Server) -> None:
    ready(page, demo.url)
    drawn(page)
    # Again, now that the model is there: from the address to the first tiles on the screen.
    page.goto("about:blank")
    start = time.perf_counter()
    page.goto(demo.url)
    page.wait_for_function("() => window.portolan?.views?.[0]?.before || [...(window.portolan?.tiles?.kept?.values() ?? [])].some((tile) => tile.picture)")
    took = time.perf_counter() - start
    print(f"first picture after {took:.2f} s")
    # The figure itself is measured on a quiet machine; here it must not be far off.
    assert took < 4
    assert colours(page)[0] > 500
    expect(page.locator("#item")).to_have_value("2")
    expect(page.locator("#about")).to_contain_text("Emitters")


def test_a_click_tells_the_spectrum_as_the_model_has_it(page: Page, demo: Server) -> None:
    ready(page, demo.url)
    asked(page, 20.3, 40.7)
    big = page.locator("#here-told .big")
    expect(big).to_contain_text("dB")
    told = page.evaluate("() => window.portolan.here.told")
    fetched = page.evaluate("async ({x, y}) => (await fetch(`/api/items/2/at?x=${x}&y=${y}`)).json()", told["place"])
    band = page.evaluate("() => window.portolan.band")
    shown = float(LEVEL.search(big.inner_text())[0].replace("−", "-"))
    assert abs(shown - fetched["level"][band]) < 0.06
    assert abs(told["place"]["x"] - 20.3) < 1 and abs(told["place"]["y"] - 40.7) < 1
    expect(page.locator("#here-told table").first).to_contain_text("Sensor")
    # What the map shows there is what the model says there.
    value = page.evaluate("(place) => window.portolan.views[0].value(place)", told["place"])
    assert abs(value - fetched["level"][band]) < 0.2


def test_the_slider_shows_another_band(page: Page, demo: Server) -> None:
    ready(page, demo.url)
    drawn(page)
    before = colours(page)
    page.locator("#band").fill("3")
    expect(page.locator("#band-name")).to_have_text("band 3 (0 to 63)")
    drawn(page)
    assert colours(page) != before
    page.locator("#band").press("ArrowRight")
    expect(page.locator("#band-name")).to_have_text("band 4 (0 to 63)")
    link_of(page, "band=4")


def test_layers_are_different_pictures(page: Page, demo: Server) -> None:
    ready(page, demo.url)
    tab(page, "Layers")
    seen = set()
    for layer, title in [("power", "Power"), ("spread", "Spread"), ("above", "Chance above"), ("best", "Strongest band")]:
        page.check(f"[name=layer][value={layer}]")
        expect(page.locator("#legend-title")).to_contain_text(title)
        drawn(page)
        seen.add(tuple(colours(page)))
    assert len(seen) == 4


def test_hovering_a_sensor_says_what_it_read_and_what_others_say(page: Page, demo: Server) -> None:
    ready(page, demo.url)
    x, y = page.evaluate("() => { const a = window.portolan, p = a.places.get(1); return a.views[0].pixel(p.x_m[7], p.y_m[7]); }")
    box = page.locator(".view").bounding_box()
    assert box
    page.mouse.move(box["x"] + x, box["y"] + y)
    expect(page.locator("#tip")).to_contain_text("Sensor 7")
    expect(page.locator("#tip")).to_contain_text("read")
    expect(page.locator("#tip")).to_contain_text("the others say")


def test_the_keyboard_moves_zooms_and_asks(page: Page, demo: Server) -> None:
    ready(page, demo.url)
    view = page.locator(".view")
    view.focus()
    before = page.evaluate("() => ({ ...window.portolan.camera, listeners: 0 })")
    for key in ["ArrowRight", "ArrowUp", "+", "]"]:
        view.press(key)
    after = page.evaluate("() => ({ ...window.portolan.camera, listeners: 0 })")
    assert after["x"] > before["x"] and after["y"] > before["y"] and after["zoom"] > before["zoom"]
    view.press("Enter")
    expect(page.locator("#here-told .big")).to_contain_text("dB")
    view.press("0")
    page.get_by_role("tab", name="Here").press("ArrowRight")
    expect(page.get_by_role("tab", name="Layers")).to_have_attribute("aria-selected", "true")


def test_a_link_shows_the_same_again(page: Page, demo: Server) -> None:
    ready(page, demo.url)
    page.locator("#band").fill("9")
    tab(page, "Layers")
    page.check("[name=layer][value=spread]")
    asked(page, 12, 50)
    page.evaluate("() => window.portolan.camera.set({ x: 20, y: 44, zoom: 4.5 })")
    link = link_of(page, "band=9", "layer=spread", "centre=20,44", "zoom=4.5", "at=")
    page.goto("about:blank")
    ready(page, link)
    app = page.evaluate("() => { const a = window.portolan; return [a.band, a.layer, a.camera.x, a.camera.y, a.camera.zoom, a.at]; }")
    assert app[:5] == [9, "spread", 20, 44, 4.5]
    assert abs(app[5]["x"] - 12) < 1
    expect(page.locator("#here-told .big")).to_be_visible()


def test_a_fit_runs_and_two_methods_stand_side_by_side(page: Page, demo: Server) -> None:
    ready(page, demo.url)
    tab(page, "Fit")
    page.select_option("#fit-method", "kriging")
    expect(page.locator("#fit-help")).to_contain_text("kriging")
    page.locator("#fit summary").click()
    page.locator("#option-covariance").fill("matern32")
    page.locator("#fit-form button").click()
    expect(page.locator("#fit-told")).to_contain_text("Fitted in", timeout=60_000)
    expect(page.locator("#fit-told pre")).to_contain_text("--set covariance=matern32")
    assert page.evaluate("() => window.portolan.item.report.method") == "kriging"
    page.locator("#other").select_option("2")
    expect(page.locator(".view")).to_have_count(2)
    drawn(page)
    box = page.locator(".view").first.bounding_box()
    assert box
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.mouse.move(box["x"] + box["width"] / 2 + 3, box["y"] + box["height"] / 2 + 20)
    expect(page.locator("#tip")).to_be_visible()
    page.get_by_label("Difference").check()
    expect(page.locator(".view")).to_have_count(1)
    expect(page.locator("#legend-title")).to_contain_text("Difference")
    drawn(page)
    asked(page, 30, 30)
    expect(page.locator("#here-told .big")).to_have_count(2)
    # A wrong option is refused in words.
    page.locator("#option-covariance").evaluate("(input) => { input.closest('details').open = true; }")
    tab(page, "Fit")
    page.locator("#option-covariance").fill("wobbly")
    page.locator("#fit-form button").click()
    expect(page.get_by_role("alert").filter(has_text="covariance")).to_be_visible()


def test_a_fit_can_be_cancelled(page: Page, demo: Server) -> None:
    ready(page, demo.url)
    tab(page, "Fit")
    page.select_option("#fit-method", "unn")
    page.locator("#fit summary").click()
    page.locator("#option-iterations").fill("900000")
    items = page.locator("#item option").count()
    page.locator("#fit-form button").click()
    expect(page.locator(".job .what")).to_contain_text("Fitting unn")
    page.get_by_role("button", name="Cancel: Fitting unn").click()
    expect(page.locator("#fit-told")).to_contain_text("Cancelled", timeout=20_000)
    expect(page.locator(".job")).to_have_count(0)
    assert page.locator("#item option").count() == items


def test_validation_and_advice_are_shown_on_the_map(page: Page, demo: Server) -> None:
    ready(page, demo.url)
    tab(page, "Check")
    for name, on in [("auto", False), ("field", False), ("kriging", True), ("idw", True)]:
        page.locator(f"#validate-methods input[value={name}]").set_checked(on)
    page.locator("#validate-form button").click()
    table = page.locator("#validate-told table")
    expect(table).to_contain_text("kriging", timeout=60_000)
    page.get_by_label("Errors on the map").select_option("idw")
    # Both scales can be read: that of the errors, and that of the layer under them.
    expect(page.locator("#legend-errors .title")).to_contain_text("Error of idw")
    expect(page.locator("#legend-title")).to_contain_text("Power")
    page.locator("#item").select_option("2")
    page.locator("#advise-count").fill("4")
    page.locator("#advise-form button").click()
    expect(page.locator("#advise-told tbody tr")).to_have_count(4, timeout=60_000)
    assert page.evaluate("() => window.portolan.advice.length") == 4


def test_exports_hold_the_command_s_bytes(page: Page, demo: Server, tmp_path: Path) -> None:
    ready(page, f"{demo.url}#item=fit%3A%7B%22of%22%3A%22demo%22%2C%22method%22%3A%22field%22%2C%22settings%22%3A%7B%7D%2C%22emitters%22%3A4%2C%22seed%22%3A0%7D")
    asked(page, 20, 20)
    page.wait_for_selector("#here-told .big")
    tab(page, "Export")
    for what, ending in [("model", "npz"), ("map", "tif"), ("map", "nc"), ("map", "csv"), ("emitters", "geojson"), ("readings", "csv"), ("place", "csv"), ("picture", "png"), ("picture", "svg"), ("spectrum", "svg"), ("coverage", "json"), ("coverage", "svg")]:
        path, commands = downloaded(page, what, ending, tmp_path)
        by_command(commands, tmp_path)
        name = shlex.split(commands.strip().splitlines()[-1])
        own = tmp_path / (name[name.index("-o") + 1] if "-o" in name else name[-1] if ">" in name else name[3])
        assert path.read_bytes() == own.read_bytes(), (what, ending, commands)
    (tmp_path / "walk.csv").write_text("name,x_m,y_m\nwell,3.5,2\nmill,17,11.25\n")
    page.select_option("#take-what", "places")
    page.set_input_files("#take-table", tmp_path / "walk.csv")
    expect(page.locator("#take-command")).to_contain_text("predict model.npz walk.csv -o answers.csv")
    path, commands = downloaded(page, "places", "csv", tmp_path)
    by_command(commands, tmp_path)
    assert path.read_bytes() == (tmp_path / "answers.csv").read_bytes()
    path, commands = downloaded(page, "map", "zarr", tmp_path)
    by_command(commands, tmp_path)
    with zipfile.ZipFile(path) as packed:
        for name in packed.namelist():
            assert packed.read(name) == (tmp_path / name).read_bytes(), name
        assert len(packed.namelist()) > 5
    page.locator("#command").click()
    expect(page.locator("#command-text")).to_contain_text("portolan plot map.npz -o picture.png --band")


def test_a_dropped_table_asks_for_columns_and_is_fitted(page: Page, survey: Path) -> None:
    with serving() as server:
        ready(page, server.url)
        page.wait_for_function("() => window.portolan.item?.kind === 'model'", timeout=60_000)
        text = survey.read_text()
        page.evaluate(
            """(text) => { const data = new DataTransfer();
                data.items.add(new File([text], 'walk.csv', { type: 'text/csv' }));
                for (const kind of ['dragenter', 'dragover', 'drop']) window.dispatchEvent(new DragEvent(kind, { dataTransfer: data, bubbles: true, cancelable: true })); }""",
            text,
        )
        dialog = page.locator("#open-dialog")
        expect(dialog).to_be_visible()
        expect(page.locator("#open-told")).to_have_class("bad")
        expect(page.locator("#open-go")).to_be_disabled()
        expect(page.locator("#open-table")).to_contain_text("2024-05-01T10:00:00Z")
        page.select_option("#open-x", "east")
        page.select_option("#open-y", "north")
        page.select_option("#open-time", "when")
        page.select_option("#open-unit", "dbm")
        page.locator("#open-bands").fill("ap*")
        page.locator("#open-bands").press("Tab")
        expect(page.locator("#open-told")).to_contain_text("48 sensors, 2 band(s), dbm")
        page.locator("#open-go").click()
        expect(dialog).to_be_hidden()
        expect(page.locator("#item")).to_have_value("4", timeout=60_000)
        page.wait_for_function("() => window.portolan.item.id === 4")
        assert page.evaluate("() => window.portolan.item.labels") == ["ap hall", "ap lab"]
        expect(page.locator("#level-unit")).to_have_text("dBm")
        # The readings have times: the line of time hides the later ones.
        expect(page.locator("#times")).to_be_visible()
        page.locator("#time").fill("500")
        assert page.evaluate("() => window.portolan.until") > 1.7e9
        # And what was said about the file is in the command.
        tab(page, "Export")
        page.select_option("#take-what", "model")
        expect(page.locator("#take-command")).to_contain_text("--unit dbm")


def test_a_wrong_file_gets_a_line_and_harms_nothing(page: Page, demo: Server, tmp_path: Path) -> None:
    ready(page, demo.url)
    items = page.locator("#item option").count()
    for name, content in [("notes.csv", b"hello\nworld\n"), ("broken.npz", b"PK\x03\x04 no"), ("empty.csv", b"")]:
        path = tmp_path / name
        path.write_bytes(content)
        page.set_input_files("#file", path)
        expect(page.locator("#open-dialog")).to_be_visible()
        expect(page.locator("#open-told")).to_contain_text(name)
        expect(page.locator("#open-go")).to_be_disabled()
        page.locator("#open-dialog [data-close]").click()
    assert page.locator("#item option").count() == items


def test_a_floor_plan_lies_under_the_map(page: Page, demo: Server) -> None:
    ready(page, demo.url)
    drawn(page)
    before = colours(page)
    tab(page, "Layers")
    picture = page.evaluate("""async () => { const c = new OffscreenCanvas(40, 20), x = c.getContext('2d');
        x.fillStyle = '#f00'; x.fillRect(0, 0, 40, 20); return [...new Uint8Array(await (await c.convertToBlob()).arrayBuffer())]; }""")
    page.set_input_files("#plan-file", {"name": "plan.png", "mimeType": "image/png", "buffer": bytes(picture)})
    expect(page.locator("#plan-where")).to_be_visible()
    page.locator("#plan-y1").fill("63.5")
    page.locator("#plan-y1").press("Tab")
    middle = "(colour) => { const view = window.portolan.views[0], c = view.canvas; return new Uint32Array(view.context.getImageData(c.width >> 1, c.height >> 1, 1, 1).data.buffer)[0] === colour; }"
    page.wait_for_function(middle.replace("===", "!=="), arg=before[1])
    page.locator("#plan-off").click()
    page.wait_for_function(middle, arg=before[1])


def test_a_server_that_dies_and_comes_back_is_found_again(page: Page, browser: Browser) -> None:
    with serving() as server:
        ready(page, server.url)
        page.wait_for_function("() => window.portolan.item?.kind === 'model'", timeout=60_000)
        page.locator("#band").fill("7")
        link_of(page, "band=7")
        server.stop()
        page.locator("#band").fill("20")
        expect(page.locator("#gone")).to_be_visible(timeout=20_000)
        server.start()
        page.wait_for_selector("html[data-ready]")
        expect(page.locator("#gone")).to_be_hidden(timeout=20_000)
        page.wait_for_function("() => window.portolan?.item?.kind === 'model' && window.portolan.band === 20", timeout=30_000)
        drawn(page)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("device", ["desktop", "phone"])
def test_pictures_and_axe(browser: Browser, demo: Server, survey: Path, pictures: Path, device: str, scheme: str) -> None:
    sizes = {"desktop": {"width": 1440, "height": 900}, "phone": {"width": 390, "height": 844}}
    context = browser.new_context(viewport=sizes[device], color_scheme=scheme, device_scale_factor=2 if device == "phone" else 1, has_touch=device == "phone")  # type: ignore[arg-type]
    page = context.new_page()
    try:
        ready(page, demo.url)
        drawn(page)
        page.evaluate("() => window.portolan.ask({ x: 24, y: 30 })")
        page.wait_for_selector("#here-told .big")
        axe = Path(os.environ["AXE"]).read_text()
        # What a tester injects is not bound by the page's own policy.
        page.evaluate(axe)
        for name in ["Here", "Layers", "Fit", "Check", "Export"]:
            tab(page, name)
            page.screenshot(path=pictures / f"{device}-{scheme}-{name.lower()}.png", full_page=device == "phone")
            found = page.evaluate("() => axe.run(document)")
            assert not found["violations"], [(v["id"], [n["html"] for n in v["nodes"]][:3]) for v in found["violations"]]
        # The dialogs, with everything unfolded.
        for name, show in [("close", lambda: page.locator("#close").click()), ("open", lambda: page.set_input_files("#file", survey))]:
            show()
            page.locator(f"#{name}-dialog").wait_for(state="visible")
            page.locator("#open-more").evaluate("(more) => { more.open = true; }")
            page.screenshot(path=pictures / f"{device}-{scheme}-dialog-{name}.png")
            found = page.evaluate("(name) => axe.run(`#${name}-dialog`)", name)
            assert not found["violations"], [(v["id"], [n["html"] for n in v["nodes"]][:3]) for v in found["violations"]]
            page.locator(f"#{name}-dialog [data-close]").click()
        # Nothing is wider than the screen.
        assert page.evaluate("() => document.documentElement.scrollWidth <= innerWidth")
    finally:
        context.close()
