// Releases as they go out: server-sent events read with fetch, because EventSource cannot send a token.

import { ask, Problem } from "./api.js";

const LONGEST_WAIT_S = 30;
const SILENCE_MS = 50_000; // the server says something every 15 s
const LONGEST_EVENT = 32 * 1024 * 1024;

/** Splits a text/event-stream into events. */
export class EventReader {
  constructor() {
    this.rest = "";
    this.event = { id: null, type: "message", data: [] };
  }

  /** The events that this text completes. */
  read(text) {
    const found = [];
    const lines = (this.rest + text).split(/\r\n|\n|\r(?!$)/);
    this.rest = lines.pop();
    if (this.rest.length > LONGEST_EVENT) throw new Problem(0, "Too long", "An event is longer than a page can hold.");
    for (const line of lines) {
      if (line === "") {
        if (this.event.data.length) found.push({ ...this.event, data: this.event.data.join("\n") });
        this.event = { id: null, type: "message", data: [] };
        continue;
      }
      const colon = line.indexOf(":");
      const field = colon < 0 ? line : line.slice(0, colon);
      const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
      if (field === "data") this.event.data.push(value);
      else if (field === "event") this.event.type = value;
      else if (field === "id") this.event.id = value;
    }
    return found;
  }
}

/** Follows the releases, and takes up again where it was when the connection breaks. */
export class ReleaseStream {
  /**
   * @param {{token: ?string, after: number, onRelease: function, onState: function, onReconnect: function}} wishes
   *   `onState(word)` hears "connecting", "live", "waiting" or "refused"; `onReconnect()` is awaited before the stream is
   *   opened again, and may say false to stop.
   */
  constructor(wishes) {
    Object.assign(this, wishes);
    this.failures = 0;
    this.stopped = false;
    this.hurry = null;
    window.addEventListener("online", () => this.wake());
    document.addEventListener("visibilitychange", () => {
      if (!document.hidden) this.wake();
    });
  }

  /** Runs until it is stopped or refused. */
  async run() {
    for (let opened = 0; !this.stopped; opened += 1) {
      try {
        this.onState("connecting");
        if (opened && (await this.onReconnect()) === false) return;
        await this.#follow();
        this.failures = Math.max(1, this.failures); // the server ended it: not at once again
        this.retryAfter = null;
      } catch (problem) {
        if (this.stopped) return;
        if (problem.status === 401 || problem.status === 403) {
          this.onState("refused");
          return;
        }
        this.failures += 1;
        this.retryAfter = problem.retryAfter ?? null;
      }
      await this.#pause();
    }
  }

  /** Try at once instead of waiting on. */
  wake() {
    this.hurry?.();
  }

  stop() {
    this.stopped = true;
    this.abort?.abort();
    this.wake();
  }

  async #follow() {
    this.abort = new AbortController();
    let timer = this.#watch();
    const headers = { "Last-Event-ID": String(this.after) };
    try {
      const response = await ask("/v1/releases/stream", {
        token: this.token,
        accept: "text/event-stream",
        headers,
        signal: this.abort.signal,
      });
      this.failures = 0;
      this.onState("live");
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
      const events = new EventReader();
      for (;;) {
        const { done, value } = await reader.read();
        if (done) return;
        clearTimeout(timer);
        timer = this.#watch();
        for (const event of events.read(value)) this.#take(event);
      }
    } catch (problem) {
      if (problem.name !== "AbortError" || this.stopped) throw problem;
      throw new Problem(0, "Silence", "The connection fell silent.");
    } finally {
      clearTimeout(timer);
      this.abort.abort();
    }
  }

  #watch() {
    const { abort } = this;
    return setTimeout(() => abort.abort(), SILENCE_MS);
  }

  #take(event) {
    if (event.type !== "release") return;
    const release = JSON.parse(event.data);
    this.after = Math.max(this.after, release.slot);
    this.onRelease(release);
  }

  async #pause() {
    const grown = Math.min(LONGEST_WAIT_S, 2 ** (this.failures - 1)) * (0.75 + Math.random() / 2);
    const seconds = Math.max(this.retryAfter ?? 0, grown);
    this.onState("waiting");
    await new Promise((resolve) => {
      const timer = setTimeout(resolve, seconds * 1000);
      this.hurry = () => {
        clearTimeout(timer);
        resolve();
      };
    });
    this.hurry = null;
  }
}
