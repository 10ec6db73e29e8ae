// What lies under the pointer, or where a question was asked: advice, an emitter, a sensor, the map.

import * as api from "./api.js";
import { number } from "./chart.js";
import { make, metres, occupied, within } from "./here.js";
import * as marks from "./marks.js";

export class Under {
  constructor(app) {
    this.app = app;
    this.sensors = new Map();
  }

  /** The map that a view shows. */
  map(view) {
    return this.app.views.indexOf(view) === 1 ? this.app.other : this.app.item;
  }

  /** The mark within reach of a pixel, where there is one. */
  find(view, pixel, reach) {
    const { app } = this, map = this.map(view);
    const advised = app.shows.advice && map === app.item ? app.advice.find((a) => {
      const [x, y] = view.pixel(a.x_m, a.y_m);
      return Math.abs(x - pixel[0]) < 9 && pixel[1] < y + 2 && pixel[1] > y - 26;
    }) : null;
    if (advised) return { advised };
    const far = (e) => {
      const [x, y] = view.pixel(e.x_m, e.y_m);
      return e.noise ? Infinity : Math.hypot(x - pixel[0], y - pixel[1]);
    };
    const emitters = map.emitters ?? [], away = emitters.map(far);
    const emitter = away.indexOf(Math.min(...away));
    if (app.shows.emitters && emitter >= 0 && away[emitter] < Math.max(11, reach)) return { map, emitter };
    const places = app.places.get(map.readings ?? map.id);
    const sensor = places && app.shows.sensors ? marks.nearestSensor(view, places, pixel, app.until, reach) : -1;
    return sensor >= 0 ? { map, sensor } : null;
  }

  /** The lines about a mark; those of a sensor are asked for, once. */
  async lines(mark) {
    if (mark.advised) {
      const { rank, reduction_percent: less, x_m, y_m } = mark.advised;
      return [`Measure here: place ${rank}`, `removes ${number(less, 2)} % of the variance`, `x ${number(x_m)} m, y ${number(y_m)} m`];
    }
    return mark.emitter !== undefined ? this.emitterLines(mark.map, mark.emitter) : this.sensorLines(mark.map, mark.sensor);
  }

  emitterLines(map, i) {
    const e = map.emitters[i];
    const lines = [`Emitter ${i + 1}`, `x ${within(e.x_m, e.x_se_m, 1)} m, y ${within(e.y_m, e.y_se_m, 1)} m`];
    if (e.exponent !== null) lines.push(`exponent ${within(e.exponent, e.exponent_se, 2)}`);
    if (e.occupied) lines.push(`occupies ${occupied(e, this.app)}`);
    return lines;
  }

  /** What a sensor read, what the map says, what the others say. */
  async sensorLines(map, n) {
    const key = `${map.id} ${n}`;
    if (!this.sensors.has(key)) {
      this.sensors.set(key, api.get(`/api/items/${map.id}/sensor?n=${n}`));
      if (this.sensors.size > 40) this.sensors.delete(this.sensors.keys().next().value);
    }
    let told;
    try {
      told = await this.sensors.get(key);
    } catch (error) {
      this.sensors.delete(key);
      throw error;
    }
    const { band, errors } = this.app, unit = map.unit, lines = [`Sensor ${n}`];
    const read = told.read?.[band], says = told.level?.[band], held = told.held_out?.[band];
    if (told.read) lines.push(`read ${read === null ? "nothing" : `${number(read)} ${unit}`}`);
    if (told.level) lines.push(`the map says ${number(says)} ${unit}`);
    if (held !== null && held !== undefined && read !== null) lines.push(`the others say ${number(held)} ${unit}: ${number(held - read)} dB off`);
    if (errors && errors.readings === map.readings) lines.push(`validated: ${number(errors.errors[n])} dB off`);
    if (told.time_s) lines.push(new Date(1000 * told.time_s).toLocaleString());
    return lines;
  }

  /** The tip at the pointer. */
  async hover(view, place, pixel) {
    const { app } = this, tip = document.getElementById("tip"), turn = (this.turn = {});
    app.pointer = place && app.views.length > 1 ? { view, place } : null;
    if (app.views.length > 1) app.redraw();
    if (!place || !app.item) return void (tip.hidden = true);
    const mark = this.find(view, pixel, 10);
    const lines = mark ? await this.lines(mark).catch(() => null) : this.mapLines(view, place);
    // The pointer may have gone on while a sensor was asked.
    if (this.turn !== turn) return;
    if (!lines) return void (tip.hidden = true);
    tip.replaceChildren(make("strong", {}, lines[0]), ...lines.slice(1).flatMap((line) => [make("span", {}, line), make("br")]));
    tip.hidden = false;
    const stage = document.getElementById("stage").getBoundingClientRect(), box = view.element.getBoundingClientRect();
    const left = box.left - stage.left + pixel[0] + 16, top = box.top - stage.top + pixel[1] + 16;
    tip.style.left = `${Math.min(left, stage.width - tip.offsetWidth - 8)}px`;
    tip.style.top = `${Math.min(top, stage.height - tip.offsetHeight - 8)}px`;
  }

  mapLines(view, place) {
    const { app } = this, map = this.map(view), value = view.value(place), span = map.area[2] - map.area[0];
    if (value === null) return null;
    const lines = [this.valueText(value, map), `x ${metres(place.x, span)} m, y ${metres(place.y, span)} m`];
    if (app.views.length > 1) {
      const over = app.views[1 - app.views.indexOf(view)], there = over.value(place);
      if (there !== null) lines.splice(1, 0, `${app.label(this.map(over).id)}: ${this.valueText(there, map)}`);
    }
    return lines;
  }

  valueText(value, map) {
    const { app } = this;
    if (app.mode_difference()) return `${number(value)} ${app.layer === "above" ? "%" : "dB"} apart`;
    if (app.layer === "best") return app.bandName(value);
    if (app.layer === "above") return `${number(value, 0)} % above ${number(app.level, 0)} ${map.unit}`;
    return app.layer === "spread" ? `± ${number(value)} dB` : `${number(value)} ${map.unit}`;
  }
}
