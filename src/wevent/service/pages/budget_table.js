// What every class may still spend of its budget, against its limit.

import { make } from "./dom.js";
import { budget, span, whole } from "./words.js";

/** The words people chose by their requirement: "window:epsilon" → "High/Small". */
export function namesOf(levels) {
  const names = new Map();
  for (const row of levels.rows) {
    const key = `${row.window}:${row.epsilon}`;
    if (row.level && !names.has(key)) names.set(key, row.level);
  }
  return names;
}

/** Rows of a table with a bar each: the whole bar is the limit, what is filled is left. */
export function budgetRows(ledger, names, slotSeconds) {
  return ledger.classes.map((held) => {
    const name = names.get(`${held.window}:${held.epsilon}`);
    const share = Math.max(0, Math.min(1, held.share));
    const bar = make("span", { class: "bar", "aria-hidden": "true" }, make("span", { class: "bar-left" }));
    bar.firstChild.style.width = `${(share * 100).toFixed(1)}%`;
    return make(
      "tr",
      {},
      make(
        "th",
        { scope: "row" },
        make("span", { class: "class-name", text: name ?? "In numbers" }),
        make("span", { class: "soft small class-span", text: `any ${span(held.window * slotSeconds)}` }),
      ),
      make("td", { text: whole(held.users) }),
      make(
        "td",
        {},
        make(
          "span",
          { class: "bar-cell" },
          bar,
          make("span", { class: "bar-text" }, make("strong", { text: budget(held.left) }), ` of ${budget(held.epsilon)}`),
        ),
      ),
    );
  });
}
