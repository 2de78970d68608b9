/** Routes that act on a session: messages, protocol text, cancels, approvals, and its deletion (H1). */
import { sha256 } from '@noble/hashes/sha2.js';
import { bytesToHex } from '@noble/hashes/utils.js';
import type { Context } from 'hono';
import { Hono } from 'hono';
import { EngineError } from '../../domain/errors.ts';
import { isJsonObject } from '../../domain/json.ts';
import { limits } from '../../domain/limits.ts';
import type { FetchedFile } from '../../domain/ports.ts';
import type { RunRecord } from '../../domain/session.ts';
import { mergeApprovals } from '../../engine/actions/approval-list.ts';
import type { PassedTool } from '../../engine/session/passed-tools.ts';
import type { PendingContent } from '../../engine/session/session-admission.ts';
import { fetchContent } from '../../policies/fetched-content.ts';
import { admitMessage, decodeText } from '../../policies/message-content.ts';
import type { MessagePart, UnfetchedContent } from '../../policies/message-content.ts';
import { approvalsDocument, approvalsPage } from '../approvals-page.ts';
import { readChunks, readJson } from '../body.ts';
import { messageParts } from '../content-parts.ts';
import { idempotencyKey } from '../headers.ts';
import { withChunks } from '../original/chunks.ts';
import { accepts, sessionOperation, readHeader } from '../openapi/describe.ts';
import type { BodyPlace } from '../large-bodies.ts';
import { readMessage } from '../message-body.ts';
import { LINES_HEADERS, textStream } from '../lines.ts';
import { approvalsQuery, deleteQuery, executeQuery, messageQuery, readQuery } from '../query.ts';
import * as approvalsAnswers from '../responses/approvals.ts';
import * as callsAnswers from '../responses/calls.ts';
import * as runsAnswers from '../responses/runs.ts';
import * as sessionsAnswers from '../responses/sessions.ts';
import { runResponse } from '../run-response.ts';
import { approvalBody, callBody, cancelBody, executeBody, messageBody, validate, workflowBody } from '../schemas.ts';
import { grantOf, requireScope, SCOPES_HEADER } from '../session-env.ts';
import type { SessionAppOptions, SessionEnv } from '../session-env.ts';

export const sessionActions = new Hono<SessionEnv>();

/** Applies the rate limit to requests that start work, once the session's owner is known. */
export async function admitted({ admit }: SessionAppOptions): Promise<void> {
  const refusal = (await admit?.()) ?? null;
  if (refusal !== null) throw refusal;
}

/** @throws EngineError `body_too_large` */
export function checkMessage(content: string): void {
  if (new TextEncoder().encode(content).length <= limits.messageBytes) return;
  throw new EngineError('body_too_large', `"content" is larger than ${limits.messageBytes} bytes`);
}

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

/** @throws EngineError `not_configured` */
function pendingContent(
  c: Context<SessionEnv>,
  content: UnfetchedContent,
  tools: readonly PassedTool[],
  place: BodyPlace,
): PendingContent {
  const { clock, fetchFile } = c.env;
  if (fetchFile === undefined) throw new EngineError('not_configured', 'This system fetches no files');
  // The operator's exceptions are for the tools of manifests and for servers, not for browsers.
  const operatorHosts = c.req.header(SCOPES_HEADER) === undefined;
  const fetch = (url: string, signal: AbortSignal): Promise<FetchedFile> => fetchFile(url, { signal, operatorHosts });
  const received = (bytes: number): Promise<void> => place.received(bytes);
  return {
    sent: bytesToHex(sha256(new TextEncoder().encode(JSON.stringify([content.parts, tools])))),
    files: content.files,
    fetch: (signal) => fetchContent(content, { fetch, clock, received }, signal),
  };
}

/** The text of a message, without its files. */
function textOf(written: string | readonly MessagePart[]): string {
  if (typeof written === 'string') return written;
  return written.map((part) => (part.type === 'text' ? part.text : '')).join('\n');
}

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
    const { run, after, stream } = await c.env.bodies.hold({ session: id, owner }, (place) => postMessage(c, place));
    return await runResponse(c, run, Math.min(after, run.firstSeq - 1), stream, withChunks);
  },
);

/** A list that is too long is refused before each of its items is validated. */
function checkLengths(raw: unknown): void {
  if (!isJsonObject(raw)) return;
  for (const [name, most] of [
    ['content', limits.messageParts],
    ['tools', limits.clientTools],
  ] as const) {
    const list = raw[name];
    if (!Array.isArray(list) || list.length <= most) continue;
    const code = name === 'tools' ? 'invalid_client_tools' : 'invalid_request';
    throw new EngineError(code, `"${name}" has ${list.length} entries (allowed: ${most})`);
  }
}

interface Posted {
  readonly run: RunRecord;
  /** The last event before it. */
  readonly after: number;
  readonly stream: boolean;
}

async function postMessage(c: Context<SessionEnv>, place: BodyPlace): Promise<Posted> {
  const { session } = c.env;
  const { json: raw, data } = await readMessage(c.req.raw, place);
  checkLengths(raw);
  // A union hides what is wrong with a part, so the parts are validated first.
  if (isJsonObject(raw) && Array.isArray(raw['content'])) validate(messageParts, { content: raw['content'] });
  const { content: given, message = '', metadata, tools = [], ...body } = validate(messageBody, raw);
  const written = given ?? message;
  checkMessage(textOf(written));
  if (tools.length > 0) requireScope(c, 'tools');
  const key = readHeader(c, idempotencyKey);
  const { if_busy: ifBusy = 'queue' } = readQuery(messageQuery, c.req.url);
  await admitted(c.env);
  const content =
    typeof written === 'string'
      ? { content: written }
      : await admitMessage(
          written,
          (id) => session.read().artifact(id),
          (mark) => data.get(mark) ?? decodeText(mark),
        );
  const after = session.lastSeq;
  const request = { tools, metadata, tokens: body.llm_tokens, ifBusy, idempotencyKey: key };
  const run =
    'content' in content
      ? await session.message({ ...content, ...request })
      : await session.pendingMessage(request, pendingContent(c, content, tools, place), c.req.raw.signal);
  return { run, after, stream: body.stream };
}

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
    return c.json(approvalsDocument(mergeApprovals([session.openApprovals(wanted), children], wanted.limit), page));
  },
);
sessionOperation(
  sessionActions,
  'GET /agent/session/:id/approvals/:approval',
  { response: approvalsAnswers.approval },
  (c) => {
    const { session } = c.env;
    void session.record;
    return c.json(session.approval(c.req.param('approval')));
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
    const { decision, approve, deny, note } = validate(approvalBody, await readJson(c.req.raw));
    const approved = decision === undefined ? (approve ?? deny === false) : decision === 'approve';
    const id = c.req.param('approval');
    await session.resolveApproval(id, approved, note ?? null);
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
  const run = await session.execute(once(body.protocol_text), body.protocol_text);
  return await runResponse(c, run, after, body.stream);
});

/** The session's workflow (M6). */
sessionActions.post('/-/workflow', async (c) => {
  const { session } = c.env;
  await admitted(c.env);
  const after = session.lastSeq;
  const { inputs, stream } = validate(workflowBody, await readJson(c.req.raw));
  const run = await session.workflow(inputs);
  return await runResponse(c, run, after, stream);
});

/** Protocol text that is still arriving: its actions start as their closing tags arrive. */
sessionActions.post('/-/execute-stream', async (c) => {
  const { session } = c.env;
  await admitted(c.env);
  const after = session.lastSeq;
  const run = await session.execute(readChunks(c.req.raw, limits.generationBytes * 2), null);
  return await runResponse(c, run, after, readQuery(executeQuery, c.req.url).stream !== 'false');
});

export async function* once(text: string): AsyncGenerator<string> {
  yield text;
}
