/** Routes about the tree of a session's runs: retries and the head (C4). */
import { Hono } from 'hono';
import { readJson } from '../body.ts';
import { idempotencyKey } from '../headers.ts';
import { withChunks } from '../original/chunks.ts';
import { sessionOperation } from '../openapi/describe.ts';
import { postRetry } from '../post-message.ts';
import { retryQuery } from '../query.ts';
import * as runsAnswers from '../responses/runs.ts';
import { runResponse } from '../run-response.ts';
import { headBody, retryBody, validate } from '../schemas.ts';
import type { SessionEnv } from '../session-env.ts';

export const sessionBranches = new Hono<SessionEnv>();

sessionOperation(
  sessionBranches,
  'POST /agent/session/:id/runs/:run/retry',
  {
    body: retryBody,
    query: retryQuery,
    headers: [idempotencyKey],
    response: runsAnswers.messageResult,
    run: true,
    media: 'events',
  },
  async (c) => {
    const { session, bodies } = c.env;
    const { session_id: id, owner } = session.record;
    const of = session.run(c.req.param('run'));
    const { run, after, stream } = await bodies.hold({ session: id, owner }, (place) => postRetry(c, of, place));
    return await runResponse(c, run, Math.min(after, run.firstSeq - 1), stream, withChunks);
  },
);

sessionOperation(
  sessionBranches,
  'POST /agent/session/:id/head',
  { body: headBody, response: runsAnswers.movedHead },
  async (c) => {
    const { session } = c.env;
    void session.record;
    const { run_id: runId } = validate(headBody, await readJson(c.req.raw));
    await session.branches.moveHead(session.run(runId));
    return c.json({ session_id: session.record.session_id, head: runId });
  },
);
