/** The index of executions in its shards (Z2): lost answers, lost hosts, repeated writes. */
import { abortAllDurableObjects, runDurableObjectAlarm } from 'cloudflare:test';
import { afterEach, expect, test, vi } from 'vitest';
import type { ExecutionEntry } from '../../src/domain/execution.ts';
import { shardOf } from '../../src/domain/directory.ts';
import { DirectoryObject } from '../../src/durable/objects/directory-object.ts';
import { SESSIONS } from './bindings.ts';
import { call, execute } from './client.ts';

afterEach(() => {
  vi.restoreAllMocks();
});

/** All executions, in pages of three. */
async function listed(): Promise<ExecutionEntry[]> {
  const found: ExecutionEntry[] = [];
  for (let before = ''; ;) {
    const answer = await call(`/executions?limit=3${before}`);
    if (answer.status !== 200) throw new Error(await answer.text());
    const { executions, next } = await answer.json<{ executions: ExecutionEntry[]; next: string | null }>();
    found.push(...executions);
    if (next === null) return found;
    before = `&before=${next}`;
  }
}

test('[Z2] each run is listed once, after its shard was away, its answer was lost, and its host was lost', async () => {
  const { write } = DirectoryObject.prototype;
  let count = 0;
  const spy = vi.spyOn(DirectoryObject.prototype, 'write').mockImplementation(function away(
    this: DirectoryObject,
    record,
  ) {
    count += 1;
    // Every second write arrives, without an answer.
    if (count % 2 === 0) write.call(this, record);
    throw new Error('the shard is away');
  });
  const made = await Promise.all(
    [1, 2, 3, 4, 5, 6, 7, 8].map(async (n) => await execute(`<response final="true">${n}</response>`)),
  );
  const runs = made.map(({ run_id: id }) => id).toSorted();
  const ours = async (): Promise<string[]> =>
    (await listed()).flatMap(({ execution_id: id }) => (runs.includes(id) ? [id] : [])).toSorted();
  await expect.poll(() => count).toBeGreaterThanOrEqual(runs.length);
  expect((await ours()).length).toBeLessThan(runs.length);
  await abortAllDurableObjects();
  spy.mockRestore();
  // A request starts the session's next host, which writes what its outbox lacks when it is due.
  for (const { session_id: id } of made) {
    await expect
      .poll(async () => {
        await runDurableObjectAlarm(SESSIONS.getByName(id));
        return await ours();
      })
      .toContain(made.find(({ session_id: session }) => session === id)?.run_id);
  }
  expect(await ours()).toEqual(runs);
  expect(new Set(made.map(({ session_id: id }) => shardOf(null, id))).size).toBeGreaterThan(1);
});

test('[Z2] a list fails with 503 if a shard does not answer', async () => {
  vi.spyOn(DirectoryObject.prototype, 'executions').mockImplementationOnce(() => {
    throw new Error('the shard is away');
  });
  const answer = await call('/executions');
  expect([answer.status, await answer.json()]).toMatchObject([503, { code: 'directory_unavailable' }]);
});
