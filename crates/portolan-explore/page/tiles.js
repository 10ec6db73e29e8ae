// Tiles: fetched as numbers, coloured here. A tile is 256 pixels at a power-of-two scale: at zoom z
// a pixel is 2^-z metres. The server gives a place every few pixels, edges included; between them
// the picture goes linearly.

import * as api from "./api.js";
import { SHADES } from "./colour.js";

export const TILE = 256;
const FINE = 2;
const DRAFT = 8;
const UNKNOWN = -32768;
const MOST_KEPT = 320;
const AT_ONCE = 4;

/** What tiles show: a map, a layer and what it needs. Equal keys share tiles. */
export function layerKey(source) {
  switch (source.layer) {
    case "best": return `${source.id} best`;
    case "above": return `${source.id} above ${source.band} ${source.level}`;
    default: return `${source.id} ${source.layer} ${source.band}`;
  }
}

function layerQuery(source, step) {
  const words = { layer: source.layer, step };
  if (source.layer !== "best") words.band = source.band;
  if (source.layer === "above") words.level = source.level;
  return words;
}

/** Tiles of any number of maps, by what they show. */
export class Tiles {
  constructor(changed) {
    this.changed = changed;
    this.kept = new Map();
    this.asked = new Map();
    this.tick = 0;
    this.version = 0;
  }

  key(source, z, x, y) {
    return `${layerKey(source)}/${z}/${x}/${y}`;
  }

  /** Forgets all tiles. */
  clear() {
    for (const tile of this.kept.values()) discard(tile);
    this.kept.clear();
  }

  /** A tile that is here, or nothing. */
  find(source, z, x, y) {
    const tile = this.kept.get(this.key(source, z, x, y));
    if (tile) tile.used = ++this.tick;
    return tile;
  }

  put(source, z, x, y, step, values) {
    const key = this.key(source, z, x, y);
    const old = this.kept.get(key);
    if (old && old.step < step) return;
    discard(old);
    this.version++;
    const gaps = values ? values.indexOf(UNKNOWN) >= 0 : false;
    this.kept.set(key, { values, step, gaps, picture: null, painted: "", used: ++this.tick });
    if (this.kept.size > MOST_KEPT) {
      const oldest = [...this.kept].sort((a, b) => a[1].used - b[1].used);
      for (const [gone, tile] of oldest.slice(0, this.kept.size - MOST_KEPT * 0.8)) {
        this.kept.delete(gone);
        discard(tile);
      }
    }
  }

  /** Asks for the tiles of a rectangle that are missing: those that the server has at once, the
   * others one by one, a draft first. */
  want(source, { z, x0, x1, y0, y1 }) {
    const place = `${layerKey(source)}/${z}/${x0}/${x1}/${y0}/${y1}`;
    const missing = [];
    for (let y = y0; y <= y1; y++) for (let x = x0; x <= x1; x++) {
      const tile = this.kept.get(this.key(source, z, x, y));
      if (!tile || tile.step > FINE) missing.push([x, y]);
    }
    if (!missing.length) return Promise.resolve();
    if (this.asked.has(place)) return this.asked.get(place);
    const work = this.fetchAll(source, { z, x0, x1, y0, y1 }, missing)
      .catch((error) => {
        if (error.name !== "AbortError" && !(error instanceof TypeError)) console.warn(error.message);
      })
      .finally(() => this.asked.delete(place));
    this.asked.set(place, work);
    return work;
  }

  async fetchAll(source, view, missing) {
    const { z, x0, x1, y0, y1 } = view;
    const words = { z, x0, x1, y0, y1, ...layerQuery(source, FINE) };
    const buffer = await api.bytes(`/api/items/${source.id}/tiles${api.query(words)}`);
    const count = (x1 - x0 + 1) * (y1 - y0 + 1);
    const flags = new Uint8Array(buffer, 0, count);
    const size = (TILE / FINE + 1) ** 2;
    let at = count + (count % 2), n = 0, found = 0;
    for (let y = y1; y >= y0; y--) for (let x = x0; x <= x1; x++, n++) {
      if (flags[n] === 1) {
        this.put(source, z, x, y, FINE, new Int16Array(buffer, at, size));
        at += 2 * size;
        found++;
      } else if (flags[n] === 2) {
        this.put(source, z, x, y, FINE, null);
      }
    }
    if (found) this.changed();
    const middle = [(x0 + x1) / 2, (y0 + y1) / 2];
    const left = missing
      .filter(([x, y]) => (this.kept.get(this.key(source, z, x, y))?.step ?? 99) > FINE)
      .sort((a, b) => Math.hypot(a[0] - middle[0], a[1] - middle[1]) - Math.hypot(b[0] - middle[0], b[1] - middle[1]));
    if (!left.length) return;
    await this.each(source, z, left, DRAFT);
    await this.each(source, z, left, FINE);
  }

  async each(source, z, list, step) {
    const queue = list.slice();
    const worker = async () => {
      for (let next = queue.shift(); next; next = queue.shift()) {
        const [x, y] = next;
        // Nobody looks there any more.
        if (this.inView && !this.inView(source, z, x, y)) continue;
        const old = this.kept.get(this.key(source, z, x, y));
        if (old && old.step <= step) continue;
        const path = `/api/items/${source.id}/tile/${z}/${x}/${y}${api.query(layerQuery(source, step))}`;
        try {
          this.put(source, z, x, y, step, new Int16Array(await api.bytes(path)));
        } catch (error) {
          if (error.status !== 404) throw error;
          this.put(source, z, x, y, step, null);
        }
        this.changed();
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, worker));
  }
}

/** Pixels that are painted before they go to a canvas, and canvases of tiles that are gone, by size. */
const images = new Map(), spare = new Map();

function discard(tile) {
  if (!tile?.picture) return;
  const kept = spare.get(tile.picture.width) ?? [];
  if (kept.length < 128) kept.push(tile.picture);
  spare.set(tile.picture.width, kept);
  tile.picture = null;
  tile.painted = "";
}

/** A canvas with the colours of a tile, a pixel for every place; painted again where the colours
 * changed. The view enlarges it, which goes linearly between the places. */
export function picture(tile, paint) {
  if (!tile.values) return null;
  if (tile.painted === paint.key) return tile.picture;
  const { values, step, gaps } = tile, n = TILE / step + 1;
  tile.picture ??= spare.get(n)?.pop() ?? new OffscreenCanvas(n, n);
  if (!images.has(n)) images.set(n, new ImageData(n, n));
  const image = images.get(n), out = new Uint32Array(image.data.buffer);
  const { shades, low, high, steps } = paint;
  if (steps) {
    for (let i = 0; i < out.length; i++) out[i] = values[i] === UNKNOWN ? 0 : shades[values[i]];
  } else {
    const scale = (SHADES - 1) / Math.max(high - low, 1e-9), last = SHADES - 1;
    for (let i = 0; i < out.length; i++) {
      const v = (values[i] - low) * scale;
      out[i] = shades[v <= 0 ? 0 : v >= last ? last : v | 0];
    }
    if (gaps) for (let i = 0; i < out.length; i++) if (values[i] === UNKNOWN) out[i] = 0;
  }
  tile.picture.getContext("2d").putImageData(image, 0, 0);
  tile.painted = paint.key;
  return tile.picture;
}

/** The difference of two tiles of the same place, as a tile. */
export function difference(a, b) {
  if (!a?.values || !b?.values || a.step !== b.step) return null;
  if (a.less?.from === b.values) return a.less.tile;
  const values = new Int16Array(a.values.length);
  let gaps = false;
  for (let i = 0; i < values.length; i++) {
    const one = a.values[i], two = b.values[i];
    if (one === UNKNOWN || two === UNKNOWN) {
      values[i] = UNKNOWN;
      gaps = true;
    } else values[i] = Math.max(-32767, Math.min(32767, one - two));
  }
  a.less = { from: b.values, tile: { values, step: a.step, gaps, picture: null, painted: "" } };
  return a.less.tile;
}

/** What a tile says at a share of its width (from the left) and height (from the top). */
export function valueIn(tile, u, v, steps) {
  if (!tile?.values) return null;
  const n = TILE / tile.step, m = n + 1;
  const x = Math.min(Math.max(u, 0), 1) * n, y = Math.min(Math.max(v, 0), 1) * n;
  if (steps) {
    const value = tile.values[Math.round(y) * m + Math.round(x)];
    return value === UNKNOWN ? null : value;
  }
  const i = Math.min(Math.floor(x), n - 1), j = Math.min(Math.floor(y), n - 1);
  const at = j * m + i, s = x - i, t = y - j;
  const four = [tile.values[at], tile.values[at + 1], tile.values[at + m], tile.values[at + m + 1]];
  if (four.includes(UNKNOWN)) return null;
  return ((four[0] * (1 - s) + four[1] * s) * (1 - t) + (four[2] * (1 - s) + four[3] * s) * t) / 100;
}
