/** The secrets that the manifests of an API key may use, and those that its sessions must not reveal (X3). */
import type { SecretScope } from '../catalog/check/secrets.ts';
import { isSecretName, isWithinReach, namedSecret, readSecret } from '../domain/secrets.ts';
import { parseSigningKeys } from '../executors/runner/list.ts';
import type { SecretRead } from '../domain/secrets.ts';
import { parseApiKeys } from '../http/auth.ts';
import type { Variables } from './settings.ts';

/** The names of all API keys, read once per environment. */
const ownerNames = new WeakMap<Variables, readonly string[]>();

function ownersOf(env: Variables): readonly string[] {
  let names = ownerNames.get(env);
  if (names === undefined) {
    names = parseApiKeys(env.API_KEYS).map(({ name }) => name);
    ownerNames.set(env, names);
  }
  return names;
}

/** The part of the environment that the manifests of this API key's sessions may read (X3). */
export function scopeOf(env: Variables, owner: string | null): SecretScope {
  return { owner, owners: ownersOf(env), lookup: (variable) => toolSecret(env, variable) };
}

/** Reads secrets named by a manifest, for a session of this API key. @param bundled the manifest is bundled */
export function secretFor(env: Variables, owner: string | null, bundled: boolean): (name: string) => SecretRead {
  const { owners, lookup } = scopeOf(env, owner);
  return (name) => readSecret(name, { owner, owners, bundled }, lookup);
}

/** A variable of the environment, if it is a secret for manifests (X3). */
function toolSecret(env: Variables, name: string): string | null {
  const value: unknown = isSecretName(name) && Object.hasOwn(env, name) ? Reflect.get(env, name) : null;
  return typeof value === 'string' && value !== '' ? value : null;
}

/** Why a manifest uploaded by this key may not use the secret, or null. */
export function refusedSecret(env: Variables, owner: string | null, name: string): string | null {
  const named = namedSecret(name, { owner, owners: ownersOf(env), bundled: false });
  return named.ok ? null : named.reason;
}

/**
 * Every value of the environment that must never be revealed (X3).
 *
 * @param user the owner of the session that shows something. The secrets of other API keys cannot occur there, and
 *   redacting them would confirm correct guesses. Null means the operator's log, which must not contain any secret.
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
