/** The outbound requests of a session's object, with the platform's limits enforced on it and on each of its helpers (Z3). */
import { abortAllDurableObjects } from 'cloudflare:test';
import { exports } from 'cloudflare:workers';
import { describe, expect, inject, test } from 'vitest';
import { sessionNetwork } from '../../src/durable/network.ts';
import type { OutboundConnections, OutboundHostRpc } from '../../src/durable/env.ts';
import type { Network } from '../../src/durable/network.ts';
import { IdentityObject } from '../../src/durable/objects/identity-object.ts';
import { OutboundHost } from '../../src/durable/objects/outbound-host.ts';
import { helperOf } from '../../src/durable/outbound-helper.ts';
import { HelperLost } from '../../src/executors/outbound/connection-pool.ts';
import { limits } from '../../src/domain/limits.ts';
import { here } from './bindings.ts';
import { eventually } from '../support/eventually.ts';

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
  Object.assign(IdentityObject.prototype, { open: OutboundHost.prototype.open });
  const name = newGroup();
  const open: OutboundHostRpc['open'] = (plan) =>
    (here.IDENTITY.getByName(name) as unknown as OutboundHostRpc).open(plan);
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
    const url = `${GATE}/gate/${newGroup()}?of=10`;
    await Promise.all(Array.from({ length: 10 }, async () => await (await network.tools(url)).text()));
  }
});
