// The slot that a reader points at, by pointer or keys; all charts of the page share it.

const TOUCHED_MS = 4000;

export class Cursor {
  /** @param {function} onMove called when another slot is pointed at, or none */
  constructor(onMove) {
    this.onMove = onMove;
    this.range = { first: 0, last: 0 };
    this.chosen = null;
    this.timer = null;
  }

  /** The slot to tell of: the latest one unless another is pointed at. */
  get slot() {
    return this.chosen ?? this.range.last;
  }

  /** The slots that are on the page now. */
  set(range) {
    this.range = range;
    if (this.chosen !== null && this.chosen < range.first) this.chosen = null;
  }

  /** Point at a share of the way from the first slot to the last. */
  moveTo(share) {
    const { first, last } = this.range;
    this.#choose(first + Math.floor(share * (last + 1 - first)));
  }

  clear() {
    clearTimeout(this.timer);
    if (this.chosen === null) return;
    this.chosen = null;
    this.onMove("pointer");
  }

  /** The pointer has gone: what a finger pointed at stays for a moment, to be read. */
  leave({ pointerType }) {
    clearTimeout(this.timer);
    if (pointerType === "mouse") this.clear();
    else this.timer = setTimeout(() => this.clear(), TOUCHED_MS);
  }

  /** The keys are elsewhere now, unless they are on another chart. */
  blur({ relatedTarget }) {
    if (relatedTarget?.getAttribute("role") !== "slider") this.clear();
  }

  /** Arrow keys, Page Up and Down, Home, End; Escape goes back to the latest. True if the key meant something. */
  key(event) {
    const { first, last } = this.range;
    const page = Math.max(2, Math.round((last - first) / 10));
    const by = { ArrowLeft: -1, ArrowRight: 1, ArrowDown: -1, ArrowUp: 1, PageDown: -page, PageUp: page }[event.key];
    const to = { Home: first, End: last }[event.key];
    if (event.key === "Escape") this.chosen = null;
    else if (by === undefined && to === undefined) return false;
    else this.chosen = Math.max(first, Math.min(last, to ?? this.slot + by));
    event.preventDefault();
    this.onMove("key");
    return true;
  }

  #choose(slot) {
    clearTimeout(this.timer);
    const { first, last } = this.range;
    const chosen = Math.max(first, Math.min(last, slot));
    if (!last || chosen === this.chosen) return;
    this.chosen = chosen;
    this.onMove("pointer");
  }
}
