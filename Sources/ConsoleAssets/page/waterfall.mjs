// The requests of players as they end: who waited for what, by colour.
import { byId, bytes, h, leaf, milliseconds } from "./dom.mjs";
import { on } from "./api.mjs";

const MOST = 60;

/** How outcomes are coloured and called. */
const looks = {
  hit: ["hit", "hit"], revalidated: ["hit", "revalidated"], refreshed: ["miss", "refreshed"],
  partial: ["miss", "partial"], miss: ["miss", "miss"], collapsed: ["joined", "joined"],
  ahead: ["ahead", "ahead"], stale: ["stale", "stale"], offline: ["stale", "offline"], bypass: ["passed", "bypass"],
  passed: ["passed", "passed"], refused: ["failed", "refused"], failed: ["failed", "failed"],
  live: ["miss", "live"], "joined-live": ["joined", "joined"], "stale-while-revalidate": ["stale", "stale"],
  left: ["passed", "left"],
};
const colours = [
  ["hit", "hit"], ["joined", "joined"], ["miss", "miss"], ["ahead", "ahead"], ["stale", "stale"],
  ["passed", "passed on"], ["failed", "failed"],
];
const roles = {
  p: "list", s: "segment", i: "init", k: "key", l: "part", v: "subtitle", j: "JSON", g: "image", f: "media",
};
/** The phases of a miss, in order, with the members they are made of. */
const phases = [
  ["queue", ["slot_ms"]], ["connect", ["name_ms", "connect_ms", "tls_ms"]],
  ["first", ["first_byte_ms"]], ["body", ["last_byte_ms"]],
];

/** The stretches of a bar: [phase, milliseconds]. */
export function stretches(record) {
  if (!record.origin || record.outcome === "collapsed") return [["body", record.ms]];
  const known = phases.map(([name, members]) =>
    [name, members.reduce((sum, member) => sum + (record.origin[member] ?? 0), 0)]);
  const sum = known.reduce((all, [, time]) => all + time, 0);
  const rest = record.ms - sum;
  // What is before the origin and behind it is ours: it counts to the queue.
  return rest > 0.05 ? [["queue", rest], ...known] : known;
}

/**
 * The bar of a request.
 *
 * `from` is where the axis begins, in ms since 1970; null where the request's own start is.
 */
function bar(record, scale, from) {
  const place = h("div", { class: "bar-of" });
  const share = (time) => `${Math.min(100, (time / scale) * 100)}%`;
  let gone = from === null ? 0 : record.at - from;
  if (gone > 0) place.append(h("span", { class: "before" }));
  if (gone > 0) place.firstChild.style.width = share(gone);
  for (const [phase, time] of stretches(record)) {
    // What was before the axis begins is cut off.
    const cut = Math.min(time, Math.max(0, -gone));
    gone += time;
    if (!(time - cut > 0)) continue;
    const part = h("span", { class: `phase ${phase}`, title: `${phase}: ${milliseconds(time)}` });
    part.style.width = share(time - cut);
    place.append(part);
  }
  return place;
}

function row(record, scale, from) {
  const [kind, word] = looks[record.outcome] ?? ["passed", record.outcome];
  const spoken = stretches(record).map(([phase, time]) => `${phase} ${milliseconds(time)}`).join(", ");
  return h("tr", { class: `is-${kind}`, "data-outcome": record.outcome },
    h("td", { class: "name", title: record.url ?? "" }, leaf(record.url)),
    h("td", { class: "wide" }, roles[record.role] ?? ""),
    h("td", null, h("span", { class: "badge" }, word)),
    h("td", { class: "number wide" }, record.status ?? "–"),
    h("td", { class: "number wide" }, bytes(record.bytes)),
    h("td", { class: "number" }, milliseconds(record.ms)),
    h("td", { class: "time", "aria-label": spoken }, bar(record, scale, from)));
}

export function startWaterfall() {
  const records = [];
  const grid = byId("fall");
  const body = h("tbody");
  grid.append(h("thead", null, h("tr", null,
    [["name", "Resource"], ["wide", "Role"], ["", "Outcome"], ["number wide", "Status"], ["number wide", "Size"],
      ["number", "Time"], ["time", "Queue, connect, first byte, body"]].map(([kind, name]) =>
      h("th", { class: kind, scope: "col", title: name }, name)))), body);
  byId("legend").append(...colours.map(([kind, word]) => h("li", { class: `is-${kind}` }, word)));
  let isDue = false, drawn = 0;
  const draw = () => {
    isDue = false;
    drawn = performance.now();
    const seconds = Number(byId("fall-axis").value);
    if (seconds > 0) {
      const until = Math.max(...records.map((record) => record.at + record.ms));
      const from = until - seconds * 1000;
      return body.replaceChildren(...records.filter((record) => record.at + record.ms > from)
        .map((record) => row(record, seconds * 1000, from)));
    }
    const times = records.map((record) => record.ms).sort((a, b) => a - b);
    // One slow request must not make all others invisible.
    const scale = Math.max(20, (times[Math.floor(times.length * 0.9)] ?? 0) * 1.2);
    body.replaceChildren(...records.map((record) => row(record, scale, null)));
  };
  byId("fall-axis").addEventListener("change", draw);
  on("request", (record) => {
    records.unshift(record);
    if (records.length > MOST) records.length = MOST;
    if (isDue) return;
    isDue = true;
    // The first one is drawn in the next frame, what follows at most five times a second.
    setTimeout(() => requestAnimationFrame(draw), Math.max(0, drawn + 200 - performance.now()));
  });
  let lost = 0;
  on("lost", ({ events }) => {
    lost += events;
    const note = byId("fall-lost");
    note.hidden = false;
    note.textContent = `${lost} events were left out, since this page takes them too slowly.`;
  });
}
