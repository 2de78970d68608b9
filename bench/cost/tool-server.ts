/** An HTTP tool: `GET /{ms}?call=…` answers `{"q": …}` after that many milliseconds. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface CallServer extends AsyncDisposable {
  /** host:port */
  readonly host: string;
}

export async function startCallServer(): Promise<CallServer> {
  const server = createServer({ keepAliveTimeout: 60_000 }, (incoming, outgoing) => {
    const url = new URL(incoming.url ?? '/', 'http://tool');
    setTimeout(
      () => {
        outgoing.writeHead(200, { 'content-type': 'application/json' });
        outgoing.end(JSON.stringify({ q: url.searchParams.get('call') }));
      },
      Number(url.pathname.slice(1)),
    );
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    host: `127.0.0.1:${(server.address() as AddressInfo).port}`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
