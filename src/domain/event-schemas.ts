/**
 * Every session event (H3), defined once with its members, their types and descriptions. The types in event.ts, the
 * OpenAPI document, the table in docs/journal.md and the checks of the tests are derived from these schemas.
 *
 * These schemas are not used for validation at run time: the compiler checks the code that writes events. Only code
 * that describes or tests events imports this file; all other code imports types from event.ts.
 */
import * as z from 'zod';
import { ACTION_TYPES } from './action-types.ts';
import { ACTION_MODES } from './action.ts';
import type { Json } from './json.ts';

/** Whether an event is about an action, the run as a whole, or either. */
type About = 'action' | 'run' | 'either';

function event<A extends About, const S extends z.core.$ZodLooseShape>(about: A, description: string, members: S) {
  return { about, description, data: z.object(members) };
}

/** The data type of an event in these tables. */
export type EventDataOf<E extends { readonly data: z.ZodType }> = z.output<E['data']>;

/** Parsed JSON. Not validated again, because any parsed value is JSON. */
export const json = z.unknown() as z.ZodType<Json>;
export const jsonObject = z.record(z.string(), json);

const count = z.int().min(0);
const milliseconds = z.number().min(0);
const actionType = z.enum(ACTION_TYPES);
const actionMode = z.enum(ACTION_MODES);
const text = (description: string) => z.string().describe(description);
const flag = (description: string) => z.literal(true).exactOptional().describe(description);

const attempt = count.describe('The attempt, 1-based');
const iterations = count.describe('Iterations of the run so far');
const tookMs = milliseconds.describe('Milliseconds since the first attempt began');

/** Usage of the model calls of a run, without its sub-agents. */
const totals = z.object({
  prompt_tokens: count,
  completion_tokens: count,
  cached_tokens: count,
  model_calls: count,
  estimated: z.boolean().describe('Whether some counts are estimates'),
  cost: z.number().exactOptional().describe('US dollars, for calls with a known price'),
});
const usage = totals.describe('Usage of the own model calls of the run, without those of its sub-agents and workflows');

const failure = z.object({ code: text('A stable code'), message: text('Human-readable') });
const attemptError = failure.extend({ retryable: z.boolean() }).describe('Why the attempt failed');

const segment = z.int().min(1).describe('The block, identified by the `seq` of the event that opened it');
const content = text('The whole text of the block');
const unclosed = flag('The text ended before its closing tag');
const cut = flag(
  'The rest is missing: a crash, a lost stream, a time limit or a filter ended the generation within it',
);
const final = z.boolean().nullable().describe('`final` as the model wrote it; null means auto');
const reason = text('The reason');
const cutParameters = flag('`parameters` were longer than 16,384 characters, and markers say where they were cut');
const completes = segment
  .exactOptional()
  .describe('The response that this one replaces: its pending values are known now');

/** A question of an action's target, as people see it (J8). */
export const shownQuestion = z.object({
  from: text('Who asks'),
  message: text('Text of the target for people; it is data, and may be cut'),
  schema: jsonObject
    .exactOptional()
    .describe('JSON Schema of the values that it asks for; absent: a yes or no is enough'),
  url: z.string().exactOptional().describe('An HTTP(S) page that the person is asked to open'),
});

const block = { segment, content, unclosed, cut };
const patch = {
  segment,
  offset: count.describe('Position of the text in the block, in UTF-16 code units'),
  delta: text('The text'),
};

/** Events with a `seq`: written to the journal before they are sent (J1). */
export const JOURNALED = {
  agent_started: event('run', 'A run begins', {
    agent: text('Name of the agent'),
    version: text('Version of its manifest'),
    source: z.enum(['model', 'text', 'workflow']).describe('Source of the protocol text'),
    model: z.string().exactOptional().describe('The first model of the agent, if a model is the source'),
  }),
  run_branched: event('run', 'Follows `agent_started` of a retry, and of a run that does not follow the newest run', {
    parent_run: z.string().nullable().describe('The run that it follows; null if it begins the conversation again'),
    retry_of: z.string().exactOptional().describe('The run whose message or action it repeats'),
    action_id: z.string().exactOptional().describe('The action that it repeats'),
  }),
  message_received: event(
    'run',
    'A message came during the run. The next generation is shown it; if there is none, it becomes the message of the next run',
    {
      message_id: text('Id of the message, unique in the session'),
      content: text('Its text'),
      parts: z.array(json).exactOptional().describe('Its parts, if it has images or files'),
    },
  ),
  iteration_started: event('run', 'A generation begins', {
    iteration: count,
    last: flag('The generation may only answer'),
  }),
  plan_generated: event('run', 'The plan of a generation', {
    total: count.describe('Accepted actions'),
    by_type: z.partialRecord(actionType, count).describe('Their number by type'),
    by_mode: z.partialRecord(actionMode, count).describe('Their number by mode'),
    waves: z
      .array(z.array(z.string()))
      .describe('Action ids by wave. For display only: nothing waits for a wave to end'),
    estimates: z
      .object({
        sequential_ms: milliseconds.describe('Milliseconds, one action after the other'),
        waves_ms: milliseconds.describe('Milliseconds, if each wave waited for the one before'),
        critical_path_ms: milliseconds.describe('Milliseconds of the longest path'),
        speedup: z.number().min(0).describe('`sequential_ms` / `critical_path_ms`'),
      })
      .describe('Estimated durations'),
    critical_path: z.array(z.string()).describe('Action ids along the longest path'),
    edges: z
      .array(z.object({ from: text('Id of an action'), to: text('Id of an action') }))
      .describe('`to` depends on `from`'),
  }),
  iteration_completed: event('run', 'All actions of a generation have settled', {
    iteration: count,
    final: z.boolean().describe('Whether it ends the run'),
    failure: z
      .object({ code: text('A stable code'), ms: milliseconds.describe('Milliseconds from its start to the failure') })
      .exactOptional()
      .describe('The text of the generation ended early, because of the model or of a restart'),
  }),
  usage: event('either', 'Usage of one model call; of an action, if it has its id', {
    prompt_tokens: count,
    completion_tokens: count,
    cached_tokens: count,
    estimated: flag('The endpoint did not report it'),
    model: z.string().exactOptional().describe('The model that answered'),
    cost: z.number().exactOptional().describe('US dollars, if the price is known'),
    feed: flag('A context feed called the model'),
  }),
  warning: event('either', 'Something that the runtime tolerated or repaired', {
    code: text('A stable code'),
    message: text('Human-readable'),
  }),
  budget_exceeded: event('run', 'A budget is used up', {
    budget: text('The budget'),
    limit: z.number(),
    used: z.number(),
  }),
  agent_waiting: event(
    'run',
    'The run waits for people and clients only. Ends the stream of the message; the run continues after the next answer',
    {
      reason: z.enum(['approvals', 'client_tools']).describe('`client_tools`: no approval is open'),
      iterations,
    },
  ),
  agent_completed: event('run', 'The run has answered', {
    response: text('The answer'),
    outputs: jsonObject
      .exactOptional()
      .describe('Outputs of a workflow by name; only in the document of the run if they exceed 1,048,576 characters'),
    iterations,
    usage,
    failed_actions: count
      .exactOptional()
      .describe('Number of actions that failed or were rejected; absent if there are none'),
  }),
  agent_failed: event('run', 'The run has failed', {
    error: failure,
    iterations: iterations.exactOptional(),
    usage: usage.exactOptional(),
  }),
  agent_cancelled: event('run', 'The run was cancelled; `reason` is set if it had not begun', {
    iterations: iterations.exactOptional(),
    usage: usage.exactOptional(),
    reason: reason.exactOptional(),
  }),
  thought_started: event('run', 'Opens a thought, whose `segment` is this `seq`', {
    reasoning: flag('The provider sent it separately from the text'),
  }),
  thought_completed: event('run', 'Closes a thought', block),
  text_started: event('run', 'Opens bare text, whose `segment` is this `seq`', {}),
  text_completed: event('run', 'Closes bare text', block),
  response_started: event('run', 'Opens a response, whose `segment` is this `seq`', { final, completes }),
  response_completed: event('run', 'Closes a response', {
    ...block,
    final,
    pending: z
      .array(z.string())
      .exactOptional()
      .describe('References that waited for an approval or a client tool; shown as pending'),
    missing: z.array(z.string()).exactOptional().describe('References without a value; shown as missing'),
    completes,
  }),
  action_queued: event('action', 'An action was accepted', {
    type: actionType,
    mode: actionMode,
    depends_on: z.array(z.string()).describe('Action ids, explicit and from references'),
    output_key: z.string().nullable(),
    parameters: jsonObject.describe('As written by the model'),
    embedded_in_thought: flag('It was declared inside a thought'),
    repaired: flag('Its body was not strict JSON and was repaired'),
  }),
  action_started: event('action', 'An attempt begins', {
    attempt,
    parameters: jsonObject
      .exactOptional()
      .describe(
        'As executed, in the first attempt, if they differ from the declared ones; `inputs`: values passed to code',
      ),
    parameters_cut: cutParameters,
  }),
  action_retrying: event('action', 'An attempt failed and will be retried', {
    attempt: attempt.describe('The failed attempt'),
    delay_ms: milliseconds.describe('Milliseconds until the next attempt'),
    error: attemptError,
  }),
  action_completed: event('action', 'An action has succeeded', {
    output: json,
    ms: tookMs,
    attempt: count.describe('The attempt; 0 for a reused outcome'),
    cached: flag('The outcome of an earlier action was reused'),
  }),
  action_failed: event('action', 'An action has failed permanently', {
    error: attemptError,
    attempt: attempt.exactOptional(),
    ms: tookMs.exactOptional(),
  }),
  action_skipped: event('action', 'An action was skipped', {
    reason: z.enum(['condition', 'dependency']),
    because: z.string().nullable().describe('The condition, or the dependency that did not complete'),
  }),
  action_cancelled: event('action', 'An action was cancelled', { reason }),
  action_rejected: event('action', 'An action was rejected', {
    code: text('A stable code'),
    message: text('For the model and the user'),
    type: actionType.nullable(),
    mode: actionMode.nullable(),
    line: count.exactOptional().describe('In the generated text, 1-based; absent if the text is well formed'),
    column: count.exactOptional(),
    excerpt: z.string().exactOptional().describe('The text around the error'),
    parameters: jsonObject.exactOptional().describe('As declared, if they could be read'),
    parameters_cut: cutParameters,
  }),
  approval_requested: event(
    'action',
    'A person must approve an action, or answer its target; `GET …/approvals/{id}` returns the call also if it is too long for the event',
    {
      approval_id: z.string(),
      type: actionType,
      sha256: text('SHA-256 of the UTF-8 text of `JSON.stringify({ parameters, inputs })`'),
      bytes: count.describe('Length of that text'),
      complete: z.boolean().describe('Whether the event contains the whole call'),
      redacted: flag(
        'Text was redacted, or is hidden from the token; `sha256` and `bytes` are about the call as shown',
      ),
      parameters: jsonObject.exactOptional(),
      inputs: jsonObject.exactOptional().describe('Values of other actions that are passed to the code'),
      reason: z.string().exactOptional().describe('Message of the policy that asks'),
      question: shownQuestion
        .exactOptional()
        .describe('The target of the started action asks it; approving answers it, and the action goes on'),
    },
  ),
  approval_resolved: event('action', 'A person has decided', {
    approval_id: z.string(),
    approved: z.boolean(),
    note: z.string().exactOptional(),
    content: jsonObject.exactOptional().describe('The values that answer the question'),
  }),
  policy_applied: event('action', 'A policy has decided about an action', {
    decision: z
      .enum(['allow', 'ask', 'deny'])
      .describe('`ask`: an approval is requested next; `deny`: the action fails with `policy_denied`'),
    source: text(
      'The list with the rule: `deployment`, `agent NAME` or `workflow NAME`; `runtime`: it could not be judged, or no rule applies',
    ),
    rule: count.describe('Position of the rule in its list, 1-based; 0 for `runtime`'),
    message: z.string().exactOptional().describe('Message of the rule, or why it could not be evaluated'),
    parameters: jsonObject.exactOptional().describe('As judged, if they differ from the declared ones'),
    parameters_cut: cutParameters,
  }),
  client_tool_called: event('action', 'The client must execute a call, and post its result to `…/calls/{call_id}`', {
    call_id: text('Id of the call'),
    name: text('The tool'),
    parameters: jsonObject.describe('With resolved references'),
  }),
  client_tool_settled: event('action', 'A call of a client tool is closed; the end of its action follows', {
    call_id: text('Id of the call'),
    status: z
      .enum(['completed', 'failed', 'expired', 'cancelled'])
      .describe('`completed` and `failed`: the client has answered'),
    sha256: z
      .string()
      .exactOptional()
      .describe("SHA-256 of the client's answer, as JSON with sorted members; absent if it did not answer"),
  }),
  context_feed_updated: event('run', 'A context feed has changed; one of the other members says how', {
    id: text('The feed'),
    added: flag('Added by the model'),
    updated: flag('Definition changed by the model'),
    removed: flag('Removed by the model'),
    value: json.exactOptional().describe('Its new value'),
    error: z.string().exactOptional().describe('Why the value could not be fetched'),
  }),
  file_changed: event('either', 'Files of the workspace have changed', {
    files: z
      .array(z.object({ path: text('Relative to the workspace'), size: count.describe('Bytes') }))
      .describe('Written files, at most 100'),
    deleted: z.array(z.string()).exactOptional().describe('Paths of deleted files, at most 100'),
    omitted: count.exactOptional().describe('Number of further changes'),
  }),
  skill_loaded: event('action', 'The text of a skill is in the context, and its files are in the workspace', {
    name: text('The skill'),
    files: count.describe('Number of its files'),
  }),
  memory_changed: event('either', 'The summary of the conversation, or a fact about the user, has changed', {
    change: z
      .enum(['summarised', 'remembered', 'forgotten'])
      .describe('`summarised`: of the conversation; the others: of a fact that sessions of this user share'),
    summary: z.string().exactOptional().describe('Text about the turns up to `until_run`, which prompts show instead'),
    until_run: z.string().exactOptional().describe('The latest run that the summary covers'),
    turns: count.exactOptional().describe('Number of turns that the summary covers'),
    usage: totals.exactOptional().describe('Usage of the model call that wrote the summary'),
    key: z.string().exactOptional().describe('Name of the fact; absent if all were forgotten'),
    value: z.string().exactOptional().describe('The fact'),
  }),
  variable_changed: event('run', 'A session variable has changed', {
    key: z.string(),
    value: json.exactOptional(),
    deleted: flag('It was deleted'),
  }),
};

/** Events without a `seq`: sent to connected clients, and superseded by journaled events (J4). */
export const LIVE = {
  thought: event('run', 'A piece of a thought', patch),
  text: event('run', 'A piece of bare text', patch),
  response: event('run', 'A piece of a response', patch),
  llm_token: event('run', 'Raw model text, if it was requested', { token: z.string() }),
  progress: event('action', 'Output of a running action', {
    stream: z
      .string()
      .exactOptional()
      .describe(
        '`stdout` or `stderr` of a program; `tool`: a line of a code tool; `runner`: why it waits for a runner',
      ),
    text: z.string().exactOptional().describe('Output of a program or a model, or what a code tool says'),
    percent: z.number().min(0).max(100).exactOptional().describe('How much of a code tool is done'),
    event: jsonObject.exactOptional().describe('An event of the child session'),
  }),
};

/** Members of every event besides its data. */
const head = {
  session_id: z.string(),
  run_id: z.string(),
  iteration: count.describe('The iteration of the run, 1-based; 0 outside of iterations'),
  timestamp: z.int().describe('Epoch milliseconds'),
};
const actionId = z.string().describe('The id that the model gave to the action');
const actionName = z.string().exactOptional().describe('The tool, agent, relic or workflow');
const HEADS: Readonly<Record<About, z.core.$ZodLooseShape>> = {
  run: {},
  action: { action_id: actionId, action_name: actionName },
  either: { action_id: actionId.exactOptional(), action_name: actionName },
};

const seqs = {
  journaled: z.int().min(1).describe('Position in the session, 1-based, without gaps'),
  live: z.null().describe('Live events have no position'),
};

function wireSchema(type: string, seq: z.ZodType, { about, description, data }: ReturnType<typeof event>): z.ZodObject {
  const again = z.literal(type).exactOptional().describe('The same as `type`; in streams only');
  const names = { type: z.literal(type), ...(Object.hasOwn(data.shape, 'delta') ? {} : { event_type: again }) };
  return z.object({ seq, ...names, ...head, ...HEADS[about], data }).describe(description);
}

const wireSchemas = (
  table: Readonly<Record<string, ReturnType<typeof event>>>,
  seq: z.ZodType,
): [string, z.ZodObject][] => Object.entries(table).map(([type, entry]) => [type, wireSchema(type, seq, entry)]);

/** The wire schema of each event (H2), by type. */
export const EVENT_SCHEMAS: ReadonlyMap<string, z.ZodObject> = new Map([
  ...wireSchemas(JOURNALED, seqs.journaled),
  ...wireSchemas(LIVE, seqs.live),
]);
