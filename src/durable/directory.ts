/** The directory of sessions (C6): the objects that list the sessions of a namespace. */
import { mergeShards, shardOf, shardsOf } from '../domain/directory.ts';
import type { DirectoryIndex, DirectoryPage, DirectoryRows } from '../domain/directory.ts';
import { EngineError } from '../domain/errors.ts';
import { limits } from '../domain/limits.ts';
import { within } from '../domain/sleep.ts';
import type { DirectoryOf } from '../http/routes/directory.ts';
import type { Env } from './env.ts';
import { platformClock } from './platform.ts';

/** The object that lists this session. */
export function directoryIndex(env: Env, owner: string | null, sessionId: string): DirectoryIndex {
  const shard = env.DIRECTORY.getByName(shardOf(owner, sessionId));
  return {
    record: (record) => shard.record(record),
    forget: (id, incarnation) => shard.forget(id, incarnation),
  };
}

/** A page of all shards, or none: without one of them, also a late one, sessions would be missing without a sign. */
export function directoryOf(env: Env): DirectoryOf {
  return async (owner: string | null, page: DirectoryPage) => {
    const asked = { ...page, limit: page.limit + 1 };
    const names = shardsOf(owner);
    const list = (name: string): Promise<DirectoryRows | null> =>
      within(env.DIRECTORY.getByName(name).list(asked), limits.directoryTimeoutMs, platformClock, null);
    const shards = await Promise.allSettled(names.map(list));
    const found = shards.flatMap((shard) => (shard.status === 'fulfilled' ? (shard.value ?? []) : []));
    const missing = shards.length - found.length;
    if (missing === 0) return mergeShards(found, page.limit);
    throw new EngineError('directory_unavailable', `${missing} of ${shards.length} parts of the list did not answer`);
  };
}
