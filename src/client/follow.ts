/**
 * The events of a session or of a run, over as many connections as it takes.
 *
 * Invariants:
 *  1. Nothing is lost and nothing comes twice (delivered.ts), wherever a connection was cut.
 *  2. A connection without a byte for `silenceMs` counts as cut: the server sends a comment every 5 seconds.
 *  3. It ends after the last event, or when the signal is aborted. It throws if the server refuses, if the first
 *     connection fails more than `retries` times, or if `retries` connections in a row bring only a damaged event. After that one it is followed for as long as it takes: a server that
 *     is restarted, or a device that is offline, comes back.
 *  4. The time between two connections is bounded, and short after a connection that brought an event.
 *  5. `onGap` is called after each connection that was resumed, and whenever the server has nothing to say: what is only
 *     live may have been missed.
 */
import type { SessionEvent } from '../domain/event.ts';
import { COMPACT, MOST_WAIT_MS } from './connection.ts';
import type { Connection } from './connection.ts';
import { Delivered } from './delivered.ts';
import { connectionLost, CortexError, invalidResponse } from './error.ts';
import { frameDecoder } from './frame-decoder.ts';
import { backoffMs, LinkedSignal, pause } from './pause.ts';
import { sseReader } from './sse-reader.ts';

interface FollowOptions {
  readonly path: string;
  readonly run?: string;
  /** Number of the last event that the caller has. */
  readonly after: number;
  /** A stream that is open already. */
  readonly open?: Response | null;
  readonly signal: AbortSignal;
  readonly isLast: (event: SessionEvent) => boolean;
  /** A further connection begins. */
  readonly onResume?: () => void;
  readonly onGap?: () => void;
}

export async function* follow(
  connection: Connection,
  { path, run, after, open = null, signal, isLast, onResume, onGap }: FollowOptions,
): AsyncGenerator<SessionEvent, void, undefined> {
  const { clock, random, retries, silenceMs } = connection.options;
  const delivered = new Delivered(after);
  let stream = open;
  let wasOpen = open !== null;
  let failures = 0;
  /** Connections in a row that brought nothing new. */
  let empty = 0;
  for (let resumes = 0; !signal.aborted; resumes += 1) {
    let lost = connectionLost('The stream has ended early');
    let last: SessionEvent | null = null;
    let isMalformed = false;
    const linked = new LinkedSignal(signal);
    const frames = frameDecoder();
    try {
      if (resumes > 0) onResume?.();
      const query = { after: delivered.seq, run, ...COMPACT };
      stream ??= await connection.response(path, { query, signal: linked.signal, timeoutMs: silenceMs, retries: 0 });
      wasOpen = true;
      if (resumes > 0) {
        connection.options.onResumed?.();
        onGap?.();
      }
      for await (const text of texts(stream, connection, linked, onGap)) {
        let parsed: SessionEvent;
        try {
          parsed = frames(text);
        } catch {
          // Something between the server and here has damaged it.
          isMalformed = true;
          throw invalidResponse(`Not an event: ${text.slice(0, 100)}`, 200);
        }
        for (const event of delivered.take(parsed)) {
          last = event;
          yield event;
          if (isLast(event)) return;
        }
        if (signal.aborted) return;
      }
    } catch (fault) {
      if (signal.aborted) return;
      if (!(fault instanceof CortexError)) throw fault;
      // The next connection begins with the same event.
      if (!fault.isPassing && !(isMalformed && empty < retries)) throw fault;
      failures += 1;
      if (!wasOpen && failures > retries) throw fault;
      lost = fault;
    } finally {
      linked.abort();
    }
    stream = null;
    empty = last === null ? empty + 1 : 0;
    // The stream of a message ends here; that of its run continues.
    if (last?.type === 'agent_waiting') continue;
    connection.options.onRetry?.(lost);
    const waitMs = lost.retryAfterMs ?? backoffMs(empty + 1, random());
    await pause(Math.min(waitMs, MOST_WAIT_MS), clock, signal);
  }
}

/** The data of a stream's events, until the signal is aborted. @throws CortexError `connection_lost` if it is cut or silent */
async function* texts(
  response: Response,
  { options: { clock, silenceMs } }: Connection,
  linked: LinkedSignal,
  onQuiet?: () => void,
): AsyncGenerator<string> {
  const type = response.headers.get('content-type') ?? '';
  if (!type.startsWith('text/event-stream') || response.body === null) {
    throw invalidResponse(`No stream of events: "${type.slice(0, 100)}"`, response.status);
  }
  const bytes = response.body.getReader();
  const { signal } = linked;
  signal.addEventListener('abort', () => void bytes.cancel().catch(() => undefined));
  const sse = sseReader();
  const decoder = new TextDecoder();
  for (;;) {
    // The time counts only while bytes are waited for: the server is not silent when its reader is slow.
    const heard = clock.schedule(silenceMs, () =>
      linked.abort(connectionLost(`The server was silent for ${silenceMs} ms`)),
    );
    const result = await bytes.read().catch((fault: unknown) => connectionLost('The stream was cut', fault));
    heard();
    signal.throwIfAborted();
    if (result instanceof CortexError) throw result;
    if (result.done) return;
    const events = sse(decoder.decode(result.value, { stream: true }));
    // A comment, every 5 seconds.
    if (events.length === 0) onQuiet?.();
    yield* events;
  }
}
