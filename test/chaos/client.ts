/** HTTP requests to a Worker that may be killed at any time. */
import { setTimeout as delay } from 'node:timers/promises';

/** A request without an answer: the Worker was killed during it, or is not running. */
export const LOST = Symbol('lost');

export interface Answer {
  readonly status: number;
  /** The error's code, or `accepted`. */
  readonly code: string;
  readonly headers: Headers;
  /** Null for an event stream, whose events are ignored. */
  readonly body: unknown;
}

const REPEAT_MS = 100;
/** Longer than any restart. */
const MOST_MS = 90_000;

export interface Wanted extends RequestInit {
  /** Send it again until an answer arrives. Default: true. */
  readonly mayRepeat?: boolean;
  /** Read an event stream to its end: to leave it would cut the body that is being sent. Default: false. */
  readonly staysConnected?: boolean;
}

/**
 * Sends a request, again until an answer arrives or `MOST_MS` have passed.
 *
 * @returns the answer; LOST if none arrived
 */
export async function request(url: string, { mayRepeat = true, ...init }: Wanted = {}): Promise<Answer | typeof LOST> {
  for (const deadline = Date.now() + MOST_MS; ;) {
    const answer = await once(url, init);
    if (answer !== LOST || !mayRepeat || Date.now() > deadline) return answer;
    await delay(REPEAT_MS);
  }
}

async function once(url: string, { staysConnected = false, ...init }: Wanted): Promise<Answer | typeof LOST> {
  try {
    const response = await fetch(url, init);
    const { status, headers } = response;
    if (headers.get('content-type')?.startsWith('text/event-stream') === true) {
      void (staysConnected ? response.text() : response.body?.cancel())?.catch(() => undefined);
      return { status, code: 'accepted', headers, body: null };
    }
    const body = bodyOf(await response.text());
    const { code } = { code: undefined, ...(body as { readonly code?: string } | null) };
    // A process that ends answers without a problem document.
    if (status >= 500 && code === undefined) return LOST;
    return { status, code: status < 400 ? 'accepted' : (code ?? String(status)), headers, body };
  } catch {
    return LOST;
  }
}

/** @returns the bytes; null without them */
export async function download(url: string): Promise<Uint8Array | null> {
  const response = await fetch(url);
  const bytes = await response.arrayBuffer();
  return response.ok ? new Uint8Array(bytes) : null;
}

/** JSON, or else the text. */
function bodyOf(text: string): unknown {
  if (text === '') return null;
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return text;
  }
}
