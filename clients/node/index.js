'use strict';
const { setTimeout: sleep } = require('node:timers/promises');

let addon;
try {
  addon = require('./build/firn.node');
} catch (error) {
  throw new Error('firn-page: its addon is not built, or not for this node: run npm rebuild firn-page, with install scripts allowed', { cause: error });
}

const CODES = ['', 'FIRN_ENOPAGE', 'FIRN_ECLOSED', 'FIRN_EENDED', 'FIRN_EBUSY', 'FIRN_EUNUSABLE', 'FIRN_EPOOL', 'FIRN_ESYSTEM'];
const RETRY = new Set([1, 2, 3, 4]); // what passes when the agent, its store or the clock is there
const HANDLE_CLOSED = 100;

class FirnError extends Error {
  constructor(code, message) {
    super(message);
    this.name = 'FirnError';
    this.code = code;
  }
}

// failure is the error for a code of the addon. It is asked for right after the call that failed.
function failure(code) {
  if (code === HANDLE_CLOSED) {
    return new FirnError('FIRN_ECLOSEDPAGE', 'firn: close() was called on this page: open it again');
  }
  return new FirnError(CODES[code] ?? 'FIRN_ESYSTEM', addon.error(code));
}

function milliseconds(name, value, most) {
  if (typeof value !== 'number' || !(value >= 0 && value <= most)) {
    throw new RangeError(`${name} ${value}: a number of milliseconds, 0 to ${most}`);
  }
  return value;
}

// retry calls attempt, which returns a code or 0, until it returns 0 or waiting is over. It uses timers.
async function retry(attempt, wait, signal) {
  const end = performance.now() + wait;
  for (let pause = 1; ; pause = Math.min(pause * 2, 10)) {
    signal?.throwIfAborted();
    const code = attempt();
    if (code === 0) {
      return;
    }
    if (!RETRY.has(code) || performance.now() >= end) {
      throw failure(code);
    }
    await sleep(pause, undefined, { signal });
  }
}

class Page {
  #addon;
  #next;
  #string;
  #out;
  #wait;

  constructor(native, wait) {
    this.#addon = native;
    this.#next = native.next;
    this.#string = native.string;
    this.#out = native.out;
    this.#wait = wait;
  }

  next() {
    const code = this.#next();
    if (code !== undefined) {
      throw failure(code);
    }
    return this.#out[0];
  }

  nextString() {
    const id = this.#string();
    if (typeof id !== 'string') {
      throw failure(id);
    }
    return id;
  }

  batch(n) {
    const ids = new BigInt64Array(n);
    const code = this.#addon.fill(ids, 0, true);
    if (code !== 0) {
      throw failure(code);
    }
    return ids;
  }

  async nextAsync(options) {
    return (await this.batchAsync(1, options))[0];
  }

  async batchAsync(n, { signal } = {}) {
    const ids = new BigInt64Array(n);
    let have = 0;
    await retry(() => {
      const code = this.#addon.fill(ids, have, false);
      have = Number(this.#out[0]);
      return code;
    }, this.#wait, signal);
    return ids;
  }

  close() {
    this.#addon.close();
  }
}

function settings(path, { wait = 1000, block = 20 } = {}) {
  if (typeof path !== 'string' || path.includes('\0') || Buffer.byteLength(path) > 4000) {
    throw new TypeError('path: the path of a page, a string');
  }
  return [milliseconds('wait', wait, Infinity), milliseconds('block', block, 1000)];
}

function open(path, options) {
  const [wait, block] = settings(path, options);
  const native = addon.open(path, block);
  if (typeof native === 'number') {
    throw failure(native);
  }
  return new Page(native, wait);
}

async function openAsync(path, options) {
  const [wait, block] = settings(path, options);
  let native;
  await retry(() => {
    native = addon.open(path, block);
    return typeof native === 'number' ? native : 0;
  }, wait, options?.signal);
  return new Page(native, wait);
}

module.exports = { open, openAsync, FirnError };
