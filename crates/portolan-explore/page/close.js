// Close what is shown: the server lets go of it, and of the fits to it.

import * as api from "./api.js";

const byId = (id) => document.getElementById(id);

export class Close {
  constructor(app) {
    this.app = app;
    byId("close").addEventListener("click", () => this.ask());
    byId("close-form").addEventListener("submit", (event) => this.submit(event));
  }

  ask() {
    const { app } = this, { item } = app;
    if (!item) return;
    const fits = app.items.filter((one) => one.source.fit?.readings === item.id).length;
    byId("close-title").textContent = `Close ${app.label(item.id)}?`;
    byId("close-told").textContent = item.kind !== "readings" ? "Files on your disk stay as they are." :
      `Files on your disk stay as they are. ${fits === 0 ? "" : fits === 1 ? "The fit to these readings closes, too." : `The ${fits} fits to these readings close, too.`}`;
    this.item = item.id;
    byId("close-dialog").showModal();
  }

  async submit(event) {
    event.preventDefault();
    const { app } = this;
    byId("close-dialog").close();
    try {
      const { closed } = await api.remove(`/api/items/${this.item}`);
      await this.gone(closed);
    } catch (error) {
      if (error.status) app.toast(error.message);
    }
    byId("item").focus();
  }

  /** Shows something else in place of what is gone. */
  async gone(closed) {
    const { app } = this;
    app.linked.choose();
    for (const id of closed) {
      app.places.delete(id);
      for (const key of [...app.levels.keys()]) if (key.startsWith(`${id} `)) app.levels.delete(key);
    }
    if (closed.includes(app.other?.id)) app.other = null;
    await app.refresh();
    const next = app.usual();
    if (!next) app.empty();
    else if (closed.includes(app.item.id)) await app.show(next.id);
    else await app.show(app.item.id);
  }
}
