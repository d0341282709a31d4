// The generator that tutorials copy from each other, with its datacenter and worker
// from the environment, where "firn run" puts them:
//
//   firn run --layout classic -- node snowflake.js 1000
//
// It prints ids, one a line: as many per second as the first argument says, 0 being
// as many as it can; and as many in all as the second one says, if there is one.
'use strict';

const fs = require('node:fs');

const EPOCH = 1480166465631n; // 2016-11-26T13:21:05.631Z
const WORKER_BITS = 5n;
const DATACENTER_BITS = 5n;
const SEQUENCE_BITS = 12n;

class Snowflake {
  constructor(datacenter, worker) {
    if (datacenter < 0n || datacenter >= 1n << DATACENTER_BITS) {
      throw new RangeError(`there is no datacenter ${datacenter}`);
    }
    if (worker < 0n || worker >= 1n << WORKER_BITS) {
      throw new RangeError(`there is no worker ${worker}`);
    }
    this.place = (datacenter << WORKER_BITS | worker) << SEQUENCE_BITS;
    this.sequence = 0n;
    this.last = -1n;
  }

  next() {
    let now = BigInt(Date.now());
    if (now < this.last) {
      throw new Error(`the clock went back by ${this.last - now} ms`);
    }
    if (now === this.last) {
      this.sequence = this.sequence + 1n & (1n << SEQUENCE_BITS) - 1n;
      while (this.sequence === 0n && now <= this.last) {
        now = BigInt(Date.now());
      }
    } else {
      this.sequence = 0n;
    }
    this.last = now;
    return now - EPOCH << DATACENTER_BITS + WORKER_BITS + SEQUENCE_BITS | this.place | this.sequence;
  }
}

function variable(name) {
  if (!process.env[name]) {
    throw new Error(`${name} is not set: run this with firn run`);
  }
  return BigInt(process.env[name]);
}

const ids = new Snowflake(variable('FIRN_DATACENTER'), variable('FIRN_WORKER'));
const rate = Number(process.argv[2] ?? 1);
const batch = rate === 0 ? 100 : Math.max(1, Math.floor(rate / 100));
let left = Number(process.argv[3] ?? Infinity);

function print() {
  let lines = '';
  for (let i = Math.min(batch, left); i > 0; i--) {
    lines += `${ids.next()}\n`;
  }
  fs.writeSync(1, lines);
  left -= batch;
  if (left > 0) {
    setTimeout(print, rate > 0 ? 1000 * batch / rate : 0);
  }
}

print();
