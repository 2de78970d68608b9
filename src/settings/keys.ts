/** The API keys of an environment. */
import { parseApiKeys } from '../http/api-keys.ts';
import type { ApiKey } from '../http/api-keys.ts';
import type { WorkerSettings } from './setting-table.ts';

const known = new WeakMap<WorkerSettings, readonly ApiKey[]>();

/** Parses API_KEYS and OWNER_OF_KEYLESS, once per environment. @throws EngineError `internal` for an invalid setting */
export function apiKeysOf(env: WorkerSettings): readonly ApiKey[] {
  let keys = known.get(env);
  if (keys === undefined) {
    keys = parseApiKeys(env.API_KEYS, env.OWNER_OF_KEYLESS);
    known.set(env, keys);
  }
  return keys;
}
