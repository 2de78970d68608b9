/**
 * Commands of other protocols in the session's object (E1 to E4). The Worker has translated the request (edge-surface.ts);
 * the response is the run's events as the protocol's frames.
 *
 * Invariants:
 *  1. Answers and decisions are settled together, and before the message. Each needs its own scope (T1).
 *  2. The same command again changes nothing and gives the same run.
 */
import { sha256 } from '@noble/hashes/sha2.js';
import { bytesToHex } from '@noble/hashes/utils.js';
import { Hono } from 'hono';
import type { Context } from 'hono';
import { readContent } from '../../domain/content.ts';
import type { MessageContent } from '../../domain/content.ts';
import { EngineError, unknownSession } from '../../domain/errors.ts';
import { limits } from '../../domain/limits.ts';
import type { RunPlace, RunRecord, SessionRecord } from '../../domain/session.ts';
import type { Attached, FoldedRun, SurfaceCommand, SurfaceMessage, SurfaceName } from '../../surfaces/surface.ts';
import { readJson } from '../body.ts';
import { jsonAnswer } from '../lines.ts';
import { acceptMessage, admitted } from '../post-message.ts';
import { once } from '../routes/session-actions.ts';
import { beforeExpiry, closedBy, expiryOf, namesOf, readingFor } from '../run-response.ts';
import { hasScope, requireScope, traceOf } from '../session-env.ts';
import type { SessionEnv } from '../session-env.ts';
import { foldedStream, SSE_HEADERS } from '../sse.ts';
import { PLACE_EVENTS, placeBefore } from './answer-place.ts';
import { SURFACES } from './surfaces.ts';

/** Where the Worker sends commands. */
export const SURFACE_PATH = '/-/surface';

/** What the Worker sends. */
export interface SurfaceCall {
  readonly surface: SurfaceName;
  /** Null: that of the session. */
  readonly agent: string | null;
  /** The session to create if there is none; null: it must exist. */
  readonly open: SessionRecord | null;
  /**
   * The client has sent the message before, without a key, and has no answer. `session`: this session was made for it.
   * `message`: it may be the last message of the session.
   */
  readonly repeats: 'session' | 'message' | null;
  readonly command: SurfaceCommand;
}

export const surfaceCommands = new Hono<SessionEnv>();

surfaceCommands.post(SURFACE_PATH, async (c) => {
  const { session, create } = c.env;
  const call = (await readJson(c.req.raw, limits.messageBodyBytes)) as SurfaceCall;
  const { surface, agent, open, command } = call;
  if (!session.exists && open !== null && command.type === 'run') await create?.(open);
  const { record } = session;
  if (agent !== null && record.agent !== agent) {
    throw new EngineError('invalid_request', `This conversation is with the agent "${record.agent}"`);
  }
  switch (command.type) {
    case 'cancel': {
      const [first] = command.isFirst === true ? session.runs(1, 2) : [];
      const runId = first?.runId ?? command.runId;
      if (runId === null || isOpen(session.run(runId))) await session.cancel('cancelled by the client', runId);
      const { document } = SURFACES[surface];
      if (runId === null || document === undefined) return c.body(null, 204);
      return await documented(c, call, { run: session.run(runId), after: command.after });
    }
    case 'follow': {
      const run = command.runId === null ? await currentRun(c) : session.run(command.runId);
      if (run === null) return c.body(null, 204);
      const followed = { run, after: command.after };
      return command.stream ? streamed(c, call, followed) : await documented(c, call, followed);
    }
    case 'conversation':
      return await jsonAnswer(messagesOf(c, call), { closed: closedBy(c) });
    case 'work':
      return streamed(c, call, { run: await workOf(c, command), after: 0 }, command.attached);
    case 'run': {
      const followed = await runOf(c, call, command);
      if (command.stream) return streamed(c, call, followed, command.attached);
      await beforeExpiry(session.ended(followed.run.run), expiryOf(c), followed.run.runId);
      return await documented(c, call, followed);
    }
  }
});

/**
 * The run of the head's branch that is open, or has just ended: a client that lost its connection before the end could not
 * know that its message is not the whole one. Not one that has called the client, which would execute the calls again.
 */
async function currentRun(c: Context<SessionEnv>): Promise<RunRecord | null> {
  const { branches } = c.env.session;
  const open = c.env.session.openRun();
  // The list of messages is that of the branch.
  if (open !== null && branches.isOnBranch(open)) return open;
  const { head } = branches;
  if (head === null || isOpen(head)) return head;
  return mayLack(c, head) && !(await hasAsked(c, head)) ? head : null;
}

/** Whether a run has asked a client or a person for anything. */
async function hasAsked(c: Context<SessionEnv>, run: RunRecord): Promise<boolean> {
  for await (const event of readingFor(c).events(run, ['client_tool_called', 'approval_requested'])) {
    return event.seq !== null;
  }
  return false;
}

const isOpen = ({ status }: RunRecord): boolean => status === 'queued' || status === 'running' || status === 'waiting';

/** The only run of a session that was made for it: the same command again finds it. */
async function workOf(c: Context<SessionEnv>, { work }: Extract<SurfaceCommand, { type: 'work' }>): Promise<RunRecord> {
  const { session } = c.env;
  const [known] = session.runs(1);
  if (known !== undefined) return known;
  await admitted(c.env);
  return work.type === 'workflow'
    ? await session.workflow(work.inputs, traceOf(c))
    : await session.execute(once(work.text), work.text, traceOf(c));
}

type RunCommand = Extract<SurfaceCommand, { type: 'run' }>;

/** `after`: the client has the events up to this one; 0: none. */
interface Followed {
  readonly run: RunRecord;
  readonly after: number;
}

async function runOf(
  c: Context<SessionEnv>,
  { repeats, surface }: SurfaceCall,
  command: RunCommand,
): Promise<Followed> {
  const { answers, decisions, message } = command;
  if (repeats === 'session') await requireUnread(c, command);
  const hasAnswers = answers.length + decisions.length > 0;
  const isBefore = message !== null && command.ignoresLate === true;
  if (hasAnswers && isBefore) await settleBefore(c, command);
  const settled = hasAnswers && !isBefore ? await settle(c, surface, command) : null;
  if (message !== null) {
    requireScope(c, 'message');
    const repeated = repeats === 'message' ? sentBefore(c, command) : null;
    if (repeated !== null) return { run: repeated, after: 0 };
    return { run: await messageRun(c, message, placeAfter(c, command.follows, message.key)), after: 0 };
  }
  if (settled === null) throw new EngineError('invalid_request', 'The request has neither a message nor answers');
  return settled;
}

/** Sends a message, or the one that it changes again (C4). */
async function messageRun(
  c: Context<SessionEnv>,
  message: SurfaceMessage,
  at: RunPlace | undefined,
): Promise<RunRecord> {
  const { changes } = message;
  const first = knownRun(c, message);
  if (first === null) return await accept(c, message, { at });
  if (changes === undefined) return await unchanged(c, message, first, at);
  const last = c.env.session.branches.newestVersion(first);
  if (changes.how === 'edited') return await edited(c, message, { first, last });
  // The client has lost the answer, and asks for it in this way.
  return isOpen(last) ? last : await again(c, changes.of, { first, last });
}

/** The run of a message that the client has sent before, or has from the list of messages; null: the message is new. */
function knownRun(c: Context<SessionEnv>, { key, runId, changes }: SurfaceMessage): RunRecord | null {
  const sent = key === null ? null : c.env.session.runOf(key);
  const answered = changes?.how === 'again' ? changes.of : null;
  return sent ?? runNamed(c, runId ?? null) ?? runNamed(c, answered);
}

/** Null if the session has no such run. */
function runNamed({ env: { session } }: Context<SessionEnv>, runId: string | null): RunRecord | null {
  try {
    return runId === null ? null : session.run(runId);
  } catch (fault) {
    if (fault instanceof EngineError && fault.code === 'unknown_run') return null;
    throw fault;
  }
}

/** The run that a client means by its message, and the newest version of it. */
interface Versions {
  readonly first: RunRecord;
  readonly last: RunRecord;
}

/** Another answer to the version that the client has. @param of the run whose answer it has; null: it does not say */
async function again(c: Context<SessionEnv>, of: string | null, { first, last }: Versions): Promise<RunRecord> {
  const { session } = c.env;
  const { branches } = session;
  requireScope(c, 'branch');
  await admitted(c.env);
  const answered = runNamed(c, of);
  const isVersion = answered !== null && branches.isVersion(answered, first);
  const version = isVersion ? answered : (branches.versionOnBranch(first) ?? last);
  const message = branches.messageOf(version);
  const key = `again:${of ?? version.runId}`;
  const known = session.runOf(key);
  // The same request again, unless the conversation has gone back to an earlier version since.
  for (const run of [known, last]) {
    const isSame = run?.idempotencyKey === key || run?.idempotencyKey?.startsWith(`${key}:`) === true;
    if (run !== null && isSame && branches.isOnBranch(run)) return run;
  }
  const idempotencyKey = known === null ? key : `${key}:${last.runId}`;
  return await session.message({ ...message, tokens: false, ifBusy: 'queue', idempotencyKey, ...traceOf(c) });
}

/** A changed message. The same change again is the same request, as long as the client may lack its answer. */
async function edited(c: Context<SessionEnv>, message: SurfaceMessage, { first, last }: Versions): Promise<RunRecord> {
  const change = bytesToHex(sha256(new TextEncoder().encode(JSON.stringify(message.content))));
  const keyFor = (of: RunRecord): string => `edited:${change}:${of.runId}`;
  const changed = last.retryOf === null ? null : c.env.session.branches.parentOf({ parent: last.retryOf });
  if (changed !== null && last.idempotencyKey === keyFor(changed) && mayLack(c, last)) return last;
  try {
    // It has not arrived before, or is not changed.
    const run = await unchanged(c, message, first, undefined);
    if (run.run !== first.run || (last.run === first.run && mayLack(c, first))) return run;
  } catch (fault) {
    if (!(fault instanceof EngineError && fault.code === 'idempotency_mismatch')) throw fault;
  }
  requireScope(c, 'branch');
  return await accept(c, { ...message, key: keyFor(last) }, { of: last });
}

/** The run of a message that is sent again as it is. @throws EngineError `idempotency_mismatch` if it has been changed */
async function unchanged(
  c: Context<SessionEnv>,
  message: SurfaceMessage,
  first: RunRecord,
  at: RunPlace | undefined,
): Promise<RunRecord> {
  if (first.idempotencyKey === message.key) return await accept(c, message, { at });
  const stored = readContent(first.input['content']);
  const outgoing = c.env.session.outgoing();
  // A client that has read it from the list of messages knows the redacted text.
  if (hasContent(stored, message.content) || hasContent(outgoing.content(stored), message.content)) return first;
  const { runId } = first;
  throw new EngineError('idempotency_mismatch', `The message of run ${runId} has another content`, { run_id: runId });
}

/** Whether the stored message of a run has this content. The list of messages gives a file by its address in the session. */
function hasContent(stored: MessageContent | null, given: SurfaceMessage['content']): boolean {
  if (stored === null) return false;
  const has = typeof stored === 'string' ? [stored] : stored.map((part) => ('text' in part ? part.text : part.sha256));
  const says =
    typeof given === 'string'
      ? [given]
      : given.map(({ text, url }) => text ?? /\/content\/([0-9a-f]{64})$/.exec(String(url))?.[1]);
  return JSON.stringify(has) === JSON.stringify(says);
}

async function accept(
  c: Context<SessionEnv>,
  { content, tools, instructions, key, metadata }: SurfaceMessage,
  { at, of }: { readonly at?: RunPlace | undefined; readonly of?: RunRecord },
): Promise<RunRecord> {
  const { session, bodies } = c.env;
  const raw = {
    content,
    ...(tools.length === 0 ? {} : { tools }),
    ...(instructions === null ? {} : { instructions }),
    ...(metadata === null ? {} : { metadata }),
  };
  const { session_id: id, owner } = session.record;
  const given = { ...(at === undefined ? {} : { at }), ...(of === undefined ? {} : { of }) };
  const { accepted } = await bodies.hold({ session: id, owner }, (place) =>
    acceptMessage(c, place, { raw, data: new Map(), key, ifBusy: 'queue', ...given }),
  );
  return await accepted.run;
}

/** Whether the client may lack the answer of a run: it has not ended, or not long ago. */
function mayLack({ env: { clock } }: Context<SessionEnv>, { endedAt }: RunRecord): boolean {
  return endedAt === null || clock.now() - endedAt < limits.repeatedAnswerMs;
}

/**
 * Whether the request may join the session that was made for an equal one. That one may be of another client of the same key,
 * which must not get this one's results and decisions.
 *
 * @throws EngineError `unknown_session` if the session has more than the message that it was made for, an old answer, or asks
 */
async function requireUnread(c: Context<SessionEnv>, { message }: RunCommand): Promise<void> {
  const [last, ...later] = c.env.session.runs(2);
  const mayAsk = (message?.tools.length ?? 0) > 0 || (last !== undefined && (await hasAsked(c, last)));
  if (mayAsk || later.length > 0 || (last !== undefined && !mayLack(c, last))) throw unknownSession();
}

/** The run of the same message, if it is the last one and follows the same run. */
function sentBefore(c: Context<SessionEnv>, { message, follows }: RunCommand): RunRecord | null {
  const { session } = c.env;
  const last = session.branches.head;
  if (last === null || message === null || message.key !== null || last.idempotencyKey !== null) return null;
  if (message.isSaidBefore === true) return null;
  const before = session.branches.parentOf(last);
  if (follows !== null && !('key' in follows) && before?.runId !== follows.runId) return null;
  const isSame = typeof message.content === 'string' && last.input['content'] === message.content;
  return isSame && mayLack(c, last) ? last : null;
}

/**
 * The place of a message that follows an earlier run than the head; undefined: it follows the head.
 *
 * @throws EngineError `unknown_run`; `forbidden` for a token without `branch`
 */
function placeAfter(c: Context<SessionEnv>, follows: RunCommand['follows'], key: string | null): RunPlace | undefined {
  const { session } = c.env;
  const { branches } = session;
  if (follows === null || branches.head === null) return undefined;
  // The same request again has its run already.
  if (key !== null && session.runOf(key) !== null) return undefined;
  const isByKey = 'key' in follows;
  const run = isByKey ? followedBy(c, follows) : session.run(follows.runId);
  const between = isByKey ? 0 : Math.min(follows.unanswered, limits.pageRows);
  const near = branches.upTo(branches.head, 1 + between);
  if (run === null || near.some((one) => one.run === run.run)) return undefined;
  requireScope(c, 'branch');
  return branches.after(run);
}

/** Null: the session has none of these runs. */
function followedBy(
  c: Context<SessionEnv>,
  { key, runId, shown }: Extract<RunCommand['follows'], { readonly key: string }>,
): RunRecord | null {
  const { session } = c.env;
  const own = shown === null ? null : `${session.record.session_id.replace(/^ses_/, 'run_')}_${shown}`;
  return session.runOf(key) ?? runNamed(c, runId) ?? runNamed(c, own);
}

/** Settles calls and approvals together: the run does not wait in between. */
async function settle(c: Context<SessionEnv>, surface: SurfaceName, command: RunCommand): Promise<Followed> {
  const { answers, decisions, ignoresLate = false } = command;
  const { session } = c.env;
  if (answers.length > 0) requireScope(c, 'tools');
  if (decisions.length > 0) requireScope(c, 'approve');
  await admitted(c.env);
  const taken = await session.answer([...answers.map(({ callId, ...result }) => ({ callId, result })), ...decisions]);
  const runIds = taken.map((one) => {
    if (one.status === 'fulfilled') return one.value;
    if (ignoresLate) return lateRun(one.reason);
    throw one.reason;
  });
  const [first = '', ...others] = new Set(runIds);
  if (others.length > 0) throw new EngineError('invalid_request', 'The answers are for several runs');
  const run = session.run(first);
  return { run, after: await placeOf(c, run, command, SURFACES[surface].endsAtWait?.(command.options) ?? false) };
}

/**
 * Answers and decisions that were sent with a message settle what the previous run waits for. If they are refused, the
 * message is still accepted.
 *
 * @throws any fault of the system
 */
async function settleBefore(c: Context<SessionEnv>, { answers, decisions }: RunCommand): Promise<void> {
  if (decisions.length > 0) requireScope(c, 'approve');
  const results = hasScope(c, 'tools') ? answers.map(({ callId, ...result }) => ({ callId, result })) : [];
  await admitted(c.env);
  const refused = (await c.env.session.answer([...results, ...decisions])).find(
    (one) => one.status === 'rejected' && !(one.reason instanceof EngineError && one.reason.status < 500),
  );
  if (refused?.status === 'rejected') throw refused.reason;
}

/** The run of a call or an approval that is closed. @throws any other error again */
function lateRun(fault: unknown): string {
  if (fault instanceof EngineError && (fault.code === 'call_settled' || fault.code === 'approval_closed')) {
    return String(fault.details['run_id'] ?? '');
  }
  throw fault;
}

/** Up to where the client has the frames of a run that it continues with its answers. */
async function placeOf(
  c: Context<SessionEnv>,
  run: RunRecord,
  command: RunCommand,
  endsAtWait: boolean,
): Promise<number> {
  const { answers, decisions, since } = command;
  const ids = [...answers.map(({ callId }) => callId), ...decisions.map(({ approvalId }) => approvalId)];
  return await placeBefore(readingFor(c).events(run, PLACE_EVENTS), { ids, since, endsAtWait });
}

function streamed(
  c: Context<SessionEnv>,
  call: SurfaceCall,
  { run, after }: Followed,
  attached: Attached | undefined = undefined,
): Response {
  const { session, heartbeat, events, clock } = c.env;
  const { forMs = null } = attached ?? {};
  const { fold, streamHeaders } = SURFACES[call.surface];
  const { slices, view } = readingFor(c);
  const body = foldedStream(events, heartbeat, fold(foldedRun(c, call, { run, after })), {
    after: run.firstSeq - 1,
    runId: run.runId,
    endsWaiting: true,
    expiry: expiryOf(c),
    view,
    slices,
    detaches: forMs === null ? null : { clock, at: clock.now() + forMs },
    left: () => {
      if (attached !== undefined) void session.cancel('the client left', run.runId);
    },
  });
  return new Response(body, { headers: { ...SSE_HEADERS, ...streamHeaders, ...namesOf(c, run) } });
}

/** The run so far as one document. */
async function documented(c: Context<SessionEnv>, call: SurfaceCall, { run, after }: Followed): Promise<Response> {
  const { session } = c.env;
  const { document } = SURFACES[call.surface];
  if (document === undefined) throw new EngineError('not_supported', 'This protocol has streams only');
  const current = session.run(run.runId);
  const fold = document.of(foldedRun(c, call, { run, after }));
  const wanted = document.eventsAt?.(current.status) ?? document.events;
  for await (const event of readingFor(c).events(current, wanted)) fold.add(event);
  const { status, body } = fold.end(current.status);
  return Response.json(body, { status, headers: { 'cache-control': 'no-store', ...namesOf(c, run) } });
}

/** The newest turns that fit into a page, oldest first, as a JSON list in pieces. */
async function* messagesOf(c: Context<SessionEnv>, call: SurfaceCall): AsyncGenerator<string> {
  const { session } = c.env;
  const { conversation } = SURFACES[call.surface];
  if (conversation === undefined) throw new EngineError('not_supported', 'This protocol has no list of messages');
  const reading = readingFor(c);
  const { outgoing } = reading;
  const turns: string[] = [];
  let chars = 0;
  const { head } = session.branches;
  for (const run of head === null ? [] : session.branches.upTo(head).toReversed()) {
    const content = outgoing.content(readContent(run.input['content']));
    if (content === null) continue;
    if (chars > limits.historyPageChars) break;
    const hasEnded = !isOpen(run);
    const folded = foldedRun(c, call, { run, after: 0 });
    const fold = conversation.of({ run: folded, key: run.idempotencyKey, content, hasEnded });
    if (hasEnded) {
      for await (const event of reading.events(run, conversation.events)) fold.add(event);
    }
    const text = fold
      .end()
      .map((message) => JSON.stringify(message))
      .join(',');
    chars += text.length;
    turns.unshift(text);
  }
  yield '[';
  for (const [index, text] of turns.entries()) yield `${index === 0 ? '' : ','}${text}`;
  yield ']';
}

function foldedRun(c: Context<SessionEnv>, { command }: SurfaceCall, { run, after }: Followed): FoldedRun {
  const { session } = c.env;
  const { runId, startedAt } = run;
  const { session_id: sessionId, agent } = session.record;
  const clientTools = session.clientTools(run);
  const artifactsOf: FoldedRun['artifactsOf'] = (event) => readingFor(c).artifactsOf(event);
  return { sessionId, runId, agent, startedAt, after, clientTools, options: command.options, artifactsOf };
}
