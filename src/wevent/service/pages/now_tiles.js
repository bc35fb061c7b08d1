// The four facts at the top of the live page.

import { find, make, say } from "./dom.js";
import { every, moment, outcome, span, whole } from "./words.js";

/** The latest release, and how many of the slots shown were measured. */
export function tellLatest({ store, clock, slot, range }) {
  const row = store.at(slot);
  if (!row) {
    say(find("latest"), "none yet");
    say(find("latest-note"), "Nothing has been released so far.");
    return;
  }
  const from = moment(clock.start(slot), { seconds: clock.fine });
  say(find("latest"), clock.fine ? from : clock.span(slot).replace(" to ", "–"));
  const note = find("latest-note");
  const text = `slot ${whole(slot)}, ${outcome(row.outcome, row.measured)}`;
  if (note.textContent !== text) note.replaceChildren(make("span", { class: `mark ${row.empty ? "none" : row.outcome}` }), text);
  let known = 0;
  let fresh = 0;
  for (let at = range.first; at <= range.last; at += 1) {
    const { outcome: word } = store.at(at) ?? {};
    known += word !== undefined;
    fresh += word === "fresh";
  }
  say(find("fresh"), `${whole(fresh)} of ${whole(known)}`);
  say(find("fresh-note"), `slots of the last ${span(known * clock.seconds)}; the rest follows from them`);
}

/** How long until the next release is due. */
export function tellNext({ about, clock, slot, now }) {
  if (about.next_due === null) {
    say(find("next"), "none");
    say(find("next-note"), "publishing has ended");
    return Infinity;
  }
  const due = new Date(clock.start(slot + 2).getTime() + about.due_s * 1000);
  const seconds = (due - now) / 1000;
  say(find("next"), seconds > 0 ? `in ${short(Math.ceil(seconds))}` : "any moment");
  const offset = about.due_s ? `, ${span(about.due_s)} after its slot ends` : "";
  say(find("next-note"), `at ${moment(due, { seconds: true })}${offset}; ${every(clock.seconds)}`);
  return seconds;
}

/** Number of registered users. */
export function tellPeople({ levels }) {
  say(find("people"), whole(levels.users));
  say(find("people-note"), "registered, each with the privacy they chose");
}

function short(seconds) {
  if (seconds < 100) return `${seconds} s`;
  if (seconds < 6000) return `${Math.round(seconds / 60)} min`;
  return `${Math.round(seconds / 3600)} h`;
}
