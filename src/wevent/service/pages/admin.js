// The administrator's page: who holds which level, whether the service is well, what is left.

import { askJson, KeptText, Problem } from "./api.js";
import { askForToken } from "./asking.js";
import { budgetRows, namesOf } from "./budget_table.js";
import { find, make, say, show } from "./dom.js";
import { every, moment, people, SlotClock, span, whole, zone } from "./words.js";

const TOKEN = new KeptText("admin");
const WORDS = {
  heading: "Administration",
  why: "This page needs a token of the role “admin”: wevent token create --role admin.",
  label: "Admin token",
};

const READY = {
  ready: "Well",
  starting: "Starting",
  behind: "Behind",
  ahead: "Ahead of the clock",
  away: "The database does not answer",
  unwritable: "Batches cannot be stored",
  ended: "Publishing has ended",
  failed: "Publishing failed",
};

/** How publishing is doing: /readyz has a word for it, whatever its status. */
async function condition() {
  const response = await fetch("/readyz", { cache: "no-store", credentials: "omit" });
  return (await response.json()).status;
}

async function refresh() {
  const read = (path) => askJson(path, { token: TOKEN.value });
  const overview = await read("/v1/admin/overview");
  const { levels } = overview;
  const [about, ledger, ready] = await Promise.all([read("/v1/about"), read("/v1/ledger"), condition()]);
  const clock = new SlotClock(about.slot_origin, about.slot_length_s);
  tellState({ overview, about, clock, ready });
  tellLevels(overview, about);
  find("ledger").replaceChildren(...budgetRows(ledger, namesOf(levels), clock.seconds));
  say(find("ledger-note"), ledger.slot ? `what the next slot may cost each class at most, after slot ${whole(ledger.slot)}` : "");
  tellFacts({ overview, about, clock });
  say(find("updated"), `Looked up at ${moment(new Date(), { seconds: true })}.`);
  return clock.seconds;
}

function tellState({ overview, about, clock, ready }) {
  say(find("lead"), `${about.stream}: ${about.mechanism}, a release ${every(clock.seconds)}, ${whole(about.cells.length)} cells.`);
  say(find("ready"), READY[ready] ?? ready);
  find("ready").classList.toggle("bad", ready !== "ready");
  const since = overview.writer_since;
  say(find("ready-note"), since ? `${overview.role === "standby" ? `${overview.writer_host} is publishing` : "publishing"} since ${moment(new Date(since))}` : "nobody publishes");
  const behind = overview.slots_behind;
  say(find("behind"), whole(behind));
  find("behind").classList.toggle("bad", ready !== "ready" && behind > 0);
  say(find("behind-note"), behind > 0 ? "late ones go out at the next due moments" : behind < 0 ? "ahead of the clock" : "up to date");
  const { committed } = about;
  say(find("slot"), committed ? whole(committed) : "none");
  const next = about.next_due ? `next release at ${moment(new Date(about.next_due), { seconds: true })}` : "";
  say(find("slot-note"), committed ? `${clock.span(committed)}; ${next}` : next);
  const rate = overview.fresh_rate;
  say(find("fresh"), rate === null || rate === undefined ? "–" : `${(rate * 100).toFixed(1)} %`);
  say(find("fresh-note"), `of the last ${whole(overview.recent_slots)} slots`);
  const notes = (overview.unsafe ?? []).map((text) => make("p", { text }));
  const box = make("div", { class: "notice warn" }, make("p", {}, make("strong", { text: "What weakens the promise" })), ...notes);
  const told = notes.map((note) => note.textContent).join("\n");
  if (find("trouble").dataset.told !== told) find("trouble").replaceChildren(...(notes.length ? [box] : []));
  find("trouble").dataset.told = told;
}

function tellLevels({ levels, members, pending_changes: queued }, about) {
  const most = Math.max(1, ...levels.rows.map((row) => row.users));
  const rows = levels.rows.map((row) => {
    const bar = make("span", { class: "holders", "aria-hidden": "true" });
    bar.style.width = `${(row.users / most) * 100}%`;
    return make(
      "tr",
      {},
      make(
        "th",
        { scope: "row" },
        make("span", { class: "class-name", text: row.level ?? "In numbers" }),
        make("span", { class: "soft small class-span", text: `any ${row.span ?? span(row.window * about.slot_length_s)}` }),
      ),
      make("td", { text: String(row.epsilon) }),
      make("td", { text: whole(row.users) }),
      make("td", { class: "text wide" }, bar),
    );
  });
  find("levels").replaceChildren(...rows);
  const parts = [`${people(members)} registered`];
  if (queued) parts.push(`${queued === 1 ? "1 change takes" : `${whole(queued)} changes take`} effect at the next slot`);
  say(find("levels-note"), parts.join(", "));
}

function tellFacts({ overview, about, clock }) {
  const facts = {
    Stream: about.stream,
    Mechanism: about.mechanism,
    Slot: `${span(clock.seconds)}, since ${moment(new Date(about.slot_origin))}`,
    "Closes and goes out": `${span(about.grace_s) || "0 seconds"} and ${span(about.due_s) || "0 seconds"} after a slot's end`,
    "Slots kept": about.committed ? `${whole(about.first)} to ${whole(about.committed)}` : "none yet",
    "Neighbouring streams": about.neighbours === "replace" ? "replace: a record is any other" : "add_remove: there, or not there",
    "Cells per person and slot": whole(about.max_cells_per_user),
    Readers: about.public ? "everybody: releases are public" : "tokens of the role read",
    Versions: Object.entries(overview.versions ?? { wevent: about.version }).map((pair) => pair.join(" ")).join(", "),
  };
  find("facts").replaceChildren(
    ...Object.entries(facts).map(([name, text]) => make("div", {}, make("dt", { text: name }), make("dd", { text }))),
  );
}

/** Ask for a token until one opens the page; it is looked up again and again from then on. */
async function look() {
  let wrong;
  for (;;) {
    TOKEN.value ??= await askForToken(find("gate"), { ...WORDS, wrong });
    try {
      return await refresh();
    } catch (problem) {
      if (problem.status !== 401 && problem.status !== 403) throw problem;
      wrong = problem.status === 403 ? "This token is valid, but not of the role “admin”." : "This token is unknown, has expired or was revoked.";
      TOKEN.value = null;
      show(find("page"), false);
      show(find("forget"), false);
    }
  }
}

async function begin() {
  say(find("zone"), zone());
  find("forget").addEventListener("click", () => {
    TOKEN.value = null;
    window.location.reload();
  });
  for (let pause = 5; ; ) {
    try {
      if (!document.hidden) {
        pause = Math.max(2, Math.min(30, await look()));
        show(find("page"));
        show(find("forget"));
      }
    } catch (problem) {
      if (!(problem instanceof Problem) && !(problem instanceof TypeError)) throw problem;
      show(find("page"));
      say(find("ready"), problem.status ? "In trouble" : "No answer");
      find("ready").classList.add("bad");
      say(find("ready-note"), problem.status ? problem.message : "The server does not answer.");
    }
    await new Promise((resolve) => setTimeout(resolve, pause * 1000));
  }
}

begin();
