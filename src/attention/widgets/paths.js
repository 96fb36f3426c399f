// How far a signal travels from the first word to the last: recurrence, convolution, attention.
import {
  bar, brief, chart, count, explorer, make, presets, range, slider, toggle, write,
} from "./shared.js";

const KEYS = ["n", "kernel", "dilated", "d_model"];
const KINDS = ["recurrence", "convolution", "attention"];
const PRESETS = [
  ["16 words, window 3", { n: 16, kernel: 3, dilated: false, d_model: 512 }],
  ["Dilated", { n: 16, kernel: 2, dilated: true, d_model: 512 }],
  ["64 words", { n: 64, kernel: 3, dilated: false, d_model: 512 }],
  ["Longer than wide", { n: 64, kernel: 3, dilated: false, d_model: 16 }],
];

// Layers until the last output sees the first word. A layer looks back kernel - 1 positions;
// dilated, layer l looks back in strides of kernel ** l.
function convolutionLayers(n, kernel, dilated) {
  let [layers, field] = [0, 1];
  for (; field < n; layers++) field += (kernel - 1) * (dilated ? kernel ** layers : 1);
  return layers;
}

// Multiply-adds that carry something from one position to another: a (d, d) product a word; kernel
// of them a word and layer; n * n * d twice, for the scores and for the averages. What each word
// computes on its own (input, query, key, value, output projections) is not counted.
function counts(n, kernel, dilated, d) {
  const layers = convolutionLayers(n, kernel, dilated);
  return {
    recurrence: { layers: 1, steps: n, path: n, work: n * d * d },
    convolution: { layers, steps: 1, path: layers, work: layers * kernel * n * d * d },
    attention: { layers: 1, steps: 1, path: 1, work: 2 * n * n * d },
  };
}

// The edges [layer, from, to] of the convolutions that lead to the last output.
function backwards(n, kernel, dilated, layers) {
  let level = new Set([n - 1]);
  const edges = [];
  for (let layer = layers; layer > 0; layer--) {
    const below = new Set();
    const stride = dilated ? kernel ** (layer - 1) : 1;
    for (const to of level) {
      for (let m = 0; m < kernel; m++) {
        const from = to - m * stride;
        if (from >= 0) {
          below.add(from);
          edges.push([layer, from, to]);
        }
      }
    }
    level = below;
  }
  return edges;
}

function render({ model, el }) {
  const ex = explorer({ model, el, title: "Paths between words", name: "paths" });
  const start = presets({ ex, items: PRESETS, keys: KEYS });
  const length = slider({ label: "words n", min: 2, max: 64, onInput: (n) => ex.set({ n }) });
  const kernel = slider({ label: "window k", min: 2, max: 7, onInput: (k) => ex.set({ kernel: k }) });
  const width = slider({ label: "width d", values: [16, 32, 64, 128, 256, 512, 1024],
    onInput: (d) => ex.set({ d_model: d }) });
  const dilated = toggle({ label: "dilated convolution: gaps 1, k, k², …", onInput: (on) => ex.set({ dilated: on }) });
  const pictures = KINDS.map((kind, i) => {
    const drawing = chart({ label: "", height: 92 });
    const title = make("p", { class: "heading" });
    return { kind, drawing, title, edges: drawing.line(6, "edges"), nodes: drawing.line(6, "nodes"),
      path: drawing.line(i, "path"), node: make("div", {}, title, drawing.node) };
  });
  const columns = ["layers", "steps in a row", "path", "multiply-adds"];
  const cells = {};
  const bars = {};
  const table = make("table", {},
    make("thead", {}, make("tr", {}, make("td"),
      ...columns.map((text) => make("th", { scope: "col", text })))),
    make("tbody", {}, ...KINDS.map((kind, i) => {
      cells[kind] = columns.map(() => make("td"));
      bars[kind] = bar(i);
      const last = make("span");
      cells[kind][3].append(last, bars[kind].node);
      cells[kind][3] = last;
      return make("tr", {}, make("th", { scope: "row", text: kind }),
        ...cells[kind].slice(0, 3), last.parentNode);
    })));
  ex.add(start.node, length.node, kernel.node, width.node, dilated.node,
    ...pictures.map((picture) => picture.node), table, make("p", { class: "readline", text: "Layers until "
      + "the last output knows of the first word; steps in a row within one layer; path from first to "
      + "last; multiply-adds that carry something from one position to another." }));

  function draw() {
    const [n, k, spread, d] = KEYS.map(ex.get);
    const all = counts(n, k, spread, d);
    const most = Math.max(...KINDS.map((kind) => all[kind].work));
    const x = (i) => (i + 0.5) / n;
    pictures.forEach(({ kind, drawing, title, edges, nodes, path }) => {
      const { layers, path: long } = all[kind];
      const y = (layer) => 0.06 + (0.88 * layer) / layers;
      const spot = (i, layer) => `${drawing.x(x(i))} ${drawing.y(y(layer))}`;
      const line = ([layer, from, to]) => `M${spot(from, layer - 1)}L${spot(to, layer)}`;
      const dot = (i, layer) => `M${spot(i, layer)}h0`;
      let lines;
      let route; // the marked way: [position, layer], ...
      if (kind === "recurrence") {
        lines = range(n).map((i) => [1, i, i]);
        route = [[0, 0], ...range(n).map((i) => [i, 1])];
      } else if (kind === "attention") {
        lines = range(n).map((i) => [1, i, n - 1]);
        route = [[0, 0], [n - 1, 1]];
      } else {
        lines = n * k * layers > 3000 ? [] : backwards(n, k, spread, layers);
        let at = 0;
        route = [[0, 0]];
        for (let layer = 1; layer <= layers; layer++) {
          const stride = k ** (layer - 1); // dilated: the digits of n - 1 to base k
          at += spread ? (Math.floor((n - 1) / stride) % k) * stride : Math.min(k - 1, n - 1 - at);
          route.push([at, layer]);
        }
      }
      edges.path.setAttribute("d", lines.map(line).join(""));
      const rows = n * (layers + 1) > 700 ? [0, layers] : range(layers + 1);
      nodes.path.setAttribute("d", rows.map((layer) => range(n).map((i) => dot(i, layer)).join(""))
        .join(""));
      path.set(route.map(([i, layer]) => [x(i), y(layer)]));
      write(title, `${kind}: ${count(long, "step")} from the first word to the last`);
      drawing.describe(`${kind}, ${count(layers, "layer")}: ${count(long, "step")} from the first of `
        + `${n} words, at the bottom left, to the last output, at the top right.`);
      const row = cells[kind];
      write(row[0], String(layers));
      write(row[1], String(all[kind].steps));
      write(row[2], String(long));
      write(row[3], brief(all[kind].work));
      bars[kind].set(all[kind].work / most);
    });
    length.set(n);
    kernel.set(k);
    width.set(d);
    dilated.set(spread);
    start.update();
    const { recurrence, convolution, attention } = all;
    const cheap = attention.work < recurrence.work ? "less work than" : attention.work > recurrence.work
      ? "more work than" : "as much work as";
    ex.say(`With ${n} words, the first reaches the last after ${recurrence.path} steps by recurrence, `
      + `${convolution.path} by ${spread ? "dilated " : ""}convolution with a window of ${k}, and 1 by `
      + `attention. At width ${d}, attention does ${cheap} recurrence to connect the words.`);
  }
  return ex.start(draw, KEYS);
}

export default { render };
