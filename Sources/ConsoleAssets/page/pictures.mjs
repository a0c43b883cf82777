// Pictures of titles: the daemon's where it makes them, else the title's initial.
import { h } from "./dom.mjs";
import { root } from "./api.mjs";

const RETRY = 60_000;
let known = new Map(), areOn = false;
// One at a time: a browser has few connections to a host, and the daemon makes one at a time.
let turn = Promise.resolve();

/** Loads a picture, and puts it in the place of the initial. */
function load(entry, id) {
  turn = turn.then(() => new Promise((resolve) => {
    if (known.get(id) !== entry) return resolve();
    const image = h("img", { alt: "", width: 96, height: 54 });
    image.addEventListener("load", () => { entry.frame.replaceChildren(image); resolve(); });
    image.addEventListener("error", () => { entry.failed = Date.now(); resolve(); });
    image.src = new URL(`api/titles/${encodeURIComponent(id)}/picture`, root);
  }));
}

/** A colour that is always the same for a title. */
const hue = (id) => [...id].reduce((sum, letter) => (sum * 31 + letter.charCodeAt(0)) % 360, 7);

function placeholder(title) {
  const initial = [...(title.name.trim() || "?")][0].toLocaleUpperCase();
  const frame = h("span", { class: "frame", "aria-hidden": "true" }, h("span", { class: "initial" }, initial));
  frame.style.setProperty("--hue", hue(title.id));
  return frame;
}

export const pictures = {
  /** Forgets titles that are not listed any more. */
  begin(titles, on) {
    areOn = on === true;
    const listed = new Set(titles.map((title) => title.id));
    known = new Map([...known].filter(([id]) => listed.has(id)));
  },

  /** The frame of a title; the same element each time, so that a picture stays. */
  of(title) {
    let entry = known.get(title.id);
    if (!entry) known.set(title.id, entry = { frame: placeholder(title), failed: 0, asked: false });
    // Without a stored segment there is none: each question would be a 404.
    const isStored = title.percent > 0 || title.kept_seconds > 0;
    if (areOn && isStored && (!entry.asked || (entry.failed && Date.now() - entry.failed > RETRY))) {
      entry.asked = true;
      entry.failed = 0;
      load(entry, title.id);
    }
    return entry.frame;
  },
};
