/** A client of a session in this process, whose requests a test can lose and cut at any byte. */
import type { Clock } from '../../src/domain/ports/clock.ts';
import type { SessionEvent } from '../../src/domain/event.ts';
import { Client } from '../../src/client/index.ts';
import type { ClientOptions, Session } from '../../src/client/index.ts';
import { cutAfter } from './cut-response.ts';
import { checkedSession } from '../support/response-check.ts';
import type { SessionKit } from '../support/session-kit.ts';
import { SESSION_RECORD } from '../journal/journal-kit.ts';

/**
 * What happens to a request. `refused`: it does not arrive; `lost`: its answer does not; a number: the bytes until the cut;
 * a status: the answer of a proxy.
 */
export type Fault = 'refused' | 'lost' | number | { readonly status: number } | null;

/** Pauses end in the next turn. Time-outs never fire. */
export const promptClock: Clock = {
  now: () => 0,
  schedule(delayMs, callback) {
    if (delayMs > 10_000) return () => undefined;
    const timer = setImmediate(callback);
    return () => clearImmediate(timer);
  },
};

export interface ClientKit {
  readonly session: Session;
  /** Method, path and query of every request, in order. */
  readonly requests: readonly string[];
}

/** @param faults of the requests, in order; later ones have none */
export function clientOf(kit: SessionKit, faults: readonly Fault[] = [], more: Partial<ClientOptions> = {}): ClientKit {
  const app = checkedSession({
    session: kit.session,
    clock: kit.clock,
    destroy: async () => undefined,
    log: () => undefined,
  });
  const requests: string[] = [];
  const root = `http://session/agent/session/${SESSION_RECORD.session_id}`;
  const fetch: ClientOptions['fetch'] = async (url, init) => {
    const path = url.replace(root, '');
    const fault = faults[requests.length] ?? null;
    requests.push(`${init.method} ${path}`);
    if (fault === 'refused') throw new TypeError('fetch failed');
    if (typeof fault === 'object' && fault !== null) return new Response('no', fault);
    const response = await app(new Request(`http://session${path}`, init));
    if (fault === 'lost') {
      await response.body?.cancel();
      throw new TypeError('fetch failed');
    }
    return typeof fault === 'number' ? cutAfter(response, fault) : response;
  };
  const client = new Client({ url: 'http://session/', fetch, clock: promptClock, random: () => 0, ...more });
  return { session: client.session(SESSION_RECORD.session_id), requests };
}

export async function allOf<T>(items: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const item of items) all.push(item);
  return all;
}

/** The text of each block, from its patches alone. @throws Error if a patch does not continue the text */
export function patchedTexts(events: readonly SessionEvent[]): Map<number, string> {
  const texts = new Map<number, string>();
  for (const event of events) {
    if (event.type !== 'thought' && event.type !== 'text' && event.type !== 'response') continue;
    const { segment, offset, delta } = event.data;
    const text = texts.get(segment) ?? '';
    if (offset !== text.length) throw new Error(`the patch at ${offset} of ${segment} does not follow ${text.length}`);
    texts.set(segment, text + delta);
  }
  return texts;
}

/** The text of each block, as its closing event has it; none of empty blocks. */
export function closedTexts(events: readonly SessionEvent[]): Map<number, string> {
  const texts = new Map<number, string>();
  for (const event of events) {
    if (event.type === 'thought_completed' || event.type === 'text_completed' || event.type === 'response_completed') {
      if (event.data.content !== '') texts.set(event.data.segment, event.data.content);
    }
  }
  return texts;
}
