// What every explorer uses: the mathematics of the book in double precision, and the drawing
// pieces. The mathematics runs in Node too: `document` is touched only inside functions.

// ---------------------------------------------------------------- mathematics

export const range = (n) => Array.from({ length: n }, (_, i) => i);
export const clamp = (x, low, high) => Math.min(high, Math.max(low, x));
export const dot = (a, b) => a.reduce((sum, x, i) => sum + x * b[i], 0);
export const transpose = (m) => (m.length ? m[0].map((_, j) => m.map((row) => row[j])) : []);
export const matmul = (a, b) => { // (n, d), (d, m) -> (n, m)
  const columns = transpose(b);
  return a.map((row) => columns.map((column) => dot(row, column)));
};

// exp(x / t) / sum; -Infinity gives 0, and a row of nothing else gives zeros.
export function softmax(x, temperature = 1) {
  let top = -Infinity;
  for (const value of x) if (value > top) top = value;
  if (top === -Infinity) return x.map(() => 0);
  const e = x.map((value) => Math.exp((value - top) / temperature));
  const sum = e.reduce((a, b) => a + b, 0);
  return e.map((value) => value / sum);
}

export const entropy = (p) => p.reduce((h, x) => (x > 0 ? h - x * Math.log(x) : h), 0); // nats
export const jacobian = (p) => p.map((a, i) => p.map((b, j) => a * ((i === j ? 1 : 0) - b)));
// The largest |entry| stands on the diagonal: p_i p_j <= p_i (1 - p_i), since p_j <= 1 - p_i.
export const largestJacobian = (p) => p.reduce((m, x) => Math.max(m, x * (1 - x)), 0);

// q (n_q, d), k (n_k, d), v (n_k, d_v); mask booleans, true = may attend; bias is added.
export function attention(q, k, v, { mask = null, bias = null, scale = null } = {}) {
  const factor = scale ?? 1 / Math.sqrt(q[0]?.length || 1);
  const scores = q.map((a, i) => k.map((b, j) =>
    mask && !mask[i][j] ? -Infinity : dot(a, b) * factor + (bias ? bias[i][j] : 0)));
  const weights = scores.map((row) => softmax(row));
  return { scores, weights, out: matmul(weights, v) };
}

const table = (rows, columns, f) => range(rows).map((i) => range(columns).map((j) => f(i, j)));
export const causalMask = (nq, nk = nq) => table(nq, nk, (i, j) => j <= i + nk - nq);
export const slidingWindowMask = (nq, window, nk = nq) =>
  table(nq, nk, (i, j) => Math.abs(i + nk - nq - j) < window);
export const prefixMask = (nq, prefix, nk = nq) =>
  table(nq, nk, (i, j) => j < prefix || j <= i + nk - nq);
export const paddingMask = (length, nq, nk = nq) => table(nq, nk, (i, j) => j < length);
export const blockMask = (n, size) =>
  table(n, n, (i, j) => Math.floor(i / size) === Math.floor(j / size));
// Which input can reach which output after so many layers, the residual path included.
export function reach(mask, layers) {
  const n = mask.length;
  let now = table(n, n, (i, j) => i === j);
  for (let layer = 0; layer < layers; layer++) {
    const before = now;
    now = table(n, n, (i, j) => before[i][j] || mask[i].some((open, m) => open && before[m][j]));
  }
  return now;
}

export const frequency = (pair, d, base = 10000) => Math.pow(base, (-2 * pair) / d);
export const sinusoid = (position, d, base = 10000) => range(d).map((c) => {
  const angle = position * frequency(c >> 1, d, base);
  return c % 2 ? Math.cos(angle) : Math.sin(angle);
});
// The matrix that takes PE(p) to PE(p + delta) for every p: d/2 rotations.
export const shiftMatrix = (delta, d, base = 10000) => table(d, d, (r, c) => {
  if (r >> 1 !== c >> 1) return 0;
  const angle = delta * frequency(r >> 1, d, base);
  return r === c ? Math.cos(angle) : r < c ? Math.sin(angle) : -Math.sin(angle);
});
// Adjacent pairs (0, 1), (2, 3), ... turned by position * frequency.
export const rotary = (x, position, base = 10000) => x.map((value, c) => {
  const angle = position * frequency(c >> 1, x.length, base);
  return c % 2
    ? x[c - 1] * Math.sin(angle) + value * Math.cos(angle)
    : value * Math.cos(angle) - x[c + 1] * Math.sin(angle);
});
export function alibiSlopes(heads) {
  const powerOfTwo = (n) => range(n).map((i) => Math.pow(2, (-8 * (i + 1)) / n));
  const below = Math.pow(2, Math.floor(Math.log2(heads)));
  if (below === heads) return powerOfTwo(heads);
  return [...powerOfTwo(below),
    ...powerOfTwo(2 * below).filter((_, i) => i % 2 === 0).slice(0, heads - below)];
}
export const alibiBias = (slope, nq, nk = nq) =>
  table(nq, nk, (i, j) => -slope * Math.abs(i + nk - nq - j));
export function t5Bucket(relative, buckets = 32, maxDistance = 128, bidirectional = true) {
  let base = 0;
  let distance = -relative; // relative = key position - query position
  if (bidirectional) {
    buckets = Math.floor(buckets / 2);
    if (relative > 0) base = buckets;
    distance = Math.abs(relative);
  } else distance = Math.max(distance, 0);
  const exact = Math.floor(buckets / 2);
  if (distance < exact) return base + distance;
  const log = Math.log(distance / exact) / Math.log(maxDistance / exact);
  return base + Math.min(buckets - 1, exact + Math.floor(log * (buckets - exact) + 1e-9));
}

// Deterministic bell-curve numbers, the same in Python: mulberry32, then Box-Muller.
export function normals(seed, count) {
  let state = seed >>> 0;
  const uniform = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return (((t ^ (t >>> 14)) >>> 0) + 0.5) / 4294967296;
  };
  const out = new Float64Array(count + (count % 2));
  for (let i = 0; i < count; i += 2) {
    const radius = Math.sqrt(-2 * Math.log(uniform()));
    const angle = 2 * Math.PI * uniform();
    out[i] = radius * Math.cos(angle);
    out[i + 1] = radius * Math.sin(angle);
  }
  return out.subarray(0, count);
}

// ---------------------------------------------------------------- words and numbers

const SUPERSCRIPT = { "-": "⁻", 0: "⁰", 1: "¹", 2: "²", 3: "³", 4: "⁴", 5: "⁵", 6: "⁶", 7: "⁷",
  8: "⁸", 9: "⁹" };
export function fmt(x, digits = 3) {
  if (x === Infinity) return "∞";
  if (x === -Infinity) return "−∞";
  if (!Number.isFinite(x)) return "–";
  const size = Math.abs(x);
  if (size >= 1e7 || (size > 0 && size < 0.5 * 10 ** -digits)) return power(x);
  return x.toFixed(digits).replace("-", "−");
}
// For a cell of a table: so many digits and no power of ten.
export const fixed = (x, digits = 2) => (Number.isFinite(x)
  ? x.toFixed(digits).replace(/^-(?=0\.?0*$)/, "").replace("-", "−") : fmt(x));
function power(x) {
  const [mantissa, exponent] = x.toExponential(1).split("e");
  const raised = [...exponent.replace("+", "")].map((c) => SUPERSCRIPT[c]).join("");
  return `${mantissa.replace("-", "−")}×10${raised}`;
}
// As short as it can be: 2 and not 2.000; 1.414 and not 1.4142136.
export const short = (x, digits = 3) => {
  const text = fmt(x, digits);
  return text.includes("×") || !text.includes(".") ? text : text.replace(/\.?0+$/, "");
};
// The sign keeps to its number.
export const percent = (x) => (x > 0 && x < 0.0005 ? "less than 0.1\u00a0%"
  : x < 1 && x > 0.9995 ? "more than 99.9\u00a0%" : `${short(100 * x, 1)}\u00a0%`);
export const count = (n, one, many = `${one}s`) => `${n} ${n === 1 ? one : many}`;
export const list = (words) => (words.length < 2 ? words.join("")
  : `${words.slice(0, -1).join(", ")} and ${words[words.length - 1]}`);
// 4.19 M, 263 k: three figures and a letter.
export const brief = (n) => {
  const [size, letter] = [[1e15, "P"], [1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]]
    .find(([least]) => n >= least) ?? [1, ""];
  const x = n / size;
  return `${x >= 100 || size === 1 ? Math.round(x) : x.toPrecision(3)}${letter && `\u202f${letter}`}`;
};
// Commas between thousands, exact for integers.
export const grouped = (n) => Math.round(n).toString().replace(/\B(?=(\d{3})+$)/g, ",");

// ---------------------------------------------------------------- elements

const uid = () => `x${Math.random().toString(36).slice(2, 9)}`;
function dress(node, props, children) {
  for (const [key, value] of Object.entries(props)) {
    if (key === "on") for (const [type, f] of Object.entries(value)) node.addEventListener(type, f);
    else if (key === "text") node.textContent = value;
    else if (value === true) node.setAttribute(key, "");
    else if (value !== false && value != null) node.setAttribute(key, value);
  }
  node.append(...children);
  // JupyterLab would otherwise take the arrow keys from whatever has the focus.
  if (props.type || "tabindex" in props) node.setAttribute("data-lm-suppress-shortcuts", "true");
  return node;
}
export const make = (tag, props = {}, ...children) =>
  dress(document.createElement(tag), props, children);
export const svg = (tag, props = {}, ...children) =>
  dress(document.createElementNS("http://www.w3.org/2000/svg", tag), props, children);
// Writes only what changed: the browser lays out nothing for nothing.
export const write = (node, text) => { if (node.textContent !== text) node.textContent = text; };
const attribute = (node, name, value) => {
  if (node.getAttribute(name) !== String(value)) node.setAttribute(name, value);
};

// A part of an explorer in a box that is told its height: what moves inside is laid out without the
// page around it, which may hold ten thousand elements. (Browsers do not do so around a select.)
function boxed(node, cleanups) {
  const box = make("div", { class: "apart" }, node);
  const watcher = new ResizeObserver(([entry]) => {
    box.style.containIntrinsicBlockSize = `${entry.borderBoxSize[0].blockSize}px`;
    box.classList.add("told");
  });
  watcher.observe(node);
  const part = make("div", { class: "part" }, box);
  const hider = new MutationObserver(() => { part.hidden = node.hidden; });
  hider.observe(node, { attributeFilter: ["hidden"] });
  cleanups.push(() => watcher.disconnect(), () => hider.disconnect());
  part.hidden = node.hidden;
  return part;
}

// The frame of an explorer: its box, its sentence, its state. `start(draw, names)` draws now and
// on each change of one of the named traits, and returns the clean-up.
export function explorer({ model, el, title, name }) {
  const status = make("p", { class: "say", role: "status", "aria-live": "polite" });
  const body = make("div", { class: "inside" });
  const root = make("div", { class: `explorer ex-${name}`, role: "group", "aria-label": title },
    body, status);
  const cleanups = [];
  let batching = false;
  let timer = 0;
  let said = "";
  let repaint = () => {};
  el.append(root);
  cleanups.push(onTheme(() => {
    for (const grid of root.querySelectorAll(".heat")) grid.dispatchEvent(new Event("theme"));
  }));
  return {
    root, body,
    get: (key) => model.get(key),
    add: (...nodes) => body.append(...nodes.map((node) =>
      (node.querySelector("select") ? node : boxed(node, cleanups)))),
    onCleanup: (f) => cleanups.push(f),
    set(state) {
      batching = true;
      for (const [key, value] of Object.entries(state)) model.set(key, value);
      batching = false;
      repaint();
      model.save_changes();
    },
    // Said in words, once the hand rests.
    say(text) {
      clearTimeout(timer);
      if (text === said) return;
      const tell = () => status.replaceChildren(...maths((said = text)).childNodes);
      if (!said) tell();
      else timer = setTimeout(tell, 200);
    },
    start(draw, names) {
      repaint = draw;
      const changed = () => { if (!batching) draw(); };
      for (const key of names) model.on(`change:${key}`, changed);
      draw();
      return () => {
        clearTimeout(timer);
        for (const key of names) model.off(`change:${key}`, changed);
        for (const f of cleanups) f();
        root.remove();
      };
    },
  };
}

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
export function presets({ ex, items, keys, label = "Start from" }) {
  const same = (a, b) => JSON.stringify(a) === JSON.stringify(b);
  const opened = Object.fromEntries(keys.map((key) => [key, ex.get(key)]));
  const buttons = items.map(([text, state]) =>
    make("button", { type: "button", on: { click: () => ex.set(state) } }, maths(text)));
  const reset = make("button", { type: "button", class: "reset", text: "Reset",
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
// Words with subscripts: "T = √d_k" -> T = √d<sub>k</sub>.
// A word such as new_york stays as it is.
export const maths = (text) => make("span", {},
  ...text.split(/(\b[A-Za-z])_(model|ff|\w)\b/).map((part, i) =>
    (i % 3 === 2 ? make("sub", { text: part }) : part)));

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

// ---------------------------------------------------------------- bars, heatmap, chart

// A bar whose length is its background's: it is painted anew, and nothing is laid out.
export function bar(colour) {
  const fill = make("i", { style: `--c:var(--c${colour % 8})` });
  let last = -1;
  return { node: make("span", { class: "bar" }, fill), set(x) {
    const value = Number.isFinite(x) ? clamp(x, 0, 1) : 0;
    if (value !== last) fill.style.setProperty("--x", `${100 * (last = value)}%`);
  } };
}

// A table of numbers as colours. Each cell is an element: arrows move, the value is its text.
// onCell(i, j, event) runs on click, Enter or Space; onDrag paints along a drag. A value below
// `least` is shown by its colour and a dot; focus and hover tell the number.
export function heatmap({ label, rows, columns, corner = "query", signed = false, digits = 2,
  least = 0, onCell = null, onDrag = null }) {
  const cells = [];
  let at = [0, 0];
  let dragging = false;
  const where = (node) => {
    const cell = node?.closest?.(".tile");
    return cell && grid.contains(cell) ? [Number(cell.dataset.i), Number(cell.dataset.j)] : null;
  };
  const go = (i, j) => {
    cells[at[0]][at[1]].node.tabIndex = -1;
    at = [clamp(i, 0, rows.length - 1), clamp(j, 0, columns.length - 1)];
    cells[at[0]][at[1]].node.tabIndex = 0;
    cells[at[0]][at[1]].node.focus();
  };
  function name(cell) { // the focused cell is read out with its number, also where a dot stands
    cell.named = least > 0;
    if (cell.named) attribute(cell.node, "aria-label", cell.said);
  }
  const MOVES = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
  const grid = make("div", { class: "heat", role: "grid",
    "aria-label": label, style: `--n:${columns.length};--rows:${rows.length}`, on: {
      keydown: (event) => {
        const place = where(event.target);
        if (!place) return;
        const move = MOVES[event.key];
        if (move) go(place[0] + move[0], place[1] + move[1]);
        else if (event.key === "Home") go(place[0], 0);
        else if (event.key === "End") go(place[0], columns.length - 1);
        else if ((event.key === "Enter" || event.key === " ") && onCell) onCell(...place, event);
        else return;
        event.preventDefault();
      },
      focusin: (event) => {
        const place = where(event.target);
        if (place) {
          cells[at[0]][at[1]].node.tabIndex = -1;
          at = place;
          event.target.tabIndex = 0;
          name(cells[at[0]][at[1]]);
          point(place);
        }
      },
      focusout: (event) => {
        const place = where(event.target);
        if (place) {
          cells[place[0]][place[1]].named = false;
          event.target.removeAttribute("aria-label");
        }
      },
      pointerover: (event) => point(where(event.target)),
      pointerleave: () => point(null),
      click: (event) => {
        const place = where(event.target);
        if (place && onCell && !(onDrag && event.detail)) onCell(...place, event);
      },
      pointerdown: (event) => {
        const place = where(event.target);
        if (!place || !onDrag || event.button) return;
        event.target.releasePointerCapture?.(event.pointerId);
        dragging = true;
        cells[place[0]][place[1]].node.focus();
        onDrag(...place, true);
        event.preventDefault();
      },
      pointermove: (event) => {
        if (!dragging) return;
        if (!event.buttons) { dragging = false; return; }
        const place = where(document.elementFromPoint(event.clientX, event.clientY));
        if (place) onDrag(...place, false);
      },
      pointerup: () => { dragging = false; },
    } });
  const readout = make("p", { class: "readline", "aria-hidden": "true" });
  let pointed = null;
  function point(place) {
    pointed = place;
    write(readout, place ? `${rows[place[0]]} → ${columns[place[1]]}: `
      + `${cells[place[0]][place[1]].said}` : "\u00a0");
  }
  // The colours lie under the cells, one pixel of a stretched picture each.
  const canvas = make("canvas", { width: columns.length, height: rows.length, "aria-hidden": "true" });
  const pixels = new ImageData(columns.length, rows.length);
  const dots = new Uint32Array(pixels.data.buffer);
  let [colours, dark] = [null, 0.5];
  function paint() { // nothing to paint with until the grid is on a page, which gives it its colours
    if (!colours && grid.isConnected) {
      const style = getComputedStyle(grid);
      colours = ramp((signed ? ["--neg", "--zero", "--pos"] : ["--zero", "--pos"])
        .map((key) => style.getPropertyValue(key).trim()));
      dark = Number(style.getPropertyValue("--thr"));
    }
    if (!colours) return;
    cells.forEach((row, i) => row.forEach((cell, j) => {
      dots[i * row.length + j] = colours[cell.shade];
      const x = cell.shade / 255;
      const look = `tile ${cell.kind}${(signed ? Math.abs(2 * x - 1) : x) > dark ? " deep" : ""}`;
      if (look !== cell.look) cell.node.className = cell.look = look;
    }));
    canvas.getContext("2d").putImageData(pixels, 0, 0);
  }
  grid.addEventListener("theme", () => { colours = null; paint(); });
  new ResizeObserver(() => { if (!colours) paint(); }).observe(grid);
  grid.append(canvas, make("div", { role: "row", class: "cells" },
    make("span", { class: "corner", role: "columnheader" },
      make("span", { class: "unseen", text: corner })),
    ...columns.map((text) => make("span", { class: "top", role: "columnheader" },
      make("b", { text, title: text })))));
  rows.forEach((text, i) => {
    const line = make("div", { role: "row", class: "cells" },
      make("span", { class: "side", role: "rowheader", text, title: text }));
    cells.push(columns.map((_, j) => {
      const words = document.createTextNode("");
      const node = make("span", { class: "tile", role: "gridcell", tabindex: i || j ? -1 : 0,
        "data-i": i, "data-j": j }, words);
      line.append(node);
      return { node, words, shade: 0, shown: "", said: "", kind: "", look: "", named: false };
    }));
    grid.append(line);
  });
  write(readout, "\u00a0");
  const node = make("div", { class: `heatbox${columns.length > 7 ? " dense" : ""}` }, grid, readout);
  return {
    node, grid,
    // value(i, j) in [0, 1] (or [-1, 1] when signed); text(i, j) and kind(i, j) are optional.
    set(value, text = (i, j) => fixed(value(i, j), digits), kind = () => "") {
      for (let i = 0; i < rows.length; i++) {
        for (let j = 0; j < columns.length; j++) {
          const cell = cells[i][j];
          const x = value(i, j);
          cell.shade = Math.round(255 * clamp(signed ? (x + 1) / 2 : x, 0, 1));
          cell.said = text(i, j);
          const shown = least && x < least ? "·" : cell.said;
          if (shown !== cell.shown) cell.words.data = cell.shown = shown;
          if (cell.named) name(cell);
          cell.kind = kind(i, j);
        }
      }
      paint();
      if (pointed) point(pointed);
    },
    mark(i, j) {
      for (const row of cells) for (const cell of row) {
        const on = cell === cells[i]?.[j];
        if (on !== (cell.node.getAttribute("aria-selected") === "true")) {
          cell.node.setAttribute("aria-selected", on);
        }
      }
    },
  };
}

// Lines over an axis. The drawing stretches; strokes and words do not.
// xTicks, yTicks: [[place in 0..1, words], ...]
export function chart({ label, xTicks = [], yTicks = [], xLabel = "", yLabel = "", height = 160 }) {
  // Ten thousand units each way: whole numbers are written faster than fractions.
  const drawing = svg("svg", { viewBox: "0 0 10000 10000", preserveAspectRatio: "none",
    "aria-hidden": "true" }, svg("path", { class: "ground", d: "M0 0H10000V10000H0Z" }));
  const ticks = (places, axis, side) => make("div", { class: `ticks ${axis}` },
    ...places.map(([place, text]) => make("span", { text, style: `${side}:${100 * place}%` })));
  for (const [place] of yTicks) drawing.append(svg("path", { class: "gridline",
    d: `M0 ${Math.round(1e4 * (1 - place))}H10000` }));
  const area = make("div", { class: "area", style: `height:${height}px` },
    drawing, ticks(yTicks, "y", "bottom"), ticks(xTicks, "x", "left"));
  const node = make("div", { class: "chart", role: "img", "aria-label": label },
    make("p", { class: "axis" }, maths(yLabel)), area,
    make("p", { class: "axis x" }, maths(xLabel)));
  const x = (value) => Math.round(1e4 * value);
  const y = (value) => Math.round(1e4 * (1 - clamp(value, -0.02, 1.02)));
  return {
    node, area, drawing, x, y,
    describe: (text) => attribute(node, "aria-label", text),
    line(colour, style = "") {
      const path = svg("path", { class: `curve ${style}`, style: `--c:var(--c${colour % 8})` });
      drawing.append(path);
      return { path, remove: () => path.remove(), set(points) { // points in 0..1
        let d = "";
        for (const [px, py] of points) d += `${d ? "L" : "M"}${x(px)} ${y(py)}`;
        attribute(path, "d", d);
      } };
    },
    dot(colour) {
      const path = svg("path", { class: "dot", style: `--c:var(--c${colour % 8})` });
      drawing.append(path);
      return { remove: () => path.remove(),
        set: (px, py) => attribute(path, "d", `M${x(px)} ${y(py)}h0`) };
    },
    marker() {
      const path = svg("path", { class: "marker", d: "M0 0V10000" });
      drawing.append(path);
      return { set: (px) => path.setAttribute("d", `M${x(px)} 0V10000`) };
    },
  };
}

// A square of the plane from -reach to reach, with points to drag: with a finger, a mouse, or the
// arrow keys.
export function plane({ title, reach }) {
  const spot = (x) => 100 * ((x + reach) / (2 * reach));
  const grid = range(2 * reach + 1).map((i) => spot(i - reach))
    .map((at) => `M${at} 0V100M0 ${at}H100`).join("");
  const under = svg("g");
  const drawing = svg("svg", { viewBox: "0 0 100 100", "aria-hidden": "true" },
    svg("path", { class: "gridline", d: grid }),
    svg("path", { class: "axisline", d: "M50 0V100M0 50H100" }), under);
  const points = make("div", { class: "points" });
  const area = make("div", { class: "plane" }, drawing, points);
  const node = make("div", {}, make("p", { class: "heading", text: title }), area);
  const added = [];
  const put = (element, parent = under) => {
    added.push(element);
    parent.append(element);
    return element;
  };
  const round = (x) => clamp(Math.round(x * 100) / 100, -reach, reach);
  const move = (element, [x, y]) => {
    element.style.left = `${spot(x)}%`;
    element.style.top = `${100 - spot(y)}%`;
  };
  const at = ([x, y]) => `${spot(x).toFixed(2)} ${(100 - spot(y)).toFixed(2)}`;
  return {
    node,
    clear: () => added.splice(0).forEach((element) => element.remove()),
    polygon() {
      const path = svg("path", { class: "hull" });
      drawing.insertBefore(path, under);
      return { set: (points) => attribute(path, "d", `M${points.map(at).join("L")}Z`) };
    },
    arrow(colour, kind = "") {
      const path = put(svg("path", { class: `ray ${kind}`, style: `--c:var(--c${colour % 8})` }));
      return { set(from, to, thickness) {
        attribute(path, "d", `M${at(from)}L${at(to)}`);
        path.style.strokeWidth = `${thickness.toFixed(2)}px`;
      } };
    },
    point(kind) {
      const mark = put(svg("path", { class: `spot ${kind}` }));
      const words = make("span", { class: "name" });
      const element = put(make("span", { class: "at up", "aria-hidden": "true" }, words), points);
      return { set([x, y], text) {
        const [cx, cy] = [spot(x), 100 - spot(y)];
        attribute(mark, "d", `M${[[cx - 3.5, cy], [cx, cy - 3.5], [cx + 3.5, cy], [cx, cy + 3.5]]
          .map((corner) => corner.map((c) => c.toFixed(2)).join(" ")).join("L")}Z`);
        move(element, [x, y]);
        write(words, text);
      } };
    },
    handle({ name, colour, mark = "", onMove }) {
      let here = [0, 0];
      let held = null;
      const words = make("span", { class: "name" });
      const element = put(make("button", { type: "button", class: `handle ${name}`,
        style: `--c:var(--c${colour % 8})`, on: {
          keydown: (event) => {
            const step = event.shiftKey ? 0.5 : 0.1;
            const [x, y] = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1],
              ArrowDown: [0, -1] }[event.key] ?? [];
            if (x === undefined) return;
            event.preventDefault();
            onMove([round(here[0] + x * step), round(here[1] + y * step)]);
          },
          pointerdown: (event) => {
            if (event.button) return;
            element.setPointerCapture(event.pointerId);
            held = area.getBoundingClientRect();
          },
          pointermove: (event) => {
            if (!held) return;
            onMove([round((((event.clientX - held.left) / held.width) * 2 - 1) * reach),
              round((1 - ((event.clientY - held.top) / held.height) * 2) * reach)]);
          },
          pointerup: () => { held = null; },
          pointercancel: () => { held = null; },
        } }, make("span", { text: mark }), words), points);
      return { set(p, text) {
        here = p;
        move(element, p);
        write(words, text);
        element.classList.toggle("up", p[1] > 0);
        attribute(element, "aria-label",
          `${name} ${text} at ${short(p[0], 2)}, ${short(p[1], 2)}; arrow keys move it`);
      } };
    },
  };
}

// The themes around us: the document's own switch, Jupyter's, Colab's, VS Code's, the system's.
export function onTheme(f) {
  const watcher = new MutationObserver(f);
  const options = { attributes: true, attributeFilter: ["data-theme", "theme", "class",
    "data-jp-theme-light", "data-vscode-theme-kind"] };
  watcher.observe(document.documentElement, options);
  if (document.body) watcher.observe(document.body, options);
  const queries = ["(prefers-color-scheme: dark)", "print"].map((query) => matchMedia(query));
  for (const query of queries) query.addEventListener("change", f);
  return () => {
    watcher.disconnect();
    for (const query of queries) query.removeEventListener("change", f);
  };
}

// 256 colours through two stops or three, mixed in OKLab as the style sheet's color-mix does.
export function ramp(stops) {
  const labs = stops.map((hex) => {
    const full = hex.length === 4 ? [...hex.slice(1)].map((c) => c + c).join("") : hex.slice(1);
    const [r, g, b] = [0, 2, 4].map((i) => parseInt(full.slice(i, i + 2), 16) / 255)
      .map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
    const [l, m, s] = [[0.4122214708, 0.5363325363, 0.0514459929],
      [0.2119034982, 0.6806995451, 0.1073969566], [0.0883024619, 0.2817188376, 0.6299787005]]
      .map((row) => Math.cbrt(dot(row, [r, g, b])));
    return [0.2104542553 * l + 0.793617785 * m - 0.0040720468 * s,
      1.9779984951 * l - 2.428592205 * m + 0.4505937099 * s,
      0.0259040371 * l + 0.7827717662 * m - 0.808675766 * s];
  });
  return Uint32Array.from({ length: 256 }, (_, i) => {
    const t = (i / 255) * (labs.length - 1);
    const at = Math.min(Math.floor(t), labs.length - 2);
    const [from, to, x] = [labs[at], labs[at + 1], t - at];
    const [L, a, b] = from.map((value, c) => value + (to[c] - value) * x);
    const [l, m, s] = [L + 0.3963377774 * a + 0.2158037573 * b,
      L - 0.1055613458 * a - 0.0638541728 * b, L - 0.0894841775 * a - 1.291485548 * b]
      .map((value) => value ** 3);
    const bytes = [[4.0767416621, -3.3077115913, 0.2309699292],
      [-1.2684380046, 2.6097574011, -0.3413193965], [-0.0041960863, -0.7034186147, 1.707614701]]
      .map((row) => clamp(dot(row, [l, m, s]), 0, 1))
      .map((c) => (c <= 0.0031308 ? 12.92 * c : 1.055 * c ** (1 / 2.4) - 0.055))
      .map((c) => Math.round(255 * c));
    return (255 << 24) | (bytes[2] << 16) | (bytes[1] << 8) | bytes[0];
  });
}

// A large table of signed numbers, one pixel a cell, stretched. Arrows move a cursor in it (a grid
// of which only the cell at hand exists), Enter, Space or a tap picks a cell.
export function raster({ label, across, down, describe, onPick }) {
  const canvas = make("canvas", { "aria-hidden": "true" });
  const area = make("div", { class: "raster", role: "grid", "aria-label": label });
  const line = make("div", { role: "row" });
  const bands = make("div", { class: "bands" });
  const readout = make("p", { class: "readline", "aria-hidden": "true", text: "\u00a0" });
  const node = make("div", { class: "rasterbox" }, make("p", { class: "down", text: down }), area,
    make("p", { text: across }), readout);
  area.append(canvas, bands, line);
  let [rows, columns] = [1, 1];
  let at = [0, 0];
  let [pixels, values, colours] = [null, null, null];
  const paint = () => {
    if (!pixels || !area.isConnected) return;
    if (!colours) {
      const style = getComputedStyle(area);
      colours = ramp(["--neg", "--zero", "--pos"].map((key) => style.getPropertyValue(key).trim()));
    }
    const words = new Uint32Array(pixels.data.buffer);
    for (let i = 0; i < words.length; i++) words[i] = colours[Math.round((values[i] + 1) * 127.5)];
    canvas.getContext("2d").putImageData(pixels, 0, 0);
  };
  const box = (element, i, j, height = 1, width = 1) => {
    element.style.left = `${(100 * j) / columns}%`;
    element.style.top = `${(100 * i) / rows}%`;
    element.style.width = `${(100 * width) / columns}%`;
    element.style.height = `${(100 * height) / rows}%`;
  };
  // A fresh cell each time, so that a screen reader reads it when focus comes.
  const cursor = (focus) => {
    at = [clamp(at[0], 0, rows - 1), clamp(at[1], 0, columns - 1)];
    const cell = make("span", { class: "cursor", role: "gridcell", tabindex: 0,
      "aria-rowindex": at[0] + 1, "aria-colindex": at[1] + 1, "aria-label": describe(...at) });
    box(cell, ...at);
    line.replaceChildren(cell);
    if (focus) {
      cell.focus({ preventScroll: true });
      write(readout, describe(...at));
    }
  };
  const under = (event) => {
    const bounds = canvas.getBoundingClientRect();
    return [clamp(Math.floor(((event.clientY - bounds.top) / bounds.height) * rows), 0, rows - 1),
      clamp(Math.floor(((event.clientX - bounds.left) / bounds.width) * columns), 0, columns - 1)];
  };
  area.addEventListener("keydown", (event) => {
    const [i, j] = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1],
      Home: [0, -columns], End: [0, columns], PageUp: [-10, 0], PageDown: [10, 0] }[event.key] ?? [];
    if (i !== undefined) {
      at = [at[0] + i, at[1] + j];
      cursor(true);
    } else if (event.key === "Enter" || event.key === " ") onPick(...at);
    else return;
    event.preventDefault();
  });
  area.addEventListener("focusin", () => write(readout, describe(...at)));
  area.addEventListener("pointermove", (event) => write(readout, describe(...under(event))));
  area.addEventListener("pointerleave", () => write(readout, "\u00a0"));
  area.addEventListener("click", (event) => {
    at = under(event);
    cursor(false);
    onPick(...at);
  });
  return {
    node, area,
    repaint: () => { colours = null; paint(); },
    set(table, n, d) { // table: n * d numbers in -1..1, row by row
      values = table;
      const resized = n !== rows || d !== columns || !pixels;
      if (resized) {
        [rows, columns] = [n, d];
        canvas.width = d;
        canvas.height = n;
        pixels = new ImageData(d, n);
        attribute(area, "aria-rowcount", n);
        attribute(area, "aria-colcount", d);
      }
      if (resized || !line.firstChild) cursor(line.contains(document.activeElement));
      else attribute(line.firstChild, "aria-label", describe(...at));
      paint();
    },
    mark(kind) {
      const element = make("i", { class: `band ${kind}` });
      bands.append(element);
      return { element, remove: () => element.remove(),
        set(...place) { element.hidden = place[0] < 0 || place[0] >= rows; box(element, ...place); } };
    },
  };
}

// ---------------------------------------------------------------- small trained models

// base64 of little-endian float16 -> numbers (finite ones).
export function halves(text) {
  const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  return Float64Array.from({ length: bytes.length / 2 }, (_, i) => {
    const bits = bytes[2 * i] | (bytes[2 * i + 1] << 8);
    const [power, rest] = [(bits >> 10) & 31, bits & 1023];
    const size = power ? (1 + rest / 1024) * 2 ** (power - 15) : rest * 2 ** -24;
    return bits >> 15 ? -size : size;
  });
}

// x (n, d_in) rows, weight flat (d_out * d_in), offset (d_out) or null -> (n, d_out) rows.
export function linear(x, weight, offset = null) {
  const [wide, high] = [x[0].length, weight.length / x[0].length];
  return x.map((row) => {
    const out = new Float64Array(high);
    for (let o = 0, at = 0; o < high; o++) {
      let sum = offset ? offset[o] : 0;
      for (let i = 0; i < wide; i++, at++) sum += row[i] * weight[at];
      out[o] = sum;
    }
    return out;
  });
}

export function layerNorm(row, gain, offset, eps = 1e-5) {
  let [mean, square] = [0, 0];
  for (const x of row) mean += x / row.length;
  for (const x of row) square += (x - mean) ** 2 / row.length;
  const factor = 1 / Math.sqrt(square + eps);
  const out = new Float64Array(row.length);
  for (let c = 0; c < out.length; c++) out[c] = (row[c] - mean) * factor * gain[c] + offset[c];
  return out;
}

function add(a, b) { // into b
  a.forEach((row, i) => { for (let c = 0; c < row.length; c++) b[i][c] += row[c]; });
  return b;
}

// A pre-norm block of named flat arrays: x (n, d) -> { x, weights (h, n, n), joined (n, d) }, where
// joined is what the heads say, side by side. on: 0 or 1 per head; given: { at, heads, joined }, what
// some heads are to say in row `at`.
export function block(x, w, heads, { causal = false, on = null, given = null } = {}) {
  const d = x[0].length / heads;
  let h = x.map((row) => layerNorm(row, w.normAttention, w.normAttentionOffset));
  const [q, k, v] = ["q", "k", "v"].map((name) => linear(h, w[name], w[`${name}Offset`]));
  const joined = x.map((row) => new Float64Array(row.length));
  const weights = range(heads).map((r) => q.map((query, i) => {
    const scores = k.map((key, j) => {
      if (causal && j > i) return -Infinity;
      let sum = 0;
      for (let c = r * d; c < (r + 1) * d; c++) sum += query[c] * key[c];
      return sum / Math.sqrt(d);
    });
    const row = softmax(scores);
    if (!on || on[r]) {
      for (let j = 0; j < v.length; j++) {
        for (let c = r * d; c < (r + 1) * d; c++) joined[i][c] += row[j] * v[j][c];
      }
    }
    return row;
  }));
  for (const r of given ? given.heads : []) {
    for (let c = r * d; c < (r + 1) * d; c++) joined[given.at][c] = given.joined[given.at][c];
  }
  x = add(x, linear(joined, w.o, w.oOffset));
  h = x.map((row) => layerNorm(row, w.normForward, w.normForwardOffset));
  const hidden = linear(h, w.widen, w.widenOffset).map((row) => row.map((z) => Math.max(0, z)));
  return { x: add(x, linear(hidden, w.narrow, w.narrowOffset)), weights, joined };
}

// The package's Encoder or LanguageModel (pre-norm, sinusoids, relu) from the numbers of its
// state_dict in order. Returns run(ids, on, given) -> { logits (n, vocab), weights (layers, h, n, n),
// joined (layers, n, d) }; on and given are those of `block`, one a layer.
export function transformer(numbers, { vocab, d, heads, layers, tied, causal }) {
  let at = 0;
  const take = (size) => numbers.subarray(at, (at += size));
  const tokens = take(vocab * d);
  const output = tied ? tokens : take(vocab * d);
  const blocks = range(layers).map(() => {
    const w = {};
    for (const name of ["q", "k", "v", "o"]) [w[name], w[`${name}Offset`]] = [take(d * d), take(d)];
    [w.widen, w.widenOffset] = [take(4 * d * d), take(4 * d)];
    [w.narrow, w.narrowOffset] = [take(4 * d * d), take(d)];
    for (const name of ["normAttention", "normForward"]) {
      [w[name], w[`${name}Offset`]] = [take(d), take(d)];
    }
    return w;
  });
  const [gain, offset] = [take(d), take(d)];
  if (at !== numbers.length) throw new Error(`the model has ${at} weights; got ${numbers.length}`);
  return (ids, on = null, given = null) => {
    let x = ids.map((id, i) => sinusoid(i, d).map((place, c) =>
      tokens[id * d + c] * Math.sqrt(d) + place));
    const [weights, joined] = [[], []];
    blocks.forEach((w, layer) => {
      const done = block(x, w, heads, { causal, on: on?.[layer], given: given?.[layer] });
      x = done.x;
      weights.push(done.weights);
      joined.push(done.joined);
    });
    return { logits: linear(x.map((row) => layerNorm(row, gain, offset)), output), weights, joined };
  };
}

// The distribution to draw from: softmax at a temperature, cut to the top k and to the fewest that
// reach p, rescaled.
export function nextProbabilities(logits, temperature = 1, topK = Infinity, topP = 1) {
  const p = softmax(Array.from(logits), temperature);
  const order = range(p.length).sort((a, b) => p[b] - p[a]);
  let before = 0;
  const kept = p.map(() => 0);
  order.forEach((i, rank) => {
    if (rank < topK && (before < topP || topP === 1)) kept[i] = p[i];
    before += p[i];
  });
  const sum = kept.reduce((a, b) => a + b, 0);
  return kept.map((x) => x / sum);
}

// The number `index` (from 0) of the uniform stream of a seed: mulberry32, the same in Python.
export function uniform(seed, index) {
  const state = (seed + Math.imul(0x6d2b79f5, index + 1)) >>> 0;
  let t = Math.imul(state ^ (state >>> 15), state | 1);
  t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
  return (((t ^ (t >>> 14)) >>> 0) + 0.5) / 4294967296;
}
// Which token a number u in (0, 1) draws.
export function drawToken(probabilities, u) {
  let sum = 0;
  let last = 0;
  for (let i = 0; i < probabilities.length; i++) {
    if (probabilities[i] > 0) last = i;
    sum += probabilities[i];
    if (sum > u) return i;
  }
  return last;
}
