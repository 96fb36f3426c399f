// The mathematics of the book in double precision; it runs in Node too.

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

export function t5Bucket(offset, buckets = 32, maxDistance = 128, bidirectional = true) {
  let base = 0;
  let distance = offset; // query position - key position
  if (bidirectional) {
    buckets = Math.floor(buckets / 2);
    if (offset < 0) base = buckets;
    distance = Math.abs(offset);
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
