// Live heads: a trained transformer reads "it" in a sentence of the reader's words.
import {
  bar, explorer, fixed, halves, heatmap, list, make, onTheme, percent, presets, ramp, range, softmax,
  tr, transformer, write,
} from "./shared.js";
import { weights } from "./heads_weights.js";

const ANIMALS = "animal cat cow dog duck fox goose horse rabbit sheep".split(" ");
const PLACES = "street bridge canal field lane park river road square tunnel".split(" ");
const VERBS = "cross enter leave like pass visit".split(" ");
const FEELINGS = "tired hungry scared sleepy".split(" ");
const FEATURES = "wide narrow crowded slippery".split(" ");
const WORDS = ["<pad>", "<start>", "<end>", ..."the did not because it was too".split(" "),
  ...ANIMALS, ...PLACES, ...VERBS, ...FEELINGS, ...FEATURES];
const CHOICES = { animal: ANIMALS, verb: VERBS, place: PLACES,
  adjective: [...FEELINGS, ...FEATURES] };
const IT = 8;
const KEYS = ["animal", "verb", "place", "adjective", "off", "twin", "layer", "head"];
const first = { animal: "animal", verb: "cross", place: "street", off: [], twin: [] };
const PRESETS = [
  ["… too tired", { ...first, adjective: "tired" }],
  ["… too wide", { ...first, adjective: "wide" }],
  [tr`wide, without L1H0`, { ...first, adjective: "wide", off: [[1, 0]] }],
  [tr`wide, without L0H3`, { ...first, adjective: "wide", off: [[0, 3]] }],
  [tr`tired, but L0H3 reads wide`, { ...first, adjective: "tired", twin: [[0, 3]] }],
];

let model = null;
// The words of the sentence, and what the model makes of them.
const sentence = ({ animal, verb, place, adjective }) =>
  `the ${animal} did not ${verb} the ${place} because it was too ${adjective}`.split(" ");
// The twin sentence has the other adjective: tired for wide, hungry for narrow, …
const twinOf = (words) => {
  const other = (word, a, b) => b[a.indexOf(word)];
  const last = words[words.length - 1];
  return [...words.slice(0, -1),
    FEELINGS.includes(last) ? other(last, FEELINGS, FEATURES) : other(last, FEATURES, FEELINGS)];
};
function read(words, off = [], twin = []) {
  model ??= transformer(halves(weights.model),
    { vocab: WORDS.length, d: 32, heads: 4, layers: 2, tied: false, causal: false });
  const on = range(2).map((layer) => range(4).map((head) =>
    (off.some(([l, h]) => l === layer && h === head) ? 0 : 1)));
  const number = (word) => WORDS.indexOf(word);
  const said = twin.length ? model(twinOf(words).map(number)).joined : [];
  const given = said.map((joined, layer) => ({ at: IT, joined,
    heads: twin.filter(([l]) => l === layer).map(([, h]) => h) }));
  const result = model(words.map(number), on, given);
  return { ...result, probabilities: softmax(Array.from(result.logits[IT])) };
}

function render({ model: state, el }) {
  const ex = explorer({ model: state, el, title: tr`Live heads`, name: "heads" });
  const start = presets({ ex, items: PRESETS, keys: KEYS });

  const selects = {};
  const pick = (key, label) => (selects[key] = make("select", { "aria-label": label,
    "data-lm-suppress-shortcuts": "true",
    on: { input: () => ex.set({ [key]: selects[key].value }) } },
  ...CHOICES[key].map((word) => make("option", { value: word, text: word }))));
  const line = make("p", { class: "sentence" }, "the ", pick("animal", "animal"), " did not ",
    pick("verb", "verb"), " the ", pick("place", "place"), " because ", make("b", { text: "it" }),
    " was too ", pick("adjective", "adjective"));

  const shareRow = (colour) => {
    const name = make("span", { class: "name-of" });
    const weight = bar(colour);
    const number = make("span", { class: "weight" });
    return { name, weight, number,
      node: make("div", { class: "share" }, name, weight.node, number) };
  };
  const answers = [0, 1, 6].map(shareRow);
  const meaning = make("div", { class: "shares" },
    make("p", { class: "heading", text: tr`what “it” means, as the model sees it` }),
    ...answers.map((row) => row.node));

  const maps = range(2).map((layer) => range(4).map((head) => {
    const canvas = make("canvas", { width: 12, height: 12, "aria-hidden": "true" });
    const name = `L${layer}H${head}`;
    const open = make("button", { type: "button", class: "map",
      on: { click: () => ex.set({ layer, head }) } },
    make("span", { class: "picture" }, canvas, make("i", { class: "row-of-it" })),
    make("span", { class: "map-name", text: name }));
    const others = (key) => ex.get(key).filter(([l, h]) => l !== layer || h !== head);
    const says = make("select", { "aria-label": tr`head ${name} is`,
      "data-lm-suppress-shortcuts": "true",
      on: { input: () => ex.set(Object.fromEntries(["off", "twin"].map((key) => [key,
        [...others(key), ...(says.value === key ? [[layer, head]] : [])].sort()]))) } },
    ...[["on", tr`on`], ["off", tr`off`], ["twin", tr`twin`]].map(([value, text]) =>
      make("option", { value, text })));
    return { canvas, open, says, name, node: make("div", { class: "map-box" }, open, says) };
  }));
  const gallery = make("div", { class: "gallery" }, ...maps.flatMap((row, layer) => [
    make("p", { class: "layer", text: tr`layer ${layer}: heads L${layer}H0 to L${layer}H3` }),
    ...row.map((map) => map.node)]));

  const rowTitle = make("p", { class: "heading" });
  const row = range(12).map(() => shareRow(0));
  const rowBox = make("div", { class: "shares each" }, rowTitle, ...row.map((r) => r.node));
  const mapTitle = make("p", { class: "heading" });
  // The labels change in place: only words are rewritten when the sentence changes.
  const labels = sentence({ animal: "", verb: "", place: "", adjective: "" });
  const table = heatmap({ label: tr`weights of the chosen head`, rows: labels, columns: labels,
    least: 0.05 });
  table.node.classList.add("scroll");
  const size = Math.floor(weights.model.replace(/=+$/, "").length * 3 / 8); // base64 of two bytes each
  const note = make("p", { class: "readline",
    text: tr`The model has ${size.toLocaleString("en")} parameters. It was trained before and runs in this page. L1H0 is head 0 of layer 1, both counted from 0; in the small maps, rows are queries, and the frame marks the row of “it”. “Twin” gives “it” the output that the head has in the same sentence with the other adjective (tired for wide, hungry for narrow, scared for crowded, sleepy for slippery). Other seeds train other heads: this seed was chosen for its clear L1H0.` });
  meaning.append(ex.root.querySelector(".say")); // the verdict stands under what it judges
  ex.add(start.node, line, meaning, gallery,
    make("div", { class: "pair" }, rowBox, make("div", {}, mapTitle, table.node)), note);

  let colours = null;
  function paint(canvas, matrix) {
    if (!colours) {
      const style = getComputedStyle(ex.root);
      colours = ramp(["--zero", "--pos"].map((key) => style.getPropertyValue(key).trim()));
    }
    const pixels = new ImageData(12, 12);
    const words = new Uint32Array(pixels.data.buffer);
    matrix.forEach((r, i) => r.forEach((x, j) => { words[12 * i + j] = colours[Math.round(255 * x)]; }));
    canvas.getContext("2d").putImageData(pixels, 0, 0);
  }

  function draw() {
    const [animal, verb, place, adjective, off, twin, layer, head] = KEYS.map(ex.get);
    const words = sentence({ animal, verb, place, adjective });
    const { probabilities, weights: all } = read(words, off, twin);
    for (const key of Object.keys(selects)) {
      if (selects[key].value !== ex.get(key)) selects[key].value = ex.get(key);
    }
    const top = probabilities.indexOf(Math.max(...probabilities));
    const p = [animal, place].map((word) => probabilities[WORDS.indexOf(word)]);
    const rest = Math.max(0, 1 - p[0] - p[1]);
    [animal, place, tr`any other word`].forEach((word, i) => {
      write(answers[i].name, word);
      answers[i].weight.set(i < 2 ? p[i] : rest);
      write(answers[i].number, percent(i < 2 ? p[i] : rest)
        .replace("less than", "<").replace("more than", ">"));
    });

    const among = (pairs, l, h) => pairs.some(([a, b]) => a === l && b === h);
    const stateOf = (l, h) => (among(twin, l, h) ? "twin" : among(off, l, h) ? "off" : "on");
    const strongest = (r) => r.indexOf(Math.max(...r));
    maps.forEach((maps_, l) => maps_.forEach((map, h) => {
      const matrix = all[l][h];
      const best = strongest(matrix[IT]);
      paint(map.canvas, matrix);
      const state = stateOf(l, h);
      map.node.classList.toggle("gone", state === "off");
      map.node.classList.toggle("swapped", state === "twin");
      if (map.says.value !== state) map.says.value = state;
      map.open.setAttribute("aria-pressed", String(l === layer && h === head));
      const said = { on: "", off: tr`, off`, twin: tr`, from the twin` }[state];
      map.open.setAttribute("aria-label", tr`${map.name}${said}: “it” gives ${
        fixed(matrix[IT][best])} to ${words[best]}; show it large`);
    }));

    const name = `L${layer}H${head}`;
    const chosen = all[layer][head];
    write(rowTitle, tr`what “it” attends to in ${name}`);
    words.forEach((word, j) => {
      write(row[j].name, word);
      row[j].node.classList.toggle("noun", j === 1 || j === 6);
      row[j].weight.set(chosen[IT][j]);
      write(row[j].number, fixed(chosen[IT][j]));
    });
    write(mapTitle, tr`who attends to whom in ${name}`);
    if (words.join() !== labels.join()) {
      labels.splice(0, 12, ...words);
      for (const kind of [".side", ".top b"]) {
        table.grid.querySelectorAll(kind).forEach((node, i) => {
          write(node, words[i]);
          node.title = words[i];
        });
      }
    }
    table.set((i, j) => Math.round(50 * chosen[i][j]) / 50, (i, j) => fixed(chosen[i][j]).replace(/^0(?=\.)/, ""));
    start.update();

    const right = FEELINGS.includes(adjective) ? animal : place;
    const named = (pairs) => list(pairs.map(([l, h]) => `L${l}H${h}`));
    const gone = off.filter(([l, h]) => !among(twin, l, h));
    const row8 = chosen[IT];
    const ending = twinOf(words)[11];
    const carried = { on: "", off: tr`, but the head is off and carries nothing`,
      twin: tr`, but its output comes from the twin` }[stateOf(layer, head)];
    ex.say([
      tr`The model thinks that “it” means “${WORDS[top]}” (${percent(probabilities[top])}).`,
      WORDS[top] === right ? tr`This is right.`
        : tr`This is wrong: what is too ${adjective} is “${right}”.`,
      gone.length === 8 ? tr`All heads are off: no word can read any other.`
        : gone.length > 1 ? tr`Off: heads ${named(gone)}.` : gone.length && tr`Off: head ${named(gone)}.`,
      twin.length > 1 ? tr`From the twin, which ends in “${ending}”: heads ${named(twin)}.`
        : twin.length && tr`From the twin, which ends in “${ending}”: head ${named(twin)}.`,
      tr`In ${name}, “it” gives ${fixed(row8[1])} to “${animal}” and ${fixed(row8[6])} to “${place}”${carried}.`,
    ].filter(Boolean).join(" "));
  }
  ex.onCleanup(onTheme(() => { colours = null; draw(); }));
  return ex.start(draw, KEYS);
}

export default { render };
