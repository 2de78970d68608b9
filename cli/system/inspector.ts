/**
 * The V8 inspector of the Worker, for `cortex dev --inspect`. It runs any code in the Worker and reads its secrets, and workerd
 * does not authenticate. So web pages cannot reach its own address (private-workerd.ts), and this listener is in front of it.
 *
 * Invariants:
 * 1. Only a WebSocket to the path with the secret of this start passes. No answer contains the secret.
 * 2. A `Host` that is not a loopback address, and the `Origin` of a web page, are refused also with the secret.
 */
import { randomBytes, timingSafeEqual } from 'node:crypto';
import { createServer } from 'node:http';
import type { IncomingMessage, Server } from 'node:http';
import { connect } from 'node:net';
import type { AddressInfo } from 'node:net';
import type { Duplex } from 'node:stream';
import { isLoopbackName, nameOfHost } from '../../src/http/host.ts';
import type { Upstream } from './private-workerd.ts';

/** Begins the line of output that has the address. */
export const INSPECTOR_PREFIX = 'inspector:';

/** Pages that are part of a debugger. Other debuggers are programs and send no `Origin`. */
const DEBUGGERS: ReadonlySet<string> = new Set(['devtools://devtools', 'chrome-devtools://devtools']);

export interface Inspector {
  /** `host:port/path`, which contains the secret. */
  readonly address: string;
  close(): void;
}

/** @param target the listener of workerd's inspector now, and the path of the Worker; null while there is none */
export async function startInspector(
  target: () => { readonly upstream: Upstream; readonly path: string } | null,
): Promise<Inspector> {
  const secret = randomBytes(16).toString('hex');
  const open = new Set<Duplex>();
  const server = createServer((_request, response) => response.writeHead(404).end());
  server.on('upgrade', (request, socket, head) => {
    socket.on('error', () => socket.destroy());
    const found = target();
    if (!isAllowed(request, secret) || found === null) return void socket.end('HTTP/1.1 403 Forbidden\r\n\r\n');
    const { upstream, path } = found;
    const inner = 'socketPath' in upstream ? connect(upstream.socketPath) : connect(upstream.port, upstream.host);
    for (const side of [socket, inner]) open.add(side);
    inner.write(`GET ${path} HTTP/1.1\r\n${headersOf(request)}\r\n\r\n`);
    inner.write(head);
    socket.pipe(inner).pipe(socket);
    const end = (): void => {
      for (const side of [socket, inner]) {
        side.destroy();
        open.delete(side);
      }
    };
    for (const side of [socket, inner]) side.on('error', end).on('close', end);
    return undefined;
  });
  const port = await listen(server);
  return {
    address: `127.0.0.1:${port}/${secret}`,
    close: () => {
      server.close();
      for (const side of open) side.destroy();
    },
  };
}

function isAllowed({ url = '', headers: { host = '', origin } }: IncomingMessage, secret: string): boolean {
  const [given, expected] = [Buffer.from(url), Buffer.from(`/${secret}`)];
  const knows = given.length === expected.length && timingSafeEqual(given, expected);
  return knows && isLoopbackName(nameOfHost(host) ?? '') && (origin === undefined || DEBUGGERS.has(origin));
}

function headersOf({ rawHeaders }: IncomingMessage): string {
  const lines: string[] = [];
  for (let at = 0; at < rawHeaders.length; at += 2) lines.push(`${rawHeaders[at]}: ${rawHeaders[at + 1]}`);
  return lines.join('\r\n');
}

async function listen(server: Server): Promise<number> {
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject).listen(0, '127.0.0.1', resolve);
  });
  return (server.address() as AddressInfo).port;
}
