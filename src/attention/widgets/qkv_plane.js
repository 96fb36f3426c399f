// Query, keys and values as points of a plane: drag them and see where the output goes.
import {
  attention, bar, explorer, fmt, list, make, percent, plane, presets, range, short, toggle,
  write,
} from "./shared.js";


const PRESETS = [
  ["Three directions", { q: [0.8, 0.6], k: [[2, 1], [-1, 2], [0.5, -2]],
    v: [[2.5, 0], [-2, 2], [-0.5, -2.5]], scaled: true }],
  ["At a right angle", { q: [2, 0], k: [[0, 2], [0, -2], [0, 1]] }],
  ["Opposite", { q: [2, 0], k: [[2, 0], [-2, 0], [0, 0]] }],
  ["A longer key", { q: [1, 1], k: [[0.5, 0.5], [3, 1], [1, 1]] }],
  ["Equal keys", { q: [1, 1], k: [[1, 0.5], [1, 0.5], [1, 0.5]] }],
];
const KEYS = ["q", "k", "v", "labels", "scaled"];

// The corners of the smallest convex polygon around the points (Andrew's monotone chain).
function hull(points) {
  const sorted = [...points].sort((a, b) => a[0] - b[0] || a[1] - b[1]);
  const half = (list) => {
    const out = [];
    for (const p of list) {
      while (out.length > 1) {
        const [a, b] = out.slice(-2);
        if ((b[0] - a[0]) * (p[1] - a[1]) - (b[1] - a[1]) * (p[0] - a[0]) > 0) break;
        out.pop();
      }
      out.push(p);
    }
    return out.slice(0, -1);
  };
  const corners = [...half(sorted), ...half([...sorted].reverse())];
  return corners.length ? corners : sorted.slice(0, 1);
}

function render({ model, el }) {
  const ex = explorer({ model, el, title: "Query, keys and values in the plane", name: "qkv" });
  // The presets place three keys; a plane with another number keeps its own.
  const items = ex.get("k").length === 3 ? PRESETS : [];
  const start = presets({ ex, items, keys: KEYS });
  const scale = toggle({ label: "divide by √d_k", onInput: (scaled) => ex.set({ scaled }) });
  const left = plane({ title: "the query and the keys", reach: 4 });
  const right = plane({ title: "values and the output", reach: 4 });
  const rows = make("div", { class: "tokens" });
  ex.add(start.node, make("div", { class: "two" }, left.node, right.node), scale.node, rows);
  const label = (i) => String(ex.get("labels")[i] ?? `key ${i + 1}`);
  const change = (key, i, point) => {
    const now = ex.get(key).map((p) => [...p]);
    now[i] = point;
    ex.set({ [key]: now });
  };
  const edge = right.polygon();
  let parts = [];
  let output;
  let query;
  function build(n) {
    left.clear();
    right.clear();
    parts = range(n).map((i) => {
      const weight = bar(i);
      const cells = range(3).map(() => make("span", { class: "weight" }));
      cells[0].className = "word";
      return { weight, cells,
        arrow: left.arrow(i), string: right.arrow(i, "string"),
        key: left.handle({ name: "key", colour: i, onMove: (p) => change("k", i, p) }),
        value: right.handle({ name: "value", colour: i, onMove: (p) => change("v", i, p) }),
        node: make("div", { class: "token-row plain" }, cells[0], cells[1], weight.node, cells[2]) };
    });
    output = right.point("output");
    query = { arrow: left.arrow(6, "thick"),
      handle: left.handle({ name: "query", colour: 6, mark: "q", onMove: (p) => ex.set({ q: p }) }) };
    rows.replaceChildren(make("div", { class: "token-row plain heads", "aria-hidden": "true" },
      ...["key", "score", "weight", ""].map((text) => make("span", { text }))),
    ...parts.map((part) => part.node));
  }
  function draw() {
    const [q, keys, values, , scaled] = KEYS.map(ex.get);
    if (parts.length !== keys.length) build(keys.length);
    const { scores, weights, out } = attention([q], keys, values,
      { scale: scaled ? Math.SQRT1_2 : 1 });
    const [score, weight, point] = [scores[0], weights[0], out[0]];
    parts.forEach((part, i) => {
      const name = label(i);
      part.arrow.set([0, 0], keys[i], 1.5 + 6 * weight[i]);
      part.string.set(point, values[i], 0.5 + 8 * weight[i]);
      part.key.set(keys[i], name);
      part.value.set(values[i], name);
      write(part.cells[0], name);
      write(part.cells[1], fmt(score[i], 2));
      part.weight.set(weight[i]);
      write(part.cells[2], fmt(weight[i]));
    });
    query.arrow.set([0, 0], q, 4);
    query.handle.set(q, "");
    edge.set(hull(values));
    output.set(point, "output");
    scale.set(scaled);
    start.update();
    const top = Math.max(...weight);
    const first = range(keys.length).filter((i) => weight[i] > top - 1e-9)
      .map((i) => `“${label(i)}”`);
    const shared = first.length === keys.length && keys.length > 1;
    ex.say(`The output is at (${short(point[0], 2)}, ${short(point[1], 2)}), inside the hull of `
      + `the values. ${shared ? "All keys score alike, so it is their plain mean."
        : `${list(first)} ${first.length > 1 ? "get" : "gets"} ${percent(top)}`
        + `${first.length > 1 ? " each" : ""}: the best match with the query, by direction and `
        + "by length."}`);
  }
  return ex.start(draw, KEYS);
}

export default { render };
