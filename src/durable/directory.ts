/** The directory of sessions (C6): the objects that list the sessions of a namespace. */
import { mergeShards, shardOf, shardsOf } from '../domain/directory.ts';
import type { DirectoryIndex, DirectoryPage } from '../domain/directory.ts';
import type { DirectoryOf } from '../http/routes/directory.ts';
import type { Env } from './env.ts';
import { forgetEarlier } from './executions.ts';
import { allShards } from './shards.ts';

/** The object that lists this session. */
export function directoryIndex(env: Env, owner: string | null, sessionId: string): DirectoryIndex {
  const shard = env.DIRECTORY.getByName(shardOf(owner, sessionId));
  return {
    write: (record) => shard.write(record),
    forget: async (id, incarnation) => {
      await Promise.all([shard.forget(id, incarnation), forgetEarlier(env, owner, id, incarnation)]);
    },
  };
}

/** A page of all shards. */
export function directoryOf(env: Env): DirectoryOf {
  return async (owner: string | null, page: DirectoryPage) => {
    const asked = { ...page, limit: page.limit + 1 };
    const found = await allShards(shardsOf(owner).map(async (name) => await env.DIRECTORY.getByName(name).list(asked)));
    return mergeShards(found, page.limit);
  };
}
