/** Which secrets of the environment the manifests of an API key may use, and which its sessions must not show (X3). */
import type { SecretScope } from '../catalog/check/secrets.ts';
import { namedSecret, readSecret } from '../domain/secrets.ts';
import type { SecretRead } from '../domain/secrets.ts';
import { parseApiKeys } from '../http/auth.ts';
import type { Env } from './settings.ts';

/** The names of all API keys, read once for each environment. */
const ownerNames = new WeakMap<Env, readonly string[]>();

function ownersOf(env: Env): readonly string[] {
  let names = ownerNames.get(env);
  if (names === undefined) {
    names = parseApiKeys(env.API_KEYS).map(({ name }) => name);
    ownerNames.set(env, names);
  }
  return names;
}

/** What the manifests in use by a session of this API key may read of the environment (X3). */
export function scopeOf(env: Env, owner: string | null): SecretScope {
  return { owner, owners: ownersOf(env), lookup: (variable) => toolSecret(env, variable) };
}

/** The secret that a manifest names, for a session of this API key. @param bundled whether it came with the deployment */
export function secretFor(env: Env, owner: string | null, bundled: boolean): (name: string) => SecretRead {
  const { owners, lookup } = scopeOf(env, owner);
  return (name) => readSecret(name, { owner, owners, bundled }, lookup);
}

/** A variable of the environment, if it is a secret for manifests (X3). */
function toolSecret(env: Env, name: string): string | null {
  const value: unknown = name.startsWith('TOOL_') && Object.hasOwn(env, name) ? Reflect.get(env, name) : null;
  return typeof value === 'string' && value !== '' ? value : null;
}

/** Why a manifest that this key puts in may not name the secret, or null. */
export function refusedSecret(env: Env, owner: string | null, name: string): string | null {
  const named = namedSecret(name, { owner, owners: ownersOf(env), bundled: false });
  return named.ok ? null : named.reason;
}
