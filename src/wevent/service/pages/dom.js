// Elements with text in them. Whatever comes from the server goes in as text, never as HTML.

export const find = (id) => document.getElementById(id);

/**
 * A new element.
 * @param {string} tag its name
 * @param {Object} facts attributes by name; `text` is its text, a function is a listener (`click: …`)
 * @param {...(Node|string)} children what is in it
 */
export function make(tag, facts = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(facts)) {
    if (value === undefined || value === null || value === false) continue;
    if (name === "text") element.textContent = value;
    else if (typeof value === "function") element.addEventListener(name, value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children);
  return element;
}

/** Set an element's text if it is another one: screen readers speak what was touched. */
export function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** Show or hide an element. */
export function show(element, visible = true) {
  element.hidden = !visible;
}

/** A function that runs soon, once for many calls, and no more often than every `apart` milliseconds. */
export function calmly(work, apart = 0) {
  let last = 0;
  let waiting = false;
  return () => {
    if (waiting) return;
    waiting = true;
    const rest = Math.max(0, last + apart - performance.now());
    setTimeout(() => {
      requestAnimationFrame(() => {
        waiting = false;
        last = performance.now();
        work();
      });
    }, rest);
  };
}
