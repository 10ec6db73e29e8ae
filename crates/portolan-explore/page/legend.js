// The legend: the scale of the layer, above it that of errors where they are shown, and the bands of
// the best server.

import { number } from "./chart.js";
import { APART, bandColour, css, cssOf } from "./colour.js";
import { make } from "./here.js";

const byId = (id) => document.getElementById(id);
/** Bands that a legend lists. */
const LISTED = 8;
const UNKNOWN = -32768;

/** A scale: its title, its colours by share, and its numbers. */
function scale(block, title, colour, [low, high]) {
  block.querySelector(".title").textContent = title;
  const canvas = block.querySelector("canvas"), context = canvas.getContext("2d");
  for (let x = 0; x < canvas.width; x++) {
    context.fillStyle = colour(x / (canvas.width - 1));
    context.fillRect(x, 0, 1, canvas.height);
  }
  const ticks = [low, (low + high) / 2, high].map((v) => number(v, Math.abs(high - low) < 5 ? 1 : 0));
  block.querySelector(".ticks").replaceChildren(...ticks.map((text) => make("span", {}, text)));
}

/** How much of what is seen each band serves, the largest share first. */
function served(app) {
  const counts = new Map();
  let all = 0;
  for (const view of app.views) {
    const seen = view.seen(), { source } = view.host();
    if (!seen || !source) continue;
    for (let y = seen.y0; y <= seen.y1; y++) for (let x = seen.x0; x <= seen.x1; x++) {
      const { values } = view.tile(source, null, seen.z, x, y) ?? {};
      // One of many values is enough for a share.
      for (let i = 0; values && i < values.length; i += 13) {
        if (values[i] === UNKNOWN) continue;
        counts.set(values[i], 1 + (counts.get(values[i]) ?? 0));
        all++;
      }
    }
  }
  return [...counts].map(([band, count]) => [band, count / all]).sort((a, b) => b[1] - a[1]);
}

/** The bands that serve most of what is seen, with their colours. */
export function bands(app) {
  const { item } = app, list = served(app);
  const rows = list.slice(0, LISTED).map(([band, share]) => {
    const swatch = make("span", { class: "swatch" });
    swatch.style.background = cssOf(bandColour(band, item.best));
    return make("div", {}, swatch, `${app.bandName(band)}: ${number(100 * share, 0)} %`);
  });
  if (list.length > LISTED) rows.push(make("div", { class: "quiet" }, `and ${list.length - LISTED} more`));
  if (list.some(([band]) => item.best.indexOf(band) < 0 || item.best.indexOf(band) >= APART)) rows.push(make("div", { class: "quiet" }, "Some colours are alike: point at a place, or click it, to read its band."));
  byId("legend-bands").replaceChildren(...rows);
}

/** Folds the legend, or shows it again; the browser remembers. */
export function fold(folded) {
  byId("legend").classList.toggle("folded", folded);
  byId("legend-fold").setAttribute("aria-expanded", !folded);
  byId("legend-fold").title = folded ? "Show the legend" : "Hide the legend";
  localStorage.setItem("portolan-legend", folded ? "folded" : "open");
}

export function legend(app) {
  const { item, errors } = app;
  byId("legend").hidden = !item;
  if (!item) return;
  // Readings have no other layer.
  const layer = item.kind === "readings" ? "power" : app.layer;
  const less = app.mode_difference() && layer !== "best" && item.kind !== "readings";
  const names = { power: `Power, ${item.unit}`, spread: "Spread, dB", above: `Chance above ${number(app.level, 0)} ${item.unit}, %`, best: "Strongest band" };
  const paint = app.paint(less, layer), best = paint.steps;
  const title = less ? `Difference, ${layer === "above" ? "%" : "dB"}` : names[layer];
  scale(byId("legend-layer"), title, (share) => css(best ? "viridis" : paint.name, share), paint.ends);
  for (const part of byId("legend-layer").querySelectorAll("canvas, .ticks")) part.hidden = best;
  byId("legend-bands").hidden = !best;
  if (best) bands(app);
  byId("legend-errors").hidden = !errors;
  if (errors) scale(byId("legend-errors"), `Error of ${errors.method}, dB`, (share) => css("error", share), [-errors.worst, errors.worst]);
}
