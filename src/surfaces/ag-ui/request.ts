/**
 * Requests of AG-UI clients (E3). The client sends the whole conversation each time; the session has it already. New is
 * what follows the last message of the assistant: a message of the user, results of calls that the client has executed, or
 * entries of `resume`, which decide approvals. A request with nothing new runs its last user message; with the `runId` of
 * an earlier request it joins that run.
 *
 * Instructions of a caller with an API key are its messages of the roles `system` and `developer`, and `context`. Without
 * an API key they are ignored. The client's `state` is not read: it gets the session's variables, and only actions change
 * those. `parentRunId` is the `runId` of an earlier request, or an id of ours: the message follows that run (C4). A request
 * that brought only results or decisions has continued a run, and is known by no message: the new message then follows the
 * run whose answer the conversation has before it. The same applies to an id from elsewhere, such as that of the agent that
 * calls this one; without an answer of ours, it has no meaning. `forwardedProps` has none, as all that this file does not
 * name.
 *
 * A result or a decision that comes too late is ignored: the client would repeat it with every later request.
 */
import * as z from 'zod';
import { sessionIdOfCall } from '../../domain/call-id.ts';
import { EngineError } from '../../domain/errors.ts';
import type { Json, JsonObject } from '../../domain/json.ts';
import { isJsonObject } from '../../domain/json.ts';
import { limits } from '../../domain/limits.ts';
import { callOutput, noteOf, parsed } from '../reading.ts';
import type { SurfaceAnswer, SurfaceDecision, SurfaceInput, SurfaceRequest } from '../surface.ts';
import { isOurMessage, runPartOf } from './fold.ts';
import type { ClientMessage, ClientRun } from './fold.ts';

const source = z.discriminatedUnion('type', [
  z.object({ type: z.literal('data'), value: z.string(), mimeType: z.string().optional() }),
  z.object({ type: z.literal('url'), value: z.string(), mimeType: z.string().optional() }),
]);
const textPart = z.object({ type: z.literal('text'), text: z.string() });
const filePart = z.object({
  type: z.enum(['image', 'audio', 'video', 'document']),
  source,
  metadata: z.object({ filename: z.string().optional() }).optional().catch(undefined),
});
const content = z.union([z.string(), z.array(z.json())]);
const message = z.looseObject({ id: z.string(), role: z.string() });
const userMessage = z.object({ content });
const toolMessage = z.object({ toolCallId: z.string(), content, error: z.string().optional() });
const instruction = z.object({ content: z.string() });
const resumeEntry = z.object({ interruptId: z.string(), status: z.string(), payload: z.json().optional() });
const name = z.string().min(1).max(limits.threadNameChars);
const runInput = z.object({
  threadId: name,
  runId: name,
  parentRunId: name.nullish(),
  protocolVersion: z.string().optional(),
  messages: z.array(message).max(limits.surfaceParts),
  tools: z
    .array(
      z.object({
        name: z.string(),
        description: z.string().default(''),
        parameters: z.record(z.string(), z.json()).optional(),
      }),
    )
    .nullish(),
  context: z.array(z.object({ description: z.string(), value: z.string() })).nullish(),
  state: z.unknown().optional(),
  resume: z.array(resumeEntry).max(limits.surfaceParts).nullish(),
});

type Message = z.output<typeof message>;

/** The idempotency key of a request. */
const keyOf = (runId: string): string => `agui:${runId}`;

/** `POST /agui/{name}` */
export function readRun({ body, params, isKey }: SurfaceInput): SurfaceRequest {
  const input = parsed(runInput, body, '');
  const conversation = input.messages.filter(({ role }) => role !== 'system' && role !== 'developer');
  const lastUser = conversation.findLastIndex(({ role }) => role === 'user');
  const isNew = lastUser !== -1 && lastUser === conversation.length - 1;
  const results = toolResults(conversation, lastUser, isNew);
  const answers = results.flatMap(answerOf);
  const decisions = (input.resume ?? []).map(decisionOf);
  const asked = conversation[lastUser];
  const isAsked = isNew || answers.length + decisions.length === 0;
  if (isAsked && asked === undefined) {
    throw new EngineError(
      'invalid_request',
      '"messages" has no message of the user, and the request answers no call and no interrupt',
    );
  }
  const instructions = isKey ? instructionsOf(input.messages, input.context ?? []) : [];
  const client: ClientRun = {
    threadId: input.threadId,
    runId: input.runId,
    ...(input.parentRunId == null ? {} : { parentRunId: input.parentRunId }),
    answered: results.flatMap(({ toolCallId }) => (typeof toolCallId === 'string' ? [toolCallId] : [])),
    hasState: isJsonObject(input.state),
    knowsCancelled: input.protocolVersion !== undefined,
    messages: conversation.slice(lastUser + 1).some(({ id }) => isOurMessage(id))
      ? (input.messages as unknown as ClientMessage[])
      : null,
  };
  const command = {
    type: 'run',
    answers,
    decisions,
    message:
      isAsked && asked !== undefined
        ? {
            content: contentOf(asked),
            tools: (input.tools ?? []).map(({ parameters = EMPTY, ...tool }) => ({ ...tool, parameters })),
            instructions: instructions.length === 0 ? null : instructions.join('\n\n'),
            key: keyOf(input.runId),
            metadata: null,
          }
        : null,
    since: null,
    follows:
      input.parentRunId == null
        ? null
        : { key: keyOf(input.parentRunId), runId: input.parentRunId, shown: shownBefore(conversation, lastUser) },
    ignoresLate: true,
    stream: true,
    options: client as unknown as JsonObject,
  } as const;
  const request = {
    agent: params['name'] ?? '',
    thread: { type: 'named', name: input.threadId },
    userId: null,
  } as const;
  // A call of a session that was deleted since must not stop the conversation.
  const otherwise = { ...request, command: { ...command, answers: [], decisions: [] } };
  return { ...request, command, ...(command.message === null ? {} : { otherwise }) };
}

const EMPTY = { type: 'object', properties: {} } as const;

/** The end of the id of the run that the last message of ours before the user's one is of; null: there is none. */
function shownBefore(conversation: readonly Message[], lastUser: number): string | null {
  return conversation
    .slice(0, Math.max(lastUser, 0))
    .reduce<string | null>((last, { id }) => runPartOf(id) ?? last, null);
}

/** The client's results after the last message of the user; if that one is new, those directly before it. */
function toolResults(conversation: readonly Message[], lastUser: number, isNew: boolean): Message[] {
  const before = conversation.slice(0, lastUser);
  const directly = before.slice(before.findLastIndex(({ role }) => role !== 'tool') + 1);
  const results = isNew ? directly : conversation.slice(lastUser + 1);
  return results.filter(({ id, role }) => role === 'tool' && !isOurMessage(id));
}

function instructionsOf(
  messages: readonly Message[],
  context: readonly { readonly description: string; readonly value: string }[],
): string[] {
  const said = messages.flatMap((one, index) =>
    one.role === 'system' || one.role === 'developer' ? [parsed(instruction, one, `messages.${index}.`).content] : [],
  );
  return [...said, ...context.map(({ description, value }) => `${description}: ${value}`)].filter((text) =>
    /\S/.test(text),
  );
}

/** The client's result of a call of ours; other calls are of other agents. */
function answerOf(result: Message): SurfaceAnswer[] {
  const { toolCallId: callId, content: given, error } = parsed(toolMessage, result, 'messages.tool.');
  if (sessionIdOfCall(callId) === null) return [];
  return error === undefined ? [{ callId, output: outputOf(given) }] : [{ callId, error: { message: error } }];
}

/** Text, or JSON if it is an object or a list; parts that are not only text are given as they are. */
function outputOf(given: z.output<typeof content>): Json {
  if (typeof given === 'string') return callOutput(given);
  const texts = given.map((part) => textPart.safeParse(part).data?.text);
  return texts.every((text) => text !== undefined) ? callOutput(texts.join('\n')) : (given as Json);
}

/** Only `approved: true` approves. `content`: the values of an answer. */
function decisionOf({ interruptId, status, payload }: z.output<typeof resumeEntry>): SurfaceDecision {
  const { approved, note, content: values } = isJsonObject(payload) ? payload : {};
  const isApproved = status === 'resolved' && approved === true;
  return {
    approvalId: interruptId,
    approved: isApproved,
    note: noteOf(note),
    ...(isApproved && isJsonObject(values) ? { content: values } : {}),
  };
}

/** The content of a user's message as ours (C2). Parts of other types are left out. */
function contentOf(asked: Message): string | JsonObject[] {
  const { content: given } = parsed(userMessage, asked, 'messages.user.');
  return typeof given === 'string' ? given : given.flatMap(partOf);
}

function partOf(part: unknown): JsonObject[] {
  const text = textPart.safeParse(part);
  if (text.success) return [text.data];
  const file = filePart.safeParse(part);
  if (!file.success) return [];
  const { type, source: from, metadata } = file.data;
  const given = from.type === 'url' ? { url: from.value } : { data: from.value };
  const media = from.mimeType === undefined || from.mimeType.endsWith('/*') ? {} : { media_type: from.mimeType };
  const known = metadata?.filename;
  const filename =
    known === undefined ? (type === 'image' || from.type === 'url' ? {} : { name: type }) : { name: known };
  return [{ type: type === 'image' ? 'image' : 'file', ...filename, ...media, ...given }];
}
