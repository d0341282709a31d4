'use strict';
// Builds the addon with the C compiler, at npm install. It needs node_api.h, which most installations of Node have beside them.
// Node-API is stable: the headers may be of another version than the node that runs.
const { spawnSync } = require('node:child_process');
const { existsSync, mkdirSync } = require('node:fs');
const { homedir } = require('node:os');
const { dirname, join } = require('node:path');

function fail(text) {
  console.error(`firn-page: ${text}`);
  process.exit(1);
}

const { npm_config_nodedir: nodedir, CC: cc = 'cc' } = process.env;
const includes = [
  ...(nodedir ? [join(nodedir, 'include/node'), join(nodedir, 'src')] : []),
  join(dirname(process.execPath), '../include/node'),
  '/usr/include/nodejs/src', // Debian's libnode-dev
  join(homedir(), '.cache/node-gyp', process.versions.node, 'include/node'),
];
const include = includes.find((dir) => existsSync(join(dir, 'node_api.h')));
if (!include) {
  fail(`node_api.h is in none of ${includes.join(', ')}: install the headers of Node (apt-get install libnode-dev, or npx node-gyp install), or set npm_config_nodedir to the directory that has include/node`);
}
const firn = [__dirname, join(__dirname, '../c')].find((dir) => existsSync(join(dir, 'firn.h')));
if (!firn) {
  fail('firn.h is missing: pack it with npm pack in firn\'s clients/node');
}
mkdirSync(join(__dirname, 'build'), { recursive: true });
const { status, error } = spawnSync(cc, [
  '-std=gnu11', '-O2', '-Wall', '-shared', '-fPIC', '-fvisibility=hidden', '-I', firn, '-I', include, '-o', join(__dirname, 'build/firn.node'), join(__dirname, 'src/addon.c'),
], { stdio: 'inherit' });
if (error) {
  fail(`${cc}: ${error.message}: install a C compiler (apt-get install gcc libc6-dev), or set CC`);
}
if (status !== 0) {
  fail(`${cc} failed: its message is above`);
}
