/** Relic actions: requests from endpoint and parameters, outcomes from answers (R5, P6). */
import { randomUUID } from 'node:crypto';

import { afterAll, beforeAll, describe, expect, test } from 'vitest';

import { FakeRelicHost } from '../../container-runner/test/support/fake-relic-host.ts';
import { SECRET, startRunner, type TestRunner } from '../../container-runner/test/support/test-runner.ts';
import type { JsonObject } from '../../src/domain/json.ts';
import type { RelicDefinition, RelicEndpoint } from '../../src/domain/manifests/relic.ts';
import type { RelicAnswer, RelicCall, RunnerClient } from '../../src/domain/ports/runner.ts';
import { relicExecutor, relicTarget, requestOf } from '../../src/executors/relic.ts';
import { createRunnerClient } from '../../src/executors/runner/client.ts';
import { callOf, contextOf, errorOf, fakeRunner } from './support.ts';
import { CONTAINER_RELIC, relicOf } from '../support/definitions.ts';

const endpoint = (name: string, method: string, path: string, more: Partial<RelicEndpoint> = {}): RelicEndpoint => ({
  name,
  summary: '',
  parameters: { type: 'object' },
  returns: null,
  effects: 'unsafe',
  timeoutMs: null,
  http: { method, path },
  ...more,
});

const relic = relicOf(CONTAINER_RELIC, {
  idleMs: 60_000,
  endpoints: {
    get: endpoint('get', 'GET', '/entries/{key}', {
      effects: 'pure',
      parameters: { type: 'object', properties: { key: { type: 'string' } }, required: ['key'] },
    }),
    set: endpoint('set', 'PUT', '/entries/{key}', { effects: 'idempotent' }),
    add: endpoint('add', 'POST', '/add'),
  },
});

const asked: RelicCall[] = [];
function runnerWith(answer: RelicAnswer): RunnerClient {
  return {
    ...fakeRunner({}),
    callRelic: (call) => {
      asked.push(call);
      return Promise.resolve(answer);
    },
  };
}
const answered = (status: number, body: string): RelicAnswer => ({ ok: true, status, type: 'application/json', body });

function call(
  name: string,
  parameters: JsonObject,
  runner: RunnerClient | null = runnerWith(answered(200, '{"a":1}')),
) {
  return relicExecutor.execute(
    callOf(parameters, { relic, action: { type: 'relic', name } }),
    contextOf({ runner, owner: 'team a' }),
  );
}

test.each([
  ['store.get', { key: 'x' }, { relic: 'store', endpoint: 'get', parameters: { key: 'x' } }],
  ['store', { endpoint: 'get', key: 'x' }, { relic: 'store', endpoint: 'get', parameters: { key: 'x' } }],
  [
    'store',
    { endpoint: 'get', parameters: { key: 'x' } },
    { relic: 'store', endpoint: 'get', parameters: { key: 'x' } },
  ],
  ['store.get', { endpoint: 'set' }, { relic: 'store', endpoint: 'get', parameters: { endpoint: 'set' } }],
  ['store', { key: 'x' }, { relic: 'store', endpoint: null, parameters: { key: 'x' } }],
])('[P6] %s with %j', (name, parameters, target) => {
  expect(relicTarget({ name, parameters }, null)).toMatchObject({ ...target, note: null });
});

describe('[P6] a relic call that names its endpoint in another way, or not at all', () => {
  const schema = (...names: string[]): JsonObject => ({
    type: 'object',
    properties: Object.fromEntries(names.map((name) => [name, {}])),
    additionalProperties: false,
  });
  const known = new Map([
    [
      'store',
      relicOf(CONTAINER_RELIC, {
        endpoints: {
          read: endpoint('read', 'GET', '/read', { parameters: schema('key', 'action') }),
          write: endpoint('write', 'PUT', '/write', { parameters: schema('key', 'value') }),
          post: endpoint('post', 'POST', '/post', { parameters: schema('body', 'method') }),
        },
      }),
    ],
    ['empty', relicOf(CONTAINER_RELIC, { endpoints: {} })],
  ]);
  const target = (parameters: JsonObject, values?: JsonObject): unknown[] => {
    const found = relicTarget({ name: 'store', parameters }, known, values);
    return [found.endpoint, found.parameters, found.note];
  };

  test.each<[what: string, parameters: JsonObject, endpoint: string, passed: JsonObject, note: string | null]>([
    [
      'operation',
      { operation: 'write', key: 'k', value: 1 },
      'write',
      { key: 'k', value: 1 },
      '"operation" names its endpoint',
    ],
    ['action', { action: 'write', parameters: { key: 'k' } }, 'write', { key: 'k' }, '"action" names its endpoint'],
    ['an unknown operation', { operation: 'wirte', key: 'k' }, 'wirte', { key: 'k' }, '"operation" names its endpoint'],
    ['a parameter with that name', { action: 'x' }, 'read', { action: 'x' }, 'it names no endpoint: "read" is called'],
    ['nothing', {}, 'read', {}, 'it names no endpoint: "read" is called'],
    [
      'parameters of one endpoint',
      { key: 'k', value: 1 },
      'write',
      { key: 'k', value: 1 },
      'it names no endpoint: "write" is called',
    ],
    ['parameters of none', { other: 1 }, 'read', { other: 1 }, 'it names no endpoint: "read" is called'],
    ['endpoint, with a request', { endpoint: 'write', method: 'PUT', body: { key: 'k' } }, 'write', { key: 'k' }, null],
    ['endpoint, with a parameter called body', { endpoint: 'post', body: { a: 1 } }, 'post', { body: { a: 1 } }, null],
    ['endpoint before operation', { endpoint: 'read', operation: 'write' }, 'read', { operation: 'write' }, null],
  ])('%s', (_what, parameters, name, passed, note) => {
    expect(target(parameters)).toEqual([name, passed, note]);
  });

  test('[X4] values of references never decide which endpoint is called', () => {
    expect(target({ action: '$choice' }, { action: 'write' })).toEqual([
      'read',
      { action: 'write' },
      expect.any(String),
    ]);
    expect(target({ operation: '$choice' }, { operation: 'write' })[0]).toBe('$choice');
    expect(target({ key: '$key', value: 1 }, { key: 'k', value: 1 })[1]).toEqual({ key: 'k', value: 1 });
  });

  test('a relic without endpoints', () => {
    expect(relicTarget({ name: 'empty', parameters: {} }, known).endpoint).toBeNull();
  });
});

test.each<[string, string, JsonObject, string, JsonObject | null]>([
  ['GET', '/e/{key}', { key: 'a/b c?é' }, '/e/a%2Fb%20c%3F%C3%A9', null],
  ['GET', '/e/{key}', { key: '..' }, '/e/%2E%2E', null],
  ['DELETE', '/e/{key}?force={force}', { key: 'k', force: true, why: 'x' }, '/e/k?force=true&why=x', null],
  ['GET', '/e', { q: 'a&b', n: 1, list: ['x', 'y'], none: null }, '/e?q=a%26b&n=1&list=x&list=y', null],
  ['GET', '/e?v=1', { q: 'x' }, '/e?v=1&q=x', null],
  ['PUT', '/e/{key}', { key: 'k', value: { a: [1] } }, '/e/k', { value: { a: [1] } }],
  ['POST', '/e', {}, '/e', {}],
  ['DELETE', '/e/{key}', { key: '\uD800' }, '/e/%EF%BF%BD', null],
])('[R5] %s %s with %j', (method, path, parameters, full, body) => {
  expect(requestOf({ http: { method, path } }, parameters)).toEqual({ method, path: full, body });
});

test.each<[string, JsonObject]>([
  ['/e/{key}', {}],
  ['/e/{key}', { key: '' }],
])('[R5] DELETE %s with %j is not sent, because it would name another path', (path, parameters) => {
  expect(requestOf({ http: { method: 'DELETE', path } }, parameters)).toEqual({
    reason: expect.any(String),
  });
});

test.each(['constructor', '__proto__', 'toString'])(
  '[P6] the endpoint %s, which every object has, is unknown',
  (name) => {
    const endpoints = { get: { parameters: { type: 'object', properties: {}, additionalProperties: false } } };
    const relics = new Map([['store', { endpoints }]]) as unknown as Parameters<typeof relicTarget>[1];
    for (const key of ['endpoint', 'operation', 'action']) {
      expect(relicTarget({ name: 'store', parameters: { [key]: name, body: {} } }, relics).endpoint).toBe(name);
    }
  },
);

describe('a relic action', () => {
  test('[R5] calls the service of its own session', async () => {
    asked.length = 0;
    expect(await call('store.get', { key: 'k' })).toEqual({ ok: true, output: { a: 1 } });
    expect(asked).toMatchObject([{ space: 'ses_1', method: 'GET', path: '/entries/k', body: null }]);
  });

  test('[M4] calls the service of the API key if the relic is shared', async () => {
    asked.length = 0;
    const shared = { ...relic, scope: 'shared' } as const;
    const context = contextOf({ runner: runnerWith(answered(200, '')), owner: 'team a' });
    await relicExecutor.execute(
      callOf({ key: 'k' }, { relic: shared, action: { type: 'relic', name: 'store.get' } }),
      context,
    );
    expect(asked[0]?.space).toBe('key:team~20a');
  });

  test.each([
    ['store.nope', {}, 'unknown_endpoint', 'has no endpoint "nope" (it has: get, set, add)'],
    ['store', {}, 'invalid_parameters', 'parameters.key'],
    ['store.constructor', {}, 'unknown_endpoint', 'has no endpoint'],
    ['store.get', {}, 'invalid_parameters', 'parameters.key'],
    ['store.get', { key: 5 }, 'invalid_parameters', 'parameters.key: expected string'],
  ])('[M3] %s with %j is refused before anything is sent', async (name, parameters, code, message) => {
    asked.length = 0;
    const error = errorOf(await call(name, parameters));
    expect(error).toMatchObject({ code, beforeDispatch: true });
    expect(error.message).toContain(message);
    expect(asked).toEqual([]);
  });

  test.each<[string, RelicAnswer, object]>([
    ['store.set', answered(409, '{"error":"version 3"}'), { code: 'relic_error', retryable: false }],
    ['store.set', answered(503, 'busy'), { code: 'relic_error', retryable: true, overloaded: true }],
    ['store.add', answered(500, 'oops'), { code: 'relic_error', retryable: false }],
    [
      'store.add',
      { ok: false, code: 'relic_unavailable', message: 'no', beforeDispatch: true },
      { code: 'relic_unavailable', retryable: true, beforeDispatch: true },
    ],
    [
      'store.set',
      { ok: false, code: 'relic_broken', message: 'cut', beforeDispatch: false },
      { code: 'relic_broken', retryable: true },
    ],
    [
      'store.add',
      { ok: false, code: 'relic_broken', message: 'cut', beforeDispatch: false },
      { code: 'outcome_unknown', retryable: false },
    ],
    [
      'store.add',
      { ok: false, code: 'relic_timeout', message: 'late', beforeDispatch: false },
      { code: 'outcome_unknown' },
    ],
  ])('[S7] %s: %j', async (name, answer, error) => {
    expect(errorOf(await call(name, { key: 'k' }, runnerWith(answer)))).toMatchObject(error);
  });

  test('[R5] without a runner fails with the reason', async () => {
    expect(errorOf(await call('store.get', { key: 'k' }, null))).toMatchObject({
      code: 'runner_unavailable',
      beforeDispatch: true,
    });
  });
});

describe('through a runner', () => {
  let host: FakeRelicHost;
  let runner: TestRunner;
  let client: RunnerClient;
  beforeAll(async () => {
    host = new FakeRelicHost();
    runner = await startRunner({ sandboxes: [], relicHost: host });
    client = createRunnerClient({
      baseUrl: runner.url,
      key: { id: null, secret: SECRET },
      fetch,
      clock: {
        now: Date.now,
        schedule: (ms, callback) => {
          const timer = setTimeout(callback, ms);
          return () => clearTimeout(timer);
        },
      },
      newNonce: randomUUID,
    });
  });
  afterAll(async () => {
    await runner.close();
  });

  const more = { environment: { LEVEL: 'debug' }, state: '/data' };
  const store = { ...relic, implementation: { ...relic.implementation, ...more } } as RelicDefinition;
  const put = callOf({ key: 'k', value: [1] }, { relic: store, action: { type: 'relic', name: 'store.set' } });

  test('[R5] a call reaches the service and returns its answer', async () => {
    host.prepare = (service) => {
      service.answer = ({ path, body }) => ({
        end: 'answered',
        status: 200,
        type: 'application/json',
        body: `{"path":"${path}","body":${body ?? 'null'}}`,
      });
    };
    expect(await relicExecutor.execute(put, contextOf({ runner: client }))).toEqual({
      ok: true,
      output: { path: '/entries/k', body: { value: [1] } },
    });
    expect(host.started[0]?.spec).toMatchObject({ image: 'store:1', persistent: true, idle_ms: 60_000, ...more });
  });

  test('[R5] a service that breaks off fails the call, and so does a runner without a free place', async () => {
    const service = host.started.at(-1);
    if (service === undefined) throw new Error('no service was started');
    service.answer = () => ({ end: 'broken', why: 'reset' });
    const broken = await relicExecutor.execute(put, contextOf({ runner: client }));
    expect(errorOf(broken)).toMatchObject({ code: 'relic_broken' });
    const bad = { ...relic, implementation: { ...relic.implementation, port: 1 } } as RelicDefinition;
    const context = contextOf({ runner: client });
    const refused = await relicExecutor.execute(
      callOf({ key: 'k' }, { relic: bad, action: { type: 'relic', name: 'store.get' } }),
      context,
    );
    expect(errorOf(refused)).toMatchObject({ code: 'not_available', beforeDispatch: true, retryable: false });
  });

  test('[R5] the end of a session stops its relics and removes their state', async () => {
    await client.stopRelics('ses_1', { forget: true });
    expect(host.started.map(({ stopped }) => stopped)).toEqual([true]);
    expect(host.forgotten).toEqual([{ scope: 'ses_1', name: null }]);
  });
});
