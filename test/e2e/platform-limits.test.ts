/** A local system that enforces the limits of the platform's plans (Z3): `PLATFORM_LIMITS`. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { freePort } from '../../cli/system/services.ts';
import { startSystem } from '../../cli/system/system.ts';
import type { System } from '../../cli/system/system.ts';
import type { RunResult } from '../../src/engine/run/run-result.ts';
import { startGateServer } from '../support/gate-server.ts';
import type { GateServer } from '../support/gate-server.ts';

const AGENT =
  'kind: Agent\nversion: "1"\nname: wide\nsummary: Calls.\npersona: You call.\n' +
  'import: {tools: [web_fetch]}\nloop: {max_parallel_actions: 64}\n';

let gate: GateServer;
let paid: System;
let free: System;
const systems: System[] = [];
const folders: string[] = [];

beforeAll(async () => {
  gate = await startGateServer();
  [paid, free] = await Promise.all([systemWith('paid'), systemWith('free')]);
});
afterAll(async () => {
  await Promise.all(systems.map((system) => system.stop()));
  await gate?.[Symbol.asyncDispose]();
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
});

async function systemWith(plan: 'free' | 'paid'): Promise<System> {
  const stateDir = mkdtempSync(join(tmpdir(), 'cortex-limits-'));
  folders.push(stateDir);
  const system = await startSystem({
    port: await freePort(),
    runnerPort: 0,
    stateDir,
    vars: { PLATFORM_LIMITS: plan, LLM_PROVIDER: 'demo', ALLOW_HOSTS: new URL(gate.url).host },
    ownRunner: false,
    progress: () => undefined,
  });
  systems.push(system);
  const uploaded = await fetch(`${system.url}/manifests/agent/wide`, { method: 'PUT', body: AGENT });
  expect(uploaded.status).toBe(201);
  return system;
}

/** A run of this number of calls, in any number at once up to 64. */
async function fanOut({ url }: System, target: string, count: number): Promise<RunResult> {
  const body = JSON.stringify({ parameters: { url: target } });
  const calls = Array.from(
    { length: count },
    (_, at) => `<action type="tool" name="web_fetch" mode="async" id="c${at}">${body}</action>`,
  );
  const response = await fetch(`${url}/execute/direct`, {
    method: 'POST',
    body: JSON.stringify({
      agent: 'wide',
      protocol_text: `${calls.join('')}<response final="true">done</response>`,
      stream: false,
    }),
  });
  expect(response.status).toBe(200);
  return (await response.json()) as RunResult;
}

test('[Z3] on the paid plan, 64 actions wait for their answers at once', async () => {
  // The server answers none before all have arrived.
  const { actions } = await fanOut(paid, `${gate.url}/gate/paid?of=64`, 64);
  expect(actions.map(({ status }) => status)).toEqual(Array.from({ length: 64 }, () => 'completed'));
});

test('[Z3] on the free plan, the calls over the limit fail with the plan and the limit, and are not sent', async () => {
  const { actions } = await fanOut(free, `${gate.url}/gate/free?of=1`, 60);
  const failed = actions.filter(({ status }) => status === 'failed');
  expect(actions.filter(({ status }) => status === 'completed')).toHaveLength(40);
  expect(failed).toHaveLength(20);
  for (const { error } of failed) {
    expect(error).toMatchObject({
      code: 'platform_limit',
      message: expect.stringContaining('free plan allows 50 outbound requests'),
    });
  }
  expect(await (await fetch(`${gate.url}/seen/free`)).json()).toMatchObject({ arrived: 40 });
});
