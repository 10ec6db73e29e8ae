// Take away: exports, and the commands that write the same bytes.

import * as api from "./api.js";
import { make } from "./here.js";

const byId = (id) => document.getElementById(id);

const MAPS = [["npz", "NumPy (.npz)"], ["csv", "Table (.csv)"], ["mat", "MATLAB (.mat)"], ["tif", "GeoTIFF (.tif)"], ["nc", "NetCDF (.nc)"], ["zarr", "Zarr (.zarr, zipped)"], ["geojson", "Areas (.geojson)"], ["kmz", "Google Earth (.kmz)"], ["png", "Bare picture (.png and .pgw, zipped)"]];
const READINGS = [["npz", "NumPy (.npz)"], ["csv", "Table (.csv)"], ["mat", "MATLAB (.mat)"], ["geojson", "Points (.geojson)"]];
/** What is only for maps that know where on Earth they lie. */
const ON_EARTH = ["kmz"];
const PICTURES = [["png", "PNG"], ["svg", "SVG"], ["pdf", "PDF"]];

const WHAT = {
  picture: ["A picture of this band", PICTURES, (item) => item.kind !== "readings"],
  spectrum: ["A picture of all bands", PICTURES, (item) => item.kind !== "readings" && item.bands > 1],
  factors: ["A picture of the emitters' factors", PICTURES, (item) => item.kind !== "readings" && item.emitters.length > 0],
  map: ["The map", MAPS, (item) => item.kind !== "readings"],
  model: ["The model", [["npz", "Model (.npz)"]], (item) => item.kind === "model"],
  emitters: ["The emitters", [["geojson", "Ellipses (.geojson)"]], (item) => item.kind === "model" && item.emitters.length > 0],
  coverage: ["The area above a level", [["json", "Numbers (.json)"], ...PICTURES], (item) => item.kind !== "readings"],
  places: ["Predictions for a table of places", [["csv", "Table (.csv)"]], (item) => item.kind === "model"],
  place: ["The selected place", [["csv", "Table (.csv)"]], (item, app) => item.kind === "model" && app.at],
  readings: ["The readings", READINGS, (item) => item.readings !== null],
};

export class Take {
  constructor(app) {
    this.app = app;
    byId("take-what").addEventListener("change", () => {
      this.chosen = byId("take-what").value;
      this.formats();
    });
    for (const id of ["take-format", "take-bands", "take-cell", "take-mask", "take-title", "take-levels", "take-contours"]) byId(id).addEventListener("change", () => this.commands());
    byId("take-table").addEventListener("change", () => this.upload());
    byId("take-level").addEventListener("change", () => this.commands());
    byId("take-form").addEventListener("submit", (event) => {
      event.preventDefault();
      this.download();
    });
    byId("command").addEventListener("click", () => this.dialog());
    byId("command-copy").addEventListener("click", () => app.copyText(byId("command-text").textContent, "The commands are copied"));
  }

  /** What this item can become. */
  update() {
    const { item } = this.app;
    const can = item ? Object.entries(WHAT).filter(([, [, , may]]) => may(item, this.app)) : [];
    byId("take-what").replaceChildren(...can.map(([name, [text]]) => make("option", { value: name }, text)));
    if (can.some(([name]) => name === this.chosen)) byId("take-what").value = this.chosen;
    this.formats();
  }

  formats() {
    const what = byId("take-what").value, kept = byId("take-format").value;
    const known = (WHAT[what]?.[1] ?? []).filter(([ending]) => what !== "map" || this.app.item.crs || !ON_EARTH.includes(ending));
    byId("take-format").replaceChildren(...known.map(([ending, text]) => make("option", { value: ending }, text)));
    if (known.some(([ending]) => ending === kept)) byId("take-format").value = kept;
    byId("take-map").hidden = !["map", "coverage"].includes(what);
    byId("take-cell").parentElement.hidden = this.app.item?.kind !== "model";
    byId("take-mask").parentElement.hidden = what !== "map";
    byId("take-table").parentElement.hidden = what !== "places";
    byId("take-level").parentElement.hidden = what !== "coverage";
    byId("take-look").hidden = !this.looks(what);
    byId("take-lines").hidden = what === "coverage";
    if (!byId("take-level").value) byId("take-level").value = this.app.level;
    this.commands();
  }

  /** Whether it is a picture with a heading. */
  looks(what) {
    return ["picture", "spectrum", "coverage"].includes(what);
  }

  words() {
    const { app } = this, what = byId("take-what").value, format = byId("take-format").value;
    const words = { what, format };
    if (what === "picture" || what === "spectrum") {
      if (what === "picture") words.band = app.band;
      Object.assign(words, this.look(), { levels: byId("take-levels").value.trim(), contours: byId("take-contours").value.trim() });
      // Steps have ends of their own.
      if (words.levels) delete words.range;
    }
    if (this.looks(what) && format !== "json") words.title = byId("take-title").value.trim();
    if (what === "map") {
      if (byId("take-bands").value === "this" || format === "png") words.bands = app.band;
      words["cell-m"] = app.item.kind === "model" ? byId("take-cell").value : "";
      words.mask = byId("take-mask").value;
    }
    if (what === "coverage") {
      words.above = byId("take-level").value;
      if (byId("take-bands").value === "this") words.bands = app.band;
      words["cell-m"] = app.item.kind === "model" ? byId("take-cell").value : "";
    }
    if (what === "places") words.upload = this.table;
    if (what === "place") Object.assign(words, { x: app.at.x, y: app.at.y });
    return words;
  }

  /** How a picture looks like what is seen. */
  look() {
    const { app } = this, words = {};
    if (app.layer === "above") words.above = app.level;
    else if (app.layer === "spread") words.spread = "true";
    else {
      if (app.palette !== "viridis") words.colours = app.palette;
      if (app.limits !== "band") words.range = app.ends().join(",");
    }
    if (app.item.readings && app.shows.sensors) words.sensors = "true";
    return words;
  }

  /** What is seen and no command draws, in words. */
  undrawn() {
    const { app } = this;
    if (app.mode_difference()) return "No command draws the difference of two maps.";
    if (app.other) return "No command draws two maps side by side.";
    return app.layer === "best" ? "No command draws the best server." : null;
  }

  /** Keeps a table of places at the server, to be answered. */
  async upload() {
    const [file] = byId("take-table").files;
    if (!file) return;
    try {
      this.table = (await api.upload(file)).upload;
      this.commands();
    } catch (error) {
      byId("take-note").textContent = error.message;
    }
  }

  async told(words) {
    return api.get(`/api/items/${this.app.item.id}/commands${api.query(words)}`);
  }

  async lines(words) {
    return (await this.told(words)).commands;
  }

  async commands() {
    if (!this.app.item || !byId("take-what").value) return void (byId("take-command").textContent = "");
    const turn = (this.turn = {});
    byId("take-command").setAttribute("aria-busy", "true");
    try {
      const words = this.words(), told = await this.told(words);
      // A later question may have been answered already.
      if (this.turn !== turn) return;
      byId("take-command").textContent = told.commands.join("\n");
      byId("take-note").textContent = this.note(words, told);
    } catch (error) {
      if (error.status) byId("take-note").textContent = error.message;
    } finally {
      if (this.turn === turn) byId("take-command").setAttribute("aria-busy", "false");
    }
  }

  /** What to know about the file. */
  note({ what }, { commands, same_bytes: same }) {
    if (what === "model" && !same) return commands.length ? "The model of that file." : "No command makes this model: it came ready.";
    const undrawn = ["picture", "spectrum"].includes(what) ? this.undrawn() : null;
    const power = undrawn ? `${undrawn} The picture shows the ${{ above: "chance", spread: "spread" }[this.app.layer] ?? "power"} of ${this.app.label(this.app.item.id)}. ` : "";
    return `${power}The file holds the same bytes as the command's.`;
  }

  async download() {
    const { app } = this, button = byId("take-form").querySelector("button");
    button.disabled = true;
    byId("take-note").textContent = "Writing …";
    try {
      const answer = await fetch(`/api/items/${app.item.id}/export${api.query(this.words())}`);
      if (!answer.ok) throw new Error((await answer.json()).error);
      const name = /filename="([^"]+)"/.exec(answer.headers.get("content-disposition"))?.[1] ?? "portolan";
      const url = URL.createObjectURL(await answer.blob());
      const link = make("a", { href: url, download: name });
      document.body.append(link);
      link.click();
      link.remove();
      setTimeout(() => URL.revokeObjectURL(url), 30000);
      byId("take-note").textContent = `${name} is written.`;
    } catch (error) {
      byId("take-note").textContent = error.message;
    } finally {
      button.disabled = false;
    }
  }

  /** The lines for what is on the screen, or why there are none. */
  async seen() {
    const { app } = this, undrawn = this.undrawn();
    if (app.item.kind === "readings") return { lines: await this.lines({ what: "readings", format: "npz" }) };
    if (app.other) return { note: `${undrawn} Compare with no other map to see the commands of one.`, lines: [] };
    if (undrawn) {
      const lines = app.item.kind === "model" ? await this.lines({ what: "map", format: "npz" }) : [];
      return { note: lines.length ? `${undrawn} These commands write the map as numbers, its spread beside it where the model has one.` : undrawn, lines };
    }
    const lines = await this.lines({ what: "picture", format: "png", band: app.band, ...this.look() });
    if (app.layer === "above") {
      const more = await this.lines({ what: "coverage", format: "json", above: app.level, bands: app.band });
      lines.push(...more.filter((line) => !lines.includes(line)));
    }
    return { lines };
  }

  /** The commands for what is on the screen. */
  async dialog() {
    const { app } = this;
    if (!app.item) return app.toast("Open a file first");
    try {
      const { note, lines } = await this.seen();
      byId("command-note").textContent = note ?? "";
      byId("command-note").hidden = !note;
      byId("command-text").textContent = lines.join("\n");
      byId("command-text").hidden = byId("command-copy").hidden = !lines.length;
      byId("command-dialog").showModal();
    } catch (error) {
      if (error.status) app.toast(error.message);
    }
  }
}
