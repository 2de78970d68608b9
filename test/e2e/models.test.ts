import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import { freePort } from '../../scripts/services.ts';
import { startSystem } from '../../scripts/system.ts';
import { answer, startScriptedLlm } from '../support/scripted-llm.ts';
import type { ScriptedLlm } from '../support/scripted-llm.ts';

const stops: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0)) await stop();
});

/** The Worker alone, in workerd, with these settings. */
async function worker(vars: Record<string, string>): Promise<string> {
  const stateDir = mkdtempSync(join(tmpdir(), 'cortex-models-'));
  const system = await startSystem({
    port: await freePort(),
    runnerPort: 0,
    stateDir,
    vars,
    ownRunner: false,
    progress: () => undefined,
  });
  stops.push(async () => {
    await system.stop();
    rmSync(stateDir, { recursive: true, force: true });
  });
  return system.url;
}

async function post(url: string, body: unknown): Promise<Response> {
  return await fetch(url, { method: 'POST', body: JSON.stringify(body) });
}

async function session(url: string): Promise<string> {
  const { session_id: id } = (await (await post(`${url}/agent/assistant/session`, {})).json()) as {
    session_id: string;
  };
  return `${url}/agent/session/${id}`;
}

async function model(replies: Parameters<typeof startScriptedLlm>[0]): Promise<ScriptedLlm> {
  const server = await startScriptedLlm(replies);
  stops.push(async () => {
    await server[Symbol.asyncDispose]();
  });
  return server;
}

test('[L2] an endpoint that fails again and again is left alone, and /health says so', async () => {
  const llm = await model([{ status: 500 }]);
  const url = await worker({ LLM_BASE_URL: llm.baseUrl, LLM_MODEL: 'm' });
  expect(await (await fetch(`${url}/health`)).json()).toMatchObject({ model_endpoints: [] });
  const chat = await session(url);
  for (let n = 0; n < 2; n += 1) {
    const run = (await (await post(`${chat}/message`, { content: 'hello', stream: false })).json()) as {
      status: string;
    };
    expect(run.status).toBe('failed');
  }
  const asked = llm.requests.length;
  await expect
    .poll(async () => (await (await fetch(`${url}/health`)).json()) as { model_endpoints: object[] })
    .toMatchObject({ model_endpoints: [{ endpoint: new URL(llm.baseUrl).origin, state: 'open', failures: 5 }] });
  // Another session, and so another object, leaves it alone as well.
  const other = (await (await post(`${await session(url)}/message`, { content: 'hello', stream: false })).json()) as {
    status: string;
  };
  expect(other.status).toBe('failed');
  expect(llm.requests).toHaveLength(asked);
});

test('[J5] a cancelled run lets go of the model’s connection', async () => {
  const llm = await model([{ stream: ['<thought>thinking', 'STALL'] }]);
  const url = await worker({ LLM_BASE_URL: llm.baseUrl, LLM_MODEL: 'm' });
  const chat = await session(url);
  const running = post(`${chat}/message`, { content: 'hello', stream: false });
  const { left } = await llm.request(0);
  await post(`${chat}/cancel`, {});
  await left;
  expect(await (await running).json()).toMatchObject({ status: 'cancelled' });
});

test('[H4] with RATE_LIMIT, all sessions of a key with an agent count together; the rest gets 429 with Retry-After', async () => {
  const llm = await model([answer('<response final="true">hi</response>')]);
  const url = await worker({ LLM_BASE_URL: llm.baseUrl, LLM_MODEL: 'm', RATE_LIMIT: '3' });
  const [one, two] = [await session(url), await session(url)];
  const statuses: number[] = [];
  for (const chat of [one, two, one]) {
    const response = await post(`${chat}/message`, { content: 'hello', stream: false });
    statuses.push(response.status);
    await response.text();
  }
  expect(statuses).toEqual([200, 200, 200]);
  const refused = await post(`${two}/message`, { content: 'hello', stream: false });
  expect(refused.status).toBe(429);
  expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(5);
  expect(await refused.json()).toMatchObject({ code: 'rate_limited' });
});
