// Ids of a firn server through ioredis:
//
//   node ioredis.js redis://127.0.0.1:6380 photo 10
'use strict';

const Redis = require('ioredis');
const { Ids } = require('./ids.js');

async function main(url, series, count) {
  const client = new Redis(url);
  client.on('error', (err) => console.error(String(err)));
  const ids = new Ids((...words) => client.call(...words), series);
  for (let i = 0; i < count; i++) console.log(await ids.next());
  client.disconnect();
}

main(process.argv[2], process.argv[3], Number(process.argv[4])).catch((err) => {
  console.error(String(err));
  process.exit(1);
});
