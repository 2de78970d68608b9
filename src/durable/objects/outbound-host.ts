/**
 * Sends requests for a session's object in an invocation of its own, which has six connections of its own (Z3). The object
 * has checked the address and follows redirects itself; nothing is decided here.
 *
 * One invocation sends many requests: the platform limits the invocations of a request to 32.
 */
import { RpcTarget, WorkerEntrypoint } from 'cloudflare:workers';
import { messageOf } from '../../domain/errors.ts';
import { limits } from '../../domain/limits.ts';
import type { PlatformPlan } from '../../domain/platform-plan.ts';
import type { NetworkFetch } from '../../executors/outbound/platform-limits.ts';
import type { Env, HelperAnswer, HelperRequest, OutboundConnections, OutboundHostRpc } from '../env.ts';
import { helperFetch } from '../network.ts';

export class OutboundHost extends WorkerEntrypoint<Env> implements OutboundHostRpc {
  open(enforced: PlatformPlan | null): Connections {
    return new Connections(helperFetch(enforced));
  }
}

class Connections extends RpcTarget implements OutboundConnections {
  readonly #fetch: NetworkFetch;
  readonly #open = new Map<number, AbortController>();

  constructor(fetch: NetworkFetch) {
    super();
    this.#fetch = fetch;
  }

  async send(id: number, { url, method, headers, body, redirect }: HelperRequest): Promise<HelperAnswer> {
    const abort = new AbortController();
    this.#open.set(id, abort);
    let isStreamed = false;
    try {
      const response = await this.#fetch(url, {
        method,
        headers: headers as [string, string][],
        body: body as string | Uint8Array<ArrayBuffer> | null,
        redirect,
        signal: abort.signal,
      });
      const { status, statusText } = response;
      const kept = new Headers(response.headers);
      // The body is read here, so it is already decompressed: its length is unknown, and may be very large.
      if (kept.has('content-encoding')) {
        kept.delete('content-encoding');
        kept.delete('content-length');
      }
      const size = Number(kept.get('content-length') ?? Number.NaN);
      const head = { status, statusText, headers: [...kept] };
      if (response.body === null || size <= limits.outboundHelperBytes) {
        return { type: 'whole', ...head, body: new Uint8Array(await response.arrayBuffer()) };
      }
      // It can be cancelled until this invocation ends.
      isStreamed = true;
      const { readable, writable } = new IdentityTransformStream();
      // Aborting the request alone does not end a body that is being read.
      response.body.pipeTo(writable, { signal: abort.signal }).catch(() => undefined);
      return { type: 'stream', ...head, body: readable };
    } catch (fault) {
      return { type: 'failed', name: fault instanceof Error ? fault.name : 'Error', message: messageOf(fault) };
    } finally {
      if (!isStreamed) this.#open.delete(id);
    }
  }

  /** Ends a request that waits for its headers, or the body of its answer. */
  cancel(id: number): void {
    this.#open.get(id)?.abort();
  }
}
