// Elements and words. Whatever comes from outside becomes a text node or an attribute, never markup.

export const byId = (id) => document.getElementById(id);

const SVG = "http://www.w3.org/2000/svg";

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined)
    .map((child) => (child instanceof Node ? child : String(child))));
  return element;
}

/** An element; children that are no nodes become text. */
export const h = (tag, attributes, ...children) =>
  fill(document.createElement(tag), attributes, children);

/** The same for SVG. */
export const s = (tag, attributes, ...children) =>
  fill(document.createElementNS(SVG, tag), attributes, children);

/** Sets the text of an element, and touches nothing where it is the same. */
export function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

let toastTimer = 0;

/** Shows a line for some seconds. */
export function toast(text, isError = false) {
  // Both lines are always there: a screen reader reads what changes in a place that it knows.
  const [line, other] = isError ? [byId("alarm"), byId("toast")] : [byId("toast"), byId("alarm")];
  other.textContent = "";
  line.textContent = text;
  clearTimeout(toastTimer);
  toastTimer = setTimeout(() => { line.textContent = ""; }, isError ? 9000 : 4000);
}

/** Asks before something is done that cannot be undone. */
export function confirmed(text, verb) {
  const dialog = byId("ask");
  byId("ask-text").textContent = text;
  byId("ask-yes").textContent = verb;
  dialog.returnValue = "no";
  dialog.showModal();
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => resolve(dialog.returnValue === "yes"), { once: true });
  });
}

/** Shows a text to copy, and waits until the dialog is closed. */
export function shownText(words, text) {
  const dialog = byId("copy");
  byId("copy-words").textContent = words;
  const field = byId("copy-text");
  field.value = text;
  dialog.showModal();
  field.select();
  return new Promise((resolve) => dialog.addEventListener("close", resolve, { once: true }));
}

/**
 * A button that does one thing at a time and says what went wrong.
 *
 * `subject` is what it acts on, which a screen reader says behind the label.
 */
export function button(label, action, attributes = {}, subject = "") {
  const name = subject ? `${label} ${subject}` : null;
  const made = h("button", { type: "button", class: "small", "aria-label": name, ...attributes }, label);
  made.addEventListener("click", async () => {
    // Not `disabled`, which would take the focus away.
    if (made.ariaDisabled === "true") return;
    made.ariaDisabled = "true";
    try { await action(); } catch (error) { toast(error.message, true); }
    made.ariaDisabled = "false";
  });
  return made;
}

/**
 * Replaces what is in a place, and leaves the focus where it was.
 *
 * That is the control of the same name in the same row, which `data-id` names; of several the one at the same
 * position. Where it is gone, that is the control at the same position.
 */
export function replace(place, ...children) {
  // A click needs the same element when the button goes down and up.
  if (place.querySelector("button:active")) return;
  const controls = () => [...place.querySelectorAll("a[href], button, input, select, summary, [tabindex='0']")];
  const nameOf = (one) => `${one.closest("[data-id]")?.dataset.id ?? ""} ${one.ariaLabel || one.textContent}`;
  const before = controls().indexOf(document.activeElement);
  const name = before < 0 ? "" : nameOf(document.activeElement);
  place.replaceChildren(...children);
  if (before < 0) return;
  const after = controls();
  const same = after.filter((one) => nameOf(one) === name);
  const found = same.includes(after[before]) ? after[before] : same[0];
  (found ?? after[Math.min(before, after.length - 1)])?.focus({ preventScroll: true });
}

/** A table with a row for each item, which `id` names; `columns` are [heading, cell, class]. */
export function table(columns, items, { empty, label, id } = {}) {
  if (!items.length) return h("p", { class: "dim" }, empty ?? "None.");
  const head = h("tr", null, columns.map(([name, , kind]) => h("th", { class: kind, scope: "col" }, name)));
  // On a narrow screen the headings are gone, and the cells show their own.
  const rows = items.map((item) => h("tr", { "data-id": id?.(item) }, columns.map(([name, cell, kind]) =>
    h("td", { class: kind, "data-name": name }, cell(item)))));
  const grid = h("table", { class: "list" }, h("thead", null, head), h("tbody", null, rows));
  return h("div", { class: "scroll", role: "region", tabindex: "0", "aria-label": label }, grid);
}

/** A bar that shows a share. */
export function meter(share, label) {
  const part = h("span");
  part.style.width = `${Math.max(0, Math.min(100, share))}%`;
  return h("span", { class: "meter", role: "img", "aria-label": label }, part);
}

// Words.

export function bytes(count) {
  if (count === null || count === undefined) return "–";
  const units = ["B", "kB", "MB", "GB", "TB", "PB"];
  let value = count, unit = 0;
  while (Math.abs(value) >= 999.5 && unit < units.length - 1) { value /= 1000; unit += 1; }
  return `${value.toFixed(unit === 0 || value >= 99.5 ? 0 : 1)} ${units[unit]}`;
}

export const rate = (bits) => {
  if (bits === null || bits === undefined || Number.isNaN(bits)) return "–";
  if (bits >= 999500) return `${(bits / 1e6).toFixed(bits >= 99.5e6 ? 0 : 1)} Mb/s`;
  return `${Math.round(bits / 1000)} kb/s`;
};

export function milliseconds(value) {
  if (value === null || value === undefined) return "–";
  if (value >= 9950) return `${(value / 1000).toFixed(1)} s`;
  if (value >= 99.5) return `${Math.round(value)} ms`;
  return `${value.toFixed(value >= 9.95 ? 0 : 1)} ms`;
}

export function clock(seconds) {
  if (seconds === null || seconds === undefined) return "–";
  const whole = Math.round(seconds), two = (n) => String(n).padStart(2, "0");
  const [hours, minutes] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60];
  return hours ? `${hours}:${two(minutes)}:${two(whole % 60)}` : `${minutes}:${two(whole % 60)}`;
}

export function ago(seconds) {
  if (!seconds) return "never";
  const gone = Math.max(0, Date.now() / 1000 - seconds);
  if (gone < 60) return "just now";
  if (gone < 3600) return `${Math.floor(gone / 60)} min ago`;
  if (gone < 86400) return `${Math.floor(gone / 3600)} h ago`;
  return `${Math.floor(gone / 86400)} d ago`;
}

export const percent = (share) => (share === null || share === undefined ? "–" : `${Math.round(share * 100)} %`);

/** The last segment of a URL's path. */
export function leaf(url) {
  if (!url) return "–";
  const path = url.split("?")[0];
  return path.slice(path.lastIndexOf("/") + 1) || path;
}
