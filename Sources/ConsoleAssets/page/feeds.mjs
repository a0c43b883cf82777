// Feeds: which item each viewer sees, and what is ready around it.
import { button, byId, bytes, confirmed, h, replace, toast } from "./dom.mjs";
import { api } from "./api.mjs";

/** The colours of states; the others have none. */
const looks = { ready: "hit", whole: "hit", fetching: "ahead", reading: "ahead", dead: "failed" };

function item(member, active) {
  const words = [member.state, bytes(member.bytes), `${member.seconds} s`, member.height ? `height ${member.height}` : "", member.reason ?? ""];
  return h("li", { class: `is-${looks[member.state] ?? "passed"}`, title: words.filter(Boolean).join(", "), "aria-current": member.index === active ? "true" : null },
    h("span", { class: "badge" }, String(member.index)), h("span", { class: "dim" }, ` ${member.state}`));
}

function row(feed) {
  const path = `api/feeds/${encodeURIComponent(feed.name)}`;
  const window = feed.window.toSorted((one, other) => one.index - other.index);
  const go = (index, direction) => button(direction === "forward" ? "Next" : "Back", async () => {
    await api(`${path}/position?index=${index}&direction=${direction}`, "POST");
    await showFeeds();
  }, { disabled: index < 0 || index >= feed.entries }, feed.name);
  return h("article", { class: "item", "data-id": feed.name },
    h("div", { class: "named" }, h("strong", null, feed.name),
      feed.paused ? h("span", { class: "badge" }, `paused: ${feed.paused}`) : null,
      h("span", { class: "dim" }, `index ${feed.index}, ${feed.entries} entries, ${feed.direction}, ${bytes(feed.bytesFetched)} fetched, ${bytes(feed.bytesWasted)} never played`)),
    h("ol", { class: "window" }, window.map((member) => item(member, feed.index))),
    feed.faults.length ? h("p", { class: "error" }, feed.faults.map((fault) => `item ${fault.index}: ${fault.reason}`).join("; ")) : null,
    h("div", { class: "actions" }, go(feed.index - 1, "backward"), go(feed.index + 1, "forward"),
      button("End", async () => {
        if (!(await confirmed(`End the feed “${feed.name}”? What was fetched stays.`, "End"))) return;
        await api(path, "DELETE");
        await showFeeds();
      }, { class: "small danger" }, feed.name)));
}

/** Reads all feeds anew. */
export async function showFeeds() {
  const feeds = await api("api/feeds");
  replace(byId("feeds"), ...(feeds.length ? feeds.map(row)
    : [h("p", { class: "dim" }, "No feeds. An application orders one with PUT /api/feeds/<name>.")]));
}

export function startFeeds(isShown) {
  setInterval(() => {
    // What somebody is about to press stays where it is.
    if (isShown() && !document.hidden && !byId("feeds").contains(document.activeElement)) showFeeds().catch(() => {});
  }, 2000);
  byId("feed-form").addEventListener("submit", (event) => {
    event.preventDefault();
    const name = byId("feed-name").value.trim();
    const entries = byId("feed-entries").value.split("\n").map((line) => line.trim()).filter(Boolean);
    api(`api/feeds/${encodeURIComponent(name)}`, "PUT", { "Content-Type": "application/json" }, JSON.stringify({ entries }))
      .then(showFeeds).then(() => event.target.reset(), (error) => toast(error.message, true));
  });
}
