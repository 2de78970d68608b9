import { describe, expect, test } from 'vitest';
import type { Json, JsonObject } from '../../../src/domain/json.ts';
import type { ToolImplementation } from '../../../src/domain/manifests/tool.ts';
import type { OutboundFetch } from '../../../src/domain/ports/outbound.ts';
import { toolExecutor } from '../../../src/executors/tool.ts';
import { callOf, contextOf, errorOf } from '../support.ts';
import { toolOf } from '../../support/definitions.ts';

interface Asked {
  readonly url: string;
  readonly method: string | undefined;
  readonly headers: Readonly<Record<string, string>> | undefined;
  readonly body: Json;
}

/** Calls an http tool against a `fetch` that records requests. */
async function call(
  changes: Partial<Extract<ToolImplementation, { type: 'http' }>>,
  parameters: JsonObject,
  schema: JsonObject = { type: 'object' },
  answer: () => Response = () => new Response('{"ok":true}'),
) {
  const asked: Asked[] = [];
  const fetch: OutboundFetch = (url, { method, headers, body }) => {
    asked.push({ url, method, headers, body: typeof body === 'string' ? (JSON.parse(body) as Json) : null });
    return Promise.resolve(answer());
  };
  const tool = {
    ...toolOf({ type: 'http', url: 'https://api.example.com/', method: 'GET', headers: {}, ...changes }),
    parameters: schema,
  };
  return { asked, outcome: await toolExecutor.execute(callOf(parameters, { tool }), contextOf({ fetch })) };
}

describe('[M3] placeholders of an http tool', () => {
  test('GET sends parameters in the path, in headers and, the others, in the query', async () => {
    const { asked } = await call(
      { url: 'https://api.example.com/tickets/{id}?v=1', headers: { 'x-user': 'user {user}', 'x-trace': '{trace}' } },
      { id: 'T-1/..', user: 'ann', status: ['open', 'new'], none: null },
    );
    expect(asked).toEqual([
      {
        url: 'https://api.example.com/tickets/T-1%2F..?v=1&status=open&status=new',
        method: 'GET',
        headers: { accept: expect.any(String), 'x-user': 'user ann' },
        body: null,
      },
    ]);
  });

  test('the query of any texts is what the URL parser writes', async () => {
    const url = 'https://api.example.com/v1/tickets';
    const all = Array.from({ length: 0x180 }, (_, code) => String.fromCharCode(code)).join('');
    const text = `${all}\u{1f600}\ud800+%20`;
    const full = new URL(url);
    full.searchParams.append(text, text);
    const { asked } = await call({ url }, { [text]: text });
    expect(asked[0]?.url).toBe(full.href);
    expect((await call({ url }, { none: null })).asked[0]?.url).toBe(url);
  });

  test('POST sends the others as a JSON body', async () => {
    const { asked } = await call(
      { url: 'https://api.example.com/tickets/{id}/notes', method: 'POST', headers: { 'x-user': '{user}' } },
      { id: 7, user: 'ann', text: 'Done.' },
    );
    expect(asked).toMatchObject([
      { url: 'https://api.example.com/tickets/7/notes', headers: { 'x-user': 'ann' }, body: { text: 'Done.' } },
    ]);
  });

  test('headers of the manifest replace the defaults, however their names are spelled', async () => {
    const own = { Accept: 'application/xml', 'Content-Type': 'text/plain', 'X-User': '{user}' };
    const posted = await call({ method: 'POST', headers: own }, { user: 'ann' });
    expect(posted.asked[0]?.headers).toEqual({
      accept: 'application/xml',
      'content-type': 'text/plain',
      'x-user': 'ann',
    });
    const omitted = await call({ method: 'POST', headers: { Accept: '{accept}' } }, {});
    expect(omitted.asked[0]?.headers).toEqual({
      accept: 'application/json, text/*;q=0.8',
      'content-type': 'application/json',
    });
  });

  test.each<[string, JsonObject, string]>([
    ['https://api.example.com/tickets/{id}', {}, 'the parameter "id" is missing'],
    ['https://api.example.com/tickets/{id}', { id: '..' }, 'would name another path'],
    ['https://{id}/tickets', { id: '169.254.169.254' }, 'a placeholder in its scheme, user name, host or port'],
  ])('%s with %j fails before anything is sent', async (url, parameters, message) => {
    const { asked, outcome } = await call({ url }, parameters);
    expect(errorOf(outcome)).toMatchObject({ code: 'invalid_parameters', beforeDispatch: true, retryable: false });
    expect(errorOf(outcome).message).toContain(message);
    expect(asked).toEqual([]);
  });

  test('a value cannot add a header', async () => {
    const { asked, outcome } = await call({ headers: { 'x-user': '{user}' } }, { user: 'a\r\nx-admin: 1' });
    expect(errorOf(outcome)).toMatchObject({ code: 'invalid_parameters', beforeDispatch: true });
    expect(asked).toEqual([]);
  });
});

describe('[M3] the result of an http tool', () => {
  test.each<[string, () => Response, Json]>([
    ['JSON', () => new Response('{"ok":true}'), { ok: true }],
    ['null', () => new Response('null'), null],
    ['text', () => new Response('done'), 'done'],
    ['the status without a body', () => new Response(null, { status: 204 }), { status: 204 }],
    ['the status with an empty body', () => new Response(' \n', { status: 201 }), { status: 201 }],
  ])('is %s', async (_, answer, output) => {
    const { outcome } = await call({ method: 'DELETE' }, {}, undefined, answer);
    expect(outcome).toEqual({ ok: true, output });
  });

  test('is a failure for an error status, which tells the address and the answer', async () => {
    const headers = { 'content-type': 'text/plain' };
    const { outcome } = await call({}, {}, undefined, () => new Response('nope', { status: 503, headers }));
    expect(errorOf(outcome)).toMatchObject({
      code: 'http_error',
      message: 'GET https://api.example.com/ answered 503: nope',
      retryable: true,
    });
  });
});
