// Fit methods, and follow what runs.

import * as api from "./api.js";
import { number } from "./chart.js";
import { make } from "./here.js";
import { follow } from "./jobs.js";

const byId = (id) => document.getElementById(id);

export class Work {
  constructor(app) {
    this.app = app;
    byId("fit-form").addEventListener("submit", (event) => this.fit(event));
    byId("fit-method").addEventListener("change", () => this.showOptions());
  }

  /** Fills the list of methods. */
  setMethods(methods) {
    this.methods = methods;
    byId("fit-method").replaceChildren(...methods.map((m) => make("option", { value: m.name }, m.name)));
    byId("fit-method").value = "auto";
    this.showOptions();
  }

  setReadings(items) {
    const readings = items.filter((item) => item.kind === "readings");
    const kept = byId("fit-readings").value;
    byId("fit-readings").replaceChildren(...readings.map((item) => make("option", { value: item.id }, this.app.label(item.id))));
    if (readings.some((item) => String(item.id) === kept)) byId("fit-readings").value = kept;
    byId("fit-form").querySelector("button[type=submit]").disabled = !readings.length;
  }

  /** Another item is shown: its readings are the ones to fit. */
  shown() {
    const readings = this.app.item?.readings ?? null;
    if (readings !== null) byId("fit-readings").value = readings;
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
    await this.run({ kind: "fit", readings: Number(byId("fit-readings").value), method: method.name, settings, emitters, seed: Number(byId("fit-seed").value) || 0 }, this.part());
  }

  /** Where it is told what comes of a fit: above those that still run. */
  part() {
    const part = make("div");
    for (const old of [...byId("fit-told").children]) if (!old.dataset.runs) old.remove();
    byId("fit-told").prepend(part);
    return part;
  }

  /** Starts a job and follows it. `use` is what happens to the item that comes of it. */
  async run(request, part, use) {
    try {
      const job = await api.post("/api/jobs", request);
      part.replaceChildren(make("pre", { tabindex: "0", "aria-label": "Command" }, job.commands.join("\n")));
      await this.follow(job, part, use);
    } catch (error) {
      if (!error.status) return;
      part.replaceChildren(make("p", { class: "note", role: "alert" }, error.message));
    }
  }

  /** Follows a job until it ends, and shows what came of it. */
  async follow({ id, kind, of }, part = kind === "fit" ? this.part() : this.app.check.part(kind, of), use = (item) => this.app.show(item)) {
    part.dataset.runs = "true";
    try {
      await this.ended(await follow(id), part, use);
    } finally {
      delete part.dataset.runs;
    }
  }

  async ended(job, part, use) {
    const { app } = this;
    if (job.state === "cancelled") return part.append(make("p", { class: "note" }, "Cancelled."));
    if (job.state === "failed") {
      app.toast(job.error);
      return part.append(make("p", { class: "note", role: "alert" }, job.error));
    }
    if (job.item) {
      await app.refresh();
      // Who has gone on to other readings meanwhile is not called back.
      const of = app.items.find((item) => item.id === job.item)?.source.fit?.readings;
      if (!app.item || (app.item.readings === of && app.wanted === app.item.id)) await use(job.item);
      part.append(make("p", {}, `Fitted in ${number(job.seconds, 2)} s: ${job.what}.`));
    }
    if (job.advice || job.validation) app.check.ended(job, part);
  }
}
