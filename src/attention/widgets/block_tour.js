// A tour of the blocks: every tensor's shape, parameters, operations, and the cache.
import {
  bar, brief, choice, explorer, grouped, make, maths, numberBox, presets, range, readouts, slider,
  toggle, write,
} from "./shared.js";

const NUMBERS = { d_model: ["d_model", 1, 32768], num_heads: ["heads h", 1, 256],
  num_kv_heads: ["K/V heads", 1, 256], d_ff: ["d_ff", 1, 131072], num_layers: ["layers", 1, 256],
  vocab_size: ["vocabulary", 1, 1000000] };
const KEYS = ["n", ...Object.keys(NUMBERS), "kind", "bias", "gated", "norm", "tied", "positions",
  "window", "extra"];
const LLAMA = { kind: "decoder", bias: false, gated: true, norm: "rms", positions: 0, window: 0,
  extra: 0 };
const OLD = { bias: true, gated: false, norm: "layer", tied: true, window: 0, extra: 0 };
const PRESETS = [
  ["2017 base", { n: 64, d_model: 512, num_heads: 8, num_kv_heads: 8, d_ff: 2048, num_layers: 6,
    vocab_size: 37000, kind: "encoder-decoder", positions: 0, ...OLD }],
  ["2017 big", { n: 64, d_model: 1024, num_heads: 16, num_kv_heads: 16, d_ff: 4096, num_layers: 6,
    vocab_size: 37000, kind: "encoder-decoder", positions: 0, ...OLD }],
  ["BERT base", { n: 512, d_model: 768, num_heads: 12, num_kv_heads: 12, d_ff: 3072, num_layers: 12,
    vocab_size: 30522, kind: "encoder", positions: 512, ...OLD, extra: 592128 }],
  ["GPT-2 small", { n: 1024, d_model: 768, num_heads: 12, num_kv_heads: 12, d_ff: 3072,
    num_layers: 12, vocab_size: 50257, kind: "decoder", positions: 1024, ...OLD }],
  ["Mistral 7B", { n: 8192, d_model: 4096, num_heads: 32, num_kv_heads: 8, d_ff: 14336,
    num_layers: 32, vocab_size: 32000, tied: false, ...LLAMA, window: 4096 }],
  ["Llama 3 8B", { n: 8192, d_model: 4096, num_heads: 32, num_kv_heads: 8, d_ff: 14336,
    num_layers: 32, vocab_size: 128256, tied: false, ...LLAMA }],
];

// The rows of the tour and the totals. A row is [name, shape, parameters, multiply-adds], of one
// layer; `times` says how many such layers there are.
function tour(s) {
  const { n, d_model: d, num_heads: h, num_kv_heads: g, d_ff: f, vocab_size: v } = s;
  const dk = d / h;
  const kv = g * dk;
  const b = s.bias ? 1 : 0;
  const norm = s.norm === "rms" ? d : 2 * d;
  const seen = Math.min(n, s.window || n); // keys that a query can meet
  const attention = (name) => [
    [`${name}queries`, [h, n, dk], d * d + b * d, n * d * d],
    [`${name}keys`, [g, n, dk], d * kv + b * kv, n * d * kv],
    [`${name}values`, [g, n, dk], d * kv + b * kv, n * d * kv],
    [`${name}scores, weights`, [h, n, seen], 0, n * seen * d],
    [`${name}weighted values`, [h, n, dk], 0, n * seen * d],
    [`${name}output projection`, [n, d], d * d + b * d, n * d * d],
    [`${name}norm`, [n, d], norm, 0],
  ];
  const feed = [
    [s.gated ? "feed-forward: gate, up" : "feed-forward: up", [n, f],
      (s.gated ? 2 : 1) * (d * f + b * f), (s.gated ? 2 : 1) * n * d * f],
    ["feed-forward: down", [n, d], d * f + b * d, n * d * f],
    ["norm", [n, d], norm, 0],
  ];
  const layer = [...attention(""), ...feed];
  const both = s.kind === "encoder-decoder";
  const parts = [
    ["start", 1, [["token embedding", [n, d], v * d, 0],
      ...(s.positions ? [["learned positions", [n, d], s.positions * d, 0]] : []),
      ...(s.kind === "encoder" ? [["embedding norm", [n, d], norm, 0]] : [])]],
    [both ? "encoder layer" : "layer", s.num_layers, layer],
    ...(both ? [["decoder layer", s.num_layers,
      [...attention(""), ...attention("cross: "), ...feed]]] : []),
    // 2017 and BERT normalise after each sublayer: nothing is left to normalise at the end.
    ["end", 1, [...(s.kind === "decoder" ? [["norm", [n, d], norm, 0]] : []),
      ...(s.extra ? [["other parameters", [], s.extra, 0]] : []),
      ...(s.kind === "encoder" ? [] : [["logits", [n, v], s.tied ? 0 : v * d, n * d * v]])]],
  ];
  const sum = (column) => parts.reduce((total, [, times, rows]) =>
    total + times * rows.reduce((part, row) => part + row[column], 0), 0);
  // Keys and values of every layer, two bytes a number; cross-attention caches its own.
  const cached = s.kind === "encoder" ? 0 : 2 * s.num_layers * kv * seen * 2 * (both ? 2 : 1);
  return { parts, parameters: sum(2), operations: sum(3), cache: cached };
}

function render({ model, el }) {
  const ex = explorer({ model, el, title: "Block tour", name: "tour" });
  const start = presets({ ex, items: PRESETS, keys: KEYS });
  const length = slider({ label: "tokens n", values: range(18).map((i) => 2 ** i),
    say: (n) => grouped(n), onInput: (n) => ex.set({ n }) });
  const boxes = Object.entries(NUMBERS).map(([key, [words, min, max]]) => {
    const box = numberBox({ label: words.replace("_", " "), min, max, step: 1,
      onInput: (x) => ex.set({ [key]: x }) });
    return { key, box, node: make("label", {}, maths(words), box.node) };
  });
  const kind = choice({ label: "architecture", options: [["encoder-decoder", "encoder and decoder"],
    ["decoder", "decoder only"], ["encoder", "encoder only"]], onInput: (x) => ex.set({ kind: x }) });
  const gated = toggle({ label: "gated feed-forward", onInput: (x) => ex.set({ gated: x }) });
  const tied = toggle({ label: "output tied to embedding", onInput: (x) => ex.set({ tied: x }) });
  const numbers = readouts({ parameters: "parameters", operations: "multiply-adds for n tokens",
    cache: "key/value cache, 16 bit" });
  const tables = make("div", { class: "tour" });
  const refusal = make("p", { class: "sum" });
  ex.add(start.node, length.node, kind.node,
    make("div", { class: "sizes", role: "group", "aria-label": "sizes" },
      ...boxes.map((box) => box.node)),
    make("div", { class: "switches" }, gated.node, tied.node), numbers.node, refusal, tables);

  let [built, rows] = ["", []];
  const cell = (role, ...children) => make("span", { role }, ...children);
  const line = (kindOf, cells) => make("div", { class: `tour-row ${kindOf}`, role: "row" }, ...cells);
  function build(parts) {
    rows = [];
    tables.replaceChildren(...parts.map(([name, times, list], p) => {
      const title = make("summary", { "data-lm-suppress-shortcuts": "true" });
      const nodes = [line("heads", ["step", "shape", "parameters", "multiply-adds"]
        .map((text) => make("span", { role: "columnheader", text })))];
      rows.push({ title, lines: list.map(([step]) => {
        const [shape, a, b] = [cell("cell"), make("span"), make("span")];
        shape.className = "shape";
        const bars = [bar(0), bar(1)];
        nodes.push(line("", [make("span", { role: "rowheader", text: step }), shape,
          cell("cell", a, bars[0].node), cell("cell", b, bars[1].node)]));
        return { shape, a, b, bars };
      }) });
      return make("details", { open: p === parts.length - 2 }, title,
        make("div", { role: "table", "aria-label": name }, ...nodes));
    }));
  }
  function draw() {
    const state = Object.fromEntries(KEYS.map((key) => [key, ex.get(key)]));
    for (const { key, box } of boxes) box.set(state[key]);
    length.set(state.n);
    kind.set(state.kind);
    gated.set(state.gated);
    tied.set(state.tied);
    start.update();
    const { d_model: d, num_heads: h, num_kv_heads: g } = state;
    const fault = d % h ? `d_model must be divisible by the heads; got ${d} and ${h}.`
      : h % g ? `The heads must be divisible by the K/V heads; got ${h} and ${g}.` : "";
    write(refusal, fault);
    refusal.hidden = !fault;
    tables.hidden = Boolean(fault);
    if (fault) {
      numbers.set({ parameters: "–", operations: "–", cache: "–" });
      ex.say(fault);
      return;
    }
    const { parts, parameters, operations, cache } = tour(state);
    const shape = JSON.stringify(parts.map((part) => part[2].map((row) => row[0])));
    if (shape !== built) {
      built = shape;
      build(parts);
    }
    const top = [2, 3].map((column) => Math.max(1, ...parts.flatMap((part) =>
      part[2].map((row) => part[1] * row[column]))));
    parts.forEach(([name, times, list], p) => {
      const [weigh, work] = [2, 3].map((column) => brief(list.reduce((t, row) => t + row[column], 0)));
      write(rows[p].title, `${times > 1 ? `${name}, one of ${times}` : name}: ${weigh} parameters, `
        + `${work} multiply-adds`);
      list.forEach(([, dims, weights, work], r) => {
        const row = rows[p].lines[r];
        write(row.shape, dims.length ? `(${dims.join(", ")})` : "");
        write(row.a, weights ? brief(weights) : "·");
        write(row.b, work ? brief(work) : "·");
        row.bars[0].set((times * weights) / top[0]);
        row.bars[1].set((times * work) / top[1]);
      });
    });
    const bytes = cache ? `${brief(cache)}B` : "none";
    numbers.set({ parameters: grouped(parameters), operations: brief(operations), cache: bytes });
    const layers = parts.filter((part) => part[0].includes("layer")).flatMap((part) => part[2]);
    const square = layers.filter((row) => row[0].includes("scores") || row[0].includes("weighted"));
    const share = square.reduce((sum, row) => sum + row[3], 0) * state.num_layers / operations;
    ex.say(`${grouped(parameters)} parameters. For ${grouped(state.n)} tokens ${brief(operations)} `
      + `multiply-adds, ${Math.round(100 * share)}\u00a0% of them in scores and averages, which grow with n². `
      + (cache ? `The cache of keys and values takes ${bytes}.` : "Nothing is cached: an encoder reads once."));
  }
  return ex.start(draw, KEYS);
}

export default { render };
