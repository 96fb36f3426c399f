// AttentionView: the weights of any model, all heads small, one large, and lines between words.
import {
  attribute, clamp, count, explorer, fixed, list, make, onTheme, presets, ramp, range, raster, svg,
  toggle, write,
} from "./shared.js";

const KEYS = ["layer", "head", "query", "key", "small"];
const SMALL = 48; // points a side, at most, of a map among all heads
const LINES = 200;
const ARROWS = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };

// { shape, data: base64 of little-endian uint16, 65535 for 1 } -> { shape, values: 0..65535 }
function unpack({ shape, data }) {
  const text = atob(data);
  const values = new Uint16Array(text.length / 2);
  for (let i = 0; i < values.length; i++) {
    values[i] = text.charCodeAt(2 * i) | (text.charCodeAt(2 * i + 1) << 8);
  }
  return { shape, values };
}
// All maps side by side, `gap` points apart: each point holds the largest weight that it covers, so
// that no large weight is lost; -1 between the maps.
function overview({ shape: [layers, heads, nq, nk], values }) {
  const [tall, wide] = [Math.min(nq, SMALL), Math.min(nk, SMALL)];
  const gap = 1 + (Math.max(tall, wide) >> 4);
  const width = heads * (wide + gap);
  const points = new Int32Array(layers * (tall + gap) * width).fill(-1);
  const column = Int32Array.from({ length: nk }, (_, j) => Math.floor((j * wide) / nk));
  let from = 0;
  for (let layer = 0; layer < layers; layer++) {
    for (let head = 0; head < heads; head++) {
      for (let i = 0; i < nq; i++) {
        const start = (layer * (tall + gap) + Math.floor((i * tall) / nq)) * width
          + head * (wide + gap);
        for (let j = 0; j < nk; j++, from++) {
          const at = start + column[j];
          if (values[from] > points[at]) points[at] = values[from];
        }
      }
    }
  }
  return { points, width, height: layers * (tall + gap) };
}
// Spaces, line ends and nothing are told; a word that comes twice, with its position.
const visible = (text) => (text === "" ? "(empty)" : text.trim() ? text
  : text.replace(/\n/g, "↵").replace(/\s/g, "␣"));
const naming = (words) => {
  const times = new Map();
  for (const word of words) times.set(word, (times.get(word) ?? 0) + 1);
  return words.map((word, i) => `“${visible(word)}”${times.get(word) > 1 ? ` (${i})` : ""}`);
};
// The pairs [query, key, weight] to draw: of one query, of one key, one pair, or the largest of all.
function pairs(weight, nq, nk, query, key) {
  const found = [];
  for (const i of query < 0 ? range(nq) : [query]) {
    for (const j of key < 0 ? range(nk) : [key]) {
      if (weight(i, j) >= 0.005) found.push([i, j, weight(i, j)]);
    }
  }
  return found.sort((a, b) => b[2] - a[2]).slice(0, LINES);
}
function sentence(weight, nq, nk, query, key, queries, keys) {
  const found = pairs(weight, nq, nk, query, key);
  if (query >= 0 && key >= 0) {
    return `${queries[query]} gives ${fixed(weight(query, key), 3)} to ${keys[key]}`;
  }
  if (query < 0 && key < 0) {
    return found.length ? `the largest weight is ${fixed(found[0][2])}, from ${
      queries[found[0][0]]} to ${keys[found[0][1]]}` : "no weight is as large as 0.005";
  }
  const parts = found.slice(0, 3).map(([i, j, w]) =>
    `${fixed(w)} ${query < 0 ? `from ${queries[i]}` : `to ${keys[j]}`}`);
  return `${query < 0 ? `${keys[key]} gets` : `${queries[query]} gives`} ${
    parts.length ? list(parts) : "next to nothing"}`;
}

function render({ model, el }) {
  const ex = explorer({ model, el, title: "Attention view", name: "attention_view" });
  const start = presets({ ex, items: [], keys: KEYS, label: "Again" });
  const strong = toggle({ label: "draw small weights stronger (by their square root)",
    onInput: (small) => ex.set({ small }) });
  start.node.prepend(strong.node);
  const gallery = make("div", { class: "scroll heads-of-all" });
  const title = make("p", { class: "heading" });
  const table = raster({ label: "weights of the chosen head, queries down, keys across",
    across: "keys", down: "queries", describe: (i, j) => describe(i, j),
    onPick: (query, key) => ex.set({ query, key }) });
  const rowBand = table.mark("second");
  const columnBand = table.mark("second");
  const words = make("div", { class: "scroll words" });
  const hint = make("p", { class: "readline", text: "Queries stand left and give their weight; keys "
    + "stand right and get it. Press a word, or go through the words with the arrow keys; Escape "
    + "shows the largest weights of the head." });
  ex.add(start.node, gallery, make("div", { class: "two" },
    make("div", {}, title, table.node), make("div", {}, words)), hint);

  // What is drawn: made anew when the weights or the words are others.
  let [data, texts, shapeOf] = [null, "", ""];
  let [colours, dark, theme] = [null, 0.5, 0];
  let [queries, keys, cells, columns, drawing, paths, heads, canvas] = [[], [], [], [], null, [], [], null];
  let all = null;
  let at = 0; // where the chosen head's weights begin
  const weight = (i, j) => data.values[at + i * data.shape[3] + j] / 65535;
  const describe = (i, j) => (data && i < data.shape[2] && j < data.shape[3]
    ? `${queries[i]} → ${keys[j]}: ${fixed(weight(i, j), 3)}` : "");

  function buildHeads() {
    const [layers, count_] = data.shape;
    canvas = make("canvas", { width: all.width, height: all.height, "aria-hidden": "true" });
    heads = range(layers).map((layer) => range(count_).map((head) => make("span", { class: "tile",
      role: "gridcell", tabindex: -1, "data-i": layer, "data-j": head },
    make("span", { class: "unseen", text: `L${layer}H${head}` }))));
    const go = (layer, head) => {
      const to = { layer: clamp(layer, 0, layers - 1), head: clamp(head, 0, count_ - 1) };
      ex.set(to);
      heads[to.layer][to.head].focus();
    };
    const where = (node) => {
      const { i, j } = node.closest(".tile")?.dataset ?? {};
      return i === undefined ? null : [Number(i), Number(j)];
    };
    const grid = make("div", { class: "all-heads", role: "grid", style: `--n:${count_};--rows:${layers}`,
      "aria-label": "all heads: layers down, heads across", on: {
        keydown: (event) => {
          const [layer, head] = where(event.target) ?? [0, 0];
          const step = ARROWS[event.key];
          if (step) go(layer + step[0], head + step[1]);
          else if (event.key === "Home") go(layer, 0);
          else if (event.key === "End") go(layer, count_ - 1);
          else if (event.key === "Enter" || event.key === " ") go(layer, head);
          else return;
          event.preventDefault();
        },
        click: (event) => { const place = where(event.target); if (place) go(...place); },
      } },
    canvas, make("div", { role: "row", class: "cells" },
      make("span", { class: "corner", role: "columnheader" }, make("span", { class: "unseen", text: "layer" })),
      ...range(count_).map((head) => make("span", { class: "top", role: "columnheader", text: `H${head}` }))),
    ...heads.map((row, layer) => make("div", { role: "row", class: "cells" },
      make("span", { class: "side", role: "rowheader", text: `L${layer}` }), ...row)));
    gallery.replaceChildren(grid);
  }
  function buildWords() {
    const [nq, nk] = data.shape.slice(2);
    drawing = svg("svg", { viewBox: `0 0 1000 ${1000 * Math.max(nq, nk)}`, preserveAspectRatio: "none",
      "aria-hidden": "true" });
    paths = [];
    columns = [queries, keys];
    cells = columns.map((names, side) => names.map((name, i) => {
      const number = make("small");
      const text = make("b", { text: visible((side ? keyTexts() : ex.get("tokens"))[i]) });
      const node = make("span", { class: `tile ${side ? "as-key" : "as-query"}`, role: "gridcell",
        tabindex: -1, title: name, "data-side": side, "data-i": i, style: `grid-area:${i + 1} / ${side ? 3 : 1}` },
      ...(side ? [text, number] : [number, text]));
      return { node, number };
    }));
    const rows = range(Math.max(nq, nk)).map((i) => make("div", { role: "row", class: "cells" },
      ...cells.map((column) => column[i]?.node).filter(Boolean)));
    const where = (node) => {
      const { side, i } = node.closest(".tile")?.dataset ?? {};
      return i === undefined ? null : [Number(side), Number(i)];
    };
    const go = (side, i) => {
      const to = clamp(i, 0, columns[side].length - 1);
      ex.set(side ? { query: -1, key: to } : { query: to, key: -1 });
      cells[side][to].node.focus({ preventScroll: true });
      show(cells[side][to].node);
    };
    const grid = make("div", { class: "word-grid", role: "grid", "aria-label": "queries and keys",
      style: `--rows:${Math.max(nq, nk)}`, on: {
      keydown: (event) => {
        const place = where(event.target);
        const step = ARROWS[event.key];
        if (event.key === "Escape") ex.set({ query: -1, key: -1 });
        else if (place && step) go(clamp(place[0] + step[1], 0, 1), place[1] + step[0]);
        else if (place && event.key === "Home") go(place[0], 0);
        else if (place && event.key === "End") go(place[0], columns[place[0]].length - 1);
        else if (place && (event.key === "Enter" || event.key === " ")) go(...place);
        else return;
        event.preventDefault();
      },
      click: (event) => { const place = where(event.target); if (place) go(...place); },
      pointerover: (event) => {
        const place = event.pointerType === "touch" ? null : where(event.target);
        if (place) threads(...(place[0] ? [-1, place[1]] : [place[1], -1]));
      },
      pointerleave: () => threads(ex.get("query"), ex.get("key")),
    } }, drawing, ...rows);
    words.replaceChildren(grid);
  }
  // Into sight within its own box, without moving the page.
  function show(node) {
    const [box, own] = [words.getBoundingClientRect(), node.getBoundingClientRect()];
    if (own.top < box.top) words.scrollTop -= box.top - own.top;
    if (own.bottom > box.bottom) words.scrollTop += own.bottom - box.bottom;
  }
  const keyTexts = () => (ex.get("tokens_k").length ? ex.get("tokens_k") : ex.get("tokens"));

  function threads(query, key) {
    const [nq, nk] = data.shape.slice(2);
    const found = pairs(weight, nq, nk, query, key);
    while (paths.length < found.length) {
      const path = svg("path", { class: "curve thread" });
      drawing.append(path);
      paths.push(path);
    }
    while (paths.length > found.length) paths.pop().remove();
    found.forEach(([i, j, w], n) => {
      const path = paths[n];
      attribute(path, "d", `M0 ${1000 * i + 500}L1000 ${1000 * j + 500}`);
      attribute(path, "style", `--c:var(--c0);stroke-width:${(1 + 5 * w).toFixed(2)};`
        + `stroke-opacity:${(0.15 + 0.85 * w).toFixed(2)}`);
    });
    const told = [key >= 0 && query < 0 ? range(nq).map((i) => weight(i, key)) : null,
      query >= 0 ? range(nk).map((j) => (key >= 0 && j !== key ? -1 : weight(query, j))) : null];
    cells.forEach((column, side) => column.forEach((cell, i) => {
      const w = told[side] ? told[side][i] : -1;
      const number = w >= 0.005 ? fixed(w) : "";
      const at = Math.round(255 * Math.max(0, w));
      const now = `${number} ${w < 0} ${at} ${i === (side ? key : query)} ${theme}`;
      if (now === cell.now) return; // of many cells few change
      cell.now = now;
      write(cell.number, number);
      const [r, g, b] = [0, 8, 16].map((bits) => (colours ? (colours[at] >> bits) & 255 : 128));
      cell.node.style.background = `rgb(${r} ${g} ${b})`;
      cell.node.classList.toggle("deep", w > dark);
      attribute(cell.node, "aria-label", `${side ? "key" : "query"} ${columns[side][i]}${
        w >= 0 ? `, ${fixed(w)}` : ""}`);
      attribute(cell.node, "aria-selected", i === (side ? key : query));
    }));
  }
  const shadeOf = () => (ex.get("small") ? (x) => Math.sqrt(x / 65535) : (x) => x / 65535);
  function paint() {
    if (!gallery.isConnected) return;
    if (!colours) {
      const style = getComputedStyle(ex.root);
      colours = ramp(["--zero", "--pos"].map((key) => style.getPropertyValue(key).trim()));
      dark = Number(style.getPropertyValue("--thr"));
      theme += 1;
      threads(ex.get("query"), ex.get("key"));
    }
    const pixels = new ImageData(all.width, all.height);
    const dots = new Uint32Array(pixels.data.buffer);
    const shade = shadeOf();
    all.points.forEach((x, i) => { if (x >= 0) dots[i] = colours[Math.round(255 * shade(x))]; });
    canvas.getContext("2d").putImageData(pixels, 0, 0);
  }

  let [painted, drawn] = ["", ""];
  function draw() {
    const given = ex.get("weights");
    const named = JSON.stringify([ex.get("tokens"), keyTexts()]);
    if (ex.get("tokens").length !== given.shape[2] || keyTexts().length !== given.shape[3]) return;
    if (data?.from !== given) {
      data = { ...unpack(given), from: given };
      all = overview(data);
      [painted, drawn] = ["", ""];
    }
    if (texts !== named || shapeOf !== String(data.shape)) {
      [queries, keys] = [naming(ex.get("tokens")), naming(keyTexts())];
      [texts, shapeOf] = [named, String(data.shape)];
      [painted, drawn] = ["", ""];
      buildHeads();
      buildWords();
    }
    const [layers, count_, nq, nk] = data.shape;
    const layer = clamp(ex.get("layer"), 0, layers - 1);
    const head = clamp(ex.get("head"), 0, count_ - 1);
    const [query, key, small] = ["query", "key", "small"].map(ex.get);
    at = (layer * count_ + head) * nq * nk;
    if (painted !== String(small)) {
      painted = String(small);
      paint();
    }
    if (drawn !== `${at} ${small}`) {
      drawn = `${at} ${small}`;
      table.set(Float32Array.from(data.values.subarray(at, at + nq * nk)).map(shadeOf()), nq, nk);
      write(title, `weights of head L${layer}H${head}`);
    }
    heads.forEach((row, l) => row.forEach((cell, h) => {
      const on = l === layer && h === head;
      attribute(cell, "aria-selected", on);
      cell.tabIndex = on ? 0 : -1;
    }));
    rowBand.set(query, 0, 1, nk);
    columnBand.set(key < 0 ? -1 : 0, key, nq, 1);
    const [side, place] = query < 0 && key >= 0 ? [1, key] : [0, Math.max(query, 0)];
    cells.forEach((column, s) => column.forEach((cell, i) => {
      cell.node.tabIndex = s === side && i === place ? 0 : -1;
    }));
    threads(query, key);
    strong.set(small);
    start.update();
    ex.say(`${count(layers, "layer")} of ${count(count_, "head")} each. In L${layer}H${head}, ${
      sentence(weight, nq, nk, query, key, queries, keys)}.`);
  }
  ex.onCleanup(onTheme(() => { colours = null; paint(); table.repaint(); }));
  new ResizeObserver(() => { if (!colours) paint(); }).observe(gallery);
  const stop = ex.start(draw, [...KEYS, "weights", "tokens", "tokens_k"]);
  show(cells[ex.get("query") < 0 && ex.get("key") >= 0 ? 1 : 0][Math.max(ex.get("query"), ex.get("key"), 0)].node);
  return stop;
}

export default { render };
