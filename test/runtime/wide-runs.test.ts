/** Runs with 64 calls of HTTP tools at once, over helpers of which one ends (Z3, S7, J1). */
import { runInDurableObject } from 'cloudflare:test';
import { RpcTarget } from 'cloudflare:workers';
import { afterAll, beforeAll, expect, inject, test, vi } from 'vitest';
import type { SessionEvent } from '../../src/domain/event.ts';
import type { HelperAnswer, HelperRequest, OutboundConnections, OutboundHostRpc } from '../../src/durable/env.ts';
import { IdentityObject } from '../../src/durable/objects/identity-object.ts';
import { OutboundHost } from '../../src/durable/objects/outbound-host.ts';
import { here } from './bindings.ts';
import { call, events, post } from './client.ts';
import { eventually } from '../support/eventually.ts';

const GATE = inject('gateServer');

const tool = (name: string, effects: string): string =>
  `kind: Tool\nversion: "1"\nname: ${name}\nsummary: Calls.\neffects: ${effects}\n` +
  'implementation: {type: http, method: POST, url: "https://calls.example.com/{path}"}\n' +
  'parameters: {path: {type: string, required: true}}\n';
const FILES = {
  'agents/wide_caller.yaml':
    'kind: Agent\nversion: "1"\nname: wide_caller\nsummary: Calls.\npersona: You call.\n' +
    'import: {tools: [ask, change]}\nloop: {max_parallel_actions: 64}\n',
  'tools/ask.yaml': tool('ask', 'idempotent'),
  'tools/change.yaml': tool('change', 'unsafe'),
};

const original = OutboundHost.prototype.open;
const fetched = globalThis.fetch;
let helpers = 0;
/** The helper that has sent the latest call, by path. */
const senders = new Map<string, string>();
/** Calls by path. */
const attempts = new Map<string, number>();

class Noted extends RpcTarget implements OutboundConnections {
  readonly #name: string;
  readonly #inner: OutboundConnections;

  constructor(name: string, inner: OutboundConnections) {
    super();
    this.#name = name;
    this.#inner = inner;
  }

  async send(id: number, request: HelperRequest): Promise<HelperAnswer> {
    senders.set(new URL(request.url).pathname.slice(1), this.#name);
    return await this.#inner.send(id, request);
  }

  cancel(id: number): void {
    this.#inner.cancel(id);
  }
}

/** The server's address of a call: the first attempt of some is never answered. */
function addressOf(path: string): string {
  const attempt = (attempts.get(path) ?? 0) + 1;
  attempts.set(path, attempt);
  if (path === 'never') return `${GATE}/hold/${path}`;
  if (path === 'direct') return `${GATE}/gate/direct?of=5`;
  if (path !== 'all') return attempt === 1 ? `${GATE}/hold/${path}` : `${GATE}/echo`;
  return `${GATE}/gate/${path}?of=57`;
}

beforeAll(async () => {
  const uploaded = await call('/manifests', { method: 'PUT', body: JSON.stringify({ files: FILES }) });
  expect([uploaded.status, await uploaded.json()]).toMatchObject([200, { problems: [] }]);
  // Objects run the code of helpers, because a test can end objects.
  Object.assign(IdentityObject.prototype, {
    open(this: { readonly ctx: DurableObjectState } & OutboundHost, plan: null): OutboundConnections {
      return new Noted(this.ctx.id.name ?? '', original.call(this, plan));
    },
  });
  OutboundHost.prototype.open = (plan) => {
    const helper = here.IDENTITY.getByName(`helper${(helpers += 1)}`) as unknown as OutboundHostRpc;
    return helper.open(plan) as ReturnType<typeof original>;
  };
  vi.spyOn(globalThis, 'fetch').mockImplementation(async (input, init) => {
    const [, path] = /^https:\/\/calls\.example\.com\/(.*)$/.exec(String(input)) ?? [];
    return await fetched(path === undefined ? input : addressOf(path), init);
  });
});
afterAll(() => {
  vi.restoreAllMocks();
  OutboundHost.prototype.open = original;
  Reflect.deleteProperty(IdentityObject.prototype, 'open');
});

const action = (id: string, path: string, name = 'ask', more = {}): string =>
  `<action type="tool" mode="async" id="${id}">${JSON.stringify({ name, parameters: { path }, ...more })}</action>`;

async function start(actions: readonly string[]): Promise<Response> {
  const protocol_text = `${actions.join('')}<response final="true">done</response>`;
  const response = await post('/execute/streaming_protocol', { protocol_text, agent: 'wide_caller' });
  expect(response.status).toBe(200);
  return response;
}

async function waiting(group: string): Promise<number> {
  return (await (await fetched(`${GATE}/seen/${group}`)).json<{ waiting: number }>()).waiting;
}

async function end(helper: string): Promise<void> {
  const stub = here.IDENTITY.getByName(helper) as unknown as DurableObjectStub<IdentityObject>;
  await runInDurableObject(stub, (_, state) => state.abort('the helper ends')).catch(() => undefined);
}

test('[Z3] [S7] [J1] of 64 calls over helpers, one times out and two lose their helper', async () => {
  const quick = { timeout: 3, retry: { max_attempts: 2, backoff: 'none', delay: 0.01 } };
  const retried = { retry: { max_attempts: 2, backoff: 'none', delay: 0.01 } };
  // The connections of the object are in use until the end.
  const direct = Array.from({ length: 4 }, (_, at) => action(`d${at}`, 'direct'));
  const calls = Array.from({ length: 57 }, (_, at) => action(`c${at}`, 'all'));
  const others = [
    action('slow', 'slow', 'ask', quick),
    action('lost', 'lost_ask', 'ask', retried),
    action('change', 'lost_change', 'change'),
  ];
  const stream = events(await start([...direct, ...others, ...calls]));
  await eventually(() => expect(attempts.get('slow')).toBe(2));
  await eventually(async () => {
    expect([await waiting('lost_ask'), await waiting('lost_change'), await waiting('slow')]).toEqual([1, 1, 0]);
  });
  const lost = new Set([senders.get('lost_ask'), senders.get('lost_change')]);
  for (const helper of lost) await end(helper ?? '');
  await eventually(() => expect(attempts.get('lost_ask')).toBe(2));
  await fetched(`${GATE}/gate/direct?of=5`);
  const all = (await stream).filter(({ seq }) => seq !== null);

  // The server has answered none before all of them had arrived.
  expect(attempts.get('all')).toBe(57);
  expect(attempts.get('slow')).toBe(2);
  expect([attempts.get('lost_ask'), attempts.get('lost_change')]).toEqual([2, 1]);
  const settled = all.filter(({ type }) => /^action_(completed|failed)$/.test(type));
  expect(settled).toHaveLength(64);
  expect(new Set(settled.map(({ action_id: id }) => id)).size).toBe(64);
  const failed = settled.filter(({ type }) => type === 'action_failed');
  expect(failed).toMatchObject([
    {
      action_id: 'change',
      data: { error: { code: 'fetch_failed', message: expect.stringContaining('helper ended') } },
    },
  ]);
  // The journal has every event once and in order, and the actions began in the order of the text.
  expect(all.map(({ seq }) => seq)).toEqual(all.map((_, at) => at + 1));
  const first = new Set(idsOf(all, 'action_started'));
  expect([...first]).toEqual(idsOf(all, 'action_queued'));
  expect(all.at(-1)?.type).toBe('agent_completed');
});

function idsOf(all: readonly SessionEvent[], type: SessionEvent['type']): unknown[] {
  return all.filter((event) => event.type === type).map(({ action_id: id }) => id);
}

test('[Z3] the calls of a cancelled run end at the server, over helpers as well', async () => {
  const stream = await start(Array.from({ length: 64 }, (_, at) => action(`n${at}`, 'never')));
  await eventually(async () => expect(await waiting('never')).toBe(64));
  await post(`/agent/session/${stream.headers.get('x-session-id') ?? ''}/cancel`, {});
  await eventually(async () => expect(await waiting('never')).toBe(0));
  expect((await events(stream)).at(-1)?.type).toBe('agent_cancelled');
});
