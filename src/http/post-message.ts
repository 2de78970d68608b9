/** Reads a message from its request and gives it to the session (H1, C2, C3). */
import { sha256 } from '@noble/hashes/sha2.js';
import { bytesToHex } from '@noble/hashes/utils.js';
import type { Context } from 'hono';
import { EngineError } from '../domain/errors.ts';
import { isJsonObject } from '../domain/json.ts';
import type { JsonObject } from '../domain/json.ts';
import { limits } from '../domain/limits.ts';
import type { FetchedFile } from '../domain/ports/outbound.ts';
import type { RunPlace, RunRecord } from '../domain/session.ts';
import type { PassedTool } from '../engine/session/passed-tools.ts';
import type { MessageRequest, PendingContent } from '../engine/session/session-admission.ts';
import type { Accepted } from '../engine/session/session-steering.ts';
import { fetchContent } from '../policies/fetched-content.ts';
import { admitMessage, decodeText } from '../policies/message-content.ts';
import type { MessagePart, UnfetchedContent } from '../policies/message-content.ts';
import { messageParts } from './content-parts.ts';
import { idempotencyKey as idempotencyHeader } from './headers.ts';
import type { BodyPlace } from './large-bodies.ts';
import { readMessage } from './message-body.ts';
import type { ReadMessage } from './message-body.ts';
import { readHeader } from './openapi/describe.ts';
import { messageQuery, readQuery, retryQuery } from './query.ts';
import { readingFor } from './run-response.ts';
import { messageBody, retryBody, validate } from './schemas.ts';
import { hasScope, requireKey, requireScope, SCOPES_HEADER, traceOf } from './session-env.ts';
import type { SessionAppOptions, SessionEnv } from './session-env.ts';

/** Applies the rate limit to requests that start work, once the session's owner is known. */
export async function admitted({ admit }: SessionAppOptions): Promise<void> {
  const refusal = (await admit?.()) ?? null;
  if (refusal !== null) throw refusal;
}

/** @throws EngineError `body_too_large` */
function checkMessage(content: string): void {
  if (new TextEncoder().encode(content).length <= limits.messageBytes) return;
  throw new EngineError('body_too_large', `"content" is larger than ${limits.messageBytes} bytes`);
}

export interface PostedMessage {
  readonly accepted: Accepted;
  /** The last event before it. */
  readonly after: number;
  readonly stream: boolean;
}

/** @param place of its body among those that are being read */
export async function postMessage(c: Context<SessionEnv>, place: BodyPlace): Promise<PostedMessage> {
  const { json, data } = await readMessage(c.req.raw, place);
  const key = readHeader(c, idempotencyHeader);
  const { if_busy: ifBusy = 'queue' } = readQuery(messageQuery, c.req.url);
  return await acceptMessage(c, place, { raw: json, data, key, ifBusy });
}

/** Sends the message of a run again, changed where given, or runs one of its actions again (C4). */
export async function postRetry(c: Context<SessionEnv>, of: RunRecord, place: BodyPlace): Promise<PostedMessage> {
  const { session } = c.env;
  const { json, data } = await readMessage(c.req.raw, place);
  if (isJsonObject(json) && Array.isArray(json['content'])) validate(messageParts, { content: json['content'] });
  const { content, action, stream, llm_tokens: tokens } = validate(retryBody, json);
  const idempotencyKey = readHeader(c, idempotencyHeader);
  const { if_busy: ifBusy = 'queue' } = readQuery(retryQuery, c.req.url);
  if (content !== undefined) {
    const raw = { content: (json as JsonObject)['content'], stream, llm_tokens: tokens };
    return await acceptMessage(c, place, { raw, data, key: idempotencyKey, ifBusy, of });
  }
  await admitted(c.env);
  const after = session.lastSeq;
  const request = { ifBusy, idempotencyKey, ...traceOf(c) };
  if (action !== undefined) return { accepted: await session.branches.rerun(of, action, request), after, stream };
  const accepted = await session.accept({ ...session.branches.messageOf(of), ...request, tokens });
  return { accepted, after, stream };
}

/** The parts of a request that are a message. */
interface ReceivedMessage {
  /** Its body, not yet validated. */
  readonly raw: unknown;
  readonly data: ReadMessage['data'];
  readonly key: string | null;
  readonly ifBusy: MessageRequest['ifBusy'];
  /** The run whose message this one replaces (C4). */
  readonly of?: RunRecord;
  /** Where the run of the message is in the tree of runs, if the request does not say it in `parent_run`. */
  readonly at?: RunPlace;
}

/** Validates a message and gives it to the session. */
export async function acceptMessage(
  c: Context<SessionEnv>,
  bodyPlace: BodyPlace,
  { raw, data, key, ifBusy, of, at }: ReceivedMessage,
): Promise<PostedMessage> {
  const { session } = c.env;
  checkLengths(raw);
  // A union hides what is wrong with a part, so the parts are validated first.
  if (isJsonObject(raw) && Array.isArray(raw['content'])) validate(messageParts, { content: raw['content'] });
  const { content: given, message = '', parent_run: parent, ...body } = validate(messageBody, raw);
  const written = given ?? message;
  checkMessage(textOf(written));
  if ((body.tools ?? []).length > 0) requireScope(c, 'tools');
  if (body.instructions !== undefined) requireKey(c, 'Instructions');
  const replaced = of === undefined ? null : session.branches.messageOf(of);
  const { tools = replaced?.tools ?? [], instructions = replaced?.instructions, metadata = replaced?.metadata } = body;
  const place = replaced?.place ?? at ?? (parent === undefined ? undefined : placeAfter(c, parent, key));
  await admitted(c.env);
  const content =
    typeof written === 'string'
      ? { content: written }
      : await admitMessage(
          written,
          (id) => readingFor(c).artifact(id),
          (mark) => data.get(mark) ?? decodeText(mark),
        );
  const after = session.lastSeq;
  const request = {
    tools,
    ...(instructions === undefined ? {} : { instructions }),
    ...(place === undefined ? {} : { place }),
    ...(parent === undefined || hasScope(c, 'branch') ? {} : { mayBranch: false as const }),
    metadata,
    ...traceOf(c),
    tokens: body.llm_tokens,
    ifBusy,
    idempotencyKey: key,
  };
  const accepted =
    'content' in content
      ? await session.accept({ ...content, ...request })
      : await session.pendingMessage(
          request,
          pendingContent(c, content, { tools, instructions }, bodyPlace),
          c.req.raw.signal,
        );
  return { accepted, after, stream: body.stream };
}

/**
 * The place of a message that follows this run; null: it begins the conversation again.
 *
 * @throws EngineError `unknown_run`; `forbidden` for a token without `branch`, unless the run is the head
 */
function placeAfter(c: Context<SessionEnv>, runId: string | null, key: string | null): RunPlace {
  const { session } = c.env;
  const { branches } = session;
  const parent = runId === null ? null : session.run(runId);
  // The same request again has its run already.
  const isRepeated = key !== null && session.runOf(key) !== null;
  if (!isRepeated && parent?.run !== branches.head?.run) requireScope(c, 'branch');
  return branches.after(parent);
}

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

/** @throws EngineError `not_configured` */
function pendingContent(
  c: Context<SessionEnv>,
  content: UnfetchedContent,
  { tools, instructions }: { readonly tools: readonly PassedTool[]; readonly instructions: string | undefined },
  place: BodyPlace,
): PendingContent {
  const { clock, fetchFile } = c.env;
  if (fetchFile === undefined) throw new EngineError('not_configured', 'This system fetches no files');
  // The operator's exceptions are for the tools of manifests and for servers, not for browsers.
  const operatorHosts = c.req.header(SCOPES_HEADER) === undefined;
  const fetch = (url: string, signal: AbortSignal): Promise<FetchedFile> => fetchFile(url, { signal, operatorHosts });
  const received = (bytes: number): Promise<void> => place.received(bytes);
  return {
    sent: bytesToHex(
      sha256(
        new TextEncoder().encode(
          JSON.stringify([content.parts, tools, ...(instructions === undefined ? [] : [instructions])]),
        ),
      ),
    ),
    files: content.files,
    fetch: (signal) => fetchContent(content, { fetch, clock, received }, signal),
  };
}

/** The text of a message, without its files. */
function textOf(written: string | readonly MessagePart[]): string {
  if (typeof written === 'string') return written;
  return written.map((part) => (part.type === 'text' ? part.text : '')).join('\n');
}
