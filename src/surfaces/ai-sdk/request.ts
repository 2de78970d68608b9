/**
 * Requests of the AI SDK's default transport (E1). It sends the whole conversation each time; the session has it already,
 * so only the last message is read: what a user wrote, or the assistant's message with results and decisions of the client.
 */
import * as z from 'zod';
import { EngineError } from '../../domain/errors.ts';
import type { JsonObject } from '../../domain/json.ts';
import { limits } from '../../domain/limits.ts';
import type { SurfaceAnswer, SurfaceCommand, SurfaceDecision, SurfaceInput, SurfaceRequest } from '../surface.ts';
import { noteOf, parsed } from '../reading.ts';
import { runOfUserMessage } from './message-id.ts';

const textPart = z.object({ type: z.literal('text'), text: z.string() });
const filePart = z.object({
  type: z.literal('file'),
  url: z.string(),
  mediaType: z.string().optional(),
  filename: z.string().optional(),
});
const toolPart = z.object({
  toolCallId: z.string(),
  state: z.string(),
  output: z.json().optional(),
  errorText: z.string().optional(),
  approval: z
    .object({ id: z.string(), approved: z.boolean().optional(), reason: z.string().optional() })
    .optional()
    .catch(undefined),
});
const lastMessage = z.object({
  id: z.string().min(1).max(limits.threadNameChars),
  role: z.enum(['user', 'assistant']),
  parts: z.array(z.object({ type: z.string() }).loose()).max(limits.surfaceParts),
});
const chatBody = z.object({
  id: z.string().min(1).max(limits.threadNameChars),
  messages: z.array(z.unknown()).min(1),
  trigger: z.enum(['submit-message', 'regenerate-message']).default('submit-message'),
  messageId: z.string().nullish(),
  tools: z
    .array(
      z.object({ name: z.string(), description: z.string().default(''), parameters: z.record(z.string(), z.json()) }),
    )
    .default([]),
});

/** `POST /ai/{name}/chat` */
export function readChat({ body, params, query }: SurfaceInput): SurfaceRequest {
  const { id, messages, trigger, messageId, tools } = parsed(chatBody, body, '');
  const last = parsed(lastMessage, messages.at(-1), `messages.${messages.length - 1}.`);
  const runId = runOfUserMessage(last.id);
  const run = {
    type: 'run',
    answers: [],
    decisions: [],
    since: null,
    follows: null,
    // Another client may have been faster.
    ignoresLate: true,
    stream: true,
    options: optionsOf(query),
  } as const;
  const command: SurfaceCommand =
    last.role === 'user'
      ? {
          ...run,
          message: {
            content: last.parts.flatMap(partOf),
            tools,
            instructions: null,
            key: `ai:${last.id}`,
            metadata: null,
            ...(runId === undefined ? {} : { runId }),
            ...(trigger === 'regenerate-message'
              ? { changes: { how: 'again' as const, of: messageId?.startsWith('run_') === true ? messageId : null } }
              : messageId === last.id
                ? { changes: { how: 'edited' as const } }
                : {}),
          },
        }
      : { ...run, ...settledBy(last.parts), message: null };
  return { agent: params['name'] ?? '', thread: { type: 'named', name: id }, userId: null, command };
}

/** `GET /ai/{name}/chat/{chat}/stream` */
export function readStream(input: SurfaceInput): SurfaceRequest {
  return {
    ...chatOf(input),
    command: { type: 'follow', runId: null, after: 0, stream: true, options: optionsOf(input.query) },
  };
}

/** `POST /ai/{name}/chat/{chat}/stop` */
export function readStop(input: SurfaceInput): SurfaceRequest {
  return { ...chatOf(input), command: { type: 'cancel', runId: null, after: 0, options: {} } };
}

/** `GET /ai/{name}/chat/{chat}/messages` */
export function readMessages(input: SurfaceInput): SurfaceRequest {
  return { ...chatOf(input), command: { type: 'conversation', options: optionsOf(input.query) } };
}

/** `steering`: the client knows the parts of messages that came during a run. */
const optionsOf = ({ steering }: SurfaceInput['query']): JsonObject => (steering === true ? { steering } : {});

function chatOf({ params }: SurfaceInput): Omit<SurfaceRequest, 'command'> {
  const { name: agent = '', chat = '' } = params;
  return { agent, thread: { type: 'named', name: chat }, userId: null };
}

/** A part of a user's message as one of ours (C2); others are left out. */
function partOf(part: JsonObject | Record<string, unknown>): JsonObject[] {
  const text = textPart.safeParse(part);
  if (text.success) return [text.data];
  const file = filePart.safeParse(part);
  if (!file.success) return [];
  const { url, mediaType: media_type, filename: name } = file.data;
  const data = dataOf(url);
  const source = data === undefined ? { url } : { data };
  const isImage = media_type?.startsWith('image/') === true;
  const media = media_type === undefined || media_type.endsWith('/*') ? {} : { media_type };
  const named = name === undefined ? (isImage || data === undefined ? {} : { name: 'file' }) : { name };
  return [{ type: isImage ? 'image' : 'file', ...named, ...media, ...source }];
}

/** The base64 of a data URL; undefined for any other URL. */
function dataOf(url: string): string | undefined {
  const [, head, text] = /^data:([^,]*),(.*)$/s.exec(url) ?? [];
  if (head === undefined || text === undefined) return undefined;
  if (/;base64$/i.test(head)) return text;
  const bytes = new TextEncoder().encode(decodeText(text));
  return btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(''));
}

/** A text with percent escapes; as it is, if they are not valid. */
function decodeText(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** What the client has decided and executed. A call id of ours begins with `call_`. */
function settledBy(parts: readonly Record<string, unknown>[]): {
  readonly answers: readonly SurfaceAnswer[];
  readonly decisions: readonly SurfaceDecision[];
} {
  const tools = parts.flatMap((part) => toolPart.safeParse(part).data ?? []);
  const answers = tools.flatMap(({ toolCallId: callId, state, output, errorText }): SurfaceAnswer[] => {
    if (!callId.startsWith('call_')) return [];
    if (state === 'output-available') return [{ callId, output: output ?? null }];
    return state === 'output-error' ? [{ callId, error: { message: errorText ?? 'The tool has failed' } }] : [];
  });
  const decisions = tools.flatMap(({ state, approval }): SurfaceDecision[] => {
    if (state !== 'approval-responded' || approval?.approved === undefined) return [];
    return [{ approvalId: approval.id, approved: approval.approved, note: noteOf(approval.reason) }];
  });
  if (answers.length + decisions.length > 0) return { answers, decisions };
  throw new EngineError(
    'invalid_request',
    'The last message is of the assistant and has neither results of tools nor decisions about approvals',
  );
}
