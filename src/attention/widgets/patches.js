// Patch attention: a small vision transformer reads a digit; where does each patch look?
import {
  bar, block, blockOf, button, choice, explorer, fixed, halves, layerNorm, linear, make, onTheme,
  percent, presets, ramp, range, softmax, write,
} from "./shared.js";
import { weights } from "./patches_weights.js";

// Ink from 0 to 16, one sign a pixel (g is 16), and the digit: held-out images of the chapter.
const IMAGES = [
  ["008g800000g6f10004a0c2000007g3000005dg3000000b6000c99g20008gf700", 3],
  ["002fd200008gfc00009e1f5000ed0b9003gb0c9002g32g6001dbfe00004gf500", 0],
  ["00007g600004gg4002bfgg700agdag4001304g5000007g7000009g8000009g60", 1],
  ["007eb10006f67a000b702c0005401c00000039000000b3000009d230007gggg6", 2],
  ["0002e500001bb000007e100005g346200egegga009c78g400000dc000003f600", 4],
  ["01cccf6001e5541000c0000008ggf80001445c7000000b400272ac0002gf8100", 5],
  ["001d400000cd100001g2000005g8420005gegf3003d1099000bc4bb0002dgd10", 6],
  ["002dg80000d77d0001707d20001aggd0006dg2000015b000000c4000002e0000", 7],
  ["008fe70000cgeg00003fee10000bg100005ee40000c6880001g29700009gb100", 8],
  ["005cdc0007d58f0004e4dg30006c8940000008800000068000132d60006gg810", 9],
  ["001bc95000e61fa002c4c7a001dc3480000004800034076000c73b00003df300", 9],
  ["005bc50000c62300009gg40000cgg40000cgg40000cgg40000cgg800006cb700", 1],
];
const [SIDE, D, HEADS, LAYERS, N] = [4, 32, 2, 2, 17]; // token 0 is the class token
const KEYS = ["image", "erased", "token", "layer", "head"];
const first = { image: 0, erased: [], token: 0, layer: 1, head: 0 };
const PRESETS = [
  ["a 3, read from the class token", first],
  ["a patch looks", { ...first, token: 6, layer: 0, head: 1 }],
  ["nothing to fetch", { ...first, token: 6, layer: 0, head: 0 }],
  ["a 9 misread", { ...first, image: 10 }],
];

const ink = (image) => [...IMAGES[image][0]].map((sign) => parseInt(sign, 17) / 16);
const nameOf = (token) => (token ? `row ${(token - 1) >> 2}, column ${(token - 1) % SIDE}`
  : "the class token");
// The four pixels of patch 0 to 15, row by row.
const patch = (pixels, p) => [0, 1, 8, 9].map((step) =>
  pixels[16 * Math.floor(p / SIDE) + 2 * (p % SIDE) + step]);

let model = null;
function unpacked() {
  const numbers = halves(weights.model);
  let at = 0;
  const take = (size) => numbers.subarray(at, (at += size));
  const w = { summary: take(D), positions: take(N * D), look: take(4 * D), lookOffset: take(D),
    blocks: range(LAYERS).map(() => blockOf(take, D)), gain: take(D), offset: take(D),
    name: take(10 * D), nameOffset: take(10) };
  if (at !== numbers.length) throw new Error(`the model has ${at} weights; got ${numbers.length}`);
  return w;
}
// -> { logits (10), probabilities (10), weights (layers, heads, 17, 17) }
function read(image, erased) {
  model ??= unpacked();
  const pixels = ink(image);
  const looks = linear(range(SIDE * SIDE).map((p) =>
    (erased.includes(p + 1) ? [0, 0, 0, 0] : patch(pixels, p))), model.look, model.lookOffset);
  let x = [model.summary, ...looks].map((row, i) =>
    Float64Array.from(row, (value, c) => value + model.positions[i * D + c]));
  const all = model.blocks.map((w) => {
    const done = block(x, w, HEADS);
    x = done.x;
    return done.weights;
  });
  const last = layerNorm(x[0], model.gain, model.offset);
  const [logits] = linear([last], model.name, model.nameOffset).map((row) => Array.from(row));
  return { logits, probabilities: softmax(logits), weights: all };
}

function render({ model: state, el }) {
  const ex = explorer({ model: state, el, title: "Patch attention", name: "patches" });
  const start = presets({ ex, items: PRESETS, keys: KEYS });
  const image = choice({ label: "image", options: IMAGES.map(([, digit], i) => [String(i),
    `image ${i}: a ${digit}`]), onInput: (i) => ex.set({ image: Number(i), erased: [] }) });
  const where = choice({ label: "layer and head", options: range(LAYERS).flatMap((l) =>
    range(HEADS).map((h) => [`${l}${h}`, `L${l}H${h}`])),
  onInput: ([l, h]) => ex.set({ layer: Number(l), head: Number(h) }) });

  // Two pictures of 4 by 4 patches: the ink, to choose from, and the weights.
  const picture = (label, act) => {
    const canvas = make("canvas", { width: 8, height: 8, "aria-hidden": "true" });
    const cells = range(SIDE * SIDE).map((p) => make(act ? "button" : "span", {
      class: "patch", ...(act ? { type: "button", on: { click: () => act(p + 1) } } : {}) }));
    return { canvas, cells, node: make("div", { class: "patches", role: "group",
      "aria-label": label }, canvas, ...cells) };
  };
  const seen = picture("the image, patch by patch", (token) => ex.set({ token }));
  const summary = button("class token", () => ex.set({ token: 0 }));
  const erase = button("erase this patch", () => {
    const [token, erased] = [ex.get("token"), ex.get("erased")];
    ex.set({ erased: erased.includes(token) ? erased.filter((t) => t !== token)
      : [...erased, token].sort((a, b) => a - b) });
  });
  const looked = picture("the weights, patch by patch", null);
  const toClass = make("p", { class: "readline" });
  const lookTitle = make("p", { class: "heading" });
  const rows = range(10).map((digit) => {
    const weight = bar(0);
    const number = make("span", { class: "weight" });
    return { weight, number, node: make("div", { class: "share" },
      make("span", { class: "name-of", text: String(digit) }), weight.node, number) };
  });
  const answer = make("div", { class: "shares" }, make("p", { class: "heading",
    text: "which digit it is, as the model sees it" }), ...rows.map((row) => row.node));
  answer.append(ex.root.querySelector(".say"));
  const size = Math.floor(weights.model.replace(/=+$/, "").length * 3 / 8);
  ex.add(start.node, image.node, where.node,
    make("div", { class: "two" },
      make("div", {}, make("p", { class: "heading", text: "choose a patch" }), seen.node,
        make("div", { class: "steps" }, summary, erase)),
      make("div", {}, lookTitle, looked.node, toClass)),
    answer, make("p", { class: "readline",
      text: `${size.toLocaleString("en")} parameters, trained before, compute in this page, on images that `
      + "the training never showed. The class token is no part of the image; the digit is read "
      + "from it after layer 1." }));

  let colours = null;
  function paint(canvas, value) { // value(row, column) of 8 by 8 pixels, from 0 to 1
    if (!colours) {
      const style = getComputedStyle(ex.root);
      colours = ["--fg", "--pos"].map((to) =>
        ramp(["--zero", to].map((key) => style.getPropertyValue(key).trim())));
    }
    const pixels = new ImageData(8, 8);
    const words = new Uint32Array(pixels.data.buffer);
    const shades = colours[canvas === seen.canvas ? 0 : 1];
    for (let at = 0; at < 64; at++) words[at] = shades[Math.round(255 * value(at >> 3, at % 8))];
    canvas.getContext("2d").putImageData(pixels, 0, 0);
  }

  function draw() {
    const [which, erased, token, layer, head] = KEYS.map(ex.get);
    const { probabilities, weights: all } = read(which, erased);
    const row = all[layer][head][token];
    const pixels = ink(which);
    image.set(String(which));
    where.set(`${layer}${head}`);
    const of = (r, c) => SIDE * (r >> 1) + (c >> 1) + 1;
    paint(seen.canvas, (r, c) => (erased.includes(of(r, c)) ? 0 : pixels[8 * r + c]));
    paint(looked.canvas, (r, c) => row[of(r, c)]);
    seen.cells.forEach((cell, p) => {
      cell.setAttribute("aria-pressed", String(token === p + 1));
      const gone = erased.includes(p + 1);
      cell.classList.toggle("erased", gone);
      cell.setAttribute("aria-label", `patch ${nameOf(p + 1)}${gone ? ", erased" : ""}`);
      write(looked.cells[p], fixed(row[p + 1]));
      looked.cells[p].classList.toggle("deep", row[p + 1] > deepFrom());
    });
    summary.setAttribute("aria-pressed", String(token === 0));
    erase.disabled = token === 0;
    write(erase, erased.includes(token) ? "give its ink back" : "erase this patch");
    write(lookTitle, `where ${token ? "this patch" : "the class token"} looks in L${layer}H${head}`);
    write(toClass, `and ${fixed(row[0])} to the class token`);
    rows.forEach((digit, i) => {
      digit.weight.set(probabilities[i]);
      write(digit.number, percent(probabilities[i]).replace("less than", "<").replace("more than", ">"));
    });
    start.update();
    const top = probabilities.indexOf(Math.max(...probabilities));
    const best = row.indexOf(Math.max(...row));
    const right = IMAGES[which][1];
    const tokenName = token ? `The patch in ${nameOf(token)}` : "The class token";
    ex.say(`The model sees a ${top} (${percent(probabilities[top])}), which is ${
      top === right ? "right" : `wrong: it is a ${right}`}. ${
      erased.length ? `${erased.length} of 16 patches erased. ` : ""}${tokenName} looks most at ${
      best === token && token ? "itself" : nameOf(best)} in L${layer}H${head}, with ${fixed(row[best])}.`);
  }
  const deepFrom = () => Number(getComputedStyle(ex.root).getPropertyValue("--thr"));
  ex.onCleanup(onTheme(() => { colours = null; draw(); }));
  return ex.start(draw, KEYS);
}

export default { render };
