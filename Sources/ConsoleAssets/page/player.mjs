// Plays a URL on the page: with the browser's own HLS, else with hls.js.
import { byId, clock, h, milliseconds, rate, say, toast } from "./dom.mjs";
import { on, playable, refusal, root } from "./api.mjs";
import { Plot } from "./plots.mjs";

const MOST_LINES = 80;
const HLS = "application/vnd.apple.mpegurl";

/** What the player is doing, in numbers. */
const state = { url: null, how: null, hls: null, stalls: 0, stalledFor: 0, switches: 0, since: 0, began: null };

let video, plots;
/** Counts orders to play: what an earlier one still waits for comes too late. */
let orders = 0;

function note(text, kind = "") {
  const list = byId("play-log");
  const time = new Date().toLocaleTimeString([], { hour12: false });
  list.prepend(h("li", { class: kind }, h("time", null, time), text));
  while (list.children.length > MOST_LINES) list.lastChild.remove();
}

function explain(text) {
  const line = byId("play-note");
  line.textContent = text;
}

/** The module of hls.js; null where the daemon has none. */
async function module() {
  try {
    const found = await import("./hls.mjs");
    return found.Hls ?? found.default;
  } catch {
    return null;
  }
}

/**
 * Says that a URL does not play, and why the daemon refused it: players hand on a status at most.
 *
 * `hint` is said unless it was refused.
 */
async function tellReason(words, url, hint = "") {
  const order = orders;
  explain(`${words}.${hint}`);
  try {
    const answer = await fetch(url, { credentials: "same-origin", referrerPolicy: "no-referrer" });
    if (answer.ok) return await answer.body?.cancel();
    const reason = await refusal(answer);
    if (order === orders) explain(`${words}: ${reason}`);
  } catch {
    // The daemon is away, which the head of the page says.
  }
}

/** Whether a URL is that of one file, which every browser plays. */
const isFile = (url) => /\.(mp4|m4v|webm|mp3|m4a|mov)$/i.test(new URL(url, root).pathname);

function stop() {
  state.hls?.destroy();
  state.hls = null;
  video.removeAttribute("src");
  video.load();
  Object.assign(state, { url: null, how: null, stalls: 0, stalledFor: 0, switches: 0, since: 0, began: null });
  plots.buffer.clear();
}

/** Plays an origin's URL, or a path or URL of the daemon. */
export async function play(url, how = byId("play-with").value) {
  const order = orders += 1;
  stop();
  explain("");
  const place = playable(url);
  const knowsHLS = video.canPlayType(HLS) !== "" || isFile(url);
  state.url = url;
  state.began = performance.now();
  if (how === "native" || (how === "auto" && knowsHLS)) {
    if (!knowsHLS) explain("This browser says that it cannot play HLS itself; hls.js may.");
    state.how = "browser";
    video.src = place;
  } else {
    const Hls = await module();
    // Two players on one element would go on fetching, one of them with nothing that ends it.
    if (order !== orders) return;
    if (!Hls) {
      return explain("This daemon has no hls.js, which this browser needs: start it with --console-player FILE, or run make setup for a build.");
    }
    if (!Hls.isSupported()) return explain("This browser has no Media Source Extensions, which hls.js needs.");
    startHls(Hls, place.href);
  }
  note(`plays with ${state.how}`);
  // Without sound a page may begin by itself.
  video.play().catch((error) => {
    if (error.name === "NotAllowedError") explain("The browser waits for a click: press play.");
  });
}

function startHls(Hls, url) {
  state.how = "hls.js";
  const hls = new Hls({ enableWorker: true });
  state.hls = hls;
  hls.on(Hls.Events.LEVEL_SWITCHED, (_, { level }) => {
    const variant = hls.levels[level];
    state.switches += 1;
    note(`variant ${words(variant)}`, "switch");
    plots.buffer.mark("switch");
  });
  hls.on(Hls.Events.ERROR, (_, data) => {
    note(`${data.fatal ? "fatal error" : "error"}: ${data.details}`, data.fatal ? "bad" : "");
    if (!data.fatal) return;
    const words = `hls.js gave up: ${data.details}${data.response?.code ? `, status ${data.response.code}` : ""}`;
    if (data.type !== "networkError") return explain(`${words}.`);
    tellReason(words, data.url ?? data.context?.url ?? url);
  });
  hls.loadSource(url);
  hls.attachMedia(video);
}

const words = (variant) => (variant
  ? [variant.height ? `${variant.width}×${variant.height}` : null, variant.bitrate ? rate(variant.bitrate) : null].filter(Boolean).join(", ") || variant.name || "without a size or a rate"
  : "–");

/** Seconds of media that are ahead of the playing position. */
function buffered() {
  for (let i = 0; i < video.buffered.length; i += 1) {
    if (video.buffered.start(i) <= video.currentTime + 0.3 && video.buffered.end(i) > video.currentTime) {
      return video.buffered.end(i) - video.currentTime;
    }
  }
  return 0;
}

function watch() {
  video.addEventListener("waiting", () => {
    if (video.seeking || video.readyState === 0 || !state.url || state.first === undefined) return;
    state.stalls += 1;
    state.since = performance.now();
    note("stalls", "bad");
    plots.buffer.mark("stall");
  });
  video.addEventListener("playing", () => {
    if (state.first === undefined && state.began !== null) {
      state.first = performance.now() - state.began;
      note(`first frame after ${milliseconds(state.first)}`);
    }
    if (!state.since) return;
    const gone = performance.now() - state.since;
    state.stalledFor += gone;
    state.since = 0;
    note(`goes on after ${milliseconds(gone)}`);
  });
  video.addEventListener("emptied", () => { state.first = undefined; });
  video.addEventListener("resize", () => {
    if (state.how !== "browser" || !video.videoHeight) return;
    state.switches += 1;
    note(`picture ${video.videoWidth}×${video.videoHeight}`, "switch");
    plots.buffer.mark("switch");
  });
  video.addEventListener("ended", () => note("ended"));
  video.addEventListener("error", () => {
    if (!state.url || state.how !== "browser" || !video.error) return;
    note(`error ${video.error.code}: ${video.error.message || "the browser cannot play this"}`, "bad");
    tellReason("The browser cannot play this", video.currentSrc, " The requests below show what the daemon answered.");
  });
}

const facts = [
  ["Player", () => state.how ?? "–"],
  ["Picture", () => (video.videoHeight ? `${video.videoWidth}×${video.videoHeight}` : "–")],
  ["Variant", () => (state.hls ? words(state.hls.levels?.[state.hls.currentLevel]) : "–")],
  ["Buffer", () => (state.url ? `${buffered().toFixed(1)} s` : "–")],
  ["Estimate", () => (state.hls ? rate(state.hls.bandwidthEstimate) : "–")],
  ["First frame", () => milliseconds(state.first)],
  ["Stalls", () => (state.stalls ? `${state.stalls}, ${(state.stalledFor / 1000).toFixed(1)} s` : "0")],
  ["Switches", () => String(Math.max(0, state.switches - 1))],
  ["Position", () => (state.url && Number.isFinite(video.duration) ? `${clock(video.currentTime)} / ${clock(video.duration)}` : clock(video.currentTime))],
  ["Frames lost", () => {
    const quality = video.getVideoPlaybackQuality?.();
    return quality?.totalVideoFrames ? `${quality.droppedVideoFrames} / ${quality.totalVideoFrames}` : "–";
  }],
];

export function startPlayer() {
  video = byId("video");
  const values = facts.map(([name]) => {
    const value = h("dd", { "data-fact": name }, "–");
    byId("play-facts").append(h("div", null, h("dt", null, name), value));
    return value;
  });
  plots = {
    buffer: new Plot(byId("plot-buffer"), {
      series: [{ name: "", kind: "one" }], span: 120, format: (value) => `${value < 10 ? value.toFixed(1) : Math.round(value)} s`, label: "Buffer",
    }),
    rate: new Plot(byId("plot-rate"), {
      series: [{ name: "from here", kind: "one" }, { name: "from origins", kind: "two" }], span: 120, format: rate, label: "Throughput to players",
    }),
  };
  watch();
  setInterval(() => {
    facts.forEach(([, read], index) => say(values[index], read()));
    plots.buffer.add(state.url ? buffered() : null);
  }, 500);
  let last = null;
  on("figures", ({ at, figures }) => {
    if (last && at > last.at) {
      const seconds = (at - last.at) / 1000;
      const bits = (name) => Math.max(0, ((figures[name] - last.figures[name]) * 8) / seconds);
      plots.rate.add(bits("player_bytes_total"), bits("origin_bytes_total"));
    }
    last = { at, figures };
  });
  byId("play-form").addEventListener("submit", (event) => {
    event.preventDefault();
    play(byId("play-url").value.trim()).catch((error) => toast(error.message, true));
  });
}
