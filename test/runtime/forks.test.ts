/** Forks of sessions from object to object, also while others are slow or away (C2, C4, C6). */
import { runDurableObjectAlarm, runInDurableObject } from 'cloudflare:test';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import type { DirectoryEntry } from '../../src/domain/directory.ts';
import { limits } from '../../src/domain/limits.ts';
import { newSessionId } from '../../src/durable/session-ids.ts';
import { FILES, here, SESSIONS } from './bindings.ts';
import { alarmOf } from './objects.ts';
import { call, chatRecord, events, newSession, post } from './client.ts';
import { DirectoryObject } from '../../src/durable/objects/directory-object.ts';
import { SessionObject } from '../../src/durable/objects/session-object.ts';
import { platformClock } from '../../src/durable/platform.ts';
import { QuarantineSlots } from '../../src/engine/replay/quarantine-slots.ts';

interface Forked {
  readonly session_id: string;
  readonly message_count: number;
  readonly code?: string;
}

const say = async (session: string, content: unknown): Promise<{ run_id: string; response: string }> =>
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

  test('with the same key is the first one, also after further messages in both; another body is refused', async () => {
    const session = await newSession();
    const { run_id: at } = await say(session, 'Hello');
    const [, one] = await fork(session, {}, 'k');
    expect(one).toMatchObject({ message_count: 2, forked_from: { session_id: session, run_id: at } });
    await say(session, 'Hello again');
    const { run_id: foreign } = await say(one.session_id, 'Hello there');
    expect((await fork(session, { at_run: foreign }))[1].code).toBe('unknown_run');
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
});

const forkOnce = (session: string, body?: object): Promise<[number, Forked]> => fork(session, body, 'k');
const messages = async (session: string): Promise<number> =>
  (await (await call(`/agent/session/${session}/history`)).json<{ messages: unknown[] }>()).messages.length;
const find = async (id: string): Promise<DirectoryEntry | null> => {
  const { sessions } = await (await call('/sessions')).json<{ sessions: DirectoryEntry[] }>();
  return sessions.find(({ session_id: session }) => session === id) ?? null;
};
const keysIn = (id: string): Promise<string[]> =>
  runInDurableObject(SESSIONS.getByName(id), (_object, { storage }) => Array.from(storage.kv.list(), ([key]) => key));
const later = (ms: number): void => {
  const { now } = platformClock;
  vi.spyOn(platformClock, 'now').mockImplementation(() => now() + ms);
};

/** The directory does not forget anything until it is `back`. */
function forgetfulShard(): { readonly back: () => void } {
  const spied = vi.spyOn(DirectoryObject.prototype, 'forget').mockImplementation(() => {
    throw new Error('the shard is away');
  });
  return { back: () => spied.mockRestore() };
}

/** A fork whose pages have arrived, but that is not complete until `complete` is called. */
function slowFork(): { readonly arrived: Promise<void>; readonly complete: () => void; readonly sent: () => number } {
  const [arrived, gate] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const { sendFork } = SessionObject.prototype;
  const spied = vi.spyOn(SessionObject.prototype, 'sendFork');
  spied.mockImplementation(async function (this: SessionObject, ...given) {
    const reply = await sendFork.apply(this, given);
    arrived.resolve();
    await gate.promise;
    return reply;
  });
  return { arrived: arrived.promise, complete: gate.resolve, sent: () => spied.mock.calls.length };
}

const FILE = { type: 'file', name: 'a.txt', media_type: 'text/plain', data: btoa('y'.repeat(300_000)) };

/** A session with a file in the object storage, and its deleted fork, which the directory lists until it forgets it. */
async function deletedFork(): Promise<{ session: string; id: string; shard: ReturnType<typeof forgetfulShard> }> {
  const session = await newSession();
  await say(session, [{ type: 'text', text: 'Hello' }, FILE]);
  const [, { session_id: id }] = await forkOnce(session);
  await expect.poll(() => find(id)).not.toBeNull();
  const shard = forgetfulShard();
  expect((await call(`/agent/session/${id}`, { method: 'DELETE' })).status).toBe(204);
  await expect.poll(() => keysIn(id)).toContain('directory:retry');
  return { session, id, shard };
}

beforeEach(() => void vi.spyOn(QuarantineSlots.prototype, 'delayOf').mockReturnValue(0));
afterEach(() => void vi.restoreAllMocks());

describe('C6: a fork under the id of a deleted one', () => {
  test('that fails: the directory forgets the deleted one afterwards', async () => {
    const { session, id, shard } = await deletedFork();
    const lost = vi.spyOn(SessionObject.prototype, 'sendFork').mockRejectedValue(new Error('the connection was lost'));
    expect((await forkOnce(session))[0]).toBe(500);
    lost.mockRestore();
    shard.back();
    expect(await find(id)).not.toBeNull();
    later(limits.directoryRetryMostMs);
    expect(await runDurableObjectAlarm(SESSIONS.getByName(id))).toBe(true);
    await expect.poll(() => find(id)).toBeNull();
    await expect.poll(() => keysIn(id)).toEqual([]);
    expect(await alarmOf(id)).toBeNull();
  });

  test('is complete, although the directory forgets the deleted one and its objects are deleted meanwhile', async () => {
    const { session, id, shard } = await deletedFork();
    const slow = slowFork();
    const made = forkOnce(session);
    await slow.arrived;
    shard.back();
    later(limits.directoryRetryMostMs);
    expect((await call(`/agent/session/${id}`)).status).toBe(404);
    expect(await runDurableObjectAlarm(SESSIONS.getByName(id))).toBe(true);
    slow.complete();
    expect((await made)[0]).toBe(201);
    expect(await messages(id)).toBe(2);
    await expect.poll(() => find(id)).toMatchObject({ title: 'Hello' });
    await expect.poll(() => keysIn(id)).not.toContain('directory:retry');
    expect((await FILES.list({ prefix: `sessions/${id}` })).objects).toHaveLength(1);
  });
});

describe('C4: a fork whose host is lost', () => {
  test('[C2] [C6] is deleted by the alarm alone, with its objects, also if the directory forgets a deleted one before', async () => {
    const { session, id, shard } = await deletedFork();
    const prefix = `sessions/${id}/lost/`;
    await FILES.put(`${prefix}${'a'.repeat(64)}`, 'of the fork');
    await runInDurableObject(SESSIONS.getByName(id), async (_object, { storage }) => {
      storage.kv.put('fork', { session_id: id, incarnation: 'lost' });
      await storage.setAlarm(platformClock.now() + limits.forkMs);
    });
    shard.back();
    later(limits.directoryRetryMostMs);
    expect((await call(`/agent/session/${id}`)).status).toBe(404);
    await expect.poll(() => find(id)).toBeNull();
    expect(await keysIn(id)).toContain('fork');
    expect(await alarmOf(id)).not.toBeNull();
    expect(await runDurableObjectAlarm(SESSIONS.getByName(id))).toBe(true);
    await expect.poll(() => keysIn(id)).toEqual([]);
    expect((await FILES.list({ prefix: `sessions/${id}` })).objects).toEqual([]);
    expect((await forkOnce(session))[0]).toBe(201);
  });
});

describe('C4: a fork that is being made', () => {
  test('is made once: a request with the same key waits for it', async () => {
    const session = await newSession();
    await say(session, 'Hello');
    const slow = slowFork();
    const first = forkOnce(session);
    await slow.arrived;
    const second = forkOnce(session);
    const third = forkOnce(session, { at_run: undefined });
    slow.complete();
    const [one, two, three] = await Promise.all([first, second, third]);
    expect(one[0]).toBe(201);
    expect([two, three]).toEqual([one, one]);
    expect(slow.sent()).toBe(1);
  });

  test('keeps its alarm, however long it takes', async () => {
    const session = await newSession();
    await say(session, 'Hello');
    const [, { session_id: id }] = await forkOnce(session);
    await call(`/agent/session/${id}`, { method: 'DELETE' });
    await expect.poll(() => keysIn(id)).toEqual([]);
    const slow = slowFork();
    const made = forkOnce(session);
    await slow.arrived;
    const before = (await alarmOf(id)) ?? 0;
    later(limits.forkMs);
    expect(await runDurableObjectAlarm(SESSIONS.getByName(id))).toBe(true);
    expect((await alarmOf(id)) ?? 0).toBeGreaterThanOrEqual(before + limits.forkMs);
    expect(await keysIn(id)).toContain('fork');
    slow.complete();
    expect((await made)[0]).toBe(201);
    expect(await keysIn(id)).not.toContain('fork');
  });
});
