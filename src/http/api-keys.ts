/**
 * `API_KEYS`: the keys of a deployment, and the namespaces that they belong to (T4).
 *
 * A namespace owns manifests, secrets, sessions, executions, shared relics, schedules, webhooks and limits; all keys of a
 * namespace see the same ones. A key adds a role only: `run` uses them, `admin` also changes manifests.
 *
 * The owner of a stored thing is the name of its namespace, or null if it was made without keys. `OWNER_OF_KEYLESS` gives
 * the owner null to one namespace, so nothing is copied.
 */
import { EngineError } from '../domain/errors.ts';
import { limits } from '../domain/limits.ts';
import { ownersClash, secretOwner } from '../domain/secrets.ts';
import { TOKEN_FORM } from './tokens.ts';

export type Role = 'run' | 'admin';

export interface ApiKey {
  /** Distinguishes the keys of `API_KEYS` for people. */
  readonly name: string;
  readonly role: Role;
  readonly key: string;
  readonly namespace: string;
  /** The owner of what this key makes and sees: its namespace, or null for what was made without keys. */
  readonly owner: string | null;
}

/**
 * Parses `name:role:key[@namespace], …`; the namespace is the key's name by default. The last "@" of an entry begins the
 * namespace, so a key that contains "@" needs one.
 *
 * @param keyless the namespace that owns what was made without keys (`OWNER_OF_KEYLESS`); empty or undefined: none
 * @throws EngineError `internal` that names the invalid entry (never the key), so that a system with invalid keys does
 *   not start without authentication
 */
export function parseApiKeys(text: string | undefined, keyless: string | undefined = ''): ApiKey[] {
  const entries = (text ?? '').split(/[\s,]+/).filter(Boolean);
  if (entries.length === 0 && /[^ \t\r\n]/.test(text ?? '')) {
    throw invalid('API_KEYS is set and contains no key: write name:role:key, or remove it');
  }
  const adopter = keyless.trim();
  const keys = entries.map((entry, index) => parseEntry(entry, `API_KEYS entry ${index + 1}`, adopter));
  checkDuplicates(keys);
  checkSecrets(keys);
  checkAdopter(keys, adopter);
  return keys;
}

function parseEntry(entry: string, label: string, adopter: string): ApiKey {
  const [name = '', role, ...rest] = entry.split(':');
  const written = rest.join(':');
  const at = written.lastIndexOf('@');
  const key = at === -1 ? written : written.slice(0, at);
  if (name === '' || (role !== 'run' && role !== 'admin') || key === '') {
    throw invalid(`${label} must be name:role:key or name:role:key@namespace, with role run or admin`);
  }
  if (TOKEN_FORM.test(key)) {
    throw invalid(`${label}: a key must not have the form of a token, which is three parts separated by two dots`);
  }
  // Both are sent in headers, and are part of the names of objects.
  if (!isName(name)) {
    throw invalid(`${label}: its name must have up to ${limits.keyNameChars} characters of visible ASCII`);
  }
  const namespace = at === -1 ? name : written.slice(at + 1);
  if (at !== -1 && (!isName(namespace) || namespace.includes(':'))) {
    throw invalid(
      `${label}: the namespace after the last "@" must have 1 to ${limits.keyNameChars} characters of visible ASCII ` +
        'without ":" and "@" (a key that contains "@" must end with its namespace, such as ann:admin:k@y@ann)',
    );
  }
  return { name, role, key, namespace, owner: namespace === adopter ? null : namespace };
}

function isName(text: string): boolean {
  return /^[!-~]+$/.test(text) && text.length <= limits.keyNameChars;
}

/** A key is one entry, and a name belongs to one namespace. */
function checkDuplicates(keys: readonly ApiKey[]): void {
  keys.forEach(({ name, key, namespace }, index) => {
    const same = keys.findIndex((other) => other.key === key);
    if (same < index) throw invalid(`API_KEYS entries ${same + 1} and ${index + 1} have the same key`);
    const first = keys.findIndex((other) => other.name === name);
    const other = keys[first]?.namespace ?? namespace;
    if (other === namespace) return;
    throw invalid(
      `API_KEYS entries ${first + 1} and ${index + 1} have the name "${name}" but the namespaces "${other}" and ` +
        `"${namespace}"; a name belongs to one namespace (without "@", to the namespace of the same name)`,
    );
  });
}

/** Each secret of a manifest belongs to one namespace (X3). */
function checkSecrets(keys: readonly ApiKey[]): void {
  const clash = ownersClash(namespacesOf(keys));
  if (clash === null) return;
  const [one, other] = clash;
  throw invalid(
    `API_KEYS: the namespaces "${one}" and "${other}" cannot both be used: their secrets would be TOOL_${secretOwner(one)}__… and TOOL_${secretOwner(other)}__…, which cannot be distinguished. Rename one of them`,
  );
}

function checkAdopter(keys: readonly ApiKey[], adopter: string): void {
  if (adopter === '' || keys.some(({ namespace }) => namespace === adopter)) return;
  const named = `OWNER_OF_KEYLESS names the namespace "${adopter.slice(0, limits.keyNameChars)}"`;
  throw invalid(
    keys.length === 0
      ? `${named}, but API_KEYS is not set, so there are no namespaces`
      : `${named}, which no entry of API_KEYS belongs to (known: ${namespacesOf(keys).join(', ')})`,
  );
}

function invalid(message: string): EngineError {
  return new EngineError('internal', message);
}

/** All namespaces, in the order of `API_KEYS`. */
export function namespacesOf(keys: readonly ApiKey[]): string[] {
  return [...new Set(keys.map(({ namespace }) => namespace))];
}

/** Owner of work without a caller: that of the first admin key; null without keys. */
export function firstOwner(keys: readonly ApiKey[]): string | null {
  return (keys.find(({ role }) => role === 'admin') ?? keys[0])?.owner ?? null;
}

/** Whether any caller has access to the things of this owner: the keys of a namespace, or, without keys, this machine. */
export function isOwner(keys: readonly ApiKey[], owner: string | null): boolean {
  return keys.length === 0 ? owner === null : keys.some((key) => key.owner === owner);
}

/** The owner of a namespace's things; undefined if no key belongs to the namespace. */
export function ownerOf(keys: readonly ApiKey[], namespace: string): string | null | undefined {
  return keys.find((key) => key.namespace === namespace)?.owner;
}

/** The namespace whose keys see the things of this owner; null without keys. */
export function namespaceOf(keys: readonly ApiKey[], owner: string | null): string | null {
  return owner ?? keys.find((key) => key.owner === null)?.namespace ?? null;
}
