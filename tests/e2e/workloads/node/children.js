// SPDX-License-Identifier: Apache-2.0
// child_process in every form, signals and the event loop.
'use strict';
const { execFileSync, exec, fork, spawn, spawnSync } = require('child_process');

if (process.argv[2] === 'child') {
  process.on('message', (n) => process.send(n * 2, () => process.disconnect()));
} else {
  main();
}

function run(command) {
  return new Promise((resolve) => {
    exec(command, (error, stdout) => resolve([error ? error.code : 0, stdout.trim()]));
  });
}

function pipe(text) {
  return new Promise((resolve) => {
    const child = spawn('tr', ['a-z', 'A-Z']);
    let out = '';
    child.stdout.on('data', (piece) => { out += piece; });
    child.on('close', (code) => resolve(`${out} ${code}`));
    child.stdin.end(text);
  });
}

function kill() {
  return new Promise((resolve) => {
    const child = spawn('sleep', ['60']);
    child.on('exit', (code, signal) => resolve(signal));
    child.kill('SIGTERM');
  });
}

function double(n) {
  return new Promise((resolve) => {
    const child = fork(__filename, ['child']);
    child.on('message', resolve);
    child.send(n);
  });
}

async function main() {
  console.log('exec', ...(await run('echo $((6 * 7)); exit 3')));
  console.log('spawn', await pipe('sand'));
  console.log('kill', await kill());
  console.log('fork', await double(21));
  console.log('sync', execFileSync('printf', ['%s-%s', 'a', 'b']).toString());
  console.log('missing', spawnSync('no-such-program').error.code);
  console.log('timers', await new Promise((resolve) => setTimeout(() => resolve('fired'), 20)));
}
