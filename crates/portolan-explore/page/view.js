// One map on the screen: a camera that several maps may share, tiles, and marks above them.

import { TILE, difference, layerKey, picture, valueIn } from "./tiles.js";

const ZOOMS = [-16, 14];
/** Pixels around the view that are drawn while it is dragged. */
const MARGIN = 160;
/** Pixels within which a finger, or the keyboard, means a mark. */
const REACH = 24;

/** Where we look: the middle in metres, and the zoom (pixels of the page per metre, as a power of two). */
export class Camera {
  constructor() {
    this.x = 0;
    this.y = 0;
    this.zoom = 0;
    this.listeners = [];
  }

  get scale() {
    return 2 ** this.zoom;
  }

  set({ x = this.x, y = this.y, zoom = this.zoom }) {
    this.zoom = Math.min(Math.max(zoom, ZOOMS[0] + 1), ZOOMS[1]);
    this.x = x;
    this.y = y;
    for (const listener of this.listeners) listener();
  }

  /** Zooms so that a place stays under the pointer. */
  zoomAt(zoom, place) {
    const before = this.scale;
    this.zoom = Math.min(Math.max(zoom, ZOOMS[0] + 1), ZOOMS[1]);
    const share = before / this.scale;
    this.set({ x: place.x + (this.x - place.x) * share, y: place.y + (this.y - place.y) * share });
  }

  fit([x0, y0, x1, y1], width, height) {
    const room = 0.94 * Math.min(width / (x1 - x0), height / (y1 - y0));
    this.set({ x: (x0 + x1) / 2, y: (y0 + y1) / 2, zoom: Math.log2(room) });
  }
}

export class MapView {
  /** `host` gives what to draw; `acts` is told what the user does. */
  constructor(element, camera, tiles, host, acts) {
    Object.assign(this, { element, camera, tiles, host, acts });
    this.canvas = document.createElement("canvas");
    this.canvas.setAttribute("aria-hidden", "true");
    element.append(this.canvas);
    this.context = this.canvas.getContext("2d", { alpha: false });
    this.marks = document.createElement("canvas");
    this.marksAt = null;
    this.pointers = new Map();
    this.listen();
    this.observer = new ResizeObserver(() => this.resize());
    this.observer.observe(element);
    this.resize();
  }

  remove() {
    this.observer.disconnect();
    this.element.remove();
  }

  resize() {
    const ratio = window.devicePixelRatio || 1;
    this.ratio = ratio;
    this.width = this.element.clientWidth;
    this.height = this.element.clientHeight;
    this.canvas.width = this.marks.width = Math.max(1, Math.round(this.width * ratio));
    this.canvas.height = this.marks.height = Math.max(1, Math.round(this.height * ratio));
    this.marksAt = null;
    this.acts.resized?.(this);
    this.later();
  }

  place(px, py) {
    const { camera } = this;
    return { x: camera.x + (px - this.width / 2) / camera.scale, y: camera.y - (py - this.height / 2) / camera.scale };
  }

  pixel(x, y) {
    const { camera } = this;
    return [this.width / 2 + (x - camera.x) * camera.scale, this.height / 2 - (y - camera.y) * camera.scale];
  }

  /** The tiles that are seen. */
  seen() {
    const z = Math.min(Math.max(Math.round(this.camera.zoom + Math.log2(this.ratio)), ZOOMS[0]), ZOOMS[1]);
    const side = TILE * 2 ** -z;
    const area = this.host().area;
    if (!area) return null;
    const low = this.place(0, this.height), high = this.place(this.width, 0);
    const index = (value) => Math.floor(value / side);
    const x0 = index(Math.max(low.x, area[0])), y0 = index(Math.max(low.y, area[1]));
    const x1 = Math.ceil(Math.min(high.x, area[2]) / side) - 1, y1 = Math.ceil(Math.min(high.y, area[3]) / side) - 1;
    return x1 < x0 || y1 < y0 ? null : { z, side, x0, x1, y0, y1 };
  }

  later() {
    this.frame ??= requestAnimationFrame(() => {
      this.frame = null;
      this.draw();
    });
  }

  marksChanged() {
    this.marksAt = null;
    this.carried = null;
    this.later();
  }

  /** Asks for what is seen and not here. */
  want() {
    const seen = this.seen(), { source, less } = this.host();
    if (!seen || !source) return Promise.resolve();
    return Promise.all([this.tiles.want(source, seen), less ? this.tiles.want(less, seen) : null]);
  }

  tile(source, less, z, x, y) {
    const own = this.tiles.find(source, z, x, y);
    return less ? difference(own, this.tiles.find(less, z, x, y)) : own;
  }

  draw() {
    const told = this.host(), { context } = this;
    const moves = this.moving && this.zoomBefore === this.camera.zoom && told.source;
    this.zoomBefore = this.camera.zoom;
    if (moves) {
      this.drawCarried(told);
    } else {
      this.drawMap(context, told);
      this.drawMarks(told);
    }
    context.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    told.pointer(context, this);
    this.acts.drawn?.(this);
  }

  /** While the map is dragged a larger picture of it, marks and all, is carried along. */
  drawCarried(told) {
    const { camera, context, ratio } = this;
    const key = `${layerKey(told.source)} ${told.less ? layerKey(told.less) : ""} ${told.paint.key} ${told.opacity} ${this.tiles.version} ${this.width} ${this.height}`;
    const shift = (at) => [(at.x - camera.x) * camera.scale, (camera.y - at.y) * camera.scale];
    let { carried } = this;
    const far = carried && carried.key === key && carried.zoom === camera.zoom ? Math.max(...shift(carried).map(Math.abs)) : Infinity;
    if (far > MARGIN) {
      const [width, height] = [this.width, this.height];
      const image = carried?.image ?? document.createElement("canvas");
      [this.width, this.height] = [width + 2 * MARGIN, height + 2 * MARGIN];
      [image.width, image.height] = [Math.round(this.width * ratio), Math.round(this.height * ratio)];
      const target = image.getContext("2d", { alpha: false });
      this.drawMap(target, told);
      target.setTransform(ratio, 0, 0, ratio, 0, 0);
      told.marks(target, this);
      [this.width, this.height] = [width, height];
      carried = this.carried = { image, key, x: camera.x, y: camera.y, zoom: camera.zoom };
    }
    const [dx, dy] = shift(carried).map((v) => Math.round((v - MARGIN) * ratio));
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.drawImage(carried.image, dx, dy);
  }

  drawMap(context, told) {
    const { ratio } = this;
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.fillStyle = told.ground;
    context.fillRect(0, 0, context.canvas.width, context.canvas.height);
    if (told.plan) this.drawPlan(context, told.plan);
    const seen = this.seen();
    this.whole = undefined;
    if (!told.source || !seen) return;
    context.save();
    const [left, top] = this.pixel(told.area[0], told.area[3]);
    const [right, bottom] = this.pixel(told.area[2], told.area[1]);
    context.beginPath();
    context.rect(left * ratio, top * ratio, (right - left) * ratio, (bottom - top) * ratio);
    context.clip();
    context.globalAlpha = told.opacity;
    context.imageSmoothingEnabled = !told.paint.steps;
    let whole = true;
    for (let y = seen.y1; y >= seen.y0; y--) for (let x = seen.x0; x <= seen.x1; x++) {
      const tile = this.tile(told.source, told.less, seen.z, x, y);
      if (tile?.draft) whole = false;
      if (tile && (!tile.values || this.drawTile(context, picture(tile, told.paint), seen.z, x, y))) continue;
      whole = false;
      if (!this.drawFromAbove(context, told, seen.z, x, y) && this.before) {
        const old = this.tile(this.before.source, this.before.less, seen.z, x, y);
        if (old?.values) this.drawTile(context, picture(old, this.before.paint), seen.z, x, y);
      }
    }
    context.restore();
    // A new band is drawn over the one before until it is here.
    if (whole) this.before = { source: told.source, less: told.less, paint: told.paint };
    this.whole = whole;
  }

  /** Draws a tile, or a part of it (shares of its width and height) where another would be. The first
   * and last places of a lattice lie on the tile's edges: in the middle of its outermost pixels. */
  drawTile(context, image, z, x, y, [u, v, share] = [0, 0, 1]) {
    if (!image) return false;
    const n = image.width - 1;
    const [sx, sy, size] = [0.5 + u * n, 0.5 + v * n, share * n];
    const side = TILE * 2 ** -z, { ratio } = this;
    const [left, top] = this.pixel(x * side, (y + 1) * side).map((v) => Math.round(v * ratio));
    const [right, bottom] = this.pixel((x + 1) * side, y * side).map((v) => Math.round(v * ratio));
    context.drawImage(image, sx, sy, size, size, left, top, right - left, bottom - top);
    return true;
  }

  /** A part of a coarser tile, enlarged. */
  drawFromAbove(context, told, z, x, y) {
    for (let up = 1; up <= 6; up++) {
      const many = 2 ** up, px = Math.floor(x / many), py = Math.floor(y / many);
      const tile = this.tile(told.source, told.less, z - up, px, py);
      if (!tile?.values) continue;
      const u = (x - px * many) / many, v = (many - 1 - (y - py * many)) / many;
      return this.drawTile(context, picture(tile, told.paint), z, x, y, [u, v, 1 / many]);
    }
    return false;
  }

  drawPlan(context, { image, extent }) {
    const [left, top] = this.pixel(extent[0], extent[3]), [right, bottom] = this.pixel(extent[2], extent[1]);
    const r = this.ratio;
    context.drawImage(image, left * r, top * r, (right - left) * r, (bottom - top) * r);
  }

  /** Marks are drawn again only where they or the view have changed. */
  drawMarks(told) {
    const { camera, context } = this, at = this.marksAt;
    if (!(at && at.zoom === camera.zoom && at.x === camera.x && at.y === camera.y)) {
      const marks = this.marks.getContext("2d");
      marks.setTransform(1, 0, 0, 1, 0, 0);
      marks.clearRect(0, 0, this.marks.width, this.marks.height);
      marks.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
      told.marks(marks, this);
      this.marksAt = { x: camera.x, y: camera.y, zoom: camera.zoom };
    }
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.drawImage(this.marks, 0, 0);
  }

  /** The value under a place, as it is drawn. */
  value({ x, y }) {
    const seen = this.seen(), told = this.host();
    if (!seen || !told.source) return null;
    for (let z = seen.z; z >= seen.z - 6; z--) {
      const side = TILE * 2 ** -z, tx = Math.floor(x / side), ty = Math.floor(y / side);
      const tile = this.tile(told.source, told.less, z, tx, ty);
      if (tile?.values) return valueIn(tile, x / side - tx, 1 - (y / side - ty), told.paint.steps);
    }
    return null;
  }

  settle() {
    clearTimeout(this.rest);
    this.moving = true;
    this.rest = setTimeout(() => {
      this.moving = false;
      this.acts.rested?.();
    }, 140);
  }

  listen() {
    const { element, camera } = this;
    const at = (event) => {
      const box = element.getBoundingClientRect();
      return [event.clientX - box.left, event.clientY - box.top];
    };
    element.addEventListener("pointerdown", (event) => {
      element.setPointerCapture(event.pointerId);
      this.pointers.set(event.pointerId, { at: at(event), from: at(event) });
      this.dragged = this.pointers.size > 1;
    });
    element.addEventListener("pointermove", (event) => {
      const [px, py] = at(event);
      const held = this.pointers.get(event.pointerId);
      if (!held) return this.acts.hover?.(this, this.place(px, py), [px, py]);
      const far = Math.hypot(px - held.from[0], py - held.from[1]);
      if (far > 4) this.dragged = true;
      const before = this.spread();
      const move = [px - held.at[0], py - held.at[1]];
      held.at = [px, py];
      if (!this.dragged) return;
      this.settle();
      const share = 1 / this.pointers.size;
      camera.set({ x: camera.x - (share * move[0]) / camera.scale, y: camera.y + (share * move[1]) / camera.scale });
      const after = this.spread();
      if (before && after) camera.zoomAt(camera.zoom + Math.log2(after.far / before.far), this.place(...after.middle));
    });
    const up = (event) => {
      const held = this.pointers.get(event.pointerId);
      this.pointers.delete(event.pointerId);
      if (held && !this.dragged && event.type === "pointerup") this.acts.asked?.(this, this.place(...at(event)), at(event), event.pointerType === "mouse" ? 10 : REACH);
    };
    element.addEventListener("pointerup", up);
    element.addEventListener("pointercancel", up);
    element.addEventListener("pointerleave", () => this.acts.hover?.(this, null));
    element.addEventListener("wheel", (event) => {
      event.preventDefault();
      this.settle();
      const pixels = event.deltaMode === 1 ? 16 * event.deltaY : event.deltaY;
      camera.zoomAt(camera.zoom - Math.max(-1, Math.min(1, pixels / 300)), this.place(...at(event)));
    }, { passive: false });
    element.addEventListener("keydown", (event) => this.key(event));
  }

  spread() {
    if (this.pointers.size < 2) return null;
    const [a, b] = [...this.pointers.values()].map((held) => held.at);
    return { far: Math.max(1, Math.hypot(a[0] - b[0], a[1] - b[1])), middle: [(a[0] + b[0]) / 2, (a[1] + b[1]) / 2] };
  }

  key(event) {
    const { camera } = this;
    const step = (event.shiftKey ? 240 : 60) / camera.scale;
    const middle = { x: camera.x, y: camera.y };
    const acts = {
      ArrowLeft: () => camera.set({ x: camera.x - step }),
      ArrowRight: () => camera.set({ x: camera.x + step }),
      ArrowUp: () => camera.set({ y: camera.y + step }),
      ArrowDown: () => camera.set({ y: camera.y - step }),
      "+": () => camera.zoomAt(camera.zoom + 0.5, middle),
      "=": () => camera.zoomAt(camera.zoom + 0.5, middle),
      "-": () => camera.zoomAt(camera.zoom - 0.5, middle),
      "0": () => this.acts.fit?.(),
      Enter: () => this.acts.asked?.(this, middle, [this.width / 2, this.height / 2], REACH),
      " ": () => this.acts.asked?.(this, middle, [this.width / 2, this.height / 2], REACH),
      "[": () => this.acts.band?.(-1),
      "]": () => this.acts.band?.(1),
    };
    const act = acts[event.key];
    if (!act || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    this.settle();
    act();
  }
}
