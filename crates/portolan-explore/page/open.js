// Open a file: dropped or chosen, previewed with what is said about it, then read.

import * as api from "./api.js";
import { make, table } from "./here.js";

const byId = (id) => document.getElementById(id);

/** The fields, by the command's option that each of them is. */
export const FIELDS = {
  unit: "open-unit", "not-heard": "open-silence", gather: "open-gather", grid: "open-grid", crs: "open-crs", "utc-offset": "open-clock",
  "band-by": "open-band-by", "min-places": "open-min-places", "floor-db": "open-floor", "cell-m": "open-cell", origin: "open-origin",
  "band-width": "open-band-width", "band-edges": "open-band-edges", var: "open-var", format: "open-format",
  where: "open-where", missing: "open-missing", combine: "open-combine", "freq-unit": "open-freq-unit", "floor-height": "open-floor-height", "time-unit": "open-time-unit", strict: "open-strict", accept: "open-accept",
};
const COLUMNS = ["open-x", "open-y", "open-value", "open-band", "open-time", "open-device"];
/** How the fields under "More" are called on the page. */
const MORE = {
  "--columns device=": "“Device”: ", "--band-by": "“A band is”", "--min-places N": "“Places of a band, at least”", "--min-places": "“Places of a band, at least”", "--floor-db": "“Heard above”", "--cell-m": "“Metres per cell”", "--origin": "“Centre of cell 0,0”",
  "--band-width": "“Width of a band”", "--band-edges": "“Edges of bands”", "--var": "“Array or variable”", "--format": "“The file is”",
  "--where": "“Only lines where”", "--missing": "“No reading”", "--combine": "“Transmitters of a network”", "--freq-unit": "“Frequencies are in”", "--floor-height METRES": "“Metres from floor to floor”", "--floor-height": "“Metres from floor to floor”", "--time-unit": "“Times count”", "--strict": "“A line that cannot be read”", "--accept": "“What is doubtful”",
};
/** How the fields are called on the page. */
const NAMES = {
  ...MORE,
  "--columns bands=PREFIX*": "“One column per band”", "--columns bands=": "“One column per band”", "--columns band=NAME": "“Band”",
  "--columns value=NAME": "“Level”", "--columns x=NAME,y=NAME": "your choice under “x or longitude” and “y or latitude”", "--columns": "the fields under “Columns”",
  "--unit dbm or --unit linear": "dBm or milliwatts under “Unit”", "--unit dbm or db": "dBm or dB under “Unit”", "--unit dbm": "dBm under “Unit”", "--unit relative": "relative under “Unit”", "--unit": "“Unit”",
  "--not-heard": "“Not heard”", "--gather": "“Gather within”", "--grid ROWSxCOLS": "rows x columns under “Grid”", "--grid": "“Grid”", "--crs": "“Coordinates”", "--utc-offset": "“Clock”",
};

/** A message of the reader, about fields of this page instead of the command's options. */
export function aboutFields(message) {
  let text = message.replace(/pass (?=--)/g, "choose ").replace(/leave out (?=--)/g, "leave empty: ");
  for (const [option, field] of Object.entries(NAMES)) text = text.replaceAll(option, field);
  return text;
}

export class Open {
  constructor(app) {
    this.app = app;
    byId("open-form").addEventListener("submit", (event) => this.submit(event));
    for (const id of [...Object.values(FIELDS), ...COLUMNS, "open-bands"]) byId(id).addEventListener("change", () => this.preview());
  }

  /** A file was dropped or chosen. */
  async take(file) {
    const { app } = this;
    if (/^image\//.test(file.type) && !/\.npz$/i.test(file.name)) return app.plan(file);
    if (file.size > 64 * 2 ** 20) return app.toast(`${file.name} is larger than 64 MB: start portolan explore with it`);
    try {
      this.upload = await api.upload(file);
      this.levelIsBand = false;
      if (this.upload.summary && !this.upload.lines.length) return await this.read({});
      this.showPreview(this.upload, true);
      byId("open-dialog").showModal();
    } catch (error) {
      if (error.status) app.toast(error.message);
    }
  }

  words() {
    const words = {}, columns = [], said = (id) => byId(id).value.trim();
    for (const [name, id] of Object.entries(FIELDS)) if (said(id) && !(id === "open-floor" && !said("open-silence"))) words[name] = said(id);
    const degrees = /^lon|^lng|longitude/i.test(said("open-x"));
    const names = [[degrees ? "lon" : "x", "open-x"], [degrees ? "lat" : "y", "open-y"], [this.levelIsBand ? "bands" : "value", "open-value"], ["band", "open-band"], ["bands", "open-bands"], ["time", "open-time"], ["device", "open-device"]];
    for (const [what, id] of names) if (said(id)) columns.push(`${what}=${said(id)}`);
    if (columns.length) words.columns = columns.join(",");
    return words;
  }

  showPreview(found, fresh) {
    const { lines, summary, problem, warning } = found, told = byId("open-told");
    // Nothing is heard below a floor only where some readings were not heard.
    byId("open-floor").disabled = !byId("open-silence").value.trim();
    told.classList.toggle("bad", Boolean(problem || warning));
    byId("open-title").textContent = `Open ${found.name}`;
    if (fresh) byId("open-more").open = false;
    if (problem) {
      told.textContent = aboutFields(problem);
      byId("open-more").open ||= Object.values(MORE).some((name) => told.textContent.includes(name));
    }
    else {
      const what = { readings: "Readings", map: "A map", model: "A model", arrays: "Arrays" }[summary.kind];
      const sensors = summary.sensors ? `${summary.sensors} sensors, ` : "";
      told.textContent = `${what}: ${sensors}${summary.bands} band(s), ${summary.unit ?? "no unit"}, ${summary.gaps} gaps of ${summary.entries}.`;
      if (warning) told.append(make("br"), make("strong", { id: "open-warning" }, `Beware: ${warning} Then write it under “Not heard”.`));
    }
    byId("open-go").disabled = Boolean(problem);
    if (!fresh) return;
    const header = lines[0] ?? [];
    byId("open-table").replaceChildren(lines.length ? table(header.slice(0, 12), lines.slice(1).map((line) => line.slice(0, 12)), "The first lines of the file") : "");
    for (const id of COLUMNS) byId(id).replaceChildren(make("option", { value: "" }, "by its name"), ...header.map((name) => make("option", { value: name }, name)));
    for (const id of [...Object.values(FIELDS), "open-bands"]) byId(id).value = "";
  }

  async preview() {
    if (!this.upload) return;
    const ask = () => api.post(`/api/uploads/${this.upload.upload}/preview`, { words: this.words() });
    try {
      this.levelIsBand = false;
      let found = await ask();
      // A level without a column that names bands is a table with one band.
      if (found.problem && byId("open-value").value && !byId("open-band").value && !byId("open-bands").value.trim()) {
        this.levelIsBand = true;
        const alone = await ask();
        if (!alone.problem || /not a band/.test(found.problem)) found = alone;
        else this.levelIsBand = false;
      }
      this.showPreview(found, false);
    } catch (error) {
      if (error.status) byId("open-told").textContent = aboutFields(error.message);
    }
  }

  async submit(event) {
    event.preventDefault();
    try {
      await this.read(this.words());
      byId("open-dialog").close();
    } catch (error) {
      byId("open-told").classList.add("bad");
      byId("open-told").textContent = aboutFields(error.message);
    }
  }

  /** Reads the upload; readings are fitted at once, so that there is something to see. */
  async read(words) {
    const { app } = this;
    const { item } = await api.post(`/api/uploads/${this.upload.upload}/open`, { words });
    await app.refresh();
    await app.show(item);
    if (app.item.kind === "readings") await app.work.run({ kind: "fit", readings: item, method: "auto" }, app.work.part());
  }
}
