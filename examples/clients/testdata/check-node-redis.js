// What a program does with node-redis, for the tests: each id it gets is a line.
// With "number" it does not say that it is one in JavaScript.
'use strict';

const { createClient } = require('redis');

async function main(url, how) {
  const r = createClient({ url, disableClientInfo: how === 'number', RESP: how === 'resp3' ? 3 : 2 });
  r.on('error', (err) => console.error(String(err)));
  await r.connect();
  if ((await r.ping()) !== 'PONG') throw new Error('no PONG');
  const photo = (...ids) => ids.forEach((id) => console.log('photo', String(id)));
  photo(await r.incr('photo'));
  if (how !== 'number') {
    photo(...await Promise.all(Array.from({ length: 200 }, () => r.incr('photo')))); // one pipeline
    photo(await r.sendCommand(['FIRN.NEXT', 'photo']));
    photo(...await r.sendCommand(['FIRN.NEXT', 'photo', '50']));
    console.log('orders', await r.incrBy('orders', 10));
    console.log('orders', ...await r.sendCommand(['FIRN.RANGE', 'orders', '5']));
    await r.incr('photos').then(
      () => { throw new Error('a series that is not there gives ids'); },
      (err) => console.log('error', err.message));
  }
  r.destroy();
}

main(...process.argv.slice(2)).catch((err) => {
  console.error(err);
  process.exit(1);
});
