// SPDX-License-Identifier: Apache-2.0
// fs: copies, streams through gzip, a watcher, links, recursive folders.
'use strict';
const fs = require('fs');
const path = require('path');
const crypto = require('crypto');
const zlib = require('zlib');
const { pipeline } = require('stream/promises');

const top = fs.mkdtempSync(path.join(process.cwd(), 'files-'));
const at = (name) => path.join(top, name);
const digest = (name) =>
  crypto.createHash('sha256').update(fs.readFileSync(at(name))).digest('hex').slice(0, 16);

async function copies() {
  fs.writeFileSync(at('a'), Buffer.alloc(3 << 20, 'cay'));
  fs.copyFileSync(at('a'), at('b'));
  await fs.promises.copyFile(at('a'), at('c'), fs.constants.COPYFILE_EXCL);
  fs.cpSync(top, at('../copy-of-files'), { recursive: true });
  console.log('copies', digest('a'), digest('b') === digest('a'), digest('c') === digest('a'),
    fs.readdirSync(at('../copy-of-files')).join(' '));
  fs.rmSync(at('../copy-of-files'), { recursive: true });
}

async function streams() {
  const read = (name) => fs.createReadStream(at(name));
  const write = (name) => fs.createWriteStream(at(name));
  await pipeline(read('a'), zlib.createGzip(), write('a.gz'));
  await pipeline(read('a.gz'), zlib.createGunzip(), write('d'));
  console.log('streams', digest('d') === digest('a'), fs.statSync(at('a.gz')).size < 100000);
}

function watch() {
  return new Promise((resolve) => {
    const again = setInterval(() => fs.writeFileSync(at('watched'), 'x'), 50);
    const watcher = fs.watch(top, (event, name) => {
      clearInterval(again);
      watcher.close();
      resolve(name);
    });
  });
}

function links() {
  fs.mkdirSync(at('x/y/z'), { recursive: true });
  fs.symlinkSync('../a', at('x/link'));
  fs.linkSync(at('a'), at('x/hard'));
  fs.renameSync(at('b'), at('x/y/z/b'));
  fs.chmodSync(at('c'), 0o640);
  fs.truncateSync(at('c'), 10);
  const mode = (fs.statSync(at('c')).mode & 0o777).toString(8);
  console.log('links', fs.readlinkSync(at('x/link')), fs.statSync(at('a')).nlink, mode,
    fs.statSync(at('c')).size, fs.existsSync(at('b')), fs.accessSync(at('x/y/z/b')) === undefined);
}

async function main() {
  await copies();
  await streams();
  console.log('watch', await watch());
  links();
  fs.rmSync(top, { recursive: true });
  console.log('gone', !fs.existsSync(top));
}

main();
