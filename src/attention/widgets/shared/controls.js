// What a hand moves or reads: sliders, numbers, switches, presets, bars.
import { clamp, range } from "./mathematics.js";
import { fixed, short, tr } from "./words.js";
import { attribute, make, maths, uid, write } from "./elements.js";

// A label, a native range input and its number, which may be typed. `log` makes the slider
// logarithmic. `values` gives a slider that steps through a list.
export function slider({ label, min = 0, max, step = 1, log = false, values = null, digits = 3,
  typed = !values, say = (x) => short(x, digits), onInput }) {
  const id = uid();
  const nearest = (x) => values.reduce((best, v, i) =>
    (Math.abs(v - x) < Math.abs(values[best] - x) ? i : best), 0);
  const toPlace = (x) => (values ? nearest(x)
    : log ? (1000 * Math.log(x / min)) / Math.log(max / min) : x);
  const fromPlace = (p) => (values ? values[p]
    : log ? Number((min * Math.pow(max / min, p / 1000)).toPrecision(4)) : p);
  const bar = make("input", { type: "range", id, min: values || log ? 0 : min,
    max: values ? values.length - 1 : log ? 1000 : max, step: values ? 1 : log ? 5 : step,
    on: { input: () => onInput(clamp(fromPlace(bar.valueAsNumber), lowest, highest)) } });
  const lowest = values ? values[0] : min;
  const highest = values ? values[values.length - 1] : max;
  const box = typed ? numberBox({ label: `${label}, typed`, min, max, step: log ? "any" : step,
    digits, onInput: (x) => onInput(x) }) : null;
  const out = typed ? box.node : make("output", { for: id });
  const node = make("div", { class: "field" }, make("label", { for: id }, maths(label)), bar, out);
  return {
    node, bar,
    set(x) {
      const place = toPlace(clamp(x, lowest, highest));
      if (Math.abs(bar.valueAsNumber - place) > (log ? 1e-6 : 0)) bar.value = place;
      bar.style.setProperty("--x", `${(100 * (place - bar.min)) / (bar.max - bar.min)}%`);
      attribute(bar, "aria-valuetext", say(x));
      if (typed) box.set(x);
      else write(out, say(x));
    },
    enable(on) {
      bar.disabled = !on;
      if (box) box.field.disabled = !on;
    },
  };
}

// A number that may be typed; what is no number, or out of range, is not taken. While a slider
// moves, the number is plain text over the field, which gets it once the hand rests or focus comes:
// the browser draws a field's own text apart from everything around it.
export function numberBox({ label, min = -1e6, max = 1e6, step = "any", digits = 3, onInput }) {
  let value = 0;
  let timer = 0;
  const text = () => String(Number(value.toFixed(digits)));
  const read = () => {
    const x = field.valueAsNumber;
    const ok = Number.isFinite(x) && x >= min && x <= Number(field.max);
    field.setAttribute("aria-invalid", String(!ok));
    return ok ? (step === 1 ? Math.round(x) : x) : null;
  };
  const settle = () => {
    clearTimeout(timer);
    if (field.value === text()) return;
    field.value = text();
    field.removeAttribute("aria-invalid");
  };
  const field = make("input", { type: "number", class: "number", "aria-label": label, min, max, step,
    title: `${short(min)} to ${short(max)}`, on: {
      input: () => { const x = read(); if (x !== null && x !== value) onInput(x); },
      change: () => { field.value = text(); field.removeAttribute("aria-invalid"); },
      focus: settle,
    } });
  const shown = make("span", { class: "shown", "aria-hidden": "true" });
  return {
    node: make("span", { class: "typed" }, field, shown), field,
    set(x) {
      if (x === value && field.value !== "") return;
      value = x;
      write(shown, text());
      clearTimeout(timer);
      if (field.value === "") settle();
      else if (field !== document.activeElement) timer = setTimeout(settle, 150);
      else if (field.valueAsNumber !== x) settle();
    },
  };
}

export function toggle({ label, onInput }) {
  const input = make("input", { type: "checkbox", on: { input: () => onInput(input.checked) } });
  return { node: make("label", { class: "switch" }, input, maths(label)),
    set: (on) => { if (input.checked !== on) input.checked = on; } };
}

export function choice({ label, options, onInput }) { // options: [value, words]
  const id = uid();
  const select = make("select", { id, "data-lm-suppress-shortcuts": "true", on: { input: () => onInput(select.value) } },
    ...options.map(([value, text]) => make("option", { value, text })));
  return { node: make("div", { class: "field" }, make("label", { for: id }, maths(label)), select),
    set: (value) => { if (select.value !== value) select.value = value; } };
}

// Presets: buttons that set several traits at once, pressed while the state is theirs; and Reset,
// which goes back to the state the explorer opened with.
export function presets({ ex, items, keys, label = tr`Start from` }) {
  const same = (a, b) => JSON.stringify(a) === JSON.stringify(b);
  const opened = Object.fromEntries(keys.map((key) => [key, ex.get(key)]));
  const buttons = items.map(([text, state]) =>
    make("button", { type: "button", on: { click: () => ex.set(state) } }, maths(text)));
  const reset = make("button", { type: "button", class: "reset", text: tr`Reset`,
    on: { click: () => ex.set(opened) } });
  return {
    node: make("div", { class: "presets", role: "group", "aria-label": label }, ...buttons, reset),
    update: () => buttons.forEach((button, i) => attribute(button, "aria-pressed",
      Object.entries(items[i][1]).every(([key, value]) => same(ex.get(key), value)))),
  };
}

// A short piece of a curve, to stand beside its name.
export const swatch = (colour, style = "") => make("i", { class: `swatch ${style}`,
  style: `--c:var(--c${colour % 8})`, "aria-hidden": "true" });

export const button = (text, onClick) =>
  make("button", { type: "button", on: { click: onClick } }, maths(text));

// A few numbers with names: { name: words } -> dl; set({ name: text }).
export function readouts(names) {
  const parts = Object.entries(names).map(([key, words]) => {
    const value = make("dd");
    return [key, value, make("div", {}, make("dt", {}, maths(words)), value)];
  });
  const node = make("dl", { class: "readouts" }, ...parts.map((part) => part[2]));
  return { node, set: (values) => parts.forEach(([key, value]) => write(value, values[key])) };
}

// A bar whose length is its background's: it is painted anew, and nothing is laid out.
export function bar(colour) {
  const fill = make("i", { style: `--c:var(--c${colour % 8})` });
  let last = -1;
  return { node: make("span", { class: "bar" }, fill), set(x) {
    const value = Number.isFinite(x) ? clamp(x, 0, 1) : 0;
    if (value !== last) fill.style.setProperty("--x", `${100 * (last = value)}%`);
  } };
}

// The tokens that may come next, a row each: the probability at T = 1, and what the settings leave
// of it as a bar and a number. set([{ text, before, now }]), with `count` of them.
export function candidates(count, token, settings) {
  const rows = range(count).map(() => {
    const [word, before, weight, now] = [make("span", { class: "word" }),
      make("span", { class: "weight" }), bar(0), make("span", { class: "weight" })];
    return { word, before, weight, now,
      node: make("div", { class: "token-row plain" }, word, before, weight.node, now) };
  });
  const heads = make("div", { class: "token-row plain heads", "aria-hidden": "true" },
    ...[token, "at T = 1", "", settings].map((text) => make("span", { text })));
  return {
    node: make("div", { class: "tokens" }, heads, ...rows.map((row) => row.node)),
    set: (tokens) => tokens.forEach(({ text, before, now }, i) => {
      write(rows[i].word, text);
      write(rows[i].before, fixed(before, 3));
      rows[i].weight.set(now);
      write(rows[i].now, now > 0 ? fixed(now, 3) : "cut off");
    }),
  };
}
