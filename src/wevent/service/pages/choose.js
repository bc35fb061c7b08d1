// The page where a person chooses: the link, the way in, and what to say where there is none.

import { askJson, KeptText } from "./api.js";
import { ChoosePage } from "./choose_page.js";
import { find, make, say } from "./dom.js";
import { zone } from "./words.js";

const LINK = new KeptText("link");

/** Take the link's token out of the address, so that it is in no history, bookmark or picture of the screen. */
function takeLink() {
  const fragment = window.location.hash.slice(1);
  if (!fragment) return;
  window.history.replaceState(null, "", window.location.pathname);
  if (fragment.startsWith("wel_")) LINK.value = fragment;
}

/** A card in place of the choice. */
function explain(heading, ...sentences) {
  const parts = sentences.map((text) => make("p", { text }));
  find("gate").replaceChildren(make("div", { class: "notice", role: "status" }, make("h2", { text: heading }), ...parts));
}

const NO_LINK = [
  "To choose, open your personal link",
  "Whoever runs these statistics gives it to you: it is for you alone, needs no password, and lasts for some days.",
];
const DEAD_LINK = [
  "This link no longer works",
  "It has expired, was ended, or was replaced by a newer one. Nothing else has changed: your choice stays as it is.",
  "Ask whoever gave it to you for a new one.",
];

async function begin() {
  takeLink();
  say(find("zone"), zone());
  let token = LINK.value;
  let held = null;
  try {
    if (token) held = await heldNow(token);
  } catch (problem) {
    if (problem.status !== 401 && problem.status !== 403) return failed(problem);
    LINK.value = null;
    token = null;
    explain(...DEAD_LINK);
  }
  try {
    const about = await askJson("/v1/about", { token });
    const levels = await askJson("/v1/levels", { token });
    if (!token && !find("gate").childElementCount) explain(...NO_LINK);
    new ChoosePage({ about, levels, token, held, link: LINK }).open();
  } catch (problem) {
    if (problem.status === 401 || problem.status === 403) {
      if (!find("gate").childElementCount) explain(...NO_LINK);
    } else failed(problem);
  }
}

/** What the person holds, or null for somebody who is not registered. */
async function heldNow(token) {
  try {
    return await askJson("/v1/me/requirement", { token });
  } catch (problem) {
    if (problem.status === 404) return null;
    throw problem;
  }
}

function failed(problem) {
  if (problem.status === undefined) throw problem;
  const again = make("button", { type: "button", text: "Try again", click: () => window.location.reload() });
  explain(problem.status ? "That did not work" : "The server does not answer", problem.detail || "Please try again in a moment.");
  find("gate").firstChild.append(make("div", { class: "row" }, again));
}

window.addEventListener("hashchange", () => {
  if (window.location.hash.startsWith("#wel_")) {
    takeLink();
    window.location.reload();
  }
});
begin();
