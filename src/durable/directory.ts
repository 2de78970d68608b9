/**
 * The directory: the objects that list the sessions of a namespace (C6), their executions (H1) and their open approvals (J8).
 * Each session is in one of its shards, and a list is merged from all of them.
 */
import { mergeShards, shardOf, shardsOf } from '../domain/directory.ts';
import type { DirectoryEntry, DirectoryIndex, DirectoryPage } from '../domain/directory.ts';
import { EngineError } from '../domain/errors.ts';
import { mergeExecutions } from '../domain/execution.ts';
import type { ExecutionEntry, ExecutionsPage } from '../domain/execution.ts';
import { limits } from '../domain/limits.ts';
import type { MergedPage } from '../domain/list-page.ts';
import { within } from '../domain/sleep.ts';
import { mergeApprovals } from '../engine/actions/approval-list.ts';
import type { ApprovalsPage, OpenApproval } from '../engine/actions/approval-list.ts';
import type { DirectoryRpc, Env, Remote } from './env.ts';
import { platformClock } from './platform.ts';

type Shard = Remote<DirectoryRpc>;

/** The object that lists this session. */
export function shardFor(env: Env, owner: string | null, sessionId: string): Shard {
  return env.DIRECTORY.getByName(shardOf(owner, sessionId));
}

/** What writes the entries of this session. */
export function directoryIndex(env: Env, owner: string | null, sessionId: string): DirectoryIndex {
  const shard = shardFor(env, owner, sessionId);
  return {
    write: (record) => shard.write(record),
    forget: (id, incarnation) => shard.forget(id, incarnation),
  };
}

/** A page of sessions. @throws EngineError `directory_unavailable` */
export async function listSessions(
  env: Env,
  owner: string | null,
  page: DirectoryPage,
): Promise<MergedPage<DirectoryEntry>> {
  const asked = { ...page, limit: page.limit + 1 };
  return mergeShards(await askAll(env, owner, (shard) => shard.list(asked)), page.limit);
}

/** The same for executions. */
export async function listExecutions(
  env: Env,
  owner: string | null,
  page: ExecutionsPage,
): Promise<MergedPage<ExecutionEntry>> {
  const asked = { ...page, limit: page.limit + 1 };
  return mergeExecutions(await askAll(env, owner, (shard) => shard.executions(asked)), page.limit);
}

/** The same for open approvals, oldest first. */
export async function listApprovals(env: Env, owner: string | null, page: ApprovalsPage): Promise<OpenApproval[]> {
  return mergeApprovals(await askAll(env, owner, (shard) => shard.approvals(page)), page.limit);
}

/** Removes settled approvals from the lists. */
export async function settleApprovals(
  env: Env,
  owner: string | null,
  settled: readonly Pick<OpenApproval, 'approval_id' | 'session_id'>[],
): Promise<void> {
  const byShard = Map.groupBy(settled, ({ session_id: id }) => shardOf(owner, id));
  await Promise.all(
    [...byShard].map(async ([name, ones]) => {
      await env.DIRECTORY.getByName(name).settleApprovals(ones.map(({ approval_id: id }) => id));
    }),
  );
}

/**
 * The answers of all shards, or none: without one of them, also a late one, entries would be missing without a sign.
 *
 * @throws EngineError `directory_unavailable` if one does not answer within `limits.directoryTimeoutMs`
 */
async function askAll<T extends object>(
  env: Env,
  owner: string | null,
  ask: (shard: Shard) => Promise<T>,
): Promise<T[]> {
  const answers = await Promise.allSettled(
    shardsOf(owner).map(
      async (name) => await within(ask(env.DIRECTORY.getByName(name)), limits.directoryTimeoutMs, platformClock, null),
    ),
  );
  const found = answers.flatMap((answer) =>
    answer.status === 'fulfilled' && answer.value !== null ? [answer.value] : [],
  );
  const missing = answers.length - found.length;
  if (missing === 0) return found;
  throw new EngineError('directory_unavailable', `${missing} of ${answers.length} parts of the list did not answer`);
}
