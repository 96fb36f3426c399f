// One sentence's journey: from the reader's letters to the next word, every number on the way.
import {
  attribute, button, bytePairs, clamp, explorer, fixed, make, onTheme, percent,
  presets, ramp, range, raster, slider, textModel, unpacked, visible, write,
} from "./shared.js";
import { weights } from "./tales_weights.js";

const KEYS = ["text", "stop", "head", "row", "column", "playing"];
const START = 10; // the line end before a tale
const MOST = 32; // tokens
const LONGEST = 100; // letters
const PACE = 1500; // milliseconds from stop to stop
const TOP = 10;
const FOLD = 40; // a row of the vocabulary
const OPEN = 2; // more than 1: a cell that is left open
const PRESETS = [["A dragon", "One day the young dragon"], ["A name", "Clara the turtle had lost her"]]
  .map(([name, text]) => [name, { text }]);

const BEFORE = ["letters", "tokens", "ids", "vectors", "positions", "sum of both"];
const BLOCK = ["norm", "Q", "K", "V", "scores", "mask", "softmax", "weights × V", "heads joined", "× W^O",
  "first sum", "second norm", "widened", "ReLU", "narrowed", "second sum"];
const AFTER = ["last norm", "logits", "probabilities", "next token"];
const HEADS = ["scores", "mask", "softmax", "weights × V"];
const FOLDED = ["logits", "probabilities"];

// Where each stop is taught: [chapter, page and section of the book, what is found there].
const LINKS = {
  letters: [8, "writing.html#sec-writing-tokens", "from text to tokens"],
  vectors: [7, "blocks.html#sec-blocks-model", "a whole model"],
  positions: [5, "positions.html#sec-positions-clock", "a clock with many hands"],
  norm: [7, "blocks.html#sec-blocks-norm", "the norm"],
  Q: [2, "qkv.html#sec-qkv-roles", "three roles for each word"],
  scores: [3, "scaling.html#sec-scaling-steps", "the formula step by step"],
  mask: [6, "masking.html#sec-masking-answer", "what a model must not see"],
  softmax: [3, "scaling.html#sec-scaling-softmax", "the softmax"],
  "weights × V": [2, "qkv.html#sec-qkv-formula", "the weighted average"],
  "heads joined": [4, "multi-head.html#sec-multi-head-several", "several heads side by side"],
  "first sum": [7, "blocks.html#sec-blocks-sum", "the sum"],
  widened: [7, "blocks.html#sec-blocks-questions", "the feed-forward network"],
  probabilities: [3, "scaling.html#sec-scaling-softmax", "the softmax"],
  "next token": [7, "blocks.html#sec-blocks-writing", "from probabilities to text"],
};
const TAUGHT_WITH = { tokens: "letters", ids: "letters", "sum of both": "positions", K: "Q", V: "Q",
  "× W^O": "heads joined", "second norm": "norm", ReLU: "widened", narrowed: "widened",
  "second sum": "first sum", "last norm": "norm", logits: "vectors" };
const linkOf = (part) => LINKS[TAUGHT_WITH[part] ?? part];

const stops = ({ num_layers: layers }) => [...BEFORE.map((part) => ({ part, layer: -1 })),
  ...range(layers).flatMap((layer) => BLOCK.map((part) => ({ part, layer }))),
  ...AFTER.map((part) => ({ part, layer: -1 }))];

let [model, numbers, pairs] = [null, null, null];
function load() {
  if (model) return;
  numbers = unpacked(weights.sizes, weights);
  model = textModel(weights.sizes, numbers, weights.context);
  pairs = bytePairs(weights.merges.split(" ").map(Number));
}
const piece = (id) => `“${visible(pairs.pieces([id])[0])}”`;
// Everything that the model makes of a text; the text's end, if it is long.
let made = null;
function travel(text) {
  load();
  if (made?.text === text) return made;
  const all = [START, ...pairs.encode(text)];
  const ids = all.slice(-MOST);
  const found = model.trace(ids);
  const last = found.probabilities.subarray((ids.length - 1) * weights.sizes.vocab_size);
  const order = range(weights.sizes.vocab_size).sort((a, b) => last[b] - last[a]);
  const letters = Array.from(text);
  made = { ...found, text, letters: letters.length ? letters : [" "], left: all.length - ids.length,
    top: order.slice(0, TOP), pieces: ids.map((id) => visible(pairs.pieces([id])[0])) };
  return made;
}

const NAMES = { vectors: "tokens", positions: "positions", "sum of both": "input", norm: "norm1", Q: "q",
  K: "k", V: "v", "heads joined": "heads", "× W^O": "mixed", "first sum": "sum1", "second norm": "norm2",
  widened: "wide", ReLU: "hidden", narrowed: "narrow", "second sum": "sum2", "last norm": "final" };

// The tensor at a stop: { rows, columns, value(i, j), shape (words), open(i, j): nothing there }.
function tensor(found, { part, layer }, head) {
  const { n, ids, letters, top } = found;
  const { vocab_size: vocab, d_model: d, num_heads: heads } = weights.sizes;
  const width = d / heads;
  const place = layer < 0 ? found : found.layers[layer];
  const flat = (name, columns) => ({ rows: n, columns,
    value: (i, j) => place[name][i * columns + j], shape: `(${n}, ${columns})` });
  if (part === "letters") {
    return { rows: 1, columns: letters.length, value: (_, j) => letters[j].codePointAt(0),
      shape: `(${letters.length})` };
  }
  if (part === "tokens" || part === "ids") {
    return { rows: n, columns: 1, value: (i) => ids[i], shape: `(${n})` };
  }
  if (HEADS.includes(part)) {
    if (part === "weights × V") {
      return { rows: n, columns: width, value: (i, j) => place.heads[i * d + head * width + j],
        shape: `(${n}, ${width})` };
    }
    const name = part === "softmax" ? "weights" : "scores";
    return { rows: n, columns: n, value: (i, j) => place[name][(head * n + i) * n + j],
      open: part === "scores" ? undefined : (i, j) => j > i, shape: `(${n}, ${n})` };
  }
  if (FOLDED.includes(part)) {
    return { rows: Math.ceil(vocab / FOLD), columns: FOLD, open: (i, j) => i * FOLD + j >= vocab,
      value: (i, j) => found[part][(n - 1) * vocab + i * FOLD + j], shape: `(${vocab})` };
  }
  if (part === "next token") {
    return { rows: TOP, columns: 1, value: (i) => found.probabilities[(n - 1) * vocab + top[i]],
      shape: `(the ${TOP} likeliest of ${vocab})` };
  }
  return flat(NAMES[part], part === "widened" || part === "ReLU" ? 4 * d : d);
}
// The state's row and column as a cell of the stop's tensor, and back.
function cellOf(found, { part }, { rows, columns }, row, column) {
  if (FOLDED.includes(part)) {
    const id = clamp(column, 0, weights.sizes.vocab_size - 1);
    return [Math.floor(id / FOLD), id % FOLD];
  }
  if (part === "letters") return [0, clamp(column, 0, columns - 1)];
  if (part === "next token") return [Math.max(0, found.top.indexOf(column)), 0];
  return [row < 0 ? rows - 1 : Math.min(row, rows - 1), clamp(column, 0, columns - 1)];
}
function stateOf(found, { part }, i, j) {
  if (FOLDED.includes(part)) return { column: Math.min(i * FOLD + j, weights.sizes.vocab_size - 1) };
  if (part === "letters") return { column: j };
  if (part === "next token") return { column: found.top[i] };
  return { row: i, ...(part === "tokens" || part === "ids" ? {} : { column: j }) };
}

// ---------------------------------------------------------------- the arithmetic of a cell

const f = (x) => fixed(x, 3);
const p = (x) => (x < 0 ? `(${f(x)})` : f(x)); // a negative factor or summand stands in brackets
const sum = (terms, most = 3) => `${terms.slice(0, most).join(" + ")}${
  terms.length > most + 1 ? ` + … + ${terms.at(-1)}` : terms.length > most ? ` + ${terms.at(-1)}` : ""}`;
const products = (a, b, count) => sum(range(count).map((c) => `${p(a(c))} · ${p(b(c))}`));

// How a cell came about, in true numbers; the last number is the cell's own.
function working(found, stop, head, i, j) {
  const { part, layer } = stop;
  const { n, ids, pieces, letters, top } = found;
  const { vocab_size: vocab, d_model: d, num_heads: heads, num_layers: layers } = weights.sizes;
  const width = d / heads;
  const here = layer < 0 ? found : found.layers[layer];
  const before = layer > 0 ? found.layers[layer - 1].sum2 : found.input;
  const value = tensor(found, stop, head).value(i, j);
  const word = (t) => `“${pieces[t]}”`;
  const equals = ` = ${f(value)}`;
  // Row i of x times column c of a matrix, and its offset.
  const through = (x, wide, name, c, matrix) => {
    const of = numbers[`${layer}.${name}`];
    return `row of ${word(i)} · column ${c} of ${matrix} + offset = [${
      products((t) => x[i * wide + t], (t) => of[c * wide + t], wide)}: ${wide} products] + ${
      p(numbers[`${layer}.${name}Offset`][c])}${equals}`;
  };
  const normed = (x, gain, offset) => {
    const row = x.subarray(i * d, (i + 1) * d);
    const mean = row.reduce((a, b) => a + b, 0) / d;
    const square = row.reduce((a, b) => a + (b - mean) ** 2, 0) / d;
    return `(x − mean) / √(variance + 0.00001) · gain + offset = (${f(row[j])} − ${p(mean)}) / √${
      f(square)} · ${p(gain[j])} + ${p(offset[j])}${equals}`;
  };
  const at = (name) => numbers[`${layer}.${name}`];
  const score = (t) => here.scores[(head * n + i) * n + t];
  switch (part) {
    case "letters": {
      const bytes = Array.from(new TextEncoder().encode(letters[j]));
      return `“${visible(letters[j])}” is ${bytes.length === 1 ? `the byte ${bytes[0]}`
        : `the ${bytes.length} bytes ${bytes.join(", ")}`}`;
    }
    case "tokens": {
      if (ids[i] < 256) return `${word(i)} is a single byte: ${ids[i]}`;
      const merge = ids[i] - 256;
      const [a, b] = weights.merges.split(" ").slice(2 * merge, 2 * merge + 2).map(Number);
      return `${piece(a)} + ${piece(b)} = ${word(i)}, the merge number ${merge} of ${vocab - 256}`;
    }
    case "ids": return `${word(i)} is token number ${ids[i]}: row ${ids[i]} of the table, which has ${vocab} rows`;
    case "vectors": return `√${d} · table[${ids[i]}, ${j}] = ${f(Math.sqrt(d))} · ${
      p(numbers.tokens[ids[i] * d + j])}${equals}`;
    case "positions": {
      const even = j - (j % 2);
      const wave = j % 2 ? "cos" : "sin";
      return `${wave}(position / 10000^(${even}/${d})) = ${wave}(${i} / ${f(10000 ** (even / d))})${equals}`;
    }
    case "sum of both": return `vector + position = ${f(found.tokens[i * d + j])} + ${
      p(found.positions[i * d + j])}${equals}`;
    case "norm": return normed(before, at("normAttention"), at("normAttentionOffset"));
    case "Q": case "K": case "V": return through(here.norm1, d, part.toLowerCase(), j, `W^${part}`);
    case "scores": {
      const q = (c) => here.q[i * d + head * width + c];
      const k = (c) => here.k[j * d + head * width + c];
      return `(query of ${word(i)} · key of ${word(j)}) / √${width} = [${products(q, k, width)}: ${
        width} products] / ${f(Math.sqrt(width))} = ${f(value * Math.sqrt(width))} / ${f(Math.sqrt(width))}${equals}`;
    }
    case "mask": return j > i ? `${word(j)} comes after ${word(i)}: the score ${f(value)} becomes minus infinity`
      : `${word(j)} is ${i === j ? "the token itself" : `before ${word(i)}`}: the score stays ${f(value)}`;
    case "softmax": {
      if (j > i) return `${word(j)} is masked: its weight is 0`;
      const high = Math.max(...range(i + 1).map(score));
      const e = range(i + 1).map((t) => Math.exp(score(t) - high));
      return `exp(${f(score(j))} − ${p(high)}) / (the row's sum; ${f(high)} is its largest score) = ${f(e[j])} / (${
        sum(e.map(f))})${equals}`;
    }
    case "weights × V": {
      const a = (t) => here.weights[(head * n + i) * n + t];
      const v = (t) => here.v[t * d + head * width + j];
      return `weight · value, summed over ${i ? `the ${i + 1} tokens` : "the token"} that ${
        word(i)} sees = ${products(a, v, i + 1)}${equals}`;
    }
    case "heads joined": return `column ${j % width} of head ${Math.floor(j / width)}, as it is${equals}`;
    case "× W^O": return through(here.heads, d, "o", j, "W^O");
    case "first sum": return `as it was + what attention gives = ${f(before[i * d + j])} + ${
      p(here.mixed[i * d + j])}${equals}`;
    case "second norm": return normed(here.sum1, at("normForward"), at("normForwardOffset"));
    case "widened": return through(here.norm2, d, "widen", j, "the first matrix");
    case "ReLU": return `max(0, ${f(here.wide[i * 4 * d + j])})${equals}`;
    case "narrowed": return through(here.hidden, 4 * d, "narrow", j, "the second matrix");
    case "second sum": return `as it was + what feed-forward gives = ${f(here.sum1[i * d + j])} + ${
      p(here.narrow[i * d + j])}${equals}`;
    case "last norm": return normed(found.layers[layers - 1].sum2, numbers.gain, numbers.offset);
    case "logits": {
      const id = i * FOLD + j;
      return `last row · row ${id} of the table, ${piece(id)} = [${products((t) => found.final[(n - 1) * d + t],
        (t) => numbers.tokens[id * d + t], d)}: ${d} products]${equals}`;
    }
    case "probabilities": {
      const logits = found.logits.subarray((n - 1) * vocab);
      const high = logits.reduce((a, b) => Math.max(a, b));
      const e = Array.from(logits, (x) => Math.exp(x - high));
      return `exp(${f(logits[i * FOLD + j])} − ${p(high)}) / (the sum of all ${vocab}; ${
        f(high)} is the largest logit) = ${f(e[i * FOLD + j])} / ${f(e.reduce((a, b) => a + b, 0))}${equals}`;
    }
    default: return `${piece(top[i])} has the probability ${percent(value)}, ${
      i ? `number ${i + 1} of ${vocab}` : `the largest of ${vocab}`}: ${f(value)}`;
  }
}

// Raised: W^Q, 10000^(2/96).
const raised = (text) => text.split(/\^(?:\(([^)]*)\)|([A-Z]))/).flatMap((part, i) =>
  (i % 3 === 0 ? [part] : part ? [make("sup", { text: part })] : []));

// What happens at a stop, in a sentence.
function happens(found, { part, layer }, head) {
  const { vocab_size: vocab, d_model: d, num_heads: heads, num_layers: layers } = weights.sizes;
  const last = `“${found.pieces.at(-1)}”`;
  return {
    letters: "Your text begins as letters, and the computer knows each by its bytes.",
    tokens: "Letters that often stood side by side in the tales are joined into tokens; the line end before "
      + "them says that a tale begins.",
    ids: `Each token has a number in a vocabulary of ${vocab}.`,
    vectors: `Each number picks a row of a learned table: ${d} numbers for each token.`,
    positions: `Each position has ${d} numbers of its own, from sines and cosines of many speeds.`,
    "sum of both": "The sum of the two says which token stands there, and where.",
    norm: "Each row is brought to mean 0 and variance 1, then scaled by learned numbers.",
    Q: `A learned matrix makes a query of each row: what the token looks for. Each of the ${heads} heads owns ${
      d / heads} columns.`,
    K: "A second matrix makes a key of each row: what the token can be found by.",
    V: "A third matrix makes a value of each row: what the token hands on.",
    scores: `Head ${head} compares each query with each key: their dot product, divided by √${d / heads}.`,
    mask: "A token must not see what comes after it, so these scores become minus infinity.",
    softmax: "Softmax turns each row of scores into weights: positive numbers whose sum is 1.",
    "weights × V": "Each token takes the average of the values, by its weights.",
    "heads joined": `What the ${heads} heads found stands side by side.`,
    "× W^O": "Another learned matrix mixes what the heads found.",
    "first sum": "It is added to what stood there before, so nothing is lost.",
    "second norm": "Before the feed-forward network each row is normalised again.",
    widened: `Now each token is worked on alone: a matrix makes ${4 * d} numbers of ${d}.`,
    ReLU: "Negative numbers become 0.",
    narrowed: `A second matrix makes ${d} numbers of ${4 * d}.`,
    "second sum": layer + 1 < layers ? `It is added too, and block ${layer + 1} goes on from here.`
      : "It is added too: the last block is done.",
    "last norm": "All rows are normalised once more.",
    logits: `The last row, of ${last}, is compared with the vector of each of the ${vocab} tokens. They are folded `
      + `into rows of ${FOLD} here.`,
    probabilities: "Softmax turns the logits into probabilities.",
    "next token": `After ${last} the model expects ${piece(found.top[0])} most. Put at the end of the text, it `
      + "starts the next journey.",
  }[part];
}

function render({ model: state, el, more }) {
  const ex = explorer({ model: state, el, title: "One sentence's journey", name: "journey" });
  load();
  const all = stops(weights.sizes);
  const here = () => all[ex.get("stop")];
  const goTo = (to, playing = false) => {
    const stop = clamp(to, 0, all.length - 1);
    const found = travel(ex.get("text"));
    const [folded, before] = [FOLDED.includes(all[stop].part), here().part];
    const enters = folded && !FOLDED.includes(before)
      && !(before === "next token" && found.top.includes(ex.get("column")));
    ex.set({ stop, playing, ...(enters ? { column: found.top[0] } : {}) });
  };
  const start = presets({ ex: { get: ex.get, set: (given) => ex.set({ playing: false, ...given }) },
    items: PRESETS, keys: KEYS });
  const field = make("input", { type: "text", maxlength: LONGEST, "aria-label": "your words", spellcheck: "false",
    autocomplete: "off", on: { input: () => {
      const text = field.value.replace(/[\ud800-\udfff]/gu, "");
      ex.set({ text, row: -1, playing: false,
        ...(FOLDED.includes(here().part) ? { column: travel(text).top[0] } : {}) });
    } } });
  const ask = make("label", { class: "ask" }, make("span", { text: "your words" }), field);
  const scrub = slider({ label: "stop", values: range(all.length), say: (i) => `${i + 1} of ${all.length}`,
    onInput: (i) => goTo(i) });
  const still = matchMedia("(prefers-reduced-motion: reduce)");
  const [back, step] = [button("Back", () => goTo(ex.get("stop") - 1)),
    button("Step", () => goTo(ex.get("stop") + 1))];
  const play = button("Play", () => {
    const last = ex.get("stop") === all.length - 1;
    ex.set({ playing: !ex.get("playing"), ...(last ? { stop: 0 } : {}) });
  });
  play.hidden = still.matches;
  const headOf = make("select", { "aria-label": "head", "data-lm-suppress-shortcuts": "true",
    on: { input: () => ex.set({ head: Number(headOf.value) }) } },
  ...range(weights.sizes.num_heads).map((h) => make("option", { value: h, text: `head ${h}` })));
  const buttons = make("div", { class: "presets", role: "group", "aria-label": "Travel" }, back, step, play, headOf);

  // All tensors on the way, small, a point a number.
  const thumbs = all.map(({ part, layer }, i) => {
    const canvas = make("canvas", { width: 1, height: 1, "aria-hidden": "true" });
    const node = make("span", { class: "tile stop", role: "gridcell", tabindex: -1, "data-i": i,
      "aria-label": `${part}${layer < 0 ? "" : `, block ${layer}`}` }, canvas,
    make("small", {}, ...raised(part)));
    return { canvas, node };
  });
  const groups = [["text to vectors", 0, BEFORE.length],
    ...range(weights.sizes.num_layers).map((l) => [`block ${l}`, BEFORE.length + BLOCK.length * l,
      BEFORE.length + BLOCK.length * (l + 1)]), ["to the next token", all.length - AFTER.length, all.length]];
  const strip = make("div", { class: "strip scroll", role: "grid", "aria-label": "all stops, in order", on: {
    keydown: (event) => {
      const now = Number(event.target.closest(".tile")?.dataset.i ?? 0);
      const to = { ArrowLeft: now - 1, ArrowUp: now - 1, ArrowRight: now + 1, ArrowDown: now + 1, Home: 0,
        End: all.length - 1, Enter: now, " ": now }[event.key];
      if (to === undefined) return;
      goTo(to);
      thumbs[ex.get("stop")].node.focus({ preventScroll: true });
      event.preventDefault();
    },
    click: (event) => {
      const tile = event.target.closest(".tile");
      if (tile) goTo(Number(tile.dataset.i));
    },
  } }, ...groups.map(([name, from, to]) => make("div", { role: "row", class: "group" },
    make("span", { class: "group-name", role: "rowheader", text: name }), ...thumbs.slice(from, to).map((t) => t.node))));

  const title = make("p", { class: "heading" });
  const rowNames = make("div", { class: "row-names", "aria-hidden": "true" });
  const columnNames = make("div", { class: "column-names", "aria-hidden": "true" });
  const pick = (i, j) => ex.set(stateOf(travel(ex.get("text")), here(), i, j));
  const table = raster({ label: "the tensor at this stop", across: "", down: "", describe: (i, j) => describe(i, j),
    onPick: pick, onMove: pick });
  const chosen = table.mark("cell");
  const box = make("div", { class: "tensor scroll" }, make("span"), columnNames, rowNames, table.area);
  const sums = make("p", { class: "working" });
  const link = make("p", { class: "readline" });
  const notice = make("p", { class: "readline", hidden: true });
  const told = ex.root.querySelector(".say");
  ex.add(start.node, ask, notice, strip, scrub.node, buttons, make("div", {}, title, told), box,
    table.readout, sums, link);

  let [shownText, shownPlace, shownHead, shownTheme, shownSum, colours, theme] = [null, "", -1, 0, "", null, 1];
  let names = { rows: [], columns: null };
  function describe(i, j) {
    const found = travel(ex.get("text"));
    const stop = here();
    const t = tensor(found, stop, ex.get("head"));
    if (i >= t.rows || j >= t.columns) return "";
    if (FOLDED.includes(stop.part)) {
      const id = i * FOLD + j;
      return t.open(i, j) ? "no token" : `${piece(id)}: ${f(t.value(i, j))}`;
    }
    if (stop.part === "letters") return `“${visible(found.letters[j])}”`;
    const row = stop.part === "next token" ? piece(found.top[i]) : `“${found.pieces[i]}”`;
    const shut = t.open?.(i, j);
    if (t.columns === 1) return `${row}: ${stop.part === "next token" ? f(t.value(i)) : t.value(i)}`;
    return `${row}, ${names.columns ? `“${names.columns[j]}”` : `column ${j}`}: ${
      !shut ? f(t.value(i, j)) : stop.part === "mask" ? "minus infinity" : "0, masked"}`;
  }
  // Numbers as shades in -1..1 of the largest, or OPEN.
  function shades(t) {
    const shut = (at) => t.open?.(Math.floor(at / t.columns), at % t.columns);
    const out = new Float32Array(t.rows * t.columns);
    let most = 1e-9;
    for (let at = 0; at < out.length; at++) {
      if (shut(at)) continue;
      out[at] = t.value(Math.floor(at / t.columns), at % t.columns);
      most = Math.max(most, Math.abs(out[at]));
    }
    return out.map((x, at) => (shut(at) ? OPEN : x / most));
  }
  function thumbnail({ canvas }, t) {
    const pixels = new ImageData(t.columns, t.rows);
    const dots = new Uint32Array(pixels.data.buffer);
    shades(t).forEach((x, at) => { dots[at] = colours[Math.round((x + 1) * 127.5)]; });
    [canvas.width, canvas.height] = [t.columns, t.rows];
    canvas.style.cssText = `width:${Math.max(1.5 * t.columns, 4)}px;height:${
      (t.columns === FOLD ? 1.5 : 3) * t.rows}px`;
    canvas.getContext("2d").putImageData(pixels, 0, 0);
  }
  function label(found, stop, t) {
    const { part } = stop;
    const square = ["scores", "mask", "softmax"].includes(part);
    names = {
      rows: part === "letters" ? [""] : FOLDED.includes(part) ? range(t.rows).map((i) => String(i * FOLD))
        : part === "next token" ? found.top.map((id, i) => `${visible(pairs.pieces([id])[0])} ${percent(t.value(i))}`)
          : part === "ids" ? found.pieces.map((text, i) => `${text} ${found.ids[i]}`) : found.pieces,
      columns: square ? found.pieces : part === "letters" ? found.letters.map((x) => visible(x)) : null,
    };
    rowNames.replaceChildren(...names.rows.map((text) => make("span", { text })));
    columnNames.replaceChildren(...(names.columns ?? []).map((text) => make("span", { text })));
    const wide = square || part === "letters" ? 26 : t.columns === 1 ? 90 : FOLDED.includes(part) ? 14 : 6;
    attribute(box, "style", `--wide:${wide}px;--columns:${t.columns};--rows:${t.rows}`);
    columnNames.classList.toggle("upright", square);
  }
  function draw() {
    const [text, stop_, head, row, column, playing] = KEYS.map(ex.get);
    const found = travel(text);
    const stop = all[stop_];
    const t = tensor(found, stop, head);
    const [i, j] = cellOf(found, stop, t, row, column);
    if (field.value !== text) field.value = text;
    if (!colours && ex.root.isConnected) {
      const style = getComputedStyle(ex.root);
      colours = ramp(["--neg", "--zero", "--pos"].map((key) => style.getPropertyValue(key).trim()));
    }
    if (shownText !== text || shownHead !== head || shownTheme !== theme) {
      all.forEach((one, at) => {
        if (shownText !== text || shownTheme !== theme || HEADS.includes(one.part)) {
          thumbnail(thumbs[at], tensor(found, one, head));
        }
      });
      [shownText, shownHead, shownTheme] = [text, head, theme];
      shownPlace = "";
    }
    if (shownPlace !== `${stop_}`) {
      shownPlace = `${stop_}`;
      label(found, stop, t);
      table.set(shades(t), t.rows, t.columns);
      attribute(table.area, "aria-label", `${stop.part} ${t.shape}`);
      thumbs.forEach(({ node }, at) => {
        attribute(node, "aria-selected", at === stop_);
        node.tabIndex = at === stop_ ? 0 : -1;
      });
      const tile = thumbs[stop_].node;
      strip.scrollLeft += tile.getBoundingClientRect().left - strip.getBoundingClientRect().left
        - (strip.clientWidth - tile.clientWidth) / 2;
      box.scrollLeft = 0;
      const [chapter, address, words] = linkOf(stop.part);
      const where = `chapter ${chapter}, ${words}`;
      link.replaceChildren("Explained in ", more ? make("a", { href: address, text: where }) : where, ".");
    }
    table.go(i, j);
    chosen.set(i, j);
    title.replaceChildren(...raised(`${stop.layer < 0 ? "" : `Block ${stop.layer}, `}${HEADS.includes(stop.part) ? `head ${head}, ` : ""}${
      stop.part} ${t.shape}`));
    const sign = working(found, stop, head, i, j);
    if (shownSum !== sign) sums.replaceChildren(...raised(shownSum = sign));
    notice.hidden = !found.left;
    write(notice, found.left ? `The journey takes ${MOST} tokens: the first ${found.left} are left out.` : "");
    if (headOf.value !== String(head)) headOf.value = head;
    headOf.hidden = !HEADS.includes(stop.part);
    scrub.set(stop_);
    for (const [b, shut] of [[back, !stop_], [step, stop_ === all.length - 1]]) attribute(b, "aria-disabled", shut);
    write(play, playing ? "Pause" : "Play");
    start.update();
    follow(playing);
    ex.say(`${happens(found, stop, head)} Chosen: ${describe(i, j)}.`);
  }

  let [timer, from] = [0, null];
  // Each view goes by the time since it began, so that two views of one journey keep step.
  function follow(playing) {
    if (playing && !timer && !still.matches) {
      from = { time: performance.now(), stop: ex.get("stop") };
      timer = setInterval(() => {
        const to = from.stop + Math.floor((performance.now() - from.time) / PACE + 0.5);
        if (to > ex.get("stop")) goTo(to, to < all.length - 1);
      }, PACE);
    } else if (!playing && timer) {
      clearInterval(timer);
      timer = 0;
    }
  }
  ex.onCleanup(() => clearInterval(timer));
  ex.onCleanup(onTheme(() => { colours = null; theme += 1; draw(); table.repaint(); }));
  return ex.start(draw, KEYS);
}

export default { render };
