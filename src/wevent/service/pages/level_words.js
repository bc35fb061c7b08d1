// What a level means, in plain words: for the person, for the statistics, and from when on.

import { find, make, say } from "./dom.js";
import { atMost, ceiling, number, span, whole } from "./words.js";

/** "50 : 50 becomes at most 53 : 47". */
export function oddsWords(epsilon) {
  const most = ceiling(atMost(epsilon));
  return `50 : 50 becomes at most ${most} : ${number(100 - most)}`;
}

/** What is promised. */
export function tellPromise(row, about) {
  const stretch = row.span ?? span(row.window * about.slot_length_s);
  const most = atMost(row.epsilon);
  const factor = number(row.odds ?? Math.exp(row.epsilon));
  say(find("promise"), `Whatever you do within any ${stretch}, all that is ever published says about it no more than this:`);
  const range = find("odds-range");
  range.style.left = `${100 - most}%`;
  range.style.right = `${100 - most}%`;
  say(
    find("odds"),
    `Somebody who would bet even odds that you were there gets to ${ceiling(most)} % at most, and to ${number(100 - ceiling(most))} % at least, however much they know about everybody else. In other words: the odds change by a factor of at most ${factor} (epsilon ${row.epsilon}).`,
  );
  say(
    find("where"),
    about.neighbours === "replace"
      ? "The same holds for where you were."
      : `That is about whether you were there. About where, for somebody who knows that you were at one of two places, it is ${ceiling(atMost(2 * row.epsilon))} % at most.`,
  );
}

/** What the level costs the numbers, and where it lies among all that are offered. */
export function tellCost(row, rows) {
  const offered = rows.filter((other) => other.level && other.noise > 0);
  if (!(row.noise > 0)) {
    say(find("cost"), "How much noise it takes cannot be said.");
    find("noise").replaceChildren();
    return;
  }
  const times = row.noise < 10 ? number(Number(row.noise.toPrecision(2))) : whole(Number(row.noise.toPrecision(2)));
  say(
    find("cost"),
    row.noise < 1.05
      ? "The least noise of all levels. You are one of many, so your choice alone changes the published numbers little."
      : `If everybody chose this, the published numbers would be about ${times} times as uncertain as with the mildest level. You are one of many, so your choice alone changes little.`,
  );
  const place = placing(offered.map((other) => other.noise));
  const dots = offered.map((other) => dot(place(other.noise), false));
  find("noise").replaceChildren(...dots, dot(place(row.noise), true));
}

// On a logarithmic line: twice the noise is the same step everywhere.
function placing(values) {
  const [least, most] = [Math.log(Math.min(...values)), Math.log(Math.max(...values))];
  return (value) => (most > least ? ((Math.log(value) - least) / (most - least)) * 100 : 0);
}

function dot(place, own) {
  const made = make("span", { class: own ? "own" : null });
  made.style.left = `${Math.max(0, Math.min(100, place))}%`;
  return made;
}

/** The length of time that a requirement protects. */
const stretch = ({ requirement }, clock) => requirement.span ?? span(requirement.window * clock.seconds);

/** From when on a choice protects, and until when an earlier one does so as well. */
function tellTimes(choice, clock) {
  const { epsilon } = choice.requirement;
  const first = make("strong", { text: `From ${clock.when(choice.in_force_from)} on` });
  const items = [make("li", { class: "counts" }, first, `any ${stretch(choice, clock)} lose at most ${epsilon} (epsilon).`)];
  if (choice.earlier_until) {
    const last = make("strong", { text: `Until ${clock.when(choice.earlier_until)}` });
    items.push(make("li", {}, last, "your earlier choice protects you as well."));
  }
  find("times").replaceChildren(...items);
}

/** The effect of a choice; `paused`: first slot in which a pause has its effect, or null. */
export function tellWhen(answer, clock, paused) {
  const kept = `no period of ${stretch(answer, clock)} contains anything that was counted under your earlier choice.`;
  let text = answer.earlier_until ? "Active from the next slot. For a while your earlier choice protects you as well." : "Active from the next slot.";
  if (paused) text = answer.in_force_from < paused ? `You have paused. If you wait until ${clock.when(paused)}, ${kept}` : `The pause is over: ${kept}`;
  say(find("when"), text);
  tellTimes(answer, clock);
  for (const note of answer.notes ?? []) find("times").append(make("li", { text: note }));
}

/** The same for what is held already. */
export function tellSame(held, clock) {
  say(find("when"), "This is your choice.");
  tellTimes(held, clock);
}

/** The same for a reader without a link. */
export function tellAnyone() {
  find("times").replaceChildren();
  say(find("when"), "A choice takes effect at the next slot. An earlier choice protects you as well for the length of its own time span.");
}

/** What a person holds now, in three sentences. */
export function heldWords(held, clock) {
  const { requirement } = held;
  const name = requirement.level ?? `a window of ${whole(requirement.window)} slots, epsilon ${requirement.epsilon}`;
  let now = held.queued ? `It takes effect at ${clock.when(held.in_force_from)}.` : "You are counted under this promise.";
  if (held.earlier_until) now += ` Until ${clock.when(held.earlier_until)} your earlier choice protects you as well.`;
  return { name, promise: `It protects whatever you do within any ${stretch(held, clock)}.`, now };
}

/** What a person reads who holds nothing; `pause`: the level and the slot of a pause, or null. */
export function leftWords(pause, clock) {
  const promise = "Nothing you do is counted.";
  if (!pause) return { name: "Not in the statistics", promise, now: "Choose below if you want to take part." };
  return { name: "Paused", promise, now: `Choose ${pause.level} from ${clock.when(pause.slot)} on. Note the time: this page forgets it when you close the tab.` };
}

/** The offer to pause before a change. */
export function tellPause(answer, clock) {
  const { window, level } = answer.requirement;
  say(
    find("pause-words"),
    `Without a pause, a period of ${stretch(answer, clock)} across the change contains what was counted under both choices. With a pause, you leave now and choose ${level} from ${clock.when(answer.in_force_from + window - 1)} on. You are not counted in between.`,
  );
}
