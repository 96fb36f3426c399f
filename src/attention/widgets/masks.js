// Masks: who may attend to whom, what that does to the weights, and how far information reaches.
import {
  blockMask, causalMask, choice, clamp, count, explorer, fixed, heatmap, list, make,
  paddingMask, prefixMask, presets, range, reach, slider, slidingWindowMask, softmax, toggle, write,
} from "./shared.js";

const SIZES = { padding: "real tokens", window: "window w", prefix: "prefix p", blocks: "block size" };
const OPTIONS = [["all", "none: all may attend"], ["causal", "causal"], ["padding", "padding"],
  ["window", "sliding window"], ["prefix", "prefix"], ["blocks", "blocks"], ["painted", "painted"]];
const presetsFor = (n) => [
  ["Nothing masked", { pattern: "all", causal: false }],
  ["Causal", { pattern: "causal", causal: true }],
  ["Padding", { pattern: "padding", size: Math.min(5, n), causal: false }],
  ["Causal window", { pattern: "window", size: Math.min(3, n), causal: true }],
  ["Prefix", { pattern: "prefix", size: Math.min(3, n), causal: false }],
  ["Causal blocks", { pattern: "blocks", size: Math.min(4, n), causal: true }],
  ["Past without self", { pattern: "painted", causal: false,
    cells: range(n).map((i) => range(n).map((j) => (j < i ? 1 : 0))) }],
];
const KEYS = ["labels", "scores", "cells", "pattern", "size", "causal", "layers"];

// The mask of a pattern, true = may attend; `causal` is combined with &.
function maskOf(n, pattern, size, causal) {
  const mask = pattern === "causal" ? causalMask(n) : pattern === "padding" ? paddingMask(size, n)
    : pattern === "window" ? slidingWindowMask(n, size) : pattern === "prefix" ? prefixMask(n, size)
      : pattern === "blocks" ? blockMask(n, size) : range(n).map(() => Array(n).fill(true));
  return mask.map((row, i) => row.map((open, j) => open && !(causal && j > i)));
}

// After how many layers, at most `layers`, output i can know of input j; -1 if not yet.
function arrivals(mask, layers) {
  const first = mask.map((row) => row.map(() => -1));
  for (let layer = 0; layer <= layers; layer++) {
    reach(mask, layer).forEach((row, i) => row.forEach((yes, j) => {
      if (yes && first[i][j] < 0) first[i][j] = layer;
    }));
  }
  return first;
}

function render({ model, el }) {
  const ex = explorer({ model, el, title: "Masks", name: "masks" });
  const n = ex.get("scores").length;
  // Several traits change together: the pattern and the cells that follow from it.
  function choose(state) {
    const next = Object.fromEntries(["pattern", "size", "causal"].map((key) =>
      [key, state[key] ?? ex.get(key)]));
    next.size = clamp(next.size, 1, n);
    if (next.pattern === "causal") next.causal = true;
    ex.set({ ...state, ...next,
      ...(next.pattern === "painted" ? {} : {
        cells: maskOf(n, next.pattern, next.size, next.causal).map((row) => row.map(Number)) }) });
  }
  const start = presets({ ex: { get: ex.get, set: (state) =>
    (state.cells ? ex.set(state) : choose(state)) }, items: presetsFor(n), keys: KEYS });
  const kind = choice({ label: "pattern", options: OPTIONS, onInput: (pattern) =>
    choose(pattern === "all" ? { pattern, causal: false } : { pattern }) });
  const size = slider({ label: "size", min: 1, max: n, onInput: (x) => choose({ size: x }) });
  const causal = toggle({ label: "and hide the future", onInput: (on) =>
    choose({ causal: on, ...(ex.get("pattern") === "causal" ? { pattern: "all" } : {}) }) });
  const depth = slider({ label: "layers", min: 1, max: 8, onInput: (x) => ex.set({ layers: x }) });
  let brush = true;
  function paint(i, j, first) {
    const cells = ex.get("cells").map((row) => [...row]);
    if (first) brush = !cells[i][j];
    if (Boolean(cells[i][j]) === brush) return;
    cells[i][j] = brush ? 1 : 0;
    ex.set({ cells, pattern: "painted", causal: false });
  }
  const table = (title, options = {}) => {
    const map = heatmap({ label: title, rows: words, columns: words, ...options });
    const node = make("div", {}, make("p", { class: "heading", text: title }), map.node);
    return { ...map, node, title: node.firstChild };
  };
  let [words, drawn, before, after, far] = [[]];
  const tables = make("div", { class: "two" });
  function build() {
    words = range(n).map((i) => String(ex.get("labels")[i] ?? i + 1));
    drawn = table("mask: tap a cell to open or close it", {
      onCell: (i, j) => paint(i, j, true), onDrag: paint });
    after = table("weights with the mask");
    before = table("weights without the mask");
    far = table("reach");
    tables.replaceChildren(drawn.node, after.node, before.node, far.node);
  }
  const legend = make("p", { class: "readline" },
    "✓ may attend, ", make("b", { class: "ahead", text: "↗" }), " may attend to the future, · may not. "
    + "Reach counts layers; 0 is the token itself, – not yet.");
  ex.add(start.node, kind.node, size.node, make("div", { class: "switches" }, causal.node), depth.node,
    tables, legend);

  let shown = "";
  let plain = [];
  function draw() {
    const [labels, scores, cells, pattern, , isCausal, layers] = KEYS.map(ex.get);
    const mask = cells.map((row) => row.map(Boolean));
    const now = JSON.stringify([scores, labels]);
    if (now !== shown) {
      shown = now;
      build();
      plain = scores.map((row) => softmax(row));
      before.set((i, j) => plain[i][j]);
    }
    const weights = scores.map((row, i) => softmax(row.map((x, j) => (mask[i][j] ? x : -Infinity))));
    const first = arrivals(mask, layers);
    const ahead = (i, j) => mask[i][j] && j > i;
    drawn.set((i, j) => (mask[i][j] ? 0.3 : 0), (i, j) => (ahead(i, j) ? "↗" : mask[i][j] ? "✓" : "·"),
      (i, j) => (ahead(i, j) ? "ahead" : mask[i][j] ? "open" : "shut"));
    after.set((i, j) => weights[i][j], (i, j) => (mask[i][j] ? fixed(weights[i][j]) : "0"),
      (i, j) => (ahead(i, j) ? "ahead" : mask[i][j] ? "" : "shut"));
    far.set((i, j) => (first[i][j] < 0 ? 0 : 0.9 - 0.8 * (first[i][j] / 9)),
      (i, j) => (first[i][j] < 0 ? "–" : String(first[i][j])),
      (i, j) => (first[i][j] >= 0 && j > i ? "ahead" : first[i][j] < 0 ? "shut" : ""));
    write(far.title, `reach: after how many layers, of ${layers}`);

    kind.set(pattern);
    const sized = pattern in SIZES;
    write(size.node.firstChild, SIZES[pattern] ?? "size");
    size.enable(sized);
    size.set(clamp(ex.get("size"), 1, n));
    causal.set(isCausal);
    depth.set(layers);
    start.update();

    const empty = range(n).filter((i) => !mask[i].some(Boolean));
    const future = range(n).filter((i) => mask[i].some((open, j) => open && j > i));
    const later = range(n).filter((i) => first[i].some((x, j) => x >= 0 && j > i));
    const open = mask.flat().filter(Boolean).length;
    const name = (rows) => (rows.length > 3 ? count(rows.length, "row")
      : `${rows.length > 1 ? "rows" : "row"} ${list(rows.map((i) => `“${words[i]}”`))}`);
    const known = first[n - 1].filter((x) => x >= 0).length;
    ex.say(`${open} of ${n * n} cells are open. ${future.length
      ? `The future is seen by ${name(future)}.` : later.length ? "No row sees the future."
        : "No row sees the future, in any number of layers."} ${empty.length
      ? `Nothing to attend to in ${name(empty)}: all weights there are 0, and so is the output. ` : ""}`
      + `In ${count(layers, "layer")} the last token, “${words[n - 1]}”, can know of ${known} of ${n}.`);
  }
  return ex.start(draw, KEYS);
}

export default { render };
