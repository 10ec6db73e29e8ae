// Small charts on a canvas: a spectrum with error bars, the strip over bands, the line of time.

function prepared(canvas) {
  const ratio = window.devicePixelRatio || 1;
  const width = canvas.clientWidth, height = canvas.clientHeight;
  canvas.width = Math.max(1, Math.round(width * ratio));
  canvas.height = Math.max(1, Math.round(height * ratio));
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  const style = getComputedStyle(document.documentElement);
  const value = (name) => style.getPropertyValue(name).trim();
  return { context, width, height, ink: value("--ink"), quiet: value("--quiet"), line: value("--line"), accent: value("--accent"), card: value("--card") };
}

/** Round steps between two numbers. */
export function ticks(low, high, count) {
  const rough = (high - low) / Math.max(1, count);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= rough) ?? rough;
  const out = [];
  for (let v = Math.ceil(low / step) * step; v <= high + 1e-9 * step; v += step) out.push(Math.abs(v) < 1e-9 * step ? 0 : v);
  return out;
}

/** A minus sign, and as many digits as needed. */
export function number(value, digits = 1) {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  const text = value.toFixed(digits);
  return (Number(text) === 0 ? text.replace("-", "") : text).replace("-", "−");
}

/** Levels over bands. Series: {level, spread, colour, name}; `near` are readings as rings. */
export function spectrum(canvas, { series, near = [], band, unit, labels }) {
  const { context, width, height, ink, quiet, line, accent } = prepared(canvas);
  const all = series.flatMap((s) => s.level.flatMap((v, i) => (v === null ? [] : [v + 1.645 * (s.spread?.[i] ?? 0), v - 1.645 * (s.spread?.[i] ?? 0)])))
    .concat(near.flatMap((n) => n.filter((v) => v !== null)));
  if (!all.length) return;
  let low = Math.min(...all), high = Math.max(...all);
  const pad = Math.max(1, 0.06 * (high - low));
  low -= pad;
  high += pad;
  const count = series[0].level.length;
  const left = 42, right = width - 8, top = 8, bottom = height - 22;
  const x = (i) => (count > 1 ? left + 4 + (i / (count - 1)) * (right - left - 8) : (left + right) / 2);
  const y = (v) => bottom - ((v - low) / (high - low)) * (bottom - top);
  context.font = "11px system-ui, sans-serif";
  context.textBaseline = "middle";
  for (const tick of ticks(low, high, 5)) {
    context.strokeStyle = line;
    context.lineWidth = 1;
    context.beginPath();
    context.moveTo(left, y(tick));
    context.lineTo(right, y(tick));
    context.stroke();
    context.fillStyle = quiet;
    context.textAlign = "right";
    context.fillText(number(tick, 0), left - 6, y(tick));
  }
  context.save();
  context.fillStyle = quiet;
  context.textAlign = "left";
  context.fillText(unit, 2, top + 2);
  context.textAlign = "left";
  context.fillText(labels[0], left, height - 8);
  if (count > 1) {
    context.textAlign = "right";
    context.fillText(labels[count - 1], right, height - 8);
  }
  context.restore();
  context.fillStyle = accent;
  context.globalAlpha = 0.16;
  const wide = Math.max(3, (right - left) / count);
  context.fillRect(x(band) - wide / 2, top, wide, bottom - top);
  context.globalAlpha = 1;
  for (const one of near) {
    context.strokeStyle = quiet;
    context.lineWidth = 1;
    one.forEach((v, i) => {
      if (v === null) return;
      context.beginPath();
      context.arc(x(i), y(v), 2, 0, 2 * Math.PI);
      context.stroke();
    });
  }
  for (const { level, spread, colour } of series) {
    context.strokeStyle = context.fillStyle = colour ?? ink;
    if (spread) {
      // The interval that holds 90 %.
      context.lineWidth = 1.2;
      context.globalAlpha = 0.55;
      context.beginPath();
      level.forEach((v, i) => {
        if (v === null) return;
        const half = 1.645 * (spread[i] ?? 0);
        context.moveTo(x(i), y(v - half));
        context.lineTo(x(i), y(v + half));
      });
      context.stroke();
      context.globalAlpha = 1;
    }
    context.lineWidth = 1.6;
    context.beginPath();
    level.forEach((v, i) => {
      if (v === null) return;
      if (i && level[i - 1] !== null) context.lineTo(x(i), y(v));
      else context.moveTo(x(i), y(v));
    });
    context.stroke();
    level.forEach((v, i) => {
      if (v === null || (count > 40 && i !== band)) return;
      context.beginPath();
      context.arc(x(i), y(v), i === band ? 4 : 2.4, 0, 2 * Math.PI);
      context.fill();
    });
  }
}

/** All bands of a map: from the least to the greatest level, the middle as a line. */
export function strip(canvas, { strip: bands, band, here, unit }) {
  const { context, width, height, quiet, accent, ink, line, card } = prepared(canvas);
  const known = bands.flat().filter((v) => v !== null);
  if (!known.length) return;
  const low = Math.min(...known), high = Math.max(...known, low + 1);
  const count = bands.length, wide = width / count;
  const y = (v) => height - 4 - ((v - low) / (high - low)) * (height - 10);
  bands.forEach(([least, middle, most], i) => {
    if (least === null) return;
    const at = i * wide, w = Math.max(1, wide - (wide > 4 ? 1.5 : 0));
    context.fillStyle = i === band ? accent : line;
    context.fillRect(at, y(most), w, Math.max(2, y(least) - y(most)));
    context.fillStyle = i === band ? ink : quiet;
    context.fillRect(at, y(middle) - 1, w, 2);
  });
  if (here) {
    context.strokeStyle = ink;
    context.lineWidth = 1.5;
    context.beginPath();
    here.forEach((v, i) => {
      if (v === null) return;
      const at = (i + 0.5) * wide;
      if (i) context.lineTo(at, y(v));
      else context.moveTo(at, y(v));
    });
    context.stroke();
  }
  context.strokeStyle = accent;
  context.lineWidth = 2;
  context.strokeRect(Math.max(1, band * wide - 1), 1, Math.max(4, wide), height - 2);
  context.fillStyle = quiet;
  context.font = "10px system-ui, sans-serif";
  for (const [text, base, at] of [[`${number(high, 0)} ${unit}`, "top", 3], [number(low, 0), "bottom", height - 2]]) {
    context.textBaseline = base;
    context.lineWidth = 3;
    context.strokeStyle = card;
    context.strokeText(text, 4, at);
    context.fillText(text, 4, at);
  }
}

/** How many readings were taken when; those up to now are filled. */
export function timeline(canvas, times, until) {
  const { context, width, height, line, accent } = prepared(canvas);
  const first = times[0], last = times[times.length - 1], bins = Math.max(10, Math.floor(width / 6));
  const counts = new Array(bins).fill(0);
  for (const t of times) counts[Math.min(bins - 1, Math.floor(((t - first) / Math.max(last - first, 1e-9)) * bins))]++;
  const most = Math.max(...counts);
  counts.forEach((count, i) => {
    const at = first + ((i + 1) / bins) * (last - first);
    context.fillStyle = until === null || at <= until + 1e-9 ? accent : line;
    const h = count ? Math.max(2, (count / most) * (height - 4)) : 1;
    context.fillRect((i * width) / bins, height - h, width / bins - 1, h);
  });
}
