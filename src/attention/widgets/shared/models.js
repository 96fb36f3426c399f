// Small trained models: their numbers, their blocks, and how they draw a token.
import { range, sinusoid, softmax } from "./mathematics.js";

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

// The next block's flat arrays, in the order of an EncoderBlock's state_dict; take(size) hands them out.
export function blockOf(take, d) {
  const w = {};
  for (const name of ["q", "k", "v", "o"]) [w[name], w[`${name}Offset`]] = [take(d * d), take(d)];
  [w.widen, w.widenOffset] = [take(4 * d * d), take(4 * d)];
  [w.narrow, w.narrowOffset] = [take(4 * d * d), take(d)];
  for (const name of ["normAttention", "normForward"]) {
    [w[name], w[`${name}Offset`]] = [take(d), take(d)];
  }
  return w;
}

// The package's Encoder or LanguageModel (pre-norm, sinusoids, relu) from the numbers of its
// state_dict in order. Returns run(ids, on, given) -> { logits (n, vocab), weights (layers, h, n, n),
// joined (layers, n, d) }; on and given are those of `block`, one a layer.
export function transformer(numbers, { vocab, d, heads, layers, tied, causal }) {
  let at = 0;
  const take = (size) => numbers.subarray(at, (at += size));
  const tokens = take(vocab * d);
  const output = tied ? tokens : take(vocab * d);
  const blocks = range(layers).map(() => blockOf(take, d));
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
