import { expect, test } from 'vitest';
import { limits } from '../../../src/domain/limits.ts';
import { echo } from '../../../src/executors/builtin/echo.ts';
import { jsonQuery } from '../../../src/executors/builtin/json-query.ts';
import { webExtract } from '../../../src/executors/builtin/web-extract.ts';
import { webFetch } from '../../../src/executors/builtin/web-fetch.ts';
import type { HtmlReader, OutboundFetch } from '../../../src/domain/ports/outbound.ts';
import { OutboundError } from '../../../src/domain/outbound-error.ts';
import { callOf, contextOf, errorOf } from '../support.ts';

test('[M3] echo returns its parameters', async () => {
  const parameters = { message: 'hi', list: [1, { a: null }], delay_ms: 0 };
  expect(await echo.execute(callOf(parameters), contextOf())).toEqual({ ok: true, output: parameters });
});

test('[M3] echo waits exactly the requested time on the given clock', async () => {
  const context = contextOf();
  let settled = false;
  const pending = echo.execute(callOf({ delay_ms: 500 }), context).finally(() => {
    settled = true;
  });
  context.clock.advance(499);
  await Promise.resolve();
  expect(settled).toBe(false);
  context.clock.advance(1);
  expect(await pending).toMatchObject({ ok: true });
});

test('[M3] echo fails its first attempts with a retryable error', async () => {
  const at = (attempt: number) => echo.execute(callOf({ fail_times: 2, x: 1 }, { attempt }), contextOf());
  expect(errorOf(await at(1))).toMatchObject({ code: 'echo_failure', retryable: true });
  expect(errorOf(await at(2))).toMatchObject({ retryable: true });
  expect(await at(3)).toEqual({ ok: true, output: { fail_times: 2, x: 1 } });
});

test.each(['before', 'during'])('[S8] echo settles at once if it is aborted %s its wait', async (when) => {
  const context = contextOf();
  if (when === 'before') context.abort.abort(new Error('timeout'));
  const pending = echo.execute(callOf({ delay_ms: 1e9 }), context);
  context.abort.abort(new Error('timeout'));
  expect(errorOf(await pending)).toMatchObject({ code: 'aborted' });
  expect(context.clock.next).toBeNull();
});

test.each([
  [
    {
      items: [
        { n: 'a', p: 5 },
        { n: 'b', p: 20 },
      ],
    },
    'items[?p > `10`].n',
    ['b'],
  ],
  [{ a: { b: [1, 2] } }, 'a.b[1]', 2],
  [{ a: 1 }, 'nothing.here', null],
  ['[{"n": 3}, {"n": 1}]', 'sort_by(@, &n)[0].n', 1],
  ['plain text', 'length(@)', 10],
  [[3, 1, 2], 'sort(@)', [1, 2, 3]],
])('[M3] json_query of %j with %j is %j', async (data, query, output) => {
  expect(await jsonQuery.execute(callOf({ data, query }), contextOf())).toEqual({ ok: true, output });
});

test.each(['a[', 'nofunction(@)', 'length(`1`)'])('[M3] the query %j gives an exact issue', async (query) => {
  const error = errorOf(await jsonQuery.execute(callOf({ data: {}, query }), contextOf()));
  expect(error).toMatchObject({ code: 'invalid_query', retryable: false });
  expect(error.message).toContain(JSON.stringify(query));
});

test('[M3] json_query without data gives an issue', async () => {
  expect(errorOf(await jsonQuery.execute(callOf({ query: 'a' }), contextOf())).message).toBe(
    'parameters.data: expected any JSON value, got nothing',
  );
});

const answering =
  (body: string | Uint8Array<ArrayBuffer> | null, type: string, init: ResponseInit = {}): OutboundFetch =>
  (url) => {
    const headers = new Headers(init.headers);
    if (type !== '') headers.set('content-type', type);
    const response = new Response(body, { ...init, headers });
    if (type === '') response.headers.delete('content-type');
    return Promise.resolve(Object.defineProperty(response, 'url', { value: url }));
  };

const url = 'https://example.com/page';
const reader: HtmlReader = async (page, { selectors, maxChars }) => {
  const html = await page.text();
  return {
    title: 'Title',
    text: html.replaceAll(/<[^>]*>/g, '').slice(0, maxChars),
    matches: Object.fromEntries(selectors.map((selector) => [selector, [`${selector} one`, `${selector} two`]])),
    links: [
      { href: '/a?b=1', text: 'A' },
      { href: 'mailto:x@example.com', text: 'Mail' },
    ],
    truncated: html.length > maxChars,
  };
};

test.each([
  [
    Array.from({ length: limits.htmlSelectors + 1 }, (_, index) => `.a${index}`),
    `at most ${limits.htmlSelectors} selectors`,
  ],
  [[`b${':not(.a)'.repeat(40)}`], `at most ${limits.htmlSelectorChars} characters`],
])('[X2] web_extract refuses expensive selectors before it fetches the page', async (selectors, message) => {
  const fetch = (): never => expect.unreachable();
  const error = errorOf(await webExtract.execute(callOf({ url, selectors }), contextOf({ fetch, readHtml: reader })));
  expect(error).toMatchObject({ code: 'invalid_parameters', message: expect.stringContaining(message) });
});

test('[M3] web_fetch returns HTML as readable text', async () => {
  const context = contextOf({ fetch: answering('<p>Hello</p>', 'text/html; charset=utf-8'), readHtml: reader });
  expect(await webFetch.execute(callOf({ url }), context)).toEqual({
    ok: true,
    output: { url, status: 200, content_type: 'text/html', title: 'Title', text: 'Hello', truncated: false },
  });
});

test('[M3] web_fetch returns JSON as JSON, and invalid JSON as text', async () => {
  const good = contextOf({ fetch: answering('{"a":[1]}', 'application/vnd.api+json') });
  expect(await webFetch.execute(callOf({ url }), good)).toMatchObject({
    output: { json: { a: [1] }, truncated: false },
  });
  const bad = contextOf({ fetch: answering('{"a":', 'application/json') });
  expect(await webFetch.execute(callOf({ url }), bad)).toMatchObject({ output: { text: '{"a":', truncated: false } });
  const long = contextOf({ fetch: answering(JSON.stringify({ a: 'x'.repeat(100) }), 'application/json') });
  expect(await webFetch.execute(callOf({ url, max_chars: 10 }), long)).toMatchObject({
    output: { text: '{"a":"xxxx', truncated: true },
  });
});

test('[M3] web_fetch cuts text at max_chars, and never inside a character', async () => {
  const context = contextOf({ fetch: answering('ab😀cd', 'text/plain') });
  expect(await webFetch.execute(callOf({ url, max_chars: 3 }), context)).toMatchObject({
    output: { text: 'ab', truncated: true },
  });
});

test('[M3] web_fetch uses the character set in the server’s headers', async () => {
  const latin = contextOf({
    fetch: answering(Uint8Array.from([0x47, 0x72, 0xfc, 0xdf, 0x65]), 'text/plain; charset=ISO-8859-1'),
  });
  expect(await webFetch.execute(callOf({ url }), latin)).toMatchObject({ output: { text: 'Grüße' } });
  const unknown = contextOf({ fetch: answering('ok', 'text/plain; charset=x-none') });
  expect(await webFetch.execute(callOf({ url }), unknown)).toMatchObject({ output: { text: 'ok' } });
});

test('[M3] web_fetch refuses pictures with a clear message', async () => {
  const context = contextOf({ fetch: answering('x', 'image/png') });
  expect(errorOf(await webFetch.execute(callOf({ url }), context))).toMatchObject({
    code: 'unsupported_content',
    message: `${url} is image/png; web_fetch reads HTML, JSON and other text`,
    retryable: false,
  });
});

test('[M3] HEAD returns status and headers, without cookies', async () => {
  const headers = { 'x-a': '1', 'set-cookie': 'secret=1' };
  const context = contextOf({ fetch: answering(null, 'text/html', { headers }) });
  const outcome = await webFetch.execute(callOf({ url, method: 'HEAD' }), context);
  expect(outcome).toMatchObject({ ok: true, output: { status: 200, headers: { 'x-a': '1' } } });
  expect(JSON.stringify(outcome)).not.toContain('secret');
});

test.each([
  [404, false, false],
  [403, false, false],
  [408, true, false],
  [429, true, true],
  [500, true, false],
  [503, true, true],
])('[S7] status %i is a failure; retryable: %s; overload: %s', async (status, retryable, overloaded) => {
  const context = contextOf({
    fetch: answering('{"why":"because"}', 'application/json', { status, headers: { 'retry-after': '7' } }),
  });
  const error = errorOf(await webFetch.execute(callOf({ url }), context));
  expect(error).toMatchObject({ code: 'http_error', retryable, retryAfterMs: 7_000 });
  expect(error.overloaded ?? false).toBe(overloaded);
  expect(error.message).toBe(`GET ${url} answered ${status}: {"why":"because"}`);
});

test.each([
  [{ Authorization: 'Bearer x' }, 'may not be set by a model'],
  [{ Host: 'example.org' }, 'may not be set'],
  [{ 'x-a': 'b\r\nc: d' }, 'line break'],
])('[X2] web_fetch refuses the header %j before it sends anything', async (headers, message) => {
  const error = errorOf(await webFetch.execute(callOf({ url, headers }), contextOf()));
  expect(error).toMatchObject({ code: 'header_refused', beforeDispatch: true, retryable: false });
  expect(error.message).toContain(message);
});

test('[X2] a refused address is a failure with its own code', async () => {
  const refusing: OutboundFetch = () => Promise.reject(new OutboundError('address_refused', 'it is refused', true));
  for (const executor of [webFetch, webExtract]) {
    expect(errorOf(await executor.execute(callOf({ url }), contextOf({ fetch: refusing })))).toEqual({
      code: 'address_refused',
      message: 'it is refused',
      retryable: false,
      beforeDispatch: true,
    });
  }
});

test('[S8] an aborted web_fetch is reported as aborted', async () => {
  const context = contextOf({
    fetch: (_url, { signal }) =>
      new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(new Error('gone')))),
  });
  const pending = webFetch.execute(callOf({ url }), context);
  context.abort.abort(new Error('the time limit of 60 s'));
  expect(errorOf(await pending)).toMatchObject({ code: 'aborted', message: 'stopped: the time limit of 60 s' });
});

const page = () => contextOf({ fetch: answering('<h1>x</h1>', 'text/html'), readHtml: reader });

test('[M3] web_extract returns the matches of each selector under its name', async () => {
  expect(
    await webExtract.execute(callOf({ url, selectors: { heading: 'h1', again: 'h1', price: '.p' } }), page()),
  ).toEqual({
    ok: true,
    output: {
      url,
      title: 'Title',
      matches: { heading: ['h1 one', 'h1 two'], again: ['h1 one', 'h1 two'], price: ['.p one', '.p two'] },
      truncated: false,
    },
  });
});

test('[M3] web_extract accepts a list of selectors, and returns text and absolute links without any', async () => {
  expect(await webExtract.execute(callOf({ url, selectors: ['h1'] }), page())).toMatchObject({
    output: { matches: { h1: ['h1 one', 'h1 two'] } },
  });
  expect(await webExtract.execute(callOf({ url }), page())).toMatchObject({
    output: { text: 'x', links: [{ href: 'https://example.com/a?b=1' }, { href: 'mailto:x@example.com' }] },
  });
});

test('[M3] web_extract limits all matches together to max_chars', async () => {
  const outcome = await webExtract.execute(callOf({ url, selectors: { a: 'h1', b: 'h2' }, max_chars: 8 }), page());
  expect(outcome).toMatchObject({ output: { matches: { a: ['h1 one', 'h1'], b: [] }, truncated: true } });
});

test('[M3] web_extract names an invalid selector', async () => {
  const context = contextOf({
    fetch: answering('x', 'text/html'),
    readHtml: () => Promise.reject(new TypeError('Parser error')),
  });
  expect(errorOf(await webExtract.execute(callOf({ url, selectors: { a: '>>' } }), context))).toMatchObject({
    code: 'invalid_selector',
    retryable: false,
  });
});

test.each([
  ['selectors', 'x'],
  ['selectors', { a: 1 }],
  ['selectors', ['']],
  ['url', 5],
])('[M3] web_extract refuses %s = %j', async (name, value) => {
  const error = errorOf(await webExtract.execute(callOf({ url, [name]: value }), page()));
  expect(error).toMatchObject({ code: 'invalid_parameters' });
});
