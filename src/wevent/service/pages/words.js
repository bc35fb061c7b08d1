// Numbers, times and spans as people read them: one way on every page.

const GROUPED = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const EXACT = new Intl.NumberFormat("en", { maximumSignificantDigits: 3 });
const MINUTE = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit" });
const SECOND = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });
const DAY = new Intl.DateTimeFormat("en-GB", { weekday: "short", day: "numeric", month: "short" });
const UNITS = [
  ["day", 86400],
  ["hour", 3600],
  ["minute", 60],
  ["second", 1],
];

/** A count: whole from a hundred on, three digits below, and none that mean nothing. */
export function number(value) {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  const shown = Math.abs(value) < 1 ? Math.round(value * 100) / 100 : value;
  return (Math.abs(shown) >= 100 || Number.isInteger(shown) ? GROUPED : EXACT).format(shown + 0); // no −0
}

/** A whole number. */
export const whole = (value) => GROUPED.format(value);

/** A budget: at most three places. */
export const budget = (value) => String(Number(value.toFixed(3)));

/** "1 person", "3 people". */
export const people = (value) => (value === 1 ? "1 person" : `${whole(value)} people`);

/** Value and interval in words. */
export function interval(low, high) {
  return Number.isFinite(low) && Number.isFinite(high) ? `${number(low)} to ${number(high)}` : "";
}

/** A length of time in its two largest units: "3 hours 20 minutes". */
export function span(seconds) {
  const parts = [];
  let rest = Math.round(seconds);
  if (seconds < 1) return `${EXACT.format(seconds)} seconds`;
  for (const [unit, length] of UNITS) {
    const count = Math.floor(rest / length);
    if (count && parts.length < 2) parts.push(`${count} ${unit}${count === 1 ? "" : "s"}`);
    rest -= count * length;
  }
  return parts.join(" ");
}

/** "every minute", "every 5 minutes". */
export function every(seconds) {
  const text = span(seconds);
  return `every ${text.startsWith("1 ") && !text.slice(2).includes(" ") ? text.slice(2) : text}`;
}

/** A time of day, with the day unless that is today. */
export function moment(date, { seconds = false, now = new Date() } = {}) {
  const text = (seconds ? SECOND : MINUTE).format(date);
  return DAY.format(date) === DAY.format(now) ? text : `${DAY.format(date)}, ${text}`;
}

/** The day of a date. */
export const day = (date) => DAY.format(date);

/** The reader's time zone. */
export function zone() {
  const name = Intl.DateTimeFormat().resolvedOptions().timeZone || "local time";
  return name.replaceAll("_", " ");
}

/** Slots and times: slot n begins n − 1 lengths after the origin. */
export class SlotClock {
  constructor(origin, seconds) {
    this.origin = Date.parse(origin);
    this.seconds = seconds;
  }

  start(slot) {
    return new Date(this.origin + (slot - 1) * this.seconds * 1000);
  }

  /** Whether times need seconds to be told apart. */
  get fine() {
    return this.seconds % 60 !== 0;
  }

  /** "12:05 to 12:10". */
  span(slot) {
    const seconds = this.fine;
    const to = (seconds ? SECOND : MINUTE).format(this.start(slot + 1));
    return `${moment(this.start(slot), { seconds })} to ${to}`;
  }

  /** "21:55 (slot 264)". */
  when(slot) {
    return `${moment(this.start(slot), { seconds: this.fine })} (slot ${whole(slot)})`;
  }
}

export const OUTCOMES = ["fresh", "estimated", "repeated", "nullified"];

/** What a slot came to, in a sentence. */
export function outcome(word, measured) {
  const from = measured ? ` of slot ${whole(measured)}` : "";
  return {
    fresh: "measured in this slot",
    estimated: `estimated from measurements up to${from.replace(" of", "")}`,
    repeated: measured ? `the numbers${from} again` : "nothing is measured yet",
    nullified: measured ? `the numbers${from} again; this slot pays back` : "nothing is measured yet",
  }[word] ?? word;
}

/** What even odds may become at most, in percent, for an epsilon. */
export const atMost = (epsilon) => 100 / (1 + Math.exp(-epsilon));

/** A percentage that is promised not to be exceeded: rounded up, and never to 100, which it never is. */
export function ceiling(percent) {
  const step = percent < 99 ? 1 : 10;
  return Math.min(99.9, Math.ceil(percent * step - 1e-9) / step);
}
