// A large table of signed numbers, one pixel a cell.
import { clamp } from "./mathematics.js";
import { attribute, make, write } from "./elements.js";
import { ramp } from "./heatmap.js";

// A large table of signed numbers, one pixel a cell, stretched. Arrows move a cursor in it (a grid
// of which only the cell at hand exists), Enter, Space or a tap picks a cell. A value above 1 is left
// open: nothing is painted there.
export function raster({ label, across, down, describe, onPick, onMove = () => {} }) {
  const canvas = make("canvas", { "aria-hidden": "true" });
  const area = make("div", { class: "raster", role: "grid", "aria-label": label });
  const line = make("div", { role: "row" });
  const bands = make("div", { class: "bands" });
  const readout = make("p", { class: "readline", "aria-hidden": "true", text: "\u00a0" });
  const node = make("div", { class: "rasterbox" }, make("p", { class: "down", text: down }), area,
    make("p", { text: across }), readout);
  area.append(canvas, bands, line);
  let [rows, columns] = [1, 1];
  let at = [0, 0];
  let [pixels, values, colours] = [null, null, null];
  const paint = () => {
    if (!pixels || !area.isConnected) return;
    if (!colours) {
      const style = getComputedStyle(area);
      colours = ramp(["--neg", "--zero", "--pos"].map((key) => style.getPropertyValue(key).trim()));
    }
    const words = new Uint32Array(pixels.data.buffer);
    for (let i = 0; i < words.length; i++) words[i] = colours[Math.round((values[i] + 1) * 127.5)];
    canvas.getContext("2d").putImageData(pixels, 0, 0);
  };
  const box = (element, i, j, height = 1, width = 1) => {
    element.style.left = `${(100 * j) / columns}%`;
    element.style.top = `${(100 * i) / rows}%`;
    element.style.width = `${(100 * width) / columns}%`;
    element.style.height = `${(100 * height) / rows}%`;
  };
  // A fresh cell each time, so that a screen reader reads it when focus comes.
  const cursor = (focus) => {
    at = [clamp(at[0], 0, rows - 1), clamp(at[1], 0, columns - 1)];
    const cell = make("span", { class: "cursor", role: "gridcell", tabindex: 0,
      "aria-rowindex": at[0] + 1, "aria-colindex": at[1] + 1, "aria-label": describe(...at) });
    box(cell, ...at);
    line.replaceChildren(cell);
    if (focus) {
      cell.focus({ preventScroll: true });
      write(readout, describe(...at));
    }
  };
  const under = (event) => {
    const bounds = canvas.getBoundingClientRect();
    return [clamp(Math.floor(((event.clientY - bounds.top) / bounds.height) * rows), 0, rows - 1),
      clamp(Math.floor(((event.clientX - bounds.left) / bounds.width) * columns), 0, columns - 1)];
  };
  area.addEventListener("keydown", (event) => {
    const [i, j] = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1],
      Home: [0, -columns], End: [0, columns], PageUp: [-10, 0], PageDown: [10, 0] }[event.key] ?? [];
    if (i !== undefined) {
      at = [at[0] + i, at[1] + j];
      cursor(true);
      onMove(...at);
    } else if (event.key === "Enter" || event.key === " ") onPick(...at);
    else return;
    event.preventDefault();
  });
  area.addEventListener("focusin", () => write(readout, describe(...at)));
  area.addEventListener("pointermove", (event) => write(readout, describe(...under(event))));
  area.addEventListener("pointerleave", () => write(readout, "\u00a0"));
  area.addEventListener("click", (event) => {
    at = under(event);
    cursor(false);
    onPick(...at);
  });
  return {
    node, area, readout,
    go(i, j) { // where the arrows go on from
      if (i === at[0] && j === at[1]) return;
      at = [i, j];
      cursor(line.contains(document.activeElement));
    },
    repaint: () => { colours = null; paint(); },
    set(table, n, d) { // table: n * d numbers in -1..1, row by row
      values = table;
      const resized = n !== rows || d !== columns || !pixels;
      if (resized) {
        [rows, columns] = [n, d];
        canvas.width = d;
        canvas.height = n;
        pixels = new ImageData(d, n);
        attribute(area, "aria-rowcount", n);
        attribute(area, "aria-colcount", d);
      }
      if (resized || !line.firstChild) cursor(line.contains(document.activeElement));
      else attribute(line.firstChild, "aria-label", describe(...at));
      paint();
    },
    mark(kind) {
      const element = make("i", { class: `band ${kind}` });
      bands.append(element);
      return { element, remove: () => element.remove(),
        set(...place) { element.hidden = place[0] < 0 || place[0] >= rows; box(element, ...place); } };
    },
  };
}
