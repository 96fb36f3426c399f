// A plane with arrows, points and handles that can be dragged.
import { clamp, range } from "./mathematics.js";
import { short } from "./words.js";
import { attribute, make, svg, write } from "./elements.js";

// A square of the plane from -reach to reach, with points to drag: with a finger, a mouse, or the
// arrow keys.
export function plane({ title, reach }) {
  const spot = (x) => 100 * ((x + reach) / (2 * reach));
  const grid = range(2 * reach + 1).map((i) => spot(i - reach))
    .map((at) => `M${at} 0V100M0 ${at}H100`).join("");
  const under = svg("g");
  const drawing = svg("svg", { viewBox: "0 0 100 100", "aria-hidden": "true" },
    svg("path", { class: "gridline", d: grid }),
    svg("path", { class: "axisline", d: "M50 0V100M0 50H100" }), under);
  const points = make("div", { class: "points" });
  const area = make("div", { class: "plane" }, drawing, points);
  const node = make("div", {}, make("p", { class: "heading", text: title }), area);
  const added = [];
  const put = (element, parent = under) => {
    added.push(element);
    parent.append(element);
    return element;
  };
  const round = (x) => clamp(Math.round(x * 100) / 100, -reach, reach);
  const move = (element, [x, y]) => {
    element.style.left = `${spot(x)}%`;
    element.style.top = `${100 - spot(y)}%`;
  };
  const at = ([x, y]) => `${spot(x).toFixed(2)} ${(100 - spot(y)).toFixed(2)}`;
  return {
    node,
    clear: () => added.splice(0).forEach((element) => element.remove()),
    polygon() {
      const path = svg("path", { class: "hull" });
      drawing.insertBefore(path, under);
      return { set: (points) => attribute(path, "d", `M${points.map(at).join("L")}Z`) };
    },
    arrow(colour, kind = "") {
      const path = put(svg("path", { class: `ray ${kind}`, style: `--c:var(--c${colour % 8})` }));
      return { set(from, to, thickness) {
        attribute(path, "d", `M${at(from)}L${at(to)}`);
        path.style.strokeWidth = `${thickness.toFixed(2)}px`;
      } };
    },
    point(kind) {
      const mark = put(svg("path", { class: `spot ${kind}` }));
      const words = make("span", { class: "name" });
      const element = put(make("span", { class: "at up", "aria-hidden": "true" }, words), points);
      return { set([x, y], text) {
        const [cx, cy] = [spot(x), 100 - spot(y)];
        attribute(mark, "d", `M${[[cx - 3.5, cy], [cx, cy - 3.5], [cx + 3.5, cy], [cx, cy + 3.5]]
          .map((corner) => corner.map((c) => c.toFixed(2)).join(" ")).join("L")}Z`);
        move(element, [x, y]);
        write(words, text);
      } };
    },
    handle({ name, colour, mark = "", onMove }) {
      let here = [0, 0];
      let held = null;
      const words = make("span", { class: "name" });
      const element = put(make("button", { type: "button", class: `handle ${name}`,
        style: `--c:var(--c${colour % 8})`, on: {
          keydown: (event) => {
            const step = event.shiftKey ? 0.5 : 0.1;
            const [x, y] = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1],
              ArrowDown: [0, -1] }[event.key] ?? [];
            if (x === undefined) return;
            event.preventDefault();
            onMove([round(here[0] + x * step), round(here[1] + y * step)]);
          },
          pointerdown: (event) => {
            if (event.button) return;
            element.setPointerCapture(event.pointerId);
            held = area.getBoundingClientRect();
          },
          pointermove: (event) => {
            if (!held) return;
            onMove([round((((event.clientX - held.left) / held.width) * 2 - 1) * reach),
              round((1 - ((event.clientY - held.top) / held.height) * 2) * reach)]);
          },
          pointerup: () => { held = null; },
          pointercancel: () => { held = null; },
        } }, make("span", { text: mark }), words), points);
      return { set(p, text) {
        here = p;
        move(element, p);
        write(words, text);
        element.classList.toggle("up", p[1] > 0);
        attribute(element, "aria-label",
          `${name} ${text} at ${short(p[0], 2)}, ${short(p[1], 2)}; arrow keys move it`);
      } };
    },
  };
}
