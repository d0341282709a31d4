'use strict';
// Takes ids from a page, as told, and prints them, a line an id, with an empty line after those of each thread or process.
//
//   take next|string|async PATH N | batch PATH N SIZE | workers PATH N COUNT | fork PATH N COUNT | cluster PATH N COUNT |
//   until PATH | busy PATH | loop PATH | open PATH | bench PATH N SIZE | runs PATH BATCH SINGLES PAUSE
//
// runs prints runs of consecutive ids, a line FIRST COUNT, until its standard input ends.
const { open, openAsync } = require('firn-page');
const { Worker, isMainThread, workerData, parentPort } = require('node:worker_threads');
const { fork } = require('node:child_process');
const cluster = require('node:cluster');

const [mode, path, n = 1, more = 1, pause = 0] = process.argv.slice(2).map((a, i) => (i < 2 ? a : Number(a)));

function print(ids) {
  process.stdout.write(ids.join('\n') + '\n\n');
}

function take(n) {
  const ids = open(path, { block: 1000 });
  const all = Array.from({ length: n }, () => ids.next());
  ids.close();
  return all;
}

// children collects what others take, one after the other: pipes do not mix then.
async function children(count, start) {
  const all = Array.from({ length: count }, () => new Promise((resolve, reject) => {
    const child = start();
    let ids;
    child.on('message', (m) => { ids = m; });
    child.on('error', reject);
    child.on('exit', (code) => (code === 0 && ids ? resolve(ids) : reject(new Error(`exit ${code}`))));
  }));
  print(take(n)); // this process too, at once
  for (const ids of await Promise.all(all)) {
    print(ids);
  }
}

async function until() {
  let over = false;
  process.stdin.on('end', () => { over = true; }).resume();
  const ids = await openAsync(path, { wait: 60_000 });
  while (!over) {
    process.stdout.write((await ids.batchAsync(10)).join('\n') + '\n');
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
}

// runs takes ids in batches and alone. All ids increase.
async function runs() {
  let over = false;
  process.stdin.on('end', () => { over = true; }).resume();
  const ids = await openAsync(path, { wait: 60_000 });
  for (let last = 0n; !over;) {
    const all = [...await ids.batchAsync(n)];
    for (let i = 0; i < more; i++) {
      all.push(await ids.nextAsync());
    }
    const lines = [];
    let first = all[0];
    for (const [i, id] of all.entries()) {
      if (id <= last) {
        throw new Error(`${id} after ${last}`);
      }
      if (i > 0 && id !== last + 1n) {
        lines.push(`${first} ${last - first + 1n}\n`);
        first = id;
      }
      last = id;
    }
    process.stdout.write(`${lines.join('')}${first} ${last - first + 1n}\n`);
    await new Promise((resolve) => setTimeout(resolve, pause));
  }
}

// loop waits for an id of a page that has none, and prints how long the event loop was blocked at most.
async function loop() {
  const ids = open(path, { wait: 5000 });
  let worst = 0, last = performance.now();
  const timer = setInterval(() => {
    worst = Math.max(worst, performance.now() - last);
    last = performance.now();
  }, 1);
  try {
    await ids.nextAsync();
  } catch (error) {
    console.log(error.code, worst < 1000 ? 'free' : `blocked for ${worst} ms`);
  }
  clearInterval(timer);
}

function bench() {
  const ids = open(path, { block: 1000 });
  let sum = 0n, before;
  for (let i = -n; i < n; i += more) {
    if (i === 0) {
      before = process.cpuUsage(); // what ran before was compiled meanwhile
    }
    sum ^= more === 1 ? ids.next() : ids.batch(more)[more - 1];
  }
  const { user, system } = process.cpuUsage(before);
  console.log(`${(((user + system) * 1000) / n).toFixed(1)} ns an id${sum === 0n ? '!' : ''}`);
}

async function main() {
  if (!isMainThread) {
    return parentPort.postMessage(take(workerData));
  }
  if (process.send) {
    return process.send(take(n).map(String), () => process.disconnect());
  }
  const args = [mode, path, String(n)];
  switch (mode) {
    case 'next': return print(take(n));
    case 'string': { const ids = open(path, { block: 1000 }); return print(Array.from({ length: n }, () => ids.nextString())); }
    case 'async': { const ids = await openAsync(path); const all = []; while (all.length < n) all.push(await ids.nextAsync()); return print(all); }
    case 'batch': { const ids = open(path, { block: 1000 }); for (let i = 0; i < n; i++) print(ids.batch(more)); return; }
    case 'workers': return children(more, () => new Worker(__filename, { workerData: n, argv: args }));
    case 'fork': return children(more, () => fork(__filename, args));
    case 'cluster': cluster.setupPrimary({ exec: __filename, args }); return children(more, () => cluster.fork());
    case 'until': return until();
    case 'runs': return runs();
    case 'busy': return open(path, { block: 0 }).batch(100_000);
    case 'abort': return open(path).batchAsync(1_000_000_000 / 100, { signal: AbortSignal.timeout(50) });
    case 'loop': return loop();
    case 'closed': { const ids = open(path); ids.close(); ids.close(); return ids.next(); }
    case 'open': { const ids = await openAsync(path, { wait: 200 }); return ids.next(); }
    case 'bench': return bench();
    default: throw new Error(mode);
  }
}

main().catch((error) => {
  console.error(`${error.name} ${error.code}: ${error.message}`);
  process.exitCode = 1;
});
