/** An HTTP server that answers no request of a group until all of the group have arrived. */
import { createServer } from 'node:http';
import type { ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { gzipSync } from 'node:zlib';

export interface GateServer extends AsyncDisposable {
  readonly url: string;
}

/**
 * Routes:
 * - `/gate/<group>?of=<n>`: answers when n requests of the group wait; the answer is their number
 * - `/hold/<group>`: never answers
 * - `/seen/<group>`: `{arrived, waiting}` of a group
 * - `/gzip`, `/packed`, `/stream`, `/moved`, `/echo`: a compressed answer, one with its length, one in two pieces of which the second follows a `/gate`
 *   request for the group `stream`, a redirect, and the request as JSON
 */
export async function startGateServer(): Promise<GateServer> {
  const groups = new Map<string, { arrived: number; readonly waiting: Set<ServerResponse> }>();
  const groupOf = (name: string): { arrived: number; readonly waiting: Set<ServerResponse> } => {
    const known = groups.get(name) ?? { arrived: 0, waiting: new Set<ServerResponse>() };
    groups.set(name, known);
    return known;
  };
  // A connection that the server closes while a request is under way is lost; each test takes less than this.
  const server = createServer({ keepAliveTimeout: 300_000 }, (incoming, outgoing) => {
    const { pathname, searchParams } = new URL(incoming.url ?? '/', 'http://gate');
    const [, route, name = ''] = pathname.split('/');
    const group = groupOf(name);
    const enter = (): void => {
      group.arrived += 1;
      group.waiting.add(outgoing);
      outgoing.on('close', () => group.waiting.delete(outgoing));
    };
    switch (route) {
      case 'gate': {
        enter();
        const of = Number(searchParams.get('of'));
        if (group.waiting.size >= of) {
          const body = JSON.stringify({ waiting: of });
          for (const one of group.waiting) one.writeHead(200, { 'content-type': 'application/json' }).end(body);
        }
        return;
      }
      case 'hold':
        enter();
        return;
      case 'seen':
        outgoing.end(JSON.stringify({ arrived: group.arrived, waiting: group.waiting.size }));
        return;
      case 'gzip':
        outgoing.setHeader('content-encoding', 'gzip');
        // Without a length, so that it is streamed.
        outgoing.write(gzipSync('a compressed answer'));
        outgoing.end();
        return;
      case 'packed': {
        const packed = gzipSync('a compressed answer');
        outgoing.writeHead(200, { 'content-encoding': 'gzip', 'content-length': packed.byteLength }).end(packed);
        return;
      }
      case 'stream':
        outgoing.write('first ');
        group.waiting.add(outgoing);
        return;
      case 'finish':
        for (const one of group.waiting) one.end('second');
        outgoing.end();
        return;
      case 'moved':
        outgoing.writeHead(302, { location: '/echo' });
        outgoing.end();
        return;
      default: {
        const pieces: Buffer[] = [];
        incoming.on('data', (piece: Buffer) => pieces.push(piece));
        incoming.on('end', () => {
          const { method, headers } = incoming;
          outgoing.end(JSON.stringify({ method, headers, body: Buffer.concat(pieces).toString() }));
        });
      }
    }
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
