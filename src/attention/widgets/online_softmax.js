// The online softmax: blocks of keys one after another; maximum, sum and output are rescaled.
import {
  bar, button, clamp, count, explorer, fmt, make, presets, range, readouts, short, slider, write,
} from "./shared.js";

const LATE = [1, 2, 0, 1, 2, 0, 1, 8];
const VALUES = [4, 0, 3, 5, 1, 2, 4, -2];
const PRESETS = [
  ["By hand", { scores: [1, 2, 4, 3], values: [4, 0, 2, 6], block: 2, step: 1 }],
  ["Late large score", { scores: LATE, values: VALUES, block: 2, step: 1 }],
  ["Rising", { scores: [0, 1, 2, 3, 4, 5, 6, 7], values: VALUES, block: 2, step: 1 }],
  ["Falling", { scores: [7, 6, 5, 4, 3, 2, 1, 0], values: VALUES, block: 2, step: 1 }],
];
const KEYS = ["scores", "values", "block", "step"];

// What is kept after each block: { factor, top, sum, out }.
function walk(scores, values, block) {
  const found = [];
  let [top, sum, out] = [-Infinity, 0, 0];
  for (let start = 0; start < scores.length; start += block) {
    const part = scores.slice(start, start + block);
    const higher = Math.max(top, ...part);
    const factor = Math.exp(top - higher);
    const e = part.map((s) => Math.exp(s - higher));
    sum = sum * factor + e.reduce((a, b) => a + b, 0);
    out = out * factor + e.reduce((a, b, i) => a + b * values[start + i], 0);
    top = higher;
    found.push({ factor, top, sum, out });
  }
  return found;
}

function render({ model, el }) {
  const ex = explorer({ model, el, title: "The online softmax", name: "online_softmax" });
  const start = presets({ ex, items: PRESETS, keys: KEYS });
  const size = slider({ label: "keys in a block", min: 1, max: 12, typed: false,
    onInput: (block) => ex.set({ block }) });
  const go = (by) => () => ex.set({ step: clamp(now() + by, 0, blocks()) });
  const back = button("‹ Back", go(-1));
  const next = button("Next block ›", go(1));
  const blocks = () => Math.ceil(ex.get("scores").length / ex.get("block"));
  const now = () => Math.min(ex.get("step"), blocks());
  const keys = make("div", { class: "tokens" });
  const heads = make("div", { class: "token-row plain heads", "aria-hidden": "true" },
    ...["key, value", "score", "e^(score − m)", ""].map((text) => make("span", { text })));
  const numbers = readouts({ factor: "old sum and output times", m: "maximum m", l: "sum ℓ",
    o: "output o", done: "o / ℓ" });
  const line = make("p", { class: "sum" });
  ex.add(start.node, size.node,
    make("div", { class: "steps", role: "group", "aria-label": "block" }, back, next),
    keys, numbers.node, line);

  let rows = [];
  function build(n) {
    rows = range(n).map(() => {
      const words = make("b");
      const score = make("span");
      const share = bar(0);
      const number = make("span", { class: "weight" });
      return { words, score, share, number, node: make("div", { class: "token-row plain" },
        make("span", { class: "word" }, words), score, share.node, number) };
    });
    keys.replaceChildren(heads, ...rows.map((row) => row.node));
  }
  function draw() {
    const [scores, values, block] = ["scores", "values", "block"].map(ex.get);
    if (rows.length !== scores.length) build(scores.length);
    const found = walk(scores, values, block);
    const step = now();
    const { factor, top, sum, out } = found[step - 1] ?? {};
    rows.forEach((row, i) => {
      const read = i < step * block;
      const mine = read && i >= (step - 1) * block;
      write(row.words, `${mine ? "▸ " : ""}${i}, ${short(values[i])}`);
      write(row.score, short(scores[i]));
      const share = read ? Math.exp(scores[i] - top) : 0;
      row.share.set(share);
      write(row.number, read ? fmt(share, 3) : "not yet");
    });
    size.set(block);
    back.disabled = step === 0;
    next.disabled = step === found.length;
    start.update();
    const end = step === found.length;
    numbers.set(step ? { factor: step === 1 ? "nothing yet" : fmt(factor, 3), m: short(top),
      l: fmt(sum, 3), o: fmt(out, 3), done: end ? fmt(out / sum, 3) : "at the end" }
      : { factor: "nothing yet", m: "none yet", l: "0", o: "0", done: "at the end" });
    write(line, step ? sentence(scores, found, step, block) : "Nothing has been read.");
    const words = step ? `Block ${step} of ${found.length}: ${line.textContent}` : line.textContent;
    ex.say(end ? `${words} All ${count(scores.length, "key")} read: the output is `
      + `${fmt(out / sum, 3)}, that of the softmax over all scores.` : words);
  }
  return ex.start(draw, KEYS);
}

function sentence(scores, found, step, block) {
  const { factor, top, sum } = found[step - 1];
  const part = scores.slice((step - 1) * block, step * block);
  const terms = part.map((s) => `e^(${short(s - top)})`).join(" + ");
  if (step === 1) return `m = ${short(top)}, ℓ = ${terms} = ${fmt(sum, 3)}.`;
  const before = found[step - 2];
  const why = top > before.top
    ? `m rises from ${short(before.top)} to ${short(top)}, so the old sum shrinks: `
    : `m stays ${short(top)}: `;
  return `${why}ℓ = ${fmt(before.sum, 3)} · ${fmt(factor, 3)} + ${terms} = ${fmt(sum, 3)}.`;
}

export default { render };
