// Sinusoidal positions: one row of sines and cosines for each position, from fast to slow.
import {
  chart, clamp, explorer, fmt, frequency, list, make, onTheme, presets, range, raster, readouts,
  short, slider, svg, swatch, write,
} from "./shared.js";

const N = 64;
const WIDTHS = [4, 8, 16, 32, 64, 128, 256, 512];
const KEYS = ["base", "d_model", "position", "delta", "pairs"];
const PRESETS = [
  ["d = 64, base 10,000", { d_model: 64, base: 10000, position: 20, delta: 7, pairs: [0, 4, 16] }],
  ["d = 4, position 3", { d_model: 4, base: 10000, position: 3, delta: 1, pairs: [0, 1] }],
  ["Base 10: it repeats", { d_model: 64, base: 10, position: 0, delta: 44, pairs: [0, 4, 16] }],
  ["Base 500,000", { d_model: 64, base: 500000, position: 20, delta: 7, pairs: [0, 4, 16] }],
  ["d = 512, as in 2017", { d_model: 512, base: 10000, position: 20, delta: 7, pairs: [0, 32, 128] }],
];
const degrees = (angle) => `${short((((angle * 180) / Math.PI) % 360 + 360) % 360, 1)}°`;

function render({ model, el }) {
  const ex = explorer({ model, el, title: "Sinusoidal positions", name: "sinusoids" });
  const start = presets({ ex, items: PRESETS, keys: KEYS });
  const width = slider({ label: "d_model", values: WIDTHS, onInput: (d) => ex.set({ d_model: d,
    pairs: [...new Set(ex.get("pairs").map((l) => Math.min(l, d / 2 - 1)))] }) });
  const base = slider({ label: "base", min: 2, max: 1e6, log: true, digits: 1,
    onInput: (x) => ex.set({ base: x }) });
  const place = slider({ label: "position p", max: N - 1, onInput: (p) => ex.set({ position: p }) });
  const shift = slider({ label: "shift Δ", min: -N + 1, max: N - 1,
    onInput: (x) => ex.set({ delta: x }) });
  const pairsOf = () => ex.get("pairs").filter((l) => l < ex.get("d_model") / 2);
  const map = raster({ label: "encoding: positions down, columns across",
    across: "column, fast to slow. Click or tap to choose a position and a pair.",
    down: "position, 0 to 63",
    describe: (i, j) => `position ${i}, column ${j} (${j % 2 ? "cos" : "sin"} of pair ${j >> 1}): `
      + fmt(table[i * size[1] + j]),
    onPick(i, j) {
      const [pair, pairs] = [j >> 1, pairsOf()];
      ex.set({ position: i, pairs: pairs.includes(pair)
        ? (pairs.length > 1 ? pairs.filter((l) => l !== pair) : pairs)
        : [...pairs.slice(-2), pair].sort((a, b) => a - b) });
    } });
  const now = map.mark("first");
  const then = map.mark("second");
  const waves = chart({ label: "", height: 130, xLabel: "position", yLabel: "sine of the chosen pairs",
    xTicks: [0, 16, 32, 48, 63].map((p) => [p / 63, String(p)]),
    yTicks: [[0, "−1"], [0.5, "0"], [1, "1"]] });
  const wavesAt = waves.marker();
  const clocks = make("div", { class: "clocks" });
  const similar = chart({ label: "", height: 130, xLabel: "shift Δ, for every position p",
    yLabel: "PE(p)·PE(p + Δ) / (d / 2)", yTicks: [[0, "−1"], [0.5, "0"], [1, "1"]],
    xTicks: [-63, -32, 0, 32, 63].map((x) => [(x + 63) / 126, fmt(x, 0)]) });
  const curve = similar.line(0);
  const here = similar.dot(1);
  const numbers = readouts({ same: "PE(p)·PE(p + Δ) / (d / 2)", waves: "positions for one full turn, fast to slow",
    error: "largest |PE(p) U(Δ) − PE(p + Δ)|" });
  ex.add(start.node, width.node, base.node, place.node, shift.node, map.node, clocks,
    make("div", { class: "two" }, waves.node, similar.node), numbers.node);
  ex.onCleanup(onTheme(map.repaint));

  let table = null;
  let w = [];
  let size = [N, 0];
  let computed = "";
  let chosen = "";
  let parts = [];
  function build(n) {
    for (const part of parts) {
      part.wave.remove();
      part.mark.remove();
    }
    parts = range(n).map((i) => {
      const arc = svg("path", { class: "sweep", style: `--c:var(--c${i})` });
      const hand = svg("path", { class: "hand", style: `--c:var(--c${i})` });
      const later = svg("path", { class: "hand later", style: `--c:var(--c${i})` });
      const words = make("span");
      const mark = map.mark("tall");
      mark.element.style.setProperty("--c", `var(--c${i})`);
      return { arc, hand, later, words, mark, wave: waves.line(i, `dash${i}`),
        node: make("div", { class: "clock" }, svg("svg", { viewBox: "-1.1 -1.1 2.2 2.2",
          "aria-hidden": "true" }, svg("circle", { class: "face", r: 1,
          "vector-effect": "non-scaling-stroke", fill: "none" }), arc, later, hand),
        make("p", {}, swatch(i, `dash${i}`), words)) };
    });
    clocks.replaceChildren(...parts.map((part) => part.node));
  }
  // Hands start at the top and turn clockwise: x = sin, y = cos, upwards.
  const tip = (angle, r) => `${(r * Math.sin(angle)).toFixed(4)} ${(-r * Math.cos(angle)).toFixed(4)}`;
  function draw() {
    const [b, d, p, delta] = KEYS.map(ex.get);
    const pairs = pairsOf();
    const key = `${b} ${d}`;
    if (key !== computed) {
      computed = key;
      w = range(d / 2).map((l) => frequency(l, d, b));
      size = [N, d];
      table = new Float32Array(N * d);
      const half = new Array(N).fill(0); // PE(p)·PE(p + x) = sum of cos(x w): the position cancels
      w.forEach((speed, l) => {
        const [s1, c1] = [Math.sin(speed), Math.cos(speed)];
        let [s, c] = [0, 1];
        for (let i = 0; i < N; i++) { // one turn by w for each position
          table[i * d + 2 * l] = s;
          table[i * d + 2 * l + 1] = c;
          half[i] += c;
          [s, c] = [s * c1 + c * s1, c * c1 - s * s1];
        }
      });
      map.set(table, N, d);
      curve.set(range(127).map((x) => [x / 126, (half[Math.abs(x - 63)] / w.length + 1) / 2]));
    }
    if (`${pairs} ${key}` !== chosen) {
      chosen = `${pairs} ${key}`;
      if (parts.length !== pairs.length) build(pairs.length);
      parts.forEach((part, i) => {
        const speed = w[pairs[i]];
        part.wave.set(range(253).map((x) => [x / 252, (Math.sin((x / 4) * speed) + 1) / 2]));
        part.mark.set(0, 2 * pairs[i], N, 2);
      });
    }
    parts.forEach((part, i) => {
      const speed = w[pairs[i]];
      const [from, to] = [p * speed, (p + delta) * speed];
      part.hand.setAttribute("d", `M0 0L${tip(from, 0.95)}`);
      part.later.setAttribute("d", `M0 0L${tip(to, 0.95)}`);
      const turn = Math.abs(delta * speed);
      const large = turn % (2 * Math.PI) > Math.PI ? 1 : 0;
      part.arc.setAttribute("d", turn >= 2 * Math.PI ? "M-.5 0A.5 .5 0 1 1 .5 0A.5 .5 0 1 1-.5 0"
        : `M0 0L${tip(from, 0.5)}A.5 .5 0 ${large} ${delta > 0 ? 1 : 0} ${tip(to, 0.5)}Z`);
      write(part.words, ` pair ${pairs[i]}: at ${degrees(from)}, Δ turns it by `
        + `${fmt((delta * speed * 180) / Math.PI, 1)}°; once round in ${short((2 * Math.PI) / speed, 1)} positions`);
    });
    width.set(d);
    base.set(b);
    place.set(p);
    shift.set(delta);
    start.update();
    now.set(p, 0, 1, d);
    then.set(p + delta, 0, 1, d);
    wavesAt.set(p / 63);
    const alike = mean(w, delta);
    here.set((delta + 63) / 126, (alike + 1) / 2);
    // U(Δ) turns each pair on its own: sin and cos of (p + Δ) w from those of p w and of Δ w.
    let error = 0;
    for (const speed of w) {
      const [s, c, t, r] = [Math.sin(p * speed), Math.cos(p * speed), Math.sin(delta * speed),
        Math.cos(delta * speed)];
      error = Math.max(error, Math.abs(s * r + c * t - Math.sin((p + delta) * speed)),
        Math.abs(c * r - s * t - Math.cos((p + delta) * speed)));
    }
    numbers.set({ same: fmt(alike), error: error < 1e-12 ? "0 (to rounding)" : fmt(error),
      waves: `${short((2 * Math.PI) / w[0], 1)} to ${short((2 * Math.PI) / w[w.length - 1], 0)}` });
    waves.describe(`Sine of ${list(pairs.map((l) => `pair ${l}`))} over positions 0 to 63; marked: ${p}.`);
    similar.describe(`Dot product against the offset, highest at 0; at ${fmt(delta, 0)} it is ${
      fmt(alike)}.`);
    const turns = pairs.map((l) => `pair ${l} by ${fmt((delta * w[l] * 180) / Math.PI, 1)}°`);
    ex.say(`From position ${p}, a shift by ${fmt(delta, 0)} turns ${list(turns)}, wherever p is. `
      + `The encodings of p and p + Δ have a normalised dot product of ${fmt(alike)}${
        delta === 0 ? ": they are the same" : alike > 0.95 ? ": hard to tell apart" : ""}.`);
  }
  return ex.start(draw, KEYS);
}
// The mean of cos(x w) over the pairs.
function mean(speeds, x) {
  let sum = 0;
  for (let l = 0; l < speeds.length; l++) sum += Math.cos(x * speeds[l]);
  return clamp(sum / speeds.length, -1, 1);
}

export default { render };
