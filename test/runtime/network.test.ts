/** The outbound requests of a session's object, with the platform's limits enforced on it and on each of its helpers (Z3). */
import { abortAllDurableObjects, runInDurableObject } from 'cloudflare:test';
import { exports, RpcTarget } from 'cloudflare:workers';
import { afterAll, beforeAll, describe, expect, inject, test, vi } from 'vitest';
import { sessionNetwork } from '../../src/durable/network.ts';
import type { HelperAnswer, HelperRequest, OutboundConnections, OutboundHostRpc } from '../../src/durable/env.ts';
import type { Network } from '../../src/durable/network.ts';
import { StatusObject } from '../../src/durable/objects/status-object.ts';
import { OutboundHost } from '../../src/durable/objects/outbound-host.ts';
import { helperOf } from '../../src/durable/outbound-helper.ts';
import { HelperLost, HelperNotOpened } from '../../src/executors/outbound/connection-pool.ts';
import { limits } from '../../src/domain/limits.ts';
import { here } from './bindings.ts';
import { eventually } from '../support/eventually.ts';
import type { SessionEvent } from '../../src/domain/event.ts';
import { events, manifest, post, upload } from './client.ts';

declare module 'vitest' {
  interface ProvidedContext {
    gateServer: string;
  }
}

const GATE = inject('gateServer');
const FREE = { platform: { plan: 'free', enforced: true, hasLimits: true } } as const;
const PAID = { platform: { plan: 'paid', enforced: true, hasLimits: true } } as const;

let groups = 0;
const newGroup = (): string => `n${(groups += 1)}`;

async function seen(group: string): Promise<{ readonly arrived: number; readonly waiting: number }> {
  return await (await fetch(`${GATE}/seen/${group}`)).json();
}

/** Occupies the direct connections of tools, so that further requests use helpers. */
async function occupied(network: Network): Promise<AsyncDisposable> {
  const group = newGroup();
  const abort = new AbortController();
  const held = Array.from({ length: limits.directToolConnections }, () =>
    network.tools(`${GATE}/hold/${group}`, { signal: abort.signal }).catch(() => undefined),
  );
  await eventually(async () => expect((await seen(group)).arrived).toBe(limits.directToolConnections));
  return {
    async [Symbol.asyncDispose]() {
      abort.abort();
      await Promise.all(held);
    },
  };
}

test('[Z3] 64 requests of tools wait for their answers at once', async () => {
  const { tools } = sessionNetwork(PAID, exports);
  const url = `${GATE}/gate/${newGroup()}?of=64`;
  // The server answers none before all have arrived.
  const answers = await Promise.all(Array.from({ length: 64 }, () => tools(url)));
  expect(await Promise.all(answers.map((answer) => answer.json()))).toEqual(
    Array.from({ length: 64 }, () => ({ waiting: 64 })),
  );
});

test('[Z3] without helpers, six of them wait', async () => {
  const { tools } = sessionNetwork(PAID, {});
  const group = newGroup();
  const abort = new AbortController();
  const requests = Array.from({ length: 64 }, () => tools(`${GATE}/hold/${group}`, { signal: abort.signal }));
  const settled = Promise.allSettled(requests);
  await eventually(async () => expect((await seen(group)).waiting).toBe(limits.platformConnections));
  // A request of the same connections would have arrived before this one.
  expect(await seen(group)).toEqual({ arrived: 6, waiting: 6 });
  abort.abort();
  await settled;
});

test('[Z3] the model is called while all connections of tools wait', async () => {
  const network = sessionNetwork(PAID, exports);
  await using _ = await occupied(network);
  const answer = await network.services(`${GATE}/echo`, { method: 'POST', body: 'prompt' });
  expect(await answer.json()).toMatchObject({ method: 'POST', body: 'prompt' });
});

describe('[Z3] a request through a helper', () => {
  test('has its method, headers and body, and the answer its status and headers', async () => {
    const network = sessionNetwork(PAID, exports);
    await using _ = await occupied(network);
    const headers = { authorization: 'Bearer secret', traceparent: '00-1-2-01', 'idempotency-key': 'k' };
    const answer = await network.tools(`${GATE}/echo`, { method: 'PUT', headers, body: 'text' });
    expect(await answer.json()).toMatchObject({ method: 'PUT', headers, body: 'text' });
    const bytes = await network.tools(`${GATE}/echo`, { method: 'POST', body: new TextEncoder().encode('ä') });
    expect(await bytes.json()).toMatchObject({ body: 'ä' });
  });

  test('follows no redirect, because the session checks each address', async () => {
    const network = sessionNetwork(PAID, exports);
    await using _ = await occupied(network);
    const answer = await network.tools(`${GATE}/moved`, { redirect: 'manual' });
    expect([answer.status, answer.headers.get('location')]).toEqual([302, '/echo']);
  });

  test('decompresses the answer', async () => {
    const network = sessionNetwork(PAID, exports);
    await using _ = await occupied(network);
    const answer = await network.tools(`${GATE}/gzip`);
    expect(await answer.text()).toBe('a compressed answer');
  });

  test('does not read a compressed answer as a whole: it may become very large', async () => {
    const { OutboundHost: host } = exports as unknown as Record<string, OutboundHostRpc>;
    using connections = (await host?.open(null)) as OutboundConnections & Disposable;
    const request = { url: `${GATE}/packed`, method: 'GET', headers: [], body: null, redirect: 'manual' };
    const answer = await connections.send(1, request);
    if (answer.type !== 'stream') throw new Error(`the answer is ${answer.type}`);
    expect(await new Response(answer.body).text()).toBe('a compressed answer');
    expect(answer.headers.map(([name]) => name)).not.toContain('content-length');
  });

  test('streams the answer', async () => {
    const network = sessionNetwork(PAID, exports);
    await using _ = await occupied(network);
    const group = newGroup();
    const answer = await network.tools(`${GATE}/stream/${group}`);
    const reader = answer.body?.pipeThrough(new TextDecoderStream()).getReader();
    expect((await reader?.read())?.value).toBe('first ');
    await fetch(`${GATE}/finish/${group}`);
    expect((await reader?.read())?.value).toBe('second');
    expect((await reader?.read())?.done).toBe(true);
  });

  test('ends at the server when it is aborted', async () => {
    const network = sessionNetwork(PAID, exports);
    await using _ = await occupied(network);
    const group = newGroup();
    const abort = new AbortController();
    const request = network.tools(`${GATE}/hold/${group}`, { signal: abort.signal });
    await eventually(async () => expect((await seen(group)).waiting).toBe(1));
    abort.abort(new DOMException('cancelled by the user', 'AbortError'));
    await expect(request).rejects.toThrow('cancelled by the user');
    await eventually(async () => expect((await seen(group)).waiting).toBe(0));
  });

  test('fails with the error of a refused connection', async () => {
    const network = sessionNetwork(PAID, exports);
    await using _ = await occupied(network);
    await expect(network.tools('http://127.0.0.1:9/')).rejects.toThrow('Network connection lost.');
  });
});

test('[Z3] a body that is not read does not keep its helper open after an abort', async () => {
  const helper = helperOf((exports as unknown as { readonly OutboundHost: OutboundHostRpc }).OutboundHost, null);
  const group = newGroup();
  const abort = new AbortController();
  const { response, ended } = await helper.send(`${GATE}/stream/${group}`, { signal: abort.signal });
  abort.abort(new Error('cancelled'));
  await ended;
  await expect(response.text()).rejects.toThrow('cancelled');
  helper.close();
});

test('[Z3] a helper that ends fails its requests like a lost connection, and no others', async () => {
  // An object runs the code of a helper, because a test can end objects.
  Object.assign(StatusObject.prototype, { open: OutboundHost.prototype.open });
  const name = newGroup();
  const open: OutboundHostRpc['open'] = (plan) =>
    (here.STATUS.getByName(name) as unknown as OutboundHostRpc).open(plan);
  const network = sessionNetwork(PAID, { OutboundHost: { open } });
  await using _ = await occupied(network);
  const group = newGroup();
  const lost = network.tools(`${GATE}/hold/${group}`);
  await eventually(async () => expect((await seen(group)).waiting).toBe(1));
  await abortAllDurableObjects();
  await expect(lost).rejects.toThrow(HelperLost);
  expect((await seen(group)).arrived).toBe(1);
  // Another helper is opened for the next request.
  expect((await network.tools(`${GATE}/echo`)).status).toBe(200);
});

test('[Z3] a request whose helper could not be started waits for a connection of the object', async () => {
  // An entrypoint without the method.
  const { CodeToolHost: wrong } = exports as unknown as Record<string, OutboundHostRpc>;
  const network = sessionNetwork(PAID, { OutboundHost: wrong });
  const held = await occupied(network);
  const group = newGroup();
  const request = network.tools(`${GATE}/gate/${group}?of=1`);
  await held[Symbol.asyncDispose]();
  expect((await request).status).toBe(200);
  expect((await seen(group)).arrived).toBe(1);
});

test('[Z3] the free plan refuses further requests of tools before they are sent, and keeps some for the model', async () => {
  const network = sessionNetwork(FREE, exports);
  const group = newGroup();
  const most = limits.platformFreeSubrequests - limits.platformReservedSubrequests;
  const url = `${GATE}/gate/${group}?of=1`;
  await Promise.all(Array.from({ length: most }, async () => await (await network.tools(url)).text()));
  await expect(network.tools(url)).rejects.toMatchObject({
    code: 'platform_limit',
    beforeDispatch: true,
    message: expect.stringMatching(/free plan allows 50 outbound requests .* 40 were sent, and 10 are kept/),
  });
  expect((await seen(group)).arrived).toBe(most);
  await (await network.services(url)).text();
  network.topUp();
  await (await network.tools(url)).text();
});

test('[Z3] a helper sends no more requests than the free plan allows one invocation', async () => {
  const network = sessionNetwork(FREE, exports);
  await using _ = await occupied(network);
  for (let message = 0; message < 6; message += 1) {
    network.topUp();
    const group = newGroup();
    const url = `${GATE}/gate/${group}?of=10`;
    await Promise.all(Array.from({ length: 10 }, async () => await (await network.tools(url)).text()));
    expect((await seen(group)).arrived).toBe(10);
  }
});

// When a helper that could not be started, or has ended, may have sent a request:

/** A host whose calls on the promise of a stub are sent at once, as the platform's are. */
function host(send: (id: number) => Promise<HelperAnswer>) {
  const opened = Promise.withResolvers<OutboundConnections & Disposable>();
  const sent: number[] = [];
  const connections = {
    send: async (id: number) => {
      sent.push(id);
      return await send(id);
    },
    cancel: () => undefined,
    [Symbol.dispose]: () => undefined,
  };
  const open = () => Object.assign(opened.promise, connections);
  return { rpc: { open } as unknown as OutboundHostRpc, opened, connections, sent };
}

const answer: HelperAnswer = { type: 'whole', status: 200, statusText: '', headers: [], body: new Uint8Array() };

test('[Z3] nothing is sent to a helper before it is open, so one that cannot be started has sent nothing', async () => {
  const { rpc, opened, sent } = host(async () => answer);
  const request = helperOf(rpc, null).send('http://x/', {});
  opened.reject(new Error('the helper has ended'));
  await expect(request).rejects.toThrow(HelperNotOpened);
  expect(sent).toEqual([]);
});

test('[Z3] a request that is aborted before its helper is open is not sent', async () => {
  const { rpc, opened, connections, sent } = host(async () => answer);
  const abort = new AbortController();
  const helper = helperOf(rpc, null);
  const request = helper.send('http://x/', { signal: abort.signal });
  abort.abort(new Error('cancelled'));
  await expect(request).rejects.toThrow('cancelled');
  opened.resolve(connections);
  const next = await helper.send('http://x/', {});
  expect([next.response.status, sent]).toEqual([200, [2]]);
});

test('[Z3] a helper that ends during a request may have sent it', async () => {
  const { rpc, opened, connections, sent } = host(async () => await Promise.reject(new Error('reset')));
  opened.resolve(connections);
  await expect(helperOf(rpc, null).send('http://x/', {})).rejects.toThrow(HelperLost);
  expect(sent).toEqual([1]);
});

const tool = (name: string, effects: string): string =>
  manifest(
    'Tool',
    name,
    `effects: ${effects}\nimplementation: {type: http, method: POST, url: "https://calls.example.com/{path}"}\nparameters: {path: {type: string, required: true}}`,
  );

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
  if (path === 'direct') return `${GATE}/gate/direct?of=5`;
  if (path !== 'all') return attempt === 1 ? `${GATE}/hold/${path}` : `${GATE}/echo`;
  return `${GATE}/gate/${path}?of=57`;
}

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
  const stub = here.STATUS.getByName(helper) as unknown as DurableObjectStub<StatusObject>;
  await runInDurableObject(stub, (_, state) => state.abort('the helper ends')).catch(() => undefined);
}

function idsOf(all: readonly SessionEvent[], type: SessionEvent['type']): unknown[] {
  return all.filter((event) => event.type === type).map(({ action_id: id }) => id);
}

describe('[Z3] a run with 64 calls of tools at once', () => {
  beforeAll(async () => {
    await upload(
      tool('ask', 'idempotent'),
      tool('change', 'unsafe'),
      manifest(
        'Agent',
        'wide_caller',
        'persona: You call.\nimport: {tools: [ask, change]}\nloop: {max_parallel_actions: 64}',
      ),
    );
    // Objects run the code of helpers, because a test can end objects.
    Object.assign(StatusObject.prototype, {
      open(this: { readonly ctx: DurableObjectState } & OutboundHost, plan: null): OutboundConnections {
        return new Noted(this.ctx.id.name ?? '', original.call(this, plan));
      },
    });
    OutboundHost.prototype.open = (plan) => {
      const helper = here.STATUS.getByName(`helper${(helpers += 1)}`) as unknown as OutboundHostRpc;
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
    Reflect.deleteProperty(StatusObject.prototype, 'open');
  });

  test('[Z3] [S7] [J1] of 64 calls over helpers, one times out and two lose their helper', async () => {
    const quick = { timeout: 6, retry: { max_attempts: 2, backoff: 'none', delay: 0.01 } };
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
});
