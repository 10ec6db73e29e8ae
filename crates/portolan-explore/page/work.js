// Work in the page: open files, fit, validate, advise.

import * as api from "./api.js";
import { number } from "./chart.js";
import { make, metres, table } from "./here.js";

const byId = (id) => document.getElementById(id);

export class Work {
  constructor(app) {
    this.app = app;
    byId("fit-form").addEventListener("submit", (event) => this.fit(event));
    byId("fit-method").addEventListener("change", () => this.showOptions());
    byId("validate-form").addEventListener("submit", (event) => this.validate(event));
    byId("advise-form").addEventListener("submit", (event) => this.advise(event));
    byId("job-cancel").addEventListener("click", () => this.job && api.remove(`/api/jobs/${this.job}`).catch(() => {}));
    byId("open-form").addEventListener("submit", (event) => this.openUpload(event));
    for (const id of ["open-unit", "open-silence", "open-x", "open-y", "open-value", "open-band", "open-bands", "open-time", "open-gather", "open-grid", "open-crs", "open-clock"]) {
      byId(id).addEventListener("change", () => this.preview());
    }
  }

  /** Fills the lists of methods. */
  setMethods(methods) {
    this.methods = methods;
    byId("fit-method").replaceChildren(...methods.map((m) => make("option", { value: m.name }, m.name)));
    byId("fit-method").value = "auto";
    const usual = ["kriging", "field", "auto"];
    byId("validate-methods").replaceChildren(...methods.map((m) =>
      make("label", { title: m.summary }, make("input", { type: "checkbox", value: m.name, checked: usual.includes(m.name) }), m.name, make("span", { class: "quiet" }, m.gives_spread ? "± spread" : ""))));
    this.showOptions();
  }

  setReadings(items) {
    const readings = items.filter((item) => item.kind === "readings");
    const kept = byId("fit-readings").value;
    byId("fit-readings").replaceChildren(...readings.map((item) => make("option", { value: item.id }, item.name)));
    if (readings.some((item) => String(item.id) === kept)) byId("fit-readings").value = kept;
    for (const button of [byId("fit-form"), byId("validate-form")]) button.querySelector("button[type=submit]").disabled = !readings.length;
  }

  method() {
    return this.methods.find((m) => m.name === byId("fit-method").value);
  }

  showOptions() {
    const method = this.method();
    byId("fit-help").textContent = `${method.summary}.`;
    byId("fit-emitters").disabled = !method.takes_emitters;
    byId("fit-options").replaceChildren(...(method.options.length ? method.options.map((option) => {
      const input = make("input", { name: option.name, placeholder: option.default, id: `option-${option.name}` });
      return make("div", { class: "option" }, make("label", { for: `option-${option.name}` }, option.name), input, make("small", {}, `${option.takes}; default: ${option.default}`));
    }) : [make("p", { class: "quiet" }, "This method has none.")]));
  }

  async fit(event) {
    event.preventDefault();
    const settings = {};
    for (const input of byId("fit-options").querySelectorAll("input")) if (input.value.trim()) settings[input.name] = input.value.trim();
    const method = this.method();
    const emitters = method.takes_emitters && byId("fit-emitters").value ? Number(byId("fit-emitters").value) : null;
    await this.run({ kind: "fit", readings: Number(byId("fit-readings").value), method: method.name, settings, emitters, seed: Number(byId("fit-seed").value) || 0 }, byId("fit-told"));
  }

  async validate(event) {
    event.preventDefault();
    const methods = [...byId("validate-methods").querySelectorAll("input:checked")].map((i) => i.value);
    await this.run({ kind: "validate", readings: Number(byId("fit-readings").value), methods, split: byId("validate-split").value, folds: Number(byId("validate-folds").value) }, byId("validate-told"));
  }

  async advise(event) {
    event.preventDefault();
    await this.run({ kind: "advise", item: this.app.item?.id, count: Number(byId("advise-count").value) }, byId("advise-told"));
  }

  /** Starts a job and follows it. */
  async run(request, box) {
    try {
      const job = await api.post("/api/jobs", request);
      box.replaceChildren(make("pre", { tabindex: "0", "aria-label": "Command" }, job.commands.join("\n")));
      await this.follow(job.id, box);
    } catch (error) {
      if (!error.status) return;
      box.replaceChildren(make("p", { class: "note", role: "alert" }, error.message));
    }
  }

  /** Shows how far a job is until it ends. */
  async follow(id, box) {
    this.job = id;
    byId("job").hidden = false;
    try {
      for (;;) {
        const job = await api.get(`/api/jobs/${id}`);
        if (this.job === id) {
          byId("job-what").textContent = { fit: "Fitting ", validate: "Validating ", advise: "Advising " }[job.kind] + job.what;
          byId("job-bar").value = job.share;
        }
        if (job.state !== "running") return await this.ended(job, box);
        await new Promise((resume) => setTimeout(resume, job.seconds < 2 ? 80 : 250));
      }
    } finally {
      if (this.job === id) {
        this.job = null;
        byId("job").hidden = true;
      }
    }
  }

  async ended(job, box) {
    const { app } = this;
    const tell = (...parts) => box?.append(...parts);
    if (job.state === "cancelled") return tell(make("p", { class: "note" }, "Cancelled."));
    if (job.state === "failed") {
      app.toast(job.error);
      return tell(make("p", { class: "note", role: "alert" }, job.error));
    }
    if (job.item) {
      await app.refresh();
      // Who has gone on to other readings meanwhile is not called back.
      const of = app.items.find((item) => item.id === job.item)?.source.fit?.readings;
      if (!app.item || app.item.readings === of) await app.show(job.item);
      tell(make("p", {}, `Fitted in ${number(job.seconds, 2)} s.`));
    }
    if (job.advice) {
      app.advice = job.advice;
      tell(table(["", "#x, m", "#y, m", "#less variance"], job.advice.map((a) => [String(a.rank), metres(a.x_m, 100), metres(a.y_m, 100), `${number(a.reduction_percent, 2)} %`]), "Advised places"));
      tell(links(job.id, ["csv", "json", "png"]));
      app.changed();
    }
    if (job.validation) this.validated(job, box);
  }

  validated(job, box) {
    const { app } = this, rows = job.validation.methods;
    box.append(table(["Method", "#rmse", "#mean", "#median", "#in 90 %", "#s"], rows.map((row) => [
      row.failed ? make("span", { title: row.failed }, `${row.method}: ${row.failed}`) : row.method,
      number(row.rmse_db, 2), number(row.mae_db, 2), number(row.median_abs_db, 2),
      row.coverage_90 === null ? "–" : `${number(100 * row.coverage_90, 0)} %`, number(row.seconds, 1)]), "Errors at held-out sensors in dB, and the share of readings in their 90 % interval"));
    const pick = make("select", { "aria-label": "Errors on the map", onchange: (event) => app.showErrors(rows.find((r) => r.method === event.target.value)) },
      make("option", { value: "" }, "Show errors on the map …"), ...rows.filter((r) => r.errors).map((r) => make("option", { value: r.method }, r.method)));
    box.append(make("p", {}, pick), links(job.id, ["png"]));
  }

  /** A file was dropped or chosen. */
  async take(file) {
    const { app } = this;
    if (/^image\//.test(file.type) && !/\.npz$/i.test(file.name)) return app.plan(file);
    if (file.size > 64 * 2 ** 20) return app.toast(`${file.name} is larger than 64 MB: start the explorer with it, portolan explore ${file.name}`);
    try {
      this.upload = await api.upload(file);
      if (this.upload.summary && !this.upload.lines.length) return await this.openNow({});
      this.showPreview(this.upload, true);
      byId("open-dialog").showModal();
    } catch (error) {
      if (error.status) app.toast(error.message);
    }
  }

  words() {
    const words = {}, columns = [];
    const put = (name, id) => byId(id).value.trim() && (words[name] = byId(id).value.trim());
    put("unit", "open-unit");
    put("not-heard", "open-silence");
    put("gather", "open-gather");
    put("grid", "open-grid");
    put("crs", "open-crs");
    put("utc-offset", "open-clock");
    const degrees = /^lon|^lng|longitude/i.test(byId("open-x").value);
    const names = [[degrees ? "lon" : "x", "open-x"], [degrees ? "lat" : "y", "open-y"], ["value", "open-value"], ["band", "open-band"], ["bands", "open-bands"], ["time", "open-time"]];
    for (const [what, id] of names) if (byId(id).value.trim()) columns.push(`${what}=${byId(id).value.trim()}`);
    if (columns.length) words.columns = columns.join(",");
    return words;
  }

  showPreview(found, fresh) {
    const { lines, summary, problem } = found, told = byId("open-told");
    told.classList.toggle("bad", Boolean(problem));
    byId("open-title").textContent = `Open ${found.name}`;
    if (problem) told.textContent = problem;
    else {
      const what = { readings: "Readings", map: "A map", model: "A model", arrays: "Arrays" }[summary.kind];
      const sensors = summary.sensors ? `${summary.sensors} sensors, ` : "";
      told.textContent = `${what}: ${sensors}${summary.bands} band(s), ${summary.unit ?? "no unit"}, ${summary.gaps} gaps of ${summary.entries}.`;
    }
    byId("open-go").disabled = Boolean(problem);
    if (!fresh) return;
    const header = lines[0] ?? [];
    byId("open-table").replaceChildren(lines.length ? table(header.slice(0, 12), lines.slice(1).map((line) => line.slice(0, 12)), "The first lines of the file") : "");
    for (const id of ["open-x", "open-y", "open-value", "open-band", "open-time"]) {
      byId(id).replaceChildren(make("option", { value: "" }, "by its name"), ...header.map((name) => make("option", { value: name }, name)));
    }
    for (const id of ["open-unit", "open-silence", "open-bands", "open-gather", "open-grid", "open-crs", "open-clock"]) byId(id).value = "";
  }

  async preview() {
    if (!this.upload) return;
    try {
      this.showPreview(await api.post(`/api/uploads/${this.upload.upload}/preview`, { words: this.words() }), false);
    } catch (error) {
      if (error.status) byId("open-told").textContent = error.message;
    }
  }

  async openUpload(event) {
    event.preventDefault();
    try {
      await this.openNow(this.words());
      byId("open-dialog").close();
    } catch (error) {
      byId("open-told").classList.add("bad");
      byId("open-told").textContent = error.message;
    }
  }

  /** Reads the upload; readings are fitted at once, so that there is something to see. */
  async openNow(words) {
    const { app } = this;
    const { item } = await api.post(`/api/uploads/${this.upload.upload}/open`, { words });
    await app.refresh();
    await app.show(item);
    if (app.item.kind === "readings") {
      byId("fit-readings").value = String(item);
      await this.run({ kind: "fit", readings: item, method: "auto" }, byId("fit-told"));
    }
  }
}

function links(job, formats) {
  const list = formats.map((f) => make("a", { href: `/api/jobs/${job}/export?format=${f}`, download: true }, `.${f}`));
  const parts = list.flatMap((a, i) => (i ? [" ", a] : [a]));
  return make("p", {}, "Download ", ...parts);
}
