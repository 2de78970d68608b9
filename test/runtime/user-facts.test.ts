/** Facts about users in workerd, with real objects: shared by sessions, kept apart, durable (C10). */
import { abortAllDurableObjects } from 'cloudflare:test';
import { beforeAll, describe, expect, test } from 'vitest';
import { newSessionId } from '../../src/durable/session-ids.ts';
import { userFacts } from '../../src/durable/user-facts.ts';
import type { SessionRecord } from '../../src/domain/session.ts';
import type { RunResult } from '../../src/view/result.ts';
import { call, chatRecord, manifest, upload } from './client.ts';
import { here, SESSIONS } from './bindings.ts';

const remember = (key: string, value: string): string =>
  `<action type="internal" name="remember" id="r">${JSON.stringify({ key, value })}</action>`;
const READ = '<response final="true">$memory</response>';

async function sessionOf(record: Partial<SessionRecord>): Promise<string> {
  const id = await newSessionId(here);
  await SESSIONS.getByName(id).create({ ...chatRecord(id), agent: 'keeper', kind: 'execution', ...record }, {});
  return id;
}

/** Runs protocol text in a session, as the Worker does for an execution, but with a user. */
async function run(id: string, text: string): Promise<RunResult> {
  const headers = { 'content-type': 'application/json' };
  const body = JSON.stringify({ protocol_text: text, stream: false, agent: 'keeper' });
  const response = await SESSIONS.getByName(id).fetch('http://session/-/execute', { method: 'POST', headers, body });
  if (response.status !== 200) throw new Error(`HTTP ${response.status}: ${await response.text()}`);
  return await response.json();
}

async function readBy(record: Partial<SessionRecord>): Promise<unknown> {
  const { response } = await run(await sessionOf(record), READ);
  return JSON.parse(/\{.*\}/s.exec(response)?.[0] ?? 'null');
}

async function listed(user: string, agent = 'keeper'): Promise<Record<string, unknown>[]> {
  const response = await call(`/agent/${agent}/memory?user_id=${encodeURIComponent(user)}`);
  return (await response.json<{ facts: Record<string, unknown>[] }>()).facts;
}

beforeAll(() =>
  upload(
    ...['keeper', 'other'].map((name) => manifest('Agent', name, 'persona: You help.\nmemory: {facts: {max: 3}}')),
  ),
);

describe('[C10] the facts about a user', () => {
  test('are shared by the sessions of the user, after an eviction too', async () => {
    const first = await sessionOf({ user_id: 'anna' });
    expect(await run(first, `${remember('colour', 'dark green')}${READ}`)).toMatchObject({ status: 'completed' });
    await abortAllDurableObjects();
    expect(await readBy({ user_id: 'anna' })).toEqual({ colour: 'dark green' });
    expect(await listed('anna')).toMatchObject([{ key: 'colour', value: 'dark green', session_id: first }]);
    // The session is deleted, the facts stay.
    expect((await call(`/agent/session/${first}`, { method: 'DELETE' })).status).toBe(204);
    expect(await readBy({ user_id: 'anna' })).toEqual({ colour: 'dark green' });
  });

  test('are kept apart from those of other users, agents and namespaces, whatever their names are', async () => {
    await run(await sessionOf({ user_id: 'b/c' }), remember('k', 'v'));
    for (const record of [{ user_id: 'c' }, { user_id: 'b' }, { user_id: 'b/c', agent: 'other' }]) {
      expect(await readBy(record), JSON.stringify(record)).toEqual({});
    }
    const owners = [
      { owner: 'team', agent: 'keeper', userId: 'b/c' },
      { owner: 'null', agent: 'keeper', userId: 'b/c' },
      { owner: null, agent: 'keeper/b', userId: 'c' },
      { owner: null, agent: 'keeper","b/c', userId: '' },
    ];
    for (const of of owners) expect(await userFacts(here).read(of)).toEqual({ version: 0, facts: [] });
    expect(await readBy({ user_id: 'b/c' })).toEqual({ k: 'v' });
  });

  test('written by several sessions at the same time are all kept', async () => {
    const ids = await Promise.all(['a', 'b', 'c'].map(async () => await sessionOf({ user_id: 'emil' })));
    await Promise.all(ids.map(async (id, at) => await run(id, remember(`k${at}`, String(at)))));
    expect(await readBy({ user_id: 'emil' })).toEqual({ k0: '0', k1: '1', k2: '2' });
    const { actions } = await run(await sessionOf({ user_id: 'emil' }), remember('k3', '3'));
    expect(actions).toMatchObject([{ error: { code: 'memory_full', message: expect.stringContaining('k0, k1, k2') } }]);
  });

  test('a repeated call, and one that was given up, write nothing', async () => {
    const facts = userFacts(here);
    const of = { owner: null, agent: 'keeper', userId: 'gus' };
    const since = Date.now() - 1_000;
    const write = async (id: string, until: number): Promise<unknown> =>
      await facts.change(of, {
        type: 'remember',
        key: 'k',
        value: 'v',
        room: { facts: 3, chars: 500 },
        by: { sessionId: 's', runId: 'r', call: { id, since, until, isRepeated: true } },
      });
    expect(await write('a', Date.now() + 60_000)).toMatchObject({ ok: true, changed: 1 });
    await call('/agent/keeper/memory/k?user_id=gus', { method: 'DELETE' });
    await abortAllDurableObjects();
    expect(await write('a', Date.now() + 60_000)).toMatchObject({ ok: true, after: { facts: [] } });
    expect(await write('b', Date.now() + 60_000)).toMatchObject({ ok: false, code: 'superseded' });
    expect(await write('c', since)).toMatchObject({ ok: false, code: 'superseded' });
    expect(await facts.lookup(of, 'a')).toEqual({ changed: 1 });
    expect(await listed('gus')).toEqual([]);
  });
});
