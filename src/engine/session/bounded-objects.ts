/** The object storage with a time limit, and a second attempt for a call that fails. */
import { EngineError, messageOf } from '../../domain/errors.ts';
import { limits } from '../../domain/limits.ts';
import type { Clock } from '../../domain/ports/clock.ts';
import type { ObjectStore } from '../../domain/ports/storage.ts';
import { within } from '../../domain/sleep.ts';

const LATE = Symbol('late');

/** Every call throws EngineError `storage_unavailable`. What is late may still happen. */
export function boundedObjects(objects: ObjectStore, clock: Clock): ObjectStore {
  const bounded = async <T>(call: () => Promise<T>): Promise<T> => {
    for (let attempt = 1; ; attempt += 1) {
      try {
        const value = await within(call(), limits.objectTimeoutMs, clock, LATE);
        if (value !== LATE) return value;
      } catch (fault) {
        if (attempt < limits.objectAttempts) continue;
        throw unavailable(`The file storage failed: ${messageOf(fault).slice(0, limits.excerptChars)}`, fault);
      }
      throw unavailable(`The file storage did not answer within ${limits.objectTimeoutMs} ms`);
    }
  };
  return {
    put: (key, bytes, sha256) => bounded(() => objects.put(key, bytes, sha256)),
    get: (key) => bounded(() => objects.get(key)),
    delete: (key) => bounded(() => objects.delete(key)),
    deleteSome: (prefix) => bounded(() => objects.deleteSome(prefix)),
  };
}

function unavailable(message: string, cause?: unknown): EngineError {
  return new EngineError('storage_unavailable', message, {}, cause);
}
