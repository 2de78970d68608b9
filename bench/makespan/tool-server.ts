/** An HTTP tool that records its calls by path, and answers after `?ms=`; default: at once. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface ToolServer extends AsyncDisposable {
  /** host:port, for the list of allowed hosts. */
  readonly host: string;
  readonly url: string;
  /** Time of the first call of this path, and number of calls. */
  seen(path: string): { readonly at: number; readonly calls: number } | null;
}

export async function startToolServer(): Promise<ToolServer> {
  const hits = new Map<string, { at: number; calls: number }>();
  const server = createServer((incoming, outgoing) => {
    const at = performance.now();
    const path = incoming.url ?? '';
    const delayMs = Number(new URL(path, 'http://tool').searchParams.get('ms'));
    const hit = hits.get(path);
    if (hit === undefined) hits.set(path, { at, calls: 1 });
    else hit.calls += 1;
    if (delayMs > 0) setTimeout(() => outgoing.end('ok'), delayMs);
    else outgoing.end('ok');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    host,
    url: `http://${host}`,
    seen: (path) => hits.get(path) ?? null,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
