/**
 * Requests of the Responses API (E2).
 *
 * A request continues a session if it names its previous response, refers to items of one, or ends with results or
 * decisions that a run waits for. Any other request has the whole conversation: it becomes the seeded history of a session
 * of its own, and its last message is the message.
 *
 * Members that change only how a model samples are accepted and have no effect: the agent's manifest decides. What would
 * promise something that does not happen is refused.
 */
import * as z from 'zod';
import { EngineError } from '../../../domain/errors.ts';
import type { Json, JsonObject } from '../../../domain/json.ts';
import { limits } from '../../../domain/limits.ts';
import type {
  SurfaceAnswer,
  SurfaceCommand,
  SurfaceDecision,
  SurfaceInput,
  SurfaceRequest,
  SurfaceTool,
  Thread,
} from '../../surface.ts';
import { knownContent, messageContent, textContent, userName } from '../parts.ts';
import { callOutput, noteOf, parsed } from '../../reading.ts';
import { approvalOfItem, placeOfResponse, runOfItem, sessionOfId, sessionOfRun } from './ids.ts';
import type { ResponsePlace } from './ids.ts';

const functionTool = z.object({
  type: z.literal('function', { error: 'only tools of the type "function" are supported' }),
  name: z.string(),
  description: z.string().nullish(),
  parameters: z.record(z.string(), z.json()).nullish(),
});
const body = z.object({
  model: z.string().min(1),
  input: z.union([z.string(), z.array(z.unknown())], { error: 'expected a string, or a list of items' }),
  instructions: z.string().nullish(),
  previous_response_id: z.string().nullish(),
  stream: z.boolean().nullish(),
  store: z.boolean().nullish(),
  background: z.boolean().nullish(),
  conversation: z.unknown().optional(),
  prompt: z.unknown().optional(),
  tools: z.array(functionTool).nullish(),
  tool_choice: z.json().optional(),
  text: z.object({ format: z.object({ type: z.string() }).nullish() }).nullish(),
  user: userName,
});

const ofMessage = z.object({
  type: z.literal('message'),
  role: z.enum(['system', 'developer', 'user', 'assistant']),
  content: z.json().optional(),
});
/** What the session has already, or what says nothing to a model. */
const KNOWN = ['item_reference', 'reasoning', 'mcp_list_tools', 'mcp_approval_request'] as const;
const item = z.discriminatedUnion('type', [
  ofMessage,
  z.object({ type: z.literal('function_call'), call_id: z.string(), name: z.string(), arguments: z.string() }),
  z.object({ type: z.literal('function_call_output'), call_id: z.string(), output: z.json() }),
  z.object({
    type: z.literal('mcp_call'),
    id: z.string(),
    name: z.string(),
    arguments: z.string(),
    output: z.string().nullish(),
    error: z.json().optional(),
  }),
  z.object({
    type: z.literal('mcp_approval_response'),
    approval_request_id: z.string(),
    approve: z.boolean(),
    reason: z.string().nullish(),
  }),
  z.object({ type: z.enum(KNOWN), id: z.string().nullish() }),
]);
type Item = z.output<typeof item>;
type Of<T extends Item['type']> = Extract<Item, { readonly type: T }>;

const ITEM_TYPES: ReadonlySet<string> = new Set([
  'message',
  'function_call',
  'function_call_output',
  'mcp_call',
  'mcp_approval_response',
  ...KNOWN,
]);

/** What the run is asked if a request ends with results of calls that no run of ours has made. */
const CONTINUE = 'Continue.';

/** `POST /v1/responses` */
export function readResponse({ body: given, key }: SurfaceInput): SurfaceRequest {
  const asked = parsed(body, given, '');
  requirePossible(asked);
  const items = itemsOf(asked.input);
  const conversation: readonly Item[] = items.filter((one): boolean => !isSystem(one));
  const instructions = [asked.instructions ?? '', ...items.filter(isSystem).map(({ content }) => text(content))];
  const written = instructions.filter((one) => one !== '').join('\n\n');
  const common = {
    tools: asked.tool_choice === 'none' ? [] : (asked.tools ?? []).map(toolOf),
    instructions: written === '' ? null : written,
    key: key === null ? null : `openai:${key}`,
    metadata: null,
  };
  const run = {
    type: 'run',
    since: null,
    follows: null,
    stream: asked.stream === true,
    options: { api: 'responses' },
  } as const;
  const base = { agent: asked.model, userId: asked.user };
  const previous = asked.previous_response_id == null ? null : requirePlace(asked.previous_response_id);
  const found = contentOf(conversation, previous);
  const { sessionId, follows, messages, answers, decisions } = found;

  const asNew = (): SurfaceRequest => {
    const last = conversation.at(-1);
    const isAsked = last !== undefined && isUser(last);
    const before = isAsked ? conversation.slice(0, -1) : conversation;
    const content = isAsked ? messageContent(last.content, 'content') : CONTINUE;
    const isEphemeral = asked.store === false;
    const thread: Thread = { type: 'new', history: historyOf(before), isEphemeral, key: common.key };
    const command: SurfaceCommand = { ...run, answers: [], decisions: [], message: { content, ...common } };
    return { ...base, thread, command };
  };
  if (sessionId === null) return asNew();
  // Without the id of a response, several messages in a row mean that the client stopped reading the answers between.
  const after = { runId: follows ?? '', unanswered: previous === null ? Math.max(0, messages.length - 1) : 0 };
  const message = messages.length === 0 ? null : { content: joined(messages), ...common };
  const since = previous?.after ?? null;
  const continued: SurfaceRequest = {
    ...base,
    thread: { type: 'session', sessionId },
    command: {
      ...run,
      since,
      answers,
      decisions,
      message,
      follows: message === null || follows === null ? null : after,
    },
  };
  return found.isWhole ? { ...continued, otherwise: asNew() } : continued;
}

/** `GET /v1/responses/{response}` */
export function readRetrieveResponse({ params, query }: SurfaceInput): SurfaceRequest {
  const { runId, after } = requirePlace(params['response'] ?? '');
  const startingAfter = Number(query['starting_after'] ?? 0);
  const options = { api: 'responses', startingAfter };
  const command: SurfaceCommand = { type: 'follow', runId, after, stream: query['stream'] === 'true', options };
  return { ...ofSession(runId), command };
}

/** `POST /v1/responses/{response}/cancel` */
export function readCancelResponse({ params }: SurfaceInput): SurfaceRequest {
  const { runId, after } = requirePlace(params['response'] ?? '');
  return { ...ofSession(runId), command: { type: 'cancel', runId, after, options: { api: 'responses' } } };
}

function ofSession(runId: string): Omit<SurfaceRequest, 'command'> {
  return { agent: null, thread: { type: 'session', sessionId: sessionOfRun(runId) }, userId: null };
}

/** @throws EngineError `unknown_run` */
function requirePlace(id: string): ResponsePlace {
  const place = placeOfResponse(id);
  if (place !== null) return place;
  throw new EngineError('unknown_run', `There is no response "${id.slice(0, limits.excerptChars)}"`);
}

/** @throws EngineError `not_supported` */
function requirePossible(asked: z.output<typeof body>): void {
  const { background, conversation, prompt, text: form, tool_choice: choice } = asked;
  const format = form?.format?.type ?? 'text';
  const refused = [
    [background === true, '"background"'],
    [conversation != null, '"conversation"; use "previous_response_id"'],
    [prompt != null, '"prompt"'],
    [format !== 'text', `"text.format" of the type "${format}"`],
    [choice != null && choice !== 'auto' && choice !== 'none', '"tool_choice" other than "auto" and "none"'],
  ] as const;
  const first = refused.find(([is]) => is);
  if (first !== undefined) throw notSupported(first[1]);
}

function notSupported(what: string): EngineError {
  return new EngineError('not_supported', `Not supported: ${what}`);
}

function toolOf({ name, description, parameters }: z.output<typeof functionTool>): SurfaceTool {
  return { name, description: description ?? '', parameters: parameters ?? { type: 'object', properties: {} } };
}

function itemsOf(input: string | readonly unknown[]): Item[] {
  if (typeof input === 'string') return [{ type: 'message', role: 'user', content: input }];
  if (input.length > limits.surfaceParts) {
    throw new EngineError('history_too_large', `"input" has more than ${limits.surfaceParts} items`);
  }
  return input.map((given, index) => {
    const one = (typeof given === 'object' && given !== null ? given : {}) as { type?: unknown; role?: unknown };
    // Both may be left out: of messages, and of references.
    const type = one.type ?? (one.role === undefined ? 'item_reference' : 'message');
    if (typeof type === 'string' && !ITEM_TYPES.has(type)) {
      throw notSupported(`"input.${index}" of the type "${type.slice(0, limits.excerptChars)}"`);
    }
    return parsed(item, { ...one, type }, `input.${index}.`);
  });
}

const isUser = (one: Item): one is Of<'message'> => one.type === 'message' && one.role === 'user';
const isAssistant = (one: Item): one is Of<'message'> => one.type === 'message' && one.role === 'assistant';
const isSystem = (one: Item): one is Of<'message'> =>
  one.type === 'message' && (one.role === 'system' || one.role === 'developer');
const isOutput = (one: Item): one is Of<'function_call_output'> => one.type === 'function_call_output';
const isDecision = (one: Item): one is Of<'mcp_approval_response'> => one.type === 'mcp_approval_response';

/** What is new for the session that a request continues. */
interface Content {
  /** Null: the request begins a session. */
  readonly sessionId: string | null;
  /** The run that a message follows. */
  readonly follows: string | null;
  readonly messages: readonly Of<'message'>[];
  readonly answers: readonly SurfaceAnswer[];
  readonly decisions: readonly SurfaceDecision[];
  /** Whether the request has the whole conversation, and could also begin a session. */
  readonly isWhole: boolean;
}

/** @throws EngineError `not_supported`, `unknown_run` */
function contentOf(items: readonly Item[], previous: ResponsePlace | null): Content {
  const calls = new Set(items.flatMap((one) => (one.type === 'function_call' ? [one.call_id] : [])));
  const users = items.filter(isUser);
  const tail = items.slice(items.findLastIndex(isUser) + 1);
  const isAnswered = tail.some((one) => isOutput(one) || isDecision(one));
  // Clients that repeat the conversation have the calls before their results; all others send only what is new.
  const hasOnlyNew = previous !== null && calls.size === 0;
  const given = hasOnlyNew ? items : tail;
  const results = {
    answers: given.filter(isOutput).map(answerOf),
    decisions: given.filter(isDecision).map(decisionOf),
  };
  if (previous !== null) {
    const { runId } = previous;
    if (items.some(isAssistant)) throw notSupported('messages of the assistant after "previous_response_id"');
    const messages = isAnswered && !hasOnlyNew ? [] : users;
    return { sessionId: sessionOfRun(runId), follows: runId, messages, ...results, isWhole: false };
  }
  const referred = items.findLastIndex(({ type }) => type === 'item_reference');
  if (isAnswered) {
    const ids = [...given.filter(isOutput).map((one) => one.call_id), ...given.filter(isDecision).map(requestOf)];
    const [sessionId = null, ...others] = new Set(ids.map(sessionOfId));
    const hasCalls = given.filter(isOutput).every((one) => calls.has(one.call_id));
    const isWhole = hasCalls && referred < 0 && results.decisions.length === 0;
    if (sessionId !== null && others.length === 0) {
      return { sessionId, follows: null, messages: [], ...results, isWhole };
    }
    if (!isWhole) throw unknownItem(ids.find((id) => sessionOfId(id) === null) ?? ids[0]);
    return { ...NEW, isWhole };
  }
  const last = items.at(-1);
  if (last === undefined || !isUser(last)) {
    throw notSupported('an "input" that does not end with a message of the user, or the result of a call');
  }
  if (referred < 0) return NEW;
  const runId = requireRun(items[referred]);
  const after = items.slice(referred + 1);
  if (after.some(isAssistant)) throw notSupported('messages of the assistant after a reference');
  const messages = after.slice(after.findLastIndex((one) => !isUser(one)) + 1) as Of<'message'>[];
  return { ...NEW, sessionId: sessionOfRun(runId), follows: runId, messages, isWhole: false };
}

const NEW: Content = { sessionId: null, follows: null, messages: [], answers: [], decisions: [], isWhole: true };

const requestOf = (one: Of<'mcp_approval_response'>): string => one.approval_request_id;

/** @throws EngineError `unknown_run` */
function requireRun(one: Item | undefined): string {
  const id = one?.type === 'item_reference' ? (one.id ?? '') : '';
  const runId = runOfItem(id);
  if (runId === null) throw unknownItem(id);
  return runId;
}

function unknownItem(id = ''): EngineError {
  return new EngineError('unknown_run', `There is no item "${id.slice(0, limits.excerptChars)}"`);
}

const text = (content: Json | undefined): string => textContent(content, 'content');

function answerOf({ call_id: callId, output }: Of<'function_call_output'>): SurfaceAnswer {
  return { callId, output: callOutput(text(output)) };
}

function decisionOf({
  approval_request_id: id,
  approve: approved,
  reason,
}: Of<'mcp_approval_response'>): SurfaceDecision {
  return { approvalId: approvalOfItem(id), approved, note: noteOf(reason) };
}

/** Messages of the user that follow each other are one message. */
function joined(messages: readonly Of<'message'>[]): string | JsonObject[] {
  const [first, ...others] = messages.map(({ content }) => messageContent(content, 'content'));
  if (first === undefined || others.length === 0) return first ?? '';
  return [first, ...others].flatMap((one) => (typeof one === 'string' ? [{ type: 'text', text: one }] : one));
}

interface Called {
  readonly role: 'assistant';
  readonly content: null;
  readonly tool_calls: JsonObject[];
}

/** The conversation before a message, as a history has it (C1). */
function historyOf(items: readonly Item[]): Json[] {
  const history: Json[] = [];
  /** The message of the calls that directly precede. */
  let called: Called | null = null;
  for (const one of items) {
    const calls: Called | null = called;
    if (one.type !== 'function_call') called = null;
    switch (one.type) {
      case 'message':
        if (!isEmpty(one.content)) history.push({ role: one.role, content: knownContent(one.content, 'content') });
        break;
      case 'function_call':
        called = calls ?? { role: 'assistant', content: null, tool_calls: [] };
        if (calls === null) history.push(called as unknown as Json);
        called.tool_calls.push(callOf(one.call_id, one.name, one.arguments));
        break;
      case 'function_call_output':
        history.push({ role: 'tool', tool_call_id: one.call_id, content: knownContent(one.output, 'content') });
        break;
      case 'mcp_call': {
        const { id, name, arguments: given, output, error } = one;
        const result = output ?? (typeof error === 'string' ? error : JSON.stringify(error ?? null));
        history.push({ role: 'assistant', content: null, tool_calls: [callOf(id, name, given)] });
        history.push({ role: 'tool', tool_call_id: id, content: result });
        break;
      }
      default:
        break;
    }
  }
  return history;
}

/** An item that was cut off has no content. */
const isEmpty = (content: Json | undefined): boolean => Array.isArray(content) && content.length === 0;

function callOf(id: string, name: string, given: string): JsonObject {
  return { id, type: 'function', function: { name, arguments: given } };
}
