// Questions to the daemon: why a URL is a hit or a miss, and what keys are made of.
import { button, byId, h, replace, say, shownText, table, toast } from "./dom.mjs";
import { api, target } from "./api.mjs";

/** A member's name as words. */
const words = (name) => name.replace(/[-_]/g, " ");

/** Any value of the API as elements; what is null is left out. */
function shown(value) {
  if (value === true) return "yes";
  if (value === false) return "no";
  if (Array.isArray(value)) {
    if (value.every((item) => Array.isArray(item) && item.length === 2 && item.every(Number.isFinite))) {
      return value.map(([first, end]) => `${first}–${end}`).join(", ") || "none";
    }
    return value.length ? h("ul", null, value.map((item) => h("li", null, shown(item)))) : "none";
  }
  if (value !== null && typeof value === "object") {
    const members = Object.entries(value).filter(([, member]) => member !== null && !(Array.isArray(member) && !member.length));
    return h("dl", { class: "report" }, members.map(([name, member]) =>
      h("div", null, h("dt", null, words(name)), h("dd", null, shown(member)))));
  }
  return String(value ?? "–");
}

const outcomes = {
  hit: "a hit", miss: "a miss", partial: "a partial hit", stale: "a stale answer", revalidated: "a revalidation", offline: "an offline answer",
};

function explained(report) {
  const { next, stored, freshness, origin, ...rest } = report;
  const lead = [`The next request would be ${outcomes[next?.outcome] ?? next?.outcome ?? "answered"}: ${next?.what ?? ""}.`];
  lead.push(stored ? `Kept are ${stored.present} of ${stored.total ?? "an unknown number of"} bytes${stored.pinned ? ", pinned" : ""}.` : "Nothing is kept of it.");
  if (freshness) lead.push(freshness.fresh ? "It is fresh." : `It is not fresh: ${words(String(freshness.reason ?? "expired"))}.`);
  if (origin) lead.push(`Its origin is ${origin.state}: ${origin.reason}.`);
  return h("div", null, h("p", { class: "lead" }, lead.join(" ")), shown({ ...rest, stored, freshness }));
}

/** The words that a rule is given to the daemon by: a rule belongs to its configuration. */
async function accept(item) {
  const host = new URL(item.origin).hostname;
  const rule = `${host}=${item.rule}`;
  await shownText(`To drop “${item.name}” from the keys of ${host}, add this to the configuration and reload it (SIGHUP); or start the daemon with --key-rule.`, `"key-rule": ["${rule}"]`);
}

async function refuse(item) {
  await api(target("api/keys/refuse", { origin: item.origin, name: item.name }), "POST");
  toast(`Refused: “${item.name}” stays in the keys.`);
  await showKeys();
}

const decisions = (item) => h("div", { class: "actions" },
  item.state === "proposed" ? button("Accept", () => accept(item), {}, item.rule) : null,
  item.state === "vetoed" ? null : button("Refuse", () => refuse(item), {}, item.rule));

async function showKeys() {
  const keys = await api("api/keys");
  say(byId("keys-mode"), `mode ${keys.mode}, policy ${keys.policy}`);
  replace(byId("keys"),
    h("h3", null, "Proposals"),
    table([
      ["Origin", (item) => item.origin, "grow"], ["Rule", (item) => h("code", null, item.rule), ""],
      ["State", (item) => item.state, ""], ["Pairs", (item) => String(item.pairs), "number"], ["Paths", (item) => String(item.paths), "number"],
      ["", decisions, "end"],
    ], keys.findings, { empty: "Nothing was learnt of parameters yet.", label: "Proposals" }),
    h("h3", null, "Origins"),
    table([
      ["Pattern", (item) => item.pattern, "grow"], ["Policy", (item) => item.policy ?? "–", "named"], ["Keys", (item) => item.keys ?? "–", "named"],
      ["Rules", (item) => item.rules.join(", ") || "–", "named"],
    ], keys.origins, { empty: "No origin has settings of its own.", label: "Origins with settings" }),
    h("h3", null, "Vetoes"),
    table([
      ["Origin", (item) => item.origin, "grow"], ["Scope", (item) => item.scope, ""], ["Reason", (item) => item.reason, ""],
      ["", (item) => button("Forget", async () => {
        await api(target("api/keys/forget", { origin: item.origin }), "POST");
        await showKeys();
      }, {}, `${item.scope} of ${item.origin}`), "end"],
    ], keys.vetoes, { empty: "No merging was found wrong.", label: "Vetoes" }));
}

const sources = { flag: "flag", environment: "environment variable", file: "configuration file", default: "default" };

function settingsTable(settings, label) {
  return table([
    ["Name", (item) => h("code", null, item.name), ""], ["Value", (item) => item.values.join(", ") || "–", "grow"],
    ["From", (item) => sources[item.source] ?? item.source, "named"],
    ["A change needs", (item) => (item.reload ? "a reload" : "a restart"), "named"],
  ], settings, { empty: "None is given: all have their defaults.", label });
}

async function showSettings() {
  const { settings } = await api("api/settings");
  const given = settings.filter((item) => item.source !== "default");
  const others = settings.filter((item) => item.source === "default");
  const isOpen = byId("settings").querySelector("details")?.open ?? false;
  replace(byId("settings"), settingsTable(given, "Settings that were given"),
    h("details", { class: "choices", open: isOpen }, h("summary", null, `${others.length} with their defaults`),
      settingsTable(others, "Settings with their defaults")));
}

export function showTools(isVisible) {
  if (isVisible) Promise.all([showKeys(), showSettings()]).catch((error) => toast(error.message, true));
}

export function startTools() {
  let asked = 0;
  byId("why-form").addEventListener("submit", (event) => {
    event.preventDefault();
    const url = byId("why-url").value.trim();
    const place = byId("why"), turn = asked += 1;
    // An answer about another URL than the last one would stand below that one.
    place.replaceChildren();
    api(target("api/why", { url })).then(
      (report) => { if (turn === asked) place.replaceChildren(explained(report)); },
      (error) => { if (turn === asked) toast(error.message, true); });
  });
}
