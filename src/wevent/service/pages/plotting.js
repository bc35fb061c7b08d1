// plotly as the page's pencil: how it is loaded, what colours it gets, where round numbers and times lie.

import { LADDER, shownIn } from "./looks.js";

const DARK = window.matchMedia("(prefers-color-scheme: dark)");
const TIME_STEPS_S = [
  ...[1, 2, 5, 10, 15, 30],
  ...[1, 2, 5, 10, 15, 30].map((minutes) => minutes * 60),
  ...[1, 2, 3, 6, 12].map((hours) => hours * 3600),
  ...[1, 2, 7, 14, 28, 91, 182, 364].map((days) => days * 86400),
];

let loading = null;

/** plotly, loaded once, when first asked for: the page is readable before. */
export function loadPlotly() {
  loading ??= new Promise((resolve, reject) => {
    // A map library inside plotly puts a style element into the page, which the content policy refuses. Nothing here needs it.
    const { head } = document;
    head.appendChild = (node) => (node.nodeName === "STYLE" ? node : Node.prototype.appendChild.call(head, node));
    const done = (settle) => () => {
      delete head.appendChild;
      settle();
    };
    const script = document.createElement("script");
    script.src = "/static/plotly.min.js";
    script.onload = done(() => resolve(window.Plotly));
    script.onerror = done(() => reject(new Error("plotly cannot be loaded")));
    head.append(script);
  });
  return loading;
}

/** Called when the reader changes between light and dark. */
export function onThemeChange(work) {
  DARK.addEventListener("change", work);
}

/** The page's colours as plotly takes them. */
export function theme() {
  const style = getComputedStyle(document.documentElement);
  const read = (name) => style.getPropertyValue(`--${name}`).trim();
  return {
    dark: DARK.matches,
    ink: read("ink"),
    soft: read("soft"),
    grid: read("grid"),
    faint: read("faint"),
    line: (colour) => `rgb(${shownIn(colour, DARK.matches).join(",")})`,
    band: (colour) => `rgba(${shownIn(colour, DARK.matches).join(",")},0.24)`,
    font: { family: getComputedStyle(document.body).fontFamily, size: 12, color: read("soft") },
  };
}

export const COLOURSCALE = LADDER.map((colour, step) => [step / (LADDER.length - 1), colour]);

/** A label as plotly shows it letter by letter: it reads tags and entities otherwise. */
export function plain(label) {
  return String(label).replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}

/** At most so many round numbers from low to high, at steps of 1, 2 or 5 times a power of ten. */
export function roundNumbers(low, high, most = 5) {
  if (!(high > low)) return [low];
  const power = 10 ** Math.floor(Math.log10((high - low) / most));
  const step = [1, 2, 5, 10, 20, 50].map((lead) => lead * power).find((size) => (high - low) / size <= most);
  const found = [];
  for (let place = Math.ceil(low / step - 1e-9); place * step <= high + step * 1e-9; place += 1) found.push(place * step + 0); // no −0
  return found;
}

/** Round times between two slots, in the reader's time zone: positions in slots, and what to write there. */
function roundTimes(clock, first, last, most) {
  const from = clock.start(first).getTime();
  const to = clock.start(last).getTime();
  const seconds = (to - from) / 1000;
  const step = TIME_STEPS_S.find((size) => seconds / size <= most) ?? TIME_STEPS_S.at(-1) * Math.ceil(seconds / TIME_STEPS_S.at(-1) / most);
  const at = new Date(from);
  at.setHours(0, 0, 0, 0);
  const places = [];
  const texts = [];
  for (let tries = 0; at.getTime() <= to && tries < 100_000; tries += 1) {
    if (at.getTime() >= from) {
      places.push(first + (at.getTime() - from) / 1000 / clock.seconds);
      texts.push(timeText(at, step));
    }
    if (step >= 86400) at.setDate(at.getDate() + step / 86400);
    else at.setTime(at.getTime() + step * 1000);
  }
  return { places, texts };
}

function timeText(date, step) {
  const midnight = date.getHours() === 0 && date.getMinutes() === 0 && date.getSeconds() === 0;
  if (midnight) return new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short" }).format(date);
  const form = { hour: "2-digit", minute: "2-digit", ...(step < 60 ? { second: "2-digit" } : {}) };
  return new Intl.DateTimeFormat("en-GB", form).format(date);
}

/** What all charts here have in common: drawn, not touched; the page has its own pointer and keys. */
export const CONFIG = { staticPlot: true, displayModeBar: false, responsive: false };

/** The part of a layout that all charts share. */
export function baseLayout(colours, width, height, margin) {
  return {
    width,
    height,
    margin: { pad: 0, ...margin },
    autosize: false,
    showlegend: false,
    hovermode: false,
    font: colours.font,
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
  };
}

/** A time axis over these slots. */
export function timeAxis(colours, clock, { first, last }, width, more = {}) {
  const { places, texts } = roundTimes(clock, first, last + 1, Math.max(2, Math.floor(width / 90)));
  return {
    range: [first, last + 1],
    fixedrange: true,
    tickmode: "array",
    tickvals: places,
    ticktext: texts,
    ticks: "outside",
    ticklen: 4,
    tickcolor: colours.grid,
    gridcolor: colours.grid,
    zeroline: false,
    tickangle: 0,
    ...more,
  };
}
