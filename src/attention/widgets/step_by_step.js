// Attention step by step: small Q, K, V that may be edited, and the arithmetic of a chosen cell.
import {
  attention, button, clamp, explorer, fmt, heatmap, make, matmul, numberBox,
  percent, presets, range, short, softmax, toggle, transpose, write,
} from "./shared.js";

const LOVE = { q: [[1, 0], [0, 1], [1, 1]], k: [[0, 1], [1, 0], [1, 1]], v: [[1, 2], [3, 4], [5, 6]],
  labels: ["I", "love", "math"] };
const PRESETS = [
  ["I love math", { ...LOVE, scaled: true }],
  ["The same, unscaled", { ...LOVE, scaled: false }],
  ["A long key", { ...LOVE, k: [[0, 1], [1, 0], [6, 6]], scaled: true }],
  ["Equal keys", { ...LOVE, k: [[1, 1], [1, 1], [1, 1]], scaled: true }],
];
const KEYS = ["q", "k", "v", "labels", "scaled", "step", "row", "column"];
const STEPS = ["QKᵀ", "÷ √d_k", "softmax", "× V"];
const NAMES = ["scores QKᵀ", "scaled scores", "weights A", "output O = AV"];

function render({ model, el }) {
  const ex = explorer({ model, el, title: "Attention step by step", name: "step" });
  const start = presets({ ex, items: PRESETS, keys: KEYS });
  const inputs = make("div", { class: "matrices" });
  const tabs = STEPS.map((text, i) => button(`${i + 1} ${text}`, () => ex.set({ step: i + 1 })));
  const back = button("‹ Back", () => ex.set({ step: clamp(ex.get("step") - 1, 1, 4) }));
  const next = button("Next ›", () => ex.set({ step: clamp(ex.get("step") + 1, 1, 4) }));
  const scale = toggle({ label: "divide by √d_k", onInput: (scaled) => ex.set({ scaled }) });
  const panels = make("div", { class: "two" });
  const line = make("p", { class: "sum" });
  ex.add(start.node, inputs, make("div", { class: "steps", role: "group", "aria-label": "step" },
    back, ...tabs, next), scale.node, panels, line);

  let shape = "";
  let boxes = {};
  let maps = [];
  const label = (i) => String(ex.get("labels")[i] ?? i + 1);
  function build(q, k, v) {
    const words = k.map((_, i) => label(i));
    boxes = {};
    inputs.replaceChildren(...[["q", q], ["k", k], ["v", v]].map(([name, table]) => {
      boxes[name] = table.map((row, i) => row.map((_, j) => numberBox({ min: -99, max: 99,
        label: `${name.toUpperCase()}, ${label(i)}, column ${j + 1}`, onInput: (x) => {
          const now = ex.get(name).map((r) => [...r]);
          now[i][j] = x;
          ex.set({ [name]: now });
        } })));
      return make("div", { class: "matrix", role: "group", "aria-label": name.toUpperCase() },
        make("p", { class: "heading", text: name.toUpperCase() }),
        ...boxes[name].map((row, i) => make("div", { class: "entries" },
          make("span", { class: "side", text: label(i) }), ...row.map((box) => box.node))));
    }));
    const columns = v[0].map((_, j) => `column ${j + 1}`);
    const rows = q.map((_, i) => label(i));
    maps = NAMES.map((name, s) => heatmap({ label: name, rows, signed: s !== 2, digits: 3,
      columns: s === 3 ? columns : words, onCell: (row, column) => ex.set({ row, column }) }));
    panels.replaceChildren(...maps.map((map, s) =>
      make("div", {}, make("p", { class: "heading", text: NAMES[s] }), map.node)));
  }
  function draw() {
    const [q, k, v, step, scaled] = ["q", "k", "v", "step", "scaled"].map(ex.get);
    const now = JSON.stringify([q, k, v].map((m) => [m.length, m[0].length]).concat(ex.get("labels")));
    if (now !== shape) {
      shape = now;
      build(q, k, v);
    }
    const root = Math.sqrt(k[0].length);
    const factor = scaled ? 1 / root : 1;
    const raw = matmul(q, transpose(k));
    const { scores, weights, out } = attention(q, k, v, { scale: factor });
    const tables = [raw, scores, weights, out];
    const row = clamp(ex.get("row"), 0, q.length - 1);
    const column = clamp(ex.get("column"), 0, tables[step - 1][0].length - 1);
    for (const [name, table] of [["q", q], ["k", k], ["v", v]]) {
      table.forEach((line, i) => line.forEach((x, j) => {
        boxes[name][i][j].set(x);
        const used = step === 1 ? (name === "q" && i === row) || (name === "k" && i === column)
          : step === 4 && name === "v" && j === column;
        boxes[name][i][j].field.classList.toggle("from", used);
      }));
    }
    tables.forEach((table, s) => {
      const visible = s === step - 1 || s === step - 2;
      panels.children[s].hidden = !visible;
      if (!visible) return;
      const top = s === 2 ? 1 : Math.max(1e-9, ...table.flat().map(Math.abs));
      const from = s === step - 2;
      maps[s].set((i, j) => table[i][j] / top, (i, j) => fmt(table[i][j], 3),
        (i, j) => (from && i === row && (step > 2 || j === column) ? "from" : ""));
      if (from) maps[s].mark(-1, -1);
      else maps[s].mark(row, column);
    });
    tabs.forEach((tab, i) => {
      tab.setAttribute("aria-pressed", i === step - 1);
    });
    back.disabled = step === 1;
    next.disabled = step === 4;
    scale.set(scaled);
    start.update();

    const [a, b] = [label(row), label(column)];
    const times = (x, y) => `${wrap(x)}·${wrap(y)}`;
    let sum;
    if (step === 1) {
      sum = `q(${a}) · k(${b}) = ${q[row].map((x, i) => times(x, k[column][i])).join(" + ")}`
        + ` = ${short(raw[row][column])}`;
    } else if (step === 2) {
      sum = scaled ? `${short(raw[row][column])} / √${k[0].length} = `
        + `${short(raw[row][column])} / ${short(root)} = ${fmt(scores[row][column])}`
        : `not divided: the score stays ${short(raw[row][column])}`;
    } else if (step === 3) {
      // The largest score of the row is taken away first, if e^score would be out of hand.
      const top = Math.max(...scores[row]) > 20 ? Math.max(...scores[row]) : 0;
      const powers = scores[row].map((x) => Math.exp(x - top));
      const terms = scores[row].map((x) => `e^${wrap(x - top)}`);
      sum = `${top ? `With ${short(top)} taken from each score: ` : ""}`
        + `${terms[column]} / (${terms.join(" + ")}) = ${fmt(powers[column])} / `
        + `${fmt(powers.reduce((x, y) => x + y, 0))} = ${fmt(weights[row][column])}`;
    } else {
      sum = `${weights[row].map((w, i) => times(w, v[i][column])).join(" + ")}`
        + ` = ${fmt(out[row][column])}`;
    }
    write(line, sum);
    const top = Math.max(...weights[row]);
    const first = range(k.length).filter((j) => weights[row][j] > top - 1e-9).map(label);
    // No step gives away what a later step shows.
    const most = first.length === k.length ? "to all alike"
      : `most to “${first.join("” and “")}”, ${percent(top)}${first.length > 1 ? " each" : ""}`;
    ex.say(`Step ${step}, ${NAMES[step - 1]}, row “${a}”, ${step === 4 ? "" : "column "}`
      + `${step === 4 ? `column ${column + 1}` : `“${b}”`}: ${sum}.`
      + `${step < 3 ? "" : ` “${a}” attends ${most}${step < 4 ? "" : `; its output is (${
        out[row].map((x) => fmt(x, 3)).join(", ")})`}.`}`);
  }
  return ex.start(draw, KEYS);
}
const wrap = (x) => (x < 0 ? `(${short(x)})` : short(x));

export default { render };
