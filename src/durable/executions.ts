/**
 * The index of executions, and the list of open approvals: the objects that list those of a namespace (H1, J8). They are the
 * shards of the directory (C6); earlier versions had one object of another class, which is read until it is empty.
 */
import { shardOf, shardsOf } from '../domain/directory.ts';
import { mergeExecutions } from '../domain/execution.ts';
import type { MergedPage } from '../domain/list-page.ts';
import type { ExecutionEntry, ExecutionsPage } from '../domain/execution.ts';
import { limits } from '../domain/limits.ts';
import { objectName } from '../domain/owner.ts';
import { mergeApprovals } from '../engine/actions/approval-list.ts';
import type { ApprovalsPage, OpenApproval } from '../engine/actions/approval-list.ts';
import type { DirectoryRpc, EarlierIndexRpc, EarlierPage, Env, Remote } from './env.ts';
import { platformClock } from './platform.ts';
import { allShards } from './shards.ts';

/** Namespaces whose earlier object was found empty, and until when this is believed. */
const empty = new Map<string, number>();

/** The namespace's object of earlier versions; null if it is empty. */
function earlierIndex(env: Env, owner: string | null): Remote<EarlierIndexRpc> | null {
  const name = objectName(owner);
  return (empty.get(name) ?? 0) > platformClock.now() ? null : env.EXECUTIONS.getByName(name);
}

function noteEmpty(owner: string | null, isEmpty: boolean): void {
  if (!isEmpty) return;
  const name = objectName(owner);
  empty.delete(name);
  empty.set(name, platformClock.now() + limits.emptyIndexMs);
  for (const [oldest] of empty) {
    if (empty.size <= limits.emptyIndexes) break;
    empty.delete(oldest);
  }
}

/** The object that lists this session's approvals. */
export function approvalsIndex(env: Env, owner: string | null, sessionId: string): Remote<DirectoryRpc> {
  return env.DIRECTORY.getByName(shardOf(owner, sessionId));
}

/** Removes a deleted session from the object of earlier versions. */
export async function forgetEarlier(
  env: Env,
  owner: string | null,
  sessionId: string,
  incarnation: string,
): Promise<void> {
  const earlier = earlierIndex(env, owner);
  if (earlier !== null) noteEmpty(owner, await earlier.forgetEarlier(owner, sessionId, incarnation));
}

/**
 * A page of all shards, or none, as of the directory (directory.ts). The object of earlier versions is asked before them: an
 * entry that it moves meanwhile is in its shard when that one is asked.
 *
 * @throws EngineError `directory_unavailable`
 */
export async function listExecutions(
  env: Env,
  owner: string | null,
  page: ExecutionsPage,
): Promise<MergedPage<ExecutionEntry>> {
  const asked = { ...page, limit: page.limit + 1 };
  const earlier = await readEarlier(env, owner, async (index) => await index.listEarlier(owner, asked));
  const found = await allShards(
    shardsOf(owner).map(async (name) => await env.DIRECTORY.getByName(name).executions(asked)),
  );
  return mergeExecutions([...found, { entries: earlier, scannedTo: null }], page.limit);
}

/** The same for open approvals, oldest first. */
export async function listApprovals(env: Env, owner: string | null, page: ApprovalsPage): Promise<OpenApproval[]> {
  const earlier = await readEarlier(env, owner, async (index) => await index.approvalsEarlier(owner, page));
  const found = await allShards(
    shardsOf(owner).map(async (name) => await env.DIRECTORY.getByName(name).approvals(page)),
  );
  const merged = new Map([...earlier, ...found.flat()].map((one) => [one.approval_id, one]));
  return mergeApprovals([[...merged.values()]], page.limit);
}

async function readEarlier<T>(
  env: Env,
  owner: string | null,
  read: (index: Remote<EarlierIndexRpc>) => Promise<EarlierPage<T>>,
): Promise<readonly T[]> {
  const index = earlierIndex(env, owner);
  if (index === null) return [];
  const [page] = await allShards([read(index)]);
  noteEmpty(owner, page?.isEmpty === true);
  return page?.entries ?? [];
}

/** Removes settled approvals from the lists. */
export async function settleApprovals(
  env: Env,
  owner: string | null,
  settled: readonly Pick<OpenApproval, 'approval_id' | 'session_id'>[],
): Promise<void> {
  const byShard = Map.groupBy(settled, ({ session_id: id }) => shardOf(owner, id));
  const idsOf = (ones: typeof settled): string[] => ones.map(({ approval_id: id }) => id);
  await Promise.all([
    ...[...byShard].map(([name, ones]) => env.DIRECTORY.getByName(name).settleApprovals(idsOf(ones))),
    earlierIndex(env, owner)?.settleApprovals(idsOf(settled)),
  ]);
}
