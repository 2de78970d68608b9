/**
 * Requests of chat completions (E2). They are stateless: the request has the whole conversation, which becomes the seeded
 * history of a session of its own, and its last message is the message. Two kinds of requests continue a session instead:
 * one with `X-Session-Id`, and one that ends with results of calls that a waiting run has made.
 *
 * Members that change only how a model samples are accepted and have no effect: the agent's manifest decides. What would
 * promise something that does not happen is refused.
 */
import * as z from 'zod';
import { sessionIdOfCall } from '../../domain/call-id.ts';
import { EngineError } from '../../domain/errors.ts';
import type { Json, JsonObject } from '../../domain/json.ts';
import { limits } from '../../domain/limits.ts';
import type { SurfaceAnswer, SurfaceInput, SurfaceMessage, SurfaceRequest, SurfaceTool, Thread } from '../surface.ts';
import { knownContent, messageContent, textContent, userName } from './parts.ts';
import { callOutput, parsed } from '../reading.ts';

const call = z.object({
  id: z.string(),
  type: z.literal('function'),
  function: z.object({ name: z.string(), arguments: z.string() }),
});
const message = z.object({
  role: z.enum(['system', 'developer', 'user', 'assistant', 'tool']),
  content: z.json().optional(),
  name: z.string().nullish(),
  refusal: z.string().nullish(),
  tool_calls: z.array(call).nullish(),
  tool_call_id: z.string().optional(),
});
type Message = z.output<typeof message>;

const functionTool = z.object({
  type: z.literal('function', { error: 'only tools of the type "function" are supported' }),
  function: z.object({
    name: z.string(),
    description: z.string().nullish(),
    parameters: z.record(z.string(), z.json()).nullish(),
  }),
});
const body = z.object({
  model: z.string().min(1),
  messages: z.array(z.unknown()).min(1),
  stream: z.boolean().nullish(),
  stream_options: z.object({ include_usage: z.boolean().nullish() }).nullish(),
  tools: z.array(functionTool).nullish(),
  tool_choice: z.json().optional(),
  response_format: z.object({ type: z.string() }).nullish(),
  n: z.int().nullish(),
  logprobs: z.boolean().nullish(),
  modalities: z.array(z.string()).nullish(),
  functions: z.unknown().optional(),
  user: userName,
});

/** What the run is asked if a request ends with results of calls that no run of ours has made. */
const CONTINUE = 'Continue.';

/** `POST /v1/chat/completions` */
export function readChatCompletion({ body: given, key, session }: SurfaceInput): SurfaceRequest {
  const asked = parsed(body, given, '');
  requirePossible(asked);
  if (asked.messages.length > limits.seededMessages + 1) {
    throw new EngineError('history_too_large', `"messages" has more than ${limits.seededMessages + 1} entries`);
  }
  const messages = asked.messages.map((one, index) => parsed(message, one, `messages.${index}.`));
  const conversation = messages.filter(({ role }) => role !== 'system' && role !== 'developer');
  const instructions = messages.flatMap((one) =>
    one.role === 'system' || one.role === 'developer' ? [textContent(one.content, 'content')] : [],
  );
  const common = {
    tools: asked.tool_choice === 'none' ? [] : (asked.tools ?? []).map(toolOf),
    instructions: instructions.length === 0 ? null : instructions.join('\n\n'),
    key: key === null ? null : `openai:${key}`,
    metadata: null,
  };
  const options = { api: 'chat', usage: asked.stream_options?.include_usage === true };
  const command = {
    type: 'run',
    answers: [] as readonly SurfaceAnswer[],
    decisions: [],
    since: null,
    follows: null,
    stream: asked.stream === true,
    options,
  } as const;
  const base = { agent: asked.model, userId: asked.user };

  const last = conversation.at(-1);
  const from = conversation.findLastIndex(({ role }) => role !== last?.role) + 1;
  if (last === undefined || last.role === 'assistant') {
    throw new EngineError('not_supported', 'The last message must be of the user, or the result of a tool call');
  }
  const named: Thread | null = session === null ? null : { type: 'named', name: session };
  const answers = last.role === 'tool' ? conversation.slice(from).map(answerOf) : [];
  const asNew = (): SurfaceRequest => {
    const before = last.role === 'tool' ? conversation : conversation.slice(0, -1);
    const content = last.role === 'tool' ? CONTINUE : messageContent(last.content, 'content');
    const thread: Thread = { type: 'new', history: before.map(historyOf), isEphemeral: true, key: common.key };
    return { ...base, thread, command: { ...command, message: { content, ...common } } };
  };
  if (last.role === 'tool') {
    const owner = sessionOf(answers);
    if (named === null && owner === null) return asNew();
    const thread = named ?? { type: 'session', sessionId: owner ?? '' };
    const continued: SurfaceRequest = { ...base, thread, command: { ...command, answers, message: null } };
    return named === null ? { ...continued, otherwise: asNew() } : continued;
  }
  if (named === null) return asNew();
  const said = JSON.stringify(last.content);
  const isSaidBefore = conversation
    .slice(0, from)
    .some((one) => one.role === 'user' && JSON.stringify(one.content) === said);
  const kept: SurfaceMessage = {
    content: joined(conversation.slice(from)),
    ...common,
    ...(isSaidBefore ? { isSaidBefore } : {}),
  };
  // Results directly before the message are of calls that the run before it waits for.
  const before = conversation.slice(0, from);
  const results = before.slice(before.findLastIndex(({ role }) => role !== 'tool') + 1).map(answerOf);
  const own = results.filter(({ callId }) => sessionIdOfCall(callId) !== null);
  return { ...base, thread: named, command: { ...command, answers: own, ignoresLate: true, message: kept } };
}

/** @throws EngineError `not_supported` */
function requirePossible(asked: z.output<typeof body>): void {
  const { n, logprobs, modalities, response_format: format, tool_choice: choice, functions } = asked;
  const refused = [
    [n != null && n !== 1, '"n" other than 1'],
    [logprobs === true, '"logprobs"'],
    [modalities?.some((one) => one !== 'text') === true, '"modalities" other than text'],
    [format != null && format.type !== 'text', `"response_format" of the type "${format?.type ?? ''}"`],
    [choice != null && choice !== 'auto' && choice !== 'none', '"tool_choice" other than "auto" and "none"'],
    [functions !== undefined, '"functions"; use "tools"'],
  ] as const;
  const first = refused.find(([is]) => is);
  if (first !== undefined) throw new EngineError('not_supported', `Not supported: ${first[1]}`);
}

function toolOf({ function: { name, description, parameters } }: z.output<typeof functionTool>): SurfaceTool {
  return { name, description: description ?? '', parameters: parameters ?? { type: 'object', properties: {} } };
}

/** Messages of the user that follow each other are one message. */
function joined(messages: readonly Message[]): string | JsonObject[] {
  const [first, ...others] = messages.map(({ content }) => messageContent(content, 'content'));
  if (first === undefined || others.length === 0) return first ?? '';
  return [first, ...others].flatMap((one) => (typeof one === 'string' ? [{ type: 'text', text: one }] : one));
}

function answerOf({ tool_call_id: callId = '', content }: Message): SurfaceAnswer {
  return { callId, output: callOutput(textContent(content, 'content')) };
}

/** The session that has made all of these calls, as their ids say; null if there is none. */
function sessionOf(answers: readonly SurfaceAnswer[]): string | null {
  const [first = null, ...others] = new Set(answers.map(({ callId }) => sessionIdOfCall(callId)));
  return others.length === 0 ? first : null;
}

/** A message as a history has it (C1). */
function historyOf(one: Message): Json {
  const { role, content, name, refusal, tool_calls: calls, tool_call_id: callId } = one;
  return {
    role,
    ...(content === undefined ? {} : { content: knownContent(content, 'content') }),
    ...(name == null ? {} : { name }),
    ...(role === 'assistant' && refusal != null ? { refusal } : {}),
    ...(role === 'assistant' && calls != null && calls.length > 0 ? { tool_calls: calls } : {}),
    ...(role === 'tool' ? { tool_call_id: callId ?? '' } : {}),
  };
}
