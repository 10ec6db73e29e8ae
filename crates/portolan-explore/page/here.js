// The panel "Here": what the map says about the selected place, and what the map is.

import * as api from "./api.js";
import { number, spectrum } from "./chart.js";
import { curves } from "./colour.js";

/** An element with attributes, events and children; text is never markup. */
export function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

/** A table: headers with "#" in front are numbers. */
export function table(headers, rows, caption) {
  const numeric = headers.map((h) => h.startsWith("#"));
  const head = make("tr", {}, ...headers.map((h, i) => make("th", { scope: "col", class: numeric[i] ? "n" : null }, h.replace("#", ""))));
  const body = rows.map((row) => {
    const line = make("tr", row.attributes ?? {});
    (row.cells ?? row).forEach((cell, i) => line.append(make("td", { class: numeric[i] ? "n" : null }, cell)));
    return line;
  });
  const parts = [make("thead", {}, head), make("tbody", {}, ...body)];
  if (caption) parts.unshift(make("caption", { class: "hidden" }, caption));
  return make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption ?? "Table" }, make("table", {}, ...parts));
}

/** Metres, with as many digits as the map's size asks for. */
export function metres(value, span) {
  const digits = span > 2000 ? 0 : span > 20 ? 1 : 2;
  return number(value, digits);
}

/** A number with its standard error. */
export function within(value, se, digits) {
  if (value === null || value === undefined) return "–";
  return `${number(value, digits)}${se === null || se === undefined ? "" : ` ± ${number(se, digits)}`}`;
}

/** The bands that an emitter occupies. */
export function occupied(emitter, app) {
  const plain = (band) => app.bandName(band).replace(/^band /, "");
  const ranges = (emitter.occupied ?? []).map(([a, b]) => (a === b ? plain(a) : `${plain(a)}–${plain(b)}`));
  return ranges.length ? ranges.join(", ") : "–";
}

export class Here {
  constructor(app) {
    this.app = app;
    this.told = null;
  }

  /** Asks about a place, in both maps where two are shown, and about the mark that was meant. */
  async ask(place, mark = null) {
    const { app } = this;
    if (!app.item || !place) return this.clear();
    const turn = (this.turn = {});
    const words = api.query({ x: place.x, y: place.y });
    try {
      const asked = [app.item, app.other].filter(Boolean);
      const found = await Promise.all(asked.map((item) => api.get(`/api/items/${item.id}/at${words}`)));
      if (this.turn !== turn) return;
      this.told = { place, maps: found, mark };
      this.draw();
    } catch (error) {
      if (error.status) app.toast(error.message);
    }
  }

  clear() {
    this.told = null;
    document.getElementById("here-told").replaceChildren();
    document.getElementById("here-hint").hidden = false;
  }

  draw() {
    const box = document.getElementById("here-told");
    if (!this.told) return;
    document.getElementById("here-hint").hidden = true;
    const { app } = this, { item, other, band } = app, { place, maps, mark } = this.told;
    const span = item.area[2] - item.area[0];
    const parts = [];
    const degrees = maps[0].lat_lon ? ` (${number(maps[0].lat_lon[0], 5)}°, ${number(maps[0].lat_lon[1], 5)}°)` : "";
    const height = maps[0].z_m === undefined ? "" : `, z ${metres(maps[0].z_m, span)} m`;
    parts.push(make("h2", {}, `x ${metres(place.x, span)} m, y ${metres(place.y, span)} m${height}${degrees}`));
    maps.forEach((told, i) => {
      const of = i ? other : item;
      if (!told.level) return;
      const level = told.level[band], spread = told.spread?.[band];
      const name = maps.length > 1 ? `${app.label(of.id)}: ` : "";
      parts.push(make("p", { class: "big", "data-level": i }, `${name}${number(level)} ${of.unit}`));
      const sure = spread === undefined || spread === null ? "" :
        `: ± ${number(spread)} dB, with 90 % certainty from ${number(level - 1.645 * spread)} to ${number(level + 1.645 * spread)} ${of.unit}`;
      const heard = told.chance_heard ? `; heard with a chance of ${number(100 * told.chance_heard[band], 0)} %` : "";
      const best = told.level.reduce((found, one, n) => (one > (told.level[found] ?? -Infinity) ? n : found), 0);
      const strongest = of.bands > 1 ? `. Strongest here: ${app.bandName(best)}, ${number(told.level[best])} ${of.unit}` : "";
      parts.push(make("p", { class: "quiet" }, `${app.bandName(band)}${sure}${heard}${strongest}`));
    });
    if (mark) parts.push(this.markBox(mark));
    const chart = make("canvas", { class: "chart", role: "img", "aria-label": "Spectrum at this place with its 90 % interval; the table below has the numbers" });
    parts.push(chart);
    const near = maps[0].near ?? [];
    if (near.length) {
      parts.push(make("h2", {}, "Nearest readings"));
      const less = (read, map) => (read === null || read === undefined || map === null || map === undefined ? null : read - map);
      parts.push(table(["Sensor", "#away, m", `#read, ${item.unit}`, ...(maps[0].level ? ["#read − map there"] : [])], near.map((n) => {
        const cells = [String(n.sensor), metres(n.distance_m, span), number(n.level[band])];
        return maps[0].level ? [...cells, number(less(n.level[band], n.map?.[band]))] : cells;
      }), "Readings near this place"));
    }
    if (maps[0].level) {
      const rows = maps[0].level.map((v, i) => [app.bandName(i), number(v, 2), number(maps[0].spread?.[i], 2)]);
      parts.push(make("details", {}, make("summary", {}, "The spectrum as a table"), table(["Band", `#${item.unit}`, "#spread, dB"], rows, "Spectrum")));
    }
    box.replaceChildren(...parts);
    const colours = curves(app.isDark());
    const series = maps.filter((m) => m.level).map((m, i) => ({ level: m.level, spread: m.spread, colour: colours[i] }));
    const shown = series.length ? series : [{ level: near[0]?.level ?? [], spread: null, colour: colours[0] }];
    if (shown[0].level.length) spectrum(chart, { series: shown, near: near.slice(0, 1).map((n) => n.level), band, unit: item.unit, labels: item.labels });
  }

  /** The lines of a sensor or an emitter: with a finger or the keyboard there is no tip. */
  markBox(mark) {
    const box = make("div", { class: "mark" });
    this.app.under.lines(mark).then(([title, ...lines]) => {
      box.replaceChildren(make("h2", {}, title), ...lines.map((line) => make("div", {}, line)));
    }).catch(() => {});
    return box;
  }

  /** What is shown: where it comes from, what was fitted, the emitters. */
  about() {
    const { app } = this, { item } = app;
    const box = document.getElementById("about");
    if (!item) return box.replaceChildren();
    const kinds = { readings: "Readings", model: "Model", map: "Map" };
    const parts = [make("h2", {}, `${kinds[item.kind]}: ${app.label(item.id)}`)];
    const size = [item.sensors !== null ? `${item.sensors} sensors` : null, `${item.bands} band${item.bands > 1 ? "s" : ""}`,
      `${metres(item.area[2] - item.area[0], 1e3)} × ${metres(item.area[3] - item.area[1], 1e3)} m`, item.crs].filter(Boolean);
    parts.push(make("p", { class: "quiet" }, size.join(", ")));
    for (const note of item.notes ?? []) parts.push(make("p", { class: "note" }, note));
    const emitters = (item.emitters ?? []).map((e, i) => ({ ...e, i })).filter((e) => !e.noise);
    if (emitters.length) {
      parts.push(make("h2", {}, "Emitters"));
      parts.push(table(["No.", "place, m", "#exponent", "#power", "occupies"], emitters.slice(0, 60).map((e) => ({
        attributes: { class: app.emitter === e.i ? "go on" : "go", onclick: () => app.chooseEmitter(e.i) },
        cells: [make("button", { type: "button", "aria-label": `Show emitter ${e.i + 1}` }, String(e.i + 1)),
          make("span", { class: "lines" }, `x ${within(e.x_m, e.x_se_m, 1)}`, make("br"), `y ${within(e.y_m, e.y_se_m, 1)}`),
          within(e.exponent, e.exponent_se, 2),
          e.power_share === null ? "–" : `${number(100 * e.power_share, 0)} %`,
          occupied(e, app)],
      })), "Emitters"));
    }
    const report = item.report;
    if (report) {
      const words = Object.entries(report.fitted).map(([k, v]) => [k.replaceAll("_", " "), number(v, 3)]);
      if (report.candidates.length) {
        parts.push(make("h2", {}, "Why this method"));
        parts.push(table(["Method", "#error, dB", "#weight"], report.candidates.map((c) => [c.method, number(c.rmse_db, 2), c.weight === null ? "" : number(c.weight, 2)]), "Candidates"));
      }
      if (words.length) parts.push(make("details", {}, make("summary", {}, "What was fitted"), table(["Parameter", "#value"], words, "Fitted parameters")));
    }
    box.replaceChildren(...parts);
  }
}
