// What a level means, in plain words: for the person, for the statistics, and from when on.

import { find, make, say } from "./dom.js";
import { atMost, ceiling, moment, number, span, whole } from "./words.js";

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

/** From when on a choice is in force, and from when on the person counts. */
export function tellWhen(answer, clock, { joins }) {
  const force = answer.in_force_from;
  const counted = answer.counted_from;
  const start = force === null || force === undefined ? "the next slot" : clock.when(force);
  const items = [make("li", { class: answer.waits ? "pause" : "counts" }, make("strong", { text: `From ${start}` }))];
  if (answer.waits) {
    const pause = counted && force ? ` for ${span((counted - force) * clock.seconds)}` : "";
    items[0].append(`your new promise is in force. You are not counted${pause}.`);
    items.push(
      make(
        "li",
        { class: "counts" },
        make("strong", { text: counted ? `From ${clock.when(counted)}` : "After the pause" }),
        "you are counted, under the new promise.",
      ),
    );
    say(find("when"), "A change needs a pause, so that your old promise and your new one never cover the same time. In the pause nothing you do goes into the numbers.");
  } else {
    items[0].append(joins ? "your promise is in force and you are counted." : "it goes on as before: you are counted without a pause.");
    say(find("when"), joins ? "At the next slot, without a pause." : "This is what you hold already, so nothing pauses.");
  }
  find("times").replaceChildren(...items);
  for (const note of answer.notes ?? []) find("times").append(make("li", { text: note }));
}

/** From when, for what is held already. */
export function tellSame(held, clock) {
  const items = [];
  if (held.waits && held.counted_from) {
    const text = make("strong", { text: `From ${clock.when(held.counted_from)}` });
    items.push(make("li", { class: "counts" }, text, "you are counted under this promise. Until then nothing you do goes into the numbers."));
  }
  say(find("when"), held.waits ? "This is your choice. The pause after the change goes on." : "This is your choice, and you are counted under it.");
  find("times").replaceChildren(...items);
}

/** From when, for somebody who has no link here. */
export function tellAnyone() {
  find("times").replaceChildren();
  say(
    find("when"),
    "From the next slot on. Who changes from another choice is not counted for a while, so that the two promises never cover the same time.",
  );
}

/** What a person holds now, in three sentences. */
export function heldWords(held, clock) {
  const { requirement } = held;
  const name = requirement.level ?? `a window of ${whole(requirement.window)} slots, epsilon ${requirement.epsilon}`;
  const stretch = requirement.span ?? span(requirement.window * clock.seconds);
  let now = "You are counted under this promise.";
  if (held.queued) now = "It takes effect at the next slot.";
  if (held.waits) {
    const left = held.counted_from ? clock.start(held.counted_from) - Date.now() : 0;
    now = held.counted_from
      ? `In the pause: you are counted from ${moment(clock.start(held.counted_from), { seconds: clock.fine })} on (slot ${whole(held.counted_from)}${left > 0 ? `, in ${span(left / 1000)}` : ""}). Until then nothing you do goes into the numbers.`
      : "In the pause: nothing you do goes into the numbers until it is over.";
  }
  return { name, promise: `It protects whatever you do within any ${stretch}.`, now };
}
