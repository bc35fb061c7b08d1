// The last releases, in as much memory as was taken at the start, however long the page stays open.

const MOST_VALUES = 250_000; // slots × cells
const MOST_SLOTS = 500;

/** How many slots are kept for so many cells. */
const capacityFor = (cells) => Math.max(20, Math.min(MOST_SLOTS, Math.floor(MOST_VALUES / Math.max(1, cells))));

export class Releases {
  constructor(cells) {
    this.cells = cells;
    this.capacity = capacityFor(cells);
    this.values = new Float64Array(this.capacity * cells).fill(NaN);
    this.low = new Float64Array(this.capacity * cells).fill(NaN);
    this.high = new Float64Array(this.capacity * cells).fill(NaN);
    this.rows = new Array(this.capacity).fill(null);
    this.last = 0;
    this.first = 0; // the oldest that was ever put in
  }

  /** Take a release in; true if it is newer than all before it. The same one twice changes nothing. */
  add(release) {
    const { slot } = release;
    if (slot <= this.last - this.capacity) return false;
    const place = slot % this.capacity;
    const { outcome, measured, mechanism } = release;
    this.rows[place] = { slot, outcome, measured, mechanism, empty: release.histogram === null };
    this.#fill(this.values, place, release.histogram);
    this.#fill(this.low, place, release.low);
    this.#fill(this.high, place, release.high);
    this.first = this.first ? Math.min(this.first, slot) : slot;
    const newer = slot > this.last;
    this.last = Math.max(this.last, slot);
    return newer;
  }

  /** What is known of a slot, or null. */
  at(slot) {
    const row = this.rows[slot % this.capacity];
    return row && row.slot === slot ? row : null;
  }

  /** Value and interval of a cell in a slot; NaN where there is none. */
  of(slot, cell) {
    if (!this.at(slot)) return { value: NaN, low: NaN, high: NaN };
    const at = (slot % this.capacity) * this.cells + cell;
    return { value: this.values[at], low: this.low[at], high: this.high[at] };
  }

  /** The values of a cell from slot to slot; NaN where there is none. */
  row(cell, first, last) {
    const found = new Float64Array(last - first + 1);
    for (let slot = first; slot <= last; slot += 1) {
      found[slot - first] = this.at(slot) ? this.values[(slot % this.capacity) * this.cells + cell] : NaN;
    }
    return found;
  }

  /** The slots to show: the last so many, as far as they are known. */
  range(count) {
    const first = Math.max(this.first, this.last - Math.min(count, this.capacity) + 1);
    return { first, last: this.last };
  }

  #fill(table, place, numbers) {
    const from = place * this.cells;
    for (let cell = 0; cell < this.cells; cell += 1) table[from + cell] = numbers ? (numbers[cell] ?? NaN) : NaN;
  }
}
