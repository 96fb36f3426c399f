// Why scores are divided by the square root of d_k: the same random queries and keys, both ways.
import {
  button, chart, count, explorer, fmt, make, maths, normals, percent, presets, range, short, slider,
  softmax, toggle, write,
} from "./shared.js";

const WIDTHS = range(11).map((i) => 2 ** i);
const QUERIES = 16;
const KEYS = 64;
const TRAITS = ["d_k", "n_keys", "scaled", "sample"];
const PRESETS = [
  ["d_k = 64, 16 keys", { d_k: 64, n_keys: 16, scaled: false }],
  ["d_k = 2", { d_k: 2, n_keys: 16, scaled: false }],
  ["d_k = 1024", { d_k: 1024, n_keys: 16, scaled: false }],
  ["d_k = 1024, scaled", { d_k: 1024, n_keys: 16, scaled: true }],
  ["Two keys", { d_k: 64, n_keys: 2, scaled: false }],
];

// products[w][query * KEYS + key]: q . k over the first WIDTHS[w] dimensions.
function dotProducts(sample) {
  const widest = WIDTHS[WIDTHS.length - 1];
  const q = normals(2 * sample, QUERIES * widest);
  const k = normals(2 * sample + 1, KEYS * widest);
  const products = WIDTHS.map(() => new Float64Array(QUERIES * KEYS));
  for (let a = 0; a < QUERIES; a++) {
    for (let b = 0; b < KEYS; b++) {
      let sum = 0;
      for (let i = 0, w = 0; i < widest; i++) {
        sum += q[a * widest + i] * k[b * widest + i];
        if (i + 1 === WIDTHS[w]) products[w++][a * KEYS + b] = sum;
      }
    }
  }
  return products;
}

// Averages over the queries: the scores' spread, the largest weight, the entropy, the gradient.
function statistics(products, n, scale) {
  let [square, total, highest, h, gradient] = [0, 0, 0, 0, 0];
  for (let from = 0; from < QUERIES * KEYS; from += KEYS) {
    let top = -Infinity;
    for (let j = from; j < from + n; j++) {
      const x = products[j] * scale;
      total += x;
      square += x * x;
      if (x > top) top = x;
    }
    // With e = exp(x - top) and z = sum of e: H = log z - sum of e (x - top) / z.
    let [z, inner] = [0, 0];
    for (let j = from; j < from + n; j++) {
      const x = products[j] * scale - top;
      const e = Math.exp(x);
      z += e;
      inner += e * x;
    }
    const p = 1 / z;
    highest += p;
    h += Math.log(z) - inner / z;
    // The largest p (1 - p) belongs to the weight nearest 1/2; below 1/2, to the largest.
    let near = p * (1 - p);
    if (p > 0.5) {
      for (let j = from; j < from + n; j++) {
        const w = Math.exp(products[j] * scale - top) / z;
        near = Math.max(near, w * (1 - w));
      }
    }
    gradient += near;
  }
  const m = QUERIES * n;
  return { spread: Math.sqrt(Math.max(0, square / m - (total / m) ** 2)), top: highest / QUERIES,
    h: h / QUERIES, gradient: gradient / QUERIES };
}

function render({ model, el }) {
  const ex = explorer({ model, el, title: "Why the square root of d_k", name: "rootdk" });
  const start = presets({ ex, items: PRESETS, keys: TRAITS });
  const width = slider({ label: "width d_k", values: WIDTHS,
    onInput: (d) => ex.set({ d_k: d }) });
  const keys = slider({ label: "number of keys", min: 2, max: KEYS,
    onInput: (n) => ex.set({ n_keys: n }) });
  const sample = button("Another sample", () => ex.set({ sample: (ex.get("sample") + 1) % 100 }));
  const scale = toggle({ label: "divide by √d_k", onInput: (scaled) => ex.set({ scaled }) });
  const bars = chart({ label: "", height: 110, yLabel: "weights of the first query, largest first",
    yTicks: [[0, "0"], [0.5, "0.5"], [1, "1"]] });
  const columns = bars.line(0, "column");
  const xTicks = [1, 4, 16, 64, 256, 1024].map((d) => [Math.log2(d) / 10, String(d)]);
  const tops = chart({ label: "", xTicks, xLabel: "d_k", yLabel: "largest weight, mean",
    yTicks: [[0, "0"], [0.5, "0.5"], [1, "1"]], height: 120 });
  const gradients = chart({ label: "", xTicks, xLabel: "d_k",
    yLabel: "largest Jacobian entry, mean", height: 120,
    yTicks: [[0, "0"], [0.5, "0.125"], [1, "0.25"]] });
  const plots = [tops, gradients].map((plot) =>
    ({ plot, raw: plot.line(1, "dash1"), scaled: plot.line(0), marker: plot.marker() }));
  const cells = {};
  const row = (key, words) => make("tr", {}, make("th", { scope: "row", text: words }),
    ...["raw", "scaled"].map((side) => (cells[key + side] = make("td"))));
  const heads = ["raw", "scaled"].map((side) => make("th", { scope: "col" },
    make("i", { class: `sample ${side}` }), maths(side === "raw" ? "q·k" : "q·k / √d_k")));
  const table = make("table", {}, make("thead", {}, make("tr", {}, make("td"), ...heads)),
    make("tbody", {}, row("spread", "spread of the scores (std)"), row("top", "largest weight, mean"),
      row("h", "effective keys, exp(mean H)"),
      row("gradient", "largest Jacobian entry by this score, mean")));
  ex.add(start.node, width.node, keys.node,
    make("div", { class: "switches" }, scale.node, sample), bars.node, table,
    make("div", { class: "two" }, tops.node, gradients.node));

  let [seen, products, all, sizes] = [null, null, null, null];
  function draw() {
    const [d, n, scaled, seed] = TRAITS.map(ex.get);
    if (seed !== seen) {
      products = dotProducts(seed);
      seen = seed;
      sizes = null;
    }
    if (n !== sizes) {
      sizes = n;
      all = WIDTHS.map((w, i) => ({ raw: statistics(products[i], n, 1),
        scaled: statistics(products[i], n, 1 / Math.sqrt(w)) }));
      for (const side of ["raw", "scaled"]) {
        plots[0][side].set(all.map((s, i) => [i / 10, s[side].top]));
        plots[1][side].set(all.map((s, i) => [i / 10, 4 * s[side].gradient]));
      }
    }
    const at = WIDTHS.indexOf(d);
    const factor = scaled ? 1 / Math.sqrt(d) : 1;
    const weights = softmax(Array.from(products[at].subarray(0, n), (x) => x * factor))
      .sort((a, b) => b - a);
    const lines = weights.map((w, i) =>
      `M${bars.x((i + 0.5) / n)} ${bars.y(0)}V${bars.y(w)}`);
    columns.path.setAttribute("d", lines.join(""));
    columns.path.style.strokeWidth = `${Math.min(28, 180 / n)}px`;
    columns.path.style.setProperty("--c", `var(--c${scaled ? 0 : 1})`); // as in the table
    bars.describe(`The first query's ${n} weights, largest first: ${
      weights.slice(0, 4).map((w) => fmt(w)).join(", ")}${n > 4 ? " and so on" : ""}.`);
    const now = all[at];
    for (const side of ["raw", "scaled"]) {
      const s = now[side];
      for (const key of ["spread", "top", "gradient"]) write(cells[key + side], fmt(s[key], 3));
      write(cells[`h${side}`], `${fmt(Math.exp(s.h), 2)} of ${n}`);
    }
    for (const { plot, marker } of plots) {
      marker.set(at / 10);
      plot.describe(`Against d_k from 1 to 1024; at ${d}: unscaled ${
        fmt(plot === tops ? now.raw.top : now.raw.gradient)}, scaled ${
        fmt(plot === tops ? now.scaled.top : now.scaled.gradient)}.`);
    }
    width.set(d);
    keys.set(n);
    scale.set(scaled);
    start.update();
    ex.say(`With d_k = ${d} and ${count(n, "key")} the raw scores spread by ${
      short(now.raw.spread, 2)} (√${d} is ${short(Math.sqrt(d), 2)}) and the largest weight is ${
      percent(now.raw.top)} on average${now.raw.gradient < 0.05
      ? ", which leaves hardly any gradient" : ""}. Divided by √d_k they spread by ${
      short(now.scaled.spread, 2)}, and the largest weight is ${percent(now.scaled.top)}.`);
  }
  return ex.start(draw, TRAITS);
}

export default { render };
