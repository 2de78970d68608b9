/** Client tools in workerd: a parked object, its eviction, and the alarm for a call that expires (C3). */
import { abortAllDurableObjects, runDurableObjectAlarm, runInDurableObject } from 'cloudflare:test';
import { beforeAll, beforeEach, expect, test, vi } from 'vitest';
import { limits } from '../../src/domain/limits.ts';
import { QuarantineSlots } from '../../src/engine/replay/quarantine-slots.ts';
import type { RunResult } from '../../src/engine/run/run-result.ts';
import { SESSIONS } from './bindings.ts';
import { call, execute, post } from './client.ts';

const tool = (name: string, timeout: string): string =>
  `kind: Tool\nversion: "1.0"\nname: ${name}\nsummary: Asks the client.\nimplementation: {type: client}\ntimeout: ${timeout}\n`;
const AGENT =
  'kind: Agent\nversion: "1.0"\nname: asker\nsummary: Asks.\npersona: {agent: You ask.}\nimport: {tools: [locate, hurry]}\n';

beforeEach(() => {
  vi.spyOn(QuarantineSlots.prototype, 'delayOf').mockReturnValue(0);
});

beforeAll(async () => {
  for (const [path, body] of [
    ['tool/locate', tool('locate', '2d')],
    ['tool/hurry', tool('hurry', '1s')],
    ['agent/asker', AGENT],
  ] as const) {
    expect([200, 201]).toContain((await call(`/manifests/${path}`, { method: 'PUT', body })).status);
  }
});

const alarmOf = (session: string): Promise<number | null> =>
  runInDurableObject(SESSIONS.getByName(session), (_, { storage }) => storage.getAlarm());

const waiting = async (name: string): Promise<RunResult> => {
  const result = await execute(`<action type="tool" mode="async" id="a">{"name": "${name}"}</action>`, {
    agent: 'asker',
  });
  expect([result.status, result.pending?.length]).toEqual(['waiting', 1]);
  return result;
};
const runOf = async ({ session_id: session, run_id: run }: RunResult): Promise<RunResult> =>
  await (await call(`/agent/session/${session}/runs/${run}`)).json<RunResult>();

test('[C3] an open call survives the eviction of its object; its result is accepted once, and again after another', async () => {
  const result = await waiting('locate');
  const { session_id: session, pending = [] } = result;
  const path = `/agent/session/${session}/calls/${pending[0]?.call_id ?? ''}`;
  const due = (await alarmOf(session)) ?? 0;
  expect(Math.abs(due - Date.now() - 2 * 24 * 3_600_000)).toBeLessThan(60_000);
  await abortAllDurableObjects();
  expect((await post(path, { output: 'here' })).status).toBe(200);
  await expect.poll(async () => (await runOf(result)).status).toBe('completed');
  await abortAllDurableObjects();
  expect((await post(path, { output: 'here' })).status).toBe(200);
  expect((await post(path, { output: 'there' })).status).toBe(409);
  expect((await runOf(result)).actions).toMatchObject([{ output: 'here' }]);
});

test('[C3] the alarm wakes an evicted object for a call that has expired', async () => {
  const result = await waiting('hurry');
  const { session_id: session, pending = [] } = result;
  expect((await alarmOf(session)) ?? 0).toBeLessThanOrEqual(Date.now() + limits.watchdogMs);
  await abortAllDurableObjects();
  await new Promise((resolve) => setTimeout(resolve, 1_100));
  await runDurableObjectAlarm(SESSIONS.getByName(session));
  await expect.poll(async () => (await runOf(result)).status, { timeout: 10_000 }).toBe('completed');
  expect((await runOf(result)).actions).toMatchObject([{ error: { code: 'timeout' } }]);
  const late = await post(`/agent/session/${session}/calls/${pending[0]?.call_id ?? ''}`, { output: 1 });
  expect([late.status, await late.json()]).toMatchObject([409, { code: 'call_settled', call_status: 'expired' }]);
});

test('[C3] a call of another session is unknown', async () => {
  const [one, other] = [await waiting('locate'), await waiting('locate')];
  const response = await post(`/agent/session/${one.session_id}/calls/${other.pending?.[0]?.call_id ?? ''}`, {
    output: 1,
  });
  expect([response.status, await response.json()]).toMatchObject([404, { code: 'unknown_call' }]);
});
