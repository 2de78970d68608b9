/** Webhooks and events that start workflows (M6, X3). */
import { createHmac } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import type { JsonObject } from '../../src/domain/json.ts';
import { limits } from '../../src/domain/limits.ts';
import type { LogEvent, LogFields } from '../../src/domain/log.ts';
import type { ResolvedWorkflow } from '../../src/domain/manifests/resolved.ts';
import type { WorkflowTrigger } from '../../src/domain/manifests/workflow.ts';
import { parseApiKeys } from '../../src/http/api-keys.ts';
import { Tokens } from '../../src/http/tokens.ts';
import type { WorkflowHost } from '../../src/http/routes/workflows.ts';
import { edgeApp, noWorkflows } from './edge-app.ts';
import { checkedFetch } from '../support/response-check.ts';

const NOW = 1_790_000_000_000;
const SECRET = 'what only both sides know';
const OPERATORS = 'what the operator has set for all';

function workflow(name: string, trigger: WorkflowTrigger): ResolvedWorkflow {
  return {
    tools: new Map(),
    relics: new Map(),
    workflows: new Map(),
    agents: new Map(),
    knownNames: { tool: [], agent: [], relic: [], workflow: [] },
    workflow: {
      kind: 'Workflow',
      name,
      version: '1.0',
      summary: '',
      description: '',
      tags: [],
      metadata: {},
      trigger,
      inputs: { type: 'object', properties: { n: { type: 'number' } } },
      imports: { tools: [], agents: [], relics: [], workflows: [] },
      steps: [],
      outputs: {},
      failFast: true,
      maxParallelSteps: 5,
    },
  };
}

function worker(keys = parseApiKeys('bob:run:k-bob,ann:admin:k-ann')) {
  /** Traces of their callers. */
  const traces: string[] = [];
  const started: { name: string; sessionId: string; owner: string | null; inputs: JsonObject; by: string | null }[] =
    [];
  /** The owners whose catalogues were opened. */
  const asked = new Set<string | null>();
  const all = [
    workflow('hook', { type: 'webhook', secret: 'TOOL_HOOK' }),
    workflow('unset', { type: 'webhook', secret: 'TOOL_MISSING' }),
    workflow('on_order', { type: 'event', event: 'order' }),
    workflow('also_on_order', { type: 'event', event: 'order' }),
    workflow('by_hand', { type: 'manual' }),
    { ...workflow('shipped', { type: 'webhook', secret: 'TOOL_HOOK' }), bundled: { subject: true, tools: [] } },
  ];
  const workflows: WorkflowHost = {
    ...noWorkflows,
    schedules: (owner, count) =>
      Promise.resolve([
        { workflow: 'late', cron: '', timezone: 'UTC', inputs: {}, next: [9, 10].slice(0, count) },
        { workflow: `of ${String(owner)}`, cron: '', timezone: 'UTC', inputs: {}, next: [3] },
      ]),
    now: () => NOW,
    find: (name, owner) => {
      asked.add(owner);
      return Promise.resolve(all.find((one) => one.workflow.name === name) ?? null);
    },
    list: () => Promise.resolve(all.map((one) => one.workflow)),
    secret: (name, _owner, common) => (name !== 'TOOL_HOOK' ? null : common ? OPERATORS : SECRET),
    start: ({ agent: name, session_id: sessionId, owner }, inputs, { trigger, trace } = {}) => {
      started.push({ name, sessionId, owner, inputs, by: trigger ?? null });
      if (trace !== undefined) traces.push(trace);
      return Promise.resolve('run_1');
    },
  };
  const logged: [LogEvent, LogFields][] = [];
  const app = edgeApp({
    log: (...entry) => void logged.push(entry),
    auth: { keys, allowedOrigins: [] },
    tokens: new Tokens(
      () => 's',
      () => NOW,
    ),
    now: () => NOW,
    workflows,
    executions: async () => ({ entries: [], next: null }),
    status: async () => ({ executors: [], model: 'm', runner: null }),
  });
  const post = async (
    path: string,
    body: string,
    headers: Record<string, string> = {},
  ): Promise<[number, JsonObject]> => {
    const response = await checkedFetch(app)(
      new Request(`http://edge.example${path}`, { method: 'POST', body, headers }),
    );
    return [response.status, (await response.json()) as JsonObject];
  };
  const get = async (path: string, key: string): Promise<JsonObject> => {
    const headers = { authorization: `Bearer ${key}` };
    return (await (
      await checkedFetch(app)(new Request(`http://edge.example${path}`, { headers }))
    ).json()) as JsonObject;
  };
  return { started, traces, asked, logged, post, get };
}

test('[O1] an event continues the trace of its caller; a webhook, which needs no key, does not', async () => {
  const { post, traces } = worker(parseApiKeys('bob:run:k-bob@shop'));
  const traceparent = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01';
  await post('/webhooks/hook', '{"n":1}', { ...signed('{"n":1}'), traceparent });
  expect(traces).toEqual([]);
  await post('/events/order', '{"data":{"n":1}}', { authorization: 'Bearer k-bob', traceparent });
  await post('/events/order', '{"data":{"n":1}}', { authorization: 'Bearer k-bob', traceparent: 'nonsense' });
  expect(new Set(traces)).toEqual(new Set([traceparent]));
});

function signed(body: string, { at = NOW / 1_000, secret = SECRET } = {}): Record<string, string> {
  const signature = createHmac('sha256', secret).update(`${at}.${body}`).digest('hex');
  return { 'x-cortex-signature': `t=${at},v1=${signature}` };
}

test('[T4] keys of one namespace see the same schedules, and their webhooks and events belong to the namespace', async () => {
  const { get, post, started } = worker(parseApiKeys('bob:run:k-bob@shop,ann:admin:k-ann@shop,eve:run:k-eve'));
  const workflows = async (key: string): Promise<unknown> =>
    ((await get('/schedules', key))['schedules'] as JsonObject[]).map(({ workflow: name }) => name);
  expect([await workflows('k-ann'), await workflows('k-bob'), await workflows('k-eve')]).toEqual([
    ['of shop', 'late'],
    ['of shop', 'late'],
    ['of eve', 'late'],
  ]);
  for (const query of ['', '?owner=shop', '?owner=eve']) {
    expect((await post(`/webhooks/hook${query}`, '{"n":1}', signed('{"n":1}')))[0]).toBe(202);
  }
  // Names of keys are not namespaces.
  expect((await post('/webhooks/hook?owner=ann', '{"n":1}', signed('{"n":1}')))[0]).toBe(401);
  await post('/events/order', '{"data":{"n":1}}', { authorization: 'Bearer k-bob' });
  expect(started.map(({ owner }) => owner)).toEqual(['shop', 'shop', 'eve', 'shop', 'shop']);
});

test('[T4] webhooks of the namespace in OWNER_OF_KEYLESS start what was made without keys', async () => {
  const { post, started, asked } = worker(parseApiKeys('ann:admin:k-ann@home,eve:run:k-eve', 'home'));
  for (const query of ['', '?owner=home', '?owner=eve', '?owner=local']) {
    await post(`/webhooks/hook${query}`, '{"n":1}', signed('{"n":1}'));
  }
  expect(started.map(({ owner }) => owner)).toEqual([null, null, 'eve']);
  expect([...asked]).toEqual([null, 'eve']);
});

test('[M6] [H5] a key sees its own schedules, soonest first', async () => {
  const { get } = worker();
  expect(await get('/schedules?count=1', 'k-bob')).toMatchObject({
    schedules: [
      { workflow: 'of bob', next: [3] },
      { workflow: 'late', next: [9] },
    ],
  });
  expect(await get('/schedules?count=many', 'k-bob')).toMatchObject({ code: 'invalid_request' });
});

describe('[M6] webhooks', () => {
  test('start their workflow with the body as its inputs, without a key', async () => {
    const { started, post } = worker();
    expect(await post('/webhooks/hook', '{"n":1}', signed('{"n":1}'))).toMatchObject([202, { run_id: 'run_1' }]);
    // Nobody follows it, so it has no client (C3).
    expect(started).toMatchObject([{ name: 'hook', inputs: { n: 1 }, by: 'webhook' }]);
  });

  test('a repeated delivery gives the same session', async () => {
    const { started, post } = worker();
    const headers = signed('{"n":1}');
    const [first, again] = [
      await post('/webhooks/hook', '{"n":1}', headers),
      await post('/webhooks/hook', '{"n":1}', headers),
    ];
    expect(again).toEqual(first);
    expect(started[0]?.sessionId).toBe(started[1]?.sessionId);
    await post('/webhooks/hook', '{"n":2}', signed('{"n":2}'));
    expect(started[2]?.sessionId).not.toBe(started[0]?.sessionId);
  });

  test('[H5] belong to the key in the URL, otherwise to the first admin key; no other catalogue is opened', async () => {
    const { started, asked, post } = worker();
    await post('/webhooks/hook', '{"n":1}', signed('{"n":1}'));
    await post('/webhooks/hook?owner=bob', '{"n":1}', signed('{"n":1}'));
    await post('/webhooks/hook?owner=mallory', '{"n":1}', signed('{"n":1}'));
    expect(started.map(({ owner }) => owner)).toEqual(['ann', 'bob']);
    expect(started[0]?.sessionId).not.toBe(started[1]?.sessionId);
    expect([...asked]).toEqual(['ann', 'bob']);
  });

  test('[X3] the operator’s secret starts a bundled workflow for the first admin, and no other workflow', async () => {
    const { started, post } = worker();
    const signedBy = (secret: string): Record<string, string> => signed('{"n":1}', { secret });
    expect((await post('/webhooks/shipped', '{"n":1}', signedBy(OPERATORS)))[0]).toBe(202);
    expect((await post('/webhooks/shipped?owner=bob', '{"n":1}', signedBy(OPERATORS)))[0]).toBe(401);
    expect((await post('/webhooks/hook', '{"n":1}', signedBy(OPERATORS)))[0]).toBe(401);
    expect((await post('/webhooks/shipped?owner=bob', '{"n":1}', signedBy(SECRET)))[0]).toBe(202);
    expect(started.map(({ name, owner }) => [name, owner])).toEqual([
      ['shipped', 'ann'],
      ['shipped', 'bob'],
    ]);
  });

  test.each([
    ['unsigned', '/webhooks/hook', {}, 'no_signature'],
    ['signed with another secret', '/webhooks/hook', signed('{"n":1}', { secret: 'guessed' }), 'wrong_signature'],
    ['signed for another body', '/webhooks/hook', signed('{"n":2}'), 'wrong_signature'],
    ['too old', '/webhooks/hook', signed('{"n":1}', { at: NOW / 1_000 - limits.webhookSeconds - 1 }), 'old_signature'],
    [
      'from the future',
      '/webhooks/hook',
      signed('{"n":1}', { at: NOW / 1_000 + limits.webhookSeconds + 1 }),
      'old_signature',
    ],
    ['for a workflow whose secret is not set', '/webhooks/unset', signed('{"n":1}'), 'missing_secret'],
    ['for a workflow without a webhook', '/webhooks/by_hand', signed('{"n":1}'), 'unknown_webhook'],
    ['for an unknown workflow', '/webhooks/nowhere', signed('{"n":1}'), 'unknown_webhook'],
    ['for an unknown key name', '/webhooks/hook?owner=mallory', signed('{"n":1}'), 'unknown_webhook'],
    ['with a broken header', '/webhooks/hook', { 'x-cortex-signature': 't=x,v1=y' }, 'no_signature'],
  ])('%s: refused with the same message, nothing starts, and only the log has the reason', async (...given) => {
    const [, path, headers, reason] = given;
    const { started, logged, post } = worker();
    const [status, problem] = await post(path, '{"n":1}', headers);
    expect([status, problem['code'], problem['detail']]).toEqual([
      401,
      'unauthorized',
      'The webhook is unknown, or its signature is missing, wrong or too old',
    ]);
    expect(started).toEqual([]);
    const known = reason === 'unknown_webhook' ? {} : { workflow: path.split('/').at(-1), namespace: 'ann' };
    const entry = { ...known, code: reason, message: expect.any(String) as string };
    expect(logged).toEqual([['webhook_refused', entry]]);
  });

  test('inputs that the workflow does not declare are refused, and their text is not logged', async () => {
    const { logged, post } = worker();
    expect(await post('/webhooks/hook', '{"n":"x"}', signed('{"n":"x"}'))).toMatchObject([
      400,
      { code: 'invalid_request' },
    ]);
    const deep = `{"a":${'['.repeat(200_000)}${']'.repeat(200_000)}}`;
    for (const body of ['[1]', 'x', deep]) {
      expect(await post('/webhooks/hook', body, signed(body))).toMatchObject([400, { code: 'invalid_json' }]);
    }
    const message = 'the body does not match the inputs of the workflow';
    expect(logged.map(([, fields]) => fields)).toEqual(
      ['invalid_request', 'invalid_json', 'invalid_json', 'invalid_json'].map((code) => ({
        workflow: 'hook',
        namespace: 'ann',
        code,
        message,
      })),
    );
  });
});

describe('[M6] events', () => {
  const ann = { authorization: 'Bearer k-ann' };

  test('start every workflow with that event, as runs of the caller', async () => {
    const { started, post } = worker();
    const [status, { runs }] = await post('/events/order', '{"data":{"n":3}}', ann);
    expect(status).toBe(202);
    expect(runs).toMatchObject([{ workflow: 'on_order' }, { workflow: 'also_on_order' }]);
    expect(started.map(({ owner, inputs }) => [owner, inputs])).toEqual([
      ['ann', { n: 3 }],
      ['ann', { n: 3 }],
    ]);
  });

  test('need a key, and an event without workflows starts nothing', async () => {
    const { started, post } = worker();
    expect((await post('/events/order', '{}'))[0]).toBe(401);
    expect(await post('/events/other', '{}', ann)).toMatchObject([202, { runs: [] }]);
    expect(started).toEqual([]);
  });
});
