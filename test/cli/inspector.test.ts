/** The guard of `cortex dev --inspect` (X1). */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Duplex } from 'node:stream';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { startInspector } from '../../cli/system/inspector.ts';
import type { Inspector } from '../../cli/system/inspector.ts';
import { sendRaw } from '../support/raw-http.ts';

/** As workerd's inspector: it accepts each WebSocket. */
const workerd = createServer();
let inspector: Inspector;
let port: number;
let path: string;
let reached: string[];

workerd.on('upgrade', (request: IncomingMessage, socket: Duplex) => {
  reached.push(request.url ?? '');
  socket.end('HTTP/1.1 101 Switching Protocols\r\n\r\nwelcome');
});

beforeEach(async () => {
  reached = [];
  if (!workerd.listening) await once(workerd.listen(0, '127.0.0.1'), 'listening');
  const upstream = { host: '127.0.0.1', port: (workerd.address() as AddressInfo).port };
  inspector = await startInspector(() => ({ upstream, path: '/core:user:x' }));
  const [host = '', secret = ''] = inspector.address.split('/');
  port = Number(host.split(':')[1]);
  path = `/${secret}`;
});

afterEach(() => {
  inspector.close();
  workerd.close();
});

async function open(target: string, headers: readonly string[]): ReturnType<typeof sendRaw> {
  const upgrade = ['Connection: Upgrade', 'Upgrade: websocket', 'Sec-WebSocket-Version: 13', 'Sec-WebSocket-Key: x'];
  return await sendRaw(port, [`GET ${target} HTTP/1.1`, ...headers, ...upgrade]);
}

describe('[X1] the inspector', () => {
  test.each([
    ['a debugger', ['Host: 127.0.0.1:1']],
    ['the page of Chrome', ['Host: localhost:1', 'Origin: devtools://devtools']],
  ])('passes %s that knows the path', async (_name, headers) => {
    expect(await open(path, headers)).toMatchObject({ status: 101, body: 'welcome' });
    expect(reached).toEqual(['/core:user:x']);
  });

  test.each([
    ['a web page', () => path, ['Host: 127.0.0.1:1', 'Origin: https://evil.example']],
    ['a page of this machine', () => path, ['Host: 127.0.0.1:1', 'Origin: http://localhost:3000']],
    ['a sandboxed page', () => path, ['Host: 127.0.0.1:1', 'Origin: null']],
    ['a rebound host', () => path, ['Host: evil.example:1']],
    ['a malformed host', () => path, ['Host: 127.0.0.1:x']],
    ['a client without the secret', () => '/', ['Host: 127.0.0.1:1']],
    ['a client that knows the path of workerd', () => '/core:user:x', ['Host: 127.0.0.1:1']],
    ['a client with another secret', () => `/${'0'.repeat(path.length - 1)}`, ['Host: 127.0.0.1:1']],
    ['a client with more than the secret', () => `${path}/`, ['Host: 127.0.0.1:1']],
  ])('refuses %s', async (_name, target, headers) => {
    expect(await open(target(), headers)).toMatchObject({ status: 403, body: '' });
    expect(reached).toEqual([]);
  });

  test.each(['/json', '/json/list', '/json/version', '/'])('tells nothing at %s', async (target) => {
    expect(await sendRaw(port, [`GET ${target} HTTP/1.1`, 'Host: 127.0.0.1', 'Connection: close'])).toMatchObject({
      status: 404,
    });
  });

  test('each start has another secret', async () => {
    const other = await startInspector(() => null);
    other.close();
    expect(other.address.split('/')[1]).toMatch(/^[0-9a-f]{32}$/);
    expect(other.address.split('/')[1]).not.toBe(path.slice(1));
  });
});
