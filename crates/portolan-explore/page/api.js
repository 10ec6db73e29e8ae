// Questions to the server, and what to do when it does not answer.

const gone = { is: false, listeners: [] };

/** Calls back when the server stops answering (true) and when it is there again (false). */
export function onGone(listener) {
  gone.listeners.push(listener);
}

function tell(is) {
  if (gone.is === is) return;
  gone.is = is;
  for (const listener of gone.listeners) listener(is);
  if (is) setTimeout(knock, 700);
}

async function knock() {
  try {
    const answer = await fetch("/api/state");
    if (answer.ok) return tell(false);
  } catch {
    // Still gone.
  }
  setTimeout(knock, 700);
}

/** The server did not answer: the page says so by itself. */
export class Gone extends Error {}

/** The server answered with an error. */
export class Refused extends Error {
  constructor(message, status) {
    super(message);
    this.status = status;
  }
}

async function ask(path, options) {
  let answer;
  try {
    answer = await fetch(path, options);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    tell(true);
    throw new Gone(error.message);
  }
  tell(false);
  if (answer.ok) return answer;
  let message = `${answer.status}`;
  try {
    message = (await answer.json()).error ?? message;
  } catch {
    // Not ours: the number must do.
  }
  throw new Refused(message, answer.status);
}

export async function get(path, signal) {
  return (await ask(path, { signal })).json();
}

export async function bytes(path, signal) {
  return (await ask(path, { signal })).arrayBuffer();
}

export async function post(path, body) {
  const headers = { "content-type": "application/json" };
  return (await ask(path, { method: "POST", headers, body: JSON.stringify(body) })).json();
}

export async function upload(file) {
  const path = `/api/uploads?name=${encodeURIComponent(file.name)}`;
  const headers = { "content-type": "application/octet-stream" };
  return (await ask(path, { method: "POST", headers, body: file })).json();
}

export async function remove(path) {
  return (await ask(path, { method: "DELETE" })).json();
}

/** The words of a query, without those that say nothing. */
export function query(words) {
  const said = Object.entries(words).filter(([, value]) => value !== undefined && value !== null && value !== "");
  return said.length ? `?${new URLSearchParams(said)}` : "";
}
