'use strict';
// Inserts rows by the model of the README, and prints their ids: rows.js N
const { db, Photo } = require('../model');

(async () => {
  const n = Number(process.argv[2]);
  for (let i = 0; i < n / 2; i++) {
    console.log((await Photo.create({ name: `photo ${i}` })).id);
  }
  const many = Array.from({ length: n / 2 }, (_, i) => ({ name: `photo ${n / 2 + i}` }));
  for (const photo of await Photo.bulkCreate(many)) console.log(photo.id);
  await db.close();
})();
