/** Forks of sessions through the Worker, from object to object (C4). */
import { runInDurableObject } from 'cloudflare:test';
import { describe, expect, test } from 'vitest';
import type { DirectoryEntry } from '../../src/domain/directory.ts';
import { limits } from '../../src/domain/limits.ts';
import { newSessionId } from '../../src/durable/session-ids.ts';
import { here, SESSIONS } from './bindings.ts';
import { call, chatRecord, events, newSession, post } from './client.ts';

interface Forked {
  readonly session_id: string;
  readonly message_count: number;
  readonly code?: string;
}

const say = async (session: string, content: string): Promise<{ run_id: string; response: string }> =>
  await (await post(`/agent/session/${session}/message`, { content, stream: false })).json();
const fork = async (session: string, body: object = {}, key?: string): Promise<[number, Forked]> => {
  const response = await post(
    `/agent/session/${session}/fork`,
    body,
    key === undefined ? {} : { 'idempotency-key': key },
  );
  return [response.status, await response.json<Forked>()];
};
const history = async (session: string): Promise<string[]> =>
  (await (await call(`/agent/session/${session}/history`)).json<{ messages: { content: string }[] }>()).messages.map(
    ({ content }) => content,
  );

describe('C4 a fork', () => {
  test('is a session of its own: it has what was said up to a run, and both go on alone', async () => {
    const session = await newSession('assistant', { user_id: 'ada', metadata: { team: 'x' } });
    await say(session, 'remember my color is teal');
    const { run_id: at } = await say(session, 'remember my city is Oslo');
    await say(session, 'remember my city is Bergen');
    const [status, forked] = await fork(session, { at_run: at });
    expect([status, forked.message_count]).toEqual([201, 4]);
    const { session_id: other } = forked;
    expect((await say(other, 'what is my city')).response).toContain('Oslo');
    expect((await say(other, 'what is my color')).response).toContain('teal');
    expect((await say(session, 'what is my city')).response).toContain('Bergen');
    expect((await history(other)).slice(0, 4)).toEqual((await history(session)).slice(0, 4));
    expect(await (await call(`/agent/session/${other}`)).json()).toMatchObject({
      session_id: other,
      user_id: 'ada',
      metadata: { team: 'x' },
      forked_from: { session_id: session, run_id: at },
      runs: 4,
      status: 'idle',
    });
    const deleted = await call(`/agent/session/${session}`, { method: 'DELETE' });
    expect(deleted.status).toBe(204);
    expect((await say(other, 'what is my color')).response).toContain('teal');
  });

  test('with the same key is the same session, also if it is asked for at the same time', async () => {
    const session = await newSession();
    await say(session, 'Hello');
    const [[, one], [, two]] = await Promise.all([fork(session, {}, 'k'), fork(session, {}, 'k')]);
    const [, three] = await fork(session, {}, 'k');
    const ids = [one, two, three].flatMap(({ session_id: id }) => id ?? []);
    expect(new Set(ids).size).toBe(1);
    expect((await fork(session))[1].session_id).not.toBe(three.session_id);
  });

  test('with the same key is the first one, also after further messages in both; another body is refused', async () => {
    const session = await newSession();
    const { run_id: at } = await say(session, 'Hello');
    const [, one] = await fork(session, {}, 'k');
    expect(one).toMatchObject({ message_count: 2, forked_from: { session_id: session, run_id: at } });
    await say(session, 'Hello again');
    await say(one.session_id, 'Hello there');
    expect(await fork(session, {}, 'k')).toEqual([201, one]);
    expect(await fork(session, { at_run: at }, 'k')).toMatchObject([422, { code: 'idempotency_mismatch' }]);
    const [, other] = await fork(session, { at_run: at }, 'other');
    expect(other).toMatchObject({ message_count: 2, forked_from: { run_id: at } });
    expect(await fork(session, { at_run: at }, 'other')).toEqual([201, other]);
    expect(await (await call(`/agent/session/${one.session_id}`)).json()).not.toHaveProperty('request_sha256');
  });

  test('with the same key is the first one, also while the session runs', async () => {
    const session = await newSession();
    await say(session, 'Hello');
    const first = await fork(session, {}, 'k');
    const text = '<action type="tool" name="echo" id="a">{"delay_ms": 50000}</action>';
    const body = JSON.stringify({ protocol_text: text, stream: true });
    const running = await SESSIONS.getByName(session).fetch(
      new Request('http://session/-/execute', { method: 'POST', body }),
    );
    await events(running, ({ type }) => type === 'action_started');
    expect((await fork(session))[1].code).toBe('run_in_progress');
    expect((await fork(session, {}, 'another'))[1].code).toBe('run_in_progress');
    expect(await fork(session, {}, 'k')).toEqual(first);
    await call(`/agent/session/${session}/cancel`, { method: 'POST' });
  });

  test('[T5] with the same key of a session that was made again is another session', async () => {
    const id = await newSessionId(here);
    const stub = SESSIONS.getByName(id);
    await stub.create(chatRecord(id), {});
    const [, one] = await fork(id, {}, 'k');
    await call(`/agent/session/${id}`, { method: 'DELETE' });
    await stub.create(chatRecord(id), {});
    const [status, two] = await fork(id, {}, 'k');
    expect(status).toBe(201);
    expect(two.session_id).not.toBe(one.session_id);
  });

  test('[C6] is listed at once, before sessions that were active earlier', async () => {
    const old = await newSession('assistant', { user_id: 'lister' });
    await say(old, 'Old talk');
    const [first, second] = [await newSession('assistant', { user_id: 'lister' }), await fork(old)];
    const forked = second[1].session_id;
    const listed = async (): Promise<DirectoryEntry[]> =>
      (await (await call('/sessions?user_id=lister')).json<{ sessions: DirectoryEntry[] }>()).sessions;
    await expect
      .poll(async () => (await listed()).map(({ session_id: id }) => id), { timeout: 5_000 })
      .toEqual([forked, first, old]);
    const session = await (await call(`/agent/session/${forked}`)).json<DirectoryEntry>();
    expect(session.updated_at).toBe(session.created_at);
    expect((await listed())[0]).toMatchObject({ updated_at: session.created_at, title: 'Old talk' });
  });

  test('needs a run of the session, and a known session', async () => {
    const session = await newSession();
    await say(session, 'Hello');
    const other = await newSession();
    const { run_id: foreign } = await say(other, 'Hello');
    expect((await fork(session, { at_run: foreign }))[1].code).toBe('unknown_run');
    expect((await fork(session, { at: foreign }))[1].code).toBe('invalid_request');
    expect((await fork(`ses_${'0'.repeat(32)}`))[1].code).toBe('unknown_session');
  });

  test('of a session without messages is an empty session', async () => {
    const session = await newSession('assistant', { initial_state: { n: 1 } });
    const [status, { session_id: other }] = await fork(session);
    expect(status).toBe(201);
    expect(await (await call(`/agent/session/${other}/state`)).json()).toMatchObject({ variables: { n: 1 } });
    expect((await say(other, 'What is 6 * 7?')).response).toContain('42');
  });

  test('that its host has left incomplete is no session, and is deleted by the alarm', async () => {
    const session = await newSession();
    const id = session.replace(/^ses_./, 'ses_0');
    await runInDurableObject(SESSIONS.getByName(id), async (object, { storage }) => {
      storage.kv.put('fork', { session_id: id });
      storage.sql.exec(`CREATE TABLE events (seq INTEGER)`);
      await storage.setAlarm(Date.now() + limits.forkMs);
      await object.alarm();
      expect(storage.sql.exec(`SELECT name FROM sqlite_master WHERE name = 'events'`).toArray()).toEqual([]);
      // Its objects, too.
      await expect.poll(() => Array.from(storage.kv.list(), ([key]) => key)).toEqual([]);
    });
  });
});
