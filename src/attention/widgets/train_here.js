// Train it here: a transformer learns in the page, from random weights.
import {
  attribute, button, chart, choice, count, explorer, fixed, heatmap, list, make, network, normals,
  onTheme, ramp, range, readouts, short, slider, swatch, toggle, trainer, uniform, write,
} from "./shared.js";

const BEGIN = "al an be bel ca da el em fe ga ha il jo ka le li lu ma mar mi na no or pa ra ro sa se ta ti u va vi wi yo ze".split(" ");
const MIDDLE = ["", ..."bi da de la le li lo me mi na ni ra ri ro sa ti va vi".split(" ")];
const END = "a an as da e el en ia in is la lo n na ne o ra ro ta th us".split(" ");
const [N, WINDOWS, LEAST, MOST, AT_ONCE] = [12, 48, 200, 200_000, 1000];
const SWITCHES = { mask: "mask", scale: "√d_k", positions: "positions", residual: "residual sums",
  norms: "norms" };
const SETTINGS = ["data", "text", "heads", ...Object.keys(SWITCHES), "learning_rate", "seed"];
const KEYS = [...SETTINGS, "training", "step", "weights", "layer", "head"];
const BLANK = { training: false, step: 0, losses: [], held_out: [], samples: [], weights: "" };

// Every name that there is, and those that the page has: the first 3,000 of a draw.
const allNames = () => [...new Set(BEGIN.flatMap((a) => MIDDLE.flatMap((b) => END.map((c) => a + b + c))))];
function drawnNames() {
  const every = allNames();
  const order = every.map((_, i) => uniform(2026, i));
  return range(every.length).sort((i, j) => order[i] - order[j]).slice(0, 3000).map((i) => every[i]);
}

// Text to numbers: most of it to train on, the rest held out. `text` is null for the names.
function makeTask(text) {
  let parts;
  if (text === null) {
    const names = drawnNames();
    parts = [names.slice(0, 2700), names.slice(2700)].map((some) => [..."\n", ...some.join("\n"), "\n"]);
  } else {
    const all = withoutRare([...text].slice(0, MOST));
    const cut = Math.floor((all.length * 9) / 10);
    parts = [all.slice(0, cut), all.slice(cut)];
  }
  const letters = [...new Set(parts.flat())].sort((a, b) => a.codePointAt(0) - b.codePointAt(0));
  const number = new Map(letters.map((letter, i) => [letter, i]));
  const [train, held] = parts.map((part) => {
    const tokens = part.map((letter) => number.get(letter));
    return { tokens, starts: range(Math.max(0, tokens.length - N))
      .filter((i) => text !== null || tokens[i] === 0) };
  });
  const windows = Math.min(WINDOWS, held.starts.length);
  held.starts = range(windows).map((i) => held.starts[Math.floor((i * held.starts.length) / windows)]);
  const shown = held.tokens.slice(held.starts[0], held.starts[0] + N);
  return { letters, vocab: letters.length, n: N, d: 32, layers: 2, ...train, held, shown,
    opening: train.tokens[0], closing: text === null ? 0 : -1,
    ...(text === null ? { samples: 8, longest: N } : { samples: 2, longest: 72 }) };
}
function withoutRare(letters) {
  const known = new Map();
  for (const letter of letters) known.set(letter, (known.get(letter) ?? 0) + 1);
  if (known.size <= 96) return letters;
  const kept = new Set([...known.keys()].sort((a, b) =>
    known.get(b) - known.get(a) || a.codePointAt(0) - b.codePointAt(0)).slice(0, 95));
  return letters.map((letter) => (kept.has(letter) ? letter : "□"));
}
// What the held-out names cost one who knows every name that can be: nats a letter.
function bestLoss({ letters, held }) {
  const begun = new Map();
  for (const name of allNames()) for (let i = 0; i <= name.length; i++) {
    begun.set(name.slice(0, i), (begun.get(name.slice(0, i)) ?? 0) + 1);
  }
  let sum = 0;
  for (const start of held.starts) {
    let name = "";
    for (let j = 1; j <= N; j++) {
      const letter = letters[held.tokens[start + j]];
      const longer = letter === "\n" ? "" : name + letter;
      sum += Math.log(begun.get(name) / (longer ? begun.get(longer) : 1));
      name = longer;
    }
  }
  return sum / (N * held.starts.length);
}

// Weights as base64 of float32, and back.
const toText = (numbers) => {
  const bytes = new Uint8Array(Float32Array.from(numbers).buffer);
  let text = "";
  for (let i = 0; i < bytes.length; i += 4096) text += String.fromCharCode(...bytes.subarray(i, i + 4096));
  return btoa(text);
};
const toNumbers = (text) => Float64Array.from(
  new Float32Array(Uint8Array.from(atob(text), (c) => c.charCodeAt(0)).buffer));

// A worker that trains; where none can be made, the same in the page, a few milliseconds at a time.
function makeTrainer(onMessage) {
  const here = () => {
    const tell = trainer((message) => setTimeout(onMessage, 0, message), network, uniform, 8);
    return { tell, end: () => tell({ run: 0 }) };
  };
  let mine = null;
  const sent = [];
  try {
    const text = `const tell = (${trainer})((m) => postMessage(m), ${network}, ${uniform}, 40);
      onmessage = (event) => tell(event.data);`;
    const address = URL.createObjectURL(new Blob([text], { type: "text/javascript" }));
    const worker = new Worker(address);
    mine = { tell: (message) => worker.postMessage(message), end: () => worker.terminate() };
    let alive = false;
    worker.onmessage = (event) => { alive = true; onMessage(event.data); };
    worker.onerror = (event) => { // refused by a policy of the page around us
      if (alive) return;
      event.preventDefault();
      mine = here();
      for (const message of sent) mine.tell(message);
    };
    setTimeout(() => URL.revokeObjectURL(address), 10000);
  } catch {
    mine = here();
  }
  return { end: () => mine.end(), tell(message) {
    if (message.begin) sent.length = 0;
    if (sent.length < 50) sent.push(message);
    mine.tell(message);
  } };
}

// One training for all views of one model, begun when the first of them is seen.
const sessions = new Map();
function sessionOf(model) {
  const key = model.get("_session") || model;
  if (sessions.has(key)) return sessions.get(key);
  const s = { views: new Set(), task: null, maps: null, speed: 0, busy: false, lost: null, best: null,
    training: false, draft: null };
  let [begun, told, known, id, turn, saved, worker] = ["", "", { step: -1, weights: "" }, 0, 0, 0, null];
  const get = (name) => model.get(name);
  const settings = () => ({ heads: Number(get("heads")),
    ...Object.fromEntries(Object.keys(SWITCHES).map((name) => [name, get(name)])) });
  const redraw = s.redraw = () => { for (const draw of [...s.views]) draw(); };
  function publish(state, save) {
    s.quiet = true;
    Object.assign(known, state);
    for (const [name, value] of Object.entries(state)) model.set(name, value);
    s.quiet = false;
    if (save || performance.now() - saved > 1000) {
      saved = performance.now();
      model.save_changes();
    }
  }
  function heard(message) {
    if (message.id !== id) return;
    let [losses, held] = [get("losses"), get("held_out")];
    const numbers = [...losses, ...message.losses.map((x) => Number(x.toFixed(5)))];
    const pairs = [...held, ...message.held.map(([at, x]) => [at, Number(x.toFixed(5))])];
    const state = { samples: message.samples.map((ids) => ids.map((i) => s.task.letters[i]).join("")) };
    [losses, held] = [numbers, pairs];
    if (message.diverged) {
      s.lost = { ...message.diverged, losses: numbers, back: message.step };
      losses = numbers.slice(0, message.step);
      held = pairs.filter(([at]) => at <= message.step);
    } else if (message.losses.length) s.lost = null;
    if (message.diverged || (message.done && message.turn === turn)) {
      state.training = s.training = s.busy = false;
    }
    if (message.theta) state.weights = message.step ? toText(message.theta) : "";
    if (message.losses.length) s.speed = message.speed;
    s.maps = message.maps;
    publish({ ...state, losses, held_out: held, step: message.step }, !get("training"));
    redraw();
  }
  function begin() {
    const [data, text] = [get("data"), get("text")];
    if (data === "own") s.draft = null; // what is learned is what stands in the field
    const usable = data !== "own" || [...text].length >= LEAST;
    s.task = usable ? makeTask(data === "names" ? null : data === "tales" ? get("tales") : text) : null;
    s.best = data === "names" ? bestLoss(s.task) : null;
    [s.maps, s.lost, s.speed, s.busy, s.training] = [null, null, 0, false, false];
    id++;
    if (!s.task) return;
    worker ??= makeTrainer(heard);
    const { letters, ...plain } = s.task;
    const { size } = network(s.task);
    let theta = get("weights") ? toNumbers(get("weights")) : null;
    if (theta?.length !== size) theta = null;
    told = JSON.stringify([settings(), get("learning_rate")]);
    worker.tell({ begin: { ...plain, id, turn, theta, bell: theta ? null : normals(get("seed"), size),
      seed: get("seed"), step: theta ? get("step") : 0 }, on: settings(), rate: get("learning_rate") });
  }
  // What the state asks for and the training does not do yet.
  s.follow = () => {
    const wanted = JSON.stringify([get("data"), get("data") === "own" ? get("text") : "", get("seed")]);
    const elsewhere = get("step") !== known.step || get("weights") !== known.weights;
    if (wanted !== begun || elsewhere) {
      const anew = wanted !== begun && begun !== "";
      const asked = get("training");
      begun = wanted;
      publish(anew || !get("weights") ? { ...BLANK, training: asked && !anew }
        : { step: get("step"), weights: get("weights") }, true);
      begin();
      redraw();
    }
    if (!s.task) {
      if (get("training")) publish({ training: false }, true);
      return;
    }
    const switches = JSON.stringify([settings(), get("learning_rate")]);
    if (switches !== told) {
      told = switches;
      worker.tell({ on: settings(), rate: get("learning_rate") });
    }
    if (get("training") !== s.training) {
      s.training = get("training");
      s.busy = true;
      worker.tell({ run: s.training ? AT_ONCE : 0, turn: ++turn });
    }
  };
  s.one = () => {
    if (get("training") || !s.task) return;
    s.busy = true;
    worker.tell({ more: 1 });
    redraw();
  };
  s.afresh = () => { begun = "?"; };
  s.leave = (draw) => {
    s.views.delete(draw);
    if (s.views.size) return;
    worker?.end();
    sessions.delete(key);
  };
  sessions.set(key, s);
  return s;
}

const glyph = (letter) => ({ "\n": "⏎", " ": "␣" })[letter] ?? letter;
const nice = (steps) => [100, 200, 500].flatMap((x) => [x, 10 * x, 100 * x]).sort((a, b) => a - b)
  .find((x) => x >= steps) ?? 1e5;

function render({ model, el }) {
  const ex = explorer({ model, el, title: "Train it here", name: "train_here" });
  const opened = Object.fromEntries([...SETTINGS, "layer", "head"].map((key) => [key, ex.get(key)]));
  const session = sessionOf(model);
  let awake = false;

  const run = button("Train", () => {
    if (session.task) ex.set({ training: !ex.get("training") });
  });
  const one = button("One step", () => session.one());
  const again = button("Another seed", () => ex.set({ seed: (ex.get("seed") + 1) % 1000 }));
  const reset = make("button", { type: "button", class: "reset", text: "Reset",
    on: { click: () => {
      notice.hidden = true;
      session.draft = null;
      session.afresh();
      ex.set({ ...opened, ...BLANK });
    } } });
  const buttons = make("div", { class: "presets", role: "group", "aria-label": "Training" },
    run, one, again, reset);

  const data = choice({ label: "learns from", options: [["names", "3,000 invented names"],
    ["tales", "a few of the tales"], ["own", "your own text"]], onInput: (x) => ex.set({ data: x }) });
  const area = make("textarea", { rows: 4, "aria-label": "your own text", spellcheck: "false",
    placeholder: `Paste ${LEAST} characters or more`, "data-lm-suppress-shortcuts": "true",
    on: { input: () => { session.draft = area.value; session.redraw(); } } });
  const notice = make("p", { class: "readline", role: "alert", hidden: true });
  const own = make("div", { class: "own" }, area, button("Learn this text", () => {
    const size = [...area.value].length;
    notice.hidden = size >= LEAST;
    write(notice, size >= LEAST ? "" : `The text must have at least ${LEAST} characters; this one has ${size}.`);
    if (size >= LEAST) ex.set({ text: [...area.value].slice(0, MOST).join("") });
  }), notice);
  const toggles = Object.entries(SWITCHES).map(([name, label]) =>
    [name, toggle({ label, onInput: (x) => ex.set({ [name]: x }) })]);
  const heads = choice({ label: "heads", options: [1, 2, 4].map((h) => [String(h),
    `${h}, each ${32 / h} wide`]), onInput: (h) => ex.set({ heads: Number(h), head: 0 }) });
  const rate = slider({ label: "learning rate", min: 0.0001, max: 1, log: true, digits: 4,
    onInput: (x) => ex.set({ learning_rate: x }) });
  const numbers = readouts({ step: "step", loss: "training loss", held: "held-out loss",
    speed: "steps a second" });

  const legend = make("p", { class: "readline legend" });
  const lines = make("div");
  const figure = make("div", {}, legend, lines);
  let curves = null;
  function plot() {
    const [losses, held, lost] = [ex.get("losses"), ex.get("held_out"), session.lost];
    const all = lost ? lost.losses : losses;
    const guess = session.task ? Math.log(session.task.vocab) : 4;
    const [wide, high] = [nice(Math.max(all.length, 1)), Math.ceil(guess + 0.5)];
    const key = `${wide} ${high} ${session.best}`;
    if (curves?.key !== key) {
      const c = chart({ label: "", height: 170, yLabel: "loss, nats a character", xLabel: "step",
        xTicks: range(5).map((i) => [i / 4, short((wide * i) / 4)]),
        yTicks: range(high + 1).map((i) => [i / high, String(i)]) });
      const level = (y, colour, style) => c.line(colour, style).set([[0, y / high], [1, y / high]]);
      level(guess, 6, "dash2");
      if (session.best !== null) level(session.best, 2, "dash3");
      curves = { key, c, train: c.line(0), held: c.line(1, "dash1"), lost: c.line(3, "dash2") };
      lines.replaceChildren(c.node);
      legend.replaceChildren(...[[0, "", "training, mean of a few steps"], [1, "dash1", "held out"],
        [6, "dash2", `guessing, ${fixed(guess)}`],
        ...(session.best === null ? [] : [[2, "dash3", `the best possible, ${fixed(session.best)}`]])]
        .map(([colour, style, text]) => make("span", { class: "word" }, swatch(colour, style), text)));
    }
    const by = Math.max(1, Math.ceil(all.length / 100));
    const means = (from) => range(Math.ceil(from.length / by)).map((i) => {
      const some = from.slice(i * by, (i + 1) * by);
      return [(i * by + some.length / 2) / wide, some.reduce((a, b) => a + b, 0) / some.length / high];
    });
    const points = means(losses);
    curves.train.set(points);
    curves.held.set(held.map(([at, x]) => [at / wide, x / high]));
    curves.lost.set(lost ? means(lost.losses).slice(Math.max(0, points.length - 1)) : []);
    curves.c.describe(losses.length ? `The loss over ${count(losses.length, "step")}: from ${
      fixed(losses[0])} to ${fixed(recent(losses))}; guessing costs ${fixed(guess)}.`
      : `No step yet; guessing costs ${fixed(guess)}.`);
  }
  const recent = (losses) => {
    const some = losses.slice(-20);
    return some.reduce((a, b) => a + b, 0) / some.length;
  };

  const written = make("div", { class: "written" });
  const samples = make("div", {}, make("p", { class: "heading", text: "what it writes now" }), written);
  const gallery = make("div", { class: "gallery" });
  const mapTitle = make("p", { class: "heading" });
  const tableBox = make("div");
  let [maps, table, built, colours] = [[], null, "", null];
  function build(h, letters) {
    const key = `${h} ${letters.join("")}`;
    if (key === built) return;
    built = key;
    maps = range(2).map((layer) => range(h).map((head) => {
      const canvas = make("canvas", { width: N, height: N, "aria-hidden": "true" });
      const name = `L${layer}H${head}`;
      const open = make("button", { type: "button", class: "map",
        on: { click: () => ex.set({ layer, head }) } },
      make("span", { class: "picture" }, canvas), make("span", { class: "map-name", text: name }));
      return { canvas, open, name };
    }));
    gallery.replaceChildren(...maps.flatMap((row, layer) => [
      make("p", { class: "layer", text: `layer ${layer}, ${count(h, "head")}` }), ...row.map((m) => m.open)]));
    table = heatmap({ label: "weights of the chosen head", rows: letters, columns: letters, least: 0.05 });
    table.node.classList.add("scroll");
    tableBox.replaceChildren(table.node);
  }
  function paint(canvas, at) {
    if (!colours) {
      const style = getComputedStyle(ex.root);
      colours = ramp(["--zero", "--pos"].map((key) => style.getPropertyValue(key).trim()));
    }
    const pixels = new ImageData(N, N);
    const words = new Uint32Array(pixels.data.buffer);
    for (let i = 0; i < N * N; i++) words[i] = colours[Math.round(255 * at(i))];
    canvas.getContext("2d").putImageData(pixels, 0, 0);
  }
  function drawMaps() {
    const letters = session.task ? session.task.shown.map((i) => glyph(session.task.letters[i]))
      : range(N).map(() => "·");
    const h = Number(ex.get("heads"));
    build(h, letters);
    const layer = ex.get("layer");
    const head = Math.min(ex.get("head"), h - 1);
    const fits = session.maps?.[0].length === h * N * N;
    const weight = (l, r, i) => (fits ? session.maps[l][r * N * N + i] : 0);
    const before = (l, r) => fixed(range(N - 1).reduce((sum, i) =>
      sum + weight(l, r, (i + 1) * N + i), 0) / (N - 1));
    maps.forEach((row, l) => row.forEach((map, r) => {
      paint(map.canvas, (i) => weight(l, r, i));
      attribute(map.open, "aria-pressed", String(l === layer && r === head));
      attribute(map.open, "aria-label",
        `head ${map.name}, ${before(l, r)} on the letter before; show it large`);
    }));
    write(mapTitle, `who attends to whom in L${layer}H${head}, in “${letters.join("")}”: ${
      before(layer, head)} on the letter before, on average`);
    table.set((i, j) => weight(layer, head, i * N + j),
      (i, j) => fixed(weight(layer, head, i * N + j)).replace(/^0(?=\.)/, ""));
  }
  const note = make("p", { class: "readline", text: "Two layers, vectors of 32 numbers, "
    + `${N} characters of context, 16 sequences a step, AdamW. All weights begin at random and are `
    + "trained in this page. In the maps, rows are queries, and ⏎ is the end of a line." });
  const told = make("div", {}, numbers.node, ex.root.querySelector(".say")); // under what it sums up
  ex.add(buttons, data.node, own, make("div", { class: "switches" }, ...toggles.map(([, x]) => x.node)),
    heads.node, rate.node, told, samples, figure, gallery, make("div", {}, mapTitle, tableBox), note);

  let [spoken, spokenAt, state] = ["", 0, ""];
  function speak() { // at once on a change of state, else now and then
    const now = JSON.stringify([SETTINGS.map(ex.get), ex.get("training"), ex.get("training") ? 0
      : ex.get("step"), ex.get("layer"), ex.get("head"), session.lost, Boolean(session.task)]);
    if (now === state && performance.now() - spokenAt < 6000) return;
    [state, spokenAt] = [now, performance.now()];
    spoken = words();
    ex.say(spoken);
  }
  function words() {
    const [losses, held, lost] = [ex.get("losses"), ex.get("held_out"), session.lost];
    const off = Object.entries(SWITCHES).filter(([name]) => !ex.get(name)).map(([, text]) => text);
    const about = `It learns from ${{ names: "names", tales: "the tales", own: "your text" }[ex.get("data")]
    }. Learning rate ${short(ex.get("learning_rate"), 4)}, ${
      count(Number(ex.get("heads")), "head")}, seed ${ex.get("seed")}${off.length ? `, without ${list(off)}` : ""}.`;
    if (awake && !session.task) return `Paste a text of at least ${LEAST} characters, or choose another. ${about}`;
    if (lost) {
      return `The training has diverged: at step ${lost.step} the loss was ${lost.loss === null
        ? "no number any more" : `${short(lost.loss, 1)}, more than ten times what guessing costs`
      }. It has stopped, and the weights are those of step ${lost.back} again. Lower the learning rate `
        + `or switch on what is off, and train on. ${about}`;
    }
    const guess = session.task ? `Guessing costs ${fixed(Math.log(session.task.vocab))} nats a character. ` : "";
    if (!losses.length) return `Step 0: the weights are random. ${guess}${about}`;
    const last = held.at(-1);
    const below = last && session.best !== null && last[1] < session.best - 0.1
      ? ` That is below the best possible, ${fixed(session.best)}: it sees the letter that it is to predict.` : "";
    const past = ex.get("training"); // said now and then, so the numbers above have gone on
    return `${past ? "Training. At step" : "Step"} ${losses.length}${past ? "" : ":"} the training loss ${
      past ? "was" : "is"} ${fixed(recent(losses))}${last ? `, the held-out loss ${fixed(last[1])}` : ""}.${below} ${
      losses.length < 40 ? guess : ""}${about}`;
  }

  function draw() {
    if (session.quiet) return;
    if (awake) session.follow();
    const [losses, held, step, training] = ["losses", "held_out", "step", "training"].map(ex.get);
    write(run, training ? "Pause" : "Train");
    attribute(run, "aria-pressed", String(training));
    attribute(one, "aria-disabled", String(training || !session.task));
    attribute(run, "aria-disabled", String(!session.task));
    data.set(ex.get("data"));
    own.hidden = ex.get("data") !== "own";
    session.draft ??= ex.get("text");
    if (area.value !== session.draft) area.value = session.draft;
    for (const [name, x] of toggles) x.set(ex.get(name));
    heads.set(String(ex.get("heads")));
    rate.set(ex.get("learning_rate"));
    numbers.set({ step: session.busy && !training ? `${step} …` : String(step),
      loss: losses.length ? fixed(recent(losses)) : "none yet",
      held: held.length ? fixed(held.at(-1)[1]) : "none yet",
      speed: session.speed ? short(session.speed, session.speed < 10 ? 1 : 0) : "none yet" });
    plot();
    const shown = ex.get("samples");
    written.replaceChildren(...(shown.length ? shown : ["nothing yet"]).map((text) =>
      make("span", { text: text.replaceAll("\n", "⏎ ") || "(an empty one)" })));
    drawMaps();
    speak();
  }
  session.views.add(draw);
  ex.onCleanup(() => session.leave(draw));
  ex.onCleanup(onTheme(() => { colours = null; draw(); }));
  const near = new IntersectionObserver((entries) => {
    if (!entries.some((entry) => entry.isIntersecting)) return;
    near.disconnect();
    awake = true;
    draw();
  }, { rootMargin: "200px" });
  near.observe(ex.root);
  ex.onCleanup(() => near.disconnect());
  const away = () => { if (document.hidden && ex.get("training")) ex.set({ training: false }); };
  document.addEventListener("visibilitychange", away);
  ex.onCleanup(() => document.removeEventListener("visibilitychange", away));
  return ex.start(draw, KEYS);
}

export default { render };
