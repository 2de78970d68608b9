/** What waits for people and clients, in workerd: evicted objects, lists of all sessions, alarms and streams (J8, C3). */
import { abortAllDurableObjects, runDurableObjectAlarm, runInDurableObject } from 'cloudflare:test';
import { beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import type { OpenApproval } from '../../src/engine/actions/approval-list.ts';
import { QuarantineSlots } from '../../src/engine/replay/quarantine-slots.ts';
import type { RunResult } from '../../src/view/result.ts';
import { childEventsOf, eventsOf } from '../support/events.ts';
import { shardOf } from '../../src/domain/directory.ts';
import { here, SESSIONS } from './bindings.ts';
import { alarmOf } from './objects.ts';
import { call, events, execute, manifest, post, SEAL, upload } from './client.ts';
import { limits } from '../../src/domain/limits.ts';

const ASKED = [
  SEAL,
  manifest(
    'Workflow',
    'sealing',
    'import: {tools: [seal]}\nsteps:\n  - {name: sealed, type: tool, target: seal, parameters: {text: "$(trigger.what)"}}\noutputs: {sealed: steps.sealed.text}',
  ),
  manifest('Agent', 'sealer', 'persona: You seal.\nimport: {tools: [seal, echo], workflows: [sealing]}'),
  ...[
    ['locate', '2d'],
    ['hurry', '1s'],
  ].map(([name = '', timeout]) => manifest('Tool', name, `implementation: {type: client}\ntimeout: ${timeout}`)),
  manifest('Agent', 'asker', 'persona: You ask.\nimport: {tools: [locate, hurry]}'),
];

const seal = (id: string, text: string): string =>
  `<action type="tool" mode="async" id="${id}">${JSON.stringify({ name: 'seal', parameters: { text } })}</action>`;

interface Page {
  readonly approvals: readonly OpenApproval[];
  readonly next: string | null;
}
const page = async (path: string): Promise<Page> => await (await call(path)).json<Page>();
/** All pages of the list of all sessions. */
const all = async (limit = 25): Promise<OpenApproval[]> => {
  const found: OpenApproval[] = [];
  for (let next: string | null = ''; next !== null;) {
    const one: Page = await page(`/approvals?limit=${limit}${next === '' ? '' : `&after=${next}`}`);
    found.push(...one.approvals);
    next = one.next;
  }
  return found;
};
const ofSession = async (session: string): Promise<OpenApproval[]> =>
  (await all()).filter(({ session_id: id }) => id === session);
const listedIn = async (session: string): Promise<string[]> => {
  const rows = await here.DIRECTORY.getByName(shardOf(null, session)).approvals({ limit: 999, after: null });
  return rows.filter(({ session_id: id }) => id === session).map(({ action_id: id }) => id);
};

beforeEach(() => {
  vi.spyOn(QuarantineSlots.prototype, 'delayOf').mockReturnValue(0);
});

beforeAll(() => upload(...ASKED));

const waiting = async (text: string): Promise<RunResult> => {
  const result = await execute(text, { agent: 'sealer' });
  expect(result.status).toBe('waiting');
  return result;
};

describe('[J8] open approvals', () => {
  test('are listed for their session and for all sessions, with the resolved call, until they are decided', async () => {
    const { session_id: session, run_id: run } = await waiting(
      `<action type="tool" mode="async" id="x">{"name": "echo", "parameters": {"text": "wax"}}</action>${seal('a', 'red $x.text')}${seal('b', 'blue')}`,
    );
    const path = `/agent/session/${session}`;
    expect(await (await call(path)).json()).toMatchObject({ status: 'waiting' });
    const { approvals: own } = await page(`${path}/approvals`);
    expect(own).toMatchObject([
      { action_id: 'b', name: 'seal', type: 'tool', run_id: run, parameters: { text: 'blue' } },
      { action_id: 'a', name: 'seal', type: 'tool', agent: 'sealer', parameters: { text: 'red wax' }, complete: true },
    ]);
    await expect.poll(async () => await ofSession(session)).toEqual(own);
    // The list itself holds no call.
    const rows = await here.DIRECTORY.getByName(shardOf(null, session)).approvals({ limit: 999, after: null });
    expect(JSON.stringify(rows)).not.toContain('wax');
    const [first, second] = own.map(({ approval_id: id }) => `${path}/approvals/${id}`);
    expect((await post(first ?? '', { approve: true })).status).toBe(200);
    expect((await page(`${path}/approvals`)).approvals.map(({ action_id: id }) => id)).toEqual(['a']);
    await expect.poll(async () => await listedIn(session)).toEqual(['a']);
    expect((await post(second ?? '', { deny: true, note: 'no' })).status).toBe(200);
    await expect.poll(async () => await listedIn(session)).toEqual([]);
    expect(await ofSession(session)).toEqual([]);
  });

  test('of many sessions have pages without gaps or repetitions', async () => {
    const made = await Promise.all([1, 2, 3, 4, 5].map(async (n) => (await waiting(seal('a', `${n}`))).session_id));
    await expect
      .poll(async () => (await all()).filter(({ session_id: id }) => made.includes(id)).length)
      .toBe(made.length);
    const pages = await all(2);
    expect(pages).toEqual(await all());
    expect(new Set(pages.map(({ approval_id: id }) => id)).size).toBe(pages.length);
    for (const path of ['/approvals?limit=26', '/approvals?after=1', '/approvals?before=1']) {
      expect((await call(path)).status).toBe(400);
    }
  });

  test('survive a restart; a list that missed them, or kept settled ones, is corrected', async () => {
    const { session_id: session } = await waiting(seal('a', 'x'));
    await expect.poll(async () => await listedIn(session)).toEqual(['a']);
    // A reference to an object does not survive the object's restart.
    const index = (
      id = session,
    ): typeof here.DIRECTORY extends { getByName(name: string): infer Stub } ? Stub : never =>
      here.DIRECTORY.getByName(shardOf(null, id));
    const [row] = (await ofSession(session)).slice(0, 1);
    if (row === undefined) throw new Error('nothing is listed');
    // A host that was lost between its own write and that of the list.
    await index().keepApprovals(session, []);
    await runInDurableObject(SESSIONS.getByName(session), (_, { storage }) => storage.kv.delete('approvals'));
    await abortAllDurableObjects();
    expect((await call(`/agent/session/${session}`)).status).toBe(200);
    await expect.poll(async () => await listedIn(session)).toEqual(['a']);
    // Entries that are settled according to their session, and of a session that is gone.
    const settled = { ...row, approval_id: `apr_${'0'.repeat(32)}` };
    await index().keepApprovals(session, [row, settled]);
    const gone = `ses_${'0'.repeat(32)}`;
    await index(gone).keepApprovals(gone, [{ ...row, session_id: gone, approval_id: `apr_${'f'.repeat(32)}` }]);
    expect(await ofSession(session)).toEqual([row]);
    expect([await listedIn(session), await listedIn(gone)]).toEqual([['a'], []]);
    expect((await call(`/agent/session/${session}`, { method: 'DELETE' })).status).toBe(204);
    expect(await listedIn(session)).toEqual([]);
  });

  test('of a workflow that an action runs are listed where they are decided, and under the session of the action', async () => {
    const action = '{"name":"sealing","parameters":{"what":"letter"}}';
    const response = await post('/execute/streaming_protocol', {
      agent: 'sealer',
      protocol_text: `<action type="workflow" mode="async" id="w">${action}</action><response final="true">$w.sealed</response>`,
    });
    const parent = response.headers.get('x-session-id') ?? '';
    await events(response, (event) => childEventsOf(event)[0]?.type === 'approval_requested');
    const { approvals: found } = await page(`/agent/session/${parent}/approvals`);
    expect(found).toMatchObject([{ parent_session_id: parent, agent: 'sealing', parameters: { text: 'letter' } }]);
    const { session_id: child = '', approval_id: id = '' } = found[0] ?? {};
    expect(child).not.toBe(parent);
    expect((await page(`/agent/session/${child}/approvals`)).approvals).toEqual(found);
    await expect.poll(async () => await ofSession(child)).toEqual(found);
    // A token of the parent cannot decide it, and does not list it.
    const issued = await post(`/agent/session/${parent}/tokens`, { scopes: ['read', 'approve'] });
    const { token } = await issued.json<{ token: string }>();
    expect(await page(`/agent/session/${parent}/approvals?token=${token}`)).toEqual({ approvals: [], next: null });
    expect((await post(`/agent/session/${child}/approvals/${id}`, { approve: true })).status).toBe(200);
    const rest = await events(await call(`/agent/session/${parent}/events`), ({ type }) => type === 'agent_completed');
    expect(eventsOf(rest, 'agent_completed')[0]?.data.response).toBe('letter');
    expect((await page(`/agent/session/${parent}/approvals`)).approvals).toEqual([]);
  });

  test('[H2] events?run= continues after agent_waiting to the end, also after an eviction', async () => {
    const response = await post('/execute/direct', {
      agent: 'sealer',
      protocol_text: `${seal('a', 'wax')}<response final="true">$a.text</response>`,
    });
    // The stream of the request ends when the run waits.
    const first = await events(response);
    expect(first.at(-1)?.type).toBe('agent_waiting');
    const { session_id: session = '', run_id: run = '' } = first.at(-1) ?? {};
    await abortAllDurableObjects();
    const told = events(await call(`/agent/session/${session}/events?run=${run}`));
    const [asked] = eventsOf(first, 'approval_requested');
    const path = `/agent/session/${session}/approvals/${asked?.data.approval_id ?? ''}`;
    expect((await post(path, { approve: true })).status).toBe(200);
    const seen = (await told).filter(({ seq }) => seq !== null);
    expect(seen.map(({ type }) => type)).toEqual(expect.arrayContaining(['agent_waiting', 'action_completed']));
    expect(seen.at(-1)).toMatchObject({ type: 'agent_completed', data: { response: 'wax' } });
    // The same afterwards, from the journal.
    const again = await events(await call(`/agent/session/${session}/events?run=${run}`));
    expect(again.map(({ seq }) => seq)).toEqual(seen.map(({ seq }) => seq));
  });
});

const calling = async (name: string): Promise<RunResult> => {
  const result = await execute(`<action type="tool" mode="async" id="a">{"name": "${name}"}</action>`, {
    agent: 'asker',
  });
  expect([result.status, result.pending?.length]).toEqual(['waiting', 1]);
  return result;
};
const runOf = async ({ session_id: session, run_id: run }: RunResult): Promise<RunResult> =>
  await (await call(`/agent/session/${session}/runs/${run}`)).json<RunResult>();

test('[C3] an open call survives the eviction of its object; its result is accepted once, and again after another', async () => {
  const result = await calling('locate');
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
  const result = await calling('hurry');
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
