/** Workflows in workerd: by request, by schedule, as actions, and after a restart; what their object writes together (M6). */
import { abortAllDurableObjects, runDurableObjectAlarm, runInDurableObject } from 'cloudflare:test';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { limits } from '../../src/domain/limits.ts';
import { QuarantineSlots } from '../../src/engine/replay/quarantine-slots.ts';
import type { RunResult } from '../../src/view/result.ts';
import { call, events, execute, manifest, post, upload } from './client.ts';
import { SCHEDULES } from './bindings.ts';

const ORDERS = [
  { item: 'lamp', price: 20, quantity: 3 },
  { item: 'desk', price: 300, quantity: 1 },
  { item: 'pen', price: 1.5, quantity: 10 },
];
const OUTPUTS = { total: 375, each: [60, 300, 15], large: ['desk'] };

const scheduleOf = (workflow = 'data_pipeline', timezone = 'UTC') => ({
  workflow,
  cron: '0 3 * * *',
  timezone,
  inputs: { orders: ORDERS },
});

/** The times that the listed runs of schedules were due. */
async function startedFor(): Promise<unknown[]> {
  const { executions } = await (await call('/executions')).json<{ executions: { session_id: string }[] }>();
  const times = await Promise.all(
    executions.map(async ({ session_id: id }) => {
      const { metadata } = await (await call(`/agent/session/${id}`)).json<{ metadata: Record<string, unknown> }>();
      return metadata['scheduled_for'] ?? [];
    }),
  );
  return times.flat();
}

beforeEach(() => {
  // The quarantine of work that freezes its host needs its own host: test/engine/replay/quarantine-slots.test.ts.
  vi.spyOn(QuarantineSlots.prototype, 'delayOf').mockReturnValue(0);
});
afterEach(() => {
  vi.restoreAllMocks();
});

describe('[M6] workflows', () => {
  test('run by request, with their outputs as the answer', async () => {
    const response = await post('/workflows/data_pipeline/runs', { inputs: { orders: ORDERS }, stream: false });
    const result = await response.json<RunResult>();
    expect(result).toMatchObject({ status: 'completed' });
    expect(result.outputs).toEqual(OUTPUTS);
    expect(JSON.stringify(result.actions)).not.toMatch(/_collect|_gate|workflow_outputs/);
    expect(result.actions.find(({ id }) => id === 'alert')?.output).toMatchObject({
      text: 'Total 375; large orders: ["desk"]',
    });
    expect(result.actions.find(({ id }) => id === 'calm')).toBeUndefined();
  });

  test('are listed, and an invalid request is refused with the reason', async () => {
    const { workflows } = await (await call('/workflows')).json<{ workflows: { name: string }[] }>();
    expect(workflows.map(({ name }) => name)).toContain('data_pipeline');
    const unknown = await post('/workflows/data_pipline/runs', {});
    expect([unknown.status, await unknown.json()]).toMatchObject([404, { code: 'unknown_workflow' }]);
    const invalid = await post('/workflows/data_pipeline/runs', { inputs: { orders: 'many' } });
    expect([invalid.status, await invalid.json()]).toMatchObject([400, { code: 'invalid_request' }]);
  });

  test('[J2] continue after a restart, without starting anything twice', async () => {
    const response = await post('/workflows/data_pipeline/runs', { inputs: { orders: ORDERS } });
    const session = response.headers.get('x-session-id') ?? '';
    await events(response, ({ type, action_id: id }) => type === 'action_started' && id === 'totals_1_total');
    await abortAllDurableObjects();
    const rest = await events(await call(`/agent/session/${session}/events`), ({ type }) => type.startsWith('agent_c'));
    const queued = rest.filter(({ type }) => type === 'action_queued').map(({ action_id: id }) => id);
    expect(new Set(queued).size).toBe(queued.length);
    const { runs } = await (await call(`/agent/session/${session}/runs`)).json<{ runs: { run_id: string }[] }>();
    const result = await (await call(`/agent/session/${session}/runs/${runs[0]?.run_id ?? ''}`)).json<RunResult>();
    expect(result.outputs).toEqual(OUTPUTS);
  });

  test('run once per scheduled time, however often the alarm fires', async () => {
    const stub = SCHEDULES.getByName('test');
    const schedule = scheduleOf('data_pipeline', 'Europe/Berlin');
    await stub.keep([schedule], null);
    const upcoming = (): Promise<number | undefined> =>
      runInDurableObject(stub, (object) => object.upcoming()[0]?.nextAt);
    const next = await upcoming();
    expect(new Date(next ?? 0).toLocaleTimeString('de', { timeZone: 'Europe/Berlin' })).toBe('03:00:00');
    const fire = async (at: number): Promise<void> => {
      await runInDurableObject(stub, (_, { storage }) => {
        storage.sql.exec(`UPDATE schedules SET data = ?`, JSON.stringify({ ...schedule, nextAt: at }));
      });
      await runDurableObjectAlarm(stub);
      expect(await upcoming()).toBe(next);
    };
    for (const at of [1_000, 1_000, 1_500]) await fire(at);
    await expect.poll(startedFor).toContain(1_500);
    expect((await startedFor()).filter((at) => at === 1_000)).toHaveLength(1);
  });

  test('[J2] are quarantined if their starts froze the hosts, until the catalogue changes', async () => {
    // a stub from before an abort no longer works
    const stub = (): ReturnType<typeof SCHEDULES.getByName> => SCHEDULES.getByName('test-frozen');
    const schedule = scheduleOf();
    const notes = (): Promise<unknown[]> =>
      runInDurableObject(stub(), (_, { storage }) => storage.sql.exec(`SELECT lives, aside FROM taken_up`).toArray());
    const dueAt = (at: number): Promise<void> =>
      runInDurableObject(stub(), (_, { storage }) => {
        storage.sql.exec(`UPDATE schedules SET data = ?`, JSON.stringify({ ...schedule, nextAt: at }));
      });
    await stub().keep([schedule], null);
    for (let start = 1; start <= limits.frozenStarts; start += 1) {
      await dueAt(4_000 + start);
      await runDurableObjectAlarm(stub());
      await expect.poll(startedFor).toContain(4_000 + start);
      expect(await notes()).toEqual([{ lives: JSON.stringify(Array.from({ length: start }, () => 0)), aside: 0 }]);
      await abortAllDurableObjects();
    }
    await dueAt(5_000);
    await runDurableObjectAlarm(stub());
    expect(await startedFor()).not.toContain(5_000);
    expect(await notes()).toMatchObject([{ aside: 1 }]);
    expect(await runInDurableObject(stub(), (object) => (object.upcoming()[0]?.nextAt ?? 0) > 5_000)).toBe(true);
    await stub().follow(null);
    expect(await notes()).toEqual([]);
  });

  test('that cannot start delay no other, and nothing starts for a removed key', async () => {
    const stub = SCHEDULES.getByName('test-faults');
    const good = scheduleOf();
    const nextOf = (name: string): Promise<number | undefined> =>
      runInDurableObject(stub, (object) => object.upcoming().find(({ workflow }) => workflow === name)?.nextAt);
    const due = (at: number): Promise<void> =>
      runInDurableObject(stub, (_, { storage }) => {
        for (const kept of [{ ...good, workflow: 'broken', cron: 'never' }, good]) {
          const data = JSON.stringify({ ...kept, nextAt: at });
          storage.sql.exec(`INSERT OR REPLACE INTO schedules (workflow, data) VALUES (?, ?)`, kept.workflow, data);
        }
      });
    await stub.keep([good], 'ghost');
    const next = await nextOf('data_pipeline');
    await due(2_000);
    await runDurableObjectAlarm(stub);
    expect(await nextOf('data_pipeline')).toBe(next);
    await stub.keep([good], null);
    await due(3_000);
    await runDurableObjectAlarm(stub);
    expect([await nextOf('data_pipeline'), await nextOf('broken')]).toEqual([next, undefined]);
    await expect.poll(startedFor).toContain(3_000);
    expect(await startedFor()).not.toContain(2_000);
  });

  test('[X2] that are due at the same time start one after another, with pauses for other work', async () => {
    const stub = SCHEDULES.getByName('test-many');
    await stub.keep([], null);
    await runInDurableObject(stub, (_, { storage }) => {
      for (const workflow of ['a', 'b', 'c', 'd']) {
        const data = JSON.stringify({ ...scheduleOf(workflow), nextAt: 1_000 });
        storage.sql.exec(`INSERT INTO schedules (workflow, data) VALUES (?, ?)`, workflow, data);
      }
    });
    const waits = vi.spyOn(scheduler, 'wait').mockResolvedValue(undefined);
    await runInDurableObject(stub, (object) => object.alarm());
    expect(waits.mock.calls.map(([ms]) => ms)).toEqual([0, 1, 2, 3].map((at) => at * limits.scheduleSpacingMs));
  });

  test('report their next scheduled start', async () => {
    const trigger = '{type: scheduled, cron: "30 12 * * *", timezone: America/New_York, inputs: {a: 1}}';
    await upload(
      manifest(
        'Workflow',
        'nightly',
        `trigger: ${trigger}\nsteps:\n  - {name: w, type: llm, parameters: {prompt: hi}}`,
      ),
    );
    const read = async (query: string): Promise<{ schedules: { workflow: string; next: number[] }[] }> =>
      await (await call(`/schedules${query}`)).json();
    const { schedules } = await read('?count=3');
    const found = schedules.find(({ workflow }) => workflow === 'nightly');
    expect(found).toMatchObject({ cron: '30 12 * * *', timezone: 'America/New_York', inputs: { a: 1 } });
    const { next = [] } = found ?? {};
    const times = next.map((at) => new Date(at).toLocaleTimeString('de', { timeZone: 'America/New_York' }));
    expect(times).toEqual(['12:30:00', '12:30:00', '12:30:00']);
    expect(next.map((at, index) => at - (next[index - 1] ?? Date.now())).every((gap) => gap > 0)).toBe(true);
    expect((await read('?count=0')) as unknown).toMatchObject({ code: 'invalid_request' });
    expect((await call('/manifests/workflow/nightly', { method: 'DELETE' })).status).toBe(204);
    expect((await read('')).schedules.map(({ workflow }) => workflow)).not.toContain('nightly');
  });

  test('accept inputs from an action that exceed the size limit of a variable', async () => {
    await upload(
      manifest(
        'Workflow',
        'bulky',
        'import: {tools: [echo]}\nsteps:\n  - {name: seen, type: tool, target: echo, parameters: {text: "$(trigger.mark)"}}\noutputs: {mark: steps.seen.text}',
      ),
      manifest('Agent', 'hauler', 'persona: You haul.\nimport: {workflows: [bulky]}'),
    );
    const parameters = { mark: 'here', load: 'x'.repeat(limits.variableBytes + 1) };
    const action = `<action type="workflow" id="w">${JSON.stringify({ name: 'bulky', parameters })}</action>`;
    const result = await execute(`${action}<response final="true">$w.mark</response>`, { agent: 'hauler' });
    expect(result).toMatchObject({ status: 'completed', response: 'here' });
  });
});

test('[M6] all schedules are replaced, or none, and an alarm is set', async () => {
  await runInDurableObject(SCHEDULES.getByName('written-together'), async (object, { storage }) => {
    const kept = (): string[] => object.upcoming().map(({ workflow }) => workflow);
    const [a, b] = [scheduleOf('a'), scheduleOf('b')];
    storage.sql.exec(`CREATE TABLE failing (workflow TEXT)`);
    storage.sql.exec(
      `CREATE TRIGGER full BEFORE INSERT ON schedules WHEN NEW.workflow IN (SELECT workflow FROM failing)
       BEGIN SELECT RAISE(ABORT, 'the disk is full'); END`,
    );
    await object.keep([a], null);
    storage.sql.exec(`INSERT INTO failing VALUES ('c')`);
    await expect(object.keep([b, scheduleOf('c')], 'other')).rejects.toThrow('full');
    expect(kept()).toEqual(['a']);
    expect(storage.kv.get('owner')).toBeNull();
    expect(await storage.getAlarm()).not.toBeNull();
    // The alarm comes first: without one, nothing would ever start.
    await storage.deleteAlarm();
    const failing = vi.spyOn(storage, 'setAlarm').mockRejectedValueOnce(new Error('no alarm'));
    await expect(object.keep([b], null)).rejects.toThrow('no alarm');
    failing.mockRestore();
    expect(kept()).toEqual(['a']);
  });
});
