/**
 * The response to a message: its run, as events or as one document (H1).
 *
 * For a message that a run has received (C5), it is the run that takes it, from the message on. Which one that is may not be
 * certain for a while, so its stream begins with comments, and its header names the run that has received it.
 */
import type { Context } from 'hono';
import { accepts } from './openapi/describe.ts';
import { withChunks } from './chunks.ts';
import type { PostedMessage } from './post-message.ts';
import { beforeExpiry, expiryOf, namesOf, runResponse, streamOfRun } from './run-response.ts';
import type { SessionEnv } from './session-env.ts';
import { SSE_HEADERS, waitingStream } from './sse.ts';

export async function acceptedResponse(
  c: Context<SessionEnv>,
  { accepted, after, stream }: PostedMessage,
): Promise<Response> {
  const { heartbeat } = c.env;
  const { receiver } = accepted;
  if (receiver !== null && stream && !accepts(c, 'application/json')) {
    const events = accepted.run.then((run) => streamOfRun(c, run, after));
    const headers = { ...SSE_HEADERS, ...namesOf(c, receiver) };
    return new Response(waitingStream(events, heartbeat, expiryOf(c)), { headers });
  }
  if (receiver !== null) {
    const taken = accepted.run.then(() => undefined);
    await beforeExpiry(taken, expiryOf(c), null);
  }
  const run = await accepted.run;
  return await runResponse(c, run, Math.min(after, run.firstSeq - 1), stream, withChunks);
}
