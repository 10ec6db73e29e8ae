// The view in the address bar: a link shows the same again, also after the server was started anew.

/** What the address says. */
export function read() {
  const words = new URLSearchParams(location.hash.slice(1));
  const number = (name) => (words.has(name) && words.get(name) !== "" && Number.isFinite(Number(words.get(name))) ? Number(words.get(name)) : null);
  const pair = (name) => {
    const found = (words.get(name) ?? "").split(",").map(Number);
    return found.length === 2 && found.every(Number.isFinite) ? { x: found[0], y: found[1] } : null;
  };
  return {
    item: words.get("item"), other: words.get("other"), mode: words.get("mode"),
    band: number("band"), layer: words.get("layer"), level: number("level"),
    centre: pair("centre"), zoom: number("zoom"), at: pair("at"),
    palette: words.get("palette"), limits: words.get("limits"), tab: words.get("tab"),
    hide: (words.get("hide") ?? "").split(",").filter(Boolean), wide: words.get("wide") === "1",
  };
}

/** What names an item beyond this server's life: its file, or what was fitted to what. */
export function nameOf(item, items) {
  if (item.source.fit) {
    const { readings, method, settings, emitters, seed } = item.source.fit;
    const from = items.find((i) => i.id === readings);
    return `fit:${JSON.stringify({ of: from ? from.name : readings, method, settings: Object.fromEntries(settings), emitters, seed })}`;
  }
  return item.name;
}

/** The item of that name, or the fit that would make it. */
export function resolve(name, items) {
  if (!name) return {};
  const there = items.find((item) => nameOf(item, items) === name);
  if (there) return { item: there };
  if (!name.startsWith("fit:")) return {};
  try {
    const { of, method, settings, emitters, seed } = JSON.parse(name.slice(4));
    const readings = items.find((item) => item.kind === "readings" && item.name === of);
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
