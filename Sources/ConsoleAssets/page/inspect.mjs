// A playlist beside what the specification finds wrong in it.
import { byId, clock, h, toast } from "./dom.mjs";
import { api, playable, refusal, target } from "./api.mjs";

// The daemon reads playlists of 16 MiB, and its links are longer than those of origins.
const MOST = 64 << 20;

/** True for media, whose bodies have no bound; a playlist may have any other type. */
const isMedia = (type) => /^(video|audio|image)\//i.test(type) && !/mpegurl/i.test(type);

/** Fetches a playlist through the daemon as a player would, so that the daemon has it. */
async function fetched(url, signal) {
  const answer = await fetch(playable(url), { credentials: "same-origin", referrerPolicy: "no-referrer", signal });
  if (!answer.ok) throw new Error(await refusal(answer));
  const type = answer.headers.get("Content-Type") ?? "";
  const reader = answer.body?.getReader();
  let count = 0, fault = isMedia(type) ? `This is no playlist: its type is ${type}.` : null;
  while (reader && !fault) {
    const { done, value } = await reader.read();
    if (done) break;
    count += value.length;
    if (count > MOST) fault = "This is no playlist: it is longer than 64 MiB.";
  }
  // What is left of it is not wanted.
  reader?.cancel().catch(() => {});
  if (fault) throw new Error(fault);
}

function summary(found) {
  const words = [`${found.kind} playlist`, `version ${found.version}`];
  if (found.live !== null) words.push(found.live ? "live" : "complete");
  if (found.segments !== null) words.push(`${found.segments} ${found.segments === 1 ? "segment" : "segments"}`, clock(found.seconds));
  words.push(...found.features, ...found.encryption);
  if (found.unknown_tags.length) words.push(`unknown tags: ${found.unknown_tags.join(", ")}`);
  const musts = found.violations.filter(({ level }) => level === "must").length;
  const shoulds = found.violations.length - musts;
  const verdict = found.violations.length
    ? `${musts} violations of rules that must be kept, ${shoulds} of rules that should be.`
    : "No rule is broken.";
  return [h("p", { class: "lead" }, verdict), h("p", { class: "dim" }, words.join(" · ")),
    found.refusal ? h("p", { class: "error" }, found.refusal) : null];
}

const line = (fault) => h("p", { class: `fault ${fault.level}` },
  h("span", { class: "badge" }, fault.level), ` ${fault.message} `, h("span", { class: "dim" }, `section ${fault.section}`));

/** The text with its faults below their lines; a line that names a playlist leads to it. */
function listing(found) {
  const faults = Map.groupBy(found.violations, (fault) => fault.line);
  const entries = new Map(found.entries.map((entry) => [entry.line, entry]));
  const texts = found.text.replace(/\n$/, "").split("\n");
  const items = texts.map((text, index) => {
    const entry = entries.get(index + 1);
    const isList = entry && ["variant", "rendition", "i-frames", "images"].includes(entry.kind);
    return h("li", { class: faults.has(index + 1) ? "faulty" : null }, h("code", null, text),
      isList ? h("button", { type: "button", class: "small", "aria-label": `Inspect ${entry.url}`, onclick: () => ask(entry.url) }, "Inspect") : null,
      (faults.get(index + 1) ?? []).map(line));
  });
  // What is missing from the list as a whole has the last line, which may be beyond the text.
  const beyond = found.violations.filter((fault) => fault.line > texts.length).map(line);
  return [h("div", { class: "listing", tabindex: "0", role: "region", "aria-label": "Text of the playlist" }, h("ol", null, items)), ...beyond,
    found.cut ? h("p", { class: "dim" }, "Only the first 512 KiB of the text are shown; the rules have read all of it.") : null];
}

let asking = null;

/** Inspects a URL; what went wrong is shown. The URL that was asked for before is not waited for. */
function ask(url) {
  asking?.abort();
  const { signal } = asking = new AbortController();
  byId("inspect-url").value = url;
  const place = byId("inspect");
  place.replaceChildren(h("p", { class: "dim" }, "Reading …"));
  fetched(url, signal).then(() => api(target("api/inspect", { url }))).then(
    (found) => {
      if (!signal.aborted) place.replaceChildren(...[...summary(found), ...listing(found)].filter(Boolean));
    },
    (error) => {
      if (signal.aborted) return;
      place.replaceChildren();
      toast(error.message, true);
    });
}

export function startInspect() {
  byId("inspect-form").addEventListener("submit", (event) => {
    event.preventDefault();
    ask(byId("inspect-url").value.trim());
  });
}
