/** Tool requests that the runner sends to addresses which the Worker has checked (X2). */
import http from 'node:http';
import https from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib';

import { afterEach, beforeEach, describe, expect, test } from 'vitest';

import { createResolve } from '../../egress/resolve.ts';
import { createSender } from '../../egress/send.ts';
import { limits } from '../../limits.ts';
import { FakeSandbox } from '../support/fake-sandbox.ts';
import { resolversFor } from '../support/resolvers.ts';
import { PINNED_CERTIFICATE, PINNED_HOST, PINNED_KEY } from '../support/tls.ts';
import { signed, startRunner, type TestRunner } from '../support/test-runner.ts';
import { eventually } from '../../../test/support/eventually.ts';

interface Seen {
  readonly method: string | undefined;
  readonly url: string | undefined;
  readonly headers: http.IncomingHttpHeaders;
  readonly body: string;
  readonly socket: Socket;
}

let seen: Seen[];
let servers: http.Server[];
let runner: TestRunner;
let answers: Record<string, readonly string[] | Error>;

async function serve(
  handler: (request: http.IncomingMessage, response: http.ServerResponse) => void,
  options: { readonly tls?: boolean; readonly address?: string; readonly port?: number } = {},
): Promise<number> {
  const listener: http.RequestListener = (request, response) => {
    let body = '';
    request.on('data', (chunk) => (body += String(chunk)));
    request.on('end', () => {
      seen.push({ method: request.method, url: request.url, headers: request.headers, body, socket: request.socket });
      handler(request, response);
    });
  };
  const server =
    options.tls === true
      ? https.createServer({ cert: PINNED_CERTIFICATE, key: PINNED_KEY }, listener)
      : http.createServer(listener);
  servers.push(server);
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(options.port ?? 0, options.address ?? '127.0.0.1', resolve);
  });
  return (server.address() as AddressInfo).port;
}

beforeEach(async () => {
  seen = [];
  servers = [];
  answers = {};
  runner = await startRunner({
    sandboxes: [new FakeSandbox()],
    egressParts: {
      resolve: createResolve(resolversFor(answers)),
      sender: createSender({ interfaces: () => [], ca: PINNED_CERTIFICATE }),
    },
  });
});
afterEach(async () => {
  await runner.close();
  for (const server of servers) {
    server.closeAllConnections();
    server.close();
  }
});

type Body = Record<string, unknown>;
const request = (url: string, more: Body = {}): Body => ({
  session: 'ses_a',
  url,
  method: 'GET',
  headers: {},
  body: null,
  addresses: ['127.0.0.1'],
  timeout_ms: 10_000,
  max_bytes: 1_000_000,
  ...more,
});
const send = (url: string, more: Body = {}): Promise<Response> => runner.ask('POST', '/egress', request(url, more));

interface Head {
  readonly status: number;
  readonly headers: readonly (readonly [string, string])[];
}
function headOf(response: Response): Head {
  const text = response.headers.get('x-cortex-egress') ?? '';
  return JSON.parse(Buffer.from(text, 'base64url').toString('utf8')) as Head;
}

describe('a request', () => {
  test('[X2] goes to the address, with the name as its host; the answer is returned unchanged', async () => {
    const port = await serve((_, response) => {
      response.writeHead(
        418,
        'Tea',
        [
          ['set-cookie', 'a=1'],
          ['set-cookie', 'b=2'],
          ['connection', 'close'],
          ['location', 'http://127.0.0.1/'],
        ].flat(),
      );
      response.end('brewing');
    });
    const response = await send(`http://some.example:${port}/tea?x=1`, {
      method: 'POST',
      headers: { 'x-own': 'yes', 'content-type': 'text/plain' },
      body: 'wäter',
    });
    expect(response.status).toBe(200);
    const { status, headers } = headOf(response);
    expect(status).toBe(418);
    expect(headers).toEqual(
      expect.arrayContaining([
        ['set-cookie', 'a=1'],
        ['set-cookie', 'b=2'],
        ['location', 'http://127.0.0.1/'],
      ]),
    );
    expect(headers.map(([name]) => name)).not.toContain('connection');
    expect(await response.text()).toBe('brewing');
    expect(seen).toMatchObject([
      { method: 'POST', url: '/tea?x=1', body: 'wäter', headers: { host: `some.example:${port}`, 'x-own': 'yes' } },
    ]);
  });

  test('[X2] with TLS sends the name to the server and checks its certificate against the name', async () => {
    const port = await serve((_, response) => response.end('secret'), { tls: true });
    const good = await send(`https://${PINNED_HOST}:${port}/`);
    expect(await good.text()).toBe('secret');
    expect(seen[0]?.headers.host).toBe(`${PINNED_HOST}:${port}`);
    const wrong = await send(`https://other.example:${port}/`);
    expect(wrong.status).toBe(502);
    expect(await wrong.json()).toMatchObject({ code: 'egress_failed', before_dispatch: true });
    expect(seen.length).toBe(1);
  });

  test('[X2] uses the checked address, even if the name has another address by then', async () => {
    const inside = await serve((_, response) => response.end('inside'), { address: '127.0.0.2' });
    // the second lookup of the name would return a private address
    answers['rebind.example'] = ['127.0.0.1'];
    const resolved = await runner.ask('POST', '/egress/resolve', { session: 'ses_a', host: 'rebind.example' });
    const { addresses } = (await resolved.json()) as { readonly addresses: readonly string[] };
    expect(addresses).toEqual(['127.0.0.1']);
    answers['rebind.example'] = ['127.0.0.2'];
    const response = await send(`http://rebind.example:${inside}/`, { addresses });
    expect(response.status).toBe(502);
    expect(await response.json()).toMatchObject({ code: 'egress_failed', before_dispatch: true });
    expect(seen).toEqual([]);
  });

  test('[X2] tries each checked address, and no other', async () => {
    const port = await serve((_, response) => response.end('second'));
    const response = await send(`http://some.example:${port}/`, { addresses: ['127.0.0.3', '::1', '127.0.0.1'] });
    expect(await response.text()).toBe('second');
  });

  test('[X2] reuses a connection only for the same session, name and addresses', async () => {
    const port = await serve((_, response) => response.end('x'), { address: '0.0.0.0' });
    const at = `http://some.example:${port}/`;
    for (const more of [
      {},
      {},
      { session: 'ses_b' },
      { addresses: ['127.0.0.2'] },
      { url: `http://other.example:${port}/` },
    ]) {
      await (await send(at, more)).text();
      // an answer that was read returns its connection in the next turn
      await new Promise(setImmediate);
    }
    const [first, second, ...others] = seen.map(({ socket }) => socket);
    expect(second).toBe(first);
    expect(new Set(others).size).toBe(others.length);
    expect(others).not.toContain(first);
    expect(seen.map(({ socket }) => socket.localAddress)[3]).toBe('127.0.0.2');
  });

  test('[X2] that must not be sent twice gets a new connection', async () => {
    const port = await serve((_, response) => response.end('x'));
    for (const method of ['GET', 'POST', 'POST']) {
      await (await send(`http://some.example:${port}/`, { method, body: method === 'GET' ? null : 'x' })).text();
    }
    expect(new Set(seen.map(({ socket }) => socket)).size).toBe(3);
  });

  test.each([
    ['gzip', gzipSync],
    ['deflate', deflateSync],
    ['br', brotliCompressSync],
  ])('[X2] with an answer in %s returns the decoded content', async (encoding, compress) => {
    const port = await serve((_, response) => {
      response.writeHead(200, { 'content-encoding': encoding }).end(compress('text '.repeat(1_000)));
    });
    const response = await send(`http://some.example:${port}/`);
    expect(await response.text()).toBe('text '.repeat(1_000));
    expect(headOf(response).headers.map(([name]) => name)).not.toContain('content-encoding');
  });

  test.each(['gzip', 'br'])('[X2] with HEAD has no body, even with the encoding %s', async (encoding) => {
    const port = await serve((_, response) => {
      response.writeHead(200, { 'content-encoding': encoding }).end();
    });
    const response = await send(`http://some.example:${port}/`, { method: 'HEAD' });
    expect(headOf(response).status).toBe(200);
    expect(await response.text()).toBe('');
  });

  test('[X2] has a size limit for its answer, counted after decompression', async () => {
    const bomb = gzipSync(Buffer.alloc(200_000_000));
    const port = await serve((_, response) => {
      response.writeHead(200, { 'content-encoding': 'gzip' }).end(bomb);
    });
    const response = await send(`http://some.example:${port}/`, { max_bytes: 100_000 });
    expect((await response.arrayBuffer()).byteLength).toBe(100_000);
    await eventually(() => expect(seen[0]?.socket.destroyed).toBe(true));
  });

  test('[X2] with an endless answer is cut off at the limit, and the connection is closed', async () => {
    const port = await serve((_, response) => {
      const more = (): void => {
        while (response.write('x'.repeat(10_000)));
        response.once('drain', more);
      };
      more();
    });
    expect((await (await send(`http://some.example:${port}/`, { max_bytes: 50_000 })).text()).length).toBe(50_000);
    await eventually(() => expect(seen[0]?.socket.destroyed).toBe(true));
  });

  test('[X2] with an incomplete answer fails', async () => {
    const port = await serve((_, response) => {
      response.writeHead(200, { 'content-length': '100' });
      response.write('half');
      setImmediate(() => response.destroy());
    });
    const response = await send(`http://some.example:${port}/`);
    await expect(response.text()).rejects.toThrow();
  });

  test('[X2] has a time limit, before and during its answer', async () => {
    const port = await serve((asked, response) => {
      if (asked.url === '/slow') response.write('begun');
    });
    const silent = await send(`http://some.example:${port}/`, { timeout_ms: 100 });
    expect(silent.status).toBe(504);
    expect(await silent.json()).toMatchObject({ code: 'egress_timeout' });
    const slow = await send(`http://some.example:${port}/slow`, { timeout_ms: 300 });
    await expect(slow.text()).rejects.toThrow();
  });

  test('[X2] ends when its caller disconnects', async () => {
    const port = await serve(() => undefined);
    const abort = new AbortController();
    const asked = fetch(
      await signed(runner.url, 'POST', '/egress', JSON.stringify(request(`http://some.example:${port}/`))),
      { signal: abort.signal },
    );
    await eventually(() => expect(seen.length).toBe(1));
    abort.abort();
    await expect(asked).rejects.toThrow();
    await eventually(() => expect(seen[0]?.socket.destroyed).toBe(true));
  });

  test('[X2] that the server has not accepted is reported as not sent', async () => {
    const port = await serve(() => undefined);
    for (const server of servers.splice(0)) server.close();
    const response = await send(`http://some.example:${port}/`);
    expect(response.status).toBe(502);
    expect(await response.json()).toMatchObject({ code: 'egress_failed', before_dispatch: true });
  });

  test('[X2] that the server has cut off is reported as possibly sent', async () => {
    const port = await serve((asked) => asked.socket.destroy());
    const response = await send(`http://some.example:${port}/`, { method: 'POST', body: 'x' });
    expect(await response.json()).toMatchObject({ code: 'egress_failed', before_dispatch: false });
  });

  test.each<readonly [string, Body]>([
    ['no addresses', { addresses: [] }],
    ['a name as an address', { addresses: ['localhost'] }],
    ['another protocol', { url: 'ftp://some.example/' }],
    ['no URL', { url: 'x' }],
    ['its own host header', { headers: { host: 'inside' } }],
    ['its own length header', { headers: { 'Content-Length': '1' } }],
    ['its own transfer encoding', { headers: { 'transfer-encoding': 'chunked' } }],
    ['an upgrade', { headers: { upgrade: 'websocket' } }],
    ['a line break in a header', { headers: { 'x-a': 'b\r\nhost: inside' } }],
    ['an invalid header name', { headers: { 'x a': 'b' } }],
    ['too many headers', { headers: Object.fromEntries(Array.from({ length: 65 }, (_, at) => [`x-${at}`, '1'])) }],
    ['CONNECT', { method: 'CONNECT' }],
    ['a socket', { socketPath: '/var/run/docker.sock' }],
    ['a timeout of zero', { timeout_ms: 0 }],
    ['a size past the maximum', { max_bytes: limits.egressBytes + 1 }],
  ])('[X2] with %s is refused', async (_, more) => {
    const response = await send('http://some.example/', more);
    expect(response.status).toBe(400);
    expect(await response.json()).toMatchObject({ code: 'invalid_request' });
  });

  test('[R8] is refused if all places are used, counted per session', async () => {
    const port = await serve(() => undefined);
    const abort = new AbortController();
    const body = JSON.stringify(request(`http://some.example:${port}/`));
    const waiting = Array.from({ length: limits.egressPerSession }, async () =>
      fetch(await signed(runner.url, 'POST', '/egress', body), { signal: abort.signal }).catch(() => null),
    );
    await eventually(() => expect(seen.length).toBe(limits.egressPerSession));
    const refused = await send(`http://some.example:${port}/`);
    expect(refused.status).toBe(429);
    expect(refused.headers.get('retry-after')).toBe('1');
    answers['some.example'] = ['192.0.2.1'];
    expect((await runner.ask('POST', '/egress/resolve', { session: 'ses_b', host: 'some.example' })).status).toBe(200);
    abort.abort();
    await Promise.all(waiting);
    await eventually(async () =>
      expect((await runner.ask('POST', '/egress/resolve', { session: 'ses_a', host: 'some.example' })).status).toBe(
        200,
      ),
    );
  });

  test('[R8] of one tenant leaves places for the others', async () => {
    const port = await serve(() => undefined);
    const abort = new AbortController();
    const ask = async (tenant: string, session: string): Promise<number> =>
      (
        await fetch(
          await signed(
            runner.url,
            'POST',
            `/egress?tenant=${tenant}`,
            JSON.stringify(request(`http://some.example:${port}/`, { session })),
          ),
          { signal: abort.signal },
        ).catch(() => ({ status: 0 }))
      ).status;
    const refused: number[] = [];
    const all = Array.from({ length: limits.egressRunning }, async (_, at) => {
      const status = await ask('greedy', `ses_${at % 16}`);
      if (status !== 0) refused.push(status);
    });
    await eventually(() => expect(refused.length).toBe(limits.egressRunning / 2));
    expect(new Set(refused)).toEqual(new Set([429]));
    const other = ask('modest', 'ses_other');
    await eventually(() => expect(seen.length).toBe(limits.egressRunning / 2 + 1));
    abort.abort();
    await Promise.all([...all, other]);
  });

  test('[X2] is refused if the operator has switched it off', async () => {
    const off = await startRunner({ sandboxes: [new FakeSandbox()], egress: false });
    const response = await off.ask('POST', '/egress', request('http://some.example/'));
    expect([response.status, ((await response.json()) as { code: string }).code]).toEqual([403, 'egress_off']);
    await off.close();
  });
});
