/** One Worker with model endpoints that fail, stall and are overloaded; each test has its own API key. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { freePort } from '../../cli/system/services.ts';
import { startSystem } from '../../cli/system/system.ts';
import type { System } from '../../cli/system/system.ts';
import { answer, startScriptedLlm } from '../../cli/scripted-llm/server.ts';
import type { ScriptedLlm } from '../../cli/scripted-llm/server.ts';

type Who = 'breaker' | 'cancel' | 'limit' | 'limit-2';

const stateDir = mkdtempSync(join(tmpdir(), 'cortex-models-'));
let llm: ScriptedLlm;
let system: System;

beforeAll(async () => {
  llm = await startScriptedLlm((request) => {
    const said = JSON.stringify(request.body);
    if (said.includes('please fail')) return { status: 500 };
    if (said.includes('please stall')) return { stream: ['<thought>thinking', 'STALL'] };
    return answer('<response final="true">hi</response>');
  });
  system = await startSystem({
    port: await freePort(),
    runnerPort: 0,
    stateDir,
    vars: {
      LLM_BASE_URL: llm.baseUrl,
      LLM_MODEL: 'm',
      RATE_LIMIT: '3',
      API_KEYS: [
        ...(['breaker', 'cancel', 'limit'] as const).map((who) => `${who}:run:${keyOf(who)}`),
        `limit-2:run:${keyOf('limit-2')}@limit`,
      ].join(','),
    },
    ownRunner: false,
    progress: () => undefined,
  });
});

afterAll(async () => {
  await system?.stop();
  await llm?.[Symbol.asyncDispose]();
  rmSync(stateDir, { recursive: true, force: true });
});

function keyOf(who: Who): string {
  return `the-key-of-${who}-in-this-test`;
}

async function ask(who: Who, path: string, body?: unknown): Promise<Response> {
  return await fetch(`${system.url}${path}`, {
    headers: { authorization: `Bearer ${keyOf(who)}` },
    ...(body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) }),
  });
}

async function session(who: Who): Promise<string> {
  const created = await ask(who, '/agent/assistant/session', {});
  return `/agent/session/${((await created.json()) as { session_id: string }).session_id}`;
}

const endpoints = async (): Promise<unknown[]> =>
  ((await (await ask('breaker', '/health')).json()) as { model_endpoints: unknown[] }).model_endpoints;

const asked = (text: string): ScriptedLlm['requests'] =>
  llm.requests.filter(({ body }) => JSON.stringify(body).includes(text));

test('[J5] a cancelled run closes the model’s connection', async () => {
  const chat = await session('cancel');
  const running = ask('cancel', `${chat}/message`, { content: 'please stall', stream: false });
  await expect.poll(() => asked('please stall').length).toBe(1);
  await ask('cancel', `${chat}/cancel`, {});
  await asked('please stall')[0]?.left;
  expect(await (await running).json()).toMatchObject({ status: 'cancelled' });
});

test('[H4] [T4] RATE_LIMIT counts all sessions of a namespace with an agent; further requests get 429 with Retry-After', async () => {
  const [one, two] = [await session('limit'), await session('limit')];
  const statuses: number[] = [];
  for (const chat of [one, two, one]) {
    const response = await ask('limit', `${chat}/message`, { content: 'hello', stream: false });
    statuses.push(response.status);
    await response.text();
  }
  expect(statuses).toEqual([200, 200, 200]);
  const refused = await ask('limit-2', `${two}/message`, { content: 'hello', stream: false });
  expect(refused.status).toBe(429);
  expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(5);
  expect(await refused.json()).toMatchObject({ code: 'rate_limited' });
});

// The last test: it opens the circuit of the endpoint for all.
test('[L2] an endpoint that fails repeatedly is no longer called, and /health reports it', async () => {
  expect(await endpoints()).toEqual([]);
  const status = async (chat: string): Promise<string> => {
    const run = await ask('breaker', `${chat}/message`, { content: 'please fail', stream: false });
    expect(run.status).toBe(502);
    return ((await run.json()) as { status: string }).status;
  };
  const chat = await session('breaker');
  expect([await status(chat), await status(chat)]).toEqual(['failed', 'failed']);
  const requests = llm.requests.length;
  await expect.poll(endpoints).toMatchObject([{ endpoint: new URL(llm.baseUrl).origin, state: 'open', failures: 5 }]);
  // Another session, and therefore another object, does not call it either.
  expect(await status(await session('breaker'))).toBe('failed');
  expect(llm.requests).toHaveLength(requests);
});
