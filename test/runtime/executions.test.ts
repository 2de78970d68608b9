/** The index of executions in its shards (Z2): lost answers, lost hosts, repeated writes. */
import { abortAllDurableObjects, runDurableObjectAlarm, runInDurableObject } from 'cloudflare:test';
import { afterEach, expect, test, vi } from 'vitest';
import type { ExecutionEntry } from '../../src/domain/execution.ts';
import { shardOf } from '../../src/domain/directory.ts';
import { limits } from '../../src/domain/limits.ts';
import { objectName } from '../../src/domain/owner.ts';
import { approvalsIndex, listApprovals, listExecutions } from '../../src/durable/executions.ts';
import { DirectoryObject } from '../../src/durable/objects/directory-object.ts';
import { ExecutionIndexObject } from '../../src/durable/objects/execution-index-object.ts';
import type { OpenApproval } from '../../src/engine/actions/approval-list.ts';
import { here, SESSIONS } from './bindings.ts';
import { call, execute } from './client.ts';

afterEach(() => {
  vi.restoreAllMocks();
  vi.useRealTimers();
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

test('[Z2] what an earlier version has listed is on each list, also while it moves to the shards', async () => {
  const owner = 'moving';
  const index = here.EXECUTIONS.getByName(objectName(owner));
  const sessionId = `ses_${'d'.repeat(32)}`;
  const run = { execution_id: `run_${'d'.repeat(32)}_1`, session_id: sessionId, agent: 'assistant', status: 'waiting' };
  const approval = { approval_id: 'apr_1', session_id: sessionId, requested_at: 1 };
  await index.record({ ...run, started_at: Date.now(), ended_at: Date.now() } as unknown as ExecutionEntry);
  await index.keepApprovals(sessionId, [approval as unknown as OpenApproval]);
  // Everything moves after the request to the object has arrived, and before it is answered.
  await runInDurableObject(index as unknown as DurableObjectStub, (_object, { storage }) =>
    storage.kv.put('owner', { owner }),
  );
  const { prototype } = ExecutionIndexObject;
  const { listEarlier, approvalsEarlier } = prototype;
  vi.spyOn(prototype, 'listEarlier').mockImplementation(async function moved(this: ExecutionIndexObject, ...given) {
    await this.alarm();
    return await listEarlier.apply(this, given);
  });
  const page = { limit: 10, before: null, status: null, kind: null };
  expect((await listExecutions(here, owner, page)).entries).toMatchObject([run]);
  await index.keepApprovals(sessionId, [{ ...approval, approval_id: 'apr_2' } as unknown as OpenApproval]);
  vi.spyOn(prototype, 'approvalsEarlier').mockImplementation(async function moved(
    this: ExecutionIndexObject,
    ...given
  ) {
    await this.alarm();
    return await approvalsEarlier.apply(this, given);
  });
  vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + limits.emptyIndexMs });
  expect(await listApprovals(here, owner, { limit: 10, after: null })).toMatchObject([
    { approval_id: 'apr_1' },
    { approval_id: 'apr_2' },
  ]);
});

test('[Z2] open approvals of an earlier version move when they are read', async () => {
  const owner = 'reading';
  const index = here.EXECUTIONS.getByName(objectName(owner));
  const approval = { approval_id: 'apr_1', session_id: `ses_${'e'.repeat(32)}`, requested_at: 1 };
  await index.keepApprovals(approval.session_id, [approval as unknown as OpenApproval]);
  const page = { limit: 10, after: null };
  expect(await listApprovals(here, owner, page)).toEqual([approval]);
  await expect.poll(() => index.approvalsEarlier(owner, page)).toEqual({ entries: [], isEmpty: true });
  expect(await approvalsIndex(here, owner, approval.session_id).approvals(page)).toEqual([approval]);
});

test('[Z2] a list fails with 503 if a shard does not answer', async () => {
  vi.spyOn(DirectoryObject.prototype, 'executions').mockImplementationOnce(() => {
    throw new Error('the shard is away');
  });
  const answer = await call('/executions');
  expect([answer.status, await answer.json()]).toMatchObject([503, { code: 'directory_unavailable' }]);
});
