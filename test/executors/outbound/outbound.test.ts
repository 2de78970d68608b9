import { readText } from '../../../src/executors/builtin/web-page.ts';
import { describe, expect, test, vi } from 'vitest';
import { checkAddress, checkUrl } from '../../../src/executors/outbound/address.ts';
import type { EgressRequest } from '../../../src/executors/outbound/egress.ts';
import { OutboundError } from '../../../src/domain/outbound-error.ts';
import { createOutboundFetch, refuseHeader, wasCut } from '../../../src/executors/outbound/outbound.ts';
import type { OutboundFetch } from '../../../src/domain/ports/outbound.ts';
import type { OutboundOptions } from '../../../src/executors/outbound/outbound.ts';
import { VirtualClock } from '../../../testing/virtual-clock.ts';

const nobody = { allowHosts: [] };

test.each([
  ...`http://127.0.0.1/ http://127.1/ http://2130706433/ http://0x7f000001/ http://0177.0.0.1/ http://１２７.0.0.1/ http://127.0.0.1./
    http://0/ http://10.1.2.3/ http://169.254.169.254/latest/meta-data/ http://[::1]/ http://[::ffff:a9fe:a9fe]/ http://[fe80::1]/
    http://localhost/ http://localhost./ http://LOCALHOST/ http://foo.localhost/ http://metadata/ http://metadata.google.internal/
    http://db.internal/ http://printer.local/ http://router.lan/ http://intranet/ http://127.0.0.1.nip.io/ http://localtest.me/
    http://user@example.com/ http://user:pass@example.com/ http://example.com\\@127.0.0.1/ file:///etc/passwd ftp://example.com/
    gopher://example.com/ data:text/plain,x javascript:alert(1) http://example.com:22/ https://example.com:25/ example.com
    //example.com`.split(/\s+/),
  'http://example.com\t/',
  'http://exa\tmple.com/',
  ' http://example.com/',
  'http://example.com/\r\nHost: x',
  '',
])('[X2] %j is refused', (url) => {
  expect(checkUrl(url, nobody)).toMatchObject({ ok: false });
});

test.each([
  'https://example.com/',
  'http://example.com:8080/a?b=c#d',
  'https://93.184.216.34/',
  'https://[2606:2800:220:1:248:1893:25c8:1946]/',
  'https://xn--bcher-kva.de/',
  'https://bücher.de/straße?q=ä',
])('[X2] %j is allowed', (url) => {
  expect(checkUrl(url, nobody)).toMatchObject({ ok: true });
});

test('[X2] a refusal says what is wrong and what is allowed', () => {
  expect(checkUrl('ftp://example.com/', nobody)).toEqual({
    ok: false,
    reason: 'has the scheme "ftp" (allowed: http, https)',
  });
  expect(checkUrl('http://example.com:22/', nobody)).toEqual({
    ok: false,
    reason: 'has the port 22 (allowed: 80, 443, 8080, 8443). To allow it, set ALLOW_HOSTS=example.com:22',
  });
  expect(checkUrl('http://127.1/', nobody)).toEqual({
    ok: false,
    reason: 'resolves to 127.0.0.1, which is a loopback address. To allow it, set ALLOW_HOSTS=127.0.0.1:80',
  });
});

test.each([
  ['http://127.0.0.1:24100/x', 'resolves to 127.0.0.1, which is a loopback address', '127.0.0.1:24100'],
  ['https://crm.internal./', 'names "crm.internal", a host that is not public', 'crm.internal:443'],
  ['https://api.example.com:9000/', 'has the port 9000 (allowed: 80, 443, 8080, 8443)', 'api.example.com:9000'],
  ['http://[::1]:4000/', 'resolves to ::1, which is a loopback address', '[::1]:4000'],
])('[X2] the refusal of %s names the entry that allows it, and no port that would not help', (url, what, entry) => {
  const others = { allowHosts: ['secret.internal:80'] };
  expect(checkUrl(url, nobody)).toEqual({ ok: false, reason: `${what}. To allow it, set ALLOW_HOSTS=${entry}` });
  expect(checkUrl(url, others)).toEqual({ ok: false, reason: `${what}. To allow it, add ${entry} to ALLOW_HOSTS` });
  expect(checkUrl(url, { allowHosts: [entry] })).toMatchObject({ ok: true });
});

test('[X2] the operator can allow a host and port, and only that one', () => {
  const policy = { allowHosts: ['127.0.0.1:9000', 'db.internal', '[::1]:80'] };
  expect(checkUrl('http://127.0.0.1:9000/x', policy)).toMatchObject({ ok: true, allowedByOperator: true });
  expect(checkUrl('http://127.1:9000/x', policy)).toMatchObject({ ok: true });
  expect(checkUrl('http://[::1]/', policy)).toMatchObject({ ok: true });
  expect(checkUrl('http://db.internal:5432/', policy)).toMatchObject({ ok: true });
  expect(checkUrl('http://127.0.0.1:9001/', policy)).toMatchObject({ ok: false });
  expect(checkUrl('file://db.internal/x', policy)).toMatchObject({ ok: false });
  expect(checkUrl('http://x@db.internal/', policy)).toMatchObject({ ok: false });
});

test.each(
  `0.0.0.0 10.9.8.7 100.64.1.1 100.100.100.200 127.0.0.1 168.63.129.16 169.254.169.254 172.16.0.1 172.31.255.255 192.0.0.192 192.168.0.10
   198.18.0.1 198.19.0.1 224.0.0.251 240.0.0.1 255.255.255.255 :: ::1 ::127.0.0.1 ::ffff:127.0.0.1 ::ffff:10.0.0.1 64:ff9b::7f00:1
   64:ff9b:1::a00:1 2002:7f00:1:: 2001:0:4136:e378:8000:63bf:3fff:fdd2 fe80::1 fec0::1 fd12::1 fd00:ec2::254 ff02::fb 4000::1`.split(
    /\s+/,
  ),
)('[X2] the address %s is not public', (address) => {
  expect(checkAddress(address)).not.toBeNull();
});

test('[X2] a text that is not an address is not a public address', () => {
  for (const text of ['', 'x', '1.2.3', '::g', '127.0.0.1 ']) expect(checkAddress(text)).not.toBeNull();
});

type Answer = Response | Error | (() => Response);

/** A network that returns the given answers in order and records its requests. */
function network(answers: readonly Answer[], options: Partial<OutboundOptions> = {}) {
  const asked: { url: string; init: RequestInit }[] = [];
  const clock = new VirtualClock();
  const fetch = createOutboundFetch({
    allowHosts: [],
    clock,
    ...options,
    fetch: (url, init) => {
      const answer = answers[asked.length];
      asked.push({ url, init });
      if (answer === undefined || answer instanceof Error) return Promise.reject(answer ?? new Error('nobody answers'));
      return Promise.resolve(typeof answer === 'function' ? answer() : answer);
    },
  });
  const abort = new AbortController();
  return {
    asked,
    clock,
    abort,
    get: (url: string, init: Omit<Parameters<OutboundFetch>[1], 'signal'> = {}) =>
      fetch(url, { ...init, signal: abort.signal }),
  };
}

const moved = (to: string, status = 302): Response => new Response(null, { status, headers: { location: to } });

test('[X2] a refused address gets no request', async () => {
  const { get, asked } = network([]);
  await expect(get('http://169.254.169.254/')).rejects.toMatchObject({
    code: 'address_refused',
    beforeDispatch: true,
    retryable: false,
  });
  expect(asked).toEqual([]);
});

test.each(['http://169.254.169.254/latest', 'file:///etc/passwd', 'http://exam\tple.org/', '//10.0.0.1:8080/'])(
  '[X2] a redirect to %j is refused',
  async (target) => {
    // not every runtime can construct such a header, so the response is an imitation
    const answer = { status: 302, headers: { get: () => target }, body: null } as unknown as Response;
    const { get, asked } = network([answer]);
    await expect(get('https://example.com/')).rejects.toMatchObject({ code: 'address_refused', beforeDispatch: false });
    expect(asked.map(({ url }) => url)).toEqual(['https://example.com/']);
  },
);

test('[X2] redirects are followed explicitly, relative ones too, and the response has the last URL', async () => {
  const { get, asked } = network([moved('/b', 301), moved('https://example.org/c', 307), new Response('done')]);
  const response = await get('https://example.com/a');
  expect(asked.map(({ url }) => url)).toEqual([
    'https://example.com/a',
    'https://example.com/b',
    'https://example.org/c',
  ]);
  expect(asked.every(({ init }) => init.redirect === 'manual')).toBe(true);
  expect(response.url).toBe('https://example.org/c');
  expect(await response.text()).toBe('done');
});

test('[C9] a redirect that is refused is not followed, and the others are', async () => {
  const { get, asked } = network([moved('https://b.example.com/', 302), moved('https://c.example.com/', 302)]);
  const judged: string[] = [];
  const redirectRefusal = async (url: string): Promise<string | null> => {
    judged.push(url);
    return url.includes('c.example') ? 'a policy denies it' : null;
  };
  await expect(get('https://a.example.com/', { redirectRefusal })).rejects.toMatchObject({
    code: 'redirect_refused',
    message: 'a redirect to "https://c.example.com/" is not allowed: a policy denies it',
    retryable: false,
    beforeDispatch: false,
  });
  expect(judged).toEqual(['https://b.example.com/', 'https://c.example.com/']);
  expect(asked.map(({ url }) => url)).toEqual(['https://a.example.com/', 'https://b.example.com/']);
});

test('[X2] the number of redirects is limited', async () => {
  const { get, asked } = network(Array.from({ length: 20 }, () => moved('/again')));
  await expect(get('https://example.com/')).rejects.toMatchObject({ code: 'too_many_redirects' });
  expect(asked).toHaveLength(6);
});

test('[X2] credential headers are sent only to their original origin', async () => {
  const { get, asked } = network([moved('/same'), moved('https://example.org/'), new Response('x')]);
  await get('https://example.com/', { headers: { authorization: 'Bearer x', 'x-key': 'k', accept: 'text/plain' } });
  const sent = asked.map(({ init }) => Object.fromEntries(new Headers(init.headers)));
  expect(sent[1]).toMatchObject({ authorization: 'Bearer x', 'x-key': 'k' });
  expect(sent[2]).toEqual({ accept: 'text/plain', 'user-agent': 'cortex-edge' });
});

test.each([
  [301, 'POST', 'GET'],
  [302, 'POST', 'GET'],
  [303, 'POST', 'GET'],
  [303, 'HEAD', 'HEAD'],
  [307, 'POST', 'POST'],
  [308, 'PUT', 'PUT'],
])('[X2] after status %i a %s continues as %s', async (status, method, next) => {
  const { get, asked } = network([moved('/next', status), new Response('x')]);
  await get('https://example.com/', { method, ...(method === 'HEAD' ? {} : { body: 'data' }) });
  expect(asked[1]?.init.method).toBe(next);
  expect(asked[1]?.init.body ?? null).toBe(next === 'GET' || next === 'HEAD' ? null : 'data');
});

test.each<[name: string, value: string]>([
  ['x', 'a\r\nHost: evil'],
  ['x', 'a\nb'],
  ['x', 'nul\u0000'],
  ['x y', 'a'],
  ['x\r\n', 'a'],
  ...`Host Content-Length Transfer-Encoding Connection Proxy-Authorization X-Forwarded-For CF-Connecting-IP Metadata-Flavor
    X-aws-ec2-metadata-token`
    .split(/\s+/)
    .map((name): [string, string] => [name, 'x']),
])('[X2] the header %j: %j is refused from any source', (name, value) => {
  expect(refuseHeader(name, value, 'author')).not.toBeNull();
});

test('[X2] a request with a header that is refused is not sent', async () => {
  const { get, asked } = network([new Response('x')]);
  const error = { code: 'header_refused', beforeDispatch: true };
  await expect(get('https://example.com/', { headers: { Host: 'example.org' } })).rejects.toMatchObject(error);
  expect(asked).toEqual([]);
});

test.each(['Authorization', 'authorization', 'Cookie', 'X-API-Key'])(
  '[X2] a model cannot set %s; a manifest can',
  (name) => {
    expect(refuseHeader(name, 'x', 'model')).toContain('may not be set by a model');
    expect(refuseHeader(name, 'x', 'author')).toBeNull();
  },
);

const small = { fetchBytes: 10, fetchRedirects: 5, fetchTimeoutMs: 1_000 };

test('[X2] an endless body is cut at the byte limit and marked, and its source is cancelled', async () => {
  const cancelled = vi.fn();
  const endless = new ReadableStream<Uint8Array>({
    pull: (controller) => controller.enqueue(new TextEncoder().encode('abcd')),
    cancel: cancelled,
  });
  const { get, clock } = network([new Response(endless)], { limits: small });
  const response = await get('https://example.com/');
  expect(wasCut(response)).toBe(false);
  expect(await response.text()).toBe('abcdabcdab');
  expect(wasCut(response)).toBe(true);
  expect(cancelled).toHaveBeenCalledOnce();
  expect(clock.next).toBeNull();
});

describe('[X2] a small body with its size is read at once', () => {
  const sized = (body: string, size: string, more: Record<string, string> = {}): Response =>
    new Response(body, { status: 201, headers: { 'content-length': size, 'x-kept': 'yes', ...more } });

  test('and the response is the same; no timer remains while it is not read', async () => {
    const { get, clock } = network([sized('abcde', '5')], { limits: small });
    const response = await get('https://example.com/');
    expect(clock.next).toBeNull();
    expect([response.status, response.url, response.headers.get('x-kept')]).toEqual([
      201,
      'https://example.com/',
      'yes',
    ]);
    expect(response.headers.has('content-length')).toBe(false);
    expect(await response.text()).toBe('abcde');
  });

  test('a body that is longer than it says fails, and the rest is not read', async () => {
    const { get, clock } = network([sized('abcdef', '5')], { limits: small });
    await expect(get('https://example.com/')).rejects.toMatchObject({ code: 'fetch_failed' });
    expect(clock.next).toBeNull();
  });

  test.each([
    ['above the limit', '11', {}],
    ['of a compressed body', '5', { 'content-encoding': 'gzip' }],
    ['that is no number', 'x', {}],
  ])('a size %s does not count: the body is limited as it is read', async (_, size, more) => {
    const { get, clock } = network([sized('0123456789ab', size, more)], { limits: small });
    const response = await get('https://example.com/');
    expect(clock.next).not.toBeNull();
    expect(await response.text()).toBe('0123456789');
    expect(wasCut(response)).toBe(true);
  });
});

describe('[X2] for a caller that reads all of it', () => {
  const streamed = (...pieces: readonly string[]): Response =>
    new Response(
      new ReadableStream({
        start: (controller) => {
          for (const piece of pieces) controller.enqueue(new TextEncoder().encode(piece));
          controller.close();
        },
      }),
    );

  test('a small body without a size has been read when the response is there', async () => {
    const { get, clock } = network([streamed('ab', 'é')], { limits: small });
    const response = await get('https://example.com/', { readsAll: true });
    expect(clock.next).toBeNull();
    expect(await readText(response, 100)).toEqual({ text: 'abé', truncated: false });
    expect(await readText(response, 1)).toEqual({ text: 'a', truncated: true });
    expect(wasCut(response)).toBe(false);
  });

  test.each([
    ['UTF-8', 'application/json', new TextEncoder().encode('é\u{1f600}'), 'é\u{1f600}'],
    ['another character set', 'text/plain; charset=latin1', new Uint8Array([0xe9]), 'é'],
  ])('so has a small body with its size, in %s', async (_, type, bytes, text) => {
    const headers = { 'content-type': type, 'content-length': String(bytes.length) };
    const { get, clock } = network([new Response(bytes, { headers })], { limits: small });
    const response = await get('https://example.com/', { readsAll: true });
    expect(clock.next).toBeNull();
    expect(await readText(response, 100)).toEqual({ text, truncated: false });
  });

  test('a body that is longer than its size and the limit fails the request', async () => {
    const longer = new Response('0123456789ab', { headers: { 'content-length': '5' } });
    const { get } = network([longer], { limits: small });
    await expect(get('https://example.com/', { readsAll: true })).rejects.toMatchObject({ code: 'fetch_failed' });
  });

  test('an empty response is an empty text', async () => {
    const { get, clock } = network([new Response(null, { status: 204 })], { limits: small });
    expect(await readText(await get('https://example.com/', { readsAll: true }), 100)).toMatchObject({ text: '' });
    expect(clock.next).toBeNull();
  });

  test('a longer body is passed on from its beginning, and cut at the limit', async () => {
    const { get, clock } = network([streamed('01234', '56', '789ab', 'c')], { limits: small });
    const response = await get('https://example.com/', { readsAll: true });
    expect(await readText(response, 100)).toEqual({ text: '0123456789', truncated: false });
    expect(wasCut(response)).toBe(true);
    expect(clock.next).toBeNull();
  });

  test('a body that breaks off fails the request, and the time limit includes it', async () => {
    const broken = new Response(
      new ReadableStream({ pull: (controller) => controller.error(new Error('the connection was reset')) }),
    );
    const { get, clock } = network([broken], { limits: small });
    await expect(get('https://example.com/', { readsAll: true })).rejects.toMatchObject({ code: 'fetch_failed' });
    expect(clock.next).toBeNull();
  });
});

test.each(['cut', 'fail'] as const)('[X2] a body of exactly the limit is complete (%s)', async (whenTooLarge) => {
  const { get } = network([new Response('0123456789')], { limits: small });
  const response = await get('https://example.com/', { whenTooLarge });
  expect(await response.text()).toBe('0123456789');
  expect(wasCut(response)).toBe(false);
});

test('[X2] [K2] a longer body fails for a caller that needs all of it', async () => {
  const { get, clock } = network([new Response('0123456789a')], { limits: small });
  const response = await get('https://example.com/', { whenTooLarge: 'fail' });
  await expect(response.text()).rejects.toMatchObject({ code: 'response_too_large', retryable: false });
  expect(clock.next).toBeNull();
});

test('[X2] the time limit includes the body', async () => {
  const silent = (init: { signal?: AbortSignal | null }): Response =>
    new Response(
      new ReadableStream({
        start: (controller) => init.signal?.addEventListener('abort', () => controller.error(init.signal?.reason)),
      }),
    );
  const clock = new VirtualClock();
  const fetch = createOutboundFetch({
    allowHosts: [],
    clock,
    limits: small,
    fetch: (_url, init) => Promise.resolve(silent(init)),
  });
  const response = await fetch('https://example.com/', { signal: new AbortController().signal });
  const text = response.text();
  clock.advance(1_000);
  await expect(text).rejects.toMatchObject({ code: 'fetch_timeout', retryable: true });
});

test('[X2] the caller’s abort ends the request and clears the timer', async () => {
  const { abort, clock, ...rest } = network([]);
  const fetch = createOutboundFetch({
    allowHosts: [],
    clock,
    fetch: (_url, init) =>
      new Promise((_resolve, reject) => init.signal?.addEventListener('abort', () => reject(init.signal?.reason))),
  });
  expect(rest.asked).toEqual([]);
  const pending = fetch('https://example.com/', { signal: abort.signal });
  abort.abort(new Error('cancelled'));
  await expect(pending).rejects.toBeInstanceOf(OutboundError);
  expect(clock.next).toBeNull();
});

/** Names with their addresses, and the requests to each address. */
function egressOf(
  names: Readonly<Record<string, readonly string[] | OutboundError>>,
  answer = () => new Response('x'),
) {
  const sent: { readonly url: string; readonly addresses: readonly string[]; readonly request: EgressRequest }[] = [];
  const resolve = vi.fn((host: string) => {
    const found = names[host] ?? new OutboundError('fetch_failed', `"${host}" has no address`, true);
    return found instanceof OutboundError ? Promise.reject(found) : Promise.resolve(found);
  });
  const send = (request: EgressRequest, addresses: readonly string[]): Promise<Response> => {
    sent.push({ url: request.url.href, addresses, request });
    return Promise.resolve(answer());
  };
  return { sent, resolve, egress: { resolve, send } };
}

describe('with an egress', () => {
  test('[X2] every address of a name is checked, and the request goes to these addresses', async () => {
    const { sent, egress } = egressOf({
      'good.example.com': ['93.184.216.34', '2606:2800:220:1:248:1893:25c8:1946'],
      'half.example.com': ['93.184.216.34', '10.0.0.1'],
    });
    const { get, asked } = network([], { egress });
    expect(
      await (await get('https://good.example.com/a', { method: 'POST', body: 'b', headers: { 'x-c': 'd' } })).text(),
    ).toBe('x');
    await expect(get('https://half.example.com/')).rejects.toMatchObject({
      code: 'address_refused',
      beforeDispatch: true,
      message:
        '"https://half.example.com/" is not allowed: it resolves to 10.0.0.1, which is a private address. To allow it, set ALLOW_HOSTS=half.example.com:443',
    });
    expect(sent.map(({ url, addresses }) => [url, addresses])).toEqual([
      ['https://good.example.com/a', ['93.184.216.34', '2606:2800:220:1:248:1893:25c8:1946']],
    ]);
    expect(sent[0]?.request).toMatchObject({ method: 'POST', body: 'b' });
    expect(sent[0]?.request.headers.get('x-c')).toBe('d');
    expect(asked).toEqual([]);
  });

  test.each(['10.9.8.7', '::ffff:127.0.0.1', 'not an address'])(
    '[X2] a name with the address %j is refused',
    async (address) => {
      const { sent, egress } = egressOf({ 'x.example.com': [address] });
      const { get } = network([], { egress });
      await expect(get('http://x.example.com/')).rejects.toMatchObject({ code: 'address_refused' });
      expect(sent).toEqual([]);
    },
  );

  test('[X2] each redirect is resolved and checked again', async () => {
    const { sent, resolve, egress } = egressOf(
      { 'a.example.com': ['93.184.216.34'], 'b.example.com': ['127.0.0.1'] },
      () => moved('http://b.example.com/inside'),
    );
    const { get } = network([], { egress });
    await expect(get('https://a.example.com/')).rejects.toMatchObject({
      code: 'address_refused',
      beforeDispatch: false,
      message: expect.stringContaining('a redirect to "http://b.example.com/inside" is not allowed'),
    });
    expect(sent.map(({ url }) => url)).toEqual(['https://a.example.com/']);
    expect(resolve.mock.calls.map(([host]) => host)).toEqual(['a.example.com', 'b.example.com']);
  });

  test('[X2] a public IP address is used as it is; a host that the operator allows is contacted directly', async () => {
    const { sent, resolve, egress } = egressOf({});
    const { get, asked } = network([new Response('direct'), new Response('direct')], {
      egress,
      allowHosts: ['127.0.0.1:9000', 'db.internal:5432'],
    });
    await get('https://93.184.216.34/');
    await get('https://[2606:2800:220:1:248:1893:25c8:1946]/');
    await get('http://127.0.0.1:9000/');
    await get('http://db.internal:5432/');
    expect(sent.map(({ addresses }) => addresses)).toEqual([['93.184.216.34'], ['2606:2800:220:1:248:1893:25c8:1946']]);
    expect(asked.map(({ url }) => url)).toEqual(['http://127.0.0.1:9000/', 'http://db.internal:5432/']);
    expect(resolve).not.toHaveBeenCalled();
  });

  test('[X2] without a reachable egress nothing is sent in another way', async () => {
    const { egress } = egressOf({
      'x.example.com': new OutboundError('egress_unavailable', 'no runner answers', true),
    });
    const { get, asked } = network([new Response('direct')], { egress });
    await expect(get('https://x.example.com/')).rejects.toMatchObject({
      code: 'egress_unavailable',
      retryable: true,
      beforeDispatch: true,
      message: '"https://x.example.com/" could not be fetched: no runner answers',
    });
    expect(asked).toEqual([]);
  });

  test('[X2] a failure after a redirect does not count as before the dispatch', async () => {
    const { egress } = egressOf({ 'a.example.com': ['93.184.216.34'] }, () => moved('https://gone.example.com/'));
    const { get } = network([], { egress });
    await expect(get('https://a.example.com/')).rejects.toMatchObject({ code: 'fetch_failed', beforeDispatch: false });
  });

  test('[X2] an answer past the limit is cut, and the egress gets the limit', async () => {
    const { sent, egress } = egressOf({ 'a.example.com': ['93.184.216.34'] }, () => new Response('x'.repeat(11)));
    const { get } = network([], { egress, limits: { fetchBytes: 10, fetchRedirects: 5, fetchTimeoutMs: 1_000 } });
    const response = await get('https://a.example.com/');
    expect(await response.text()).toBe('x'.repeat(10));
    expect(wasCut(response)).toBe(true);
    expect(sent[0]?.request).toMatchObject({ maxBytes: 11, timeoutMs: 1_000 });
  });
});

test('[X2] a network error contains the address and is retryable', async () => {
  const { get } = network([new Error('connection refused')]);
  await expect(get('https://example.com/x')).rejects.toMatchObject({
    code: 'fetch_failed',
    message: '"https://example.com/x" could not be fetched: connection refused',
    retryable: true,
    beforeDispatch: false,
  });
});
