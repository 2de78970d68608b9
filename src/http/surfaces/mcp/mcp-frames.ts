/** The frames of a run that a session sends to the Worker, for a call of the Model Context Protocol (E4). */
import { EventSourceParserStream } from 'eventsource-parser/stream';
import type { McpFrame, McpOutcome, McpProgress } from '../../../surfaces/mcp/index.ts';
import { EngineError } from '../../../domain/errors.ts';

/** How a stream ended: with the run, or because the run is a task from now on. */
export interface Ended {
  readonly outcome: McpOutcome;
  readonly isTask: boolean;
}

/**
 * Reads to the end of the stream. If the signal aborts, it leaves the stream, and with it a run that is attached to it.
 *
 * @param left called if it leaves
 * @throws EngineError `internal` if the session is lost; the signal's reason
 */
export async function readFrames(
  response: Response,
  signal: AbortSignal,
  report: (progress: McpProgress) => Promise<void>,
  left: () => void,
): Promise<Ended> {
  const { body } = response;
  if (body === null) throw lost();
  const frames = body.pipeThrough(new TextDecoderStream()).pipeThrough(new EventSourceParserStream()).getReader();
  const leave = (): void => {
    signal.removeEventListener('abort', leave);
    frames.cancel().catch(() => undefined);
    left();
  };
  if (signal.aborted) leave();
  signal.addEventListener('abort', leave);
  try {
    for (;;) {
      const { done, value } = await frames.read();
      signal.throwIfAborted();
      if (done) throw lost();
      const frame = JSON.parse(value.data) as McpFrame | { readonly lost: true };
      if ('progress' in frame) await report(frame.progress);
      else if ('end' in frame) return { outcome: frame.end, isTask: false };
      else if ('task' in frame) return { outcome: frame.task, isTask: true };
      else throw lost();
    }
  } catch (fault) {
    // A report that cannot be sent says that the client has left, maybe before the signal does.
    if (!signal.aborted) leave();
    throw fault;
  } finally {
    signal.removeEventListener('abort', leave);
  }
}

function lost(): EngineError {
  return new EngineError('internal', 'The connection to the session was lost');
}
