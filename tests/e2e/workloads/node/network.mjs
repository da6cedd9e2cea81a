// SPDX-License-Identifier: Apache-2.0
// An ES module: http server and client, fetch, a unix socket, datagrams, all on this machine.
import http from 'node:http';
import net from 'node:net';
import dgram from 'node:dgram';
import { once } from 'node:events';

const server = http.createServer(async (request, response) => {
  let body = '';
  for await (const piece of request) body += piece;
  response.setHeader('x-method', request.method);
  response.end(`${request.url} ${body.length}`);
});
server.listen(0, '127.0.0.1');
await once(server, 'listening');
const { port } = server.address();

const request = http.request({ host: '127.0.0.1', port, path: '/client', method: 'POST' });
request.end('x'.repeat(100000));
const [response] = await once(request, 'response');
let text = '';
for await (const piece of response) text += piece;
console.log('http', response.statusCode, response.headers['x-method'], text);

const answers = await Promise.all([1, 2, 3].map((n) => fetch(`http://127.0.0.1:${port}/${n}`)));
console.log('fetch', (await Promise.all(answers.map((a) => a.text()))).join(', '));
server.closeAllConnections();
server.close();

const local = net.createServer((socket) => socket.end('local'));
local.listen('local.sock');
await once(local, 'listening');
const socket = net.connect('local.sock');
const [greeting] = await once(socket, 'data');
console.log('unix', greeting.toString());
local.close();

const udp = dgram.createSocket('udp4');
udp.bind(0, '127.0.0.1');
await once(udp, 'listening');
udp.send('ping', udp.address().port, '127.0.0.1');
const [datagram] = await once(udp, 'message');
console.log('udp', datagram.toString());
udp.close();
