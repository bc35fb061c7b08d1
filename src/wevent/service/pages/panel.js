// One cell over time: what was published as a line, its 95 % band, ticks where it was measured.

import { make, say } from "./dom.js";
import { colourOf } from "./looks.js";
import { baseLayout, CONFIG, roundNumbers, theme, timeAxis } from "./plotting.js";
import { interval, number, outcome, span, whole } from "./words.js";

const HEIGHT = 176;
const MARGIN = { l: 46, r: 10, t: 6, b: 24 };

export class Panel {
  /**
   * @param {{cell: number, label: string, store: Object, clock: Object, cursor: Object, onClose: function}} facts
   *   `cursor` is shared by all charts: the slot that is pointed at.
   */
  constructor(facts) {
    Object.assign(this, facts);
    this.value = make("span", { class: "panel-value numbers" });
    this.around = make("span", { class: "panel-interval numbers" });
    this.rule = make("div", { class: "rule", hidden: true });
    this.plot = make("div", { class: "plot" });
    this.slider = make(
      "div",
      {
        class: "chart",
        role: "slider",
        tabindex: "0",
        "aria-label": `${this.label} over time`,
        "aria-valuemin": "0",
        "aria-valuemax": "0",
        "aria-valuenow": "0",
        pointermove: (event) => this.#point(event),
        pointerdown: (event) => this.#point(event),
        pointerleave: (event) => this.cursor.leave(event),
        blur: (event) => this.cursor.blur(event),
        keydown: (event) => this.cursor.key(event),
        focus: () => this.speak(),
      },
      this.plot,
      this.rule,
    );
    this.element = make(
      "li",
      { class: "panel card" },
      make(
        "div",
        { class: "panel-head" },
        make("h3", { text: this.label, title: this.label }),
        make("button", {
          type: "button",
          class: "close",
          "aria-label": `Hide ${this.label}`,
          text: "×",
          click: () => this.onClose(this.cell),
        }),
      ),
      make("p", { class: "panel-now" }, this.value, " ", this.around),
      this.slider,
    );
  }

  /** Where the inner plot is, in pixels of the chart. */
  get inner() {
    return { left: MARGIN.l, width: Math.max(1, this.slider.clientWidth - MARGIN.l - MARGIN.r) };
  }

  /** The numbers above the chart, and the line at the slot that is pointed at. */
  tell() {
    const { slot } = this.cursor;
    const { first, last } = this.cursor.range;
    const known = this.store.of(slot, this.cell);
    say(this.value, number(known.value));
    const around = interval(known.low, known.high);
    say(this.around, around ? `95 %: ${around}` : Number.isFinite(known.value) ? "no honest interval" : "nothing yet");
    this.rule.hidden = !this.cursor.chosen;
    const { left, width } = this.inner;
    this.rule.style.left = `${left + ((slot + 0.5 - first) / (last + 1 - first)) * width}px`;
  }

  /** What a screen reader says of the slot that is pointed at. */
  speak() {
    const { slot, range } = this.cursor;
    const known = this.store.of(slot, this.cell);
    const row = this.store.at(slot);
    const around = interval(known.low, known.high);
    this.slider.setAttribute("aria-valuemin", range.first);
    this.slider.setAttribute("aria-valuemax", range.last);
    this.slider.setAttribute("aria-valuenow", slot);
    this.slider.setAttribute(
      "aria-valuetext",
      `${this.clock.span(slot)}, slot ${whole(slot)}: ${number(known.value)}${around ? `, 95 % interval ${around}` : ""}, ` +
        (row ? outcome(row.outcome, row.measured) : "no release here"),
    );
  }

  draw(Plotly) {
    const { first, last } = this.cursor.range;
    const width = this.slider.clientWidth;
    if (!width || !last) return;
    const colours = theme();
    const { traces, top } = this.#traces(colours, first, last);
    const layout = {
      ...baseLayout(colours, width, HEIGHT, MARGIN),
      xaxis: timeAxis(colours, this.clock, { first, last }, width - MARGIN.l - MARGIN.r, { anchor: "y2", showgrid: true }),
      yaxis: {
        domain: [0.07, 1],
        range: [0, top],
        fixedrange: true,
        tickmode: "array",
        tickvals: roundNumbers(0, top),
        ticktext: roundNumbers(0, top).map(number),
        gridcolor: colours.grid,
        zeroline: false,
      },
      yaxis2: { domain: [0, 0.05], range: [0, 1], fixedrange: true, visible: false },
    };
    Plotly.react(this.plot, traces, layout, CONFIG);
    const shown = span((last - first + 1) * this.clock.seconds);
    this.slider.setAttribute("aria-description", `Line with 95 % band of the last ${shown}. Arrow keys move through the slots.`);
  }

  erase(Plotly) {
    Plotly?.purge(this.plot);
  }

  /** One line and one band for each stretch of a mechanism, and the ticks. */
  #traces(colours, first, last) {
    const runs = new Map(); // mechanism → paths
    const ticks = { x: [], y: [] };
    let top = 0;
    let piece = null;
    const close = () => {
      if (piece) piece.run.band.push(...piece.up, ...piece.down.reverse(), null);
      piece = null;
    };
    for (let slot = first; slot <= last; slot += 1) {
      const row = this.store.at(slot);
      const { value, low, high } = this.store.of(slot, this.cell);
      if (!row || !Number.isFinite(value)) {
        close();
        for (const run of runs.values()) run.line.push(null);
        continue;
      }
      if (!runs.has(row.mechanism)) runs.set(row.mechanism, { line: [], band: [], mechanism: row.mechanism });
      const run = runs.get(row.mechanism);
      for (const other of runs.values()) if (other !== run) other.line.push(null);
      run.line.push([slot, value], [slot + 1, value]);
      top = Math.max(top, value, Number.isFinite(high) ? high : 0);
      if (piece && piece.run !== run) close();
      if (Number.isFinite(low)) {
        piece ??= { run, up: [], down: [] };
        piece.up.push([slot, high], [slot + 1, high]);
        piece.down.push([slot, low], [slot + 1, low]);
      } else close();
      if (row.outcome === "fresh") {
        ticks.x.push(slot, slot, null);
        ticks.y.push(0, 1, null);
      }
    }
    close();
    const traces = [...runs.values()].flatMap((run) => [bandTrace(run, colours), lineTrace(run, colours)]);
    traces.push({ ...ticks, yaxis: "y2", mode: "lines", line: { color: colours.ink, width: 1 }, opacity: 0.65 });
    return { traces, top: top > 0 ? top * 1.06 : 1 };
  }

  #point(event) {
    const box = this.slider.getBoundingClientRect();
    const { left, width } = this.inner;
    this.cursor.moveTo((event.clientX - box.left - left) / width);
  }
}

const xs = (path) => path.map((point) => (point ? point[0] : null));
const ys = (path) => path.map((point) => (point ? point[1] : null));

function bandTrace({ band, mechanism }, colours) {
  return {
    x: xs(band),
    y: ys(band),
    mode: "lines",
    line: { width: 0 },
    fill: "toself",
    fillcolor: colours.band(colourOf(mechanism)),
  };
}

function lineTrace({ line, mechanism }, colours) {
  return { x: xs(line), y: ys(line), mode: "lines", line: { color: colours.line(colourOf(mechanism)), width: 1.8 } };
}
