/** What keeps other users and web pages of this machine from each listener of a system (X1). */
import { once } from 'node:events';
import { statSync } from 'node:fs';
import { connect } from 'node:net';
import { dirname, join } from 'node:path';
import { expect, onTestFinished } from 'vitest';
import type { Listener } from './listeners.ts';
import { sendRaw } from './raw-http.ts';

/** The status of the answer to an upgrade to a WebSocket. */
export async function upgrade(port: number, path: string, headers: readonly string[]): Promise<string> {
  const lines = [
    `GET ${path} HTTP/1.1`,
    ...headers,
    'Connection: Upgrade',
    'Upgrade: websocket',
    'Sec-WebSocket-Version: 13',
    'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
  ];
  const socket = connect(port, '127.0.0.1');
  onTestFinished(() => void socket.destroy());
  socket.write(`${lines.join('\r\n')}\r\n\r\n`);
  const [chunk] = (await once(socket, 'data')) as [Buffer];
  return /^HTTP\/1\.1 \d{3}/.exec(chunk.toString('latin1'))?.[0] ?? '';
}

type Guard =
  | 'front'
  | 'runner'
  | 'secret of miniflare'
  | 'folder of this user'
  | 'secret of the inspector'
  | 'random address';

/** The guards of all listeners of a system. @throws Error for a listener without a known one */
export async function guardsOf(
  listeners: readonly Listener[],
  ports: { front: number; runner: number; state: string },
): Promise<Guard[]> {
  const guards: Guard[] = [];
  for (const listener of listeners) {
    const { command, type, address } = listener;
    const isHost = command.includes('cli/system/worker-host');
    const port = Number(/^127\.0\.0\.1:(\d+)$/.exec(address)?.[1] ?? Number.NaN);
    if (type === 'tcp' && isHost && port === ports.front) guards.push('front');
    else if (type === 'tcp' && command.includes('container-runner/main') && port === ports.runner)
      guards.push('runner');
    else if (type === 'tcp' && isHost && port > 0) guards.push(await secretOf(port));
    else if (type === 'unix' && command.includes('workerd') && address.startsWith(join(ports.state, 'sockets/'))) {
      expect(statSync(dirname(address)).mode & 0o077).toBe(0);
      guards.push('folder of this user');
    } else if (type === 'tcp' && command.includes('workerd') && /^127(\.[1-9]\d*){3}:\d+$/.test(address)) {
      guards.push('random address');
    } else throw new Error(`A listener without a known guard: ${JSON.stringify(listener)}`);
  }
  return guards.toSorted();
}

/** Two servers of the host have random ports, and both do nothing without their secret. */
async function secretOf(port: number): Promise<Guard> {
  const statuses = new Set<string>();
  const pages = ['Host: 127.0.0.1', 'Host: evil.example'];
  for (const host of pages) {
    for (const path of ['/', '/json', '/core/log', '/core/public-url', '/core/do-storage/x', '/core/store-temp-file']) {
      for (const method of ['GET', 'POST', 'DELETE']) {
        const lines = [
          `${method} ${path} HTTP/1.1`,
          host,
          'MF-Loopback-Secret: x',
          'Content-Length: 0',
          'Connection: close',
        ];
        statuses.add(String((await sendRaw(port, lines)).status));
      }
    }
    statuses.add(await upgrade(port, '/', [host]));
  }
  if (statuses.has('404')) {
    expect([...statuses]).toEqual(['404', 'HTTP/1.1 403']);
    return 'secret of the inspector';
  }
  expect([...statuses]).toEqual(['403', 'HTTP/1.1 403']);
  return 'secret of miniflare';
}
