// A transformer that learns: forward, backward and AdamW in loops over flat arrays. Both functions
// stand alone: a Worker is made of their own text.

// The book's LanguageModel (pre-norm, learned positions, ReLU), its numbers in the order of its
// state_dict. run(theta, ids, targets, B, T, on, grad) reads B sequences of T <= n tokens and returns
// { loss, logits (B·T, vocab), weights: one (B, heads, T, T) a layer }; with grad, the gradient of
// the mean loss is added to it. on: { heads, mask, scale, positions, residual, norms }.
export function network({ vocab, n, d, layers }) {
  const wide = 4 * d;
  const parts = []; // where each tensor lies, its bell curve's width, or what fills it
  let size = 0;
  const take = (count, spread, fill = 0) => {
    parts.push({ at: size, count, spread, fill });
    return (size += count) - count;
  };
  const dense = (out, into, gain = 1) => [take(out * into, gain / Math.sqrt(into)), take(out, 0), out, into];
  const norm = () => [take(d, 0, 1), take(d, 0)];
  const [tokens, places, output] = [take(vocab * d, 0.5), take(n * d, 0.5), take(vocab * d, 0.02)];
  const blocks = Array.from({ length: layers }, () => ({ q: dense(d, d), k: dense(d, d),
    v: dense(d, d), o: dense(d, d, 0.5), widen: dense(wide, d, 1.4), narrow: dense(d, wide, 0.5),
    first: norm(), second: norm() }));
  const last = norm();

  // C (m, c) += A (m, k) B (k, c), whose numbers lie so far apart: 2 by 4 sums at once.
  function product(m, c, k, A, ai, ak, B, b0, bj, bk, C, c0) {
    const m2 = m - (m % 2), c4 = c - (c % 4);
    for (let i = 0; i < m2; i += 2) {
      for (let j = 0; j < c4; j += 4) {
        let s0 = 0, s1 = 0, s2 = 0, s3 = 0, t0 = 0, t1 = 0, t2 = 0, t3 = 0;
        let x = i * ai;
        let y = x + ai;
        let u = b0 + j * bj;
        for (let l = 0; l < k; l++) {
          const e = A[x], f = A[y], b = B[u], g = B[u + bj], h = B[u + 2 * bj], r = B[u + 3 * bj];
          s0 += e * b; s1 += e * g; s2 += e * h; s3 += e * r;
          t0 += f * b; t1 += f * g; t2 += f * h; t3 += f * r;
          x += ak; y += ak; u += bk;
        }
        const p = c0 + i * c + j;
        C[p] += s0; C[p + 1] += s1; C[p + 2] += s2; C[p + 3] += s3;
        C[p + c] += t0; C[p + c + 1] += t1; C[p + c + 2] += t2; C[p + c + 3] += t3;
      }
    }
    for (let i = 0; i < m; i++) { // what the blocks of 2 by 4 left
      for (let j = i < m2 ? c4 : 0; j < c; j++) {
        let sum = 0;
        for (let l = 0; l < k; l++) sum += A[i * ai + l * ak] * B[b0 + j * bj + l * bk];
        C[c0 + i * c + j] += sum;
      }
    }
  }
  function linear(theta, [w, b, out, into], X, Y, rows) {
    for (let i = 0, at = 0; i < rows; i++) for (let c = 0; c < out; c++, at++) Y[at] = theta[b + c];
    product(rows, out, into, X, into, 1, theta, w, into, 1, Y, 0);
  }
  function linearBack(theta, [w, b, out, into], X, dY, dX, rows, grad) { // adds to dX and grad
    product(out, into, rows, dY, 1, out, X, 0, 1, into, grad, w);
    for (let i = 0, at = 0; i < rows; i++) for (let c = 0; c < out; c++, at++) grad[b + c] += dY[at];
    product(rows, into, out, dY, out, 1, theta, w, 1, into, dX, 0);
  }
  function normalise(theta, [gain, offset], X, { z, r, h }, rows) {
    for (let i = 0; i < rows; i++) {
      let mean = 0, square = 0;
      for (let c = i * d; c < (i + 1) * d; c++) mean += X[c] / d;
      for (let c = i * d; c < (i + 1) * d; c++) square += (X[c] - mean) ** 2 / d;
      r[i] = 1 / Math.sqrt(square + 1e-5);
      for (let c = 0, at = i * d; c < d; c++, at++) {
        z[at] = (X[at] - mean) * r[i];
        h[at] = z[at] * theta[gain + c] + theta[offset + c];
      }
    }
    return h;
  }
  function normaliseBack(theta, [gain, offset], { z, r }, dH, dX, rows, grad) {
    for (let i = 0; i < rows; i++) {
      let mean = 0, along = 0;
      for (let c = 0, at = i * d; c < d; c++, at++) {
        const g = dH[at] * theta[gain + c];
        mean += g / d;
        along += (g * z[at]) / d;
        grad[gain + c] += dH[at] * z[at];
        grad[offset + c] += dH[at];
      }
      for (let c = 0, at = i * d; c < d; c++, at++) {
        dX[at] += r[i] * (dH[at] * theta[gain + c] - mean - z[at] * along);
      }
    }
  }
  function attend({ q, k, v, weights, joined }, B, T, { heads, mask, scale }) {
    const dk = d / heads;
    const factor = scale ? 1 / Math.sqrt(dk) : 1;
    joined.fill(0);
    weights.fill(0);
    for (let b = 0, at = 0; b < B; b++) for (let r = 0; r < heads; r++) for (let i = 0; i < T; i++, at += T) {
      const end = mask ? i + 1 : T;
      const mine = (b * T + i) * d + r * dk;
      let top = -Infinity;
      for (let j = 0; j < end; j++) {
        let sum = 0;
        for (let c = 0, other = (b * T + j) * d + r * dk; c < dk; c++) sum += q[mine + c] * k[other + c];
        weights[at + j] = sum * factor;
        top = Math.max(top, weights[at + j]);
      }
      let total = 0;
      for (let j = at; j < at + end; j++) total += (weights[j] = Math.exp(weights[j] - top));
      for (let j = 0; j < end; j++) {
        const weight = (weights[at + j] /= total);
        for (let c = 0, other = (b * T + j) * d + r * dk; c < dk; c++) joined[mine + c] += weight * v[other + c];
      }
    }
  }
  function attendBack({ q, k, v, weights }, { dq, dk: dK, dv, dj, row }, B, T, { heads, mask, scale }) {
    const dk = d / heads;
    const factor = scale ? 1 / Math.sqrt(dk) : 1;
    for (const x of [dq, dK, dv]) x.fill(0);
    for (let b = 0, at = 0; b < B; b++) for (let r = 0; r < heads; r++) for (let i = 0; i < T; i++, at += T) {
      const end = mask ? i + 1 : T;
      const mine = (b * T + i) * d + r * dk;
      let mean = 0;
      for (let j = 0; j < end; j++) {
        let sum = 0;
        for (let c = 0, other = (b * T + j) * d + r * dk; c < dk; c++) {
          sum += dj[mine + c] * v[other + c];
          dv[other + c] += weights[at + j] * dj[mine + c];
        }
        row[j] = sum;
        mean += weights[at + j] * sum;
      }
      for (let j = 0; j < end; j++) {
        const slope = weights[at + j] * (row[j] - mean) * factor;
        for (let c = 0, other = (b * T + j) * d + r * dk; c < dk; c++) {
          dq[mine + c] += slope * k[other + c];
          dK[other + c] += slope * q[mine + c];
        }
      }
    }
  }

  const spaces = new Map(); // what a batch of one size needs on its way
  function space(B, T, heads) {
    const key = `${B} ${T} ${heads}`;
    if (!spaces.has(key)) {
      const rows = B * T;
      const flat = (width = d) => new Float64Array(rows * width);
      const normed = () => ({ z: flat(), r: flat(1), h: flat() });
      spaces.set(key, { x: flat(), logits: flat(vocab), end: normed(), dlogits: flat(vocab),
        dx: flat(), dy: flat(), dh: flat(), dr: flat(wide), dq: flat(), dk: flat(), dv: flat(),
        dj: flat(), row: new Float64Array(T),
        blocks: blocks.map(() => ({ first: normed(), second: normed(), q: flat(), k: flat(), v: flat(),
          weights: flat(heads * T), joined: flat(), middle: flat(), hidden: flat(wide), out: flat() })) });
    }
    return spaces.get(key);
  }

  function run(theta, ids, targets, B, T, on, grad = null) {
    const s = space(B, T, on.heads);
    const rows = B * T;
    for (let i = 0; i < rows; i++) for (let c = 0; c < d; c++) {
      s.x[i * d + c] = theta[tokens + ids[i] * d + c] + (on.positions ? theta[places + (i % T) * d + c] : 0);
    }
    const add = (X, Y) => { if (on.residual) for (let c = 0; c < rows * d; c++) Y[c] += X[c]; };
    const normed = (place, X, where) => (on.norms ? normalise(theta, place, X, where, rows) : X);
    let x = s.x;
    blocks.forEach((w, l) => {
      const t = s.blocks[l];
      t.x = x;
      t.h = normed(w.first, x, t.first);
      for (const name of ["q", "k", "v"]) linear(theta, w[name], t.h, t[name], rows);
      attend(t, B, T, on);
      linear(theta, w.o, t.joined, t.middle, rows);
      add(x, t.middle);
      t.g = normed(w.second, t.middle, t.second);
      linear(theta, w.widen, t.g, t.hidden, rows);
      for (let c = 0; c < rows * wide; c++) if (t.hidden[c] < 0) t.hidden[c] = 0;
      linear(theta, w.narrow, t.hidden, t.out, rows);
      add(t.middle, t.out);
      x = t.out;
    });
    const h = normed(last, x, s.end);
    s.logits.fill(0);
    product(rows, vocab, d, h, d, 1, theta, output, d, 1, s.logits, 0);
    const result = { loss: 0, logits: s.logits, weights: s.blocks.map((t) => t.weights) };
    if (!targets) return result;

    for (let i = 0; i < rows; i++) {
      let top = -Infinity, sum = 0;
      for (let c = i * vocab; c < (i + 1) * vocab; c++) top = Math.max(top, s.logits[c]);
      for (let c = i * vocab; c < (i + 1) * vocab; c++) sum += (s.dlogits[c] = Math.exp(s.logits[c] - top));
      result.loss += (top + Math.log(sum) - s.logits[i * vocab + targets[i]]) / rows;
      for (let c = i * vocab; c < (i + 1) * vocab; c++) s.dlogits[c] /= sum * rows;
      s.dlogits[i * vocab + targets[i]] -= 1 / rows; // p - y
    }
    if (!grad) return result;

    const { dx, dy, dh, dr, dq, dk, dv, dj } = s;
    // From the gradient at a norm's output, dh, to that at its input, which it is added to.
    const normedBack = (place, where, into) => {
      if (on.norms) normaliseBack(theta, place, where, dh, into, rows, grad);
      else for (let c = 0; c < rows * d; c++) into[c] += dh[c];
    };
    const passed = (from, into) => { if (on.residual) into.set(from); else into.fill(0); };
    dh.fill(0);
    product(vocab, d, rows, s.dlogits, 1, vocab, h, 0, 1, d, grad, output);
    product(rows, d, vocab, s.dlogits, vocab, 1, theta, output, 1, d, dh, 0);
    dx.fill(0);
    normedBack(last, s.end, dx);
    for (let l = layers - 1; l >= 0; l--) {
      const [w, t] = [blocks[l], s.blocks[l]];
      dr.fill(0);
      linearBack(theta, w.narrow, t.hidden, dx, dr, rows, grad);
      for (let c = 0; c < rows * wide; c++) if (!(t.hidden[c] > 0)) dr[c] = 0;
      dh.fill(0);
      linearBack(theta, w.widen, t.g, dr, dh, rows, grad);
      passed(dx, dy); // dy: at the sum between attention and feed-forward
      normedBack(w.second, t.second, dy);
      dj.fill(0);
      linearBack(theta, w.o, t.joined, dy, dj, rows, grad);
      attendBack(t, s, B, T, on);
      dh.fill(0);
      linearBack(theta, w.q, t.h, dq, dh, rows, grad);
      linearBack(theta, w.k, t.h, dk, dh, rows, grad);
      linearBack(theta, w.v, t.h, dv, dh, rows, grad);
      passed(dy, dx);
      normedBack(w.first, t.first, dx);
    }
    for (let i = 0; i < rows; i++) for (let c = 0; c < d; c++) {
      grad[tokens + ids[i] * d + c] += dx[i * d + c];
      if (on.positions) grad[places + (i % T) * d + c] += dx[i * d + c];
    }
    return result;
  }

  // AdamW; only matrices and tables decay.
  function update(theta, grad, m, v, step, rate) {
    const [a, b] = [1 - 0.9 ** step, Math.sqrt(1 - 0.999 ** step)];
    for (const { at, count, spread } of parts) {
      const keep = spread ? 1 - rate * 0.01 : 1;
      for (let i = at; i < at + count; i++) {
        m[i] += 0.1 * (grad[i] - m[i]);
        v[i] = 0.999 * v[i] + 0.001 * grad[i] * grad[i];
        theta[i] = theta[i] * keep - ((rate / a) * m[i]) / (Math.sqrt(v[i]) / b + 1e-8);
      }
    }
  }
  // Bell-curve numbers, one for each weight, to weights as training begins.
  const initial = (bell) => {
    const theta = new Float64Array(size);
    for (const { at, count, spread, fill } of parts) {
      for (let i = at; i < at + count; i++) theta[i] = fill + spread * bell[i];
    }
    return theta;
  };
  return { size, run, update, initial, parts };
}

// Trains a network and tells `send` how it goes. It is spoken to in messages: { begin }, a task and
// the weights to begin with; { on, rate }, the switches and the learning rate; { run, turn }, how many
// steps from now (0 is a pause); { more }, so many steps besides. Between slices of so many
// milliseconds it listens.
export function trainer(send, network, uniform, slice) {
  const B = 16;
  let t = null; // the training in hand
  let [on, rate, wanted, timer, sent] = [null, 0, 0, 0, 0];

  const batch = ({ tokens, starts }, at) => {
    const [ids, targets] = [[], []];
    for (const i of at) for (let j = 0; j < t.n; j++) {
      ids.push(tokens[starts[i] + j]);
      targets.push(tokens[starts[i] + j + 1]);
    }
    return [ids, targets];
  };
  const copy = () => ({ step: t.step, updates: t.updates, theta: t.theta.slice(), m: t.m.slice(),
    v: t.v.slice() });
  function heldOut() {
    const [ids, targets] = batch(t.held, t.held.starts.map((_, i) => i));
    return t.net.run(t.theta, ids, targets, t.held.starts.length, t.n, on).loss;
  }
  function write(number) {
    const ids = [t.opening];
    while (ids.length < t.longest) {
      const seen = ids.slice(-t.n);
      const { logits } = t.net.run(t.theta, seen, null, 1, seen.length, on);
      const row = logits.subarray((seen.length - 1) * t.vocab, seen.length * t.vocab);
      const top = row.reduce((a, b) => Math.max(a, b));
      const p = row.map((x) => Math.exp(x - top));
      let u = uniform(t.seed + t.step, 1000 * number + ids.length) * p.reduce((a, b) => a + b, 0);
      let next = 0;
      while (next < t.vocab - 1 && (u -= p[next]) > 0) next++;
      if (next === t.closing) break;
      ids.push(next);
    }
    return ids.slice(1);
  }
  function report(more) {
    const { weights } = t.net.run(t.theta, t.shown, null, 1, t.n, on);
    send({ id: t.id, turn: t.turn, step: t.step, losses: t.losses.splice(0), held: t.heldOut.splice(0),
      samples: Array.from({ length: t.samples }, (_, i) => write(i)), maps: weights.map((x) => x.slice()),
      speed: t.spent > 0 ? (1000 * (t.step - t.reported)) / t.spent : 0, ...more });
    [t.reported, t.spent, sent] = [t.step, 0, performance.now()];
  }
  // One step; false if the loss has left all reason: then training goes back to the last good one.
  function advance() {
    const at = Array.from({ length: B }, (_, b) =>
      Math.floor(uniform(t.seed, t.step * B + b) * t.starts.length));
    const [ids, targets] = batch(t, at);
    t.grad.fill(0);
    const { loss } = t.net.run(t.theta, ids, targets, B, t.n, on, t.grad);
    const guess = Math.log(t.vocab);
    if (!(loss < 10 * guess)) {
      const step = t.step;
      Object.assign(t, t.kept, { losses: [] });
      t.kept = copy();
      wanted = 0;
      report({ diverged: { step, loss: Number.isFinite(loss) ? loss : null }, theta: t.theta.slice() });
      return false;
    }
    if (t.step % 20 === 0 && loss < 2 * guess) t.kept = copy();
    t.losses.push(loss);
    t.net.update(t.theta, t.grad, t.m, t.v, ++t.updates, rate);
    t.step++;
    if (t.step % 20 === 0) {
      const held = heldOut();
      if (Number.isFinite(held)) t.heldOut.push([t.step, held]);
    }
    wanted--;
    return true;
  }
  function go() {
    const start = performance.now();
    while (wanted > 0 && advance()) if (performance.now() - start > slice) break;
    t.spent += performance.now() - start;
    if (wanted > 0) {
      if (performance.now() - sent > 200) report();
      timer = setTimeout(go, 0);
    } else if (t.step > t.reported) report({ done: true, theta: t.theta.slice() });
  }
  return ({ begin, on: switches, rate: speed, run, turn, more = 0 }) => {
    clearTimeout(timer);
    if (switches) [on, rate] = [switches, speed];
    if (begin) {
      const net = network(begin);
      const zeros = () => new Float64Array(net.size);
      t = { ...begin, net, theta: begin.theta ?? net.initial(begin.bell), grad: zeros(), m: zeros(),
        v: zeros(), losses: [], heldOut: [], updates: 0, reported: begin.step, spent: 0 };
      [t.kept, wanted] = [copy(), 0];
      if (t.step === 0) t.heldOut.push([0, heldOut()]);
    }
    if (run !== undefined) [wanted, t.turn] = [run, turn];
    wanted += more;
    if (wanted > 0) timer = setTimeout(go, 0);
    else report(run === 0 ? { done: true, theta: t.theta.slice() } : {});
  };
}
