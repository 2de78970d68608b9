/**
 * The events of a session or of a run, over as many connections as it takes.
 *
 * Invariants:
 *  1. Nothing is lost and nothing comes twice (delivered.ts), wherever a connection was cut.
 *  2. A connection without a byte for `silenceMs` counts as cut: the server sends a comment every 5 seconds.
 *  3. It ends after the last event, or when the signal is aborted. It throws if the server refuses, or after more than
 *     `retries` failed requests in a row. A cut stream is no failed request: it is followed again for as long as it takes.
 *  4. The time between two connections is bounded, and short after a connection that brought an event.
 */
import type { SessionEvent } from '../domain/event.ts';
import type { Connection } from './connection.ts';
import { Delivered } from './delivered.ts';
import { connectionLost, CortexError, invalidResponse } from './error.ts';
import { backoffMs, LinkedSignal, pause } from './pause.ts';
import { SseReader } from './sse-reader.ts';

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
}

export async function* follow(
  connection: Connection,
  { path, run, after, open = null, signal, isLast, onResume }: FollowOptions,
): AsyncGenerator<SessionEvent, void, undefined> {
  const { clock, random, retries, silenceMs } = connection.options;
  const delivered = new Delivered(after);
  let stream = open;
  let failures = 0;
  /** Connections in a row that brought nothing new. */
  let empty = 0;
  for (let resumes = 0; !signal.aborted; resumes += 1) {
    let waitMs: number | null = null;
    let last: SessionEvent | null = null;
    const linked = new LinkedSignal(signal);
    try {
      if (resumes > 0) onResume?.();
      const query = { after: delivered.seq, run };
      stream ??= await connection.once(path, { query, signal: linked.signal, timeoutMs: silenceMs });
      failures = 0;
      for await (const text of texts(stream, connection, linked)) {
        for (const event of delivered.take(eventOf(text))) {
          last = event;
          yield event;
          if (isLast(event)) return;
        }
        if (signal.aborted) return;
      }
    } catch (fault) {
      if (signal.aborted) return;
      if (!(fault instanceof CortexError) || !fault.isPassing) throw fault;
      if (stream === null) failures += 1;
      if (failures > retries) throw fault;
      waitMs = fault.retryAfterMs;
    } finally {
      linked.abort();
    }
    stream = null;
    empty = last === null ? empty + 1 : 0;
    // The stream of a message ends here; that of its run continues.
    if (last?.type === 'agent_waiting') continue;
    await pause(waitMs ?? backoffMs(empty + 1, random()), clock, signal);
  }
}

/** The data of a stream's events. @throws CortexError `connection_lost` if it is cut or silent */
async function* texts(response: Response, connection: Connection, linked: LinkedSignal): AsyncGenerator<string> {
  const type = response.headers.get('content-type') ?? '';
  if (!type.startsWith('text/event-stream') || response.body === null) {
    throw invalidResponse(`Expected a stream of events, got "${type.slice(0, 100)}"`, response.status);
  }
  const bytes = response.body.getReader();
  const sse = new SseReader();
  const decoder = new TextDecoder();
  try {
    for (;;) {
      const { done, value } = await readBefore(bytes, connection, linked.signal);
      if (done) return;
      yield* sse.feed(decoder.decode(value, { stream: true }));
    }
  } finally {
    void bytes.cancel().catch(() => undefined);
  }
}

/** The next bytes. The time counts only while they are waited for: a slow caller is no silent server. */
async function readBefore(
  bytes: ReadableStreamDefaultReader<Uint8Array>,
  { options: { clock, silenceMs } }: Connection,
  signal: AbortSignal,
): Promise<Awaited<ReturnType<ReadableStreamDefaultReader<Uint8Array>['read']>>> {
  return await new Promise((resolve, reject) => {
    const end = (settle: () => void): void => {
      cancel();
      signal.removeEventListener('abort', leave);
      settle();
    };
    const leave = (): void => end(() => reject(connectionLost('The stream was left')));
    const cancel = clock.schedule(silenceMs, () =>
      end(() => reject(connectionLost(`The server was silent for ${silenceMs} ms`))),
    );
    signal.addEventListener('abort', leave);
    if (signal.aborted) leave();
    bytes.read().then(
      (result) => end(() => resolve(result)),
      (fault: unknown) => end(() => reject(connectionLost('The stream was cut', fault))),
    );
  });
}

function eventOf(text: string): SessionEvent {
  try {
    return JSON.parse(text) as SessionEvent;
  } catch {
    throw invalidResponse(`Not an event: ${text.slice(0, 100)}`, 200);
  }
}
