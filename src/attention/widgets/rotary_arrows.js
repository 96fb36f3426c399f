// Rotary positions: a query and a key that turn with their positions; the angle between them stays.
import {
  chart, clamp, explorer, fmt, make, presets, range, readouts, short, slider, svg, swatch, write,
} from "./shared.js";

const LAST = 40;
const KEYS = ["i", "j", "omega", "content"];
const PRESETS = [
  ["By hand", { i: 5, j: 2, omega: 1, content: 0 }],
  ["A slow pair", { i: 5, j: 2, omega: 0.1, content: 0 }],
  ["At a right angle", { i: 5, j: 5, omega: 0.5, content: 90 }],
  ["Looks three back", { i: 8, j: 5, omega: 0.5, content: -86 }],
];
const radians = (degrees) => (degrees * Math.PI) / 180;

// The angles of query and key after their turns, and the cosine of the angle between them.
function turned(i, j, omega, content) {
  const [query, key] = [radians(content) + omega * i, omega * j];
  const score = Math.cos(query - key);
  return [query, key, Math.abs(score) < 1e-12 ? 0 : score]; // a right angle is 0, not 6×10⁻¹⁷
}

function render({ model, el }) {
  const ex = explorer({ model, el, title: "Two arrows that turn", name: "rotary" });
  const start = presets({ ex, items: PRESETS, keys: KEYS });
  const query = slider({ label: "query at position i", max: LAST, onInput: (i) => ex.set({ i }) });
  const key = slider({ label: "key at position j", max: LAST, onInput: (j) => ex.set({ j }) });
  const both = slider({ label: "move both", max: LAST, typed: false, onInput: (x) => {
    const [i, j] = [ex.get("i"), ex.get("j")];
    const by = clamp(x - Math.min(i, j), -Math.min(i, j), LAST - Math.max(i, j));
    ex.set({ i: i + by, j: j + by });
  } });
  const speed = slider({ label: "turn per position ω, radians", min: 0.01, max: 3, log: true,
    onInput: (omega) => ex.set({ omega }) });
  const dials = range(2).map(() => {
    const arc = svg("path", { class: "sweep", style: "--c:var(--c2)" });
    const hands = [0, 1].map((c) => svg("path",
      { class: `hand ${c ? "later" : ""}`, style: `--c:var(--c${c})` }));
    const names = ["q", "k"].map((text) => svg("text", { text, "font-size": 0.28, "text-anchor": "middle",
      "dominant-baseline": "central", fill: "currentColor" }));
    const words = make("span");
    return { arc, hands, names, words, node: make("div", { class: "clock" },
      svg("svg", { viewBox: "-1.4 -1.4 2.8 2.8", "aria-hidden": "true" },
        svg("circle", { class: "face", r: 1, "vector-effect": "non-scaling-stroke", fill: "none" }),
        arc, ...hands, ...names), make("p", {}, words)) };
  });
  const lines = chart({ label: "", height: 150, xLabel: "offset i − j", yLabel: "score",
    xTicks: [-40, -20, 0, 20, 40].map((x) => [(x + LAST) / (2 * LAST), fmt(x, 0)]),
    yTicks: [[0, "−1"], [0.5, "0"], [1, "1"]] });
  const curve = lines.line(2);
  const here = lines.dot(0);
  const numbers = readouts({ query: "query turned by", key: "key turned by", offset: "offset i − j",
    score: "score q · k" });
  const legend = make("p", {}, swatch(0), " query ", swatch(1, "dash1"), " key");
  ex.add(start.node, query.node, key.node, both.node, speed.node,
    make("div", { class: "clocks" }, ...dials.map((dial) => dial.node)), legend, numbers.node,
    lines.node);

  const tip = (angle, r) => `${(r * Math.cos(angle)).toFixed(4)} ${(-r * Math.sin(angle)).toFixed(4)}`;
  function show(dial, angles) {
    const [q, k] = angles;
    const gap = Math.atan2(Math.sin(q - k), Math.cos(q - k)); // from the key, the short way round
    dial.arc.setAttribute("d", `M0 0L${tip(k, 0.5)}A.5 .5 0 0 ${gap > 0 ? 0 : 1} ${tip(k + gap, 0.5)}Z`);
    const near = Math.abs(gap) < 0.3 ? (gap < 0 ? -0.15 : 0.15) - gap / 2 : 0; // names side by side
    angles.forEach((angle, c) => {
      dial.hands[c].setAttribute("d", `M0 0L${tip(angle, 0.95)}`);
      const [x, y] = tip(angle + (c ? -near : near), 1.2).split(" ");
      dial.names[c].setAttribute("x", x);
      dial.names[c].setAttribute("y", y);
    });
  }
  function draw() {
    const [i, j, omega, content] = KEYS.map(ex.get);
    const [q, k, score] = turned(i, j, omega, content);
    query.set(i);
    key.set(j);
    both.set(Math.min(i, j));
    speed.set(omega);
    start.update();
    show(dials[0], [radians(content), 0]);
    show(dials[1], [q, k]);
    write(dials[0].words, "as they are, both at position 0");
    write(dials[1].words, `turned: query at ${i}, key at ${j}`);
    curve.set(range(401).map((p) => {
      const offset = (p / 400) * 2 * LAST - LAST;
      return [p / 400, (Math.cos(radians(content) + omega * offset) + 1) / 2];
    }));
    here.set((i - j + LAST) / (2 * LAST), (score + 1) / 2);
    const degrees = (position) => `${short((omega * position * 180) / Math.PI, 1)}°`;
    numbers.set({ query: degrees(i), key: degrees(j), offset: fmt(i - j, 0), score: fmt(score) });
    lines.describe(`The score against the offset, a cosine; at the offset ${fmt(i - j, 0)} it is ${
      fmt(score)}.`);
    ex.say(`Query at ${i}, key at ${j}: the score is ${fmt(score)}. ${i === j
      ? "Both have turned by the same angle, so the score is that of the words alone."
      : `It is the same wherever the offset is ${fmt(i - j, 0)}.`}`);
  }
  return ex.start(draw, KEYS);
}

export default { render };
