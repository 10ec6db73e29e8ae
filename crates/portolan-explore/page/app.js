// The page: what is shown, and the structure of the parts.

import * as api from "./api.js";
import { number, strip, timeline } from "./chart.js";
import { Check } from "./check.js";
import { Close } from "./close.js";
import { bandShades, setPalettes, shades } from "./colour.js";
import { Here, make } from "./here.js";
import { bands, fold, legend } from "./legend.js";
import * as link from "./link.js";
import { Linked } from "./linked.js";
import * as marks from "./marks.js";
import { Open } from "./open.js";
import { Take } from "./take.js";
import { Tiles, layerKey } from "./tiles.js";
import { Under } from "./under.js";
import { Camera, MapView } from "./view.js";
import { Work } from "./work.js";

const byId = (id) => document.getElementById(id);

class App {
  constructor() {
    Object.assign(this, { items: [], item: null, other: null, mode: "side", band: 0, layer: "power", level: -70, at: null, palette: "viridis", limits: "band", own: [-90, -40], emitter: null, advice: [], errors: null, until: null, pointer: null, underlay: null, opacity: 0.65 });
    this.shows = { sensors: true, emitters: true, advice: true };
    this.places = new Map();
    this.levels = new Map();
    this.camera = new Camera();
    this.camera.listeners.push(() => this.moved());
    this.tiles = new Tiles(() => this.redraw());
    this.tiles.inView = (source, { z, x0, x1, y0, y1 }) => this.views.some((view) => {
      const seen = view.seen(), host = view.host();
      const shown = [host.source, host.less].some((one) => one && layerKey(one) === layerKey(source));
      return shown && seen?.z === z && seen.x0 === x0 && seen.x1 === x1 && seen.y0 === y0 && seen.y1 === y1;
    });
    this.views = [];
    this.here = new Here(this);
    this.under = new Under(this);
    this.work = new Work(this);
    this.check = new Check(this);
    this.close = new Close(this);
    this.linked = new Linked(this);
    this.open = new Open(this);
    this.take = new Take(this);
  }

  async start() {
    this.theme(localStorage.getItem("portolan-theme"));
    fold(localStorage.getItem("portolan-legend") === "folded");
    const said = link.read();
    const [state, palettes, methods] = await Promise.all([api.get("/api/state"), api.get("/api/palettes"), api.get("/api/methods")]);
    setPalettes(palettes);
    this.instance = state.instance;
    this.work.setMethods(methods);
    this.check.setMethods(methods);
    this.linked.settings(said);
    this.wire();
    this.setItems(state.items);
    this.check.earlier(state.jobs);
    this.skipped(state.skipped);
    await this.linked.start(said, state.jobs);
    document.documentElement.dataset.ready = "true";
  }

  /** What is shown where nobody has chosen: the last map or model, or readings. */
  usual() {
    return this.items.findLast((item) => item.kind !== "readings") ?? this.items[0];
  }

  /** Says which files of a folder were not opened. */
  skipped(files) {
    byId("skipped").hidden = !files.length;
    byId("skipped-title").textContent = files.length === 1 ? "1 file was not opened" : `${files.length} files were not opened`;
    byId("skipped-list").replaceChildren(...files.map(({ file, why }) => make("li", {}, why.startsWith(file) ? why : `${file}: ${why}`)));
  }

  /** What an item is called, by its number. */
  label(id) {
    return this.labels?.get(id) ?? this.items.find((item) => item.id === id)?.name ?? "";
  }

  setItems(items) {
    this.items = items;
    this.labels = link.labels(items);
    const named = (item) => (item.kind === "readings" ? `${this.label(item.id)} (readings)` : this.label(item.id));
    byId("item").replaceChildren(...items.map((item) => make("option", { value: item.id }, named(item))));
    if (!items.length) byId("item").append(make("option", { value: "" }, "nothing yet: open a file"));
    const others = items.filter((item) => item.kind !== "readings");
    byId("other").replaceChildren(make("option", { value: "" }, "no other map"), ...others.map((item) => make("option", { value: item.id }, named(item))));
    byId("other-pick").hidden = others.length < 2;
    if (this.item) byId("item").value = this.wanted;
    byId("other").value = this.other?.id ?? "";
    byId("close").disabled = !items.length;
    this.work.setReadings(items);
  }

  async refresh() {
    this.setItems((await api.get("/api/state")).items);
  }

  /** Shows an item. The view stays where it is if the item lies there. */
  async show(id, said = {}) {
    if (id === undefined || id === "") return this.layout();
    this.wanted = id;
    const item = await api.get(`/api/items/${id}`);
    // Answers may overtake each other: the last choice counts.
    if (this.wanted !== id) return;
    const before = this.item;
    this.item = item;
    if (this.other && (this.other.id === item.id || this.other.bands !== item.bands)) this.other = null;
    byId("item").value = item.id;
    byId("other").value = this.other?.id ?? "";
    const band = said.band ?? (before ? this.band : -1);
    this.band = band >= 0 && band < item.bands ? band : loudest(item);
    const [low, high] = item.limits_all;
    if (!Number.isFinite(said.level) && (!before || this.level < low || this.level > high)) this.level = Math.round((low + high) / 2);
    byId("level").value = this.level;
    byId("level-unit").textContent = item.unit;
    this.emitter = item.emitters?.[said.emitter] ? said.emitter : null;
    this.errors = null;
    if (Number.isFinite(said.time)) this.until = said.time;
    byId("band").max = item.bands - 1;
    byId("band").value = this.band;
    byId("take-level").value = this.level;
    this.work.shown();
    this.check.shown();
    for (const input of document.querySelectorAll("[name=layer]")) input.disabled = item.kind === "readings" || (["spread", "above"].includes(input.value) && !item.spread);
    if (document.querySelector("[name=layer]:checked").disabled && item.kind !== "readings") document.querySelector("[name=layer][value=power]").click();
    this.layout();
    const there = before && same(before.area, item.area);
    if (said.centre && said.zoom !== null) this.camera.set({ ...said.centre, zoom: said.zoom });
    else if (!there) this.fitAll();
    this.here.about();
    this.take.update();
    if (this.at && there) this.ask(this.at);
    else if (!there) this.unask();
    await this.loadSensors();
    if (this.item === item) this.changed();
  }

  /** Nothing is left to show. */
  empty() {
    Object.assign(this, { item: null, other: null, wanted: null, emitter: null, errors: null, until: null, timed: null });
    byId("times").hidden = true;
    byId("item").value = "";
    this.unask();
    this.here.about();
    this.check.shown();
    this.take.update();
    this.layout();
    this.changed();
  }

  async compare(id) {
    this.wantedOther = id;
    if (!id) this.other = null;
    else {
      const other = await api.get(`/api/items/${id}`);
      if (this.wantedOther !== id) return;
      if (other.bands !== this.item.bands) return this.toast(`${this.label(other.id)} has ${other.bands} bands, ${this.label(this.item.id)} has ${this.item.bands}`);
      this.other = other;
    }
    byId("other").value = this.other?.id ?? "";
    this.layout();
    if (this.at) this.ask(this.at);
    this.changed();
  }

  /** As many views as there are maps to show. */
  layout() {
    const { item, other } = this;
    byId("mode").hidden = !other;
    byId("nothing").hidden = Boolean(item);
    const split = other && this.mode === "side";
    const wanted = split ? [item, other] : [item];
    if (this.views.length !== wanted.length) {
      const whole = this.views.length && this.showsAll();
      for (const view of this.views) view.remove();
      this.views = wanted.map((_, i) => this.newView(i));
      // The first was measured before the second took its half.
      for (const view of this.views) view.resize();
      if (whole) this.fitAll();
    }
    this.views.forEach((view, i) => {
      const name = split ? this.label(wanted[i].id) : other ? `${this.label(item.id)} less ${this.label(other.id)}` : "";
      const tag = view.element.querySelector(".name");
      tag.textContent = name;
      tag.hidden = !name;
      view.element.setAttribute("aria-label", item ? `Map of ${name || this.label(item.id)}. Arrow keys move, plus and minus zoom, Enter asks at the middle, brackets change the band.` : "Nothing to show yet");
    });
  }

  newView(i) {
    const element = make("div", { class: "view", role: "application", tabindex: "0" }, make("span", { class: "name" }));
    byId("views").append(element);
    const acts = {
      hover: (view, place, pixel) => this.under.hover(view, place, pixel),
      asked: (view, place, pixel, reach) => this.asked(view, place, pixel, reach),
      rested: () => this.rested(),
      fit: () => this.fitAll(),
      band: (step) => this.setBand(this.band + step),
      drawn: (view) => {
        this.drawn?.(view);
        this.drafts();
        if (this.layer === "best") this.bandsSoon();
      },
      resized: () => this.item && this.linked.later(),
    };
    return new MapView(element, this.camera, this.tiles, () => this.host(i), acts);
  }

  /** Says so where a draft stays for a while. */
  drafts() {
    const any = this.views.some((view) => view.whole === false);
    if (any === this.drafting) return;
    this.drafting = any;
    clearTimeout(this.drafted);
    if (any) this.drafted = setTimeout(() => (byId("draft").hidden = false), 400);
    else byId("draft").hidden = true;
  }

  /** The legend lists the bands that are seen, as soon as they are. */
  bandsSoon() {
    this.listing ??= setTimeout(() => {
      this.listing = null;
      if (this.item && this.layer === "best") bands(this);
    }, 300);
  }

  /** What a view draws. */
  host(i) {
    const { item, other } = this, dark = this.isDark();
    const map = i === 1 ? other : item;
    const shown = map && map.kind !== "readings";
    const layer = this.layer === "spread" && map && !map.spread ? "power" : this.layer;
    const source = shown ? { id: map.id, layer, band: this.band, level: this.level } : null;
    const less = shown && other && this.mode === "difference" && layer !== "best" ? { ...source, id: other.id } : null;
    return {
      area: map?.area, source, less, paint: this.paint(less, layer),
      ground: dark ? "#0c1013" : "#e9edf0",
      plan: this.underlay, opacity: this.underlay ? this.opacity : 1,
      marks: (context, view) => this.drawMarks(context, view, map),
      pointer: (context, view) => {
        if (this.at) marks.target(context, view, this.at, false);
        if (this.pointer && this.pointer.view !== view) marks.target(context, view, this.pointer.place, true);
        if (document.activeElement === view.element && !this.at) marks.target(context, view, this.camera, true);
      },
    };
  }

  /** Colours and their ends, in hundredths as tiles have them. */
  paint(less, layer = this.layer) {
    const { item, other } = this;
    if (!item) return null;
    let name = this.palette, [low, high] = [0, 1], steps = false;
    if (less) {
      name = "error";
      const most = layer === "above" ? 100 : layer === "spread" ? item.limits_spread[1] : this.most();
      [low, high] = [-most, most];
    } else if (layer === "best") {
      steps = true;
    } else if (layer === "above") {
      [low, high] = [0, 100];
      name = "viridis";
    } else if (layer === "spread") {
      [low, high] = item.limits_spread;
      if (other?.spread) high = Math.max(high, other.limits_spread[1]);
      name = "magma";
    } else [low, high] = this.ends();
    const palette = steps ? bandShades(item) : shades(name);
    return { key: `${steps ? `bands of ${item.id}` : name} ${low} ${high}`, shades: palette, low: 100 * low, high: 100 * high, steps, name, ends: [low, high] };
  }

  /** Ends of the colours of power. */
  ends() {
    if (this.limits === "own") return this.own;
    return (this.limits === "all" ? this.item.limits_all : this.item.limits[this.band]) ?? [0, 1];
  }

  /** How far a difference reaches: a third of the scale of power. */
  most() {
    const [low, high] = this.ends();
    return Math.max(1, Math.ceil((high - low) / 6));
  }

  drawMarks(context, view, map) {
    if (!map) return;
    const places = this.places.get(map.readings ?? map.id);
    const [low, high] = this.ends();
    if (places && this.shows.sensors) {
      const levels = this.layer === "power" && !this.mode_difference() ? this.levels.get(`${map.readings} ${this.band}`) : null;
      // Errors belong to the readings that were validated.
      const errors = this.errors?.readings === map.readings ? this.errors : null;
      marks.sensors(context, view, { places, levels, until: this.until, low, high, palette: this.palette, errors: errors?.errors ?? null, worst: errors?.worst });
    }
    if (this.shows.emitters && map.emitters) marks.emitters(context, view, map.emitters.map((e) => (this.inBand(e, map) ? e : { ...e, noise: true })), this.emitter);
    if (this.shows.advice && this.advice.length && map === this.item) marks.advice(context, view, this.advice);
  }

  mode_difference() {
    return Boolean(this.other) && this.mode === "difference";
  }

  /** An emitter that only one band hears is marked there alone. */
  inBand(emitter, map) {
    if (!emitter.occupied || map.bands < 2 || emitter.occupied.length !== 1) return true;
    const [first, last] = emitter.occupied[0];
    return first !== last || first === this.band;
  }

  async loadSensors() {
    for (const map of [this.item, this.other].filter(Boolean)) {
      const id = map.readings ?? map.id;
      if (!this.places.has(id)) this.places.set(id, await api.get(`/api/items/${map.id}/places`));
    }
    const places = this.places.get(this.item.readings ?? this.item.id);
    const times = (places?.time_s ?? []).filter(Number.isFinite).slice().sort((a, b) => a - b);
    this.timed = times.length > 1 && times[0] < times[times.length - 1] ? times : null;
    byId("times").hidden = !this.timed;
    const [first, last] = this.timed ? [times[0], times[times.length - 1]] : [0, 0];
    if (this.until >= last || this.until < first) this.until = null;
    byId("time").value = this.until === null ? 1000 : Math.round((1000 * (this.until - first)) / (last - first));
    await this.loadLevels();
  }

  async loadLevels() {
    const { item, band } = this;
    if (!item?.readings) return;
    const key = `${item.readings} ${band}`;
    if (this.levels.has(key)) return;
    const places = this.places.get(item.readings);
    if (places && places.x_m.length > 20_000) return;
    this.levels.set(key, new Float32Array(await api.bytes(`/api/items/${item.id}/levels?band=${band}`)));
    if (this.levels.size > 80) this.levels.delete(this.levels.keys().next().value);
    if (this.band === band) for (const view of this.views) view.marksChanged();
  }

  /** The picture changed: colours, band, layer, marks. */
  changed() {
    this.settled = this.band;
    for (const view of this.views) view.marksChanged();
    this.legend();
    this.bandStrip();
    this.want();
    this.loadLevels().catch(() => {});
    this.linked.later();
  }

  redraw() {
    for (const view of this.views) view.later();
  }

  want() {
    return Promise.all(this.views.map((view) => view.want()));
  }

  moved() {
    this.scaleBar();
    byId("tip").hidden = true;
    this.redraw();
    clearTimeout(this.soon);
    this.soon = setTimeout(() => this.want(), 60);
    this.linked.later();
  }

  rested() {
    for (const view of this.views) view.marksChanged();
    this.want();
  }

  /** Whether all of the map is on the screen. */
  showsAll() {
    const [view] = this.views;
    if (!view || !this.item) return false;
    const [left, top] = view.pixel(this.item.area[0], this.item.area[3]), [right, bottom] = view.pixel(this.item.area[2], this.item.area[1]);
    return left >= -2 && top >= -2 && right <= view.width + 2 && bottom <= view.height + 2;
  }

  fitAll() {
    const view = this.views[0];
    if (view && this.item) this.camera.fit(this.item.area, view.width, view.height);
  }

  setBand(band) {
    if (!this.item) return;
    this.band = Math.min(Math.max(band, 0), this.item.bands - 1);
    byId("band").value = this.band;
    // The question goes out first; what can wait is done while the answer is on its way. The picture
    // changes when it is here.
    const here = this.want();
    this.bandStrip();
    this.legend();
    this.linked.later();
    here.then(() => this.afterBand());
    clearTimeout(this.idle);
    this.idle = setTimeout(() => this.afterBand(), 120);
  }

  /** What a new band changes beside the tiles. */
  afterBand() {
    clearTimeout(this.idle);
    if (this.settled === this.band) return this.redraw();
    this.settled = this.band;
    for (const view of this.views) if (this.marksHaveLevels()) view.marksChanged();
    this.redraw();
    this.loadLevels().catch(() => {});
    if (this.shownTab === "here" || !this.shownTab) this.here.draw();
    if (this.shownTab === "take") this.take.commands();
  }

  /** Whether marks look different from band to band. */
  marksHaveLevels() {
    const places = this.places.get(this.item?.readings ?? this.item?.id);
    return Boolean(this.item?.emitters?.length) || (places && places.x_m.length <= 1500);
  }

  bandName(band) {
    const { item } = this;
    const plain = item.freq_hz === null && /^band\d+$/.test(item.labels[band]);
    return plain ? `band ${band}` : item.labels[band].replace(/MHz$/, " MHz");
  }

  /** Someone clicked, tapped, or pressed Enter. */
  asked(view, place, pixel, reach) {
    const map = this.under.map(view);
    if (!map) return;
    const places = this.places.get(map.readings ?? map.id);
    const n = places && this.shows.sensors ? marks.nearestSensor(view, places, pixel, this.until, 10) : -1;
    const at = n >= 0 && places.x_m.length <= 3000 ? { x: places.x_m[n], y: places.y_m[n] } : place;
    this.ask(at, this.under.find(view, pixel, reach));
    this.tab("here");
  }

  ask(place, mark = null) {
    this.at = place;
    this.here.ask(place, mark).then(() => {
      const told = this.here.told?.maps[0];
      if (told?.level) byId("said").textContent = `${number(told.level[this.band])} ${this.item.unit}`;
      this.bandStrip();
    });
    this.redraw();
    this.take.update();
    this.linked.later();
  }

  unask() {
    this.at = null;
    this.here.clear();
  }

  chooseEmitter(i) {
    this.emitter = i;
    const e = this.item.emitters[i];
    this.camera.set({ x: e.x_m, y: e.y_m });
    if (e.occupied?.length && !e.occupied.some(([a, b]) => this.band >= a && this.band <= b)) {
      this.setBand(Math.round((e.occupied[0][0] + e.occupied[0][1]) / 2));
    }
    this.here.about();
    this.changed();
  }

  /** Errors of a method at the sensors of the readings that were validated. */
  showErrors(row, readings) {
    if (!row?.errors || readings !== this.item?.readings) this.errors = null;
    else {
      const sizes = row.errors.filter((e) => e !== null).map(Math.abs).sort((a, b) => a - b);
      this.errors = { errors: row.errors, worst: Math.max(0.1, sizes[Math.floor(sizes.length * 0.98)] ?? 1), method: row.method, readings };
    }
    this.changed();
  }

  legend() {
    legend(this);
  }

  bandStrip() {
    const { item, band } = this;
    byId("bands").hidden = !item;
    if (!item) return;
    strip(byId("strip").querySelector("canvas"), { strip: item.strip, band, unit: item.unit, here: this.here.told?.maps[0].level });
    // Bands are counted from 0, as the commands count them.
    const name = this.bandName(band), all = `0 to ${item.bands - 1}`;
    byId("band-name").textContent = item.bands < 2 ? name : /^band/.test(name) ? `${name} (${all})` : `${name} (band ${band}, ${all})`;
    byId("band").setAttribute("aria-valuetext", this.bandName(band));
    if (this.timed) {
      timeline(byId("timeline").querySelector("canvas"), this.timed, this.until);
      byId("time-name").textContent = this.until === null ? "all readings" : new Date(1000 * this.until).toLocaleString();
      byId("time").setAttribute("aria-valuetext", byId("time-name").textContent);
    }
  }

  scaleBar() {
    const span = byId("scale").querySelector("span");
    const room = 110 / this.camera.scale, power = 10 ** Math.floor(Math.log10(room));
    const metresLong = [5, 2, 1].map((m) => m * power).find((length) => length <= room);
    span.style.width = `${metresLong * this.camera.scale}px`;
    span.textContent = metresLong >= 1000 ? `${metresLong / 1000} km` : metresLong < 0.01 ? `${metresLong * 1000} mm` : `${Number(metresLong.toPrecision(2))} m`;
  }

  /** An image under the map, over the area until it is said where. */
  async plan(file) {
    try {
      const image = await createImageBitmap(file);
      const [x0, y0, x1] = this.item?.area ?? [0, 0, 100, 100];
      this.underlay = { image, extent: [x0, y0, x1, y0 + ((x1 - x0) * image.height) / image.width], name: file.name };
      ["plan-x0", "plan-y0", "plan-x1", "plan-y1"].forEach((id, i) => (byId(id).value = Number(this.underlay.extent[i].toFixed(3))));
      byId("plan-where").hidden = false;
      this.tab("layers");
      this.changed();
    } catch {
      this.toast(`${file.name} is no image that this browser can show`);
    }
  }

  tab(name) {
    this.shownTab = name;
    for (const button of byId("tabs").children) {
      const on = button.getAttribute("aria-controls") === name;
      button.setAttribute("aria-selected", on);
      button.tabIndex = on ? 0 : -1;
      byId(button.getAttribute("aria-controls")).hidden = !on;
    }
    if (name === "here") this.here.draw();
    if (name === "take") this.take.commands();
    this.linked.later();
  }

  wide(on) {
    byId("panel").parentElement.classList.toggle("wide", on);
    byId("wide").setAttribute("aria-pressed", on);
    byId("wide").setAttribute("aria-label", on ? "Show the panel" : "Hide the panel");
    byId("wide").title = on ? "Show the panel" : "Hide the panel";
    this.linked.later();
  }

  isDark() {
    const set = document.documentElement.dataset.theme;
    return set ? set === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  }

  theme(name) {
    if (name === "light" || name === "dark") document.documentElement.dataset.theme = name;
  }

  toast(text) {
    const box = byId("toast");
    box.textContent = text;
    box.hidden = false;
    clearTimeout(this.toasting);
    this.toasting = setTimeout(() => (box.hidden = true), 6000);
  }

  async copyText(text, said) {
    try {
      await navigator.clipboard.writeText(text);
      this.toast(said);
    } catch {
      this.toast("This browser does not let pages copy: mark the text and copy it");
    }
  }

  wire() {
    const on = (id, event, act) => byId(id).addEventListener(event, act);
    on("item", "change", (e) => {
      this.linked.choose();
      this.show(Number(e.target.value));
    });
    on("other", "change", (e) => {
      this.linked.choose();
      this.compare(Number(e.target.value));
    });
    on("band", "input", (e) => this.setBand(Number(e.target.value)));
    on("band-less", "click", () => this.setBand(this.band - 1));
    on("band-more", "click", () => this.setBand(this.band + 1));
    const middle = () => ({ x: this.camera.x, y: this.camera.y });
    on("zoom-in", "click", () => this.camera.zoomAt(this.camera.zoom + 1, middle()));
    on("zoom-out", "click", () => this.camera.zoomAt(this.camera.zoom - 1, middle()));
    on("zoom-fit", "click", () => this.fitAll());
    on("wide", "click", () => this.wide(!byId("panel").parentElement.classList.contains("wide")));
    on("open", "click", () => byId("file").click());
    on("file", "change", (e) => e.target.files[0] && this.open.take(e.target.files[0]).finally(() => (e.target.value = "")));
    on("plan-pick", "click", () => byId("plan-file").click());
    on("plan-file", "change", (e) => e.target.files[0] && this.plan(e.target.files[0]));
    on("plan-off", "click", () => {
      this.underlay = null;
      byId("plan-where").hidden = true;
      this.changed();
    });
    ["plan-x0", "plan-y0", "plan-x1", "plan-y1"].forEach((id, i) => on(id, "change", (e) => {
      const extent = this.underlay.extent.slice();
      extent[i] = Number(e.target.value);
      if (extent[0] < extent[2] && extent[1] < extent[3]) this.underlay.extent = extent;
      this.changed();
    }));
    on("opacity", "input", (e) => {
      this.opacity = e.target.value / 100;
      this.redraw();
    });
    on("copy", "click", () => {
      this.linked.write();
      this.copyText(location.href, "The link is copied");
    });
    on("legend-fold", "click", () => fold(byId("legend-fold").getAttribute("aria-expanded") === "true"));
    on("theme", "click", () => {
      const next = this.isDark() ? "light" : "dark";
      this.theme(next);
      localStorage.setItem("portolan-theme", next);
      this.changed();
      this.here.draw();
    });
    for (const input of document.querySelectorAll("[name=layer]")) input.addEventListener("change", () => {
      this.layer = input.value;
      this.changed();
    });
    for (const input of document.querySelectorAll("[name=mode]")) input.addEventListener("change", () => {
      this.mode = input.value;
      this.layout();
      this.changed();
    });
    on("level", "change", (e) => {
      this.level = Number(e.target.value);
      document.querySelector("[name=layer][value=above]").click();
      this.changed();
    });
    on("palette", "change", (e) => {
      this.palette = e.target.value;
      this.changed();
    });
    on("limits", "change", (e) => {
      if (e.target.value === "own") {
        this.own = this.ends().map((v) => Math.round(v));
        [byId("limit-low").value, byId("limit-high").value] = this.own;
      }
      this.limits = e.target.value;
      byId("own-limits").hidden = this.limits !== "own";
      this.changed();
    });
    for (const id of ["limit-low", "limit-high"]) on(id, "change", () => {
      const own = [Number(byId("limit-low").value), Number(byId("limit-high").value)];
      if (own[0] < own[1]) this.own = own;
      this.changed();
    });
    for (const name of Object.keys(this.shows)) on(`show-${name}`, "change", (e) => {
      this.shows[name] = e.target.checked;
      this.changed();
    });
    on("time", "input", (e) => {
      const [first, last] = [this.timed[0], this.timed[this.timed.length - 1]];
      this.until = e.target.value === "1000" ? null : first + ((last - first) * e.target.value) / 1000;
      this.changed();
    });
    const tabs = [...byId("tabs").children];
    tabs.forEach((button, i) => {
      button.addEventListener("click", () => this.tab(button.getAttribute("aria-controls")));
      button.addEventListener("keydown", (event) => {
        const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
        if (!step) return;
        const next = tabs[(i + step + tabs.length) % tabs.length];
        next.focus();
        next.click();
      });
    });
    for (const button of document.querySelectorAll("[data-close]")) button.addEventListener("click", () => button.closest("dialog").close());
    addEventListener("hashchange", () => location.reload());
    // What nobody waited for: a server that is gone has its banner, a refusal is told.
    addEventListener("unhandledrejection", (event) => {
      if (event.reason instanceof api.Refused) this.toast(event.reason.message);
      if (event.reason instanceof api.Refused || event.reason instanceof api.Gone) event.preventDefault();
    });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.changed());
    addEventListener("resize", () => {
      this.bandStrip();
      this.here.draw();
    });
    this.wireDrop();
    api.onGone((gone) => {
      byId("gone").hidden = !gone;
      if (!gone) this.back();
    });
    setInterval(() => document.hidden || api.get("/api/state").catch(() => {}), 5000);
  }

  /** The server is there again: the same, or one that was started anew. */
  async back() {
    const state = await api.get("/api/state").catch(() => null);
    if (!state) return;
    if (state.instance !== this.instance) {
      this.linked.write();
      location.reload();
    } else this.want();
  }

  wireDrop() {
    let inside = 0;
    const files = (event) => [...(event.dataTransfer?.types ?? [])].includes("Files");
    addEventListener("dragenter", (event) => {
      if (!files(event)) return;
      inside++;
      byId("drop").hidden = false;
    });
    addEventListener("dragleave", (event) => {
      if (files(event) && --inside <= 0) byId("drop").hidden = true;
    });
    addEventListener("dragover", (event) => files(event) && event.preventDefault());
    addEventListener("drop", (event) => {
      if (!files(event)) return;
      event.preventDefault();
      inside = 0;
      byId("drop").hidden = true;
      const [file] = event.dataTransfer.files;
      if (file) this.open.take(file);
    });
  }
}

/** The band with the greatest level. */
function loudest(item) {
  let best = 0;
  item.strip.forEach((s, i) => {
    if ((s[1] ?? -Infinity) > (item.strip[best][1] ?? -Infinity)) best = i;
  });
  return best;
}

const same = (a, b) => a.every((v, i) => v === b[i]);

const app = new App();
// For tests and for people with a console.
window.portolan = app;
app.start().catch((error) => app.toast(error.message));
