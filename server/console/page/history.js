// What was issued in the last minutes: one point for each answer of the server.

export const kept = 300; // seconds
const most = 400; // points, whatever happens to the clock

export class History {
  points = [];
  last = null;

  // add notes counts that only rise. at is when they came, and up how long the
  // server had been up then, in seconds.
  add(at, up, counts, bounds) {
    const before = this.last;
    this.last = { up, counts };
    const passed = before ? up - before.up : 0;
    if (passed <= 0 || counts.values < before.counts.values) return;
    const draws = counts.latency.map((n, i) => n - (before.counts.latency[i] ?? 0));
    this.points.push({
      at,
      rate: (counts.values - before.counts.values) / passed,
      requests: (counts.requests - before.counts.requests) / passed,
      errors: (counts.errors - before.counts.errors) / passed,
      p50: quantile(draws, bounds, 0.5),
      p99: quantile(draws, bounds, 0.99),
    });
    while (this.points.length > most || at - this.points[0].at > kept) this.points.shift();
  }

  now() {
    return this.points.at(-1) ?? { rate: NaN, requests: NaN, errors: NaN, p50: NaN, p99: NaN };
  }
}

// quantile is below which time that share of the draws stayed, NaN if there were none.
// A bucket begins where the one before it ends, at half its bound; the first is not
// divided.
function quantile(draws, bounds, share) {
  const all = draws.reduce((sum, n) => sum + n, 0);
  if (all === 0) return NaN;
  let below = 0;
  for (const [i, n] of draws.entries()) {
    if (below + n >= share * all && n > 0) {
      if (i === 0) return bounds[0];
      const end = bounds[i] > 0 ? bounds[i] : bounds[i - 1] * 2;
      return (end / 2) * 2 ** ((share * all - below) / n);
    }
    below += n;
  }
  return NaN;
}
