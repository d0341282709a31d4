'use strict';

// Hands out ids of a series, each once, none older than maxAge milliseconds.
//
// Ids are strings: a JavaScript number is exact up to 2^53 only. BigInt(id) is one
// that can be calculated with. The next block is fetched when half of one is used.
// What is dropped, because it became too old or because its answer was lost, nobody
// ever gets.
class Ids {
  // command sends one command, given as strings, and resolves to its answer.
  constructor(command, series, { block = 1000, maxAge = 1000 } = {}) {
    Object.assign(this, { command, series, block, maxAge });
    this.born = 0;
    this.left = [];
    this.ahead = undefined;
  }

  fetch() {
    const born = performance.now();
    const answer = this.command('FIRN.NEXT', this.series, String(this.block));
    this.ahead = answer.then((ids) => ({ born, left: ids.reverse() }));
    this.ahead.catch(() => {}); // whoever wants an id hears of it
  }

  async next() {
    while (this.left.length === 0 || performance.now() - this.born > this.maxAge) {
      if (!this.ahead) this.fetch();
      const mine = this.ahead;
      const done = () => this.ahead === mine && ((this.ahead = undefined), true);
      const block = await mine.catch((err) => { done(); throw err; });
      if (done()) ({ born: this.born, left: this.left } = block); // the first of those that waited
    }
    if (!this.ahead && this.left.length <= this.block / 2) this.fetch();
    return this.left.pop();
  }
}

module.exports = { Ids };
