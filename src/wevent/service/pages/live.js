// The live page: what was released, as it goes out.

import { ask, askJson, clockAhead, KeptText } from "./api.js";
import { askForToken } from "./asking.js";
import { find, say, show } from "./dom.js";
import { LivePage } from "./live_page.js";
import { zone } from "./words.js";

const OWN = new KeptText("read");
const OTHERS = [new KeptText("link"), new KeptText("admin")];

/** What the stream is, with a token that may read it, or none if everybody may. */
async function enter() {
  let wrong;
  const others = OTHERS.map((kept) => kept.value).filter(Boolean);
  for (const token of [...(OWN.value ? [OWN.value] : []), null, ...others]) {
    const found = await attempt(token);
    if (found.about) return found;
  }
  say(find("state-text"), "A token is needed");
  for (;;) {
    const token = await askForToken(find("gate"), {
      heading: "These releases are not public",
      why: "Who may read them has a token of the role “read” from whoever runs this server.",
      label: "Read token",
      wrong,
    });
    const found = await attempt(token);
    if (found.about) {
      OWN.value = token;
      return found;
    }
    wrong = found.problem.detail;
  }
}

async function attempt(token) {
  try {
    const response = await ask("/v1/about", { token });
    return { about: await response.json(), ahead: clockAhead(response), token };
  } catch (problem) {
    if (problem.status !== 401 && problem.status !== 403) throw problem;
    return { problem };
  }
}

async function begin() {
  say(find("zone"), zone());
  for (let wait = 1; ; wait = Math.min(30, wait * 2)) {
    try {
      const { about, ahead, token } = await enter();
      const read = (path) => askJson(path, { token });
      const page = new LivePage({ about, ahead, token, read });
      await page.open();
      show(find("page"));
      page.run();
      return;
    } catch (problem) {
      if (problem.status === undefined) throw problem;
      say(find("state-text"), `${problem.status ? problem.message : "The server does not answer."} Trying again.`);
      find("state").dataset.state = "waiting";
      await new Promise((resolve) => setTimeout(resolve, Math.max(wait, problem.retryAfter ?? 0) * 1000));
    }
  }
}

begin();
