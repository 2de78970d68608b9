/**
 * The system that a command talks to: the address of `--url`, CORTEX_URL or PORT (also of `.dev.vars`), and the API key of
 * `--key` or CORTEX_API_KEY. The key is never printed.
 */
import { UsageError } from '../command.ts';
import type { CommandCall } from '../command.ts';
import { commandLine } from '../project/command-line.ts';
import { PROJECT_ROOT } from '../project/folders.ts';
import { portOf } from '../system/ports.ts';
import { devVarsOf } from '../system/dev-vars.ts';
import { givenSettings, startSettings } from '../system/start-settings.ts';
import { visible } from './visible.ts';

export interface Connection {
  /** Without a slash at its end. */
  readonly url: string;
  /** Null if no key is given. */
  readonly key: string | null;
}

/** What names the system: options take precedence over the environment. */
export type ConnectionSource = Pick<CommandCall, 'values' | 'environment' | 'tell'>;

/**
 * Warns about a key that would be sent in plain text to another machine.
 *
 * @param root the project's folder, whose `.dev.vars` may have PORT
 * @throws UsageError for an address or a port that is not one, or a key that no header can hold
 */
export function connectionOf(source: ConnectionSource, root: string = PROJECT_ROOT): Connection {
  const { values, environment, tell } = source;
  const givenKey = values['key'];
  const key = typeof givenKey === 'string' ? givenKey : (environment['CORTEX_API_KEY'] ?? '');
  if (!/^[!-~]*$/.test(key)) {
    const name = typeof givenKey === 'string' ? '--key' : 'CORTEX_API_KEY';
    throw new UsageError(`${name} must be one API key: visible ASCII characters without spaces`);
  }
  const url = addressOf(source, root);
  if (key !== '') warnIfUnencrypted(url, tell);
  return { url, key: key === '' ? null : key };
}

/** Warns about a key that is sent in plain text to another machine. */
export function warnIfUnencrypted(url: string, tell: CommandCall['tell']): void {
  const { protocol, hostname } = new URL(url);
  if (protocol !== 'http:' || LOOPBACK.test(hostname)) return;
  tell(`warning: the API key is sent to ${hostname} without encryption; use https`);
}

/**
 * The system that `--url` or CORTEX_URL names; null without both. For commands that also work without a system: PORT is
 * only where a system of this machine would be.
 *
 * @throws UsageError as `connectionOf`
 */
export function namedConnectionOf(source: ConnectionSource): Connection | null {
  const { values, environment } = source;
  const isNamed = values['url'] !== undefined || (environment['CORTEX_URL'] ?? '') !== '';
  return isNamed ? connectionOf(source) : null;
}

const LOOPBACK = /^(localhost|.*\.localhost|127\.\d+\.\d+\.\d+|\[::1\])$/;

function addressOf({ values, environment }: ConnectionSource, root: string): string {
  const option = values['url'];
  const [name, given] =
    typeof option === 'string' ? ['--url', option] : ['CORTEX_URL', environment['CORTEX_URL'] ?? ''];
  if (name === 'CORTEX_URL' && given === '') {
    // `cortex dev` takes the port from the same settings.
    const start = startSettings(givenSettings(environment, devVarsOf(root)));
    return `http://127.0.0.1:${portOf(start, 'PORT')}`;
  }
  const url = URL.parse(given);
  const isAddress = url !== null && /^https?:$/.test(url.protocol) && url.hostname !== '';
  // What is more than an address could be a password, so it is not repeated.
  if (!isAddress || url.username !== '' || url.password !== '' || url.search !== '' || url.hash !== '') {
    const shown = isAddress ? 'one with more than host, port and path' : `"${visible(given.slice(0, 100))}"`;
    throw new UsageError(`${name} must be an address such as https://cortex.example.com, got ${shown}`);
  }
  return `${url.origin}${url.pathname}`.replace(/\/+$/, '');
}

/** The system has answered that it does not accept the request. Another request may be accepted. */
export class Refusal extends Error {
  /** The problem's code and detail; null for another answer. */
  readonly problem: { readonly code: string; readonly detail: string } | null;

  constructor(message: string, problem: Refusal['problem'] = null) {
    super(message);
    this.problem = problem;
  }
}

/** No system answers at the address, or it does not accept the key. */
export class Unreachable extends Error {
  readonly code: 'unreachable' | 'unauthorized';

  constructor(code: Unreachable['code'], message: string, options: ErrorOptions = {}) {
    super(message, options);
    this.code = code;
  }
}

/** The header that authenticates a request; none without a key. */
function keyHeaders({ key }: Connection): Record<string, string> {
  return key === null ? {} : { authorization: `Bearer ${key}` };
}

/**
 * Sends a request to the system and returns its answer, whose status is 2xx.
 *
 * @param path with its leading slash
 * @throws Unreachable that says what to do: no system there, or no key or the wrong key
 * @throws Refusal with the problem's code and detail
 */
export async function request(connection: Connection, path: string, init: RequestInit = {}): Promise<Response> {
  const headers = new Headers(init.headers);
  for (const [name, value] of Object.entries(keyHeaders(connection))) headers.set(name, value);
  let response: Response;
  try {
    response = await fetch(`${connection.url}${path}`, { ...init, headers });
  } catch (fault) {
    throw noSystem(connection, fault);
  }
  if (response.ok) return response;
  if (response.status === 401) throw keyAdvice(connection);
  throw refusalOf(response.status, await response.text());
}

/** What to do when nothing answers. */
export function noSystem({ url }: Connection, cause?: unknown): Unreachable {
  const advice = LOOPBACK.test(new URL(url).hostname)
    ? `run ${commandLine('dev')} in another terminal`
    : 'check the address and the network';
  return new Unreachable('unreachable', `no system at ${url}; ${advice}`, { cause });
}

/** What to do when the system does not accept the key. */
export function keyAdvice({ url, key }: Connection): Unreachable {
  const message =
    key === null
      ? `The system at ${url} requires an API key. Set it in the environment: CORTEX_API_KEY=<key>, or add --key <key>. ` +
        'The key is the third part of an entry of API_KEYS (name:role:key).'
      : `The system at ${url} does not know this API key. Compare CORTEX_API_KEY or --key with the third part of the ` +
        'entries of API_KEYS (name:role:key); the system reads them when it starts.';
  return new Unreachable('unauthorized', message);
}

/** Code and detail of a problem document, or the start of any other answer. */
function refusalOf(status: number, text: string): Refusal {
  try {
    const { code, detail } = JSON.parse(text) as { code: unknown; detail: unknown };
    if (typeof code === 'string' && typeof detail === 'string') {
      return new Refusal(`${code}: ${visible(detail)}`, { code, detail });
    }
  } catch {
    // Not JSON.
  }
  return new Refusal(`HTTP ${status}: ${visible(text.slice(0, 500))}`);
}
