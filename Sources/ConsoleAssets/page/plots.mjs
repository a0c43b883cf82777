// Lines over time, as SVG: two dozen points of code do what the page needs.
import { s } from "./dom.mjs";

const HEIGHT = 150, LEFT = 4, RIGHT = 4, TOP = 18, BOTTOM = 20, NARROW = 420;

/** The next round number above a value. */
function ceiling(value) {
  if (!(value > 0)) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 2.5, 5, 10].map((step) => step * power).find((step) => step >= value);
}

/** A plot of the last `span` seconds. */
export class Plot {
  /** `series` are {name, kind}; `format` words a value. */
  constructor(place, { series, span, format, label }) {
    Object.assign(this, { series, span, format, label });
    this.points = series.map(() => []);
    this.marks = [];
    this.width = 600;
    const y = (share) => TOP + (HEIGHT - TOP - BOTTOM) * share;
    this.lines = series.map(({ kind }) => s("path", { class: `line ${kind}`, fill: "none" }));
    this.areas = series.map(({ kind }) => s("path", { class: `area ${kind}` }));
    this.top = s("text", { x: LEFT, y: TOP - 6, class: "axis" });
    this.values = series.map(({ kind }, index) => s("tspan", { class: kind, dx: index ? 14 : 0 }));
    this.marked = s("g", { class: "marks" });
    // What stands at the right edge is moved with it.
    const atEnd = (attributes, ...children) => {
      const made = s("text", { ...attributes, "text-anchor": "end" }, ...children);
      this.atEnd.push(made);
      return made;
    };
    this.atEnd = [];
    this.ago = s("text", { x: LEFT, y: HEIGHT - 5, class: "axis" }, `${span} s ago`);
    this.grid = [0, 0.5, 1].map((share) => s("line", { x1: LEFT, y1: y(share), y2: y(share), class: "grid" }));
    this.image = s("svg", { class: "plot", role: "img" }, this.grid,
      this.areas, this.lines, this.marked, this.top,
      this.ago,
      atEnd({ y: HEIGHT - 5, class: "axis" }, "now"), atEnd({ y: TOP - 6, class: "value" }, this.values));
    place.replaceChildren(this.image);
    this.fit(this.width);
    // Its width is the place's, so that text has the same size on every screen.
    new ResizeObserver(([{ contentRect }]) => { if (contentRect.width > 0) this.fit(contentRect.width); }).observe(place);
  }

  fit(width) {
    this.width = width;
    this.image.setAttribute("viewBox", `0 0 ${width} ${HEIGHT}`);
    for (const line of this.grid) line.setAttribute("x2", width - RIGHT);
    for (const text of this.atEnd) text.setAttribute("x", width - RIGHT);
    // Beside two values there is no room for the axis on a narrow screen.
    this.top.setAttribute("y", width < NARROW ? TOP + 11 : TOP - 6);
    this.draw();
  }

  /** Adds a value for each series; null is a gap. */
  add(...values) {
    const now = performance.now() / 1000;
    values.forEach((value, index) => {
      const points = this.points[index];
      points.push([now, value]);
      while (points.length && points[0][0] < now - this.span - 5) points.shift();
    });
    this.draw();
  }

  /** Shows other points: for each series a list of [seconds ago, value]. */
  show(span, lists) {
    const now = performance.now() / 1000;
    this.span = span;
    this.ago.textContent = span >= 7200 ? `${span / 3600} h ago` : `${span} s ago`;
    this.points = lists.map((list) => list.map(([ago, value]) => [now - ago, value]));
    this.draw();
  }

  /** Marks this moment, as with a stall. */
  mark(kind) {
    this.marks.push([performance.now() / 1000, kind]);
    if (this.marks.length > 100) this.marks.shift();
  }

  clear() {
    this.points.forEach((points) => points.splice(0));
    this.marks.splice(0);
    this.draw();
  }

  draw() {
    const now = performance.now() / 1000;
    const x = (at) => LEFT + (this.width - LEFT - RIGHT) * (1 - (now - at) / this.span);
    const highest = Math.max(0, ...this.points.flat().map(([, value]) => value ?? 0));
    const most = ceiling(highest);
    const y = (value) => HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * (value / most);
    this.points.forEach((points, index) => {
      let line = "", area = "", start = null, last = null;
      const close = () => {
        if (start !== null) area += `L${last.toFixed(1)} ${y(0)}L${start.toFixed(1)} ${y(0)}Z`;
        start = null;
      };
      for (const [at, value] of points) {
        if (at < now - this.span) continue;
        if (value === null) { close(); continue; }
        const point = `${start === null ? "M" : "L"}${x(at).toFixed(1)} ${y(value).toFixed(1)}`;
        if (start === null) start = x(at);
        last = x(at);
        line += point;
        area += point;
      }
      close();
      this.lines[index].setAttribute("d", line);
      this.areas[index].setAttribute("d", area);
    });
    this.marked.replaceChildren(...this.marks.filter(([at]) => at > now - this.span).map(([at, kind]) =>
      s("line", { x1: x(at), x2: x(at), y1: TOP, y2: HEIGHT - BOTTOM, class: `mark ${kind}` })));
    this.top.textContent = highest > 0 ? this.format(most) : "";
    const words = this.series.map(({ name }, index) => {
      const value = this.points[index].at(-1)?.[1];
      return value === null || value === undefined ? "" : `${name ? `${name} ` : ""}${this.format(value)}`;
    });
    words.forEach((text, index) => { this.values[index].textContent = text; });
    this.image.setAttribute("aria-label", `${this.label}: ${words.filter(Boolean).join(", ") || "no data yet"}`);
  }
}
