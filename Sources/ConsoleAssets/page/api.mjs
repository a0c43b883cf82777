// The daemon's API, and its events.

/** The daemon's own root, whatever path a proxy before it has put there. */
export const root = new URL("../", import.meta.url);

/** The daemon's base path; until it tells (`hello`), what precedes the page, if the daemon's links begin with that. */
let basePath = root.pathname.slice(0, -1);

/**
 * The URL of a path of the daemon, which may begin with its base path (its links do): `base` ends with that where a
 * proxy in front removes it.
 */
export function ownURL(path, own = basePath, base = root) {
  const inner = own && path.startsWith(`${own}/`) ? path.slice(own.length) : path;
  return new URL(`./${inner.replace(/^\/+/, "")}`, base);
}

/**
 * The URL that plays what somebody has typed: a path of the daemon, a URL that leads to it, or an origin's URL.
 *
 * The daemon would refuse a URL of its own as an origin's.
 */
export function playable(url, own = basePath, base = root) {
  if (url.startsWith("/")) return ownURL(url, own, base);
  try {
    const given = new URL(url);
    if (given.origin === base.origin && given.pathname.startsWith(base.pathname)) {
      // What precedes the page belongs to the path; the daemon's base path does only where the page has it too.
      return base.pathname === "/" ? ownURL(given.pathname + given.search, own, base) : given;
    }
  } catch {
    // The daemon says what is wrong with it.
  }
  // An origin's URL travels as an argument, so that nothing of it is taken for ours.
  return new URL(target("proxy", { url }), base);
}

/** The longest explanation of a failure that is read. */
const MOST_WORDS = 4096;

const withoutSource = (text) => text.trim().replace(/^client error: /, "");

/** Why a request was refused: what the daemon says, else the status; a page of an origin is not shown. */
export async function refusal(answer) {
  const reader = answer.body?.getReader(), decoder = new TextDecoder();
  const isText = /^text\/plain/i.test(answer.headers.get("Content-Type") ?? "");
  let words = "";
  while (reader && isText && words.length < MOST_WORDS) {
    const { done, value } = await reader.read();
    if (done) break;
    words += decoder.decode(value, { stream: true });
  }
  // What is left of it is not wanted.
  reader?.cancel().catch(() => {});
  return withoutSource(words.slice(0, MOST_WORDS)) || `status ${answer.status}`;
}

/** Asks for JSON; throws what the daemon says is wrong. */
export async function api(path, method = "GET", headers = {}, body = null) {
  let answer;
  try {
    answer = await fetch(new URL(path, root), {
      method, body, headers: { "Sluice-Request": "1", ...headers }, cache: "no-store",
      credentials: "same-origin", redirect: "error", referrerPolicy: "no-referrer",
    });
  } catch {
    throw new Error("the daemon does not answer");
  }
  const text = await answer.text();
  if (answer.status === 401) {
    dispatchEvent(new Event("sign-in"));
    throw Object.assign(new Error("sign in first"), { isSignedOut: true });
  }
  if (!answer.ok) throw new Error(withoutSource(text) || `status ${answer.status}`);
  return text ? JSON.parse(text) : null;
}

/** A path with arguments; those that are null or empty are left out. */
export const target = (path, items) => {
  const given = Object.entries(items).filter(([, value]) => value !== null && value !== undefined && value !== "");
  return `${path}?${new URLSearchParams(given)}`;
};

/** The session at the page's own path, which the cookie has: the daemon does not see what a proxy removes. */
const session = () => target("api/session", { path: root.pathname });

/** Gives the access token once and gets a cookie. */
export function signIn(token) {
  // A header holds bytes; the token may be any text.
  const bytes = String.fromCharCode(...new TextEncoder().encode(token));
  return api(session(), "POST", { Authorization: `Bearer ${bytes}` });
}

export const signOut = () => api(session(), "DELETE");

const kinds = ["hello", "figures", "origins", "downloads", "disk", "request", "lost"];
const hearers = new Map(kinds.map((kind) => [kind, []]));
let source = null, timer = 0;
/** Counts calls of `close`: what was begun before one does not listen after it. */
let turn = 0;
/**
 * How often in a row the events were refused while all else was answered: the daemon accepts few listeners, and a proxy
 * in front may accept no event streams. The browser does not tell which it was.
 */
let refusals = 0;

/** Calls `hear` with each event of a kind. */
export function on(kind, hear) { hearers.get(kind).push(hear); }

on("hello", ({ base }) => { basePath = base ?? basePath; });

/** What the windows of one browser share: a browser has six connections for a host over HTTP/1.1. */
const SHARED = `sluice events ${root.pathname}`;
let channel = null, asked = null, release = null;

/** Listens until `close`, but not for a page that nobody sees; begins anew when the daemon was away. */
export function listen(tellState) {
  close();
  if (document.hidden) return tellState("paused");
  // Neither exists on plain http but for the machine itself: each window has a stream of its own there.
  if (!navigator.locks || !window.BroadcastChannel) return receive(tellState, deliver);
  share(tellState);
}

/** Has the stream while this window holds the lock, and hears what another one receives until then. */
function share(tellState) {
  const own = turn, line = channel = new BroadcastChannel(SHARED);
  let state = "connecting", hello = null;
  tellState(state);
  line.onmessage = ({ data: message }) => {
    if (message.state) tellState(message.state);
    if (message.kind) deliver(message.kind, message.data, tellState);
  };
  line.postMessage({ isNew: true });
  asked = new AbortController();
  navigator.locks.request(SHARED, { signal: asked.signal }, () => new Promise((resolve) => {
    if (own !== turn) return resolve();
    // A window that is closed gives the lock back by itself.
    release = resolve;
    line.onmessage = ({ data: { isNew } }) => {
      if (!isNew) return;
      line.postMessage({ state });
      if (hello) line.postMessage({ kind: "hello", data: hello });
    };
    receive((now) => {
      state = now;
      tellState(now);
      line.postMessage({ state });
    }, (kind, data) => {
      if (kind === "hello") hello = data;
      deliver(kind, data, tellState);
      line.postMessage({ kind, data });
    });
  })).catch(() => {});
}

/** Calls what hears a kind of event. */
function deliver(kind, data, tellState) {
  // Another version means other members: a reload brings the page that knows them.
  if (data.v !== 1) return tellState("outdated");
  for (const hear of hearers.get(kind)) hear(data);
}

/** Opens a stream, and again when it was refused or ended. */
function receive(tellState, take) {
  const own = turn;
  tellState(refusals > 1 ? "crowded" : "connecting");
  source = new EventSource(new URL("api/events", root));
  source.onopen = () => {
    refusals = 0;
    tellState("connected");
  };
  source.onerror = () => {
    // A refusal ends the source for good, and does not say which it was.
    const isRefused = source?.readyState === EventSource.CLOSED;
    // The first may come from a proxy in front while the daemon restarts.
    tellState(isRefused && refusals > 0 ? "crowded" : "away");
    if (!isRefused) return;
    clearTimeout(timer);
    timer = setTimeout(() => api("api/settings").then(() => {
      if (own !== turn) return;
      refusals += 1;
      receive(tellState, take);
    }, (error) => {
      refusals = 0;
      if (own !== turn || error.isSignedOut) return;
      tellState("away");
      timer = setTimeout(() => receive(tellState, take), 2000);
    }), 2000);
  };
  for (const kind of kinds) {
    source.addEventListener(kind, (event) => take(kind, JSON.parse(event.data), tellState));
  }
}

export function close() {
  turn += 1;
  clearTimeout(timer);
  source?.close();
  source = null;
  asked?.abort();
  release?.();
  channel?.close();
  asked = release = channel = null;
}
