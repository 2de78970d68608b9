/**
 * Authentication (H5). With keys configured: `Authorization: Bearer <key>`. Without keys: only a loopback `Host`, no proxy
 * that forwards for other machines, and no web page of another origin, because the system can run a shell.
 */
import { EngineError } from '../domain/errors.ts';
import type { ApiKey, Role } from './api-keys.ts';
import { isLoopbackName, nameOfHost } from './host.ts';

export interface Principal {
  /** Owner of what the caller makes and sees: a namespace, or null for what was made without keys (T4). */
  readonly owner: string | null;
  readonly role: Role;
}

export interface AuthConfig {
  readonly keys: readonly ApiKey[];
  /** Origins that browsers may call from; none by default. */
  readonly allowedOrigins: readonly string[];
}

/**
 * Checks where a request comes from, whatever credentials it has: no page of another origin; without keys, only this
 * machine.
 *
 * @throws EngineError `forbidden_origin`, `invalid_request` for a malformed `Host`
 */
export function checkCaller(request: Request, config: AuthConfig): void {
  const host = request.headers.get('host') ?? new URL(request.url).host;
  const name = nameOfHost(host);
  if (name === null) {
    throw new EngineError(
      'invalid_request',
      `The header "Host: ${host.slice(0, 200)}" is not one host with an optional port`,
    );
  }
  checkOrigin(request, host, config);
  if (config.keys.length === 0) checkLoopback(request, name);
}

/** @throws EngineError `unauthorized`, `forbidden_origin`, `invalid_request` */
export async function authenticate(request: Request, config: AuthConfig): Promise<Principal> {
  checkCaller(request, config);
  if (config.keys.length === 0) return { owner: null, role: 'admin' };
  const presented = /^Bearer\s+(\S+)$/i.exec(request.headers.get('authorization') ?? '')?.[1];
  if (presented === undefined)
    throw new EngineError('unauthorized', 'Send the API key as "Authorization: Bearer <key>"');
  const digest = await sha256(presented);
  let found: Principal | null = null;
  // Compares every key, so that the time does not reveal which one was close.
  for (const { owner, role, key } of config.keys) {
    if (equal(digest, await sha256(key))) found = { owner, role };
  }
  if (found === null) throw new EngineError('unauthorized', `Unknown API key${await namespaceHint(digest, config)}`);
  return found;
}

/** For a caller that sends the namespace with the key. Only a caller that knows the key gets this hint. */
async function namespaceHint(digest: Uint8Array, { keys }: AuthConfig): Promise<string> {
  let isKnown = false;
  for (const { key, namespace } of keys) if (equal(digest, await sha256(`${key}@${namespace}`))) isKnown = true;
  return isKnown ? ': it ends before the last "@"; what follows is the namespace (API_KEYS)' : '';
}

/** A web page may call only from the system's own origin or a listed one. */
function checkOrigin(request: Request, host: string, config: AuthConfig): void {
  const origin = request.headers.get('origin');
  if (origin === null) return;
  if (config.allowedOrigins.includes(origin)) return;
  if (origin === `http://${host}` || origin === `https://${host}`) return;
  throw new EngineError(
    'forbidden_origin',
    `Pages of the origin ${origin.slice(0, 200)} are not allowed to call this server (see ALLOWED_ORIGINS)`,
  );
}

/** Headers in which a proxy names the client or the host that it forwards for: names and addresses, in a list. */
const FORWARDED_FOR = [
  'cf-connecting-ip',
  'x-forwarded-for',
  'x-forwarded-host',
  'x-real-ip',
  'true-client-ip',
] as const;
/** Headers of proxies that are not read further. */
const FORWARDED = ['forwarded', 'via'] as const;

/** A proxy on this machine has a loopback address, so its headers say for whom it forwards. */
function checkLoopback({ headers }: Request, name: string): void {
  const others = FORWARDED_FOR.flatMap((header) => headers.get(header)?.split(',') ?? []);
  const isForwarded = FORWARDED.some((header) => headers.has(header));
  if (!isForwarded && [name, ...others.map(withoutPort)].every(isLoopbackName)) return;
  throw new EngineError(
    'forbidden_origin',
    'No API keys are configured, so only requests from this machine to a loopback address are allowed (set API_KEYS to allow others)',
  );
}

function withoutPort(text: string): string {
  const trimmed = text.trim();
  return nameOfHost(trimmed) ?? trimmed;
}

async function sha256(text: string): Promise<Uint8Array> {
  return new Uint8Array(await crypto.subtle.digest('SHA-256', new TextEncoder().encode(text)));
}

function equal(a: Uint8Array, b: Uint8Array): boolean {
  let difference = a.length ^ b.length;
  for (let i = 0; i < a.length; i += 1) difference |= (a[i] ?? 0) ^ (b[i] ?? 0);
  return difference === 0;
}
