// What the live page says about its stream.

import { find, say } from "./dom.js";
import { every, span, whole } from "./words.js";

/** Title, lead, and the words that depend on the stream. */
export function tellAbout(about, clock) {
  const named = about.stream !== "default";
  document.title = named ? `${about.stream}: live releases` : "Live releases";
  if (named) say(find("title"), about.stream);
  const cells = about.cells.length === 1 ? "one cell" : `each of ${whole(about.cells.length)} cells`;
  say(
    find("lead"),
    `How many people were in ${cells}, released ${every(clock.seconds)}. Noise is added before anything goes out, so that the numbers can say very little about whether any one person was there.`,
  );
  say(find("slot-words"), ` of ${span(clock.seconds)}`);
  say(
    find("relation-words"),
    about.neighbours === "replace"
      ? "The promise covers both: whether somebody was there, and in which cell."
      : "The promise is about whether somebody was there at all. For somebody who is known to be there, which cell they were in is protected with twice the epsilon.",
  );
  say(find("version"), `wevent ${about.version}, mechanism ${about.mechanism}`);
  const address = `${window.location.origin}/v1/releases`;
  const bearer = about.public ? "" : " -H 'Authorization: Bearer TOKEN'";
  say(find("curl"), `curl -H 'Accept: text/csv'${bearer} ${address}\ncurl -N${bearer} ${address}/stream`);
}
