/** Routes about the tree of a session's runs: retries and the head (C4). */
import { Hono } from 'hono';
import { acceptedResponse } from '../accepted-response.ts';
import { readJson } from '../body.ts';
import { idempotencyKey } from '../headers.ts';
import { sessionOperation } from '../openapi/describe.ts';
import { admitted, postRetry } from '../post-message.ts';
import { retryQuery } from '../query.ts';
import * as runsAnswers from '../responses/runs.ts';
import { headBody, retryBody, validate } from '../schemas.ts';
import { FORK_PATH } from '../session-env.ts';
import type { ForkOrigin, ForkRequest, SessionEnv } from '../session-env.ts';

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
    return await acceptedResponse(c, await bodies.hold({ session: id, owner }, (place) => postRetry(c, of, place)));
  },
);

/** What a fork begins with, if it is possible. For the Worker only. */
sessionBranches.post(FORK_PATH, async (c) => {
  const { session } = c.env;
  const { agent, user_id, metadata, incarnation = '' } = session.record;
  await admitted(c.env);
  const { at_run: at, has_key: hasKey } = (await readJson(c.req.raw)) as ForkRequest;
  const run = at === undefined ? session.branches.head : session.run(at);
  // A repeated request gets the first fork, whatever runs now: `sendFork` checks the run if there is none.
  if (!hasKey) session.branches.requireForkable(run);
  const { patterns } = session;
  const origin: ForkOrigin = {
    run_id: run?.runId ?? null,
    agent,
    user_id,
    metadata,
    incarnation,
    ...(patterns === null ? {} : { redact: patterns }),
  };
  return c.json(origin);
});

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
