// Releases as a file, with the token that the page has.

import { ask, askJson } from "./api.js";
import { find, say } from "./dom.js";

const KINDS = {
  csv: "text/csv",
  ndjson: "application/x-ndjson",
  parquet: "application/vnd.apache.parquet",
};
const MOST_SLOTS = 10_000;

/**
 * Wire the buttons of the page.
 * @param {function} facts what there is now: token, stream, the slots that are shown and kept, the chosen cells
 */
export function offerDownloads(facts) {
  const told = find("downloaded");
  const trying = (work) => async () => {
    say(told, "Fetching …");
    try {
      say(told, `${await work(facts())} is in your downloads.`);
    } catch (problem) {
      say(told, problem.message);
    }
  };
  for (const button of document.querySelectorAll("[data-kind]")) {
    button.addEventListener("click", trying((now) => download(button.dataset.kind, now)));
  }
  find("statement").addEventListener("click", trying(statement));
}

async function statement({ token }) {
  const text = JSON.stringify(await askJson("/v1/statement", { token }), null, 2);
  save(new Blob([text], { type: "application/json" }), "privacy-statement.json");
  return "privacy-statement.json";
}

/** Fetch releases in a format and hand them to the browser as a file; the file's name. */
async function download(kind, { token, stream, shown, kept, chosen }) {
  const { first, last } = find("download-slots").value === "kept" ? kept : shown;
  const cells = find("download-cells").value === "chosen" ? chosen : null;
  const query = new URLSearchParams({ from: first, to: last, limit: Math.min(MOST_SLOTS, last - first + 1) });
  if (cells) query.set("cells", cells.map(quoted).join(","));
  const response = await ask(`/v1/releases?${query}`, { token, accept: KINDS[kind] });
  const name = `${stream.replaceAll(/[^\p{L}\p{N}_-]+/gu, "-")}-${first}-${last}.${kind}`;
  save(await response.blob(), name);
  return name;
}

/** Hand something to the browser as a file. */
export function save(content, name) {
  const address = URL.createObjectURL(content);
  const link = document.createElement("a");
  link.href = address;
  link.download = name;
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
}

// A label with a comma is written in double quotes, as for `wevent releases --cells`.
const quoted = (label) => (/[",]/.test(label) ? `"${label.replaceAll('"', '""')}"` : label);
