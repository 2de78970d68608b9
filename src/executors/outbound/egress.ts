/**
 * Outbound requests sent by a runner (X2), for platforms whose network may reach private addresses, such as a local
 * machine.
 *
 * Owns: a short-lived cache of resolved names, and the choice of the runner. Does not own: the rules; `outbound.ts`
 * checks the addresses between `resolve` and `send`.
 *
 * Invariants
 * 1. A request goes to one of the addresses passed to `send`, never to a later result of resolving the name.
 * 2. If no runner can be reached, nothing is sent, and the error reports it.
 * 3. A request that may have been sent is not sent again.
 */
import { parseObject } from '../../domain/json.ts';
import type { JsonObject } from '../../domain/json.ts';
import { limits } from '../../domain/limits.ts';
import type { Clock } from '../../domain/ports/clock.ts';
import { OutboundError } from '../../domain/outbound-error.ts';
import { connectionFailure, neverConnected } from '../runner/error.ts';
import type { RunnerAddress, SigningKey } from '../runner/list.ts';
import { tokenOf } from '../runner/signature.ts';

export interface EgressRequest {
  readonly url: URL;
  readonly method: string;
  readonly headers: Headers;
  readonly body: string | null;
  readonly signal: AbortSignal;
  /** From the call to the last byte of the response. */
  readonly timeoutMs: number;
  /** The response is cut at this size, after decompression. */
  readonly maxBytes: number;
}

/** Both reject with `OutboundError`, or with the signal's reason. */
export interface Egress {
  /** All addresses of a name, at least one. */
  resolve(host: string, signal: AbortSignal): Promise<readonly string[]>;
  /** One request without redirects, to one of these addresses. */
  send(request: EgressRequest, addresses: readonly string[]): Promise<Response>;
}

export interface RunnerEgressOptions {
  readonly runners: readonly RunnerAddress[];
  /** Null if none is configured; then every request fails. */
  readonly key: SigningKey | null;
  readonly fetch: (input: string, init: RequestInit) => Promise<Response>;
  readonly clock: Clock;
  /** A new random string of at least 16 characters with every call. */
  readonly newNonce: () => string;
  /** The session id; sessions do not share connections. */
  readonly session: () => string;
  /** The namespace of the session, if several share the runners; null means they are not shared. */
  readonly tenant?: () => string | null;
}

/** Header with the status and headers of the response, set by the runner. */
const HEAD = 'x-cortex-egress';
/** Headers that the runner sets itself. */
const OWN_HEADERS: ReadonlySet<string> = new Set(['accept-encoding', 'connection', 'content-length', 'host']);
const WITHOUT_BODY: ReadonlySet<number> = new Set([204, 205, 304]);

interface Known {
  readonly addresses: readonly string[];
  readonly until: number;
}

export function createRunnerEgress(options: RunnerEgressOptions): Egress {
  const { clock } = options;
  const known = new Map<string, Known>();
  /** The runner that answered last is first. */
  let order: readonly RunnerAddress[] = options.runners;

  async function post(runner: RunnerAddress, target: string, body: string, signal: AbortSignal): Promise<Response> {
    if (options.key === null) throw unavailable('no key for the runner is configured (RUNNER_SECRET)');
    const url = new URL(target, `${runner.url.replace(/\/+$/, '')}/`);
    const tenant = options.tenant?.() ?? null;
    if (tenant !== null) url.searchParams.set('tenant', tenant);
    const token = await tokenOf({ method: 'POST', url, body }, options.key, options.newNonce(), clock.now());
    return await options.fetch(url.href, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      body,
      signal,
      redirect: 'manual',
    });
  }

  /**
   * Calls one runner after the other until one has answered.
   *
   * @param repeatable whether repeating the request is harmless
   */
  async function ask(target: string, call: JsonObject, signal: AbortSignal, repeatable: boolean): Promise<Response> {
    const body = JSON.stringify(call);
    let reason = 'no runner is configured (RUNNER_URLS)';
    for (const runner of order) {
      let response: Response;
      try {
        response = await post(runner, target, body, signal);
      } catch (fault) {
        signal.throwIfAborted();
        if (fault instanceof OutboundError) throw fault;
        reason = `the runner could not be reached: ${connectionFailure(fault)}`;
        if (repeatable || neverConnected(fault)) continue;
        throw new OutboundError('fetch_failed', `The request may have been sent: ${reason}`, false, fault);
      }
      if (response.ok) {
        order = [runner, ...order.filter((other) => other !== runner)];
        return response;
      }
      const refusal = refusalOf(response.status, parseObject(await response.text()));
      if (refusal.code !== 'egress_unavailable') throw refusal;
      reason = refusal.message;
    }
    throw unavailable(reason);
  }

  return {
    async resolve(host, signal) {
      const fresh = known.get(host);
      if (fresh !== undefined && fresh.until > clock.now()) return fresh.addresses;
      const response = await ask('/egress/resolve', { session: options.session(), host }, signal, true);
      const addresses = addressesOf(parseObject(await response.text()));
      if (addresses.length === 0) throw new OutboundError('fetch_failed', `"${host}" has no address`, true);
      known.delete(host);
      known.set(host, { addresses, until: clock.now() + limits.egressNameMs });
      const [oldest] = known.keys();
      if (known.size > limits.egressNames && oldest !== undefined) known.delete(oldest);
      return addresses;
    },

    async send(request, addresses) {
      const { url, method, headers, body, signal, timeoutMs, maxBytes } = request;
      const call = {
        session: options.session(),
        url: url.href,
        method,
        headers: Object.fromEntries([...headers].filter(([name]) => !OWN_HEADERS.has(name))),
        body,
        addresses: [...addresses],
        timeout_ms: timeoutMs,
        max_bytes: maxBytes,
      };
      const response = await ask('/egress', call, signal, method === 'GET' || method === 'HEAD');
      return answerOf(response);
    },
  };
}

function answerOf(response: Response): Response {
  const head = decoded(response.headers.get(HEAD) ?? '');
  const status = head?.['status'];
  const list = head?.['headers'];
  if (typeof status !== 'number' || status < 200 || status > 599 || !Array.isArray(list)) {
    void response.body?.cancel().catch(() => {});
    const found = typeof status === 'number' ? `the invalid status ${status}` : 'no status header';
    throw new OutboundError('fetch_failed', `The runner's answer has ${found}`, false);
  }
  const headers = new Headers();
  for (const entry of list) {
    const [name, value] = Array.isArray(entry) ? entry : [];
    if (typeof name !== 'string' || typeof value !== 'string') continue;
    try {
      headers.append(name, value);
    } catch {
      // Headers that this platform rejects are not passed on.
    }
  }
  if (!WITHOUT_BODY.has(status)) return new Response(response.body, { status, headers });
  void response.body?.cancel().catch(() => {});
  return new Response(null, { status, headers });
}

/** Converts a runner's error answer; `egress_unavailable` if another runner may succeed. */
function refusalOf(status: number, problem: JsonObject | null): OutboundError {
  const detail = typeof problem?.['detail'] === 'string' ? problem['detail'] : `it answered ${status}`;
  switch (problem?.['code']) {
    case 'egress_failed':
      return new OutboundError('fetch_failed', detail, problem['before_dispatch'] === true);
    case 'egress_timeout':
      return new OutboundError('fetch_timeout', detail, false);
    case 'egress_refused':
      return new OutboundError('address_refused', detail, true);
    case 'invalid_request':
      return new OutboundError('header_refused', detail, true);
    default:
      return unavailable(`the runner cannot send requests now: ${detail}`);
  }
}

function unavailable(reason: string): OutboundError {
  return new OutboundError('egress_unavailable', reason, true);
}

function addressesOf(answer: JsonObject | null): string[] {
  const list = answer?.['addresses'];
  return Array.isArray(list) ? list.filter((each): each is string => typeof each === 'string') : [];
}

function decoded(text: string): JsonObject | null {
  try {
    const bytes = Uint8Array.from(atob(text.replaceAll('-', '+').replaceAll('_', '/')), (char) => char.charCodeAt(0));
    return parseObject(new TextDecoder().decode(bytes));
  } catch {
    return null;
  }
}
