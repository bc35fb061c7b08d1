// A person's choice: picking, reading what it means, making it, leaving, erasing.

import { askJson, KeptText } from "./api.js";
import { find, make, say, show } from "./dom.js";
import { save } from "./download.js";
import { heldWords, leftWords, oddsWords, tellAnyone, tellCost, tellPause, tellPromise, tellSame, tellWhen } from "./level_words.js";
import { SlotClock, span } from "./words.js";

const FORESEEN_MS = 30_000; // what is foreseen grows old with the slots
const PAUSE = new KeptText("pause");

export class ChoosePage {
  /** @param {{about: Object, levels: Object, token: ?string, held: ?Object, link: {value: ?string}}} facts `held`: null for who is not registered. */
  constructor(facts) {
    Object.assign(this, facts);
    this.clock = new SlotClock(this.about.slot_origin, this.about.slot_length_s);
    this.rows = this.levels.rows.filter((row) => row.level);
    this.had = false; // whether anything is held about the person
    this.queued = false; // whether something of it takes effect at the next slot
    this.left = 0; // the first slot after everything that was counted, as far as it is kept
    this.asked = 0; // which dry run is the latest
  }

  open() {
    const named = this.about.stream !== "default" ? `the statistics of ${this.about.stream}` : "these statistics";
    say(find("lead"), `You decide how much ${named} may ever say about you.`);
    say(find("version"), `wevent ${this.about.version}`);
    this.#options();
    show(find("choice"));
    show(find("act-part"), Boolean(this.token));
    find("choice").addEventListener("change", (event) => this.#picked(event.target));
    find("choice").addEventListener("submit", (event) => {
      event.preventDefault();
      this.#choose();
    });
    find("pause").addEventListener("click", () => this.#pause());
    find("leave").addEventListener("click", () => this.#leave());
    find("erase").addEventListener("click", () => this.#erase());
    find("export").addEventListener("click", () => this.#export());
    find("end-link").addEventListener("click", () => this.#endLink());
    if (this.held) PAUSE.value = null;
    this.#preselect();
    if (this.token) {
      show(find("held"));
      this.#tellHeld();
      this.#memberships();
      const pause = Math.max(3, Math.min(30, this.clock.seconds));
      setInterval(() => document.hidden || this.#look(), pause * 1000);
    }
    this.#mean();
  }

  /** The row that is picked, or undefined. */
  get row() {
    const ready = this.#checked("ready");
    if (ready) return this.rows.find((row) => row.level === ready);
    const [privacy, window] = [this.#checked("privacy"), this.#checked("window")];
    return this.rows.find((row) => row.level === `${privacy}/${window}`);
  }

  /** The level that was chosen with a pause, and the first slot of it; null without a pause. */
  get pause() {
    const { level, slot } = JSON.parse(PAUSE.value ?? "{}");
    const row = this.rows.find((other) => other.level === level);
    return row && !this.held ? { level, slot: Math.max(slot, this.left ? this.left + row.window - 1 : 0) } : null;
  }

  #checked(name) {
    return document.querySelector(`input[name="${name}"]:checked`)?.value;
  }

  #options() {
    const { privacy, windows } = this.levels;
    const pairs = new Set(privacy.flatMap((word) => windows.map((other) => `${word}/${other}`)));
    this.ready = this.rows.filter((row) => !pairs.has(row.level));
    const of = (word) => this.rows.find((row) => row.privacy === word && pairs.has(row.level));
    const wide = (word) => this.rows.find((row) => row.window_word === word && pairs.has(row.level));
    const stretch = (row) => `any ${row.span ?? span(row.window * this.clock.seconds)}`;
    find("privacy").replaceChildren(...privacy.map((word) => option("privacy", word, of(word) ? oddsWords(of(word).epsilon) : "")));
    find("windows").replaceChildren(...windows.map((word) => option("window", word, wide(word) ? stretch(wide(word)) : "")));
    find("ready").replaceChildren(...this.ready.map((row) => option("ready", row.level, `${stretch(row)}; ${oddsWords(row.epsilon)}`)));
    show(find("ready-part"), this.ready.length > 0);
  }

  /** Begin with what is held, or what was chosen with a pause. */
  #preselect() {
    const level = this.held ? this.held.requirement.level : this.pause?.level;
    const row = this.rows.find((other) => other.level === level);
    if (row) this.#check(row);
  }

  #check(row) {
    const ready = this.ready.includes(row);
    const pair = this.rows.find((other) => other.privacy && other.window === row.window && other.epsilon === row.epsilon);
    this.#tick("ready", ready ? row.level : null);
    this.#tick("privacy", pair?.privacy);
    this.#tick("window", pair?.window_word);
  }

  #tick(name, word) {
    for (const input of document.querySelectorAll(`input[name="${name}"]`)) input.checked = input.value === word;
  }

  #picked(input) {
    if (input.name === "ready") this.#check(this.row);
    else this.#tick("ready", null);
    say(find("done"), "");
    this.#mean();
  }

  /** Say what the picked level means. */
  #mean() {
    const { row } = this;
    show(find("meaning"), Boolean(row));
    show(find("when-part"), Boolean(row));
    show(find("nothing-chosen"), !row);
    say(find("meaning-title"), row ? `What ${row.level} means` : "What it means");
    this.meant = performance.now();
    if (!row) return;
    tellPromise(row, this.about);
    tellCost(row, this.rows);
    const same = this.held && this.held.requirement.level === row.level;
    show(find("pause-part"), false);
    if (same) tellSame(this.held, this.clock);
    else if (this.token) this.#foresee(row);
    else tellAnyone();
    const button = find("act");
    say(button, same ? "This is your choice now" : `Choose ${row.level}`);
    button.setAttribute("aria-disabled", String(Boolean(same)));
  }

  /** Ask the server what it would mean now, without storing anything. */
  async #foresee(row) {
    this.asked += 1;
    const mine = this.asked;
    try {
      const answer = await this.#send("PUT", "/v1/me/requirement?dry_run=true", { level: row.level });
      if (mine !== this.asked) return;
      tellWhen(answer, this.clock, this.pause?.level === row.level ? this.pause.slot : null);
      const changes = this.held && (this.held.requirement.window !== row.window || this.held.requirement.epsilon !== row.epsilon);
      if (changes && row.window > 1) tellPause(answer, this.clock);
      show(find("pause-part"), Boolean(changes && row.window > 1));
    } catch (problem) {
      if (mine !== this.asked) return;
      find("times").replaceChildren();
      say(find("when"), problem.message);
    }
  }

  async #choose() {
    const { row } = this;
    if (!row || find("act").getAttribute("aria-disabled") === "true") return;
    await this.#trying(async () => {
      await this.#send("PUT", "/v1/me/requirement", { level: row.level });
      this.asked += 1; // what was foreseen before is old
      PAUSE.value = null;
      await this.#look();
      say(find("done"), `Saved: ${row.level}.`);
      say(find("left"), "");
    });
  }

  async #pause() {
    const { row } = this;
    await this.#trying(async () => {
      const { in_force_from: first } = await this.#send("DELETE", "/v1/me/requirement");
      const slot = first + row.window - 1;
      PAUSE.value = JSON.stringify({ level: row.level, slot });
      await this.#look();
      say(find("done"), `Paused from ${this.clock.when(first)} on. Choose ${row.level} from ${this.clock.when(slot)} on.`);
      find("act").focus();
    });
  }

  async #leave() {
    await this.#trying(async () => {
      const answer = await this.#send("DELETE", "/v1/me/requirement");
      PAUSE.value = null;
      say(find("left"), `You have left, ${this.#force(answer)}. ${this.#kept(answer, "Your id and what you held are")}`);
      say(find("done"), "");
      await this.#look();
      find("left").focus();
    });
  }

  async #erase() {
    await this.#trying(async () => {
      const answer = await this.#send("DELETE", "/v1/me");
      this.link.value = PAUSE.value = null;
      this.#end(
        "Your id is erased",
        `You have left, ${this.#force(answer)}. ${this.#kept(answer, "A digest of your id is")}`,
        "Numbers that were published before stay, within the promise you had. This link has ended; you may close the page.",
      );
    });
  }

  async #endLink() {
    await this.#trying(async () => {
      await this.#send("DELETE", "/v1/me/link");
      this.link.value = PAUSE.value = null;
      this.#end("This link has ended", "Nobody can use it any more, you included. Your choice stays as it is. You may close the page.");
    });
  }

  #force(answer) {
    const slot = answer?.in_force_from;
    return slot === null || slot === undefined ? "from the next slot on" : `from ${this.clock.when(slot)} on`;
  }

  #kept(answer, what) {
    const until = answer?.kept_until;
    return until ? `${what} kept until ${this.clock.when(until + 1)}, when your choice has expired, and then deleted.` : `Nothing needs to be kept.`;
  }

  /** The page is over: a last word instead of it. */
  #end(heading, ...sentences) {
    this.token = null;
    const title = make("h1", { text: heading, tabindex: "-1" });
    find("main").replaceChildren(make("section", { class: "final" }, title, ...sentences.map((text) => make("p", { text }))));
    title.focus();
  }

  async #export() {
    await this.#trying(async () => {
      const all = await this.#send("GET", "/v1/me");
      save(new Blob([JSON.stringify(all, null, 2)], { type: "application/json" }), "held-about-me.json");
    });
  }

  /** What is held now, looked up again. */
  async #look() {
    if (!this.token) return;
    const before = JSON.stringify(this.held);
    try {
      this.held = await this.#send("GET", "/v1/me/requirement");
    } catch (problem) {
      if (problem.status !== 404) return;
      this.held = null;
    }
    this.#tellHeld();
    const changed = JSON.stringify(this.held) !== before;
    if (changed || this.queued) this.#memberships();
    if (changed || performance.now() - this.meant > FORESEEN_MS) this.#mean();
  }

  #tellHeld() {
    const now = find("now");
    const lines = this.held ? heldWords(this.held, this.clock) : leftWords(this.pause, this.clock);
    const text = [lines.name, lines.promise, lines.now];
    if (now.dataset.said !== text.join("\n")) {
      now.dataset.said = text.join("\n");
      const label = make("span", { class: "soft small", text: "Your choice now" });
      now.replaceChildren(label, make("strong", { text: text[0] }), make("p", { text: text[1] }), make("p", { text: text[2] }));
    }
    show(now);
    this.#offerLeaving();
  }

  /** Who holds nothing and never did has nothing to leave. */
  #offerLeaving() {
    const left = find("left").textContent !== "";
    show(find("leaving"), Boolean(this.held) || this.had || left);
    show(find("leave-part"), Boolean(this.held) || left);
    show(find("leave"), Boolean(this.held));
    show(find("export"), this.had);
  }

  /** What is held, as a table: what lasts, what is over and kept for a while, what was asked for. */
  async #memberships() {
    let all = { memberships: [], earlier: [], queued: [] };
    try {
      all = await this.#send("GET", "/v1/me");
    } catch (problem) {
      if (problem.status !== 404) return;
    }
    this.had = all.memberships.length + all.earlier.length + all.queued.length > 0;
    this.queued = all.queued.length > 0;
    this.left = Math.max(0, ...all.earlier.map((one) => one.last + 1));
    this.#offerLeaving();
    const at = (slot) => this.clock.when(slot);
    const rows = [
      ...all.memberships.map((one) => this.#heldRow(one, `held from ${at(one.first)} on`)),
      ...all.earlier.map((one) => this.#heldRow(one, `over since ${at(one.last + 1)}; kept until ${at(one.kept_until + 1)}`)),
      ...all.queued.map((one) => this.#heldRow(one.requirement, { set: "asked for", remove: "leaving", erase: "erasing" }[one.action])),
    ];
    const none = make("tr", {}, make("td", { class: "text", colspan: "3", text: "Nothing." }));
    find("memberships").replaceChildren(...(rows.length ? rows : [none]));
  }

  #heldRow(held, state) {
    const words = held ? (held.level ?? `window ${held.window}, epsilon ${held.epsilon}`) : "–";
    const stretch = held ? `any ${held.span ?? span(held.window * this.clock.seconds)}` : "–";
    return make(
      "tr",
      {},
      make("th", { scope: "row", text: words }),
      make("td", { class: "text", text: stretch }),
      make("td", { class: "text", text: state }),
    );
  }

  #send(method, path, body) {
    return askJson(path, { method, token: this.token, body });
  }

  /** Do something, and say what went wrong if it did. */
  async #trying(work) {
    find("alert").replaceChildren();
    try {
      await work();
    } catch (problem) {
      if (problem.status === undefined) throw problem;
      if (problem.status === 401) {
        this.link.value = null;
        this.#end("This link no longer works", "It has expired or was ended, so nothing was changed. Ask whoever gave it to you for a new one.");
        return;
      }
      find("alert").replaceChildren(make("div", { class: "notice warn" }, make("p", { text: problem.message })));
      find("alert").scrollIntoView({ block: "nearest" });
    }
  }
}

function option(name, word, says) {
  const input = make("input", { type: "radio", name, value: word });
  return make("label", { class: "option" }, input, make("span", { class: "word", text: word }), make("span", { class: "says", text: says }));
}
