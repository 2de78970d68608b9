/**
 * Query parameters of the routes (H4): each route declares its parameters, and others are rejected with the nearest
 * known name. The OpenAPI document is generated from the same fields.
 */
import * as z from 'zod';
import { EngineError } from '../domain/errors.ts';
import { SESSION_STATUSES } from '../domain/directory.ts';
import { limits } from '../domain/limits.ts';
import { nearestNames } from '../domain/nearest.ts';
import { EXECUTION_KINDS } from '../domain/session.ts';
import type { RunStatus } from '../domain/session.ts';
import { USER_ID, USER_ID_RULE } from '../domain/user-id.ts';

interface QueryField<T = unknown> {
  readonly schema: z.ZodType<T>;
  /** Description of the allowed values: `"limit" must be …`. */
  readonly expected: string;
  /** May be given without a value: `?ready`. */
  readonly bare: boolean;
  /** All allowed values, if they are names. */
  readonly names?: readonly string[];
}

/** The query parameters of a route, by name. All are optional. */
export type Query = Readonly<Record<string, QueryField>>;
type Values<Q extends Query> = { readonly [Name in keyof Q]?: Q[Name] extends QueryField<infer T> ? T : never };

function field<T>(schema: z.ZodType<T>, expected: string, description: string, bare = false): QueryField<T> {
  return { schema: schema.meta({ description }), expected, bare };
}

/** Digits only: `1e3`, `+1` and `1.0` are rejected. */
function wholeNumber(least: number, most: number, description: string): QueryField<number> {
  const digits = (text: unknown): unknown => (/^\d{1,16}$/.test(String(text)) ? Number(text) : text);
  const range = most === Number.MAX_SAFE_INTEGER ? `from ${least}` : `from ${least} to ${most}`;
  return field(z.preprocess(digits, z.int().min(least).max(most)), `a whole number ${range}`, description);
}

function oneOf<const Names extends readonly [string, ...string[]]>(
  names: Names,
  description: string,
): QueryField<Names[number]> {
  return { ...field(z.enum(names), names.length === 1 ? names[0] : `one of ${names.join(', ')}`, description), names };
}

function flag(description: string): QueryField<boolean> {
  const spellings: Readonly<Record<string, boolean>> = { '': true, '1': true, true: true, '0': false, false: false };
  const read = (text: unknown): unknown => (Object.hasOwn(spellings, String(text)) ? spellings[String(text)] : text);
  return field(z.preprocess(read, z.boolean()), '1, true, 0, false or nothing', description, true);
}

function text(pattern: RegExp, expected: string, description: string): QueryField<string> {
  return field(z.string().regex(pattern), expected, description);
}

function name(description: string): QueryField<string> {
  return text(/^[^\p{Cc}]{1,128}$/u, '1 to 128 characters', description);
}

const STATUSES = ['queued', 'running', 'waiting', 'completed', 'failed', 'cancelled'] as const satisfies RunStatus[];

const limit = wholeNumber(1, limits.pageRows, `Rows of a page, 1 to ${limits.pageRows} (default)`);

/** For routes that stream our own events. */
export const formatQuery = {
  format: oneOf(
    ['full', 'compact'],
    'Form of a stream of events: `compact` leaves out what earlier events of the stream have said; default `full`',
  ),
} as const satisfies Query;

/** For routes without query parameters. */
export const noQuery = {} as const satisfies Query;

export const healthQuery = {
  ready: flag('Return 503 until every configured part answers'),
} as const satisfies Query;

export const eventsQuery = {
  after: wholeNumber(0, Number.MAX_SAFE_INTEGER, 'Number of the last event that the client has'),
  run: text(
    /^run_\w{1,128}$/,
    'the id of a run',
    'Only this run; the stream ends with the end of the run, also if the run waits for approvals or client tools meanwhile',
  ),
  ...formatQuery,
} as const satisfies Query;

export const responseQuery = {
  stream: oneOf(['true', 'false'], '`true` returns a stream of frames instead of the document'),
  starting_after: wholeNumber(0, Number.MAX_SAFE_INTEGER, 'Number of the last frame that the client has'),
} as const satisfies Query;

export const aiQuery = {
  steering: flag(
    'The client knows parts of the type `steering-message` (AI SDK 7): messages that came during a run. Others get them as `data-message`',
  ),
} as const satisfies Query;

export const historyQuery = {
  limit,
  run: text(
    /^run_\w{1,128}$/,
    'the id of a run',
    'The branch that ends with this run. Default: the branch of the head',
  ),
  before: text(
    /^((run_[0-9a-f]{32}_([0-9a-f]{12}_)?)?|seeded_)\d{1,9}$/,
    'the id of a run, or of a seeded message',
    'Id of a run or of a seeded message: `next` of the previous page',
  ),
} as const satisfies Query;

export const runsQuery = {
  limit,
  before: text(
    /^(run_[0-9a-f]{32}_([0-9a-f]{12}_)?)?\d{1,9}$/,
    'the id of a run',
    'Id of a run: `next` of the previous page',
  ),
} as const satisfies Query;

export const artifactsQuery = {
  after: wholeNumber(0, Number.MAX_SAFE_INTEGER, 'Start of the page: `next` of the previous page'),
} as const satisfies Query;

export const workspaceQuery = {
  archive: oneOf(['zip'], '`zip` returns the files as one ZIP file instead of the list'),
  prefix: text(
    new RegExp(`^[^\\p{Cc}\\\\]{1,${limits.workspacePathBytes + 1}}$`, 'u'),
    'the path of a folder',
    'Only the files in this folder, such as `data/`',
  ),
} as const satisfies Query;

export const writeFileQuery = {
  executable: flag('Whether programs may execute the file. Default: as before; a new file is not executable'),
} as const satisfies Query;

export const removeFileQuery = {
  recursive: flag('Delete a folder with everything in it'),
} as const satisfies Query;

export const transcriptQuery = {
  format: oneOf(['jsonl'], 'The default and only format'),
} as const satisfies Query;

export const deleteQuery = {
  export: flag('Return the whole session as JSON Lines (200), and delete it after it was read completely'),
} as const satisfies Query;

/** Any session route accepts a token in its URL; only the Worker reads it. */
export const tokensQuery = {
  token: text(/^[\w.-]+$/, 'one token', 'Rejected: a token cannot be used to create tokens'),
} as const satisfies Query;

export const messageQuery = {
  if_busy: oneOf(
    ['queue', 'reject', 'steer'],
    '`reject` returns 409 during a run, also while it waits for an approval or a client tool. `steer` shows the message to the model in the next generation of that run; if the run ends before, the message is queued. Otherwise the message is queued, and cancels open approvals and calls',
  ),
  ...formatQuery,
} as const satisfies Query;

export const retryQuery = {
  if_busy: oneOf(['queue', 'reject'], '`reject` returns 409 during a run; otherwise the new run is queued'),
  ...formatQuery,
} as const satisfies Query;

export const executeQuery = {
  agent: name('With a text/plain body: the agent whose tools and permissions apply'),
  stream: oneOf(['true', 'false'], 'With a text/plain body: `false` returns one document'),
  ...formatQuery,
} as const satisfies Query;

export const planQuery = {
  agent: name('With a text/plain body: look names up for this agent'),
} as const satisfies Query;

export const grammarQuery = {
  format: oneOf(['gbnf', 'lark'], 'Format of the grammar; default gbnf'),
  protocol_form: oneOf(['full', 'compact'], "Form of actions; default: the agent's own"),
} as const satisfies Query;

export const executionsQuery = {
  status: oneOf(STATUSES, 'Only executions with this status'),
  kind: oneOf(EXECUTION_KINDS, 'Only executions of this kind'),
  entity_type: oneOf(['agent', 'tool', 'workflow'], 'Another name of `kind`: `agent` is `chat`, `tool` is `execution`'),
  limit,
  before: text(
    /^\d{1,15}(-run_[0-9a-f]{32}_([0-9a-f]{12}_)?\d{1,9})?$/,
    'a time in epoch milliseconds, or `next` of the previous page',
    '`next` of the previous page, or a start time in epoch milliseconds',
  ),
} as const satisfies Query;

export const sessionsQuery = {
  user_id: text(USER_ID, USER_ID_RULE, 'Only sessions of this user; a user token lists its own user'),
  agent: name('Only sessions with this agent'),
  status: oneOf(SESSION_STATUSES, 'Only sessions with this status'),
  limit,
  before: text(
    /^\d{1,15}-ses_[0-9a-f]{32}$/,
    '`next` of the previous page',
    'Start of the page: `next` of the previous page',
  ),
} as const satisfies Query;

export const memoryQuery = {
  user_id: text(USER_ID, USER_ID_RULE, 'The user; required with an API key. A user token is for its own user'),
} as const satisfies Query;

export const approvalsQuery = {
  limit: wholeNumber(1, limits.approvalRows, `Rows of a page, 1 to ${limits.approvalRows} (default)`),
  after: text(
    /^\d{1,15}-apr_[0-9a-f]{32}$/,
    '`next` of the previous page',
    'Start of the page: `next` of the previous page',
  ),
} as const satisfies Query;

export const schedulesQuery = {
  count: wholeNumber(1, 99, 'Number of start times for each; default 5'),
} as const satisfies Query;

export const webhookQuery = {
  owner: name('Namespace that owns the workflow; default: that of the first admin key'),
} as const satisfies Query;

export const filesQuery = {
  path: text(
    /^[^\p{Cc}]{1,255}$/u,
    'a path of 1 to 255 characters',
    'Path of a single file; default: derived from its kind and name',
  ),
} as const satisfies Query;

export const manifestQuery = {
  version: name("The author's version"),
  revision: wholeNumber(1, 999_999_999, 'Revision of the manifest, from 1'),
} as const satisfies Query;

/**
 * Parses a route's query parameters.
 *
 * @param others what happens to parameters that are not declared: clients of other protocols may send theirs
 * @throws EngineError `invalid_request` for a parameter that is unknown (with the nearest known name), repeated, empty
 *   or invalid
 */
export function readQuery<const Q extends Query>(
  query: Q,
  url: string,
  others: 'refused' | 'ignored' = 'refused',
): Values<Q> {
  const values: Record<string, unknown> = {};
  const { searchParams } = new URL(url);
  for (const [key, value] of searchParams) {
    const known = Object.hasOwn(query, key) ? query[key] : undefined;
    if (known === undefined && others === 'ignored') continue;
    if (known === undefined) throw unknownParameter(key, Object.keys(query));
    if (Object.hasOwn(values, key)) throw wrong(key, `"${key}" is given more than once; expected ${known.expected}`);
    if (value === '' && !known.bare) throw wrong(key, `"${key}" is empty; expected ${known.expected}`);
    const parsed = known.schema.safeParse(value);
    if (!parsed.success) {
      const [near] = nearestNames(value, known.names ?? []);
      const hint = near === undefined ? '' : ` (did you mean "${near}"?)`;
      throw wrong(key, `"${key}" must be ${known.expected}, not "${excerpt(value)}"${hint}`);
    }
    values[key] = parsed.data;
  }
  return values as Values<Q>;
}

function unknownParameter(key: string, known: readonly string[]): EngineError {
  const near = nearestNames(key, known);
  const hint =
    near.length > 0
      ? `did you mean "${near[0]}"?`
      : known.length === 0
        ? 'this route has none'
        : `known: ${known.join(', ')}`;
  return wrong(excerpt(key), `Unknown query parameter "${excerpt(key)}" (${hint})`);
}

function wrong(key: string, message: string): EngineError {
  return new EngineError('invalid_request', message, { issues: [{ path: key, message }] });
}

function excerpt(value: string): string {
  return value.slice(0, limits.excerptChars);
}

interface QueryParameter {
  readonly name: string;
  readonly in: 'query';
  readonly description: string;
  readonly allowEmptyValue?: boolean;
  readonly schema: object;
}

/** The fields of a query as OpenAPI parameters. */
export function queryParameters(query: Query): QueryParameter[] {
  return Object.entries(query).map(([key, { schema, bare }]) => {
    const { description = '', $schema: _dialect, ...rest } = z.toJSONSchema(schema, { io: 'output' });
    return { name: key, in: 'query', description, ...(bare ? { allowEmptyValue: true } : {}), schema: rest };
  });
}
