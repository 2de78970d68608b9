/** Routes that act on a session: messages, protocol text, cancels, approvals, and its deletion (H1). */
import { Hono } from 'hono';
import { limits } from '../../domain/limits.ts';
import { mergeApprovals } from '../../engine/actions/approval-list.ts';
import { approvalsDocument, approvalsPage } from '../approvals-page.ts';
import { readChunks, readJson } from '../body.ts';
import { idempotencyKey } from '../headers.ts';
import { accepts, sessionOperation } from '../openapi/describe.ts';
import { LINES_HEADERS, textStream } from '../lines.ts';
import { acceptedResponse } from '../accepted-response.ts';
import { admitted, postMessage } from '../post-message.ts';
import { approvalsQuery, deleteQuery, executeQuery, messageQuery, readQuery } from '../query.ts';
import * as approvalsAnswers from '../responses/approvals.ts';
import * as callsAnswers from '../responses/calls.ts';
import * as runsAnswers from '../responses/runs.ts';
import * as sessionsAnswers from '../responses/sessions.ts';
import { approvalViewFor, runResponse } from '../run-response.ts';
import { approvalBody, callBody, cancelBody, executeBody, messageBody, validate, workflowBody } from '../schemas.ts';
import { grantOf, requireScope, traceOf } from '../session-env.ts';
import type { SessionEnv } from '../session-env.ts';

export const sessionActions = new Hono<SessionEnv>();

sessionOperation(
  sessionActions,
  'DELETE /agent/session/:id',
  { query: deleteQuery, status: 204, further: [200], media: 'lines', response: sessionsAnswers.endedSession },
  async (c) => {
    const { session, destroy } = c.env;
    const { session_id: id } = session.record;
    await session.dispose('the session was deleted');
    if (readQuery(deleteQuery, c.req.url).export !== true) {
      await destroy();
      return accepts(c, 'application/json') ? c.json({ status: 'ended', session_id: id }) : c.body(null, 204);
    }
    // It has all files, whose paths end with the session. Nothing is deleted before the last line was read; if the client disconnects earlier, nothing is deleted.
    return new Response(textStream(session.export({ bytesOfFiles: Infinity }), { after: destroy }), {
      headers: LINES_HEADERS,
    });
  },
);

sessionOperation(
  sessionActions,
  'POST /agent/session/:id/message',
  {
    body: messageBody,
    query: messageQuery,
    headers: [idempotencyKey],
    response: runsAnswers.messageResult,
    run: true,
    media: 'events',
  },
  async (c) => {
    const { session_id: id, owner } = c.env.session.record;
    // The place is free again once the message is stored: the answer may stream for long.
    return await acceptedResponse(c, await c.env.bodies.hold({ session: id, owner }, (place) => postMessage(c, place)));
  },
);

sessionOperation(
  sessionActions,
  'POST /agent/session/:id/cancel',
  { body: cancelBody, response: runsAnswers.cancelled },
  async (c) => {
    const { session } = c.env;
    void session.record;
    const { reason } = validate(cancelBody, await readJson(c.req.raw));
    const run = await session.cancel(reason);
    const status = run === null ? 'not_found' : 'cancelled';
    const cancelled = { run_id: run, execution_id: run, cancelled: run !== null, status };
    return c.json({ session_id: session.record.session_id, ...cancelled });
  },
);

sessionOperation(
  sessionActions,
  'GET /agent/session/:id/approvals',
  { query: approvalsQuery, response: approvalsAnswers.approvals },
  async (c) => {
    const { session, childApprovals } = c.env;
    void session.record;
    const page = approvalsPage(c.req.url);
    const wanted = { ...page, limit: page.limit + 1 };
    // A session token cannot decide requests of other sessions; a user token can, if it is for their agents.
    const { incarnation, agents } = grantOf(c);
    const all = incarnation === null ? ((await childApprovals?.(wanted)) ?? []) : [];
    const children = agents === null ? all : all.filter(({ agent }) => agents.includes(agent));
    const merged = mergeApprovals([session.openApprovals(wanted), children], wanted.limit);
    const view = approvalViewFor(c);
    const shown = view === null ? merged : merged.map((approval) => view.openApproval(approval));
    return c.json(approvalsDocument(shown, page));
  },
);
sessionOperation(
  sessionActions,
  'GET /agent/session/:id/approvals/:approval',
  { response: approvalsAnswers.approval },
  (c) => {
    const { session } = c.env;
    void session.record;
    const approval = session.approval(c.req.param('approval'));
    return c.json(approvalViewFor(c)?.approval(approval) ?? approval);
  },
);
sessionOperation(
  sessionActions,
  'POST /agent/session/:id/approvals/:approval',
  { body: approvalBody, response: approvalsAnswers.decision },
  async (c) => {
    const { session } = c.env;
    void session.record;
    requireScope(c, 'approve');
    const { decision, approve, deny, note, content } = validate(approvalBody, await readJson(c.req.raw));
    const approved = decision === undefined ? (approve ?? deny === false) : decision === 'approve';
    const id = c.req.param('approval');
    await session.resolveApproval(id, approved, note ?? null, content ?? null);
    return c.json({ approval_id: id, decision: approved ? 'approve' : 'deny' });
  },
);

sessionOperation(
  sessionActions,
  'POST /agent/session/:id/calls/:call',
  { body: callBody, response: callsAnswers.settledCall },
  async (c) => {
    const { session } = c.env;
    void session.record;
    requireScope(c, 'tools');
    const { output, error } = validate(callBody, await readJson(c.req.raw, limits.clientOutputBytes));
    const result = error === undefined ? { output: output ?? null } : { error };
    return c.json(await session.settleCall(c.req.param('call'), result));
  },
);

// Paths below `/-/` are for the Worker only: it does not forward clients' requests to them.

/** Posted protocol text (H1). */
sessionActions.post('/-/execute', async (c) => {
  const { session } = c.env;
  await admitted(c.env);
  const after = session.lastSeq;
  const body = validate(executeBody, await readJson(c.req.raw, limits.bodyBytes * 2));
  const run = await session.execute(once(body.protocol_text), body.protocol_text, traceOf(c));
  return await runResponse(c, run, after, body.stream);
});

/** The session's workflow (M6). */
sessionActions.post('/-/workflow', async (c) => {
  const { session } = c.env;
  await admitted(c.env);
  const after = session.lastSeq;
  const { inputs, stream } = validate(workflowBody, await readJson(c.req.raw));
  const run = await session.workflow(inputs, traceOf(c));
  return await runResponse(c, run, after, stream);
});

/** Protocol text that is still arriving: its actions start as their closing tags arrive. */
sessionActions.post('/-/execute-stream', async (c) => {
  const { session } = c.env;
  await admitted(c.env);
  const after = session.lastSeq;
  const run = await session.execute(readChunks(c.req.raw, limits.generationBytes * 2), null, traceOf(c));
  return await runResponse(c, run, after, readQuery(executeQuery, c.req.url).stream !== 'false');
});

export async function* once(text: string): AsyncGenerator<string> {
  yield text;
}
