// Every cell with its latest value; those that are ticked get a chart. Hundreds are found by typing.

import { make, say, show } from "./dom.js";
import { number } from "./words.js";

export const MOST_CHOSEN = 8;
const MOST_LISTED = 200;

export class CellList {
  /**
   * @param {{list: HTMLElement, search: HTMLInputElement, note: HTMLElement, labels: string[], store: Object,
   *   onChange: function}} facts
   */
  constructor(facts) {
    Object.assign(this, facts);
    this.chosen = [];
    this.shown = new Map(); // cell → {box, value}
    show(this.search.parentElement, this.labels.length > 12);
    this.search.addEventListener("input", () => this.#list());
    this.search.addEventListener("keydown", (event) => {
      const [first] = this.shown.keys();
      if (event.key === "Enter" && first !== undefined) this.toggle(first);
    });
  }

  /** Begin with the cells of the address, or else with the largest. */
  begin(count) {
    const asked = new URLSearchParams(window.location.search).getAll("cells");
    const wanted = asked.map((label) => this.labels.indexOf(label)).filter((cell) => cell >= 0);
    const size = (cell) => this.store.of(this.store.last, cell).value || 0;
    const largest = [...this.labels.keys()].sort((one, other) => size(other) - size(one)).slice(0, count);
    this.chosen = wanted.length ? [...new Set(wanted)].slice(0, MOST_CHOSEN) : largest.sort((one, other) => one - other);
    this.#list();
    this.onChange(this.chosen);
  }

  /** Show a cell's chart, or hide it. */
  toggle(cell) {
    if (this.chosen.includes(cell)) this.chosen = this.chosen.filter((other) => other !== cell);
    else if (this.chosen.length < MOST_CHOSEN) this.chosen = [...this.chosen, cell];
    this.#tick();
    this.#remember();
    this.onChange(this.chosen);
  }

  /** The latest values. */
  update(slot) {
    for (const [cell, { value }] of this.shown) say(value, number(this.store.of(slot, cell).value));
  }

  #list() {
    const wanted = this.search.value.trim().toLocaleLowerCase();
    const found = [...this.labels.keys()].filter((cell) => this.labels[cell].toLocaleLowerCase().includes(wanted));
    this.shown.clear();
    const items = found.slice(0, MOST_LISTED).map((cell) => this.#item(cell));
    this.list.replaceChildren(...items);
    this.more = found.length - items.length;
    this.found = found.length;
    this.#tick();
    this.update(this.store.last);
  }

  #item(cell) {
    const box = make("input", { type: "checkbox", change: () => this.toggle(cell) });
    const value = make("span", { class: "numbers soft" });
    this.shown.set(cell, { box, value });
    const name = make("span", { class: "cell-name", text: this.labels[cell], title: this.labels[cell] });
    return make("li", {}, make("label", {}, box, name, value));
  }

  #tick() {
    const full = this.chosen.length >= MOST_CHOSEN;
    for (const [cell, { box }] of this.shown) {
      box.checked = this.chosen.includes(cell);
      box.disabled = full && !box.checked;
    }
    const more = this.more > 0 ? ` ${this.more} more are not listed: type a part of their name.` : "";
    const many = full ? `${MOST_CHOSEN} charts at most: untick one to see another.` : "";
    say(this.note, this.found ? `${many}${more}`.trim() : "No cell has such a name.");
  }

  #remember() {
    const address = new URL(window.location.href);
    address.searchParams.delete("cells");
    for (const cell of this.chosen) address.searchParams.append("cells", this.labels[cell]);
    window.history.replaceState(null, "", address);
  }
}
