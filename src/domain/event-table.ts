/**
 * Every session event (H3), with all that is to be known of it: its members, their types and descriptions; what is text for
 * people (C9), what views show of it (T1), whether a replay produces it again (J2), how it is stored (J6). The types in
 * event.ts, redaction, views, storage, the OpenAPI document and docs/journal.md are derived from this table.
 *
 * The schemas validate nothing at run time: the compiler checks the code that writes events. What clients import may import
 * only types from here.
 *
 * To add an event: a row here, and the file in src/engine/ that appends it.
 */
import * as z from 'zod';
import { ACTION_TYPES } from './action-types.ts';
import { ACTION_MODES } from './action.ts';
import type { Json } from './json.ts';

/** Whether an event is about an action, the run as a whole, or either. */
type About = 'action' | 'run' | 'either';

interface Columns {
  /** Whether views have nothing of it (T1). */
  readonly isHidden?: true;
  /** Whether a replay produces it again (J2). Others depend on the circumstances of the time, or were written outside the run's turns. */
  readonly isRepeated: boolean;
  /** Whether queries look for its type or read its state: it is in the columns of its row, where SQL finds it without reading JSON (J6). */
  readonly isQueried: boolean;
  /** What ends or pauses with it that traces and metrics have (O1). */
  readonly ends: 'run' | 'action' | null;
}

const PLAIN: Columns = { isRepeated: true, isQueried: false, ends: null };
const PRIVATE: Columns = { ...PLAIN, isHidden: true };
const QUERIED: Columns = { ...PLAIN, isQueried: true };
const RUN_END: Columns = { ...QUERIED, ends: 'run' };
const ACTION_END: Columns = { ...QUERIED, ends: 'action' };
const AT_THE_TIME: Columns = { ...PLAIN, isRepeated: false };

/**
 * Which part of a member is text for people and models, and is redacted (C9). `true`: every string in the value, names of
 * members included. `message`, `excerpt`: a text that may have been cut (TextKind in bounded/redaction.ts). `schema`: a JSON
 * Schema, of which only the texts are redacted. A map: only these members of the value, or of its items.
 */
export type TextIn = true | 'message' | 'excerpt' | 'schema' | { readonly [member: string]: TextIn };

/** What views have in place of a value; undefined leaves it out. */
export type Hide<V = unknown> = (value: V) => V;

/** What the table knows about a member, next to its schema. */
export interface MemberRules<V = unknown> {
  /** Null: it holds identifiers, such as ids, names, codes, hashes and paths. They are never changed, because clients use them. */
  readonly text: TextIn | null;
  /** In all views. `event`: the value is an event of a child session. */
  readonly inViews?: Hide<V> | 'event';
  /** In views, if the event is about a hidden action. */
  readonly ofHidden?: Hide<V>;
}

const MARK = Symbol('rules of a member');
interface Marked<Z extends z.ZodType> {
  readonly schema: Z;
  readonly [MARK]: MemberRules;
}

/** The value of a member; with undefined, if it may be absent. */
type ValueOf<Z extends z.ZodType> = Z extends z.ZodExactOptional ? z.output<Z> | undefined : z.output<Z>;
type Views<Z extends z.ZodType> = Omit<MemberRules<ValueOf<Z>>, 'text'>;

/** A member that is not text. */
function id<Z extends z.ZodType>(schema: Z, views: Views<Z> = {}): Marked<Z> {
  return { schema, [MARK]: { text: null, ...views } as MemberRules };
}

/** A member with text for people and models. */
function prose<Z extends z.ZodType>(
  schema: Z,
  { text = true, ...views }: Views<Z> & { text?: TextIn } = {},
): Marked<Z> {
  return { schema, [MARK]: { text, ...views } as MemberRules };
}

const NO_RULES: MemberRules = { text: null };

type Member = z.ZodType | Marked<z.ZodType>;
type Members = Readonly<Record<string, Member>>;
type SchemaOf<M> = M extends Marked<infer Z> ? Z : M;
type ShapeOf<M extends Members> = { [Name in keyof M]: SchemaOf<M[Name]> };
/** Never for numbers, flags and members of enumerations. */
type MayBeText<V> = V extends number | boolean | null | undefined
  ? never
  : V extends string
    ? string extends V
      ? V
      : never
    : V;
/** Numbers, flags and members of enumerations are shown and never changed; every other member says what it is. */
type Checked<M extends Members> = {
  readonly [Name in keyof M]: M[Name] extends z.ZodType
    ? [MayBeText<z.output<M[Name]>>] extends [never]
      ? M[Name]
      : Marked<M[Name]>
    : M[Name];
};

function event<A extends About, const M extends Members>(
  about: A,
  columns: Columns,
  description: string,
  members: M & Checked<M>,
) {
  const entries = Object.entries<Member>(members).map(([name, member]): [string, z.ZodType, MemberRules] =>
    MARK in member ? [name, member.schema, member[MARK]] : [name, member, NO_RULES],
  );
  const shape = Object.fromEntries(entries.map(([name, schema]) => [name, schema])) as ShapeOf<M>;
  const rules = entries.map(([name, , rule]) => [name, rule] as const);
  return { about, ...columns, description, data: z.object(shape), rules };
}

/** The data type of an event in these tables. */
export type EventDataOf<E extends { readonly data: z.ZodType }> = z.output<E['data']>;

/** In place of a text that must exist. */
export const HIDDEN = '[hidden]';
const omit = (): undefined => undefined;
/** Of a call without parameters: that of the call itself would reveal what is hidden. */
export const NO_CALL = {
  sha256: '44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a',
  bytes: 2,
} as const;

/** Parsed JSON. Not validated again, because any parsed value is JSON. */
export const json = z.unknown() as z.ZodType<Json>;
export const jsonObject = z.record(z.string(), json);

const count = z.int().min(0);
const milliseconds = z.number().min(0);
const actionType = z.enum(ACTION_TYPES);
const actionMode = z.enum(ACTION_MODES);
const text = (description: string) => z.string().describe(description);
const note = (description: string) => prose(text(description));
const label = (description: string) => id(text(description));
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
const attemptFailure = failure.extend({ retryable: z.boolean() }).describe('Why the attempt failed');
// The message may quote the parameters, or list what is known.
const attemptError = prose(attemptFailure, {
  text: { message: 'message' },
  ofHidden: (error) => ({ ...error, message: HIDDEN }),
});

const segment = z.int().min(1).describe('The block, identified by the `seq` of the event that opened it');
const content = note('The whole text of the block');
const unclosed = flag('The text ended before its closing tag');
const cut = flag(
  'The rest is missing: a crash, a lost stream, a time limit or a filter ended the generation within it',
);
const final = z.boolean().nullable().describe('`final` as the model wrote it; null means auto');
const cutParameters = id(flag('`parameters` were longer than 16,384 characters, and markers say where they were cut'), {
  ofHidden: omit,
});
const parametersIf = (description: string) =>
  prose(jsonObject.exactOptional().describe(description), { ofHidden: omit });
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
  delta: note('The text'),
};

/** Events with a `seq`: written to the journal before they are sent (J1). */
export const JOURNALED = {
  agent_started: event('run', PLAIN, 'A run begins', {
    agent: label('Name of the agent'),
    version: label('Version of its manifest'),
    source: z.enum(['model', 'text', 'workflow']).describe('Source of its text or actions'),
    model: id(z.string().exactOptional().describe('The first model of the agent, if a model is the source')),
  }),
  run_branched: event(
    'run',
    PLAIN,
    'Follows `agent_started` of a retry, and of a run that does not follow the newest run',
    {
      parent_run: id(
        z.string().nullable().describe('The run that it follows; null if it begins the conversation again'),
      ),
      retry_of: id(z.string().exactOptional().describe('The run whose message or action it repeats')),
      action_id: id(z.string().exactOptional().describe('The action that it repeats')),
    },
  ),
  message_received: event(
    'run',
    QUERIED,
    'A message came during the run. The next generation is shown it; if there is none, it becomes the message of the next run',
    {
      message_id: label('Id of the message, unique in the session'),
      content: note('Its text'),
      parts: prose(z.array(json).exactOptional().describe('Its parts, if it has images or files'), {
        text: { text: true },
      }),
    },
  ),
  iteration_started: event('run', PLAIN, 'A generation begins', {
    iteration: count,
    last: flag('The generation may only answer'),
  }),
  plan_generated: event('run', PLAIN, 'The plan of a generation', {
    total: count.describe('Accepted actions'),
    by_type: id(z.partialRecord(actionType, count).describe('Their number by type')),
    by_mode: id(z.partialRecord(actionMode, count).describe('Their number by mode')),
    waves: id(
      z.array(z.array(z.string())).describe('Action ids by wave. For display only: nothing waits for a wave to end'),
    ),
    estimates: id(
      z
        .object({
          sequential_ms: milliseconds.describe('Milliseconds, one action after the other'),
          waves_ms: milliseconds.describe('Milliseconds, if each wave waited for the one before'),
          critical_path_ms: milliseconds.describe('Milliseconds of the longest path'),
          speedup: z.number().min(0).describe('`sequential_ms` / `critical_path_ms`'),
        })
        .describe('Estimated durations'),
    ),
    critical_path: id(z.array(z.string()).describe('Action ids along the longest path')),
    edges: id(
      z
        .array(z.object({ from: text('Id of an action'), to: text('Id of an action') }))
        .describe('`to` depends on `from`'),
    ),
  }),
  iteration_completed: event('run', PLAIN, 'All actions of a generation have settled', {
    iteration: count,
    final: z.boolean().describe('Whether it ends the run'),
    failure: id(
      z
        .object({
          code: text('A stable code'),
          ms: milliseconds.describe('Milliseconds from its start to the failure'),
        })
        .exactOptional()
        .describe('The text of the generation ended early, because of the model or of a restart'),
    ),
  }),
  usage: event('either', PLAIN, 'Usage of one model call; of an action, if it has its id', {
    prompt_tokens: count,
    completion_tokens: count,
    cached_tokens: count,
    estimated: flag('The endpoint did not report it'),
    model: id(z.string().exactOptional().describe('The model that answered')),
    cost: z.number().exactOptional().describe('US dollars, if the price is known'),
    feed: flag('A context feed called the model'),
  }),
  warning: event('either', AT_THE_TIME, 'Something that the runtime tolerated or repaired', {
    code: label('A stable code'),
    message: prose(text('Human-readable'), { text: 'message', ofHidden: () => HIDDEN }),
  }),
  budget_exceeded: event('run', PLAIN, 'A budget is used up', {
    budget: label('The budget'),
    limit: z.number(),
    used: z.number(),
  }),
  agent_waiting: event(
    'run',
    RUN_END,
    'The run waits for people and clients only. Ends the stream of the message; the run continues after the next answer',
    {
      reason: z.enum(['approvals', 'client_tools']).describe('`client_tools`: no approval is open'),
      iterations,
    },
  ),
  agent_completed: event('run', RUN_END, 'The run has answered', {
    response: note('The answer'),
    outputs: prose(
      jsonObject
        .exactOptional()
        .describe('Outputs of a workflow by name; only in the document of the run if they exceed 1,048,576 characters'),
    ),
    iterations,
    usage: id(usage),
    failed_actions: count
      .exactOptional()
      .describe('Number of actions that failed or were rejected; absent if there are none'),
  }),
  agent_failed: event('run', RUN_END, 'The run has failed', {
    error: prose(failure, { text: { message: 'message' } }),
    iterations: iterations.exactOptional(),
    usage: id(usage.exactOptional()),
  }),
  agent_cancelled: event('run', RUN_END, 'The run was cancelled; `reason` is set if it had not begun', {
    iterations: iterations.exactOptional(),
    usage: id(usage.exactOptional()),
    reason: prose(text('The reason').exactOptional()),
  }),
  thought_started: event('run', PRIVATE, 'Opens a thought, whose `segment` is this `seq`', {
    reasoning: flag('The provider sent it separately from the text'),
  }),
  thought_completed: event('run', PRIVATE, 'Closes a thought', block),
  text_started: event('run', PLAIN, 'Opens bare text, whose `segment` is this `seq`', {}),
  text_completed: event('run', PLAIN, 'Closes bare text', block),
  response_started: event('run', PLAIN, 'Opens a response, whose `segment` is this `seq`', { final, completes }),
  response_completed: event('run', PLAIN, 'Closes a response', {
    ...block,
    final,
    pending: id(
      z
        .array(z.string())
        .exactOptional()
        .describe('References that waited for an approval or a client tool; shown as pending'),
    ),
    missing: prose(z.array(z.string()).exactOptional().describe('References without a value; shown as missing')),
    completes,
  }),
  action_queued: event('action', PLAIN, 'An action was accepted', {
    type: actionType,
    mode: actionMode,
    depends_on: id(z.array(z.string()).describe('Action ids, explicit and from references')),
    output_key: id(z.string().nullable()),
    parameters: prose(jsonObject.describe('As written by the model'), { ofHidden: () => ({}) }),
    embedded_in_thought: flag('It was declared inside a thought'),
    repaired: flag('Its body was not strict JSON and was repaired'),
  }),
  action_started: event('action', PLAIN, 'An attempt begins', {
    attempt,
    parameters: parametersIf(
      'As executed, in the first attempt, if they differ from the declared ones; `inputs`: values passed to code',
    ),
    parameters_cut: cutParameters,
  }),
  action_retrying: event('action', PLAIN, 'An attempt failed and will be retried', {
    attempt: attempt.describe('The failed attempt'),
    delay_ms: milliseconds.describe('Milliseconds until the next attempt'),
    error: attemptError,
  }),
  action_completed: event('action', ACTION_END, 'An action has succeeded', {
    output: prose(json, { ofHidden: () => null }),
    ms: tookMs,
    attempt: count.describe('The attempt; 0 for a reused outcome'),
    cached: flag('The outcome of an earlier action was reused'),
  }),
  action_failed: event('action', ACTION_END, 'An action has failed permanently', {
    error: attemptError,
    attempt: attempt.exactOptional(),
    ms: tookMs.exactOptional(),
  }),
  action_skipped: event('action', ACTION_END, 'An action was skipped', {
    reason: z.enum(['condition', 'dependency']),
    // The condition may contain what the action does.
    because: prose(z.string().nullable().describe('The condition, or the dependency that did not complete'), {
      text: 'message',
      ofHidden: () => null,
    }),
  }),
  action_cancelled: event('action', ACTION_END, 'An action was cancelled', {
    reason: prose(text('The reason'), { ofHidden: () => HIDDEN }),
  }),
  action_rejected: event('action', QUERIED, 'An action was rejected', {
    code: label('A stable code'),
    message: prose(text('For the model and the user'), { text: 'message', ofHidden: () => HIDDEN }),
    type: actionType.nullable(),
    mode: actionMode.nullable(),
    line: count.exactOptional().describe('In the generated text, 1-based; absent if the text is well formed'),
    column: count.exactOptional(),
    // The text around an action may be a thought.
    excerpt: prose(z.string().exactOptional().describe('The text around the error'), {
      text: 'excerpt',
      inViews: omit,
    }),
    parameters: parametersIf('As declared, if they could be read'),
    parameters_cut: cutParameters,
  }),
  approval_requested: event(
    'action',
    QUERIED,
    'A person must approve an action, or answer its target; `GET …/approvals/{id}` returns the call also if it is too long for the event',
    {
      approval_id: id(z.string()),
      type: actionType,
      sha256: id(text('SHA-256 of the UTF-8 text of `JSON.stringify({ parameters, inputs })`'), {
        ofHidden: () => NO_CALL.sha256,
      }),
      bytes: id(count.describe('Length of that text'), { ofHidden: () => NO_CALL.bytes }),
      complete: id(z.boolean().describe('Whether the event contains the whole call'), { ofHidden: () => false }),
      redacted: id(
        flag('Text was redacted, or is hidden from the token; `sha256` and `bytes` are about the call as shown'),
        { ofHidden: () => true as const },
      ),
      parameters: prose(jsonObject.exactOptional(), { ofHidden: omit }),
      inputs: parametersIf('Values of other actions that are passed to the code'),
      reason: prose(z.string().exactOptional().describe('Message of the policy that asks'), { ofHidden: omit }),
      question: prose(
        shownQuestion
          .exactOptional()
          .describe('The target of the started action asks it; approving answers it, and the action goes on'),
        { text: { from: true, message: true, schema: 'schema', url: true }, ofHidden: omit },
      ),
    },
  ),
  approval_resolved: event('action', QUERIED, 'A person has decided', {
    approval_id: id(z.string()),
    approved: z.boolean(),
    note: prose(z.string().exactOptional(), { ofHidden: omit }),
    content: parametersIf('The values that answer the question'),
  }),
  policy_applied: event('action', PLAIN, 'A policy has decided about an action', {
    decision: z
      .enum(['allow', 'ask', 'deny'])
      .describe('`ask`: an approval is requested next; `deny`: the action fails with `policy_denied`'),
    source: label(
      'The list with the rule: `deployment`, `agent NAME` or `workflow NAME`; `runtime`: it could not be judged, or no rule applies',
    ),
    rule: count.describe('Position of the rule in its list, 1-based; 0 for `runtime`'),
    message: prose(z.string().exactOptional().describe('Message of the rule, or why it could not be evaluated'), {
      ofHidden: omit,
    }),
    parameters: parametersIf('As judged, if they differ from the declared ones'),
    parameters_cut: cutParameters,
  }),
  client_tool_called: event(
    'action',
    QUERIED,
    'The client must execute a call, and post its result to `…/calls/{call_id}`',
    {
      call_id: label('Id of the call'),
      name: label('The tool'),
      parameters: prose(jsonObject.describe('With resolved references'), { ofHidden: () => ({}) }),
    },
  ),
  client_tool_settled: event('action', QUERIED, 'A call of a client tool is closed; the end of its action follows', {
    call_id: label('Id of the call'),
    status: z
      .enum(['completed', 'failed', 'expired', 'cancelled'])
      .describe('`completed` and `failed`: the client has answered'),
    sha256: id(
      z
        .string()
        .exactOptional()
        .describe("SHA-256 of the client's answer, as JSON with sorted members; absent if it did not answer"),
      { ofHidden: omit },
    ),
  }),
  context_feed_updated: event(
    'run',
    { ...AT_THE_TIME, isHidden: true },
    'A context feed has changed; one of the other members says how',
    {
      id: label('The feed'),
      added: flag('Added by the model'),
      updated: flag('Definition changed by the model'),
      removed: flag('Removed by the model'),
      value: prose(json.exactOptional().describe('Its new value')),
      error: prose(z.string().exactOptional().describe('Why the value could not be fetched'), { text: 'message' }),
    },
  ),
  // The workspace needs another scope (C7).
  file_changed: event('either', { ...AT_THE_TIME, isHidden: true }, 'Files of the workspace have changed', {
    files: id(
      z
        .array(z.object({ path: text('Relative to the workspace'), size: count.describe('Bytes') }))
        .describe('Written files, at most 100'),
    ),
    deleted: id(z.array(z.string()).exactOptional().describe('Paths of deleted files, at most 100')),
    omitted: count.exactOptional().describe('Number of further changes'),
  }),
  skill_loaded: event(
    'action',
    AT_THE_TIME,
    'The text of a skill is in the context, and its files are in the workspace',
    {
      name: label('The skill'),
      files: count.describe('Number of its files'),
    },
  ),
  memory_changed: event(
    'either',
    ACTION_END,
    'The summary of the conversation, or a fact about the user, has changed',
    {
      change: z
        .enum(['summarised', 'remembered', 'forgotten'])
        .describe('`summarised`: of the conversation; the others: of a fact that sessions of this user share'),
      // A fact is in the feed of the facts, and a summary in later prompts.
      summary: prose(
        z.string().exactOptional().describe('Text about the turns up to `until_run`, which prompts show instead'),
        { inViews: omit },
      ),
      until_run: id(z.string().exactOptional().describe('The latest run that the summary covers')),
      turns: count.exactOptional().describe('Number of turns that the summary covers'),
      usage: id(totals.exactOptional().describe('Usage of the model call that wrote the summary')),
      key: id(z.string().exactOptional().describe('Name of the fact; absent if all were forgotten'), { inViews: omit }),
      value: prose(z.string().exactOptional().describe('The fact'), { inViews: omit }),
    },
  ),
  variable_changed: event('run', { ...AT_THE_TIME, isQueried: true }, 'A session variable has changed', {
    key: id(z.string()),
    value: prose(json.exactOptional()),
    deleted: flag('It was deleted'),
  }),
};

/** Events without a `seq`: sent to connected clients, and superseded by journaled events (J4). */
export const LIVE = {
  thought: event('run', PRIVATE, 'A piece of a thought', patch),
  text: event('run', PLAIN, 'A piece of bare text', patch),
  response: event('run', PLAIN, 'A piece of a response', patch),
  // Raw model text contains thoughts.
  llm_token: event('run', PRIVATE, 'Raw model text, if it was requested', { token: prose(z.string()) }),
  progress: event('action', PLAIN, 'Output of a running action', {
    stream: id(
      z
        .string()
        .exactOptional()
        .describe(
          '`stdout` or `stderr` of a program; `tool`: a line of a code tool; `runner`: why it waits for a runner',
        ),
    ),
    text: prose(z.string().exactOptional().describe('Output of a program or a model, or what a code tool says'), {
      ofHidden: omit,
    }),
    percent: z.number().min(0).max(100).exactOptional().describe('How much of a code tool is done'),
    // The events of a child were redacted by the child.
    event: id(jsonObject.exactOptional().describe('An event of the child session'), { inViews: 'event' }),
  }),
};

interface EventRow extends Columns {
  readonly about: About;
  readonly description: string;
  readonly data: z.ZodObject;
  /** Of each member. */
  readonly rules: readonly (readonly [name: string, rules: MemberRules])[];
}

/** All events, by type. */
export const EVENTS: Readonly<Record<keyof typeof JOURNALED | keyof typeof LIVE, EventRow>> = { ...JOURNALED, ...LIVE };

/** The types of the journaled events whose row meets a condition. */
export function journaledWhere(meets: (row: EventRow) => boolean): (keyof typeof JOURNALED)[] {
  return (Object.keys(JOURNALED) as (keyof typeof JOURNALED)[]).filter((type) => meets(EVENTS[type]));
}

/** Members of every event, without its data. */
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

function wireSchema(type: string, seq: z.ZodType, { about, description, data }: EventRow): z.ZodObject {
  const again = z.literal(type).exactOptional().describe('The same as `type`; in streams only');
  const names = { type: z.literal(type), ...(Object.hasOwn(data.shape, 'delta') ? {} : { event_type: again }) };
  return z.object({ seq, ...names, ...head, ...HEADS[about], data }).describe(description);
}

const wireSchemas = (table: Readonly<Record<string, EventRow>>, seq: z.ZodType): [string, z.ZodObject][] =>
  Object.entries(table).map(([type, entry]) => [type, wireSchema(type, seq, entry)]);

/** The wire schema of each event (H2), by type. */
export const EVENT_SCHEMAS: ReadonlyMap<string, z.ZodObject> = new Map([
  ...wireSchemas(JOURNALED, seqs.journaled),
  ...wireSchemas(LIVE, seqs.live),
]);
