// The daemon in figures: what it saves, what it asks of origins, what takes its disk.
import { byId, bytes, clock, h, meter, milliseconds, percent, rate, replace, say, table, toast } from "./dom.mjs";
import { api, on } from "./api.mjs";
import { Plot } from "./plots.mjs";

const tiles = [
  ["Hit ratio", (f) => percent(f.hit_ratio), "requests answered without an origin's content"],
  ["Byte hit ratio", (f) => percent(f.byte_hit_ratio), "bytes sent to players by plain hits"],
  ["Saved", (f) => bytes(Math.max(0, f.player_bytes_total - f.origin_bytes_total)), "bytes to players less bytes from origins"],
  ["To players", (f) => bytes(f.player_bytes_total), "since the start"],
  ["From origins", (f) => bytes(f.origin_bytes_total), "since the start"],
  ["Ahead", (f) => bytes(f.ahead_bytes_total), "fetched before a player asked"],
  ["Connections", (f) => String(f.connections), "open, of players"],
  ["First byte", (f) => milliseconds(f.first_byte_ms.p50 || null), "median"],
];

/** Why so many fetches ahead of players run at once. */
const reasons = {
  "told so": "fixed by the setting concurrency", "by the published table": "by the table of the setting concurrency",
  "to begin with": "the number to begin with, nothing was measured yet", "found by probing": "found by trying more and less",
  "beside a player": "fewer while a player plays",
};

let plots, last = null;
const known = new Map();

/** A line for an outage: it is announced once, and the seconds that tick in it are not. */
function outageLine(origin) {
  const parts = { state: h("span"), time: h("span", { "aria-hidden": "true" }), reason: h("span"), ended: 0 };
  parts.line = h("p", null, h("strong", null, origin), parts.state, parts.time, parts.reason);
  byId("outages").append(parts.line);
  return parts;
}

function showOutages(outages) {
  const now = new Set();
  const count = known.size;
  for (const { origin, state, seconds, reason } of outages) {
    now.add(origin);
    if (!known.has(origin)) known.set(origin, outageLine(origin));
    const parts = known.get(origin);
    parts.ended = 0;
    parts.line.dataset.state = state;
    say(parts.state, " has not answered");
    say(parts.time, ` for ${seconds} s`);
    say(parts.reason, ` (${reason}); ${state === "down" ? "what is kept is served" : "it is asked again"}`);
  }
  for (const [origin, parts] of known) {
    if (now.has(origin)) continue;
    if (!parts.ended) {
      parts.ended = Date.now();
      parts.line.dataset.state = "ended";
      say(parts.state, " answers again");
      say(parts.time, "");
      say(parts.reason, "");
    } else if (Date.now() - parts.ended > 12_000) {
      parts.line.remove();
      known.delete(origin);
    }
  }
  byId("outages").hidden = known.size === 0;
  // An outage began or ended.
  if (historyTimer && (count !== known.size || [...known.values()].some((parts) => parts.ended > Date.now() - 1500))) showHistory().catch(() => {});
}

function showFigures({ at, figures, outages }) {
  byId("tiles").replaceChildren(...tiles.map(([name, read, what]) =>
    h("div", { title: what }, h("dt", null, name), h("dd", null, read(figures)))));
  if (last && at > last.at) {
    const seconds = (at - last.at) / 1000;
    const bits = (name) => Math.max(0, ((figures[name] - last.figures[name]) * 8) / seconds);
    plots.rate.add(bits("player_bytes_total"), bits("origin_bytes_total"));
  }
  const waiting = Object.values(figures.waiting_by_lane).reduce((sum, count) => sum + count, 0);
  plots.slots.add(figures.slots_in_use + figures.express_in_use, waiting);
  const lanes = Object.entries(figures.waiting_by_lane).filter(([, count]) => count).map(([lane, count]) => `${count} ${lane}`);
  say(byId("ahead"), `${figures.slots_in_use} of ${figures.slots_limit} slots and ${figures.express_in_use} in the express lane${lanes.length ? `; waiting: ${lanes.join(", ")}` : ""}. `
    + `Ahead of players ${figures.ahead_running} of ${figures.ahead_limit} at once, ${figures.ahead_downloads_limit} of these for downloads: ${reasons[figures.ahead_limit_reason] ?? figures.ahead_limit_reason}.`);
  last = { at, figures };
  showOutages(outages);
}

const pair = (times) => (times.p50 === null ? "–" : `${Math.round(times.p50)} / ${Math.round(times.p99)}`);

function showOrigins({ origins }) {
  replace(byId("origins"), table([
    ["Origin", (row) => row.origin, "grow"],
    ["State", (row) => h("span", { class: `badge state-${row.state}` }, row.state), ""],
    ["Requests", (row) => String(row.requests), "number"], ["Errors", (row) => String(row.errors), "number"],
    ["Bytes", (row) => bytes(row.bytes), "number"], ["Queue", (row) => pair(row.slot_ms), "number"],
    ["Connect", (row) => pair(row.connect_ms), "number"], ["TLS", (row) => pair(row.tls_ms), "number"],
    ["First byte", (row) => pair(row.first_byte_ms), "number"], ["Last byte", (row) => pair(row.last_byte_ms), "number"],
    ["Protocol", (row) => row.protocol ?? "–", ""],
    ["Reused", (row) => (row.reused_percent === null ? "–" : `${Math.round(row.reused_percent)} %`), "number"],
    ["Yielding", (row) => (row.yielding ? `${row.yielding.purpose} ${bytes(row.yielding.window_bytes)}, ${Math.round(row.yielding.queue_ms)} ms` : "–"), "named"],
  ], origins, { empty: "No origin was asked yet.", label: "Origins" }));
}

function shares(name, rows, whole) {
  return h("div", null, h("h3", null, name), rows.length
    ? h("ul", { class: "shares" }, rows.slice(0, 12).map((row) => h("li", null,
      h("span", { class: "url" }, row.name), h("span", { class: "number dim" }, bytes(row.bytes)),
      meter((row.bytes / Math.max(1, whole)) * 100, `${row.name}: ${bytes(row.bytes)}`))))
    : h("p", { class: "dim" }, "Nothing is kept."));
}

function showDisk(disk) {
  say(byId("disk-sum"), `${bytes(disk.used_bytes)} of ${bytes(disk.budget_bytes)}, ${bytes(disk.pinned_bytes)} pinned, ${bytes(disk.free_bytes)} free on the disk`);
  byId("disk").replaceChildren(shares("By kind", disk.kinds, disk.used_bytes), shares("By host", disk.hosts, disk.used_bytes));
}

const DAY = 86_400;
const at = (seconds) => new Date(seconds * 1000).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });

/** A line for each origin that was down, with a mark for each outage. */
function showOutageLine(outages) {
  const now = Date.now() / 1000, rows = new Map();
  for (const outage of outages) rows.set(outage.origin, [...(rows.get(outage.origin) ?? []), outage]);
  const place = byId("outage-line");
  if (!rows.size) return place.replaceChildren(h("p", { class: "dim" }, "None."));
  const share = (time) => Math.max(0, Math.min(100, (1 - (now - time) / DAY) * 100));
  place.replaceChildren(h("ul", { class: "outage-rows" }, [...rows].map(([origin, list]) => {
    const words = list.map((outage) => `${at(outage.start)}, ${outage.end === null ? "lasting for" : "for"} ${clock((outage.end ?? now) - outage.start)}: ${outage.reason}`);
    const line = h("span", { class: "outage-bar", role: "img", "aria-label": `${list.length} outages of ${origin}` },
      list.map((outage, index) => {
        const mark = h("span", { title: words[index], class: outage.end === null ? "lasts" : null });
        const [from, to] = [share(outage.start), share(outage.end ?? now)];
        mark.style.left = `${Math.min(from, 99.6)}%`;
        mark.style.width = `${Math.max(0.4, to - from)}%`;
        return mark;
      }));
    return h("li", null, h("span", { class: "url" }, origin), line, h("span", { class: "dim" }, words.at(-1)));
  })), h("p", { class: "ends dim", "aria-hidden": "true" }, h("span", null, "24 h ago"), h("span", null, "now")));
}

/** Reads the history anew and shows the tier that fits the chosen time. */
async function showHistory() {
  const { tiers, outages } = await api("api/history");
  showOutageLine(outages);
  const span = Number(byId("history-span").value);
  const { step, points } = tiers.find((tier) => ({ 7200: 60, 28800: 300, 86400: 900 })[span] === tier.step);
  const now = Date.now() / 1000, found = new Map(points.map((point) => [point[0], point]));
  const lists = [[], []];
  // What has no entry is a time in which nothing was sent.
  for (let at = (Math.floor(now / step) - span / step) * step; at <= now; at += step) {
    const [, toPlayers = 0, fromOrigins = 0] = found.get(at) ?? [];
    const length = Math.max(1, Math.min(step, now - at));
    lists[0].push([now - at, (toPlayers * 8) / length]);
    lists[1].push([now - at, (fromOrigins * 8) / length]);
  }
  plots.history.show(span, lists);
}

let historyTimer = 0;

export function showNetwork(isVisible) {
  clearInterval(historyTimer);
  if (!isVisible) return;
  showHistory().catch((error) => toast(error.message, true));
  historyTimer = setInterval(() => showHistory().catch(() => {}), 60_000);
}

export function startNetwork() {
  plots = {
    rate: new Plot(byId("plot-network"), {
      series: [{ name: "to players", kind: "one" }, { name: "from origins", kind: "two" }], span: 300, format: rate, label: "Throughput",
    }),
    slots: new Plot(byId("plot-slots"), {
      series: [{ name: "under way", kind: "one" }, { name: "waiting", kind: "two" }], span: 300, format: (value) => String(Math.round(value * 10) / 10), label: "Origin transfers",
    }),
  };
  plots.history = new Plot(byId("plot-history"), {
    series: [{ name: "to players", kind: "one" }, { name: "from origins", kind: "two" }], span: 86_400, format: rate, label: "Throughput of the last day",
  });
  byId("history-span").addEventListener("change", () => showHistory().catch((error) => toast(error.message, true)));
  on("figures", showFigures);
  on("origins", showOrigins);
  on("disk", showDisk);
}
