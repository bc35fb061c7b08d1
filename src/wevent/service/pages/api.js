// Calls of the service. Tokens are sent in a header, and kept in this tab alone (sessionStorage).

/** An answer that is no success: problem+json, or no answer at all (status 0). */
export class Problem extends Error {
  constructor(status, title, detail, retryAfter = null) {
    super(detail || title);
    this.status = status;
    this.title = title;
    this.detail = detail;
    this.retryAfter = retryAfter;
  }
}

/** A text that lives as long as this tab: a token, or a pause. */
export class KeptText {
  constructor(name) {
    this.name = `wevent-${name}`;
    this.memory = null;
  }

  get value() {
    try {
      return sessionStorage.getItem(this.name) ?? this.memory;
    } catch {
      return this.memory; // storage may be switched off
    }
  }

  set value(text) {
    this.memory = text;
    try {
      if (text === null) sessionStorage.removeItem(this.name);
      else sessionStorage.setItem(this.name, text);
    } catch {
      // then it is kept in memory alone
    }
  }
}

/** Fetch with a token; raises Problem for everything that is no success. */
export async function ask(path, { token = null, method = "GET", accept = "application/json", body, headers, signal } = {}) {
  const sent = { Accept: accept, ...headers };
  if (token) sent.Authorization = `Bearer ${token}`;
  if (body !== undefined) sent["Content-Type"] = "application/json";
  let response;
  try {
    response = await fetch(path, {
      method,
      headers: sent,
      body: body === undefined ? undefined : JSON.stringify(body),
      cache: "no-store",
      credentials: "omit",
      redirect: "error",
      signal,
    });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Problem(0, "No answer", "The server does not answer.");
  }
  if (!response.ok) throw await problemOf(response);
  return response;
}

/** The JSON of an answer. */
export async function askJson(path, options) {
  const response = await ask(path, options);
  return response.status === 204 ? null : response.json();
}

async function problemOf(response) {
  let told = {};
  try {
    told = await response.json();
  } catch {
    // a proxy in between speaks HTML
  }
  const wait = Number(response.headers.get("Retry-After"));
  return new Problem(response.status, told.title ?? `Status ${response.status}`, told.detail ?? "", wait > 0 ? wait : null);
}

/** How far the server's clock is ahead of this one, in milliseconds: whole seconds, as its header has them. */
export function clockAhead(response) {
  const told = Date.parse(response.headers.get("Date") ?? "");
  const ahead = told - Date.now();
  return Number.isNaN(told) || Math.abs(ahead) < 2000 ? 0 : ahead;
}
