// Lines over an axis.
import { clamp } from "./mathematics.js";
import { attribute, make, maths, svg } from "./elements.js";

// Lines over an axis. The drawing stretches; strokes and words do not.
// xTicks, yTicks: [[place in 0..1, words], ...]
export function chart({ label, xTicks = [], yTicks = [], xLabel = "", yLabel = "", height = 160 }) {
  // Ten thousand units each way: whole numbers are written faster than fractions.
  const drawing = svg("svg", { viewBox: "0 0 10000 10000", preserveAspectRatio: "none",
    "aria-hidden": "true" }, svg("path", { class: "ground", d: "M0 0H10000V10000H0Z" }));
  const ticks = (places, axis, side) => make("div", { class: `ticks ${axis}` },
    ...places.map(([place, text]) => make("span", { text, style: `${side}:${100 * place}%` })));
  for (const [place] of yTicks) drawing.append(svg("path", { class: "gridline",
    d: `M0 ${Math.round(1e4 * (1 - place))}H10000` }));
  const area = make("div", { class: "area", style: `height:${height}px` },
    drawing, ticks(yTicks, "y", "bottom"), ticks(xTicks, "x", "left"));
  const node = make("div", { class: "chart", role: "img", "aria-label": label },
    make("p", { class: "axis" }, maths(yLabel)), area,
    make("p", { class: "axis x" }, maths(xLabel)));
  const x = (value) => Math.round(1e4 * value);
  const y = (value) => Math.round(1e4 * (1 - clamp(value, -0.02, 1.02)));
  return {
    node, area, drawing, x, y,
    describe: (text) => attribute(node, "aria-label", text),
    line(colour, style = "") {
      const path = svg("path", { class: `curve ${style}`, style: `--c:var(--c${colour % 8})` });
      drawing.append(path);
      return { path, remove: () => path.remove(), set(points) { // points in 0..1
        let d = "";
        for (const [px, py] of points) d += `${d ? "L" : "M"}${x(px)} ${y(py)}`;
        attribute(path, "d", d);
      } };
    },
    dot(colour) {
      const path = svg("path", { class: "dot", style: `--c:var(--c${colour % 8})` });
      drawing.append(path);
      return { remove: () => path.remove(),
        set: (px, py) => attribute(path, "d", `M${x(px)} ${y(py)}h0`) };
    },
    marker() {
      const path = svg("path", { class: "marker", d: "M0 0V10000" });
      drawing.append(path);
      return { set: (px) => path.setAttribute("d", `M${x(px)} 0V10000`) };
    },
  };
}
