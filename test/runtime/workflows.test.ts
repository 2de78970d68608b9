/** Workflows in workerd: by request, by schedule, as actions, and after a restart (M6). */
import { abortAllDurableObjects, runDurableObjectAlarm, runInDurableObject } from 'cloudflare:test';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { limits } from '../../src/domain/limits.ts';
import { QuarantineSlots } from '../../src/engine/replay/quarantine-slots.ts';
import type { RunResult } from '../../src/engine/run/run-result.ts';
import { call, events, execute, post } from './client.ts';
import { SCHEDULES } from './bindings.ts';
import { childEventsOf, eventsOf } from '../support/events.ts';

const ORDERS = [
  { item: 'lamp', price: 20, quantity: 3 },
  { item: 'desk', price: 300, quantity: 1 },
  { item: 'pen', price: 1.5, quantity: 10 },
];
const OUTPUTS = { total: 375, each: [60, 300, 15], large: ['desk'] };
const outputsOf = (result: RunResult): unknown => result.outputs;

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
    const beside = await post('/workflows/data_pipeline/runs', { orders: ORDERS });
    expect([beside.status, await beside.json()]).toMatchObject([
      400,
      { code: 'invalid_request', detail: expect.stringContaining('orders') as string },
    ]);
  });

  test('stream every event, without the names of what the runtime added, and end with their outputs', async () => {
    const all = await events(await post('/workflows/data_pipeline/runs', { inputs: { orders: ORDERS } }));
    expect(all.at(-1)).toMatchObject({ type: 'agent_completed', data: { outputs: OUTPUTS } });
    expect(JSON.stringify(all)).not.toContain('_collect');
    const numbers = all.flatMap(({ seq }) => (seq === null ? [] : [seq]));
    expect(numbers).toEqual(numbers.map((_, index) => index + 1));
    const { session_id: session } = all[0] ?? {};
    const again = await events(
      await call(`/agent/session/${session ?? ''}/events`),
      ({ type }) => type === 'agent_completed',
    );
    const journaled = ({ seq }: { readonly seq: number | null }): boolean => seq !== null;
    expect(again.filter(journaled)).toEqual(all.filter(journaled));
  });

  test('run as actions of agents that import them', async () => {
    const action = `<action type="workflow" mode="async" id="w">${JSON.stringify({ name: 'data_pipeline', parameters: { orders: ORDERS } })}</action>`;
    const result = await execute(`${action}<response final="true">$w.total of $w.large</response>`, {
      agent: 'analyst',
    });
    expect(result).toMatchObject({ status: 'completed', response: '375 of ["desk"]' });
    expect(result.actions).toMatchObject([{ type: 'workflow', output: OUTPUTS }]);
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
    expect(outputsOf(result)).toEqual(OUTPUTS);
  });

  test('[J8] wait for an approval without a host, and continue with the decision', async () => {
    const tool =
      'kind: Tool\nversion: "1.0"\nname: sign\nsummary: Signs.\nimplementation: {type: builtin, entrypoint: echo}\nparameters: {text: string}\napproval: always\n';
    const flow =
      'kind: Workflow\nversion: "1.0"\nname: signing\nsummary: Asks first.\nimport: {tools: [sign, echo]}\nsteps:\n  - {name: signed, type: tool, target: sign, parameters: {text: yes!}}\n  - {name: sent, type: tool, target: echo, parameters: {text: "$(steps.signed.text)"}}\noutputs: {sent: steps.sent.text}\n';
    await call('/manifests/tool/sign', { method: 'PUT', body: tool });
    expect((await call('/manifests/workflow/signing', { method: 'PUT', body: flow })).status).toBe(201);
    const begun = await (await post('/workflows/signing/runs', { stream: false })).json<RunResult>();
    expect(begun).toMatchObject({ status: 'waiting', approvals: [{ action_id: 'signed', name: 'sign' }] });
    const session = `/agent/session/${begun.session_id}`;
    await abortAllDurableObjects();
    const told = await events(await call(`${session}/events`), ({ type }) => type === 'agent_waiting');
    const approval = eventsOf(told, 'approval_requested')[0]?.data.approval_id;
    expect(begun.approvals?.map(({ approval_id: id }) => id)).toEqual([approval]);
    await abortAllDurableObjects();
    const path = `${session}/approvals/${String(approval)}`;
    const asked = { status: 'open', name: 'sign', parameters: { text: 'yes!' }, inputs: {} };
    expect(await (await call(path)).json()).toMatchObject({ ...asked, sha256: begun.approvals?.[0]?.sha256 });
    expect((await post(path, { decision: 'approve' })).status).toBe(200);
    const second = await post(path, { decision: 'deny' });
    expect([second.status, await second.json()]).toMatchObject([
      409,
      { code: 'approval_closed', approval_status: 'approved' },
    ]);
    expect((await call(`${session}/approvals/apr_${'0'.repeat(32)}`)).status).toBe(404);
    const rest = await events(await call(`${session}/events`), ({ type }) => type === 'agent_completed');
    expect(rest.filter(({ type }) => type === 'warning')).toEqual([]);
    const result = await (await call(`${session}/runs/${begun.run_id}`)).json<RunResult>();
    expect(outputsOf(result)).toEqual({ sent: 'yes!' });
    expect(result).not.toHaveProperty('approvals');
  });

  test('[J8] [H5] as an action ask for approvals in their own session, which no token of the parent opens', async () => {
    const put = async (kind: string, name: string, body: string): Promise<void> =>
      expect([200, 201]).toContain((await call(`/manifests/${kind}/${name}`, { method: 'PUT', body })).status);
    await put(
      'tool',
      'stamp',
      'kind: Tool\nversion: "1.0"\nname: stamp\nsummary: Stamps.\nimplementation: {type: builtin, entrypoint: echo}\nparameters: {text: string}\napproval: always\n',
    );
    await put(
      'workflow',
      'stamping',
      'kind: Workflow\nversion: "1.0"\nname: stamping\nsummary: Asks.\nimport: {tools: [stamp]}\nsteps:\n  - {name: stamped, type: tool, target: stamp, parameters: {text: "$(trigger.what)"}}\noutputs: {stamped: steps.stamped.text}\n',
    );
    await put(
      'agent',
      'clerk',
      'kind: Agent\nversion: "1.0"\nname: clerk\nsummary: Stamps.\npersona: {agent: You stamp.}\nimport: {workflows: [stamping]}\n',
    );
    const text =
      '<action type="workflow" mode="async" id="w">{"name":"stamping","parameters":{"what":"letter"}}</action><response final="true">$w.stamped</response>';
    const response = await post('/execute/streaming_protocol', { agent: 'clerk', protocol_text: text });
    const parent = response.headers.get('x-session-id') ?? '';
    const told = await events(response, (event) => childEventsOf(event)[0]?.type === 'approval_requested');
    const [asked] = eventsOf(told.flatMap(childEventsOf), 'approval_requested');
    const id = asked?.data.approval_id;
    const child = asked?.session_id ?? '';
    expect([child === parent, asked?.data.parameters]).toEqual([false, { text: 'letter' }]);
    const issued = await post(`/agent/session/${parent}/tokens`, { scopes: ['approve', 'message', 'read'] });
    const { token } = await issued.json<{ token: string }>();
    const bearer = { authorization: `Bearer ${token}` };
    const decide = async (session: string, headers: Record<string, string> = {}): Promise<number> =>
      (await post(`/agent/session/${session}/approvals/${String(id)}`, { decision: 'approve' }, headers)).status;
    expect([await decide(child, bearer), await decide(parent, bearer), await decide(parent)]).toEqual([404, 404, 404]);
    expect([await decide(child), await decide(child)]).toEqual([200, 409]);
    const rest = await events(await call(`/agent/session/${parent}/events`), ({ type }) => type === 'agent_completed');
    expect(eventsOf(rest, 'agent_completed')[0]?.data.response).toBe('letter');
  });

  test('run once per scheduled time, however often the alarm fires', async () => {
    const stub = SCHEDULES.getByName('test');
    const schedule = {
      workflow: 'data_pipeline',
      cron: '0 3 * * *',
      timezone: 'Europe/Berlin',
      inputs: { orders: ORDERS },
    };
    await stub.keep([schedule], null);
    const upcoming = (): Promise<number | undefined> =>
      runInDurableObject(stub, (object) => object.upcoming()[0]?.nextAt);
    const next = await upcoming();
    expect(new Date(next ?? 0).toLocaleTimeString('de', { timeZone: 'Europe/Berlin' })).toBe('03:00:00');
    await runInDurableObject(stub, (_, { storage }) => {
      const kept = JSON.stringify({ ...schedule, nextAt: 1_000 });
      storage.sql.exec(`UPDATE schedules SET data = ?`, kept);
    });
    await runDurableObjectAlarm(stub);
    expect(await upcoming()).toBe(next);
    const listed = async (): Promise<{ agent: string; status: string }[]> => {
      const response = await call('/executions');
      const { executions } = await response.json<{ executions: { agent: string; status: string }[] }>();
      return executions.filter(({ agent }) => agent === 'data_pipeline');
    };
    await expect
      .poll(async () => (await listed()).filter(({ status }) => status === 'completed').length, { timeout: 60_000 })
      .toBeGreaterThan(0);
    const before = (await listed()).length;
    await runInDurableObject(stub, (_, { storage }) => {
      storage.sql.exec(`UPDATE schedules SET data = ?`, JSON.stringify({ ...schedule, nextAt: 1_000 }));
    });
    await runDurableObjectAlarm(stub);
    expect((await listed()).length).toBe(before);
  });

  test('[J2] are quarantined if their starts froze the hosts, until the catalogue changes', async () => {
    // a stub from before an abort no longer works
    const stub = (): ReturnType<typeof SCHEDULES.getByName> => SCHEDULES.getByName('test-frozen');
    const schedule = { workflow: 'data_pipeline', cron: '0 3 * * *', timezone: 'UTC', inputs: { orders: ORDERS } };
    const notes = (): Promise<unknown[]> =>
      runInDurableObject(stub(), (_, { storage }) => storage.sql.exec(`SELECT lives, aside FROM taken_up`).toArray());
    const dueAt = (at: number): Promise<void> =>
      runInDurableObject(stub(), (_, { storage }) => {
        storage.sql.exec(`UPDATE schedules SET data = ?`, JSON.stringify({ ...schedule, nextAt: at }));
      });
    const startedAt = async (at: number): Promise<boolean> => {
      const { executions } = await (await call('/executions')).json<{ executions: { session_id: string }[] }>();
      const times = await Promise.all(
        executions.map(async ({ session_id: id }) => {
          const { metadata } = await (await call(`/agent/session/${id}`)).json<{ metadata: Record<string, unknown> }>();
          return metadata['scheduled_for'];
        }),
      );
      return times.includes(at);
    };
    await stub().keep([schedule], null);
    for (let start = 1; start <= limits.frozenStarts; start += 1) {
      await dueAt(4_000 + start);
      await runDurableObjectAlarm(stub());
      await expect.poll(() => startedAt(4_000 + start), { timeout: 60_000 }).toBe(true);
      expect(await notes()).toEqual([{ lives: JSON.stringify(Array.from({ length: start }, () => 0)), aside: 0 }]);
      await abortAllDurableObjects();
    }
    await dueAt(5_000);
    await runDurableObjectAlarm(stub());
    expect(await startedAt(5_000)).toBe(false);
    expect(await notes()).toMatchObject([{ aside: 1 }]);
    expect(await runInDurableObject(stub(), (object) => (object.upcoming()[0]?.nextAt ?? 0) > 5_000)).toBe(true);
    await stub().follow(null);
    expect(await notes()).toEqual([]);
  });

  test('that cannot start delay no other, and nothing starts for a removed key', async () => {
    const stub = SCHEDULES.getByName('test-faults');
    const good = { workflow: 'data_pipeline', cron: '0 3 * * *', timezone: 'UTC', inputs: { orders: ORDERS } };
    const nextOf = (name: string): Promise<number | undefined> =>
      runInDurableObject(stub, (object) => object.upcoming().find(({ workflow }) => workflow === name)?.nextAt);
    const due = (at: number): Promise<void> =>
      runInDurableObject(stub, (_, { storage }) => {
        for (const kept of [{ ...good, workflow: 'broken', cron: 'never' }, good]) {
          const data = JSON.stringify({ ...kept, nextAt: at });
          storage.sql.exec(`INSERT OR REPLACE INTO schedules (workflow, data) VALUES (?, ?)`, kept.workflow, data);
        }
      });
    const runs = async (): Promise<string[]> => {
      const { executions } = await (await call('/executions')).json<{ executions: { session_id: string }[] }>();
      const at = await Promise.all(
        executions.map(async ({ session_id: id }) => {
          const { metadata } = await (await call(`/agent/session/${id}`)).json<{ metadata: Record<string, unknown> }>();
          return String(metadata['scheduled_for']);
        }),
      );
      return at.filter((time) => time === '2000' || time === '3000');
    };
    await stub.keep([good], 'ghost');
    const next = await nextOf('data_pipeline');
    await due(2_000);
    await runDurableObjectAlarm(stub);
    expect(await nextOf('data_pipeline')).toBe(next);
    await stub.keep([good], null);
    await due(3_000);
    await runDurableObjectAlarm(stub);
    expect([await nextOf('data_pipeline'), await nextOf('broken')]).toEqual([next, undefined]);
    await expect.poll(runs, { timeout: 60_000 }).toContain('3000');
    expect(await runs()).not.toContain('2000');
  });

  test('[X2] that are due at the same time start one after another, with pauses for other work', async () => {
    const stub = SCHEDULES.getByName('test-many');
    await stub.keep([], null);
    await runInDurableObject(stub, (_, { storage }) => {
      for (const workflow of ['a', 'b', 'c', 'd']) {
        const data = JSON.stringify({ workflow, cron: '0 3 * * *', timezone: 'UTC', inputs: {}, nextAt: 1_000 });
        storage.sql.exec(`INSERT INTO schedules (workflow, data) VALUES (?, ?)`, workflow, data);
      }
    });
    const waits = vi.spyOn(scheduler, 'wait').mockResolvedValue(undefined);
    await runInDurableObject(stub, (object) => object.alarm());
    expect(waits.mock.calls.map(([ms]) => ms)).toEqual([0, 1, 2, 3].map((at) => at * limits.scheduleSpacingMs));
  });

  test('report their next scheduled start', async () => {
    const flow =
      'kind: Workflow\nversion: "1.0"\nname: nightly\nsummary: By night.\ntrigger: {type: scheduled, cron: "30 12 * * *", timezone: America/New_York, inputs: {a: 1}}\nsteps:\n  - {name: w, type: llm, parameters: {prompt: hi}}\n';
    expect((await call('/manifests/workflow/nightly', { method: 'PUT', body: flow })).status).toBe(201);
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
    const flow =
      'kind: Workflow\nversion: "1.0"\nname: bulky\nsummary: Takes much.\nimport: {tools: [echo]}\nsteps:\n  - {name: seen, type: tool, target: echo, parameters: {text: "$(trigger.mark)"}}\noutputs: {mark: steps.seen.text}\n';
    expect((await call('/manifests/workflow/bulky', { method: 'PUT', body: flow })).status).toBe(201);
    const agent =
      'kind: Agent\nversion: "1.0"\nname: hauler\nsummary: Hauls.\npersona: You haul.\nimport: {workflows: [bulky]}\n';
    expect((await call('/manifests/agent/hauler', { method: 'PUT', body: agent })).status).toBe(201);
    const parameters = { mark: 'here', load: 'x'.repeat(limits.variableBytes + 1) };
    const action = `<action type="workflow" id="w">${JSON.stringify({ name: 'bulky', parameters })}</action>`;
    const result = await execute(`${action}<response final="true">$w.mark</response>`, { agent: 'hauler' });
    expect(result).toMatchObject({ status: 'completed', response: 'here' });
  });
});
