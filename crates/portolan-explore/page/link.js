// The view in the address bar: a link shows the same again, also after the server was started anew.

/** What the address says. */
export function read() {
  const words = new URLSearchParams(location.hash.slice(1));
  const number = (name) => (words.has(name) && words.get(name) !== "" && Number.isFinite(Number(words.get(name))) ? Number(words.get(name)) : null);
  const pair = (name) => {
    const found = (words.get(name) ?? "").split(",").map(Number);
    return found.length === 2 && found.every(Number.isFinite) ? { x: found[0], y: found[1] } : null;
  };
  const object = (name) => {
    try {
      return JSON.parse(words.get(name));
    } catch {
      return null;
    }
  };
  return {
    time: number("time"), emitter: words.has("emitter") ? number("emitter") - 1 : null,
    advise: number("advise"), validate: object("validate"), errors: words.get("errors"),
    item: words.get("item"), other: words.get("other"), mode: words.get("mode"),
    band: number("band"), layer: words.get("layer"), level: number("level"),
    centre: pair("centre"), zoom: number("zoom"), at: pair("at"),
    palette: words.get("palette"), limits: words.get("limits"), tab: words.get("tab"),
    hide: (words.get("hide") ?? "").split(",").filter(Boolean), wide: words.get("wide") === "1",
  };
}

/** What a link asks for and may have to be made again, as the address has it. */
export function rest(said) {
  const words = new URLSearchParams(location.hash.slice(1));
  const names = ["item", "other", "emitter", "advise", "validate", "errors"].filter((name) => said[name] !== null);
  return Object.fromEntries(names.map((name) => [name, words.get(name)]));
}

/** Whether two requests ask for the same fit. */
export function alike(a, b) {
  const plain = ({ kind, readings, method, settings, emitters, seed }) => JSON.stringify([kind, readings, method, Object.entries(settings ?? {}).sort(), emitters ?? null, seed ?? 0]);
  return plain(a) === plain(b);
}

/** What tells files of the same name apart: as much of their paths as it takes, or a number. */
function fileNames(items) {
  const names = new Map(), files = items.filter((item) => !item.source.fit);
  for (const item of files) {
    const alike = files.filter((other) => other.name === item.name);
    const tail = (one, depth) => (one.source.file ?? one.name).split(/[/\\]/).slice(-depth).join("/");
    const own = [1, 2, 3, 4, 99].map((depth) => [tail(item, depth), alike.filter((other) => tail(other, depth) === tail(item, depth)).length]);
    const alone = alike.length === 1 ? item.name : own.find(([, count]) => count === 1)?.[0];
    const turn = alike.indexOf(item) + 1;
    names.set(item.id, alone ?? (turn > 1 ? `${item.name} (${turn})` : item.name));
  }
  return names;
}

/** What every item is called in lists, each differently. */
export function labels(items) {
  const files = fileNames(items), found = new Map(), taken = new Map();
  for (const item of items) {
    const of = item.source.fit ? files.get(item.source.fit.readings) : null;
    const name = files.get(item.id) ?? (of ? `${item.name} on ${of}` : item.name);
    const turn = 1 + (taken.get(name) ?? 0);
    taken.set(name, turn);
    found.set(item.id, turn > 1 ? `${name} (${turn})` : name);
  }
  return found;
}

/** What names an item beyond this server's life: its file, or what was fitted to what. */
export function nameOf(item, items) {
  if (item.source.fit) {
    const { readings, method, settings, emitters, seed } = item.source.fit;
    return `fit:${JSON.stringify({ of: fileNames(items).get(readings) ?? readings, method, settings: Object.fromEntries(settings), emitters, seed })}`;
  }
  return fileNames(items).get(item.id);
}

/** The item of that name, or the fit that would make it. */
export function resolve(name, items) {
  if (!name) return {};
  const there = items.find((item) => nameOf(item, items) === name) ?? items.find((item) => !item.source.fit && item.name === name);
  if (there) return { item: there };
  if (!name.startsWith("fit:")) return {};
  try {
    const { of, method, settings, emitters, seed } = JSON.parse(name.slice(4));
    const names = fileNames(items);
    const readings = items.find((item) => item.kind === "readings" && names.get(item.id) === of);
    return readings ? { fit: { kind: "fit", readings: readings.id, method, settings, emitters, seed } } : {};
  } catch {
    return {};
  }
}

export function write(words) {
  const said = Object.entries(words).filter(([, value]) => value !== null && value !== undefined && value !== "" && value !== false);
  const hash = new URLSearchParams(said.map(([k, v]) => [k, v === true ? "1" : String(v)]));
  history.replaceState(null, "", `#${hash}`);
}
