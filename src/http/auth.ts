/**
 * Authentication (H5). With keys configured: `Authorization: Bearer <key>`. Without keys: only a loopback `Host`, and
 * no web page of another origin, because the system can run a shell.
 */
import { EngineError } from '../domain/errors.ts';
import { limits } from '../domain/limits.ts';
import { ownersClash, secretOwner } from '../domain/secrets.ts';

export type Role = 'run' | 'admin';

export interface Principal {
  /** The key's name; null if no keys are configured. */
  readonly name: string | null;
  readonly role: Role;
}

export interface ApiKey {
  readonly name: string;
  readonly role: Role;
  readonly key: string;
}

export interface AuthConfig {
  readonly keys: readonly ApiKey[];
  /** Origins that browsers may call from; none by default. */
  readonly allowedOrigins: readonly string[];
}

/**
 * Parses `name:role:key,name:role:key`.
 *
 * @throws EngineError `internal` that names the invalid entry (never the key), so that a system with invalid keys does
 *   not start without authentication
 */
export function parseApiKeys(text: string | undefined): ApiKey[] {
  if (text === undefined || text.trim() === '') return [];
  const keys = text
    .split(/[\s,]+/)
    .filter(Boolean)
    .map((entry, index): ApiKey => {
      const [name, role, ...rest] = entry.split(':');
      const key = rest.join(':');
      if (!name || (role !== 'run' && role !== 'admin') || key === '') {
        throw new EngineError('internal', `API_KEYS entry ${index + 1} must be name:role:key with role run or admin`);
      }
      // The name is sent to the session's object in a header.
      if (!/^[!-~]+$/.test(name) || name.length > limits.keyNameChars) {
        throw new EngineError(
          'internal',
          `API_KEYS entry ${index + 1}: its name must have up to ${limits.keyNameChars} characters of visible ASCII`,
        );
      }
      return { name, role, key };
    });
  checkOwners(keys);
  return keys;
}

/** Each key belongs to one name, and each secret of a manifest belongs to one name (X3). */
function checkOwners(keys: readonly ApiKey[]): void {
  keys.forEach(({ name, key }, index) => {
    const first = keys.findIndex((other) => other.key === key);
    if (keys[first]?.name === name) return;
    throw new EngineError('internal', `API_KEYS entries ${first + 1} and ${index + 1} have the same key for two names`);
  });
  const clash = ownersClash(keys.map(({ name }) => name));
  if (clash === null) return;
  const [one, other] = clash;
  throw new EngineError(
    'internal',
    `API_KEYS: the names "${one}" and "${other}" cannot both be used: their secrets would be TOOL_${secretOwner(one)}__… and TOOL_${secretOwner(other)}__…, which cannot be distinguished. Rename one of the keys`,
  );
}

/** Owner of work without a caller: the first admin's name; null without keys. */
export function firstOwner(keys: readonly ApiKey[]): string | null {
  return (keys.find(({ role }) => role === 'admin') ?? keys[0])?.name ?? null;
}

/** Whether sessions can belong to this name: the name of a key, or null without keys. */
export function isOwner(keys: readonly ApiKey[], name: string | null): boolean {
  return keys.length === 0 ? name === null : keys.some((key) => key.name === name);
}

/**
 * Checks where a request comes from, whatever credentials it has: no page of another origin; without keys, only this
 * machine.
 *
 * @throws EngineError `forbidden_origin`
 */
export function checkCaller(request: Request, config: AuthConfig): void {
  checkOrigin(request, config);
  if (config.keys.length === 0) checkLoopback(request);
}

/** @throws EngineError `unauthorized`, `forbidden_origin` */
export async function authenticate(request: Request, config: AuthConfig): Promise<Principal> {
  checkCaller(request, config);
  if (config.keys.length === 0) return { name: null, role: 'admin' };
  const presented = /^Bearer\s+(\S+)$/i.exec(request.headers.get('authorization') ?? '')?.[1];
  if (presented === undefined)
    throw new EngineError('unauthorized', 'Send the API key as "Authorization: Bearer <key>"');
  const digest = await sha256(presented);
  let found: Principal | null = null;
  // Compares every key, so that the time does not reveal which one was close.
  for (const { name, role, key } of config.keys) {
    if (equal(digest, await sha256(key))) found = { name, role };
  }
  if (found === null) throw new EngineError('unauthorized', 'Unknown API key');
  return found;
}

/** A web page may call only from the system's own origin or a listed one. */
function checkOrigin(request: Request, config: AuthConfig): void {
  const origin = request.headers.get('origin');
  if (origin === null) return;
  if (config.allowedOrigins.includes(origin)) return;
  const host = request.headers.get('host') ?? new URL(request.url).host;
  if (origin === `http://${host}` || origin === `https://${host}`) return;
  throw new EngineError(
    'forbidden_origin',
    `Pages of the origin ${origin.slice(0, 200)} are not allowed to call this server (see ALLOWED_ORIGINS)`,
  );
}

function checkLoopback(request: Request): void {
  const host = request.headers.get('host') ?? new URL(request.url).host;
  const peer = request.headers.get('cf-connecting-ip');
  if (isLoopbackName(host.replace(/:\d+$/, '')) && (peer === null || isLoopbackName(peer))) return;
  throw new EngineError(
    'forbidden_origin',
    'No API keys are configured, so only requests from this machine to a loopback address are allowed (set API_KEYS to allow others)',
  );
}

function isLoopbackName(name: string): boolean {
  const bare = name.replace(/^\[|\]$/g, '').toLowerCase();
  return bare === 'localhost' || bare === '::1' || /^127(\.\d{1,3}){3}$/.test(bare);
}

async function sha256(text: string): Promise<Uint8Array> {
  return new Uint8Array(await crypto.subtle.digest('SHA-256', new TextEncoder().encode(text)));
}

function equal(a: Uint8Array, b: Uint8Array): boolean {
  let difference = a.length ^ b.length;
  for (let i = 0; i < a.length; i += 1) difference |= (a[i] ?? 0) ^ (b[i] ?? 0);
  return difference === 0;
}
