// Generation: a small trained language model writes word by word; so does its unmasked twin.
import {
  button, candidates, choice, clamp, drawToken, explorer, fixed, halves, make, nextProbabilities,
  percent, presets, range, slider, toggle, transformer, uniform, write,
} from "./shared.js";
import { weights } from "./generation_weights.js";

const CAUSES = ["sun rises", "sun sets", "moon rises", "rain falls", "snow falls", "storm comes"];
const COLOURS = { sky: "gold red silver grey pale black", sea: "blue purple silver brown grey black",
  hill: "green red blue brown white grey" };
const ADJECTIVES = ["", "old ", "great "];
const ADVERBS = ["", " slowly", " again"];
const WIDTHS = ["", "wide ", "quiet "];
const SENTENCES = CAUSES.flatMap((cause, i) => Object.entries(COLOURS).flatMap(([thing, colours]) =>
  ADJECTIVES.flatMap((old) => ADVERBS.flatMap((slowly) => WIDTHS.map((wide) =>
    `the ${old}${cause}${slowly} and the ${wide}${thing} turns ${colours.split(" ")[i]}`)))));
const WORDS = ["<pad>", "<start>", "<end>", ...new Set(SENTENCES.join(" ").split(" "))];
const LONGEST = 14;
const BARS = 8;
const KEYS = ["prompt", "temperature", "top_k", "top_p", "masked", "seed", "written", "step", "head"];
const plain = { temperature: 1, top_k: 35, top_p: 1, masked: true };
const PRESETS = [
  ["T = 1", plain],
  ["Greedy", { ...plain, top_k: 1 }],
  ["T = 2", { ...plain, temperature: 2 }],
  ["T = 2, top-k 3", { ...plain, temperature: 2, top_k: 3 }],
  ["T = 2, top-p 0.9", { ...plain, temperature: 2, top_p: 0.9 }],
  ["Trained without the mask", { ...plain, masked: false }],
];
const PROMPTS = ["", "the sun", "the great rain falls", "the sun sets and the sky turns",
  "the storm comes again and the sea turns", "the old moon rises slowly and the wide"];

const models = {};
const seen = new Map();
// What the model answers after these words: logits (35,), the last layer's rows (heads, n).
function answer(words, masked) {
  const key = `${masked} ${words.join(" ")}`;
  if (!seen.has(key)) {
    const run = models[masked] ??= transformer(halves(masked ? weights.masked : weights.unmasked),
      { vocab: WORDS.length, d: 32, heads: 4, layers: 2, tied: true, causal: masked });
    const ids = [masked ? "<start>" : "<end>", ...words].map((word) => WORDS.indexOf(word));
    const result = run(ids);
    if (seen.size > 500) seen.clear();
    seen.set(key, { logits: result.logits[ids.length - 1],
      rows: result.weights[1].map((head) => head[ids.length - 1]) });
  }
  return seen.get(key);
}
const split = (text) => text.split(" ").filter(Boolean);
const finished = (written) => written.at(-1) === "<end>" || written.length >= LONGEST;
const nextWord = ({ prompt, temperature, top_k, top_p, masked, seed, written }) => {
  const { logits } = answer([...split(prompt), ...written], masked);
  const p = nextProbabilities(logits, temperature, top_k, top_p);
  return WORDS[drawToken(p, uniform(seed, written.length))];
};
function finish(state) {
  const written = [...state.written];
  while (!finished(written)) written.push(nextWord({ ...state, written }));
  return written;
}

function render({ model, el }) {
  const ex = explorer({ model, el, title: "Generation", name: "generation" });
  const all = () => Object.fromEntries(KEYS.map((key) => [key, ex.get(key)]));
  // Another prompt or another model: what was written goes.
  const change = (state) => {
    const anew = ["prompt", "masked"].some((key) => key in state && state[key] !== ex.get(key));
    ex.set({ ...(anew ? { written: [], step: 0 } : {}), ...state });
  };
  const start = presets({ ex: { get: ex.get, set: change }, items: PRESETS, keys: KEYS });
  const opened = ex.get("prompt");
  const prompts = PROMPTS.includes(opened) ? PROMPTS : [...PROMPTS, opened];
  const prompt = choice({ label: "begin with", options: prompts.map((text) =>
    [text, text ? `${text} …` : "nothing"]), onInput: (text) => change({ prompt: text }) });
  const heat = slider({ label: "temperature T", min: 0.1, max: 5, log: true,
    onInput: (t) => ex.set({ temperature: t }) });
  const topK = slider({ label: "top-k", min: 1, max: 35, typed: false,
    say: (k) => (k === 35 ? "all 35" : String(k)), onInput: (k) => ex.set({ top_k: k }) });
  const topP = slider({ label: "top-p", min: 0.05, max: 1, step: 0.05, typed: false,
    onInput: (p) => ex.set({ top_p: clamp(Number(p.toFixed(2)), 0.05, 1) }) });
  const blind = toggle({ label: "the model trained without the mask",
    onInput: (on) => change({ masked: !on }) });
  const head = choice({ label: "attention of", options: [["-1", "all heads of the last layer, mean"],
    ...range(4).map((r) => [String(r), `head ${r} of the last layer`])],
  onInput: (r) => ex.set({ head: Number(r) }) });

  const act = (state) => { if (!finished(ex.get("written"))) ex.set({ step: 0, ...state() }); };
  const one = button("Next word", () =>
    act(() => ({ written: [...ex.get("written"), nextWord(all())] })));
  const whole = button("Whole sentence", () => act(() => ({ written: finish(all()) })));
  const again = button("Start again", () =>
    ex.set({ written: [], step: 0, seed: (ex.get("seed") + 1) % 1000 }));
  const buttons = make("div", { class: "presets", role: "group", "aria-label": "Write" },
    one, whole, again);

  const chips = make("div", { class: "chips", role: "group",
    "aria-label": "the words, shaded by their weight" });
  const title = make("p", { class: "heading" });
  const table = candidates(BARS, "word", "as set above");
  ex.add(start.node, prompt.node, heat.node, topK.node, topP.node,
    make("div", { class: "switches" }, blind.node), head.node, buttons, chips, title, table.node);

  let [shownChips, nodes] = ["", []];
  function build(context, written, open) {
    const key = JSON.stringify([context, written, open]);
    if (key === shownChips) return;
    const held = nodes.findIndex((chip) => chip.node === document.activeElement);
    shownChips = key;
    const chip = (text, step) => {
      const small = make("small");
      const word = make("span", { text });
      const node = step === null ? make("span", { class: "chip given" }, word, small)
        : make("button", { type: "button", class: "chip", on: { click: () => ex.set({ step }) } },
          word, small);
      return { node, small, text, step };
    };
    nodes = [chip("start", null), ...context.map((word) => chip(word, null)),
      ...written.map((word, i) => chip(word === "<end>" ? "end" : word, i + 1)),
      ...(open ? [chip("?", 0)] : [])];
    chips.replaceChildren(...nodes.map((c) => c.node));
    if (held >= 0) nodes[Math.min(held, nodes.length - 1)].node.focus();
  }

  function draw() {
    const { prompt: begun, temperature, top_k: k, top_p: p, masked, written, step, head: r } = all();
    const context = split(begun);
    const open = !finished(written);
    const at = Math.max(1, Math.min(step || LONGEST, written.length + (open ? 1 : 0)));
    const read = [...context, ...written.slice(0, at - 1)];
    const { logits, rows: attention } = answer(read, masked);
    const weight = range(read.length + 1).map((j) => (r < 0
      ? attention.reduce((sum, row) => sum + row[j] / 4, 0) : attention[r][j]));
    const before = nextProbabilities(logits);
    const now = nextProbabilities(logits, temperature, k, p);
    const order = range(WORDS.length).sort((a, b) => logits[b] - logits[a]).slice(0, BARS);
    const chosen = written[at - 1] ?? null;
    if (chosen && !order.includes(WORDS.indexOf(chosen))) order[BARS - 1] = WORDS.indexOf(chosen);

    build(context, written, open);
    nodes.forEach(({ node, small, text, step: own }, j) => {
      const known = j < weight.length;
      node.style.setProperty("--v", known ? clamp(weight[j], 0, 1).toFixed(3) : 0);
      node.classList.toggle("later", !known);
      write(small, known ? fixed(weight[j]) : "");
      if (own === null) return;
      const current = own === at || (own === 0 && at > written.length);
      node.setAttribute("aria-label", `${own ? text : "the next word"}${known
        ? `, weight ${fixed(weight[j])}` : ""}; show how it is chosen`);
      if (current) node.setAttribute("aria-current", "step");
      else node.removeAttribute("aria-current");
    });
    write(title, chosen ? `how word ${at}, “${chosen}”, was chosen (with the settings above)`
      : "the next word");
    table.set(order.map((id) => ({ before: before[id], now: now[id],
      text: `${WORDS[id]}${WORDS[id] === chosen ? " ✓" : ""}` })));
    for (const b of [one, whole]) b.setAttribute("aria-disabled", String(!open));
    prompt.set(begun);
    heat.set(temperature);
    topK.set(k);
    topP.set(p);
    blind.set(!masked);
    head.set(String(r));
    start.update();

    const text = [...context, ...written.filter((word) => word !== "<end>")].join(" ");
    const kept = now.filter((x) => x > 0).length;
    const best = order.reduce((a, b) => (now[b] > now[a] ? b : a));
    const looks = weight.indexOf(Math.max(...weight));
    const ended = written.at(-1) === "<end>";
    ex.say(`${open ? `${text ? `“${text} …”. ` : "Nothing is written yet. "}`
      : `“${text}”${ended ? "" : " …"} ${SENTENCES.includes(text) && ended
        ? "is a sentence of the corpus." : ended ? "is no sentence of the corpus."
          : `has no end after ${LONGEST} words.`} `}${chosen
      ? `“${chosen}” was drawn, at ${percent(now[WORDS.indexOf(chosen)])}`
      : `The next word is drawn from ${kept === 1 ? "one word" : `${kept} words`}, “${WORDS[best]}” with ${
        percent(now[best])}`}; most attention goes to “${looks ? read[looks - 1] : "start"}” (${
      fixed(weight[looks])}).${masked ? "" : " This model was trained without the mask: it learned to "
      + "copy the next word, and now there is none to copy."}`);
  }
  return ex.start(draw, KEYS);
}

export default { render };
