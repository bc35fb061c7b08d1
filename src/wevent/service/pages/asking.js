// Asks for a token where a page needs one.

import { make } from "./dom.js";

/**
 * A form for a token in place of a page's content; resolves with what was pasted.
 * @param {HTMLElement} place where it goes
 * @param {{heading: string, why: string, label: string, wrong?: string}} words what it says
 */
export function askForToken(place, { heading, why, label, wrong }) {
  return new Promise((resolve) => {
    const field = make("input", {
      id: "token",
      type: "password",
      autocomplete: "off",
      spellcheck: "false",
      required: true,
      "aria-describedby": "token-kept",
    });
    const form = make(
      "form",
      {
        submit: (event) => {
          event.preventDefault();
          const token = field.value.trim();
          if (!token) return field.focus();
          place.replaceChildren();
          resolve(token);
        },
      },
      make("label", { for: "token", text: label }),
      field,
      make("p", {
        id: "token-kept",
        class: "soft small",
        text: "It stays in this tab, is sent to this server only, and is gone when the tab is closed.",
      }),
      make("div", { class: "row" }, make("button", { class: "main", type: "submit", text: "Go on" })),
    );
    const parts = [make("h1", { text: heading }), make("p", { class: "soft", text: why }), form];
    if (wrong) parts.splice(2, 0, make("div", { class: "notice warn", role: "alert" }, make("p", { text: wrong })));
    place.replaceChildren(make("section", { class: "ask" }, ...parts));
    field.focus();
  });
}
