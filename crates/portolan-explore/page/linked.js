// The page and its link: what the address says is shown, made again where the server does not have it,
// and kept up to date.

import * as link from "./link.js";

const byId = (id) => document.getElementById(id);

export class Linked {
  constructor(app) {
    this.app = app;
    /** Words of a link that are not seen yet: they stay in the link. */
    this.pending = {};
    this.chosen = false;
  }

  /** Takes over how things are shown. */
  settings(said) {
    const { app } = this;
    if (said.layer) app.layer = said.layer;
    if (said.level !== null) app.level = said.level;
    if (said.palette) app.palette = said.palette;
    if (said.limits) {
      const own = said.limits.split(",").map(Number);
      if (own.length === 2 && own.every(Number.isFinite)) [app.limits, app.own] = ["own", own];
      else if (said.limits === "all") app.limits = "all";
    }
    if (said.mode === "difference") app.mode = "difference";
    for (const name of said.hide) if (name in app.shows) app.shows[name] = false;
    if (said.wide) app.wide(true);
    if (said.tab && byId(said.tab)) app.tab(said.tab);
    const layer = document.querySelector(`[name=layer][value="${CSS.escape(app.layer)}"]`);
    if (layer) layer.checked = true;
    else app.layer = "power";
    byId("palette").value = app.palette;
    byId("limits").value = app.limits;
    byId("own-limits").hidden = app.limits !== "own";
    [byId("limit-low").value, byId("limit-high").value] = app.own;
    byId("level").value = app.level;
    document.querySelector(`[name=mode][value=${app.mode}]`).checked = true;
    for (const name of Object.keys(app.shows)) byId(`show-${name}`).checked = app.shows[name];
  }

  /** Shows what a link names as far as it is there; the rest comes when it is made. */
  async start(said, jobs) {
    const { app } = this, there = (name) => link.resolve(name, app.items).item;
    const item = there(said.item), other = there(said.other);
    this.pending = link.rest(said);
    if (item || !said.item) delete this.pending.item;
    await app.show((item ?? app.usual())?.id, this.pending.item ? { ...said, emitter: null } : said);
    if (!this.pending.item && other) {
      await app.compare(other.id);
      delete this.pending.other;
    }
    if (said.at) app.ask(said.at);
    this.remake(said, jobs.filter((job) => ["running", "waiting"].includes(job.state)));
  }

  /** Follows what runs, and makes again what a link names and the server does not have. */
  async remake(said, running) {
    const { app, pending } = this;
    const ends = running.map((job) => app.work.follow(job).catch(() => {}));
    const show = async (id) => {
      await app.show(id, this.words(said));
      if (said.at && !app.at) app.ask(said.at);
    };
    for (const [word, use] of [["item", show], ["other", (id) => app.compare(id)]]) {
      if (pending[word]) await this.bring(said[word], running, ends, use);
      // Who has chosen something else meanwhile is not called back.
      if (this.chosen) return;
      delete pending[word];
      if (word === "item") delete pending.emitter;
    }
    // Results that are on their way need not be made again.
    await Promise.all(ends.filter((_, i) => running[i].kind !== "fit"));
    await app.check.again(said);
    this.pending = {};
    this.later();
  }

  /** What of a link counts for an item that comes late: all of it, unless someone has moved on. */
  words(said) {
    const { camera } = this.app, { x, y } = said.centre ?? {};
    return camera.x === x && camera.y === y ? said : { emitter: said.emitter };
  }

  /** Uses the item of a name: it is there, or its fit runs, or it is fitted now. */
  async bring(name, running, ends, use) {
    const { app } = this, { fit } = link.resolve(name, app.items);
    const runs = fit ? running.findIndex((job) => link.alike(job.asked, fit)) : -1;
    if (runs >= 0) await ends[runs];
    else if (fit) await app.work.run(fit, app.work.part(), () => {});
    const { item } = link.resolve(name, app.items);
    if (this.chosen) return;
    if (item) await use(item.id);
    else if (!fit) app.toast("The link names something that is not open here");
  }

  /** Someone has chosen: what the link asked for before does not count any more. */
  choose() {
    this.chosen = true;
    this.pending = {};
  }

  /** Writes the link, a little later. */
  later() {
    clearTimeout(this.soon);
    this.soon = setTimeout(() => this.write(), 250);
  }

  write() {
    const { app } = this, { item, other, camera } = app;
    if (!item) return link.write({});
    const round = (v) => Number(v.toPrecision(9));
    const name = (one) => {
      const listed = app.items.find((i) => i.id === one?.id);
      return listed ? link.nameOf(listed, app.items) : null;
    };
    link.write({
      item: name(item), other: name(other), mode: other && app.mode === "difference" ? "difference" : null,
      band: app.band, layer: app.layer === "power" ? null : app.layer, level: app.layer === "above" ? app.level : null,
      centre: `${round(camera.x)},${round(camera.y)}`, zoom: round(camera.zoom),
      at: app.at ? `${round(app.at.x)},${round(app.at.y)}` : null,
      palette: app.palette === "viridis" ? null : app.palette,
      limits: app.limits === "own" ? app.own.join(",") : app.limits === "all" ? "all" : null,
      hide: Object.keys(app.shows).filter((one) => !app.shows[one]).join(","),
      tab: app.shownTab === "here" ? null : app.shownTab, wide: byId("panel").parentElement.classList.contains("wide"),
      time: app.until, emitter: app.emitter === null ? null : app.emitter + 1, ...app.check.words(), ...this.pending,
    });
  }
}
