"""What the page shows belongs to what is shown: readings, errors, advice, names, links and commands."""

from __future__ import annotations

import itertools
import math
import re
import shutil
import subprocess
from pathlib import Path
from urllib.parse import quote

from playwright.sync_api import Browser, Page, Route, expect
from support import COMMAND, Server, drawn, ready, serving
from test_page import asked, by_command, downloaded, link_of, tab

TABLE = "x_m,y_m,dbm_2412MHz\n" + "".join(f"{3 * (i % 6)},{4 * (i // 6)},{-50 - i % 7 - i // 6}\n" for i in range(36))


def own_items(page: Page) -> dict[str, int]:
    """The numbers of items by how the list calls them."""
    return page.evaluate("() => Object.fromEntries([...document.querySelectorAll('#item option')].map((o) => [o.textContent, Number(o.value)]))")


def validate(page: Page, method: str) -> None:
    tab(page, "Check")
    page.locator("#validate-methods input").evaluate_all("(all, method) => all.forEach((box) => (box.checked = box.value === method))", method)
    page.locator("#validate-form button").click()
    expect(page.locator("#validate-told table")).to_contain_text(method, timeout=60_000)


def test_validation_is_about_the_readings_that_are_shown(page: Page, tmp_path: Path) -> None:
    for name in ["one.csv", "two.csv"]:
        (tmp_path / name).write_text(TABLE if name == "one.csv" else TABLE[: len(TABLE) // 2].rsplit("\n", 1)[0] + "\n")
    with serving("one.csv", "two.csv", "--method", "idw", folder=tmp_path) as server:
        ready(page, server.url)
        page.wait_for_function("() => window.portolan.item?.kind === 'model'")
        page.locator("#item").select_option("2")
        page.wait_for_function("() => window.portolan.item.id === 2")
        expect(page.locator("#fit-readings")).to_have_value("2")
        validate(page, "idw")
        expect(page.locator("#validate-of")).to_contain_text("two.csv")
        expect(page.locator("#validate-told pre")).to_contain_text("portolan validate two.csv")
        expect(page.locator("#validate-told h2")).to_have_text("Errors in two.csv")
        page.get_by_label("Errors on the map").select_option("idw")
        expect(page.locator("#legend-errors")).to_be_visible()
        # Another item: neither its errors nor the way to them.
        page.locator("#item").select_option("1")
        expect(page.locator("#validate-of")).to_contain_text("one.csv")
        expect(page.locator("#validate-told")).to_be_empty()
        expect(page.locator("#legend-errors")).to_be_hidden()
        expect(page.locator("#fit-readings")).to_have_value("1")
        assert page.evaluate("() => window.portolan.errors") is None
        # Back again they are there.
        page.locator("#item").select_option("2")
        expect(page.locator("#validate-told h2")).to_have_text("Errors in two.csv")
        expect(page.get_by_label("Errors on the map")).to_have_value("")


def test_advice_belongs_to_its_model(page: Page, demo: Server) -> None:
    ready(page, demo.url)
    page.locator("#item").select_option("2")
    page.wait_for_function("() => window.portolan.item.id === 2")
    tab(page, "Check")
    page.locator("#advise-count").fill("3")
    page.locator("#advise-form button").click()
    expect(page.locator("#advise-told tbody tr")).to_have_count(3, timeout=60_000)
    assert page.evaluate("() => window.portolan.advice.length") == 3
    page.locator("#item").select_option("1")
    expect(page.locator("#advise-told")).to_be_empty()
    assert page.evaluate("() => window.portolan.advice.length") == 0


def test_what_was_said_about_a_map_makes_the_same_bytes(page: Page, town: Path) -> None:
    with serving(town.name, "--unit", "dbm", "--cell-m", "2", folder=town.parent) as server:
        ready(page, server.url)
        tab(page, "Export")
        assert "kmz" not in page.locator("#take-format option").evaluate_all("(all) => all.map((o) => o.value)")
        for what, ending, own in [("map", "tif", "map.tif"), ("picture", "svg", "picture.svg"), ("coverage", "json", "coverage.json"), ("coverage", "svg", "coverage.svg")]:
            path, commands = downloaded(page, what, ending, town.parent)
            assert "--unit dbm --cell-m 2" in commands
            by_command(commands, town.parent)
            assert path.read_bytes() == (town.parent / own).read_bytes(), commands


def test_a_model_from_a_file_is_copied(page: Page, tmp_path: Path) -> None:
    (tmp_path / "walk.csv").write_text(TABLE)
    by_command("portolan fit walk.csv -o 'mein modell.npz' --method kriging", tmp_path)
    with serving("mein modell.npz", folder=tmp_path) as server:
        ready(page, server.url)
        tab(page, "Export")
        page.select_option("#take-what", "model")
        expect(page.locator("#take-command")).to_have_text("cp 'mein modell.npz' model.npz")
        expect(page.locator("#take-note")).not_to_contain_text("same bytes")


def test_the_commands_do_what_is_seen_or_say_that_none_does(page: Page, demo: Server, tmp_path: Path) -> None:
    ready(page, demo.url)
    page.locator("#item").select_option("2")
    page.wait_for_function("() => window.portolan.item.id === 2")
    text, note = page.locator("#command-text"), page.locator("#command-note")

    def commands() -> str:
        page.locator("#command").click()
        expect(page.locator("#command-dialog")).to_be_visible()
        told = text.inner_text()
        page.locator("#command-dialog [data-close]").click()
        return told

    tab(page, "Layers")
    page.select_option("#palette", "cividis")
    page.select_option("#limits", "own")
    page.locator("#limit-low").fill("-35")
    page.locator("#limit-low").press("Tab")
    low, high = page.evaluate("() => window.portolan.own")
    assert f"--colours cividis --range {low},{high}" in commands()
    tab(page, "Export")
    path, lines = downloaded(page, "picture", "svg", tmp_path)
    assert "--colours cividis" in lines
    by_command(lines, tmp_path)
    assert path.read_bytes() == (tmp_path / "picture.svg").read_bytes()
    # The area above a level: the file that the lines before it make.
    tab(page, "Layers")
    page.check("[name=layer][value=above]")
    lines = commands().splitlines()
    assert lines[-1].startswith("portolan coverage model.npz --above ") and sum("portolan fit" in line for line in lines) == 1
    # The spread, with steps, lines and a heading.
    page.check("[name=layer][value=spread]")
    assert "--spread" in commands()
    tab(page, "Export")
    page.select_option("#take-what", "picture")
    for field, said in [("#take-title", "Hall & yard"), ("#take-levels", "0.5,1,2"), ("#take-contours", "1.5")]:
        page.locator(field).fill(said)
        page.locator(field).press("Tab")
    expect(page.locator("#take-command")).to_contain_text("--spread --levels 0.5,1,2 --contours 1.5 --title 'Hall & yard'")
    path, lines = downloaded(page, "picture", "svg", tmp_path)
    by_command(lines, tmp_path)
    assert path.read_bytes() == (tmp_path / "picture.svg").read_bytes()
    page.locator("#take-levels").fill("2,1")
    page.locator("#take-levels").press("Tab")
    expect(page.locator("#take-note")).to_contain_text("expected 1 to 30 rising values")
    # What no command draws.
    tab(page, "Layers")
    page.check("[name=layer][value=best]")
    assert "plot" not in commands()
    expect(note).to_contain_text("No command draws the best server")


def test_dropped_files_keep_their_names(page: Page, tmp_path: Path) -> None:
    path = tmp_path / "Messung Büro 2.csv"
    path.write_text(TABLE)
    with serving(folder=tmp_path) as server:
        ready(page, server.url)
        page.set_input_files("#file", path)
        expect(page.locator("#open-title")).to_have_text("Open Messung Büro 2.csv")
        page.locator("#open-go").click()
        expect(page.locator("#item option", has_text="Messung Büro 2.csv (readings)")).to_have_count(1)
        expect(page.locator("#fit-told pre").first).to_contain_text("portolan fit 'Messung Büro 2.csv'")
        page.wait_for_function("() => decodeURIComponent(location.hash).replaceAll('+', ' ').includes('Messung Büro 2.csv')")


def test_every_running_job_can_be_cancelled(page: Page, tmp_path: Path) -> None:
    with serving() as server:
        ready(page, server.url)
        page.wait_for_function("() => window.portolan.item?.kind === 'model'", timeout=60_000)
        tab(page, "Fit")
        page.select_option("#fit-method", "unn")
        page.locator("#fit summary").click()
        page.locator("#option-iterations").fill("900000")
        for count in [1, 2]:
            page.locator("#fit-form button").click()
            expect(page.locator(".job")).to_have_count(count)
        # A page that comes later sees both, too.
        page.reload()
        expect(page.locator(".job")).to_have_count(2)
        for left in [1, 0]:
            page.locator(".job button").first.click()
            expect(page.locator(".job")).to_have_count(left, timeout=20_000)


def test_comparing_keeps_all_in_sight(page: Page, tmp_path: Path) -> None:
    for name in ["a", "b"]:
        (tmp_path / name).mkdir()
        by_command("portolan simulate -o map.npz --grid 20x44 --bands 3", tmp_path / name)
    with serving("a/map.npz", "b/map.npz", folder=tmp_path) as server:
        ready(page, server.url)
        # Two files of the same name are told apart, in the list and in links.
        assert list(own_items(page)) == ["a/map.npz", "b/map.npz"]
        page.locator("#item").select_option("1")
        page.wait_for_function("() => location.hash.includes('a%2Fmap.npz')")
        page.locator("#other").select_option("2")
        expect(page.locator(".view")).to_have_count(2)
        assert page.evaluate("() => window.portolan.showsAll()")
        page.wait_for_function("() => location.hash.includes('b%2Fmap.npz')")
        link = page.url
        page.goto("about:blank")
        ready(page, link)
        assert page.evaluate("() => [window.portolan.item.id, window.portolan.other.id]") == [1, 2]
        # No command draws two maps.
        page.locator("#command").click()
        expect(page.locator("#command-note")).to_contain_text("side by side")
        expect(page.locator("#command-text")).to_be_hidden()


def test_a_link_makes_both_fits_again(page: Page, tmp_path: Path) -> None:
    (tmp_path / "walk.csv").write_text(TABLE)
    with serving("walk.csv", "--method", "idw", folder=tmp_path) as server:
        ready(page, server.url)
        for method in ["kriging", "nearest"]:
            tab(page, "Fit")
            page.select_option("#fit-method", method)
            page.locator("#fit-form button").click()
            expect(page.locator("#item")).to_contain_text(f"{method} on walk.csv", timeout=60_000)
        items = own_items(page)
        page.locator("#item").select_option(str(items["kriging on walk.csv"]))
        page.locator("#other").select_option(str(items["nearest on walk.csv"]))
        page.wait_for_function("() => location.hash.includes('other=fit')")
        link = page.url
        page.goto("about:blank")
        server.stop()
        server.start()
        ready(page, link)
        page.wait_for_function("() => window.portolan.item?.name === 'kriging' && window.portolan.other?.name === 'nearest'", timeout=60_000)
        expect(page.locator(".view")).to_have_count(2)


def test_a_link_keeps_time_emitter_advice_and_errors(page: Page, tmp_path: Path) -> None:
    # Around a transmitter at x 4, y 6.
    rows = [(3 * (i % 6), 4 * (i // 6)) for i in range(36)]
    lines = ["x_m,y_m,dbm_2412MHz", *(f"{x},{y},{-30 - 25 * math.log10(1 + math.hypot(x - 4, y - 6)):.2f}" for x, y in rows)]
    (tmp_path / "walk.csv").write_text("\n".join([lines[0] + ",time"] + [f"{line},2024-05-01T10:{i:02}:00Z" for i, line in enumerate(lines[1:])]))
    with serving("walk.csv", "--method", "field", folder=tmp_path) as server:
        ready(page, server.url)
        page.wait_for_function("() => window.portolan.item?.kind === 'model'", timeout=60_000)
        page.locator("#time").fill("400")
        until = page.evaluate("() => window.portolan.until")
        page.get_by_role("button", name="Show emitter 1").click()
        tab(page, "Check")
        page.locator("#advise-count").fill("4")
        page.locator("#advise-form button").click()
        expect(page.locator("#advise-told tbody tr")).to_have_count(4, timeout=60_000)
        validate(page, "idw")
        page.get_by_label("Errors on the map").select_option("idw")
        link = link_of(page, "time=", "emitter=1", "advise=4", "errors=idw")
        advice = page.evaluate("() => window.portolan.advice")

        def same() -> None:
            page.wait_for_function("() => window.portolan.advice.length === 4 && window.portolan.errors?.method === 'idw'", timeout=60_000)
            app = page.evaluate("() => { const a = window.portolan; return [a.until, a.emitter, a.advice, document.getElementById('time').value]; }")
            assert app == [until, 0, advice, "400"]
            expect(page.locator("#advise-told tbody tr")).to_have_count(4)
            expect(page.get_by_label("Errors on the map")).to_have_value("idw")
            link_of(page, "time=", "emitter=1", "advise=4", "errors=idw")

        # The server has the results.
        page.goto("about:blank")
        ready(page, link)
        same()
        assert page.evaluate("async () => (await (await fetch('/api/state')).json()).jobs.length") == 3
        # Results that are on their way are waited for.
        page.goto("about:blank")
        late = True

        def running(route: Route) -> None:
            """Advice that ends when the test says so."""
            answer = route.fetch()
            told = answer.json()
            for job in told.get("jobs", [told]) if late else []:
                if job["kind"] == "advise":
                    job.update(state="running")
                    job.pop("advice", None)
            route.fulfill(response=answer, json=told)

        page.route(re.compile(r"/api/(state|jobs/\d+)$"), running)
        ready(page, link)
        expect(page.locator(".job .what")).to_contain_text("Advising")
        late = False
        same()
        assert page.evaluate("async () => (await (await fetch('/api/state')).json()).jobs.length") == 3
        page.unroute_all(behavior="wait")
        # The server was started anew: they are made again.
        page.goto("about:blank")
        server.stop()
        server.start()
        ready(page, link)
        same()


def test_a_link_that_waits_for_its_fit_stays_whole(page: Page, tmp_path: Path) -> None:
    for name in ["one.csv", "two.csv"]:
        (tmp_path / name).write_text(TABLE)
    with serving("one.csv", "two.csv", "--method", "unn", "--set", "iterations=900000", folder=tmp_path) as server:
        name = '{"of":"two.csv","method":"kriging","settings":{},"emitters":null,"seed":0}'
        fit = "fit:" + name
        held: list[Route] = []
        page.route("**/api/jobs", lambda route: held.append(route))
        ready(page, f"{server.url}#item={quote(fit)}&band=0&zoom=4&centre=3,4")
        # While it is being fitted, a reload must ask for it again.
        page.evaluate("() => window.portolan.camera.set({ x: 5 })")
        link_of(page, "centre=5,4", name)
        page.wait_for_function("() => window.portolan.item?.name === 'one.csv'")
        while not held:
            page.wait_for_timeout(20)
        held[0].continue_()
        page.wait_for_function("() => window.portolan.item?.name === 'kriging' && window.portolan.item.readings === 2", timeout=60_000)
        link_of(page, "centre=5,4", name)


def test_every_survey_is_fitted_and_the_one_that_is_looked_at_is_followed(page: Page, tmp_path: Path) -> None:
    for name in ["one.csv", "two.csv", "three.csv"]:
        (tmp_path / name).write_text(TABLE)
    (tmp_path / "odd.csv").write_text("here,there\n1,2\n")
    with serving(".", "--method", "unn", "--set", "iterations=900000", folder=tmp_path) as server:
        ready(page, server.url)
        expect(page.locator(".job .what", has_text="Fitting unn on one.csv")).to_have_count(1)
        expect(page.locator("#waiting-count")).to_have_text("2 more wait")
        page.locator("#waiting summary").click()
        expect(page.locator("#waiting .job .what", has_text="Waiting: unn on")).to_have_count(2)
        # The file that was not opened is named, and why.
        page.locator("#skipped summary").click()
        expect(page.locator("#skipped-list")).to_contain_text("odd.csv: line 1")
        page.get_by_role("button", name="Cancel: Waiting: unn on three.csv").click()
        expect(page.locator(".job")).to_have_count(2)
        page.get_by_role("button", name="Cancel: Fitting unn on one.csv").click()
        expect(page.locator("#running .what", has_text="Fitting unn on two.csv")).to_have_count(1, timeout=20_000)
        expect(page.locator("#waiting")).to_be_hidden()
        page.get_by_role("button", name="Cancel: Fitting unn on two.csv").click()
        expect(page.locator(".job")).to_have_count(0, timeout=20_000)
    waits = True

    def late(route: Route) -> None:
        """The fits end when the test says so."""
        answer = route.fetch()
        told = answer.json()
        for job in told.get("jobs", [told]) if waits else []:
            job.update(state="running", item=None)
        if waits and "items" in told:
            told["items"] = [item for item in told["items"] if item["kind"] == "readings"]
        route.fulfill(response=answer, json=told)

    with serving("one.csv", "two.csv", "--method", "idw", folder=tmp_path) as server:
        page.route(re.compile(r"/api/(state|jobs/\d+)$"), late)
        ready(page, server.url)
        page.locator("#item").select_option("2")
        page.wait_for_function("() => window.portolan.item.id === 2")
        waits = False
        page.wait_for_function("() => window.portolan.item.kind === 'model' && window.portolan.item.readings === 2")
        expect(page.locator(".job")).to_have_count(0)
        assert sorted(own_items(page)) == ["idw on one.csv", "idw on two.csv", "one.csv (readings)", "two.csv (readings)"]
        page.unroute_all(behavior="wait")


def test_what_is_shown_can_be_closed(page: Page, tmp_path: Path) -> None:
    (tmp_path / "walk.csv").write_text(TABLE)
    with serving("walk.csv", "--method", "idw", folder=tmp_path) as server:
        ready(page, server.url)
        page.wait_for_function("() => window.portolan.item?.kind === 'model'")
        tab(page, "Fit")
        page.select_option("#fit-method", "kriging")
        page.locator("#fit-form button").click()
        page.wait_for_function("() => window.portolan.item?.name === 'kriging'", timeout=60_000)
        close = page.get_by_role("button", name="Close what is shown")
        # Keep it, then close it, with the keyboard alone.
        close.press("Enter")
        expect(page.locator("#close-title")).to_have_text("Close kriging on walk.csv?")
        page.keyboard.press("Escape")
        assert list(own_items(page)) == ["walk.csv (readings)", "idw on walk.csv", "kriging on walk.csv"]
        close.press("Enter")
        page.get_by_role("button", name="Close", exact=True).press("Enter")
        page.wait_for_function("() => window.portolan.item?.name === 'idw'")
        assert list(own_items(page)) == ["walk.csv (readings)", "idw on walk.csv"]
        expect(page.locator("#item")).to_be_focused()
        # Readings take their fits with them, also those that run; then there is nothing.
        page.locator("#item").select_option("1")
        page.wait_for_function("() => window.portolan.item?.id === 1")
        tab(page, "Fit")
        page.select_option("#fit-method", "unn")
        page.locator("#fit summary").click()
        page.locator("#option-iterations").fill("900000")
        page.locator("#fit-form button").click()
        expect(page.locator(".job")).to_have_count(1)
        close.click()
        expect(page.locator("#close-told")).to_contain_text("The fit to these readings closes, too.")
        page.locator("#close-go").click()
        expect(page.locator("#item option:checked")).to_have_text("nothing yet: open a file")
        expect(page.locator("#nothing")).to_be_visible()
        expect(page.locator(".job")).to_have_count(0)
        expect(page.locator("#fit-told")).to_contain_text("Cancelled")
        expect(close).to_be_disabled()
        expect(page.locator("#bands")).to_be_hidden()
        expect(page.locator("#about")).to_be_empty()
        page.wait_for_function("() => location.hash === '#' || location.hash === ''")
        # And a file can be opened again.
        page.set_input_files("#file", tmp_path / "walk.csv")
        page.locator("#open-go").click()
        page.wait_for_function("() => window.portolan.item?.kind === 'model'", timeout=60_000)


def test_readings_near_a_place_are_compared_at_their_sensors(page: Page, demo: Server) -> None:
    ready(page, demo.url)
    page.locator("#item").select_option("2")
    page.wait_for_function("() => window.portolan.item.id === 2")
    asked(page, 30.4, 20.6)
    expect(page.locator("#here-told th", has_text="read − map there")).to_be_visible()
    sensor = int(page.locator("#here-told tbody tr td").first.inner_text())
    told = page.evaluate("(n) => fetch(`/api/items/2/sensor?n=${n}`).then((a) => a.json())", sensor)
    band = page.evaluate("() => window.portolan.band")
    shown = float(page.locator("#here-told tbody tr td").nth(3).inner_text().replace("−", "-"))
    assert abs(shown - (told["read"][band] - told["level"][band])) < 0.06


def test_a_finger_or_a_key_shows_what_a_sensor_read(browser: Browser, demo: Server) -> None:
    context = browser.new_context(viewport={"width": 390, "height": 844}, has_touch=True)
    page = context.new_page()
    try:
        ready(page, demo.url)
        page.evaluate("() => window.portolan.show(2)")
        page.wait_for_function("() => window.portolan.item.id === 2 && window.portolan.places.has(1)")
        page.uncheck("#show-emitters") if page.locator("#show-emitters").is_visible() else page.evaluate("() => { window.portolan.shows.emitters = false; }")
        x, y = page.evaluate("() => { const a = window.portolan, p = a.places.get(1); a.camera.set({ x: p.x_m[7], y: p.y_m[7], zoom: 5 }); return a.views[0].pixel(p.x_m[7] + 0.2, p.y_m[7]); }")
        page.locator(".view").tap(position={"x": x, "y": y})
        expect(page.locator("#here-told .mark")).to_contain_text("Sensor 7")
        expect(page.locator("#here-told .mark")).to_contain_text("the others say")
        page.evaluate("() => { window.portolan.here.clear(); }")
        page.locator(".view").press("Enter")
        expect(page.locator("#here-told .mark")).to_contain_text("Sensor 7")
        page.evaluate("() => { const a = window.portolan, e = a.item.emitters[0]; a.shows.emitters = true; a.camera.set({ x: e.x_m, y: e.y_m }); }")
        page.locator(".view").press("Enter")
        expect(page.locator("#here-told .mark")).to_contain_text("Emitter 1")
    finally:
        context.close()


def test_the_open_dialog_speaks_of_its_fields(page: Page, demo: Server, tmp_path: Path) -> None:
    path = tmp_path / "plain.csv"
    path.write_text("x,y,a,b\n0,0,-60,-70\n5,1,-63,100\n2,7,-71,-80\n8,8,-75,-81\n")
    ready(page, demo.url)
    page.set_input_files("#file", path)
    told = page.locator("#open-told")
    expect(told).to_contain_text("“One column per band”")
    expect(told).not_to_contain_text("--")
    page.select_option("#open-value", "a")
    expect(told).to_contain_text("under “Unit”")
    expect(told).not_to_contain_text("--")
    page.select_option("#open-unit", "dbm")
    expect(told).to_contain_text("4 sensors, 1 band(s), dbm")
    expect(page.locator("#open-warning")).to_have_count(0)
    # A level that nothing reads is a code.
    page.select_option("#open-value", "b")
    expect(page.locator("#open-warning")).to_contain_text("100 dBm")
    page.locator("#open-silence").fill("100")
    page.locator("#open-silence").press("Tab")
    expect(page.locator("#open-warning")).to_have_count(0)
    page.locator("#open-dialog [data-close]").click()


def test_every_reading_option_of_the_command_is_in_the_dialog(page: Page, demo: Server, tmp_path: Path) -> None:
    frames = [f"{3 * (i % 6)},{4 * (i // 6)},aa:0{i % 3},{'hall' if i % 3 else 'lab'},{-50 - i % 7}" for i in range(36)]
    (tmp_path / "frames.csv").write_text("x_m,y_m,bssid,ssid,rssi\n" + "\n".join([*frames, "1,1,aa:09,rare,-80"]) + "\n")
    ready(page, demo.url)
    page.set_input_files("#file", tmp_path / "frames.csv")
    told = page.locator("#open-told")
    expect(page.locator("#open-dialog")).to_be_visible()
    page.select_option("#open-unit", "dbm")
    expect(told).to_contain_text("3 band(s)")
    # What the command says about reading files, the dialog asks.
    offered = subprocess.run([COMMAND, "explore", "--help"], capture_output=True, text=True, check=True).stdout.split("Files:")[1]
    fields = page.evaluate("async () => Object.keys((await import('/page/open.js')).FIELDS)")
    assert set(re.findall(r"--([a-z][a-z-]*)", offered)) == {*fields, "columns"}
    page.locator("#open-more summary").click()
    page.select_option("#open-band-by", "ssid")
    expect(told).to_contain_text("2 band(s)")
    page.locator("#open-min-places").fill("1")
    page.locator("#open-min-places").press("Tab")
    expect(told).to_contain_text("3 band(s)")
    for condition, bands in [("ssid != 'rare'", "2 band(s)"), ("", "3 band(s)")]:
        page.locator("#open-where").fill(condition)
        page.locator("#open-where").press("Tab")
        expect(told).to_contain_text(bands)
    page.locator("#open-origin").fill("here")
    page.locator("#open-origin").press("Tab")
    expect(told).to_contain_text("“Centre of cell 0,0”")
    expect(told).to_have_class("bad")
    page.locator("#open-origin").fill("")
    page.locator("#open-origin").press("Tab")
    # A floor is for what was not heard.
    expect(page.locator("#open-floor")).to_be_disabled()
    page.locator("#open-silence").fill("absent")
    page.locator("#open-silence").press("Tab")
    expect(page.locator("#open-floor")).to_be_enabled()
    page.locator("#open-floor").fill("-95")
    page.locator("#open-floor").press("Tab")
    page.wait_for_function("() => !document.getElementById('open-go').disabled")
    page.locator("#open-go").click()
    expect(page.locator("#fit-told pre").first).to_contain_text("--floor-db -95")
    expect(page.locator("#fit-told pre").first).to_contain_text("--band-by ssid")
    page.wait_for_function("() => window.portolan.item?.labels?.length === 3 && window.portolan.item.kind === 'model'", timeout=60_000)


def test_a_new_item_gets_a_level_and_a_band_of_its_own(page: Page, tmp_path: Path) -> None:
    (tmp_path / "loud.csv").write_text(TABLE)
    by_command("portolan simulate -o map.npz --grid 12x12 --bands 9", tmp_path)
    shutil.copy(tmp_path / "map.npz", tmp_path / "city.npz")
    with serving("loud.csv", "city.npz", folder=tmp_path) as server:
        ready(page, server.url)
        page.locator("#item").select_option("2")
        page.locator("#band").fill("8")
        page.locator("#item").select_option("1")
        # The fit of these readings may have ended by now: it is shown in their place.
        page.wait_for_function("() => window.portolan.item.readings === 1")
        band, level, limits = page.evaluate("() => { const a = window.portolan; return [a.band, a.level, a.item.limits_all]; }")
        assert band == 0 and limits[0] <= level <= limits[1]


def test_the_last_choice_counts_though_its_answer_comes_first(page: Page, tmp_path: Path) -> None:
    by_command("portolan simulate -o a.npz --grid 12x12 --bands 9", tmp_path)
    for name in ("b.npz", "c.npz"):
        shutil.copy(tmp_path / "a.npz", tmp_path / name)

    held: list[Route] = []
    with serving("a.npz", "b.npz", "c.npz", folder=tmp_path) as server:
        ready(page, server.url)
        page.route("**/api/items/2", lambda route: held.append(route))
        page.locator("#item").select_option("2")
        page.locator("#item").select_option("1")
        page.wait_for_function("() => window.portolan.item.id === 1")
        with page.expect_response("**/api/items/2") as answer:
            held[0].continue_()
        answer.value.finished()
        # A later answer has come: the page has dealt with the earlier one.
        page.evaluate("async () => (await fetch('/api/state')).json()")
        assert page.evaluate("() => window.portolan.item.id") == 1
        expect(page.locator("#item")).to_have_value("1")


def test_the_best_server_has_a_legend_of_bands(page: Page, demo: Server) -> None:
    ready(page, demo.url)
    page.locator("#item").select_option("2")
    tab(page, "Layers")
    page.check("[name=layer][value=best]")
    drawn(page)
    rows = page.locator("#legend-bands > div")
    expect(rows.first).to_contain_text("%")
    assert 1 < rows.count() <= 10
    # A place says its band: where the pointer is, and where it was clicked.
    value = page.evaluate("() => window.portolan.views[0].value({ x: 20, y: 30 })")
    x, y = page.evaluate("() => { const view = window.portolan.views[0], box = view.element.getBoundingClientRect(), [x, y] = view.pixel(20, 30); window.portolan.shows.sensors = false; return [box.x + x, box.y + y]; }")
    page.mouse.move(x, y)
    expect(page.locator("#tip strong")).to_have_text(f"band {value}")
    page.mouse.click(x, y)
    expect(page.locator("#here-told")).to_contain_text(f"Strongest here: band {value},")
    expect(rows.first).to_contain_text("band ")
    # The bands that serve most have colours of their own.
    seen = rows.evaluate_all("(all) => all.filter((row) => row.firstChild.style).map((row) => [Number(row.textContent.match(/\\d+/)[0]), row.firstChild.style.background.match(/\\d+/g).map(Number)])")
    colours = dict((band, colour) for band, colour in seen)
    pairs = list(itertools.combinations(colours.values(), 2))
    assert pairs and all(sum(abs(a - b) for a, b in zip(one, two, strict=True)) > 45 for one, two in pairs), colours


def test_the_legend_can_be_folded(page: Page, demo: Server) -> None:
    ready(page, demo.url)
    button = page.get_by_role("button", name="Legend")
    expect(page.locator("#legend-title")).to_be_visible()
    button.press("Enter")
    expect(page.locator("#legend-title")).to_be_hidden()
    expect(button).to_have_attribute("aria-expanded", "false")
    page.reload()
    page.wait_for_selector("html[data-ready]")
    expect(page.locator("#legend-title")).to_be_hidden()
    button.click()
    expect(page.locator("#legend-title")).to_be_visible()
