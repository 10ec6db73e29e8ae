// Marks above the map: sensors, emitters, advice, errors, the selected place.

import { css } from "./colour.js";

const MANY = 1500;
const NINETY = Math.sqrt(4.605);

function colours() {
  const style = getComputedStyle(document.documentElement);
  return { ink: style.getPropertyValue("--ink"), card: style.getPropertyValue("--card"), accent: style.getPropertyValue("--accent") };
}

/** Sensors as dots in the colour of what they read; small ones where there are many. */
export function sensors(context, view, { places, levels, until, low, high, palette, errors, worst }) {
  const { ink, card } = colours();
  const n = places.x_m.length;
  const many = n > MANY && countSeen(view, places) > MANY;
  const span = Math.max(high - low, 1e-9);
  if (many && !errors) return dots(context, view, places, until);
  for (let i = 0; i < n; i++) {
    if (until !== null && places.time_s && places.time_s[i] > until) continue;
    const [px, py] = view.pixel(places.x_m[i], places.y_m[i]);
    if (px < -9 || py < -9 || px > view.width + 9 || py > view.height + 9) continue;
    let fill = null;
    if (errors) {
      if (errors[i] === null || errors[i] === undefined) continue;
      fill = css("error", 0.5 + 0.5 * Math.max(-1, Math.min(1, errors[i] / worst)));
    } else if (levels && Number.isFinite(levels[i])) {
      fill = css(palette, (levels[i] - low) / span);
    }
    const radius = errors ? 5 : n > 250 ? 3 : 4;
    context.beginPath();
    context.arc(px, py, radius, 0, 2 * Math.PI);
    context.fillStyle = fill ?? "transparent";
    if (fill) context.fill();
    context.lineWidth = n > 250 ? 1.6 : 2.4;
    context.strokeStyle = card;
    context.stroke();
    context.lineWidth = n > 250 ? 0.6 : 1;
    context.strokeStyle = ink;
    context.stroke();
  }
}

function countSeen(view, { x_m, y_m }) {
  const low = view.place(0, view.height), high = view.place(view.width, 0);
  let seen = 0;
  for (let i = 0; i < x_m.length; i++) if (x_m[i] > low.x && x_m[i] < high.x && y_m[i] > low.y && y_m[i] < high.y) seen++;
  return seen;
}

/** Thousands of sensors: specks, written as pixels. */
function dots(context, view, places, until) {
  const { width, height } = context.canvas, ratio = view.ratio;
  const image = new ImageData(width, height), out = new Uint32Array(image.data.buffer);
  const speck = 0xa0ffffff, size = Math.round(1.5 * ratio);
  for (let i = 0; i < places.x_m.length; i++) {
    if (until !== null && places.time_s && places.time_s[i] > until) continue;
    const [px, py] = view.pixel(places.x_m[i], places.y_m[i]);
    const x = Math.round(px * ratio), y = Math.round(py * ratio);
    if (x < 0 || y < 0 || x + size >= width || y + size >= height) continue;
    for (let dy = 0; dy < size; dy++) for (let dx = 0; dx < size; dx++) out[(y + dy) * width + x + dx] = speck;
  }
  const layer = new OffscreenCanvas(width, height);
  layer.getContext("2d").putImageData(image, 0, 0);
  context.save();
  context.setTransform(1, 0, 0, 1, 0, 0);
  context.drawImage(layer, 0, 0);
  context.restore();
}

/** Emitters as crosses in rings with the ellipse that holds them with 90 % certainty. */
export function emitters(context, view, list, chosen) {
  const { ink, card } = colours();
  list.forEach((emitter, i) => {
    if (emitter.noise) return;
    const [px, py] = view.pixel(emitter.x_m, emitter.y_m);
    if (emitter.x_se_m !== null && Number.isFinite(emitter.x_se_m)) {
      const scale = NINETY * view.camera.scale;
      const rx = Math.min(1e5, Math.max(1, emitter.x_se_m * scale)), ry = Math.min(1e5, Math.max(1, emitter.y_se_m * scale));
      for (const [width, colour] of [[3.4, card], [1.4, ink]]) {
        context.beginPath();
        context.ellipse(px, py, rx, ry, 0, 0, 2 * Math.PI);
        context.lineWidth = width;
        context.strokeStyle = colour;
        context.setLineDash(width < 2 ? [5, 4] : []);
        context.stroke();
      }
      context.setLineDash([]);
    }
    const size = chosen === i ? 10 : 7;
    for (const [width, colour] of [[5.5, card], [2.4, ink]]) {
      context.beginPath();
      context.moveTo(px - size, py - size);
      context.lineTo(px + size, py + size);
      context.moveTo(px + size, py - size);
      context.lineTo(px - size, py + size);
      context.lineWidth = width;
      context.strokeStyle = colour;
      context.lineCap = "round";
      context.stroke();
    }
    label(context, String(i + 1), px + size + 5, py - size, ink, card);
  });
}

/** Places for new sensors, numbered. */
export function advice(context, view, list) {
  const { ink, card, accent } = colours();
  for (const place of list) {
    const [px, py] = view.pixel(place.x_m, place.y_m);
    context.beginPath();
    context.moveTo(px, py);
    context.lineTo(px - 6, py - 14);
    context.arc(px, py - 16, 7, Math.PI * 0.9, Math.PI * 0.1);
    context.closePath();
    context.fillStyle = accent;
    context.fill();
    context.lineWidth = 1.5;
    context.strokeStyle = card;
    context.stroke();
    label(context, String(place.rank), px + 9, py - 18, ink, card);
  }
}

function label(context, text, x, y, ink, card) {
  context.font = "600 12px system-ui, sans-serif";
  context.textBaseline = "middle";
  context.lineWidth = 3.5;
  context.lineJoin = "round";
  context.strokeStyle = card;
  context.strokeText(text, x, y);
  context.fillStyle = ink;
  context.fillText(text, x, y);
}

/** A target where a question was asked, or where the other map's pointer is. */
export function target(context, view, place, faint) {
  const { ink, card } = colours();
  const [px, py] = view.pixel(place.x, place.y);
  for (const [width, colour] of [[4.5, card], [1.8, ink]]) {
    context.globalAlpha = faint ? 0.75 : 1;
    context.beginPath();
    if (!faint) context.arc(px, py, 8, 0, 2 * Math.PI);
    for (const [dx, dy] of [[1, 0], [-1, 0], [0, 1], [0, -1]]) {
      context.moveTo(px + 4 * dx, py + 4 * dy);
      context.lineTo(px + 13 * dx, py + 13 * dy);
    }
    context.lineWidth = width;
    context.strokeStyle = colour;
    context.stroke();
  }
  context.globalAlpha = 1;
}

/** The sensor nearest to a pixel, within reach. */
export function nearestSensor(view, places, [px, py], until, reach) {
  let best = -1, least = reach ** 2;
  for (let i = 0; i < places.x_m.length; i++) {
    if (until !== null && places.time_s && places.time_s[i] > until) continue;
    const [x, y] = view.pixel(places.x_m[i], places.y_m[i]);
    const far = (x - px) ** 2 + (y - py) ** 2;
    if (far < least) [best, least] = [i, far];
  }
  return best;
}
