/** Sends what starts a run, and leaves its stream open. */
import { COMPACT, drop } from './connection.ts';
import type { Connection, RequestOptions } from './connection.ts';
import { invalidResponse } from './error.ts';

/** The stream of a run, which is read first. */
export interface OpenStream {
  readonly response: Response;
  /** Whether its events happen now: they are no replay of an earlier message with the same key. */
  readonly isLive: boolean;
}

interface OpenRun {
  readonly id: string;
  readonly sessionId: string;
  readonly open: OpenStream;
}

/** @throws CortexError if it was refused, or the server cannot be reached */
export async function openRun(connection: Connection, path: string, request: RequestOptions): Promise<OpenRun> {
  let isLive = request.idempotencyKey === undefined;
  const response = await connection.response(path, {
    ...request,
    query: { ...request.query, ...COMPACT },
    method: 'POST',
    headers: { accept: 'text/event-stream' },
    // The first attempt may have started the run.
    onRetry: () => (isLive = false),
  });
  const [sessionId, id] = ['X-Session-Id', 'X-Run-Id'].map((name) => response.headers.get(name));
  if (id != null && sessionId != null) return { id, sessionId, open: { response, isLive } };
  drop(response);
  const message = 'The answer lacks X-Run-Id or X-Session-Id';
  throw invalidResponse(message, response.status);
}
