/** Which secrets of the environment the manifests of an API key may use, and which its sessions must not show (X3). */
import type { SecretScope } from '../catalog/check/secrets.ts';
import { isSecretName, isWithinReach, namedSecret, readSecret } from '../domain/secrets.ts';
import { parseSigningKeys } from '../executors/runner/list.ts';
import type { SecretRead } from '../domain/secrets.ts';
import { parseApiKeys } from '../http/auth.ts';
import type { Variables } from './settings.ts';

/** The names of all API keys, read once for each environment. */
const ownerNames = new WeakMap<Variables, readonly string[]>();

function ownersOf(env: Variables): readonly string[] {
  let names = ownerNames.get(env);
  if (names === undefined) {
    names = parseApiKeys(env.API_KEYS).map(({ name }) => name);
    ownerNames.set(env, names);
  }
  return names;
}

/** What the manifests in use by a session of this API key may read of the environment (X3). */
export function scopeOf(env: Variables, owner: string | null): SecretScope {
  return { owner, owners: ownersOf(env), lookup: (variable) => toolSecret(env, variable) };
}

/** The secret that a manifest names, for a session of this API key. @param bundled whether it came with the deployment */
export function secretFor(env: Variables, owner: string | null, bundled: boolean): (name: string) => SecretRead {
  const { owners, lookup } = scopeOf(env, owner);
  return (name) => readSecret(name, { owner, owners, bundled }, lookup);
}

/** A variable of the environment, if it is a secret for manifests (X3). */
function toolSecret(env: Variables, name: string): string | null {
  const value: unknown = isSecretName(name) && Object.hasOwn(env, name) ? Reflect.get(env, name) : null;
  return typeof value === 'string' && value !== '' ? value : null;
}

/** Why a manifest that this key puts in may not name the secret, or null. */
export function refusedSecret(env: Variables, owner: string | null, name: string): string | null {
  const named = namedSecret(name, { owner, owners: ownersOf(env), bundled: false });
  return named.ok ? null : named.reason;
}

/**
 * Every value of the environment that must never be shown (X3).
 *
 * @param user whose session shows something: the secrets of other API keys cannot get there, and taking them out
 *   would tell whoever guesses at them when a guess is right; null = the operator's log, which shows none at all
 */
export function secretsOf(env: Variables, user: { readonly owner: string | null } | null = null): string[] {
  const all = parseApiKeys(env.API_KEYS);
  const owners = all.map(({ name }) => name);
  const tools = Object.entries(env).flatMap(([name, value]) => {
    const within = user === null ? isSecretName(name) : isWithinReach(name, { owner: user.owner, owners });
    return within && typeof value === 'string' ? [value] : [];
  });
  const keys = all.filter(({ name }) => user === null || name === user.owner).map(({ key }) => key);
  const runnerKeys = parseSigningKeys(env.RUNNER_SECRET).map(({ secret }) => secret);
  return [
    env.LLM_API_KEY,
    env.RUNNER_SECRET,
    env.RUNNER_ACCESS_SECRET,
    env.SESSION_TOKEN_SECRET,
    ...runnerKeys,
    ...keys,
    ...tools,
  ].filter((secret) => secret !== undefined);
}
