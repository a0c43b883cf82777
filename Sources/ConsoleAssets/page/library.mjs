// What is kept, and orders for more: titles, downloads, recordings.
import { ago, button, byId, bytes, clock, confirmed, h, meter, rate, replace, say, table, toast } from "./dom.mjs";
import { pictures } from "./pictures.mjs";
import { api, on, target } from "./api.mjs";
import { exported } from "./export.mjs";
import { showFeeds, startFeeds } from "./feeds.mjs";
import { play } from "./player.mjs";

const PAGE = 100;
/** As many as the event lists. */
const MOST_DOWNLOADS = 200;
/** As long as a recording may be. */
const MOST_HOURS = 7 * 24;
let shown = PAGE, isShown = false;

/** Why the URL of a listing does not play its title; null where it does. */
function obstacle({ url, has_headers: hasHeaders }) {
  if (hasHeaders) return "It was played with headers or credentials, which the list leaves out; paste its URL with them.";
  // Values of queries and secrets in paths are not in listings.
  if (!url || /[?…]|\*\*\*/.test(url)) return "The list leaves out the values of this URL; paste the whole URL.";
  return null;
}

async function act(path, done) {
  const answer = await api(path, "POST");
  toast(typeof done === "function" ? done(answer) : done);
  await refresh();
}

function start(url) {
  byId("play-url").value = url;
  location.hash = "#play";
  play(url).catch((error) => toast(error.message, true));
}

function actions(title) {
  const id = { title: title.id }, reason = obstacle(title);
  return h("div", { class: "actions" },
    button("Play", async () => start(title.url), { disabled: reason !== null, title: reason }, title.name),
    title.pinned
      ? button("Unpin", () => act(target("api/unpin", id), "Unpinned."), {}, title.name)
      : button("Pin", () => act(target("api/pin", id), "Pinned: it stays whatever room is needed."), {}, title.name),
    title.kind === "vod" && !title.whole
      ? button("Download", () => act(target("api/downloads", { url: title.url }), "The download is ordered."), { disabled: reason !== null, title: reason }, title.name)
      : null,
    title.percent > 0 ? button("Export", () => exported(title), {}, title.name) : null,
    button("Purge", async () => {
      if (!(await confirmed(`Remove “${title.name}” with ${bytes(title.bytes)} from the cache?`, "Purge"))) return;
      await act(target("api/purge", id), (answer) => `Removed ${bytes(answer.bytes ?? 0)}.`);
    }, { class: "small danger" }, title.name));
}

function kept(title) {
  const length = title.seconds ? `${clock(title.kept_seconds)} of ${clock(title.seconds)}` : "";
  return h("div", { class: "kept" }, meter(title.percent, `${title.percent} per cent kept`),
    h("span", null, `${title.percent} %`), h("span", { class: "dim" }, length));
}

function named(item) {
  return h("div", { class: "named" }, h("strong", null, item.name),
    item.pinned ? h("span", { class: "badge" }, "pinned") : null,
    item.encryption?.text ? h("span", { class: "badge" }, item.encryption.text) : null,
    h("span", { class: "dim url" }, item.url ?? ""));
}

const opened = new Set();

/** What is kept of each variant, below the title's name once that is opened. */
function variants(title) {
  const top = h("div", { class: "titled" }, pictures.of(title), named(title));
  if (!title.variants?.length) return top;
  const list = h("ul", { class: "shares" }, title.variants.map((variant) => h("li", null,
    h("span", null, `${variant.kind} ${variant.label}`), h("span", { class: "number" }, `${variant.percent} %`),
    meter(variant.percent, `${variant.percent} per cent kept`))));
  const details = h("details", { class: "choices", open: opened.has(title.id) }, h("summary", null, `${title.variants.length} ${title.variants.length === 1 ? "variant" : "variants"}`), list);
  details.addEventListener("toggle", () => (details.open ? opened.add(title.id) : opened.delete(title.id)));
  return h("div", null, top, details);
}

function showTitles({ titles, total, next, pictures: areOn }) {
  pictures.begin(titles, areOn);
  say(byId("titles-sum"), `${total} ${total === 1 ? "title" : "titles"}`);
  const grid = table([
    ["Title", variants, "grow"], ["Kind", (title) => title.kind, "wide"], ["Kept", kept, ""],
    ["Size", (title) => bytes(title.bytes), "number wide"], ["Played", (title) => ago(title.last_played), "wide"],
    ["", actions, "end"],
  ], titles, { empty: "Nothing is kept yet. Play something.", label: "Titles", id: (title) => title.id });
  const more = next ? button("Show more", async () => { shown += PAGE; await refresh(); }) : null;
  replace(byId("titles"), ...[grid, more].filter(Boolean));
}

function showDownloads({ downloads, total }) {
  const place = byId("downloads"), more = total - downloads.length;
  replace(place, ...(downloads.length ? downloads.map((item) => {
    const order = (verb, label) => button(label, () => act(`api/downloads/${encodeURIComponent(item.id)}/${verb}`, "Done."), {}, item.name);
    const isOver = ["complete", "failed"].includes(item.state);
    const rest = item.seconds_left === null ? "" : `, ${clock(item.seconds_left)} left`;
    return h("article", { class: "item", "data-id": item.id }, named(item),
      h("div", { class: "kept" }, meter(item.percent, `${item.percent} per cent`), h("span", null, `${item.percent} %`),
        h("span", { class: "dim" }, item.state === "running" ? `${bytes(item.bytes)} at ${rate(item.rate * 8)}${rest}` : item.state)),
      item.reason ? h("p", { class: "dim" }, item.reason) : null,
      item.node ? h("p", { class: "dim" }, `node ${item.node}`) : null,
      h("div", { class: "actions" },
        item.state === "paused" || item.state === "failed" ? order("resume", "Resume") : null,
        !isOver && item.state !== "paused" ? order("pause", "Pause") : null, order("cancel", isOver ? "Forget" : "Cancel")));
  }) : [h("p", { class: "dim" }, "No downloads.")]),
  ...(more > 0 ? [h("p", { class: "dim" }, `${more} more are not shown; “sluice download list” lists all.`)] : []));
}

/** What may be ordered for a recording in each state. */
const orders = {
  running: [["stop", "Stop"]], paused: [["resume", "Resume"], ["stop", "Stop"], ["forget", "Forget"]],
  finishing: [["forget", "Forget"]], done: [["forget", "Forget"]], failed: [["forget", "Forget"]],
};

/** Whether its time is still running. */
const isFollowed = ({ state }) => state === "running" || state === "paused";

/** Another node plays its own; one that failed without a segment has nothing to play. */
const isPlayable = ({ play, state, segments }) => play !== null && (state !== "failed" || segments > 0);

function showRecordings({ recordings }) {
  replace(byId("recordings"), ...(recordings.length ? recordings.map((item) => {
    const order = (verb, label) => button(label, () => act(`api/recordings/${encodeURIComponent(item.id)}/${verb}`, "Done."), {}, item.name);
    const until = new Date(item.until * 1000).toLocaleString([], { dateStyle: "short", timeStyle: "short" });
    return h("article", { class: "item", "data-id": item.id }, named(item),
      h("p", { class: "dim" }, `${item.state}, ${clock(item.seconds)}, ${bytes(item.bytes)}${isFollowed(item) ? `, until ${until}` : ""}${item.lost ? `, ${item.lost} segments lost` : ""}${item.reason ? `: ${item.reason}` : ""}${item.node ? `, node ${item.node}` : ""}`),
      h("div", { class: "actions" }, isPlayable(item) ? button("Play", async () => start(item.play), {}, item.name) : null,
        (orders[item.state] ?? []).map(([verb, label]) => order(verb, label))));
  }) : [h("p", { class: "dim" }, "No recordings.")]));
}

/** Reads all lists anew. */
export async function refresh() {
  const [titles, downloads, recordings] = await Promise.all([
    readTitles(), api(target("api/downloads", { limit: MOST_DOWNLOADS })), api("api/recordings"),
  ]);
  showTitles(titles);
  showDownloads(downloads);
  showRecordings(recordings);
  await showFeeds();
}

async function readTitles() {
  let after = null, found = [], page;
  do {
    page = await api(target("api/titles", { limit: PAGE, after }));
    found = found.concat(page.titles);
    after = page.next;
  } while (after !== null && found.length < shown);
  return { ...page, titles: found };
}

export function showLibrary(isVisible) {
  isShown = isVisible;
  if (isVisible) refresh().catch((error) => toast(error.message, true));
}

export function startLibrary() {
  startFeeds(() => isShown);
  on("downloads", (data) => { if (isShown) showDownloads(data); });
  setInterval(() => {
    // What somebody is about to press stays where it is.
    if (isShown && !document.hidden && !byId("view-library").contains(document.activeElement)) refresh().catch(() => {});
  }, 10_000);
  byId("download-form").addEventListener("submit", (event) => {
    event.preventDefault();
    const url = byId("download-url").value.trim();
    const [variant, audio, subtitles] = ["variant", "audio", "subtitles"].map((name) => byId(`download-${name}`).value.trim());
    act(target("api/downloads", { url, variant, audio, subtitles }), "The download is ordered.").then(() => event.target.reset(), (error) => toast(error.message, true));
  });
  const until = byId("record-until");
  const inHours = (hours) => {
    const at = new Date(Date.now() + hours * 3_600_000);
    return new Date(at.getTime() - at.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
  };
  until.value = inHours(2);
  until.addEventListener("focus", () => { until.max = inHours(MOST_HOURS); });
  byId("record-form").addEventListener("submit", (event) => {
    event.preventDefault();
    const seconds = Math.round((new Date(until.value).getTime() - Date.now()) / 1000);
    if (!(seconds > 0)) return toast("The end lies in the past.", true);
    if (seconds > MOST_HOURS * 3600) return toast("The end lies too far ahead: at most seven days.", true);
    act(target("api/recordings", { url: byId("record-url").value.trim(), for: `${seconds}s`, name: byId("record-name").value.trim() }), "The recording runs.")
      .then(() => { event.target.reset(); until.value = inHours(2); }, (error) => toast(error.message, true));
  });
}
