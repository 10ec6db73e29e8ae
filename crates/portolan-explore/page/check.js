// Check: validation of the readings that are shown, and advice for the model that is shown. Results
// are kept with what they are about, and are seen only while that is shown.

import { number } from "./chart.js";
import { make, metres, table } from "./here.js";

const byId = (id) => document.getElementById(id);

export class Check {
  constructor(app) {
    this.app = app;
    /** What was told about readings (validation) and models (advice), and the jobs, by their number. */
    this.told = { validate: new Map(), advise: new Map() };
    this.jobs = { validate: new Map(), advise: new Map() };
    byId("validate-form").addEventListener("submit", (event) => this.validate(event));
    byId("advise-form").addEventListener("submit", (event) => this.advise(event));
  }

  setMethods(methods) {
    const usual = ["kriging", "field", "auto"];
    byId("validate-methods").replaceChildren(...methods.map((m) =>
      make("label", { title: m.summary }, make("input", { type: "checkbox", value: m.name, checked: usual.includes(m.name) }), m.name, make("span", { class: "quiet" }, m.gives_spread ? "± spread" : ""))));
  }

  /** Another item is shown: so are its results, and no others. */
  shown() {
    const { app } = this, { item } = app;
    const readings = item?.readings ?? null;
    byId("validate-of").textContent = readings !== null ? `Checks the readings ${app.label(readings)}: methods predict sensors that they have not seen.` : "There are no readings to check with this: show readings, or a fit of some.";
    byId("validate-form").querySelector("button[type=submit]").disabled = readings === null;
    byId("advise-form").querySelector("button[type=submit]").disabled = item?.kind !== "model";
    const put = (id, part) => byId(id).replaceChildren(...(part ? [part] : []));
    put("validate-told", this.told.validate.get(readings));
    put("advise-told", this.told.advise.get(item?.id));
    for (const pick of byId("validate-told").querySelectorAll("select")) pick.value = app.errors?.method ?? "";
    app.advice = this.jobs.advise.get(item?.id)?.advice ?? [];
  }

  /** Where it is told what comes of a job about an item. */
  part(kind, of) {
    const { told } = this;
    if (!told[kind].has(of)) told[kind].set(of, make("div"));
    else told[kind].get(of).replaceChildren();
    this.shown();
    return told[kind].get(of);
  }

  async validate(event) {
    event.preventDefault();
    const { app } = this, { readings } = app.item;
    const methods = [...byId("validate-methods").querySelectorAll("input:checked")].map((i) => i.value);
    app.showErrors(null);
    await app.work.run({ kind: "validate", readings, methods, split: byId("validate-split").value, folds: Number(byId("validate-folds").value) }, this.part("validate", readings));
  }

  async advise(event) {
    event.preventDefault();
    const { item } = this.app;
    await this.app.work.run({ kind: "advise", item: item.id, count: Number(byId("advise-count").value) }, this.part("advise", item.id));
  }

  /** Jobs that ended before this page was opened. */
  earlier(jobs) {
    for (const job of jobs) {
      if (job.advice || job.validation) this.tell(job, this.part(job.kind, job.of));
    }
  }

  /** What a link says about the results that are seen. */
  words() {
    const { item, errors } = this.app;
    const { methods, split, folds } = this.jobs.validate.get(item.readings)?.asked ?? {};
    return { advise: this.jobs.advise.get(item.id)?.asked.count, validate: errors ? JSON.stringify({ methods, split, folds }) : null, errors: errors?.method };
  }

  /** Makes results again that a link shows and that are not here. */
  async again({ advise, validate, errors }) {
    const { app } = this, { item } = app;
    if (advise && item?.kind === "model" && this.jobs.advise.get(item.id)?.asked.count !== advise) {
      await app.work.run({ kind: "advise", item: item.id, count: advise }, this.part("advise", item.id));
    }
    if (!errors || !validate || (item?.readings ?? null) === null) return;
    const { readings } = item, plain = ({ methods, split, folds }) => ({ methods, split, folds });
    const there = this.jobs.validate.get(readings);
    if (!there || JSON.stringify(plain(there.asked)) !== JSON.stringify(plain(validate))) {
      await app.work.run({ kind: "validate", readings, ...plain(validate) }, this.part("validate", readings));
    }
    const row = this.jobs.validate.get(readings)?.validation.methods.find((one) => one.method === errors);
    if (row) app.showErrors(row, readings);
    this.shown();
  }

  /** Tells what came of a job. */
  ended(job, part) {
    this.tell(job, part);
    this.late(job, job.kind === "advise" ? this.app.item?.id : this.app.item?.readings);
    this.app.changed();
  }

  tell(job, part) {
    this.jobs[job.kind].set(job.of, job);
    if (job.advice) this.tellAdvice(job, part);
    else this.tellErrors(job, part);
  }

  tellAdvice(job, part) {
    part.append(table(["No.", "#x, m", "#y, m", "#less variance"], job.advice.map((a) => [String(a.rank), metres(a.x_m, 100), metres(a.y_m, 100), `${number(a.reduction_percent, 2)} %`]), "Advised places"));
    part.append(links(job.id, ["csv", "json", "png", "svg", "pdf"]));
  }

  tellErrors(job, part) {
    const { app } = this, rows = job.validation.methods, name = app.label(job.of);
    part.append(make("h2", {}, `Errors in ${name}`));
    part.append(table(["Method", "#rmse", "#mean", "#median", "#in 90 %", "#s"], rows.map((row) => [
      row.failed ? make("span", { title: row.failed }, `${row.method}: ${row.failed}`) : row.method,
      number(row.rmse_db, 2), number(row.mae_db, 2), number(row.median_abs_db, 2),
      row.coverage_90 === null ? "–" : `${number(100 * row.coverage_90, 0)} %`, number(row.seconds, 1)]), `Errors at held-out sensors of ${name} in dB, and the share of readings in their 90 % interval`));
    const pick = make("select", { "aria-label": "Errors on the map", onchange: (event) => app.showErrors(rows.find((r) => r.method === event.target.value), job.of) },
      make("option", { value: "" }, "Show errors on the map …"), ...rows.filter((r) => r.errors).map((r) => make("option", { value: r.method }, r.method)));
    part.append(make("p", {}, pick), links(job.id, ["png", "svg", "pdf"]));
  }

  /** Who has gone on to something else is told where the result is. */
  late(job, shown) {
    const what = job.kind === "advise" ? "Advice for" : "Validation of";
    if (job.of !== shown) this.app.toast(`${what} ${this.app.label(job.of)} is done: show it to see the result`);
    else this.shown();
  }
}

function links(job, formats) {
  const list = formats.map((f) => make("a", { href: `/api/jobs/${job}/export?format=${f}`, download: true }, `.${f}`));
  const parts = list.flatMap((a, i) => (i ? [" ", a] : [a]));
  return make("p", {}, "Download ", ...parts);
}
