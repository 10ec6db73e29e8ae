// Tiles: fetched as numbers, coloured here. A tile is 256 pixels at a power-of-two scale: at zoom z
// a pixel is 2^-z metres. The server gives a place every few pixels, edges included; between them
// the picture goes linearly.

import * as api from "./api.js";
import { SHADES } from "./colour.js";

export const TILE = 256;
const FINE = 2;
const UNKNOWN = -32768;
const MOST_KEPT = 320;
/** Thousandths of a second until tiles that are not there are asked for again, and how often only
 * those that are finished: a draft gets better only now and then. */
const AGAIN = 200;
const FINISHED = 4;

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

  put(source, z, x, y, values, draft = false) {
    const key = this.key(source, z, x, y);
    discard(this.kept.get(key));
    this.version++;
    const gaps = values ? values.indexOf(UNKNOWN) >= 0 : false;
    this.kept.set(key, { values, draft, gaps, picture: null, painted: "", used: ++this.tick });
    if (this.kept.size > MOST_KEPT) {
      const oldest = [...this.kept].sort((a, b) => a[1].used - b[1].used);
      for (const [gone, tile] of oldest.slice(0, this.kept.size - MOST_KEPT * 0.8)) {
        this.kept.delete(gone);
        discard(tile);
      }
    }
  }

  /** Whether a tile is not here in its final detail. */
  lacks(source, z, x, y) {
    return this.kept.get(this.key(source, z, x, y))?.draft ?? true;
  }

  /** Asks for the tiles of a rectangle that are missing. The server answers at once with what it
   * has; drafts are asked for again until the tiles are there. */
  want(source, view) {
    const { z, x0, x1, y0, y1 } = view;
    const place = `${layerKey(source)}/${z}/${x0}/${x1}/${y0}/${y1}`;
    if (!this.missing(source, view)) return Promise.resolve();
    if (this.asked.has(place)) return this.asked.get(place);
    const work = this.fetchAll(source, view)
      .catch((error) => {
        if (error.name !== "AbortError" && !(error instanceof api.Gone)) console.warn(error.message);
      })
      .finally(() => this.asked.delete(place));
    this.asked.set(place, work);
    return work;
  }

  /** The smallest rectangle around the tiles that are missing, or nothing. */
  missing(source, { z, x0, x1, y0, y1 }) {
    let left = null;
    for (let y = y0; y <= y1; y++) for (let x = x0; x <= x1; x++) {
      if (!this.lacks(source, z, x, y)) continue;
      left ??= { z, x0: x, x1: x, y0: y, y1: y };
      left = { z, x0: Math.min(left.x0, x), x1: Math.max(left.x1, x), y0: left.y0, y1: y };
    }
    return left;
  }

  async fetchAll(source, view) {
    let n = 0;
    for (let left = this.missing(source, view); left; left = this.missing(source, view)) {
      await this.fetch(source, left, n++ % (FINISHED + 1) === 0);
      if (!this.missing(source, view)) return;
      await new Promise((done) => setTimeout(done, AGAIN));
      // Nobody looks there any more.
      if (this.inView && !this.inView(source, view)) return;
    }
  }

  async fetch(source, { z, x0, x1, y0, y1 }, drafts) {
    const words = { z, x0, x1, y0, y1, drafts, ...layerQuery(source, FINE) };
    const buffer = await api.bytes(`/api/items/${source.id}/tiles${api.query(words)}`);
    const count = (x1 - x0 + 1) * (y1 - y0 + 1);
    const flags = new Uint8Array(buffer, 0, count);
    const size = (TILE / FINE + 1) ** 2;
    let at = count + (count % 2), n = 0, found = 0;
    for (let y = y1; y >= y0; y--) for (let x = x0; x <= x1; x++, n++) {
      const here = flags[n] === 1 || flags[n] === 3;
      if (flags[n] && this.lacks(source, z, x, y)) {
        this.put(source, z, x, y, here ? new Int16Array(buffer, at, size) : null, flags[n] === 3);
        found++;
      }
      if (here) at += 2 * size;
    }
    if (found) this.changed();
  }
}

/** Pixels that are painted before they go to a canvas, and canvases of tiles that are gone. */
const SIDE = TILE / FINE + 1;
let image = null;
const spare = [];

function discard(tile) {
  if (!tile?.picture) return;
  if (spare.length < 128) spare.push(tile.picture);
  tile.picture = null;
  tile.painted = "";
}

/** A canvas with the colours of a tile, a pixel for every place; painted again where the colours
 * changed. The view enlarges it, which goes linearly between the places. */
export function picture(tile, paint) {
  if (!tile.values) return null;
  if (tile.painted === paint.key) return tile.picture;
  const { values, gaps } = tile;
  tile.picture ??= spare.pop() ?? new OffscreenCanvas(SIDE, SIDE);
  image ??= new ImageData(SIDE, SIDE);
  const out = new Uint32Array(image.data.buffer);
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
  if (!a?.values || !b?.values) return null;
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
  a.less = { from: b.values, tile: { values, draft: a.draft || b.draft, gaps, picture: null, painted: "" } };
  return a.less.tile;
}

/** What a tile says at a share of its width (from the left) and height (from the top). */
export function valueIn(tile, u, v, steps) {
  if (!tile?.values) return null;
  const n = TILE / FINE, m = n + 1;
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
