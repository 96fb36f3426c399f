// Write: the language model of the tales goes on from whatever the reader types.
import {
  attribute, button, bytePairs, candidates, choice, clamp, drawToken, explorer, fixed, make,
  nextProbabilities, percent, presets, range, short, slider, softmax, textModel, uid, uniform,
  unpacked, untrained, visible, write,
} from "./shared.js";
import { weights } from "./tales_weights.js";

const STEP = 32; // so many tokens are left out at once when the text grows longer
const START = 10; // the line end before a tale
const LONGEST = 400;
const MOST = 4000;
const AT_ONCE = 40;
const PACE = 35; // milliseconds from one token to the next, so that one can watch
const BARS = 8;
const SAID = ["The untrained model", "The model after 100 steps of training",
  "The model after 500 steps of training", "The trained model"];
const FILES = [null, "tales_100_weights", "tales_500_weights"];
const KEYS = ["text", "temperature", "top_k", "top_p", "seed", "written", "checkpoint", "shade",
  "place", "unfolded"];
const PRESETS = [["A dragon", "One day the young dragon"], ["Someone says", "\"I promise,\" said"],
  ["A name comes back", "Clara the turtle had lost her"], ["From nothing", ""],
  ["Not English", "Der Hund schläft 🐕"]].map(([name, text]) => [name, { text }]);

const models = {};
let pairs = null;
// The model of a checkpoint, if its numbers are here (given: those that have been fetched).
function modelOf(checkpoint, given = null) {
  if (!models[checkpoint]) {
    const numbers = checkpoint === 3 ? unpacked(weights.sizes, weights)
      : checkpoint === 0 ? untrained(weights.sizes) : given && unpacked(weights.sizes, given);
    if (numbers) models[checkpoint] = textModel(weights.sizes, numbers, weights.context);
  }
  return models[checkpoint];
}
function tokens() {
  pairs ??= bytePairs(weights.merges.split(" ").map(Number));
  return pairs;
}
const wellFormed = (text) => text.replace(/[\ud800-\udfff]/gu, "\ufffd");

// What the model reads: the end of the text, so that few tokens are left out at a time.
function windowOf(text, written) {
  const all = [START, ...tokens().encode(text), ...written];
  const from = STEP * Math.max(0, Math.ceil((all.length - weights.context) / STEP));
  return { ids: all.slice(from), total: all.length };
}

// All that the state shows; the model has been loaded.
function answer({ text, written, temperature, top_k: k, top_p: top, checkpoint, shade, place }) {
  const model = modelOf(checkpoint);
  const { ids, total } = windowOf(text, written);
  model.read(ids);
  const n = ids.length;
  const at = place > 0 && place < n ? place : n;
  const logits = Array.from(model.logits(at - 1));
  const surprise = range(n - 1).map((i) => {
    const row = model.logits(i);
    let [high, sum] = [-Infinity, 0];
    for (const x of row) if (x > high) high = x;
    for (const x of row) sum += Math.exp(x - high);
    return Math.log(sum) + high - row[ids[i + 1]];
  });
  let row = null;
  if (shade !== "surprise") {
    const heads = shade.includes("H") ? [Number(shade[3])] : range(weights.sizes.num_heads);
    const rows = heads.map((r) => model.weights(Number(shade[1]), r, at - 1));
    row = range(at).map((j) => rows.reduce((sum, r) => sum + r[j], 0) / rows.length);
  }
  return { ids, total, at, logits, surprise, row,
    probabilities: nextProbabilities(logits, temperature, k, top) };
}

function nextId(state) {
  const { ids } = windowOf(state.text, state.written);
  const model = modelOf(state.checkpoint);
  model.read(ids);
  const p = nextProbabilities(model.logits(ids.length - 1), state.temperature, state.top_k,
    state.top_p);
  return drawToken(p, uniform(state.seed, state.written.length));
}
const ends = (id) => /[.!?]["']?$|\n/.test(tokens().pieces([id])[0]);
// The tokens after `most` more, or up to the end of a sentence.
function goOn(state, most = AT_ONCE) {
  const written = [...state.written];
  for (let i = 0; i < most && written.length < LONGEST; i++) {
    written.push(nextId({ ...state, written }));
    if (ends(written.at(-1))) break;
  }
  return written;
}

const order = (logits) => range(logits.length).sort((a, b) => logits[b] - logits[a]);
// The state and its result in words, as the caption in Python.
function caption(state, result = answer(state)) {
  const { ids, total, at, logits, surprise, row, probabilities: p } = result;
  const said = (id) => `“${visible(tokens().pieces([id])[0])}”`;
  const tail = Array.from(visible(tokens().decode(ids.slice(0, at)), " ")).slice(-40).join("");
  const three = order(logits).slice(0, 3).filter((id) => p[id] > 0)
    .map((id) => `${said(id)} ${percent(p[id])}`).join(", ");
  const settings = `(T = ${short(state.temperature)}, top-k ${state.top_k}, top-p ${short(state.top_p)})`;
  let text = at === ids.length
    ? `${SAID[state.checkpoint]} goes on after “${tail}” with ${three} ${settings}.`
    : `${SAID[state.checkpoint]} gave ${said(ids[at])} ${percent(softmax(logits)[ids[at]])} after “${
      tail}”, a surprise of ${surprise[at - 1].toFixed(1)} nats. Likeliest ${settings}: ${three}.`;
  if (total > ids.length) text += ` It reads the last ${ids.length} of ${total} tokens.`;
  const best = (list) => list.indexOf(Math.max(...list));
  if (row) {
    text += ` In ${state.shade}, ${said(ids[at - 1])} attends most to ${said(ids[best(row)])} (${
      row[best(row)].toFixed(2)}).`;
  } else if (surprise.length) {
    text += ` The most surprising token is ${said(ids[best(surprise) + 1])} (${
      Math.max(...surprise).toFixed(1)} nats).`;
  }
  return text;
}

// The tokens as a line of cells: arrows move, Enter or a tap looks at one, focus and hover tell it.
function flow(onPick) {
  const line = make("div", { role: "row" });
  const grid = make("div", { class: "flow scroll", role: "grid",
    "aria-label": "the tokens that the model reads" }, line);
  const readout = make("p", { class: "readline", "aria-hidden": "true", text: "\u00a0" });
  let [cells, at] = [[], 0];
  const which = (event) => cells.findIndex((cell) => cell.node === event.target.closest?.(".tile"));
  const go = (i) => {
    cells[at].node.tabIndex = -1;
    at = clamp(i, 0, cells.length - 1);
    cells[at].node.tabIndex = 0;
    cells[at].node.focus();
  };
  // The cell in the next row, above (-1) or below (1), that stands nearest.
  const across = (way) => {
    const box = (i) => cells[i].node.getBoundingClientRect();
    const rows = range(cells.length).filter((i) => way * (box(i).top - box(at).top) > 4);
    if (!rows.length) return at;
    const top = box(way > 0 ? rows[0] : rows.at(-1)).top;
    return rows.filter((i) => Math.abs(box(i).top - top) < 4).reduce((a, b) =>
      (Math.abs(box(b).left - box(at).left) < Math.abs(box(a).left - box(at).left) ? b : a));
  };
  const tell = (i) => write(readout, i < 0 ? "\u00a0" : cells[i].said);
  const places = { ArrowLeft: () => at - 1, ArrowRight: () => at + 1, ArrowUp: () => across(-1),
    ArrowDown: () => across(1), Home: () => 0, End: () => cells.length - 1 };
  grid.addEventListener("keydown", (event) => {
    if (places[event.key]) go(places[event.key]());
    else if (event.key === "Enter" || event.key === " ") onPick(at);
    else return;
    event.preventDefault();
  });
  grid.addEventListener("focusin", (event) => {
    const i = which(event);
    if (i < 0) return;
    cells[at].node.tabIndex = -1;
    at = i;
    cells[at].node.tabIndex = 0;
    tell(i);
  });
  grid.addEventListener("pointerover", (event) => tell(which(event)));
  grid.addEventListener("pointerleave", () => tell(-1));
  grid.addEventListener("click", (event) => { if (which(event) >= 0) onPick(which(event)); });
  return {
    node: make("div", {}, grid, readout),
    // texts: what each cell shows; look(i) -> { v in 0..1, said, kind }; chosen: the one looked at.
    set(texts, look, chosen) {
      while (cells.length > texts.length) cells.pop().node.remove();
      while (cells.length < texts.length) {
        const node = make("span", { role: "gridcell", tabindex: cells.length ? -1 : 0 });
        line.append(node);
        cells.push({ node, said: "" });
      }
      if (at >= cells.length) {
        at = 0;
        cells[0].node.tabIndex = 0;
      }
      texts.forEach((text, i) => {
        const { v, said, kind } = look(i);
        const { node } = cells[i];
        cells[i].said = said;
        write(node, text);
        attribute(node, "class", `tile ${kind}`);
        attribute(node, "style", `--v:${v.toFixed(3)}`);
        attribute(node, "aria-label", said);
        attribute(node, "aria-selected", String(i === chosen));
      });
    },
    follow: () => { grid.scrollTop = grid.scrollHeight; },
  };
}

function render({ model: state, el, more = null }) {
  const ex = explorer({ model: state, el, title: "Write", name: "write" });
  const all = () => Object.fromEntries(KEYS.map((key) => [key, ex.get(key)]));
  let timer = 0;
  const stop = () => {
    clearInterval(timer);
    timer = 0;
    write(whole, "Go on");
    ex.root.removeAttribute("aria-busy");
  };
  // Another text: what was written after the last one goes.
  const change = (given) => {
    if (timer) stop();
    const anew = "text" in given && given.text !== ex.get("text");
    ex.set({ ...(anew ? { written: [] } : {}), place: -1, ...given });
  };
  const start = presets({ ex: { get: ex.get, set: change }, items: PRESETS, keys: KEYS });
  const field = make("textarea", { id: uid(), rows: 2, maxlength: MOST,
    autocomplete: "off", autocapitalize: "off", spellcheck: "false",
    "data-lm-suppress-shortcuts": "true", on: { input: () => change({ text: wellFormed(field.value) }) } });
  const ask = make("div", { class: "ask" },
    make("label", { for: field.id, text: "your text (any text; the model goes on from its end)" }), field);

  const append = (written) => ex.set({ place: -1, written });
  const full = () => ex.get("written").length >= LONGEST || !modelOf(ex.get("checkpoint"));
  const one = button("Next token", () => {
    if (timer) stop();
    if (!full()) append([...ex.get("written"), nextId(all())]);
    tokensBox.follow();
  });
  const whole = button("", () => {
    if (timer || full()) return void stop();
    let left = AT_ONCE;
    const next = () => {
      if (full()) return void stop();
      const id = nextId(all());
      append([...ex.get("written"), id]);
      tokensBox.follow();
      left -= 1;
      if (!left || ends(id)) stop();
    };
    write(whole, "Stop");
    ex.root.setAttribute("aria-busy", "true");
    timer = setInterval(next, PACE);
    next();
  });
  write(whole, "Go on"); // as it is written later, without a span
  const again = button("Start again", () => change({ written: [], seed: (ex.get("seed") + 1) % 1000 }));
  const buttons = make("div", { class: "presets", role: "group", "aria-label": "Write" }, one, whole, again);
  const begun = make("span");
  const story = make("b");
  const told = make("p", { class: "story" }, begun, story);
  const notice = make("p", { class: "notice", hidden: true });
  const tokensBox = flow((i) => { if (timer) stop(); ex.set({ place: i > 0 && i !== ex.get("place") ? i : -1 }); });
  const { num_layers: layers, num_heads: heads } = weights.sizes;
  const shade = choice({ label: "colour the tokens by", options: [["surprise", "surprise"],
    ...range(layers).flatMap((l) => [[`L${l}`, `attention in L${l}, mean of its heads`],
      ...range(heads).map((r) => [`L${l}H${r}`, `attention in L${l}H${r}`])])],
  onInput: (value) => ex.set({ shade: value }) });
  const heat = slider({ label: "temperature T", min: 0.1, max: 5, log: true,
    onInput: (t) => ex.set({ temperature: t }) });
  const vocabulary = weights.sizes.vocab_size;
  const topK = slider({ label: "top-k", values: [1, 2, 3, 5, 10, 20, 50, 100, 200, vocabulary],
    say: (k) => (k === vocabulary ? `all ${k}` : String(k)), onInput: (k) => ex.set({ top_k: k }) });
  const topP = slider({ label: "top-p", min: 0.05, max: 1, step: 0.05, typed: false,
    onInput: (p) => ex.set({ top_p: clamp(Number(p.toFixed(2)), 0.05, 1) }) });
  const trained = slider({ label: "steps of training", values: [0, 1, 2, 3],
    say: (c) => ["none", "100", "500", `${weights.facts.steps}, all`][c], onInput: (c) => ex.set({ checkpoint: c }) });
  const settings = make("details", { on: { toggle: () => {
    if (ex.get("unfolded") !== settings.open) ex.set({ unfolded: settings.open });
  } } }, make("summary", { "data-lm-suppress-shortcuts": "true", text: "top-k, top-p and the steps of training" }),
  topK.node, topP.node, trained.node);
  let unfolded = false; // as drawn last: the reader's own opening is told a moment later
  const title = make("p", { class: "heading" });
  const table = candidates(BARS, "token", "as set");
  ex.add(start.node, ask, buttons, told, notice, tokensBox.node, shade.node, heat.node, settings, title, table.node);

  // The numbers of another checkpoint: from the page's folder, or in a notebook from the kernel.
  const asked = new Set();
  function fetch(checkpoint) {
    if (asked.has(checkpoint)) return;
    asked.add(checkpoint);
    const came = (numbers) => {
      asked.delete(checkpoint);
      if (numbers) modelOf(checkpoint, numbers);
      else if (ex.get("checkpoint") === checkpoint) {
        ex.set({ checkpoint: 3 });
        notice.hidden = false;
        write(notice, `${SAID[checkpoint]} could not be fetched; this is the trained one.`);
        return;
      }
      draw();
    };
    if (more) more(FILES[checkpoint]).then(came);
    else {
      const late = setTimeout(() => came(null), 15000);
      const look = () => {
        const numbers = state.get("_loaded")?.[checkpoint];
        if (!numbers) return;
        clearTimeout(late);
        state.off("change:_loaded", look);
        came(numbers);
      };
      state.on("change:_loaded", look);
      ex.onCleanup(() => state.off("change:_loaded", look));
      look();
    }
  }

  function draw() {
    const now = all();
    start.update();
    if (field.value !== now.text) field.value = now.text;
    heat.set(now.temperature);
    topK.set(now.top_k);
    topP.set(now.top_p);
    trained.set(now.checkpoint);
    shade.set(now.shade);
    if (unfolded !== now.unfolded) settings.open = unfolded = now.unfolded;
    const ready = Boolean(modelOf(now.checkpoint));
    notice.hidden = ready;
    if (ready) notice.replaceChildren();
    for (const b of [one, whole]) b.setAttribute("aria-disabled", String(!ready || now.written.length >= LONGEST));
    if (!ready) {
      notice.replaceChildren(`Loading the numbers of step ${[0, 100, 500][now.checkpoint]} … `, make("progress"));
      fetch(now.checkpoint);
      return;
    }
    const result = answer(now);
    const { ids, at, logits, surprise, row, probabilities: p, total } = result;
    const texts = tokens().pieces(ids).map((piece) => visible(piece));
    const first = ids.length - now.written.length;
    told.hidden = !now.written.length;
    write(begun, now.text);
    write(story, tokens().decode(now.written));
    tokensBox.set(texts, (i) => {
      const by = row ? row[i] : i && surprise[i - 1];
      const known = row ? i < at : i > 0;
      return { v: known ? clamp(row ? by : by / 8, 0, 1) : 0, kind: `${i >= first ? "own" : ""}${known ? "" : " later"}`,
        said: `“${texts[i]}”${i >= first ? ", written by the model" : ""}${!known ? ""
          : row ? `, weight ${fixed(by)}` : `, surprise ${by.toFixed(1)} nats (${percent(Math.exp(-by))})`}` };
    }, at);
    const chosen = at < ids.length ? ids[at] : null;
    write(title, chosen === null ? "the next token" : `what could have stood in the place of “${texts[at]}”`);
    const shown = order(logits).slice(0, BARS);
    if (chosen !== null && !shown.includes(chosen)) shown[BARS - 1] = chosen;
    const before = softmax(logits);
    table.set(shown.map((id) => ({ before: before[id], now: p[id],
      text: `${visible(tokens().pieces([id])[0])}${id === chosen ? " ✓" : ""}` })));
    if (total > ids.length) {
      notice.hidden = false;
      write(notice, `The model reads ${weights.context} tokens at most: the first ${total - ids.length} are left out.`);
    }
    ex.say(caption(now, result));
  }
  ex.onCleanup(() => clearInterval(timer));
  return ex.start(draw, KEYS);
}

export default { render };
