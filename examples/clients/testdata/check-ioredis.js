// What a program does with ioredis, for the tests: each id it gets is a line. With
// "number" it does not say that it is one in JavaScript.
'use strict';

const Redis = require('ioredis');

async function main(url, how) {
  const r = new Redis(url, { disableClientInfo: how === 'number' });
  r.on('error', (err) => console.error(String(err)));
  if ((await r.ping()) !== 'PONG') throw new Error('no PONG');
  const photo = (...ids) => ids.forEach((id) => console.log('photo', String(id)));
  photo(await r.incr('photo'));
  if (how !== 'number') {
    const pipeline = r.pipeline();
    for (let i = 0; i < 200; i++) pipeline.incr('photo');
    photo(...(await pipeline.exec()).map(([err, id]) => err || id));
    photo(await r.call('FIRN.NEXT', 'photo'));
    photo(...await r.call('FIRN.NEXT', 'photo', 50));
    console.log('orders', await r.incrby('orders', 10));
    console.log('orders', ...await r.call('FIRN.RANGE', 'orders', 5));
    await r.incr('photos').then(
      () => { throw new Error('a series that is not there gives ids'); },
      (err) => console.log('error', err.message));
  }
  r.disconnect();
}

main(...process.argv.slice(2)).catch((err) => {
  console.error(err);
  process.exit(1);
});
