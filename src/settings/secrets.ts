/** The secrets that the manifests of a namespace may use, and those that its sessions must not reveal (X3). */
import type { SecretScope } from '../catalog/check/secrets.ts';
import { isSecretName, isWithinReach, namedSecret, readSecret } from '../domain/secrets.ts';
import { parseSigningKeys } from '../executors/runner/list.ts';
import type { SecretRead } from '../domain/secrets.ts';
import { namespaceOf, namespacesOf } from '../http/api-keys.ts';
import { apiKeysOf } from './keys.ts';
import type { Variables } from './settings.ts';

/**
 * The part of the environment that the manifests of this owner's sessions may read (X3). Secrets belong to the namespace
 * that has the owner's things now.
 */
export function scopeOf(env: Variables, owner: string | null): SecretScope {
  const keys = apiKeysOf(env);
  return {
    owner: namespaceOf(keys, owner),
    owners: namespacesOf(keys),
    lookup: (variable) => toolSecret(env, variable),
  };
}

/** Reads secrets named by a manifest, for a session of this owner. @param bundled the manifest is bundled */
export function secretFor(env: Variables, owner: string | null, bundled: boolean): (name: string) => SecretRead {
  const { lookup, ...user } = scopeOf(env, owner);
  return (name) => readSecret(name, { ...user, bundled }, lookup);
}

/** A variable of the environment, if it is a secret for manifests (X3). */
function toolSecret(env: Variables, name: string): string | null {
  const value: unknown = isSecretName(name) && Object.hasOwn(env, name) ? Reflect.get(env, name) : null;
  return typeof value === 'string' && value !== '' ? value : null;
}

/** Why a manifest uploaded to this owner's catalogue may not use the secret, or null. */
export function refusedSecret(env: Variables, owner: string | null, name: string): string | null {
  const { lookup: _lookup, ...user } = scopeOf(env, owner);
  const named = namedSecret(name, { ...user, bundled: false });
  return named.ok ? null : named.reason;
}

/**
 * Every value of the environment that must never be revealed (X3).
 *
 * @param user the owner of the session that shows something. The secrets of other namespaces cannot occur there, and
 *   redacting them would confirm correct guesses. Null means the operator's log, which must not contain any secret.
 */
export function secretsOf(env: Variables, user: { readonly owner: string | null } | null = null): string[] {
  const all = apiKeysOf(env);
  const owners = namespacesOf(all);
  const namespace = user === null ? null : namespaceOf(all, user.owner);
  const tools = Object.entries(env).flatMap(([name, value]) => {
    const within = user === null ? isSecretName(name) : isWithinReach(name, { owner: namespace, owners });
    return within && typeof value === 'string' ? [value] : [];
  });
  const keys = all.filter((key) => user === null || key.namespace === namespace).map(({ key }) => key);
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
