// Softmax as a competition: scores, a temperature, and the weights that come out.
import {
  bar, chart, count, entropy, explorer, fmt, largestJacobian, list, make, maths, numberBox, percent,
  presets, range, readouts, short,
  slider, softmax, swatch, toggle, write,
} from "./shared.js";

const LOW = 0.05;
const HIGH = 20;
const place = (t) => Math.log(t / LOW) / Math.log(HIGH / LOW);
const STEPS = range(61).map((i) => LOW * Math.pow(HIGH / LOW, i / 60));
const math = ["I", "love", "math"];
const free = { scaled: false };
const PRESETS = [
  ["I love math, the row of “math”",
    { scores: [1, 1, 2], labels: math, d_k: 2, scaled: true, temperature: Math.SQRT2 }],
  ["2, 1, 0", { scores: [2, 1, 0], labels: ["a", "b", "c"], temperature: 1, ...free }],
  ["1.2, 0.1, 2", { scores: [1.2, 0.1, 2], labels: ["a", "b", "c"], temperature: 1, ...free }],
  ["16, 15, 14", { scores: [16, 15, 14], labels: ["a", "b", "c"], temperature: 1, ...free }],
  ["Thinking Machines",
    { scores: [112, 96], labels: ["Thinking", "Machines"], d_k: 64, scaled: true, temperature: 8 }],
  ["A tie", { scores: [3, 3, 1, 0], labels: ["a", "b", "c", "d"], temperature: 1, ...free }],
  ["One token", { scores: [1], labels: ["alone"], temperature: 1, ...free }],
];
const KEYS = ["scores", "labels", "temperature", "d_k", "scaled"];
const nice = (x) => [1, 2, 5, 10].map((m) => m * 10 ** Math.floor(Math.log10(x)))
  .find((m) => m >= x * 0.999);

function render({ model, el }) {
  const ex = explorer({ model, el, title: "Softmax temperature", name: "temperature" });
  const start = presets({ ex, items: PRESETS, keys: KEYS });
  const heat = slider({ label: "temperature T", min: LOW, max: HIGH, log: true,
    onInput: (t) => ex.set({ temperature: t, scaled: false }) });
  const scale = toggle({ label: "T = √d_k", onInput: (on) =>
    ex.set(on ? { scaled: true, temperature: Math.sqrt(ex.get("d_k")) } : { scaled: false }) });
  const width = numberBox({ label: "d_k, 1 to 400", min: 1, max: 400, step: 1,
    onInput: (d) => ex.set({ d_k: d, ...(ex.get("scaled") ? { temperature: Math.sqrt(d) } : {}) }) });
  const table = make("div", { class: "tokens" });
  const heads = make("div", { class: "token-row heads", "aria-hidden": "true" },
    ...["token", "score", "", "weight"].map((text) => make("span", { text })));
  const numbers = readouts({ h: "entropy H, nats", n: "effective tokens, exp(H)",
    j: "largest Jacobian entry" });
  const lines = chart({ label: "", height: 150, yLabel: "weight", xLabel: "temperature, log scale",
    xTicks: [0.05, 0.2, 1, 5, 20].map((t) => [place(t), String(t)]),
    yTicks: [[0, "0"], [0.5, "0.5"], [1, "1"]] });
  const now = lines.marker();
  ex.add(start.node, heat.node,
    make("div", { class: "field" }, scale.node,
      make("label", { class: "beside" }, maths("d_k"), width.node)),
    table, numbers.node, lines.node);

  let rows = [];
  let drawn = "";
  const label = (i) => String(ex.get("labels")[i] ?? `token ${i + 1}`);
  function change(i, score) {
    const scores = [...ex.get("scores")];
    scores[i] = score;
    ex.set({ scores });
  }
  function build(n) {
    for (const row of rows) row.curve.remove();
    rows = range(n).map((i) => {
      const words = make("b");
      const name = make("span", { class: "word" }, swatch(i, `dash${i % 4}`), words);
      const box = numberBox({ label: "", min: -1e4, max: 1e4, onInput: (x) => change(i, x) });
      const drag = make("input", { type: "range", step: "any",
        on: { input: () => change(i, Number(drag.value)) } });
      drag.addEventListener("keydown", (event) => {
        const way = { ArrowUp: 1, ArrowRight: 1, ArrowDown: -1, ArrowLeft: -1 }[event.key];
        if (!way) return;
        event.preventDefault();
        const score = ex.get("scores")[i] + (way * Number(drag.max)) / 50;
        change(i, Number(Math.min(drag.max, Math.max(drag.min, score)).toFixed(6)));
      });
      const weight = bar(i);
      const number = make("span", { class: "weight" });
      const node = make("div", { class: "token-row" }, name, box.node, drag, weight.node, number);
      return { node, words, box, drag, weight, number, curve: lines.line(i, `dash${i % 4}`) };
    });
    table.replaceChildren(heads, ...rows.map((row) => row.node));
  }
  function draw() {
    const scores = ex.get("scores");
    const t = ex.get("temperature");
    const weights = softmax(scores, t);
    if (rows.length !== scores.length) build(scores.length);
    const key = JSON.stringify([scores, ex.get("labels")]);
    if (key !== drawn) {
      drawn = key;
      // The sliders' reach follows the largest score, but never shrinks under a dragging hand.
      const need = nice(Math.max(5, ...scores.map(Math.abs)));
      const reach = rows.some((row) => row.drag === document.activeElement)
        ? Math.max(need, Number(rows[0].drag.max)) : need;
      const curves = STEPS.map((step) => softmax(scores, step));
      rows.forEach((row, i) => {
        write(row.words, label(i));
        row.drag.min = -reach;
        row.drag.max = reach;
        row.drag.setAttribute("aria-label", `score of ${label(i)}`);
        row.box.field.setAttribute("aria-label", `score of ${label(i)}, typed`);
        if (Number(row.drag.value) !== scores[i]) row.drag.value = scores[i];
        row.drag.setAttribute("aria-valuetext", short(scores[i]));
        row.box.set(scores[i]);
        row.curve.set(curves.map((w, s) => [s / 60, w[i]]));
      });
    }
    rows.forEach((row, i) => {
      row.weight.set(weights[i]);
      write(row.number, fmt(weights[i], 3));
    });
    heat.set(t);
    scale.set(ex.get("scaled"));
    width.set(ex.get("d_k"));
    now.set(place(t));
    start.update();
    const h = entropy(weights);
    numbers.set({ h: fmt(Math.abs(h), 3), n: `${fmt(Math.exp(h), 2)} of ${scores.length}`,
      j: fmt(largestJacobian(weights), 3) });
    lines.describe(`Each token's weight as the temperature goes from 0.05 to 20; now ${short(t)}.`);
    ex.say(sentence(scores, weights, t, label));
  }
  return ex.start(draw, KEYS);
}

function sentence(scores, weights, t, label) {
  const n = scores.length;
  if (n === 1) return "One token alone always gets all the weight, whatever its score.";
  const top = Math.max(...weights);
  const first = range(n).filter((i) => weights[i] > top - 1e-9).map((i) => `“${label(i)}”`);
  const begin = `At temperature ${short(t)} `;
  if (first.length === n) return `${begin}all ${n} tokens get the same weight, ${percent(1 / n)}.`;
  const effective = Math.exp(entropy(weights));
  const each = first.length > 1 ? `${list(first)} tie at ${percent(top)} each`
    : `${first[0]} gets ${percent(top)}`;
  const gradient = largestJacobian(weights) < 0.001
    ? " The choice is made: hardly any gradient is left." : "";
  return `${begin}${each}; it is as if ${fmt(effective, 2)} of ${count(n, "token")} shared the `
    + `attention.${gradient}`;
}

export default { render };
