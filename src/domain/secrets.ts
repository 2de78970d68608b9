/**
 * Which secrets of the environment belong to which API key (X3). Secrets of manifests begin with `TOOL_`;
 * `TOOL_<OWNER>__<NAME>` belongs to the key whose name is written OWNER, `TOOL_<NAME>` to the operator.
 *
 * Invariants
 * 1. A variable of the environment belongs to one key name at most: no `OWNER__` begins with another one (`ownersClash`).
 * 2. Where several key names are configured, what a key has put in never reads a variable that is not its own.
 */

const PREFIX = 'TOOL_';
/** Between the owner and the name. */
const SEPARATOR = '__';

/** The key name as names of secrets write it: letters A-Z and digits, upper case; each other character is `_`. */
export function secretOwner(keyName: string): string {
  return keyName.replace(/[^A-Za-z0-9]/gu, '_').toUpperCase();
}

/** Two key names whose secrets could not be told apart, or null. The same name twice is one owner. */
export function ownersClash(keyNames: readonly string[]): readonly [string, string] | null {
  const names = [...new Set(keyNames)];
  for (const name of names) {
    const prefix = prefixOf(name);
    const other = names.find((one) => one !== name && prefixOf(one).startsWith(prefix));
    if (other !== undefined) return [name, other];
  }
  return null;
}

/** For whom a manifest names a secret. */
export interface SecretUser {
  /** Name of the API key whose session or catalogue it is; null without keys. */
  readonly owner: string | null;
  /** Names of all API keys of the deployment. */
  readonly owners: readonly string[];
  /** The manifest came with the deployment, so it is the operator's. */
  readonly bundled: boolean;
}

export type NamedSecret =
  /** Environment variables for the name; the first one that is set counts. */
  | { readonly ok: true; readonly variables: readonly [string, ...string[]] }
  | { readonly ok: false; readonly reason: string };

/** Resolves the name of a secret in a manifest. */
export function namedSecret(name: string, { owner, owners, bundled }: SecretUser): NamedSecret {
  const known = new Set(owners);
  if (!isSecretName(name)) return { ok: false, reason: `${name} does not begin with ${PREFIX}` };
  if (owner === null) {
    return known.size === 0 ? { ok: true, variables: [name] } : { ok: false, reason: `${name} needs an API key` };
  }
  if (!known.has(owner)) return { ok: false, reason: `${name} belongs to an API key that is not configured any more` };
  const prefix = prefixOf(owner);
  if (name.startsWith(prefix)) return { ok: true, variables: [name] };
  const own = `${prefix}${name.slice(PREFIX.length)}`;
  if (known.size === 1) return { ok: true, variables: [own, name] };
  // Any name of this form is refused, so that the answer does not tell which keys there are.
  const foreign = bundled
    ? [...known].some((other) => name.startsWith(prefixOf(other)))
    : name.slice(PREFIX.length).includes(SEPARATOR);
  if (foreign) {
    return {
      ok: false,
      reason: `${name} names the secret of another API key (what stands before "${SEPARATOR}" is its owner; yours is ${secretOwner(owner)})`,
    };
  }
  return { ok: true, variables: bundled ? [own, name] : [own] };
}

/** A secret's value, or what has to be done before there is one. */
export type SecretRead =
  | { readonly ok: true; readonly value: string }
  | { readonly ok: false; readonly reason: string };

/**
 * @param name as the manifest writes it
 * @param lookup a variable of the environment, or null
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

/** Whether a variable of the environment is a secret for manifests. */
export function isSecretName(variable: string): boolean {
  return variable.startsWith(PREFIX);
}

/** Whether a variable of the environment may come into a session of this owner. */
export function isWithinReach(variable: string, { owner, owners }: Omit<SecretUser, 'bundled'>): boolean {
  if (!isSecretName(variable)) return false;
  const others = owners.filter((other) => other !== owner);
  return others.length === 0 || !others.some((other) => variable.startsWith(prefixOf(other)));
}

function prefixOf(keyName: string): string {
  return `${PREFIX}${secretOwner(keyName)}${SEPARATOR}`;
}
