'use strict';
// The client in Node: see the documentation of package main.
const { open } = require('firn-page');

const ids = open(process.argv[2], { block: 1000 });
let sum = 0n;

function one(n) {
  for (let i = 0; i < n; i++) sum ^= ids.next();
}

function many(n, batch) {
  for (let i = 0; i < n; i += batch) sum ^= ids.batch(batch)[batch - 1];
}

require('node:readline').createInterface({ input: process.stdin }).on('line', (line) => {
  const [n, batch] = line.split(' ').map(Number);
  if (batch === 1) one(n);
  else many(n, batch);
  console.log('');
});
