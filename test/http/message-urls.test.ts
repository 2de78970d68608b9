/** Messages with files that are fetched from a URL, through the session API (C2, X2). */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { gzipSync } from 'node:zlib';
import { describe, expect, test, vi } from 'vitest';
import { limits } from '../../src/domain/limits.ts';
import { createFileFetch } from '../../src/executors/outbound/file-fetch.ts';
import { OutboundError } from '../../src/domain/outbound-error.ts';
import type { OutboundOptions } from '../../src/executors/outbound/outbound.ts';
import { LargeBodies } from '../../src/http/large-bodies.ts';
import { SCOPES_HEADER } from '../../src/http/session-env.ts';
import { FairQueue, ThreadShare } from '../../src/domain/fair-queue.ts';
import { VirtualClock } from '../../testing/virtual-clock.ts';
import { instantClock } from '../../testing/instant-clock.ts';
import { checkedSession } from '../support/response-check.ts';
import { sessionKit, settle } from '../support/session-kit.ts';
import type { KitOptions, SessionKit } from '../support/session-kit.ts';

const PNG = Buffer.from('89504e470d0a1a0a0000000d49484452', 'hex');
const PRIVATE = ['10.1.2.3', '127.0.0.1', 'secret text', 'internal.corp'];

type Server = (url: string, init: RequestInit) => Response | Promise<Response>;

/** A session whose network is `server`. */
async function talk(server: Server, options: Partial<OutboundOptions> = {}, session: KitOptions = {}) {
  const kit = await sessionKit(session);
  const clock = new VirtualClock();
  const bodies = new LargeBodies(clock);
  /** URLs of all requests to the network. */
  const asked: string[] = [];
  /** Events of the operator's log. */
  const logged: string[] = [];
  const fetch = checkedSession({
    session: kit.session,
    clock,
    bodies,
    destroy: async () => undefined,
    log: (event) => void logged.push(event),
    fetchFile: createFileFetch({
      allowHosts: [],
      clock,
      ...options,
      fetch: async (url, init) => {
        asked.push(url);
        return await server(url, init);
      },
    }),
  });
  const send = async (content: unknown, headers: Record<string, string> = {}, signal: AbortSignal | null = null) => {
    const body = JSON.stringify({ content, stream: false });
    const response = await fetch(new Request('http://session/message', { method: 'POST', headers, body, signal }));
    return { status: response.status, body: (await response.json()) as Record<string, unknown> };
  };
  return { kit, clock, bodies, asked, logged, fetch, send };
}

const png = (headers: Record<string, string> = {}): Response => new Response(PNG, { headers });
const image = (url = 'https://example.com/chart.png'): object => ({ type: 'image', url });
const moved = (to: string): Response => new Response('secret text', { status: 302, headers: { location: to } });
/** A response whose body never arrives, until the signal ends it. */
const silent: Server = (_url, { signal }) =>
  new Promise((_resolve, reject) => signal?.addEventListener('abort', () => reject(signal.reason)));

function storedRows({ sql }: SessionKit): unknown {
  // An unused session has no tables.
  const tables = sql.exec(`SELECT name FROM sqlite_master WHERE name IN ('blobs', 'runs') ORDER BY name`);
  const count = (name: string): unknown =>
    tables.some((table) => table['name'] === name) ? sql.exec(`SELECT COUNT(*) AS n FROM ${name}`)[0]?.['n'] : 0;
  return { blobs: count('blobs'), runs: count('runs') };
}

/** The parts of the first message of the session. */
async function partsOf({ fetch }: Awaited<ReturnType<typeof talk>>): Promise<unknown> {
  const response = await fetch(new Request('http://session/history'));
  const { messages } = (await response.json()) as { messages: { parts?: unknown }[] };
  return messages[0]?.parts;
}

describe('[C2] a file that is given by a URL', () => {
  test('is fetched once, at admission, and is like any other file from then on', async () => {
    const system = await talk(() => png());
    expect(await system.send([{ type: 'text', text: 'What is this?' }, image()])).toMatchObject({ status: 200 });
    expect(system.asked).toEqual(['https://example.com/chart.png']);
    const [request] = system.kit.requests;
    expect(request?.messages.at(-1)?.content).toContain(`[image "chart.png", image/png, ${PNG.length} bytes]`);
    const [attached] = request?.messages.at(-1)?.attachments ?? [];
    expect(Buffer.from((await attached?.read()) ?? [])).toEqual(PNG);
    expect(storedRows(system.kit)).toEqual({ blobs: 1, runs: 1 });
    // The URL may hold a password; it is not stored.
    expect(JSON.stringify(system.kit.sql.exec(`SELECT * FROM runs`))).not.toContain('example.com');
  });

  test('parts keep their order, whichever arrives first', async () => {
    const system = await talk(async (url) => {
      for (let turn = 0; url.endsWith('a.txt') && turn < 50; turn += 1) await Promise.resolve();
      return new Response(`content of ${url}`);
    });
    const file = (name: string): object => ({ type: 'file', url: `https://example.com/${name}` });
    await system.send([
      file('a.txt'),
      { type: 'text', text: 'between' },
      file('b.txt'),
      { ...file('c'), name: 'c.txt' },
    ]);
    const names = ((await partsOf(system)) as { name?: string }[]).map(({ name }) => name);
    expect(names).toEqual(['a.txt', undefined, 'b.txt', 'c.txt']);
  });

  test.each<[string, string]>([
    ['https://example.com/a/b%20c.png?size=1#top', 'b c.png'],
    ['https://example.com/', 'image-1'],
    ['https://example.com/..%2F..%2Fetc%2Fpasswd', 'passwd'],
    ['https://example.com/a%5Cb.png', 'b.png'],
    ['https://example.com/a%0Ab%00%E2%80%AEgnp.png', 'abgnp.png'],
    ['https://example.com/%2e%2e', 'image-1'],
    ['https://example.com/%ff.png', '%ff.png'],
    [`https://example.com/${'x'.repeat(500)}`, 'x'.repeat(limits.fileNameChars)],
  ])('%.60s has the name %.60s', async (url, name) => {
    const system = await talk(() => png());
    expect(await system.send([image(url)])).toMatchObject({ status: 200 });
    expect(await partsOf(system)).toMatchObject([{ name }]);
  });

  test.each([
    ['that its bytes can have', 'text/csv; charset=utf-8', Buffer.from('a,b'), 'text/csv'],
    ['that its bytes contradict', 'image/jpeg', PNG, 'image/png'],
    ['that is none', 'nothing', PNG, 'image/png'],
  ])('a Content-Type %s', async (_case, contentType, bytes, expected) => {
    const system = await talk(() => new Response(new Uint8Array(bytes), { headers: { 'content-type': contentType } }));
    await system.send([{ type: 'file', url: 'https://example.com/data' }]);
    expect(await partsOf(system)).toMatchObject([{ media_type: expected, name: 'data' }]);
  });

  test('the type that the client states is checked as ever', async () => {
    const { send, kit } = await talk(() => png({ 'content-type': 'image/jpeg' }));
    const sent = await send([{ type: 'image', media_type: 'image/jpeg', url: 'https://example.com/a' }]);
    expect(sent).toMatchObject({ status: 400, body: { code: 'content_type_mismatch' } });
    expect(storedRows(kit)).toEqual({ blobs: 0, runs: 0 });
  });
});

describe('[C2] [X2] a URL that is refused', () => {
  test.each([
    ['http://169.254.169.254/latest', 'a cloud metadata address'],
    ['https://user:pass@example.com/a.png', 'a user name or password'],
    ['file:///etc/passwd', 'the scheme "file"'],
    ['/a.png', 'not an absolute URL'],
  ])('%j', async (url, why) => {
    const { send, asked, kit } = await talk(() => png());
    const sent = await send([{ type: 'text', text: 'a' }, image(url)]);
    expect(sent).toMatchObject({ status: 400, body: { code: 'url_refused' } });
    expect(sent.body['detail']).toMatch(/^"content\[1\]": the URL is not allowed: it /);
    expect(sent.body['detail']).toContain(why);
    expect(asked).toEqual([]);
    expect(storedRows(kit)).toEqual({ blobs: 0, runs: 0 });
  });

  test('a redirect to a private address, without naming it', async () => {
    const { send, asked } = await talk(() => moved('http://10.1.2.3/secret'));
    const sent = await send([image()]);
    expect(sent).toMatchObject({ status: 400, body: { code: 'url_refused' } });
    for (const text of PRIVATE) expect(JSON.stringify(sent.body)).not.toContain(text);
    expect(asked).toHaveLength(1);
  });

  test('with a token, a redirect to a host that the operator allows for tools', async () => {
    const { send, asked } = await talk(() => moved('http://images.internal:9000/a.png'), {
      allowHosts: ['images.internal:9000'],
    });
    const sent = await send([image()], { [SCOPES_HEADER]: 'message read' });
    expect(sent).toMatchObject({ status: 400, body: { code: 'url_refused' } });
    expect(asked).toHaveLength(1);
  });

  test('hosts that the operator allows for tools are for API keys, not for tokens', async () => {
    const url = 'http://images.internal:9000/a.png';
    const { send, asked } = await talk(() => png(), { allowHosts: ['images.internal:9000'] });
    const refused = await send([image(url)], { [SCOPES_HEADER]: 'message read' });
    expect(refused).toMatchObject({ status: 400, body: { code: 'url_refused' } });
    expect(refused.body['detail']).not.toContain('ALLOW_HOSTS');
    expect(asked).toEqual([]);
    expect(await send([image(url)])).toMatchObject({ status: 200 });
  });
});

describe('[C2] a URL that fails', () => {
  test.each<[string, Server, number, string, string]>([
    ['status 404', () => new Response('secret text', { status: 404 }), 502, 'url_failed', 'status 404'],
    ['a part of the file', () => new Response(PNG, { status: 206 }), 502, 'url_failed', 'status 206'],
    ['endless redirects', () => moved('/again'), 502, 'url_failed', 'more than 5 times'],
    ['a network error', () => Promise.reject(new Error('connect 10.1.2.3:443')), 502, 'url_failed', 'reached'],
    [
      'a broken body',
      () => new Response(new ReadableStream({ pull: (body) => body.error(new Error('reset by 10.1.2.3')) })),
      502,
      'url_failed',
      'ended early',
    ],
    ['an empty file', () => new Response(''), 400, 'invalid_content', 'empty'],
    ['no image', () => new Response('secret text'), 415, 'unsupported_media_type', 'text/plain'],
  ])('%s', async (_name, server, status, code, detail) => {
    const { send, kit, logged } = await talk(server);
    const sent = await send([{ type: 'image', data: PNG.toString('base64') }, image()]);
    expect(sent).toMatchObject({ status, body: { code } });
    expect(sent.body['detail']).toContain('"content[1]": ');
    expect(sent.body['detail']).toContain(detail);
    for (const text of PRIVATE) expect(JSON.stringify(sent.body)).not.toContain(text);
    expect(storedRows(kit)).toEqual({ blobs: 0, runs: 0 });
    // Callers choose the URLs; their servers are not a fault of the system.
    expect(logged).toEqual([]);
  });

  test('the body of an error is not read', async () => {
    let isCancelled = false;
    const { send } = await talk(
      () => new Response(new ReadableStream({ cancel: () => void (isCancelled = true) }), { status: 404 }),
    );
    expect(await send([image()])).toMatchObject({ body: { code: 'url_failed' } });
    expect(isCancelled).toBe(true);
  });

  test('a runner that cannot be reached', async () => {
    const unavailable = (): Promise<never> =>
      Promise.reject(new OutboundError('egress_unavailable', 'no runner at 10.1.2.3', true));
    const { send } = await talk(() => png(), { egress: { resolve: unavailable, send: unavailable } });
    const sent = await send([image()]);
    expect(sent).toMatchObject({ status: 503, body: { code: 'runner_unavailable' } });
    for (const text of PRIVATE) expect(JSON.stringify(sent.body)).not.toContain(text);
  });

  test('there is one deadline for all files of a message', async () => {
    const { send, clock, kit } = await talk((url, init) => (url.endsWith('1') ? png() : silent(url, init)));
    const sent = send([image('https://example.com/1'), image('https://example.com/2')]);
    await settle();
    clock.advance(limits.messageUrlsMs);
    expect(await sent).toMatchObject({ status: 504, body: { code: 'url_timeout' } });
    expect((await sent).body['detail']).toContain('"content[1]"');
    expect(clock.next).toBeNull();
    expect(storedRows(kit)).toEqual({ blobs: 0, runs: 0 });
  });

  test('the first failure ends the other transfers', async () => {
    const ended: unknown[] = [];
    const { send, clock } = await talk((url, init) => {
      if (url.endsWith('bad')) return new Response(null, { status: 500 });
      init.signal?.addEventListener('abort', () => ended.push(url));
      return silent(url, init);
    });
    const others = [1, 2].map((number) => image(`https://example.com/${number}`));
    const sent = await send([...others, image('https://example.com/bad')]);
    expect(sent).toMatchObject({ status: 502, body: { code: 'url_failed' } });
    expect(sent.body['detail']).toContain('"content[2]"');
    await settle();
    expect(ended).toEqual(['https://example.com/1', 'https://example.com/2']);
    expect(clock.next).toBeNull();
  });
});

describe('[C2] limits of files that are fetched', () => {
  test('at most 4 are fetched at a time', async () => {
    let running = 0;
    let most = 0;
    const { send, asked } = await talk(async () => {
      running += 1;
      most = Math.max(most, running);
      await new Promise((resolve) => setImmediate(resolve));
      running -= 1;
      return png();
    });
    const parts = Array.from({ length: limits.messageUrls }, (_, at) => image(`https://example.com/${at}`));
    expect(await send(parts)).toMatchObject({ status: 200 });
    expect(asked).toHaveLength(limits.messageUrls);
    expect(most).toBe(limits.messageUrlsAtOnce);
  });

  test.each<[string, unknown[], string]>([
    ['too many URLs', Array.from({ length: limits.messageUrls + 1 }, () => image()), 'at most 16 parts'],
    ['a long URL', [image(`https://example.com/${'a'.repeat(limits.messageUrlChars)}`)], '8192'],
    ['two sources', [{ ...image(), artifact: 'art_1' }], 'exactly one of'],
    ['an empty URL', [image('')], 'url'],
  ])('%s: nothing is fetched', async (_name, parts, detail) => {
    const { send, asked } = await talk(() => png());
    const sent = await send(parts);
    expect(sent).toMatchObject({ status: 400, body: { code: 'invalid_request' } });
    expect(sent.body['detail']).toContain(detail);
    expect(asked).toEqual([]);
  });

  test('tools that are refused cost no request', async () => {
    const { fetch, asked } = await talk(() => png());
    const body = JSON.stringify({ content: [image()], tools: [{ name: 'response' }] });
    const sent = await fetch(new Request('http://session/message', { method: 'POST', body }));
    expect(await sent.json()).toMatchObject({ code: 'invalid_client_tools' });
    expect(asked).toEqual([]);
  });

  test('a message with large files has the place of a large message until it is accepted', async () => {
    const rest = Promise.withResolvers<void>();
    const large = (): Response =>
      new Response(
        new ReadableStream({
          start: (body) => body.enqueue(new Uint8Array(limits.largeBodyBytes)),
          pull: async (body) => {
            body.enqueue(new Uint8Array(1));
            await rest.promise;
            body.close();
          },
        }),
      );
    const { send, bodies, clock, kit } = await talk(large);
    const sent = send([{ type: 'file', url: 'https://example.com/a' }]);
    await settle();
    const { session_id: session, owner } = kit.session.record;
    let isTaken = false;
    const other = bodies.hold({ session, owner }, async (place) => {
      await place.received(limits.largeBodyBytes + 1);
      isTaken = true;
    });
    await settle();
    expect(isTaken).toBe(false);
    rest.resolve();
    expect(await sent).toMatchObject({ status: 200 });
    clock.advance(limits.largeBodyPollMs);
    await other;
    expect(isTaken).toBe(true);
  });

  test('their bytes are charged to the session', async () => {
    const share = new ThreadShare(new FairQueue(instantClock()), () => null);
    const charge = vi.spyOn(share, 'charge');
    const { send } = await talk(() => png(), {}, { share });
    await send([image(), image('https://example.com/b.png')]);
    expect(charge).toHaveBeenCalledWith(PNG.length * limits.bodyByteSteps);
  });

  test('an error in another part costs no request', async () => {
    const { send, asked } = await talk(() => png());
    expect(await send([image(), { type: 'image', data: '###' }])).toMatchObject({ body: { code: 'invalid_content' } });
    expect(asked).toEqual([]);
  });

  test.each([
    ['a file', [{ type: 'file', url: 'https://example.com/a' }], limits.messagePartBytes],
    [
      'the files of a message together, also with those that came with it',
      [
        { type: 'file', name: 'a', data: Buffer.alloc(limits.messagePartBytes, 65).toString('base64') },
        { type: 'file', name: 'b', data: Buffer.alloc(limits.messagePartBytes - 65_536, 65).toString('base64') },
        { type: 'file', url: 'https://example.com/a' },
      ],
      65_536,
    ],
  ])('reading stops at the limit of %s', async (_name, parts, most) => {
    let served = 0;
    let isCancelled = false;
    const piece = new Uint8Array(32_768).fill(66);
    const endless = (): Response =>
      new Response(
        new ReadableStream({
          pull: (body) => {
            served += piece.length;
            body.enqueue(piece);
          },
          cancel: () => void (isCancelled = true),
        }),
      );
    const { send, kit } = await talk(endless);
    const sent = await send(parts);
    expect(sent).toMatchObject({ status: 413, body: { code: 'content_too_large' } });
    expect(sent.body['detail']).toMatch(new RegExp(`^"content\\[${parts.length - 1}\\]": the files? `));
    expect(isCancelled).toBe(true);
    expect(served).toBeLessThanOrEqual(most + 5 * piece.length);
    expect(storedRows(kit)).toEqual({ blobs: 0, runs: 0 });
  });

  test('a file of exactly the limit is complete', async () => {
    const system = await talk(() => new Response(new Uint8Array(limits.messagePartBytes).fill(65)));
    expect(await system.send([{ type: 'file', url: 'https://example.com/a' }])).toMatchObject({ status: 200 });
    expect(await partsOf(system)).toMatchObject([{ size: limits.messagePartBytes }]);
  });

  test('the number of messages that fetch is limited in a session', async () => {
    let isSilent = true;
    const { send, clock } = await talk((url, init) => (isSilent ? silent(url, init) : png()));
    const open = Array.from({ length: limits.fetchingMessages }, () => send([image()]));
    await settle();
    expect(await send([image()])).toMatchObject({ status: 429, body: { code: 'queue_full' } });
    clock.advance(limits.messageUrlsMs);
    for (const one of await Promise.all(open)) expect(one).toMatchObject({ body: { code: 'url_timeout' } });
    isSilent = false;
    expect(await send([image()])).toMatchObject({ status: 200 });
  });
});

describe('[C2] an Idempotency-Key of a message with a URL', () => {
  const key = { 'idempotency-key': 'k' };

  test('a repeated message is recognised before anything is fetched', async () => {
    let served = 0;
    const { send, asked } = await talk(() => new Response(`version ${(served += 1)}`));
    const message = [{ type: 'file', url: 'https://example.com/a.txt' }];
    const first = await send(message, key);
    const again = await send(message, key);
    expect([first.status, again.status]).toEqual([200, 200]);
    expect(again.body['run_id']).toBe(first.body['run_id']);
    expect(asked).toHaveLength(1);
  });

  test.each([
    ['another URL', [image('https://example.com/other.png')]],
    ['the same bytes as data', [{ type: 'image', name: 'chart.png', data: PNG.toString('base64') }]],
    ['another text', [{ type: 'text', text: 'other' }, image()]],
  ])('with %s it is refused, and nothing is fetched', async (_name, content) => {
    const { send, asked } = await talk(() => png());
    await send([image()], key);
    expect(await send(content, key)).toMatchObject({ status: 422, body: { code: 'idempotency_mismatch' } });
    expect(asked).toHaveLength(1);
  });

  test('used before for a message with data, it is refused as well', async () => {
    const { send, asked } = await talk(() => png());
    await send([{ type: 'image', name: 'chart.png', data: PNG.toString('base64') }], key);
    expect(await send([image()], key)).toMatchObject({ status: 422, body: { code: 'idempotency_mismatch' } });
    expect(asked).toEqual([]);
  });

  test('concurrent repeats fetch once and make one run', async () => {
    const server = Promise.withResolvers<Response>();
    const { send, asked, kit } = await talk(() => server.promise);
    const both = [send([image()], key), send([image()], key), send([image('https://example.com/other')], key)];
    await settle();
    server.resolve(png());
    const [first, second, other] = await Promise.all(both);
    expect(second?.body['run_id']).toBe(first?.body['run_id']);
    expect(other).toMatchObject({ status: 422, body: { code: 'idempotency_mismatch' } });
    expect(asked).toHaveLength(1);
    expect(kit.session.runCount).toBe(1);
  });

  test('a repeat that arrives while an earlier one fetches waits for it', async () => {
    let served = 0;
    const server = Promise.withResolvers<Response>();
    const { send, asked } = await talk(() =>
      (served += 1) === 1 ? new Response(null, { status: 503 }) : server.promise,
    );
    const both = [send([image()], key), send([image()], key)];
    expect(await both[0]).toMatchObject({ status: 502 });
    await settle();
    const third = send([image()], key);
    await settle();
    expect(asked).toHaveLength(2);
    server.resolve(png());
    expect((await third).body['run_id']).toBe((await both[1])?.body['run_id']);
    expect(asked).toHaveLength(2);
  });

  test('compares the tools of the message as well', async () => {
    const { fetch } = await talk(() => png());
    const post = (name: string): Promise<Response> => {
      const body = JSON.stringify({ content: [image()], tools: [{ name }], stream: false });
      return fetch(new Request('http://session/message', { method: 'POST', headers: key, body }));
    };
    expect([(await post('look_up')).status, (await post('look_up')).status]).toEqual([200, 200]);
    expect((await post('other')).status).toBe(422);
  });
});

describe('[C2] while files are fetched', () => {
  test('the session does its other work', async () => {
    const server = Promise.withResolvers<Response>();
    const { send, fetch, kit } = await talk(() => server.promise);
    const pending = send([image()]);
    await settle();
    expect(await send('first')).toMatchObject({ status: 200 });
    expect((await fetch(new Request('http://session/history'))).status).toBe(200);
    expect(kit.session.status).toBe('idle');
    server.resolve(png());
    const late = await pending;
    expect(late.status).toBe(200);
    expect(String(late.body['run_id'])).toMatch(/_2$/);
  });

  test('if_busy=reject holds before the transfer and after it', async () => {
    const model = Promise.withResolvers<void>();
    const server = Promise.withResolvers<Response>();
    const { fetch, asked, kit } = await talk(
      () => server.promise,
      {},
      {
        async *stream() {
          await model.promise;
          yield { type: 'text', text: '<response final="true">done</response>' };
          yield { type: 'finish', reason: 'stop' };
        },
      },
    );
    const post = (content: unknown, query = ''): Promise<Response> =>
      fetch(new Request(`http://session/message${query}`, { method: 'POST', body: JSON.stringify({ content }) }));
    const pending = post([image()], '?if_busy=reject');
    await settle();
    const running = await post('first');
    expect((await post([image()], '?if_busy=reject')).status).toBe(409);
    expect(asked).toHaveLength(1);
    server.resolve(png());
    expect((await pending).status).toBe(409);
    model.resolve();
    await running.text();
    expect(kit.session.runCount).toBe(1);
  });

  test('a client that leaves ends the transfer, and the message is not accepted', async () => {
    let ended = false;
    const { send, kit, clock } = await talk((url, init) => {
      init.signal?.addEventListener('abort', () => (ended = true));
      return silent(url, init);
    });
    const abort = new AbortController();
    const sent = send([image()], {}, abort.signal);
    await settle();
    abort.abort();
    expect(await sent).toMatchObject({ status: 502 });
    expect(ended).toBe(true);
    expect(clock.next).toBeNull();
    expect(storedRows(kit)).toEqual({ blobs: 0, runs: 0 });
  });

  test('a client that leaves at the last moment: the message is not accepted', async () => {
    const abort = new AbortController();
    const { send, kit } = await talk(
      () =>
        new Response(
          new ReadableStream({
            start: (body) => body.enqueue(PNG),
            pull: (body) => {
              abort.abort();
              body.close();
            },
          }),
        ),
    );
    expect(await send([image()], {}, abort.signal)).toMatchObject({ status: 502 });
    expect(storedRows(kit)).toEqual({ blobs: 0, runs: 0 });
  });

  test('a client that leaves after it: the message is not accepted', async () => {
    const { session } = await sessionKit();
    const abort = new AbortController();
    const fetch = async (): Promise<{ content: string; files: Map<string, Uint8Array> }> => {
      abort.abort();
      return { content: 'a', files: new Map() };
    };
    const request = { ifBusy: 'queue', tokens: false, idempotencyKey: null } as const;
    const pending = session.pendingMessage(request, { sent: '', files: new Map(), fetch }, abort.signal);
    await expect(pending).rejects.toMatchObject({ code: 'url_failed' });
    expect(session.runCount).toBe(0);
  });

  test('a session that is deleted ends the transfer: the session is unknown', async () => {
    const { send, kit, clock } = await talk(silent);
    await send('first');
    const sent = send([image()]);
    const waiting = [send([image()], { 'idempotency-key': 'k' }), send([image()], { 'idempotency-key': 'k' })];
    await settle();
    await kit.session.close('the session was deleted');
    for (const table of ['runs', 'events']) kit.sql.exec(`DROP TABLE ${table}`);
    for (const one of await Promise.all([sent, ...waiting])) {
      expect(one).toMatchObject({ status: 404, body: { code: 'unknown_session' } });
    }
    expect(clock.next).toBeNull();
  });
});

test('[C2] the limit of a file counts decompressed bytes', async () => {
  const bomb = gzipSync(Buffer.alloc(limits.messagePartBytes * 4));
  expect(bomb.length).toBeLessThan(65_536);
  const server = createServer((_request, response) =>
    response.writeHead(200, { 'content-encoding': 'gzip' }).end(bomb),
  );
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  const clock = { now: Date.now, schedule: () => () => undefined };
  const { send } = await talk((url, init) => fetch(url, init), { allowHosts: [host], clock });
  const sent = await send([{ type: 'file', url: `http://${host}/a.txt` }]);
  server.closeAllConnections();
  server.close();
  expect(sent).toMatchObject({ status: 413, body: { code: 'content_too_large' } });
});
