// The numbers of the charts as a table, newest first: for those who read rather than look.

import { make } from "./dom.js";
import { interval, number, whole } from "./words.js";

const MOST_ROWS = 60;

/** Fill a table with the chosen cells in the last slots. */
export function fillTable(table, { store, clock, labels, cells, range }) {
  const heads = ["Slot", "Time", "Is", ...cells.map((cell) => labels[cell])];
  const head = make("tr", {}, ...heads.map((text, at) => make("th", { scope: "col", text, class: at === 1 || at === 2 ? "text" : null })));
  const rows = [];
  const least = Math.max(range.first, range.last - MOST_ROWS + 1);
  for (let slot = range.last; slot >= least && slot > 0; slot -= 1) {
    const known = store.at(slot);
    const row = make(
      "tr",
      {},
      make("th", { scope: "row", text: whole(slot) }),
      make("td", { class: "text", text: clock.span(slot) }),
      make("td", { class: "text", text: known ? known.outcome : "not here" }),
    );
    for (const cell of cells) {
      const { value, low, high } = store.of(slot, cell);
      const around = interval(low, high);
      row.append(make("td", { text: number(value) + (around ? ` (${around})` : "") }));
    }
    rows.push(row);
  }
  table.tHead.replaceChildren(head);
  table.tBodies[0].replaceChildren(...rows);
}
