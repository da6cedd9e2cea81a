// SPDX-License-Identifier: Apache-2.0
// worker_threads with messages and shared memory, a wasm module, crypto on the thread pool.
'use strict';
const { Worker, isMainThread, parentPort, workerData } = require('worker_threads');
const crypto = require('crypto');
const { promisify } = require('util');

// (module (func (export "add") (param i32 i32) (result i32) local.get 0 local.get 1 i32.add))
const ADD = Buffer.from('0061736d0100000001070160027f7f017f0302010007070103616464'
  + '00000a09010700200020016a0b', 'hex');

function count(shared) {
  const counter = new Int32Array(shared);
  for (let i = 0; i < 1000; i++) Atomics.add(counter, 0, 1);
  parentPort.postMessage('done');
}

function ask(shared) {
  return new Promise((resolve, reject) => {
    const worker = new Worker(__filename, { workerData: shared });
    worker.once('message', resolve);
    worker.once('error', reject);
  });
}

async function main() {
  const shared = new SharedArrayBuffer(4);
  const answers = await Promise.all([1, 2, 3, 4].map(() => ask(shared)));
  console.log('workers', answers.join(' '), new Int32Array(shared)[0]);

  const { instance } = await WebAssembly.instantiate(ADD);
  console.log('wasm', instance.exports.add(40, 2));

  const pbkdf2 = promisify(crypto.pbkdf2);
  const keys = await Promise.all(['a', 'b'].map((p) => pbkdf2(p, 'salt', 1000, 8, 'sha256')));
  console.log('crypto', keys.map((k) => k.toString('hex')).join(' '));
  const { publicKey, privateKey } = crypto.generateKeyPairSync('ed25519');
  const signature = crypto.sign(null, Buffer.from('cay'), privateKey);
  console.log('signature', crypto.verify(null, Buffer.from('cay'), publicKey, signature));
  console.log('random', crypto.randomBytes(16).length, crypto.randomUUID().length);
}

if (isMainThread) main();
else count(workerData);
