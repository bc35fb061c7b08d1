// What is on the live page, and what happens when a release comes in.

import { tellAbout } from "./about_words.js";
import { budgetRows, namesOf } from "./budget_table.js";
import { CellList, MOST_CHOSEN } from "./cell_list.js";
import { Cursor } from "./cursor.js";
import { calmly, find, make, say, show } from "./dom.js";
import { offerDownloads } from "./download.js";
import { Drawing } from "./drawing.js";
import { Heatmap } from "./heatmap.js";
import { colourOf, shownIn } from "./looks.js";
import { tellLatest, tellNext, tellPeople } from "./now_tiles.js";
import { fillTable } from "./number_table.js";
import { Panel } from "./panel.js";
import { loadPlotly, onThemeChange, theme } from "./plotting.js";
import { ReleaseStream } from "./release_stream.js";
import { Releases } from "./store.js";
import { number, outcome, OUTCOMES, SlotClock, span, whole } from "./words.js";

const RANGES = [60, 180, 500]; // slots
const ANNOUNCE_MS = 30_000;
const LATE_S = 3;

export class LivePage {
  /** @param {{about: Object, ahead: number, token: ?string, read: function}} facts `ahead`: of the server's clock, in milliseconds. */
  constructor(facts) {
    Object.assign(this, facts);
    this.labels = this.about.cells.map(String);
    this.clock = new SlotClock(this.about.slot_origin, this.about.slot_length_s);
    this.store = new Releases(this.labels.length);
    this.cursor = new Cursor((by) => this.#pointed(by));
    this.panels = new Map();
    this.drawing = new Drawing();
    this.shownSlots = RANGES[1];
    this.paused = false;
    this.announced = -ANNOUNCE_MS;
    this.redraw = calmly(() => this.#draw(), 250);
    this.refresh = calmly(() => this.#figures(), Math.max(2000, Math.min(15_000, this.about.slot_length_s * 1000)));
  }

  /** Fetch what there is, and fill the page. */
  async open() {
    this.charts = loadPlotly();
    this.charts.catch(() => null); // run() says so
    await this.#load();
    tellAbout(this.about, this.clock);
    this.#controls();
    await this.#figures();
    this.cells.begin(window.innerWidth < 640 ? 3 : 4);
  }

  /** Follow the stream until the page is left. */
  run() {
    this.#draw();
    this.charts.then(
      (Plotly) => this.drawing.begin(Plotly),
      () => {
        say(find("said"), "The charts cannot be drawn here; the table below has all numbers.");
        find("table-part").open = true;
      },
    );
    setInterval(() => this.#tick(), 1000);
    this.stream = new ReleaseStream({
      token: this.token,
      after: this.store.last,
      onRelease: (release) => this.#take(release),
      onState: (word) => this.#state(word),
      onReconnect: () => this.#check(),
    });
    this.stream.run();
  }

  /** The releases that are kept, as many as this page holds. */
  async #load() {
    const { committed, first } = this.about;
    let from = Math.max(first || 1, committed - this.store.capacity + 1);
    while (committed && from) {
      const { releases, next } = await this.read(`/v1/releases?from=${from}&to=${committed}&limit=${this.store.capacity}`);
      for (const release of releases) this.store.add(release);
      from = next;
    }
  }

  /** After a break: whether it is still the same stream. */
  async #check() {
    const about = await this.read("/v1/about");
    const same = ["stream", "slot_origin", "slot_length_s"].every((key) => about[key] === this.about[key]);
    if (!same || about.cells.join("\n") !== this.about.cells.join("\n") || about.committed < this.store.last) {
      window.location.reload();
      return false;
    }
    this.about = about;
    this.stream.after = Math.max(this.stream.after, about.committed - this.store.capacity); // older ones have no room here
    return true;
  }

  #take(release) {
    const newer = this.store.add(release);
    if (!newer || this.paused) return;
    this.#announce(release);
    this.redraw();
    this.refresh();
  }

  #announce({ slot, outcome: word, measured }) {
    if (performance.now() - this.announced < ANNOUNCE_MS) return;
    this.announced = performance.now();
    say(find("announcer"), `Slot ${whole(slot)}, ${this.clock.span(slot)}, was released: ${outcome(word, measured)}.`);
  }

  #controls() {
    this.cells = new CellList({
      list: find("cell-list"),
      search: find("search"),
      note: find("cell-note"),
      labels: this.labels,
      store: this.store,
      onChange: (chosen) => this.#choose(chosen),
    });
    this.map = new Heatmap({
      chart: find("heat"),
      plot: find("heat-plot"),
      said: find("said"),
      box: find("heat-box"),
      labels: this.labels,
      store: this.store,
      clock: this.clock,
      cursor: this.cursor,
      onPick: (cell) => this.cells.toggle(cell),
      onScale: (low, high) => {
        say(find("scale-low"), whole(low));
        say(find("scale-high"), `${whole(high)} people`);
      },
    });
    this.drawing.add(find("heat"), this.map);
    const wide = window.matchMedia("(min-width: 60.01rem)");
    const follow = () => (find("chooser").open = wide.matches);
    wide.addEventListener("change", follow);
    follow();
    this.#rangeButtons();
    show(find("pause"));
    find("pause").addEventListener("click", () => this.#pause());
    find("table-part").addEventListener("toggle", () => this.redraw());
    offerDownloads(() => ({
      token: this.token,
      stream: this.about.stream,
      shown: this.cursor.range,
      kept: { first: Math.max(this.about.first || 1, this.store.last - 9999), last: this.store.last },
      chosen: this.cells.chosen.map((cell) => this.labels[cell]),
    }));
    onThemeChange(() => this.redraw());
    new ResizeObserver(() => this.redraw()).observe(find("page"));
    document.addEventListener("visibilitychange", () => this.redraw());
  }

  #rangeButtons() {
    const held = this.store.capacity;
    const ranges = RANGES.filter((count, at) => count <= held || at === 0).map((count) => Math.min(count, held));
    this.shownSlots = ranges[Math.min(1, ranges.length - 1)];
    const buttons = ranges.map((count) =>
      make("button", {
        type: "button",
        text: span(count * this.clock.seconds),
        "aria-pressed": String(count === this.shownSlots),
        click: (event) => {
          this.shownSlots = count;
          for (const button of buttons) button.setAttribute("aria-pressed", String(button === event.currentTarget));
          this.cursor.chosen = null;
          this.redraw();
        },
      }),
    );
    find("ranges").replaceChildren(...buttons);
  }

  #choose(chosen) {
    for (const [cell, panel] of this.panels) {
      if (chosen.includes(cell)) continue;
      this.drawing.remove(panel.slider);
      panel.erase(this.drawing.Plotly);
      panel.element.remove();
      this.panels.delete(cell);
    }
    for (const cell of chosen) {
      if (this.panels.has(cell)) continue;
      const { labels, store, clock, cursor } = this;
      const onClose = (closed) => {
        this.cells.toggle(closed);
        find("cells-title").focus();
      };
      const panel = new Panel({ cell, label: labels[cell], store, clock, cursor, onClose });
      this.panels.set(cell, panel);
      find("panels").append(panel.element);
      this.drawing.add(panel.slider, panel);
    }
    show(find("no-panels"), !chosen.length);
    say(find("chooser-title"), `Choose cells (${chosen.length} of ${Math.min(MOST_CHOSEN, this.labels.length)})`);
    this.redraw();
  }

  #draw() {
    if (document.hidden || this.paused) return;
    const { store, cursor, clock } = this;
    cursor.set(store.range(this.shownSlots));
    tellLatest({ store, clock, slot: store.last, range: cursor.range });
    document.documentElement.style.setProperty("--own", `rgb(${shownIn(colourOf(this.about.mechanism), theme().dark).join(",")})`);
    this.drawing.all();
    this.cells.update(store.last);
    this.#pointed("draw");
    this.#legend();
    if (find("table-part").open) {
      fillTable(find("numbers"), { store, clock, labels: this.labels, cells: this.cells.chosen, range: cursor.range });
    }
  }

  #pointed(by) {
    const { slot, chosen } = this.cursor;
    for (const panel of this.panels.values()) panel.tell();
    this.map.tell();
    if (by === "key") {
      for (const panel of this.panels.values()) if (panel.slider === document.activeElement) panel.speak();
      if (this.map.chart === document.activeElement) this.map.speak();
    }
    const row = this.store.at(slot);
    const told = row ? `${this.clock.span(slot)}, slot ${whole(slot)}: ${outcome(row.outcome, row.measured)}` : "";
    say(find("pointed"), chosen === null ? "" : told);
  }

  #legend() {
    const { first, last } = this.cursor.range;
    const counted = new Map(OUTCOMES.map((word) => [word, 0]));
    for (let slot = first; slot <= last; slot += 1) {
      const row = this.store.at(slot);
      if (row) counted.set(row.outcome, (counted.get(row.outcome) ?? 0) + 1);
    }
    for (const mark of document.querySelectorAll("[data-outcome]")) {
      const count = counted.get(mark.dataset.outcome);
      say(mark, `${whole(count)}:`);
      show(mark.closest("li"), count > 0);
    }
  }

  /** Ledger and levels: they change with every slot, but not so often that it must be seen at once. */
  async #figures() {
    try {
      const [ledger, levels] = await Promise.all([this.read("/v1/ledger"), this.read("/v1/levels")]);
      find("budget").replaceChildren(...budgetRows(ledger, namesOf(levels), this.clock.seconds));
      say(find("budget-note"), ledger.slot ? `after slot ${whole(ledger.slot)}, by the level that people chose` : "");
      tellPeople({ levels });
      const held = levels.rows.map((row) => row.epsilon);
      const [least, most] = [Math.min(...held), Math.max(...held)];
      if (held.length) say(find("odds-words"), ` (${number(Math.exp(least))} at ε = ${least}, ${number(Math.exp(most))} at ε = ${most})`);
    } catch {
      // the stream says what is wrong with the connection
    }
  }

  #state(word) {
    this.connection = word;
    if (this.paused && word !== "refused") return;
    find("state").dataset.state = word;
    const text = {
      connecting: "Connecting",
      live: "Live",
      waiting: "Connection lost, trying again",
      refused: "The token is no longer valid: load the page again",
    }[word];
    say(find("state-text"), text);
    if (word === "live") this.redraw();
  }

  #tick() {
    if (document.hidden) return;
    const now = Date.now() + this.ahead;
    const seconds = tellNext({ about: this.about, clock: this.clock, slot: this.store.last, now });
    const state = find("state");
    const late = -seconds > LATE_S + this.clock.seconds;
    if (!this.paused && state.dataset.state === "live" && late) {
      state.dataset.state = "late";
      say(find("state-text"), "Connected; releases are late");
      this.#lookAgain();
    } else if (state.dataset.state === "late" && !late && Number.isFinite(seconds)) this.#state("live");
  }

  /** Releases that do not come may be over. */
  async #lookAgain() {
    try {
      this.about = await this.read("/v1/about");
      if (this.about.next_due === null) say(find("state-text"), "Publishing has ended");
    } catch {
      // the stream says what is wrong with the connection
    }
  }

  #pause() {
    this.paused = !this.paused;
    find("pause").setAttribute("aria-pressed", String(this.paused));
    say(find("pause"), this.paused ? "Go on" : "Pause");
    if (this.paused) {
      find("state").dataset.state = "paused";
      say(find("state-text"), "Paused");
    } else {
      this.#state(this.connection);
      this.redraw();
      this.refresh();
    }
  }
}
