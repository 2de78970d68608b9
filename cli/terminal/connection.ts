/**
 * The running system that an npm command talks to: the address of PORT, and the API key of CORTEX_API_KEY or `--key`. The
 * key is never printed.
 */
import { visible } from './visible.ts';

export interface Connection {
  readonly url: string;
  /** Null if no key is given. */
  readonly key: string | null;
}

/**
 * @param given the value of `--key`; takes precedence over CORTEX_API_KEY
 * @throws Error for a key that no header can hold
 */
export function connectionOf(environment: Readonly<Record<string, string | undefined>>, given?: string): Connection {
  const key = given ?? environment['CORTEX_API_KEY'] ?? '';
  if (!/^[!-~]*$/.test(key)) {
    throw new Error(
      `${given === undefined ? 'CORTEX_API_KEY' : '--key'} must be one API key: visible ASCII characters without spaces`,
    );
  }
  return { url: `http://127.0.0.1:${environment['PORT'] || 8787}`, key: key === '' ? null : key };
}

/** The system has answered that it does not accept the request. Another request may be accepted. */
export class Refusal extends Error {}

/** The header that authenticates a request; none without a key. */
function keyHeaders({ key }: Connection): Record<string, string> {
  return key === null ? {} : { authorization: `Bearer ${key}` };
}

/**
 * Sends a request to the system and returns its answer, whose status is 2xx.
 *
 * @param path with its leading slash
 * @throws Error that says what to do: no system there, or no key or the wrong key
 * @throws Refusal with the problem's code and detail
 */
export async function request(connection: Connection, path: string, init: RequestInit = {}): Promise<Response> {
  const headers = new Headers(init.headers);
  for (const [name, value] of Object.entries(keyHeaders(connection))) headers.set(name, value);
  let response: Response;
  try {
    response = await fetch(`${connection.url}${path}`, { ...init, headers });
  } catch (fault) {
    throw new Error(`no system at ${connection.url}; run npm start in another terminal`, { cause: fault });
  }
  if (response.ok) return response;
  if (response.status === 401) throw new Error(keyAdvice(connection));
  throw new Refusal(problemText(response.status, await response.text()));
}

/** What to do when the system does not accept the key. */
function keyAdvice({ url, key }: Connection): string {
  return key === null
    ? `The system at ${url} requires an API key. Set it in the environment: CORTEX_API_KEY=<key>. ` +
        'The key is the third part of an entry of API_KEYS (name:role:key). npm run chat also takes it with -- --key <key>.'
    : `The system at ${url} does not know this API key. Compare CORTEX_API_KEY or --key with the third part of the ` +
        'entries of API_KEYS (name:role:key); the system reads them when it starts.';
}

/** Code and detail of a problem document, or the start of any other answer. */
function problemText(status: number, text: string): string {
  try {
    const { code, detail } = JSON.parse(text) as { code: unknown; detail: unknown };
    if (typeof code === 'string' && typeof detail === 'string') return `${code}: ${visible(detail)}`;
  } catch {
    // Not JSON.
  }
  return `HTTP ${status}: ${visible(text.slice(0, 500))}`;
}
