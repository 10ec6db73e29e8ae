// Jobs that run: each has its bar and its Cancel until it ends.

import * as api from "./api.js";
import { make } from "./here.js";

const VERBS = { fit: "Fitting ", validate: "Validating ", advise: "Advising " };

const byId = (id) => document.getElementById(id);

/** Jobs that wait are listed behind those that run, on demand. */
function place(row, waits) {
  const list = byId(waits ? "waiting-list" : "running");
  if (row.parentElement !== list) list.append(row);
  count();
}

function count() {
  const many = byId("waiting-list").children.length;
  byId("waiting").hidden = !many;
  byId("waiting-count").textContent = many === 1 ? "1 more waits" : `${many} more wait`;
}

/** How a job stands. One that the server does not know any more went with its item. */
async function asked(id) {
  try {
    return await api.get(`/api/jobs/${id}`);
  } catch (error) {
    if (error.status === 404) return { id, state: "cancelled" };
    throw error;
  }
}

/** Shows how far a job is; resolves with the job when it has ended. */
export async function follow(id) {
  const what = make("span", { class: "what" });
  const bar = make("progress", { max: 1, value: 0 });
  const cancel = make("button", { type: "button", onclick: () => api.remove(`/api/jobs/${id}`).catch(() => {}) }, "Cancel");
  const row = make("div", { class: "job" }, what, bar, cancel);
  try {
    for (;;) {
      const job = await asked(id);
      if (!["running", "waiting"].includes(job.state)) return job;
      what.textContent = (job.state === "waiting" ? "Waiting: " : VERBS[job.kind]) + job.what;
      bar.value = job.share;
      place(row, job.state === "waiting");
      bar.setAttribute("aria-label", `How far: ${what.textContent}`);
      cancel.setAttribute("aria-label", `Cancel: ${what.textContent}`);
      await new Promise((resume) => setTimeout(resume, job.seconds < 2 ? 80 : 250));
    }
  } finally {
    row.remove();
    count();
  }
}
