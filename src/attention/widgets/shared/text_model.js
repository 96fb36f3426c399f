// The language model of the tales: its numbers, a forward pass that is quick, and all it computes.
import { halves, uniform } from "./models.js";
import { sinusoid, softmax } from "./mathematics.js";

// The matrices and vectors of a LanguageModel in the order of its state_dict: [name, rows, columns],
// of a vector [name, length, 0].
function tensors({ vocab_size: vocab, d_model: d, num_layers: layers }) {
  const square = ["q", "k", "v", "o"].map((name) => [name, d, d]);
  const block = [...square, ["widen", 4 * d, d], ["narrow", d, 4 * d],
    ["normAttention", d, 0], ["normForward", d, 0]];
  const all = [["tokens", vocab, d]];
  for (let layer = 0; layer < layers; layer++) {
    for (const [name, rows, columns] of block) {
      all.push([`${layer}.${name}`, rows, columns], [`${layer}.${name}Offset`, rows, 0]);
    }
  }
  return [...all, ["gain", d, 0], ["offset", d, 0]];
}

// { rows, halves } as attention._packed.pack writes them -> { name: Float32Array }, dequantised.
export function unpacked(sizes, { rows, halves: rest }) {
  const whole = Int8Array.from(atob(rows), (c) => c.charCodeAt(0));
  const half = halves(rest);
  let [at, next] = [0, 0];
  const numbers = Object.fromEntries(tensors(sizes).map(([name, high, wide]) => {
    const factors = half.subarray(next, (next += high));
    if (!wide) return [name, Float32Array.from(factors)];
    const matrix = new Float32Array(high * wide);
    for (let i = 0; i < matrix.length; i++) {
      matrix[i] = whole[at++] * factors[Math.floor(i / wide)];
    }
    return [name, matrix];
  }));
  if (at !== whole.length || next !== half.length) throw new Error("the weights do not fit");
  return numbers;
}

// The random numbers that training started from, as attention._packed.begin.
export function untrained(sizes) {
  let [at, limit] = [0, 0];
  return Object.fromEntries(tensors(sizes).map(([name, high, wide]) => {
    if (/norm/.test(name)) return [name, new Float32Array(high).fill(name.endsWith("Offset") ? 0 : 1)];
    if (name === "gain" || name === "offset") {
      return [name, new Float32Array(high).fill(name === "gain" ? 1 : 0)];
    }
    if (wide) limit = Math.sqrt(name === "tokens" ? 3 : 1) / Math.sqrt(wide);
    return [name, Float32Array.from({ length: high * (wide || 1) }, () =>
      (2 * uniform(0, at++) - 1) * limit)];
  }));
}

// x (n, wide) flat, weight (high, wide) flat -> (n, high) flat.
function product(x, weight, offset, high) {
  const wide = weight.length / high;
  const n = x.length / wide;
  const out = new Float32Array(n * high);
  for (let o = 0; o < high; o++) {
    const base = o * wide;
    for (let i = 0; i < n; i++) {
      const from = i * wide;
      let [a, b, c, d] = [offset ? offset[o] : 0, 0, 0, 0];
      for (let j = 0; j < wide; j += 4) { // all widths are multiples of 4
        a += x[from + j] * weight[base + j];
        b += x[from + j + 1] * weight[base + j + 1];
        c += x[from + j + 2] * weight[base + j + 2];
        d += x[from + j + 3] * weight[base + j + 3];
      }
      out[i * high + o] = a + b + c + d;
    }
  }
  return out;
}

function normalised(x, gain, offset) {
  const d = gain.length;
  const out = new Float32Array(x.length);
  for (let from = 0; from < x.length; from += d) {
    let [mean, square] = [0, 0];
    for (let c = 0; c < d; c++) mean += x[from + c] / d;
    for (let c = 0; c < d; c++) square += (x[from + c] - mean) ** 2 / d;
    const factor = 1 / Math.sqrt(square + 1e-5);
    for (let c = 0; c < d; c++) out[from + c] = (x[from + c] - mean) * factor * gain[c] + offset[c];
  }
  return out;
}

const added = (a, b) => a.map((value, i) => value + b[i]);

// A LanguageModel of the package (pre-norm, sinusoids, relu, tied) that reads up to `context` tokens.
// sizes: { vocab_size, d_model, num_heads, num_layers }; w: `unpacked` or `untrained` numbers.
//
// read(ids) reads the tokens; what the last call read of the same beginning is kept (the cache of keys
// and values), so that one more token costs one token. It returns how many are new. Then
//   logits(i) (vocab): what the model expects after token i;
//   weights(layer, head, i): Float32Array (i + 1), what token i attends to.
// trace(ids) reads afresh and returns every tensor on the way, flat Float32Arrays, row by row:
//   { n, ids,
//     tokens (n, d): rows of the table times √d; positions (n, d); input (n, d): their sum;
//     layers: [{ norm1 (n, d); q, k, v (n, d): head r has the columns r·d_k to (r + 1)·d_k;
//       scores (h, n, n): q·k/√d_k, without a mask; weights (h, n, n): 0 for what comes later;
//       heads (n, d): weights × v of all heads, side by side; mixed (n, d): heads × W^O;
//       sum1 (n, d); norm2 (n, d); hidden (n, 4d): after the relu, wide (n, 4d): before it;
//       narrow (n, d); sum2 (n, d) }];
//     final (n, d): the last norm; logits (n, vocab); probabilities (n, vocab) }.
export function textModel(sizes, w, context) {
  const { vocab_size: vocab, d_model: d, num_heads: heads, num_layers: layers } = sizes;
  const width = d / heads;
  const empty = () => ({ ids: [], states: new Float32Array(context * d),
    keys: Array.from({ length: layers }, () => new Float32Array(context * d)),
    values: Array.from({ length: layers }, () => new Float32Array(context * d)),
    weights: new Float32Array(layers * heads * context * context) });
  const place = (layer, head, i) => ((layer * heads + head) * context + i) * context;

  function run(cache, ids, note) {
    const [past, n] = [cache.ids.length, ids.length];
    if (past + n > context) throw new Error(`the model reads ${context} tokens; got ${past + n}`);
    const [tokens, positions] = [new Float32Array(n * d), new Float32Array(n * d)];
    ids.forEach((id, i) => {
      for (let c = 0; c < d; c++) tokens[i * d + c] = w.tokens[id * d + c] * Math.sqrt(d);
      positions.set(sinusoid(past + i, d), i * d);
    });
    let x = added(tokens, positions);
    note?.({ tokens, positions, input: x });
    for (let layer = 0; layer < layers; layer++) {
      const of = (name) => w[`${layer}.${name}`];
      const through = (input, name, high = d) => product(input, of(name), of(`${name}Offset`), high);
      const norm1 = normalised(x, of("normAttention"), of("normAttentionOffset"));
      const [q, k, v] = ["q", "k", "v"].map((name) => through(norm1, name));
      const [keys, values] = [cache.keys[layer], cache.values[layer]];
      keys.set(k, past * d);
      values.set(v, past * d);
      const joined = new Float32Array(n * d);
      const scores = note && new Float32Array(heads * n * n);
      for (let r = 0; r < heads; r++) {
        for (let i = 0; i < n; i++) {
          const at = place(layer, r, past + i);
          const row = cache.weights.subarray(at, at + context);
          const last = past + i;
          let top = -Infinity;
          for (let j = 0; j < (note ? n : last + 1); j++) {
            let score = 0;
            for (let c = r * width; c < (r + 1) * width; c++) score += q[i * d + c] * keys[j * d + c];
            score /= Math.sqrt(width);
            if (note) scores[(r * n + i) * n + j] = score;
            if (j > last) continue;
            row[j] = score;
            if (score > top) top = score;
          }
          let total = 0;
          for (let j = 0; j <= last; j++) total += row[j] = Math.exp(row[j] - top);
          for (let j = 0; j <= last; j++) {
            row[j] /= total;
            for (let c = r * width; c < (r + 1) * width; c++) {
              joined[i * d + c] += row[j] * values[j * d + c];
            }
          }
        }
      }
      const mixed = through(joined, "o");
      const sum1 = added(x, mixed);
      const norm2 = normalised(sum1, of("normForward"), of("normForwardOffset"));
      const wide = through(norm2, "widen", 4 * d);
      const hidden = wide.map((z) => Math.max(0, z));
      const narrow = through(hidden, "narrow");
      x = added(sum1, narrow);
      note?.({ layer, norm1, q, k, v, scores, heads: joined, mixed, sum1, norm2, wide, hidden,
        narrow, sum2: x });
    }
    cache.states.set(normalised(x, w.gain, w.offset), past * d);
    cache.ids = [...cache.ids, ...ids];
  }
  const logits = (cache, i) =>
    product(cache.states.subarray(i * d, (i + 1) * d), w.tokens, null, vocab);
  const weights = (cache, layer, head, i, n = i + 1) => {
    const at = place(layer, head, i);
    const row = new Float32Array(n);
    row.set(cache.weights.subarray(at, at + i + 1));
    return row;
  };

  let held = empty();
  return {
    sizes, context,
    read(ids) {
      let same = 0;
      while (same < ids.length && ids[same] === held.ids[same]) same++;
      held.ids = held.ids.slice(0, same);
      if (same < ids.length) run(held, ids.slice(same));
      return ids.length - same;
    },
    logits: (i) => logits(held, i),
    weights: (layer, head, i) => weights(held, layer, head, i),
    trace(ids) {
      const [cache, n, found] = [empty(), ids.length, { n: ids.length, ids, layers: [] }];
      run(cache, ids, ({ layer, ...made }) => {
        if (layer === undefined) Object.assign(found, made);
        else found.layers.push(made);
      });
      const join = (rows) => {
        const out = new Float32Array(rows.length * rows[0].length);
        rows.forEach((row, i) => out.set(row, i * row.length));
        return out;
      };
      found.layers.forEach((made, layer) => {
        made.weights = join(Array.from({ length: heads * n }, (_, at) =>
          weights(cache, layer, Math.floor(at / n), at % n, n)));
      });
      const rows = ids.map((_, i) => logits(cache, i));
      return Object.assign(found, { final: cache.states.slice(0, n * d), logits: join(rows),
        probabilities: join(rows.map((row) => softmax(row))) });
    },
  };
}
