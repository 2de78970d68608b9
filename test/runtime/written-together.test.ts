/** What Durable Objects write together, when a statement fails and the object lives on (M6, R6, C2). */
import { runDurableObjectAlarm, runInDurableObject } from 'cloudflare:test';
import { expect, test, vi } from 'vitest';
import { DeletedFiles } from '../../src/durable/deleted-files.ts';
import { objectStoreOf } from '../../src/durable/object-store.ts';
import { platformClock } from '../../src/durable/platform.ts';
import { relicOf } from '../support/definitions.ts';
import { here, RELICS, SCHEDULES, SESSIONS } from './bindings.ts';

const scheduleOf = (workflow: string): { workflow: string; cron: string; timezone: string; inputs: {} } => ({
  workflow,
  cron: '0 3 * * *',
  timezone: 'UTC',
  inputs: {},
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

test('[R6] a relic that is deleted when it is idle has its alarm before it has content', async () => {
  const log = { type: 'edge', store: 'log', ttlMs: null, quotaBytes: 1e6, schema: [] } as const;
  const relic = { ...relicOf(log, { name: 'event_log' }), persistent: false, idleMs: 1_000_000 };
  const append = { space: 's', owner: null, endpoint: 'append', parameters: { entry: 'x' }, relic };
  const stub = RELICS.getByName('written-together');
  await runInDurableObject(stub, async (object, { storage }) => {
    const failing = vi.spyOn(storage, 'setAlarm').mockRejectedValueOnce(new Error('no alarm'));
    await expect(object.call({ ...append, key: 'first' })).rejects.toThrow('no alarm');
    failing.mockRestore();
    expect(await object.lookup('first')).toBeNull();
    expect(await object.call({ ...append, key: 'second' })).toMatchObject({ ok: true });
    // What cannot be deleted keeps its alarm.
    const full = vi.spyOn(storage, 'deleteAll').mockRejectedValueOnce(new Error('not now'));
    await expect(object.forget()).rejects.toThrow('not now');
    full.mockRestore();
    expect(await storage.getAlarm()).not.toBeNull();
    storage.kv.put('idleAt', 1);
  });
  await runDurableObjectAlarm(stub);
  expect(await runInDurableObject(stub, async (object) => await object.lookup('second'))).toBeNull();
});

test('[C2] objects of a deleted session whose entry cannot be written stay due', async () => {
  await runInDurableObject(SESSIONS.getByName('written-together'), async (_object, { storage }) => {
    const store = objectStoreOf(here);
    if (store === null) throw new Error('no bucket');
    const away = { ...store, deleteSome: () => Promise.reject(new Error('away')) };
    const deleted = new DeletedFiles(storage, away, platformClock);
    deleted.replaceSession({ prefix: 'first/', isPending: false }, []);
    const before = deleted.dueAt;
    const { kv } = storage;
    const full = vi.spyOn(Object.getPrototypeOf(kv) as typeof kv, 'put').mockImplementation(() => {
      throw new Error('the disk is full');
    });
    expect(String(await deleted.collect())).toContain('full');
    full.mockRestore();
    expect(deleted.dueAt).toBe(before);
    expect(new DeletedFiles(storage, null, platformClock).dueAt).toBe(before);
    deleted.replaceSession(null, []);
  });
});
