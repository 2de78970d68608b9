/** Requests of tools that a runner sends (X2): the Worker's requests to it, and a real runner with test host names. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { SECRET } from '../../../container-runner/test/support/test-runner.ts';
import { limits } from '../../../src/domain/limits.ts';
import { parseEgress } from '../../../src/executors/outbound/egress-choice.ts';
import { createRunnerEgress } from '../../../src/executors/outbound/egress.ts';
import type { Egress, RunnerEgressOptions } from '../../../src/executors/outbound/egress.ts';
import { createOutboundFetch } from '../../../src/executors/outbound/outbound.ts';
import { VirtualClock } from '../../../testing/virtual-clock.ts';
import { PUBLIC, publicNames } from '../../support/public-names.ts';
import type { PublicNames } from '../../support/public-names.ts';

const KEY = { id: null, secret: SECRET };
const signal = new AbortController().signal;
let nonces = 0;

function egressWith(options: Partial<RunnerEgressOptions>): Egress {
  return createRunnerEgress({
    runners: [{ url: 'http://runner-a', labels: [] }],
    key: KEY,
    fetch: () => Promise.reject(new Error('no network')),
    clock: new VirtualClock(),
    newNonce: () => `nonce-of-the-tests-${(nonces += 1)}`,
    session: () => 'ses_a',
    ...options,
  });
}

type Answer = Response | Error;
/** Runners that return the given answers in order. */
function runnersWith(answers: Readonly<Record<string, readonly Answer[]>>) {
  const asked: { readonly url: string; readonly body: Record<string, unknown>; readonly token: string }[] = [];
  const left = new Map(Object.entries(answers).map(([host, list]) => [host, [...list]]));
  const clock = new VirtualClock();
  const egress = egressWith({
    clock,
    runners: Object.keys(answers).map((host) => ({ url: `http://${host}`, labels: [] })),
    fetch: (input, init) => {
      const url = new URL(input);
      asked.push({
        url: input,
        body: JSON.parse(String(init.body)) as Record<string, unknown>,
        token: new Headers(init.headers).get('authorization') ?? '',
      });
      const answer = left.get(url.hostname)?.shift() ?? new Error('nothing left');
      return answer instanceof Error ? Promise.reject(answer) : Promise.resolve(answer);
    },
  });
  return { asked, egress, clock };
}

const addresses = (...list: readonly string[]): Response => Response.json({ addresses: list });
const problem = (status: number, code: string, more = {}): Response =>
  Response.json({ code, detail: `said ${code}`, ...more }, { status });
const head = (value: unknown): Record<string, string> => ({
  'x-cortex-egress': Buffer.from(JSON.stringify(value)).toString('base64url'),
});
const request = {
  url: new URL('https://x.example.com/a?b=c'),
  method: 'POST',
  headers: new Headers({ 'x-a': 'b', host: 'inside', 'accept-encoding': 'zstd', 'content-length': '7' }),
  body: '{}',
  signal,
  timeoutMs: 1_000,
  maxBytes: 2_000,
};

describe('names', () => {
  test('[X2] are resolved with a signed request, and cached for a short time', async () => {
    const { egress, asked, clock } = runnersWith({ a: [addresses('192.0.2.1'), addresses('192.0.2.2')] });
    expect(await egress.resolve('x.example.com', signal)).toEqual(['192.0.2.1']);
    expect(await egress.resolve('x.example.com', signal)).toEqual(['192.0.2.1']);
    expect(asked.map(({ url, body }) => [url, body])).toEqual([
      ['http://a/egress/resolve', { session: 'ses_a', host: 'x.example.com' }],
    ]);
    expect(asked[0]?.token).toMatch(/^Bearer ey/);
    clock.advance(limits.egressNameMs + 1);
    expect(await egress.resolve('x.example.com', signal)).toEqual(['192.0.2.2']);
  });

  test('[R8] are resolved in the name of the API key if several keys share the runners', async () => {
    const asked: string[] = [];
    const fetchIt = (input: string): Promise<Response> => {
      asked.push(input);
      return Promise.resolve(addresses('192.0.2.1'));
    };
    for (const tenant of ['ann & co', null]) {
      await egressWith({ fetch: fetchIt, tenant: () => tenant }).resolve('x.example.com', signal);
    }
    expect(asked).toEqual(['http://runner-a/egress/resolve?tenant=ann+%26+co', 'http://runner-a/egress/resolve']);
  });

  test('[X2] without an address fail before anything is sent', async () => {
    const { egress } = runnersWith({ a: [addresses(), problem(502, 'egress_failed', { before_dispatch: true })] });
    await expect(egress.resolve('x.example.com', signal)).rejects.toMatchObject({
      code: 'fetch_failed',
      beforeDispatch: true,
    });
    await expect(egress.resolve('x.example.com', signal)).rejects.toMatchObject({
      code: 'fetch_failed',
      beforeDispatch: true,
    });
  });

  test.each<readonly [string, Answer]>([
    ['cannot be reached', new Error('connection refused')],
    ['is stopping', problem(503, 'stopping')],
    ['is full', problem(429, 'busy')],
    ['has egress switched off', problem(403, 'egress_off')],
    ['is an older version', problem(404, 'not_found')],
    ['is not a runner', new Response('<html>', { status: 502 })],
  ])('[X2] if a runner %s, the next one is used, and stays the first choice', async (_, answer) => {
    const { egress, asked } = runnersWith({ a: [answer], b: [addresses('192.0.2.1'), addresses('192.0.2.2')] });
    expect(await egress.resolve('x.example.com', signal)).toEqual(['192.0.2.1']);
    expect(await egress.resolve('y.example.com', signal)).toEqual(['192.0.2.2']);
    expect(asked.map(({ url }) => new URL(url).hostname)).toEqual(['a', 'b', 'b']);
  });

  test('[X2] without a usable runner nothing is sent, and the error gives the reason', async () => {
    const { egress } = runnersWith({ a: [problem(403, 'egress_off')] });
    await expect(egress.resolve('x.example.com', signal)).rejects.toMatchObject({
      code: 'egress_unavailable',
      beforeDispatch: true,
      retryable: true,
      message: 'the runner cannot send requests now: said egress_off',
    });
    await expect(egressWith({ runners: [] }).resolve('x', signal)).rejects.toMatchObject({
      code: 'egress_unavailable',
    });
    await expect(egressWith({ key: null }).resolve('x', signal)).rejects.toMatchObject({ code: 'egress_unavailable' });
  });
});

describe('a request', () => {
  test('[X2] contains everything that the runner needs, and only headers that can be set', async () => {
    const answer = new Response('body', {
      headers: head({
        status: 207,
        headers: [
          ['set-cookie', 'a=1'],
          ['set-cookie', 'b=2'],
          ['x y', 'bad'],
          ['x-c', 'd'],
        ],
      }),
    });
    const { egress, asked } = runnersWith({ a: [answer] });
    const response = await egress.send(request, ['192.0.2.1']);
    expect([
      response.status,
      response.headers.getSetCookie(),
      response.headers.get('x-c'),
      await response.text(),
    ]).toEqual([207, ['a=1', 'b=2'], 'd', 'body']);
    expect(asked[0]?.body).toEqual({
      session: 'ses_a',
      url: 'https://x.example.com/a?b=c',
      method: 'POST',
      headers: { 'x-a': 'b' },
      body: '{}',
      addresses: ['192.0.2.1'],
      timeout_ms: 1_000,
      max_bytes: 2_000,
    });
  });

  test.each([204, 304])('[X2] with status %i has no body', async (status) => {
    const { egress } = runnersWith({ a: [new Response('', { headers: head({ status, headers: [] }) })] });
    expect((await egress.send(request, ['192.0.2.1'])).body).toBeNull();
  });

  test.each([{ status: 999, headers: [] }, { status: 101, headers: [] }, { status: 200 }, 5, null])(
    '[X2] whose answer has the head %j fails',
    async (said) => {
      const { egress } = runnersWith({ a: [new Response('x', { headers: head(said) })] });
      await expect(egress.send(request, ['192.0.2.1'])).rejects.toMatchObject({
        code: 'fetch_failed',
        beforeDispatch: false,
      });
    },
  );

  test('[X2] that may have been sent is not repeated on another runner', async () => {
    const { egress, asked } = runnersWith({ a: [new Error('connection lost')], b: [new Response('x')] });
    await expect(egress.send(request, ['192.0.2.1'])).rejects.toMatchObject({
      code: 'fetch_failed',
      beforeDispatch: false,
    });
    expect(asked.length).toBe(1);
  });

  test('[X2] that a runner never received goes to the next one', async () => {
    const refused = new TypeError('fetch failed', { cause: Object.assign(new Error(''), { code: 'ECONNREFUSED' }) });
    const { egress, asked } = runnersWith({
      a: [refused],
      b: [new Response('x', { headers: head({ status: 200, headers: [] }) })],
    });
    expect((await egress.send(request, ['192.0.2.1'])).status).toBe(200);
    expect(asked.length).toBe(2);
  });

  test.each([
    ['egress_failed', 502, { before_dispatch: true }, 'fetch_failed', true],
    ['egress_failed', 502, { before_dispatch: false }, 'fetch_failed', false],
    ['egress_timeout', 504, {}, 'fetch_timeout', false],
    ['egress_refused', 403, {}, 'address_refused', true],
    ['invalid_request', 400, {}, 'header_refused', true],
  ] as const)('[X2] that ends with %s (%i, %j) is %s', async (code, status, more, expected, beforeDispatch) => {
    const { egress } = runnersWith({ a: [problem(status, code, more)], b: [new Response('x')] });
    await expect(egress.send(request, ['192.0.2.1'])).rejects.toMatchObject({ code: expected, beforeDispatch });
  });

  test('[X2] ends with its signal', async () => {
    const stopped = new AbortController();
    stopped.abort(new Error('cancelled'));
    const { egress } = runnersWith({ a: [new Error('aborted')] });
    await expect(egress.resolve('x.example.com', stopped.signal)).rejects.toThrow('cancelled');
  });
});

describe('through a real runner', () => {
  let served: PublicNames;
  let seen: string[];
  /** The addresses of the names. */
  let names: Record<string, readonly string[]>;

  beforeEach(async () => {
    seen = [];
    names = {};
    served = await publicNames(names, (asked, response) => {
      seen.push(`${asked.headers.host ?? ''}${asked.url ?? ''}`);
      response.end(`from ${asked.headers.host ?? ''}`);
    });
  });
  afterEach(async () => {
    await served.close();
  });

  const fetchThere = (url: string): Promise<Response> =>
    createOutboundFetch({
      fetch: () => Promise.reject(new Error('the platform must not be asked')),
      allowHosts: [],
      clock: new VirtualClock(),
      egress: egressWith({
        runners: [{ url: served.runner.url, labels: [] }],
        fetch,
        clock: new VirtualClock(Date.now()),
      }),
    })(url, { signal });

  test('[X2] a public name is fetched, by its name', async () => {
    names['good.example.com'] = [PUBLIC];
    const response = await fetchThere('http://good.example.com/x');
    expect(await response.text()).toMatch(/^from good\.example\.com/);
    expect(response.url).toBe('http://good.example.com/x');
  });

  test('[X2] a name with an address of this machine is refused, and no server receives a request', async () => {
    names['evil.example.com'] = ['127.0.0.1'];
    await expect(fetchThere('http://evil.example.com/')).rejects.toMatchObject({ code: 'address_refused' });
    expect(seen).toEqual([]);
  });
});

test.each([
  [undefined, 'platform'],
  ['', 'platform'],
  ['Platform', 'platform'],
  [' runner ', 'runner'],
])('[H8] EGRESS=%j is %s', (text, choice) => {
  expect(parseEgress(text)).toBe(choice);
});

test('[H8] any other EGRESS prevents the start', () => {
  expect(() => parseEgress('off')).toThrow('EGRESS must be platform or runner, found "off"');
});
