/** R2 as the object storage of sessions (C2). */
import { limits } from '../domain/limits.ts';
import type { ObjectStore } from '../domain/ports/storage.ts';
import type { Env } from './env.ts';

/** Null if no bucket is bound. */
export function objectStoreOf({ FILES: bucket }: Pick<Env, 'FILES'>): ObjectStore | null {
  if (bucket === undefined) return null;
  return {
    async put(key, bytes, sha256) {
      await bucket.put(key, bytes, { sha256 });
    },
    async get(key) {
      const object = await bucket.get(key);
      return object === null ? null : new Uint8Array(await object.arrayBuffer());
    },
    delete: (key) => bucket.delete(key),
    async deleteSome(prefix) {
      const { objects, truncated } = await bucket.list({ prefix, limit: limits.objectsPerDeletion });
      if (objects.length > 0) await bucket.delete(objects.map(({ key }) => key));
      return !truncated;
    },
  };
}
