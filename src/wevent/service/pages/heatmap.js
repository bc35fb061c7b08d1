// All cells over time, values as colours, with a lane above that says how fresh each slot is.

import { say } from "./dom.js";
import { baseLayout, COLOURSCALE, CONFIG, plain, theme, timeAxis } from "./plotting.js";
import { interval, number, outcome, whole } from "./words.js";

const MOST_ROWS = 2000;
const LANE = 16;
const GAP = 6;
const BOTTOM = 26;
const HINT = window.matchMedia("(hover: none)").matches
  ? "Tap the map to read a value."
  : "Point at the map, or reach it with Tab and move with the arrow keys. A click, or Enter, shows or hides the chart of a cell.";
const TALL = { estimated: 0.45, repeated: 0.25, nullified: 0.08 };

export class Heatmap {
  /**
   * @param {{chart: HTMLElement, plot: HTMLElement, said: HTMLElement, box: HTMLElement, labels: string[], store: Object,
   *   clock: Object, cursor: Object, onPick: function, onScale: function}} facts `box` marks the value that is pointed at;
   *   `onScale(low, high)` hears which values the ends of the colours stand for.
   */
  constructor(facts) {
    Object.assign(this, facts);
    this.cell = null;
    this.rows = Math.min(this.labels.length, MOST_ROWS);
    this.low = this.high = null;
    this.chart.addEventListener("pointermove", (event) => this.#point(event));
    this.chart.addEventListener("pointerleave", (event) => this.cursor.leave(event));
    this.chart.addEventListener("click", (event) => {
      this.#point(event);
      if (event.pointerType === "mouse") this.onPick(this.cell);
    });
    this.chart.addEventListener("keydown", (event) => this.#key(event));
    this.chart.addEventListener("focus", () => this.speak());
    this.chart.addEventListener("blur", (event) => this.cursor.blur(event));
  }

  get geometry() {
    const width = this.chart.clientWidth;
    const left = width < 600 ? 96 : 150;
    const row = Math.min(26, Math.max(5, 620 / this.rows));
    return { width, left, row, top: LANE + GAP, inner: Math.max(1, width - left - 2), height: row * this.rows };
  }

  draw(Plotly) {
    const { first, last } = this.cursor.range;
    const { width, left, row, top, inner, height } = this.geometry;
    if (!width || !last) return;
    const colours = theme();
    const whole = top + height + BOTTOM;
    this.chart.style.height = `${whole}px`;
    const z = this.#values(first, last);
    const every = Math.max(1, Math.ceil(13 / row));
    const places = [...Array(this.rows).keys()].filter((place) => place % every === 0);
    const signs = Math.floor((left - 10) / 7);
    const heat = {
      type: "heatmap",
      x0: first + 0.5,
      dx: 1,
      y0: 0,
      dy: 1,
      z,
      zmin: this.low,
      zmax: this.high > this.low ? this.high : this.low + 1,
      colorscale: COLOURSCALE,
      showscale: false,
      zsmooth: "fast", // plotly sharpens it with an inline style otherwise; the page's style does it here
      hoverinfo: "skip",
    };
    const layout = {
      ...baseLayout(colours, width, whole, { l: left, r: 2, t: 0, b: BOTTOM }),
      xaxis: timeAxis(colours, this.clock, { first, last }, inner, { anchor: "y", showgrid: false }),
      yaxis: {
        domain: [0, height / (whole - BOTTOM)],
        range: [this.rows - 0.5, -0.5],
        fixedrange: true,
        tickmode: "array",
        tickvals: places,
        ticktext: places.map((place) => plain(shortened(this.labels[place], signs))),
        showgrid: false,
        zeroline: false,
      },
      yaxis2: { domain: [1 - LANE / (whole - BOTTOM), 1], range: [0, 1], fixedrange: true, visible: false },
    };
    Plotly.react(this.plot, [heat, ...this.#lanes(colours, first, last)], layout, CONFIG);
    this.tell();
  }

  /** What the value that is pointed at says, and where it is. */
  tell() {
    const { first, last } = this.cursor.range;
    const at = this.cell !== null && this.cursor.chosen !== null;
    this.box.hidden = !at;
    if (!at) {
      this.cell = null;
      say(this.said, HINT);
      return;
    }
    const { left, row, top, inner } = this.geometry;
    const wide = inner / (last + 1 - first);
    this.box.style.left = `${left + (this.cursor.slot - first) * wide}px`;
    this.box.style.width = `${Math.max(3, wide)}px`;
    this.box.style.top = `${top + this.cell * row}px`;
    this.box.style.height = `${row}px`;
    say(this.said, this.#words());
  }

  /** What a screen reader says. */
  speak() {
    const { range, slot } = this.cursor;
    this.chart.setAttribute("aria-valuemin", range.first);
    this.chart.setAttribute("aria-valuemax", range.last);
    this.chart.setAttribute("aria-valuenow", slot);
    this.chart.setAttribute("aria-valuetext", this.#words());
  }

  #words() {
    const cell = this.cell ?? 0;
    const { slot } = this.cursor;
    const known = this.store.of(slot, cell);
    const row = this.store.at(slot);
    const around = interval(known.low, known.high);
    return (
      `${this.labels[cell]}, ${this.clock.span(slot)} (slot ${whole(slot)}): ${number(known.value)}` +
      `${around ? `, 95 % interval ${around}` : ""}, ${row ? outcome(row.outcome, row.measured) : "no release here"}.`
    );
  }

  #values(first, last) {
    let low = Infinity;
    let high = -Infinity;
    const z = [];
    for (let cell = 0; cell < this.rows; cell += 1) {
      const row = this.store.row(cell, first, last);
      for (const value of row) {
        if (value < low) low = value;
        if (value > high) high = value;
      }
      z.push(row);
    }
    this.low = Number.isFinite(low) ? low : 0;
    this.high = Number.isFinite(high) ? high : 1;
    this.onScale(this.low, this.high);
    return z;
  }

  /** Measured slots as tall bars, the others as lower ones, the older the lower. */
  #lanes(colours, first, last) {
    const fresh = { x: [], y: [] };
    const others = { x: [], y: [] };
    for (let slot = first; slot <= last; slot += 1) {
      const row = this.store.at(slot);
      const known = row && !row.empty;
      const tall = known && row.outcome === "fresh" ? 1 : 0;
      const low = known ? (TALL[row.outcome] ?? 0) : 0;
      fresh.x.push(slot, slot + 1);
      fresh.y.push(tall, tall);
      others.x.push(slot, slot + 1);
      others.y.push(low, low);
    }
    const style = { yaxis: "y2", mode: "lines", line: { width: 0 }, fill: "tozeroy" };
    return [
      { ...others, ...style, fillcolor: colours.faint },
      { ...fresh, ...style, fillcolor: colours.ink },
    ];
  }

  #point(event) {
    const { left, row, top, inner } = this.geometry;
    const box = this.chart.getBoundingClientRect();
    this.cell = Math.max(0, Math.min(this.rows - 1, Math.floor((event.clientY - box.top - top) / row)));
    this.cursor.moveTo((event.clientX - box.left - left) / inner);
    this.tell();
  }

  #key(event) {
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      if (this.cell !== null) this.onPick(this.cell);
      return;
    }
    const by = { ArrowUp: -1, ArrowDown: 1 }[event.key];
    if (by === undefined) {
      if (event.key.startsWith("Arrow")) this.cell ??= 0;
      this.cursor.key(event);
      return;
    }
    event.preventDefault();
    this.cell = this.cell === null ? 0 : Math.max(0, Math.min(this.rows - 1, this.cell + by));
    this.cursor.chosen ??= this.cursor.range.last;
    this.cursor.onMove("key");
  }
}

const shortened = (label, signs) => {
  const letters = [...label.replaceAll(/\s+/g, " ")];
  return letters.length <= signs ? letters.join("") : `${letters.slice(0, signs - 1).join("")}…`;
};
