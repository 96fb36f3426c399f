// Four ways to tell where a token stands, on one score matrix: none, sinusoidal, T5, ALiBi, rotary.
import {
  alibiSlopes, chart, dot, explorer, fixed, fmt, heatmap, make, matmul, normals, presets,
  range, rotary, short, sinusoid, slider, softmax, t5Bucket, toggle, transpose,
} from "./shared.js";

const D = 16;
const FAR = 24;
const SCHEMES = [["none", "none"], ["sinusoidal", "sinusoidal, added to the input"],
  ["t5", "T5, a bias for each bucket"], ["alibi", "ALiBi, a slope"], ["rotary", "rotary"]];
const KEYS = ["labels", "scheme", "shift", "reversed", "show"];
const PRESETS = SCHEMES.map(([scheme, words]) => [words, { scheme }]);
const SLOPE = alibiSlopes(8)[0];
const BIAS = t5Table();

// A made-up table of 32 biases: the nearer the better, keys before the query a little more so.
function t5Table() {
  return range(32).map((bucket) => 1.5 - 0.2 * (bucket % 16) - (bucket > 15 ? 0.4 : 0));
}

// Token embeddings and W^Q, W^K, the same random numbers each time; equal words are equal rows.
let known = ["", null];
function content(words) {
  const key = words.join(" ");
  if (known[0] === key) return known[1];
  const names = [...new Set(words)].sort();
  const draw = (seed, rows) => {
    const x = normals(seed, rows * D);
    return range(rows).map((i) => Array.from(x.subarray(i * D, (i + 1) * D)));
  };
  const table = draw(5, 16);
  const project = (seed) => draw(seed, D).map((row) => row.map((x) => x / Math.sqrt(D)));
  known = [key, { x: words.map((word) => table[names.indexOf(word)]), wq: project(6), wk: project(7) }];
  return known[1];
}

// The scores of all words, the first standing at position `shift`.
function scoresOf(words, scheme, shift) {
  const { x, wq, wk } = content(words);
  const at = words.map((_, i) => i + shift);
  const input = scheme === "sinusoidal"
    ? x.map((row, i) => sinusoid(at[i], D).map((p, c) => row[c] + p)) : x;
  const turn = (row, i) => (scheme === "rotary" ? rotary(row, at[i]) : row);
  const q = matmul(input, wq).map(turn);
  const k = matmul(input, wk).map(turn);
  return matmul(q, transpose(k)).map((row, i) => row.map((score, j) => score / Math.sqrt(D)
    + bias(scheme, at[i] - at[j])));
}
function bias(scheme, offset) {
  return scheme === "alibi" ? -SLOPE * Math.abs(offset) : scheme === "t5" ? BIAS[t5Bucket(offset)] : 0;
}

// One query and one key of the same content, at all offsets i - j (query - key).
function profile(words, scheme, shift) {
  const { x, wq, wk } = content(words);
  const p = FAR + shift;
  const keyAt = (o) => p - (o - FAR);
  const rows = range(2 * FAR + 1).map((o) => {
    const added = scheme === "sinusoidal" ? sinusoid(keyAt(o), D) : null;
    return added ? x[0].map((value, c) => value + added[c]) : x[0];
  });
  const turn = (row, at) => (scheme === "rotary" ? rotary(row, at) : row);
  const q = turn(matmul([rows[FAR]], wq)[0], p);
  return matmul(rows, wk).map((k, o) =>
    dot(q, turn(k, keyAt(o))) / Math.sqrt(D) + bias(scheme, o - FAR));
}

function render({ model, el }) {
  const ex = explorer({ model, el, title: "Positions compared", name: "positions" });
  const start = presets({ ex, items: PRESETS, keys: KEYS, label: "Positions told by" });
  const shift = slider({ label: "shift the sentence by", max: 40,
    onInput: (x) => ex.set({ shift: x }) });
  const reversed = toggle({ label: "reverse the words", onInput: (on) => ex.set({ reversed: on }) });
  const show = toggle({ label: "show weights", onInput: (on) => ex.set({ show: on ? "weights" : "scores" }) });
  const maps = make("div", { class: "two" });
  const profiles = chart({ label: "", height: 130, xLabel: "offset i − j (query − key)",
    yLabel: "score of one query with the same key at each offset",
    xTicks: [-24, -12, 0, 12, 24].map((o) => [(o + FAR) / (2 * FAR), fmt(o, 0)]),
    yTicks: [[0, "−4"], [0.5, "0"], [1, "4"]] });
  const still = profiles.line(6, "dash1");
  const curve = profiles.line(0);
  ex.add(start.node, shift.node, make("div", { class: "switches" }, reversed.node, show.node),
    maps, profiles.node);

  let [plain, placed, home, drawn, built] = [null, null, null, "", ""];
  function draw() {
    const [labels, scheme, by, turned, what] = KEYS.map(ex.get);
    const words = turned ? [...labels].reverse() : labels;
    const weights = what === "weights";
    if (JSON.stringify([words, what]) !== built) {
      built = JSON.stringify([words, what]);
      [plain, placed] = ["content alone", "with positions"].map((name) => {
        const map = heatmap({ label: `${what}, ${name}`, rows: words, columns: words,
          signed: !weights });
        map.title = make("p", { class: "heading", text: `${what}: ${name}` });
        return map;
      });
      maps.replaceChildren(...[plain, placed].map((map) => make("div", {}, map.title, map.node)));
      drawn = "";
    }
    const now = scoresOf(words, scheme, by);
    const put = (map, scores) => {
      const rows = weights ? scores.map((row) => softmax(row)) : scores;
      map.set((i, j) => (weights ? rows[i][j] : rows[i][j] / 4), (i, j) => fixed(rows[i][j], 2));
    };
    put(placed, now);
    const level = (s) => profile(words, scheme, s).map((x, o) => [o / (2 * FAR), (x + 4) / 8]);
    if (drawn !== `${scheme} ${words}`) {
      drawn = `${scheme} ${words}`;
      put(plain, scoresOf(words, "none", 0));
      home = scoresOf(words, scheme, 0);
      still.set(level(0));
    }
    curve.set(level(by));
    const change = Math.max(...now.flatMap((row, i) => row.map((x, j) => Math.abs(x - home[i][j]))));
    shift.set(by);
    reversed.set(turned);
    show.set(weights);
    start.update();
    profiles.describe(`Score against offset, ${scheme}; solid: shifted by ${by}, dashed: not shifted.`);
    const twins = words.findIndex((word, i) => words.indexOf(word) < i);
    const same = twins < 0 ? "" : apart(now[words.indexOf(words[twins])], now[twins]);
    const moved = change < 1e-9 ? "no score changes" : `scores change by up to ${short(change, 2)}`;
    ex.say(`${scheme === "none" ? "Without positions" : `With ${SCHEMES.find(([s]) => s === scheme)[1]
      .split(",")[0]} positions`}, ${by ? `shifted by ${by}, ${moved}` : "not shifted"}: ${
      scheme === "sinusoidal" ? "what is added depends on where the sentence stands."
        : scheme === "none" ? "only the words count, so their order is lost."
          : "only offsets count."} ${twins < 0 ? "" : `The rows of the two “${words[twins]}” ${same}.`}`);
  }
  return ex.start(draw, KEYS);
}
function apart(a, b) {
  const gap = Math.max(...a.map((x, j) => Math.abs(x - b[j])));
  return gap < 1e-9 ? "are equal" : `differ by up to ${short(gap, 2)}`;
}

export default { render };
