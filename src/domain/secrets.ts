/**
 * Ownership of secrets in the environment by namespace (X3, T4). Secrets for manifests begin with `TOOL_`.
 * `TOOL_<OWNER>__<NAME>` belongs to the namespace that is written OWNER, `TOOL_<NAME>` to the operator.
 *
 * Invariants
 * 1. An environment variable belongs to at most one namespace: no `OWNER__` is a prefix of another (`ownersClash`).
 * 2. If several namespaces are configured, manifests of one never read a variable that is not its own.
 */

const PREFIX = 'TOOL_';
/** Between the owner and the name. */
const SEPARATOR = '__';

/** A namespace in the form used in secret names: A-Z and digits; every other character becomes `_`. */
export function secretOwner(namespace: string): string {
  return namespace.replace(/[^A-Za-z0-9]/gu, '_').toUpperCase();
}

/** Two namespaces whose secrets could not be distinguished, or null. A repeated one counts once. */
export function ownersClash(namespaces: readonly string[]): readonly [string, string] | null {
  const names = [...new Set(namespaces)];
  for (const name of names) {
    const prefix = prefixOf(name);
    const other = names.find((one) => one !== name && prefixOf(one).startsWith(prefix));
    if (other !== undefined) return [name, other];
  }
  return null;
}

/** The user of a secret that a manifest names. */
export interface SecretUser {
  /** Namespace that owns the session or catalogue; null without keys. */
  readonly owner: string | null;
  /** All namespaces of the deployment. */
  readonly owners: readonly string[];
  /** The manifest is bundled with the deployment, so it belongs to the operator. */
  readonly bundled: boolean;
}

export type NamedSecret =
  /** Environment variables for the name; the first one that is set is used. */
  | { readonly ok: true; readonly variables: readonly [string, ...string[]] }
  | { readonly ok: false; readonly reason: string };

/** Resolves the name of a secret in a manifest. */
export function namedSecret(name: string, { owner, owners, bundled }: SecretUser): NamedSecret {
  const known = new Set(owners);
  if (!isSecretName(name)) return { ok: false, reason: `${name} must begin with ${PREFIX}` };
  if (owner === null) {
    return known.size === 0 ? { ok: true, variables: [name] } : { ok: false, reason: `${name} requires an API key` };
  }
  if (!known.has(owner)) return { ok: false, reason: `${name} belongs to a namespace that has no API key any more` };
  const prefix = prefixOf(owner);
  if (name.startsWith(prefix)) return { ok: true, variables: [name] };
  const own = `${prefix}${name.slice(PREFIX.length)}`;
  if (known.size === 1) return { ok: true, variables: [own, name] };
  // Any name of this form is rejected, so the answer does not reveal which namespaces exist.
  const foreign = bundled
    ? [...known].some((other) => name.startsWith(prefixOf(other)))
    : name.slice(PREFIX.length).includes(SEPARATOR);
  if (foreign) {
    return {
      ok: false,
      reason: `${name} is the secret of another namespace (the part before "${SEPARATOR}" is its owner; yours is ${secretOwner(owner)})`,
    };
  }
  return { ok: true, variables: bundled ? [own, name] : [own] };
}

/** A secret's value, or the reason why it is not available. */
export type SecretRead =
  | { readonly ok: true; readonly value: string }
  | { readonly ok: false; readonly reason: string };

/**
 * @param name as written in the manifest
 * @param lookup returns an environment variable, or null
 */
export function readSecret(name: string, user: SecretUser, lookup: (variable: string) => string | null): SecretRead {
  const named = namedSecret(name, user);
  if (!named.ok) return named;
  for (const variable of named.variables) {
    const value = lookup(variable);
    if (value !== null) return { ok: true, value };
  }
  return { ok: false, reason: `${name} is not set (set ${named.variables.join(' or ')} in the Worker's environment)` };
}

/** Whether an environment variable is a secret for manifests. */
export function isSecretName(variable: string): boolean {
  return variable.startsWith(PREFIX);
}

/** Whether sessions of this owner may read an environment variable. */
export function isWithinReach(variable: string, { owner, owners }: Omit<SecretUser, 'bundled'>): boolean {
  if (!isSecretName(variable)) return false;
  const others = owners.filter((other) => other !== owner);
  return others.length === 0 || !others.some((other) => variable.startsWith(prefixOf(other)));
}

function prefixOf(namespace: string): string {
  return `${PREFIX}${secretOwner(namespace)}${SEPARATOR}`;
}
