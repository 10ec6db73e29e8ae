// From numbers to colours. The palettes are those of the command's pictures.

export const SHADES = 1024;
let palettes = {};

export function setPalettes(found) {
  palettes = found;
}

function mix(list, share) {
  const place = Math.min(Math.max(share, 0), 1) * (list.length - 1);
  const low = Math.min(Math.floor(place), list.length - 2);
  const t = place - low;
  return [0, 1, 2].map((c) => Math.round(list[low][c] + t * (list[low + 1][c] - list[low][c])));
}

const made = new Map();

/** 1024 opaque colours as a canvas stores them. */
export function shades(name) {
  if (!made.has(name)) {
    const out = new Uint32Array(SHADES);
    for (let i = 0; i < SHADES; i++) out[i] = word(mix(palettes[name], i / (SHADES - 1)));
    made.set(name, out);
  }
  return made.get(name);
}

/** Bands that colours tell apart. */
export const APART = 8;

/** A colour for every band of an item. */
export function bandShades({ id, bands, best }) {
  const name = `bands of ${id}`;
  if (!made.has(name)) {
    const out = new Uint32Array(bands);
    for (let i = 0; i < bands; i++) out[i] = word(bandColour(i, best));
    made.set(name, out);
  }
  return made.get(name);
}

/** The bands that serve most places have colours of their own, the two largest far apart. The others
 * are scattered by the golden ratio. */
export function bandColour(band, best) {
  const rank = best.indexOf(band), count = Math.min(best.length, APART), half = Math.ceil(count / 2);
  if (rank < 0 || rank >= APART) return mix(palettes.viridis, (band * 0.618034) % 1);
  const place = rank % 2 ? half + (rank - 1) / 2 : rank / 2;
  return mix(palettes.viridis, count > 1 ? place / (count - 1) : 0.5);
}

const word = ([r, g, b]) => ((255 << 24) | (b << 16) | (g << 8) | r) >>> 0;

export function css(name, share) {
  return `rgb(${mix(palettes[name], share).join(" ")})`;
}

export function cssOf([r, g, b]) {
  return `rgb(${r} ${g} ${b})`;
}

/** Colours for curves that colour-blind readers tell apart (Okabe and Ito), for light and dark. */
export function curves(dark) {
  return dark ? ["#56b4e9", "#e69f00"] : ["#0072b2", "#d55e00"];
}
