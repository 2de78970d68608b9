/** HTTP servers of the tests, on the loopback interface. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface LoopbackServer {
  /** host:port, for the list of allowed hosts. */
  readonly host: string;
  /** Base URL without a path. */
  readonly origin: string;
  /** Also ends open connections. */
  readonly close: () => Promise<void>;
}

/** @param port default: a free one */
export async function listenOnLoopback(listener: RequestListener, port = 0): Promise<LoopbackServer> {
  const server = createServer(listener).listen(port, '127.0.0.1');
  await once(server, 'listening');
  const host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    host,
    origin: `http://${host}`,
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => {
        server.close(resolve);
      });
    },
  };
}

/** The URL of a port on which no server listens: connections are refused. */
export async function closedAddress(): Promise<string> {
  const server = await listenOnLoopback(() => undefined);
  await server.close();
  return `${server.origin}/mcp`;
}
