/**
 * A proxy between a client and the system, with a bad connection: it cuts streams of events after some events and at an
 * interval, in the middle of a frame where it can, lets them fall silent, and loses answers. While the system is away, it
 * drops connections.
 */
import { once } from 'node:events';
import { createServer, request } from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface ProxiedRequest {
  readonly method: string;
  /** With its query. */
  readonly path: string;
  /** From 0, in the order of arrival. */
  readonly number: number;
}

export interface CuttingProxyOptions {
  /** Base URL of the system. */
  readonly target: string;
  /** Milliseconds; all open streams are cut at this interval. */
  readonly everyMs?: number;
  /** How many events a stream may have until it is cut, at least 1; null: any number. */
  readonly eventsOf?: (request: ProxiedRequest) => number | null;
  /** Whether such a stream falls silent instead: it stays open, and nothing more arrives. */
  readonly isSilenced?: (request: ProxiedRequest) => boolean;
  /** Whether the request arrives, but its answer does not. */
  readonly loses?: (request: ProxiedRequest) => boolean;
}

export interface CuttingProxy extends AsyncDisposable {
  /** Base URL for the client. */
  readonly url: string;
  readonly requests: readonly ProxiedRequest[];
  /** Number of streams that were cut or silenced. */
  readonly cuts: () => number;
}

export async function startCuttingProxy(options: CuttingProxyOptions): Promise<CuttingProxy> {
  const { target, everyMs, eventsOf = (): null => null, loses = (): boolean => false } = options;
  const { isSilenced = (): boolean => false } = options;
  const requests: ProxiedRequest[] = [];
  /** Answers that are streams of events. */
  const streams = new Set<ServerResponse>();
  let cuts = 0;
  const cut = (answer: ServerResponse): void => {
    if (streams.delete(answer)) cuts += 1;
    answer.destroy();
  };

  const forward = (incoming: IncomingMessage, outgoing: ServerResponse): void => {
    const { method = 'GET', url: path = '/', headers } = incoming;
    const seen: ProxiedRequest = { method, path, number: requests.length };
    requests.push(seen);
    const upstream = request(`${target}${path}`, { method, headers, agent: false });
    upstream.on('error', () => cut(outgoing));
    outgoing.on('close', () => {
      streams.delete(outgoing);
      upstream.destroy();
    });
    upstream.on('response', (answer) => {
      answer.on('error', () => cut(outgoing));
      if (loses(seen)) return cut(outgoing);
      outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
      outgoing.flushHeaders();
      if (!(answer.headers['content-type'] ?? '').startsWith('text/event-stream')) return void answer.pipe(outgoing);
      streams.add(outgoing);
      const most = eventsOf(seen);
      let left = most ?? Infinity;
      answer.on('data', (chunk: Buffer) => {
        if (left <= 0) return;
        const end = endOf(chunk, left);
        left -= end.frames;
        if (left > 0) return void outgoing.write(chunk);
        if (isSilenced(seen)) {
          cuts += 1;
          return void outgoing.write(chunk.subarray(0, end.at));
        }
        // A part of the next frame as well, if there is one; flushed before the connection is destroyed.
        const rest = Math.floor((chunk.length - end.at) / 2);
        outgoing.write(chunk.subarray(0, end.at + rest), () => cut(outgoing));
        answer.destroy();
      });
      answer.on('end', () => {
        if (left > 0) outgoing.end();
      });
      return undefined;
    });
    incoming.pipe(upstream);
  };

  const server = createServer(forward).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const timer = everyMs === undefined ? null : setInterval(() => [...streams].forEach(cut), everyMs);
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    cuts: () => cuts,
    async [Symbol.asyncDispose]() {
      if (timer !== null) clearInterval(timer);
      server.closeAllConnections();
      await new Promise((resolve) => {
        server.close(resolve);
      });
    },
  };
}

/** The end of the last wanted frame in a chunk, and the number of frames up to there. Frames of the system are in one chunk. */
function endOf(chunk: Buffer, wanted: number): { readonly at: number; readonly frames: number } {
  let at = 0;
  let frames = 0;
  while (frames < wanted) {
    const end = chunk.indexOf('\n\n', at);
    if (end === -1) break;
    at = end + 2;
    frames += 1;
  }
  return { at, frames };
}
