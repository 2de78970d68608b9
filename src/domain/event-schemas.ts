/**
 * Every session event (H3), defined once: its members with their types, and what they mean. The types in
 * event.ts, the OpenAPI document, the table in docs/journal.md and the checks of the tests come from here.
 *
 * Nothing is validated with these schemas at run time: the engine's writers are checked by the compiler.
 * Only what describes or tests the events imports this file; other rooms import types from event.ts.
 */
import * as z from 'zod';
import { ACTION_TYPES } from './action-types.ts';
import { ACTION_MODES } from './action.ts';
import type { Json } from './json.ts';

/** Which action an event is about: one, none (the run as a whole), or one where the runtime knows it. */
type About = 'action' | 'run' | 'either';

function event<A extends About, const S extends z.core.$ZodLooseShape>(about: A, description: string, members: S) {
  return { about, description, data: z.object(members) };
}

/** The data of an event of these tables. */
export type EventDataOf<E extends { readonly data: z.ZodType }> = z.output<E['data']>;

/** Parsed JSON. Not looked through: whatever was parsed is JSON. */
const json = z.unknown() as unknown as z.ZodType<Json>;
const jsonObject = z.record(z.string(), json);

const count = z.int().min(0);
const milliseconds = z.number().min(0);
const actionType = z.enum(ACTION_TYPES);
const actionMode = z.enum(ACTION_MODES);
const text = (description: string) => z.string().describe(description);
const flag = (description: string) => z.literal(true).exactOptional().describe(description);

const attempt = count.describe('The attempt, from 1');
const iterations = count.describe('Iterations of the run so far');
const tookMs = milliseconds.describe('Milliseconds since the first attempt began');

/** What all model calls of a run have used. */
const totals = z.object({
  prompt_tokens: count,
  completion_tokens: count,
  cached_tokens: count,
  model_calls: count,
  estimated: z.boolean().describe('Whether some of it is an estimate'),
  cost: z.number().exactOptional().describe('US dollars, as far as prices are known'),
});
const usage = totals.describe('What all model calls of the run have used');

const failure = z.object({ code: text('A stable code'), message: text('For people') });
const attemptError = failure.extend({ retryable: z.boolean() }).describe('Why the attempt failed');

const segment = z.int().min(1).describe('The block: `seq` of the event that opened it');
const content = text('The whole text of the block');
const unclosed = flag('The text ended before its closing tag');
const cut = flag('A crash took the rest');
const final = z.boolean().nullable().describe('`final` as the model wrote it; null = auto');
const reason = text('Why');

const block = { segment, content, unclosed, cut };
const patch = {
  segment,
  offset: count.describe('Where the text goes, in UTF-16 units from the beginning of the block'),
  delta: text('The text'),
};

/** Events with a `seq`: written to the journal before they are sent (J1). */
export const JOURNALED = {
  agent_started: event('run', 'A run begins', {
    agent: text('Name of the agent'),
    version: text('Version in its manifest'),
    source: z.enum(['model', 'text', 'workflow']).describe('Who writes the protocol text'),
    model: z.string().exactOptional().describe('The model, where one writes'),
  }),
  iteration_started: event('run', 'A generation begins', {
    iteration: count,
    last: flag('It may only answer'),
  }),
  plan_generated: event('run', 'What a generation declared', {
    total: count.describe('Accepted actions'),
    by_type: z.partialRecord(actionType, count),
    by_mode: z.partialRecord(actionMode, count),
    waves: z.array(z.array(z.string())).describe('Action ids by wave; for people, nothing waits for a wave to end'),
    estimates: z.object({
      sequential_ms: milliseconds,
      waves_ms: milliseconds,
      critical_path_ms: milliseconds,
      speedup: z.number().min(0),
    }),
    critical_path: z.array(z.string()).describe('Action ids along the longest path'),
    edges: z.array(z.object({ from: z.string(), to: z.string() })).describe('`to` depends on `from`'),
  }),
  iteration_completed: event('run', 'All that a generation declared has settled', {
    iteration: count,
    final: z.boolean().describe('Whether the run ends with it'),
  }),
  usage: event('run', 'What one model call used', {
    prompt_tokens: count,
    completion_tokens: count,
    cached_tokens: count,
    estimated: flag('The endpoint did not say'),
    model: z.string().exactOptional().describe('The model that answered'),
    cost: z.number().exactOptional().describe('US dollars, where the price is known'),
  }),
  warning: event('either', 'Something that the runtime tolerated or mended', {
    code: text('A stable code'),
    message: text('For people'),
  }),
  budget_exceeded: event('run', 'A budget is used up', {
    budget: text('Which one'),
    limit: z.number(),
    used: z.number(),
  }),
  agent_waiting: event(
    'run',
    'Only approvals are open; ends the stream of the message, the run goes on with the answer',
    {
      reason: z.literal('approvals'),
      iterations,
    },
  ),
  agent_completed: event('run', 'The run has answered', { response: text('The answer'), iterations, usage }),
  agent_failed: event('run', 'The run has failed', {
    error: failure,
    iterations: iterations.exactOptional(),
    usage: usage.exactOptional(),
  }),
  agent_cancelled: event('run', 'The run was cancelled: by `reason` where it had not begun', {
    iterations: iterations.exactOptional(),
    usage: usage.exactOptional(),
    reason: reason.exactOptional(),
  }),
  thought_started: event('run', 'Opens a thought, whose `segment` is this `seq`', {
    reasoning: flag('The provider sent it beside the text'),
  }),
  thought_completed: event('run', 'Closes a thought', block),
  text_started: event('run', 'Opens bare text, whose `segment` is this `seq`', {}),
  text_completed: event('run', 'Closes bare text', block),
  response_started: event('run', 'Opens a response, whose `segment` is this `seq`', { final }),
  response_completed: event('run', 'Closes a response', { ...block, final }),
  action_queued: event('action', 'An action was accepted', {
    type: actionType,
    mode: actionMode,
    depends_on: z.array(z.string()).describe('Action ids, explicit and from references'),
    output_key: z.string().nullable(),
    parameters: jsonObject.describe('As the model wrote them'),
    embedded_in_thought: flag('It was declared inside a thought'),
    repaired: flag('Its body was not strict JSON and was mended'),
  }),
  action_started: event('action', 'An attempt begins', { attempt }),
  action_retrying: event('action', 'An attempt failed, and another one follows', {
    attempt: attempt.describe('The attempt that failed'),
    delay_ms: milliseconds.describe('Milliseconds until the next one'),
    error: attemptError,
  }),
  action_completed: event('action', 'An action has succeeded', {
    output: json,
    ms: tookMs,
    attempt: count.describe('The attempt; 0 for an earlier outcome'),
    cached: flag('The outcome of an earlier action'),
  }),
  action_failed: event('action', 'An action has failed for good', {
    error: attemptError,
    attempt: attempt.exactOptional(),
    ms: tookMs.exactOptional(),
  }),
  action_skipped: event('action', 'An action does not run', {
    reason: z.enum(['condition', 'dependency']),
    because: z.string().nullable().describe('The condition, or the dependency that did not complete'),
  }),
  action_cancelled: event('action', 'An action was cancelled', { reason }),
  action_rejected: event('action', 'An action cannot be accepted', {
    code: text('A stable code'),
    message: text('For the model and for people'),
    type: actionType.nullable(),
    mode: actionMode.nullable(),
    line: count.exactOptional().describe('In the generated text, from 1; absent where the text is well formed'),
    column: count.exactOptional(),
    excerpt: z.string().exactOptional().describe('The text at the mistake'),
  }),
  approval_requested: event('action', 'A person is asked; `GET …/approvals/{id}` always has the whole call', {
    approval_id: z.string(),
    type: actionType,
    sha256: text('Of the UTF-8 text of `JSON.stringify({ parameters, inputs })`'),
    bytes: count.describe('Length of that text'),
    complete: z.boolean().describe('Whether the call is here as it will run'),
    parameters: jsonObject.exactOptional(),
    inputs: jsonObject.exactOptional().describe('What code is given of other actions'),
  }),
  approval_resolved: event('action', 'A person has answered', {
    approval_id: z.string(),
    approved: z.boolean(),
    note: z.string().exactOptional(),
  }),
  context_feed_updated: event('run', 'A context feed has changed: one of the members beside `id` says how', {
    id: text('The feed'),
    added: flag('By the model'),
    updated: flag('Its definition, by the model'),
    removed: flag('By the model'),
    value: json.exactOptional().describe('Its new value'),
    error: z.string().exactOptional().describe('Why it could not be fetched'),
  }),
  variable_changed: event('run', 'A session variable has changed', {
    key: z.string(),
    value: json.exactOptional(),
    deleted: flag('It is gone'),
  }),
};

/** Events without a `seq`: sent to whoever listens, and superseded by what the journal holds (J4). */
export const LIVE = {
  thought: event('run', 'A piece of a thought', patch),
  text: event('run', 'A piece of bare text', patch),
  response: event('run', 'A piece of a response', patch),
  llm_token: event('run', 'Raw model text, where it was asked for', { token: z.string() }),
  progress: event('action', 'What an action says while it runs', {
    stream: z.string().exactOptional().describe('`stdout` or `stderr` of a program; `runner`: why it waits for one'),
    text: z.string().exactOptional().describe('What a program or a model wrote'),
    event: jsonObject.exactOptional().describe('An event of the session that the action started'),
  }),
};

/** What the head of every event holds. */
const head = {
  session_id: z.string(),
  run_id: z.string(),
  iteration: count.describe('The iteration of the run, from 1; 0 outside of any'),
  timestamp: z.int().describe('Epoch milliseconds'),
};
const actionId = z.string().describe('The id that the model gave the action');
const actionName = z.string().exactOptional().describe('The tool, agent, relic or workflow');
const HEADS: Readonly<Record<About, z.core.$ZodLooseShape>> = {
  run: {},
  action: { action_id: actionId, action_name: actionName },
  either: { action_id: actionId.exactOptional(), action_name: actionName },
};

const seqs = {
  journaled: z.int().min(1).describe('Position in the session, from 1 without a gap'),
  live: z.null().describe('Live events have none'),
};

function wireSchema(type: string, seq: z.ZodType, { about, description, data }: ReturnType<typeof event>): z.ZodObject {
  return z.object({ seq, type: z.literal(type), ...head, ...HEADS[about], data }).describe(description);
}

const wireSchemas = (
  table: Readonly<Record<string, ReturnType<typeof event>>>,
  seq: z.ZodType,
): [string, z.ZodObject][] => Object.entries(table).map(([type, entry]) => [type, wireSchema(type, seq, entry)]);

/** Each event as it is on the wire (H2), by type. */
export const EVENT_SCHEMAS: ReadonlyMap<string, z.ZodObject> = new Map([
  ...wireSchemas(JOURNALED, seqs.journaled),
  ...wireSchemas(LIVE, seqs.live),
]);
