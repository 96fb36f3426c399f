// A table of numbers as colours, of which each cell is an element.
import { clamp, dot } from "./mathematics.js";
import { fixed } from "./words.js";
import { attribute, make, write } from "./elements.js";

// A table of numbers as colours. Each cell is an element: arrows move, the value is its text.
// onCell(i, j, event) runs on click, Enter or Space; onDrag paints along a drag. A value below
// `least` is shown by its colour and a dot; focus and hover tell the number.
export function heatmap({ label, rows, columns, corner = "query", signed = false, digits = 2,
  least = 0, onCell = null, onDrag = null }) {
  const cells = [];
  let at = [0, 0];
  let dragging = false;
  const where = (node) => {
    const cell = node?.closest?.(".tile");
    return cell && grid.contains(cell) ? [Number(cell.dataset.i), Number(cell.dataset.j)] : null;
  };
  const go = (i, j) => {
    cells[at[0]][at[1]].node.tabIndex = -1;
    at = [clamp(i, 0, rows.length - 1), clamp(j, 0, columns.length - 1)];
    cells[at[0]][at[1]].node.tabIndex = 0;
    cells[at[0]][at[1]].node.focus();
  };
  function name(cell) { // the focused cell is read out with its number, also where a dot stands
    cell.named = least > 0;
    if (cell.named) attribute(cell.node, "aria-label", cell.said);
  }
  const MOVES = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
  const grid = make("div", { class: "heat", role: "grid",
    "aria-label": label, style: `--n:${columns.length};--rows:${rows.length}`, on: {
      keydown: (event) => {
        const place = where(event.target);
        if (!place) return;
        const move = MOVES[event.key];
        if (move) go(place[0] + move[0], place[1] + move[1]);
        else if (event.key === "Home") go(place[0], 0);
        else if (event.key === "End") go(place[0], columns.length - 1);
        else if ((event.key === "Enter" || event.key === " ") && onCell) onCell(...place, event);
        else return;
        event.preventDefault();
      },
      focusin: (event) => {
        const place = where(event.target);
        if (place) {
          cells[at[0]][at[1]].node.tabIndex = -1;
          at = place;
          event.target.tabIndex = 0;
          name(cells[at[0]][at[1]]);
          point(place);
        }
      },
      focusout: (event) => {
        const place = where(event.target);
        if (place) {
          cells[place[0]][place[1]].named = false;
          event.target.removeAttribute("aria-label");
        }
      },
      pointerover: (event) => point(where(event.target)),
      pointerleave: () => point(null),
      click: (event) => {
        const place = where(event.target);
        if (place && onCell && !(onDrag && event.detail)) onCell(...place, event);
      },
      pointerdown: (event) => {
        const place = where(event.target);
        if (!place || !onDrag || event.button) return;
        event.target.releasePointerCapture?.(event.pointerId);
        dragging = true;
        cells[place[0]][place[1]].node.focus();
        onDrag(...place, true);
        event.preventDefault();
      },
      pointermove: (event) => {
        if (!dragging) return;
        if (!event.buttons) { dragging = false; return; }
        const place = where(document.elementFromPoint(event.clientX, event.clientY));
        if (place) onDrag(...place, false);
      },
      pointerup: () => { dragging = false; },
    } });
  const readout = make("p", { class: "readline", "aria-hidden": "true" });
  let pointed = null;
  function point(place) {
    pointed = place;
    write(readout, place ? `${rows[place[0]]} → ${columns[place[1]]}: `
      + `${cells[place[0]][place[1]].said}` : "\u00a0");
  }
  // The colours lie under the cells, one pixel of a stretched picture each.
  const canvas = make("canvas", { width: columns.length, height: rows.length, "aria-hidden": "true" });
  const pixels = new ImageData(columns.length, rows.length);
  const dots = new Uint32Array(pixels.data.buffer);
  let [colours, dark] = [null, 0.5];
  function paint() { // nothing to paint with until the grid is on a page, which gives it its colours
    if (!colours && grid.isConnected) {
      const style = getComputedStyle(grid);
      colours = ramp((signed ? ["--neg", "--zero", "--pos"] : ["--zero", "--pos"])
        .map((key) => style.getPropertyValue(key).trim()));
      dark = Number(style.getPropertyValue("--thr"));
    }
    if (!colours) return;
    cells.forEach((row, i) => row.forEach((cell, j) => {
      dots[i * row.length + j] = colours[cell.shade];
      const x = cell.shade / 255;
      const look = `tile ${cell.kind}${(signed ? Math.abs(2 * x - 1) : x) > dark ? " deep" : ""}`;
      if (look !== cell.look) cell.node.className = cell.look = look;
    }));
    canvas.getContext("2d").putImageData(pixels, 0, 0);
  }
  grid.addEventListener("theme", () => { colours = null; paint(); });
  new ResizeObserver(() => { if (!colours) paint(); }).observe(grid);
  grid.append(canvas, make("div", { role: "row", class: "cells" },
    make("span", { class: "corner", role: "columnheader" },
      make("span", { class: "unseen", text: corner })),
    ...columns.map((text) => make("span", { class: "top", role: "columnheader" },
      make("b", { text, title: text })))));
  rows.forEach((text, i) => {
    const line = make("div", { role: "row", class: "cells" },
      make("span", { class: "side", role: "rowheader", text, title: text }));
    cells.push(columns.map((_, j) => {
      const words = document.createTextNode("");
      const node = make("span", { class: "tile", role: "gridcell", tabindex: i || j ? -1 : 0,
        "data-i": i, "data-j": j }, words);
      line.append(node);
      return { node, words, shade: 0, shown: "", said: "", kind: "", look: "", named: false };
    }));
    grid.append(line);
  });
  write(readout, "\u00a0");
  const node = make("div", { class: `heatbox${columns.length > 7 ? " dense" : ""}` }, grid, readout);
  return {
    node, grid,
    // value(i, j) in [0, 1] (or [-1, 1] when signed); text(i, j) and kind(i, j) are optional.
    set(value, text = (i, j) => fixed(value(i, j), digits), kind = () => "") {
      for (let i = 0; i < rows.length; i++) {
        for (let j = 0; j < columns.length; j++) {
          const cell = cells[i][j];
          const x = value(i, j);
          cell.shade = Math.round(255 * clamp(signed ? (x + 1) / 2 : x, 0, 1));
          cell.said = text(i, j);
          const shown = least && x < least ? "·" : cell.said;
          if (shown !== cell.shown) cell.words.data = cell.shown = shown;
          if (cell.named) name(cell);
          cell.kind = kind(i, j);
        }
      }
      paint();
      if (pointed) point(pointed);
    },
    mark(i, j) {
      for (const row of cells) for (const cell of row) {
        const on = cell === cells[i]?.[j];
        if (on !== (cell.node.getAttribute("aria-selected") === "true")) {
          cell.node.setAttribute("aria-selected", on);
        }
      }
    },
  };
}

// 256 colours through two stops or three, mixed in OKLab as the style sheet's color-mix does.
export function ramp(stops) {
  const labs = stops.map((hex) => {
    const full = hex.length === 4 ? [...hex.slice(1)].map((c) => c + c).join("") : hex.slice(1);
    const [r, g, b] = [0, 2, 4].map((i) => parseInt(full.slice(i, i + 2), 16) / 255)
      .map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
    const [l, m, s] = [[0.4122214708, 0.5363325363, 0.0514459929],
      [0.2119034982, 0.6806995451, 0.1073969566], [0.0883024619, 0.2817188376, 0.6299787005]]
      .map((row) => Math.cbrt(dot(row, [r, g, b])));
    return [0.2104542553 * l + 0.793617785 * m - 0.0040720468 * s,
      1.9779984951 * l - 2.428592205 * m + 0.4505937099 * s,
      0.0259040371 * l + 0.7827717662 * m - 0.808675766 * s];
  });
  return Uint32Array.from({ length: 256 }, (_, i) => {
    const t = (i / 255) * (labs.length - 1);
    const at = Math.min(Math.floor(t), labs.length - 2);
    const [from, to, x] = [labs[at], labs[at + 1], t - at];
    const [L, a, b] = from.map((value, c) => value + (to[c] - value) * x);
    const [l, m, s] = [L + 0.3963377774 * a + 0.2158037573 * b,
      L - 0.1055613458 * a - 0.0638541728 * b, L - 0.0894841775 * a - 1.291485548 * b]
      .map((value) => value ** 3);
    const bytes = [[4.0767416621, -3.3077115913, 0.2309699292],
      [-1.2684380046, 2.6097574011, -0.3413193965], [-0.0041960863, -0.7034186147, 1.707614701]]
      .map((row) => clamp(dot(row, [l, m, s]), 0, 1))
      .map((c) => (c <= 0.0031308 ? 12.92 * c : 1.055 * c ** (1 / 2.4) - 0.055))
      .map((c) => Math.round(255 * c));
    return (255 << 24) | (bytes[2] << 16) | (bytes[1] << 8) | bytes[0];
  });
}
