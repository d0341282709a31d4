// Ids of a firn server through node-redis:
//
//   node node-redis.js redis://127.0.0.1:6380 photo 10
'use strict';

const { createClient } = require('redis');
const { Ids } = require('./ids.js');

async function main(url, series, count) {
  const client = createClient({ url });
  client.on('error', (err) => console.error(String(err)));
  await client.connect();
  const ids = new Ids((...words) => client.sendCommand(words), series);
  for (let i = 0; i < count; i++) console.log(await ids.next());
  client.destroy();
}

main(process.argv[2], process.argv[3], Number(process.argv[4])).catch((err) => {
  console.error(String(err));
  process.exit(1);
});
