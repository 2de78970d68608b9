/** From a tag's attributes and a body's JSON to a declaration (P5, P6, P18). */
import { ACTION_MODES, ACTION_TYPES } from '../domain/action.ts';
import type {
  ActionDeclaration,
  ActionMode,
  ActionType,
  Backoff,
  RejectionCode,
  RetryPolicy,
} from '../domain/action.ts';
import type { Json, JsonObject } from '../domain/json.ts';
import { isJsonObject } from '../domain/json.ts';
import { limits } from '../domain/limits.ts';
import type { WarningCode } from '../domain/protocol-event.ts';
import { conditionNames } from './condition.ts';
import { parameterReferences } from './references.ts';
import { readList } from './tags.ts';
import type { AttributeValue } from './tags.ts';

/** Fields of the body; each may stand in the tag as well (P5). */
const FIELDS = [
  'name',
  'parameters',
  'output_key',
  'depends_on',
  'wait_for_all',
  'timeout',
  'timeout_seconds',
  'retry',
  'retry_count',
  'retry_delay_seconds',
  'on_error',
  'skip_on_error',
  'when',
  'condition',
  'priority',
  'idempotency_key',
  'cache_ttl',
] as const;
type Field = (typeof FIELDS)[number];
const FIELD_SET: ReadonlySet<string> = new Set(FIELDS);
const TAG_ONLY: ReadonlySet<string> = new Set(['type', 'mode', 'id']);

/** Types whose body may be the parameters themselves, because their parameters are a known few (P6). */
const OWN_PARAMETERS: ReadonlySet<ActionType> = new Set<ActionType>(['python', 'shell', 'docker', 'llm']);

const TYPE_ALIASES: Readonly<Record<string, ActionType>> = { context_feed: 'internal' };
const MODE_ALIASES: Readonly<Record<string, ActionMode>> = {
  'fire-and-forget': 'fire_and_forget',
  background: 'fire_and_forget',
};

/** What an opening tag says: enough to know the action by, also when its body cannot be read. */
export interface ActionTag {
  readonly attributes: ReadonlyMap<string, AttributeValue>;
  readonly type: ActionType | null;
  readonly mode: ActionMode | null;
  readonly id: string | null;
  readonly name: string | null;
}

export type Warn = (code: WarningCode, message: string) => void;

export interface Refusal {
  readonly code: RejectionCode;
  readonly message: string;
}

export function readActionTag(attributes: ReadonlyMap<string, AttributeValue>): ActionTag {
  const type = single(attributes.get('type'))?.toLowerCase() ?? 'tool';
  const mode = single(attributes.get('mode'))?.toLowerCase() ?? 'sync';
  return {
    attributes,
    type: oneOf(ACTION_TYPES, type) ?? TYPE_ALIASES[type] ?? null,
    mode: oneOf(ACTION_MODES, mode) ?? MODE_ALIASES[mode] ?? null,
    id: single(attributes.get('id')) || null,
    name: single(attributes.get('name')) || null,
  };
}

/** Ids, output keys and feed ids: at most 64 characters, nothing that a tag or a reader could trip over (P12). */
export function isValidId(id: string): boolean {
  return id.length > 0 && id.length <= limits.idChars && !/[<>&"'\s\p{Cc}]/u.test(id);
}

/** Everything but the place in the text. */
type Declared = Omit<ActionDeclaration, 'ordinal' | 'id' | 'embeddedInThought' | 'repaired' | 'span'>;

/** @returns the declaration, or why there is none */
export function readAction(tag: ActionTag, body: JsonObject, warn: Warn): Declared | Refusal {
  const given = single(tag.attributes.get('type')) ?? '';
  if (tag.type === null) {
    return {
      code: 'invalid_action',
      message: `"${cut(given)}" is no action type (allowed: ${ACTION_TYPES.join(', ')})`,
    };
  }
  if (tag.mode === null) {
    const mode = single(tag.attributes.get('mode')) ?? '';
    return { code: 'invalid_action', message: `"${cut(mode)}" is no mode (allowed: ${ACTION_MODES.join(', ')})` };
  }
  const { type } = tag;
  const { fields, parameters } = splitBody(tag, type, body, warn);
  const read = new FieldReader(fields, warn);

  const name = read.text('name') ?? (OWN_PARAMETERS.has(type) ? type : null);
  if (name === null) return { code: 'invalid_action', message: `The action has no "name": say which ${type} it means` };
  if (!isJsonObject(parameters)) {
    return { code: 'invalid_action', message: `"parameters" must be an object, found ${kindOf(parameters)}` };
  }
  const outputKey = read.text('output_key');
  if (outputKey !== null && !isValidId(outputKey)) {
    return {
      code: 'invalid_id',
      message: `output_key "${cut(outputKey)}" must have 1 to ${limits.idChars} characters, none of < > & " ' or white space`,
    };
  }
  const when = read.text('when') ?? read.text('condition');
  const references = new Set(parameterReferences(type, parameters));
  if (when !== null) for (const used of conditionNames(when)) references.add(used);
  const onError =
    read.choice('on_error', ['fail', 'skip', 'retry']) ?? (read.flag('skip_on_error') === true ? 'skip' : null);
  return {
    type,
    mode: tag.mode,
    name,
    parameters,
    outputKey,
    dependsOn: read.list('depends_on'),
    waitForAll: read.flag('wait_for_all') ?? true,
    timeoutMs: read.seconds('timeout') ?? read.seconds('timeout_seconds'),
    retry: read.retry(),
    onError,
    when,
    priority: Math.trunc(read.number('priority') ?? 0),
    idempotencyKey: read.text('idempotency_key'),
    cacheTtlMs: read.seconds('cache_ttl'),
    references: [...references],
  };
}

export function isRefusal(read: Declared | Refusal): read is Refusal {
  return 'code' in read;
}

/** Tells fields from parameters (P6, P18), and puts the tag's attributes under the body's fields (P5). */
function splitBody(
  tag: ActionTag,
  type: ActionType,
  body: JsonObject,
  warn: Warn,
): { fields: ReadonlyMap<Field, Json>; parameters: Json } {
  const fields = new Map<Field, Json>();
  for (const [name, value] of tag.attributes) {
    if (isField(name)) fields.set(name, typeof value === 'string' ? value : [...value]);
    else if (!TAG_ONLY.has(name))
      warn('unknown_attribute', `The tag's attribute "${cut(name)}" means nothing; it was ignored`);
  }
  if (!Object.hasOwn(body, 'parameters') && tag.name !== null && !OWN_PARAMETERS.has(type)) {
    return { fields, parameters: body };
  }
  const own = !Object.hasOwn(body, 'parameters') && OWN_PARAMETERS.has(type);
  const parameters: [string, Json][] = [];
  const unknown: string[] = [];
  for (const [name, value] of Object.entries(body)) {
    if (isField(name)) setField(fields, tag, name, value, warn);
    else if (own) parameters.push([name, value]);
    else unknown.push(name);
  }
  if (unknown.length > 0) {
    const names = unknown.slice(0, 5).map((name) => `"${cut(name)}"`);
    warn(
      'unknown_field',
      `${names.join(', ')} ${names.length === 1 ? 'is no field' : 'are no fields'} of an action (parameters go under "parameters")`,
    );
  }
  return { fields, parameters: own ? Object.fromEntries(parameters) : (fields.get('parameters') ?? {}) };
}

/** The body wins over the tag, but for the name, which was final when the tag closed. */
function setField(fields: Map<Field, Json>, tag: ActionTag, name: Field, value: Json, warn: Warn): void {
  if (fields.has(name) && !sameField(fields.get(name) ?? null, value)) {
    const winner = name === 'name' ? 'the tag' : 'the body';
    warn('conflicting_field', `"${name}" stands in the tag and, differently, in the body; ${winner} counts`);
  }
  if (name === 'name' && tag.name !== null) return;
  fields.set(name, value);
}

function sameField(a: Json, b: Json): boolean {
  const text = (value: Json): string =>
    Array.isArray(value) ? value.map(String).join(',') : typeof value === 'string' ? value : JSON.stringify(value);
  return text(a).replaceAll(/\s/g, '') === text(b).replaceAll(/\s/g, '');
}

/** Reads fields leniently: what has the wrong type is left out, with a warning that says what was expected. */
class FieldReader {
  readonly #fields: ReadonlyMap<Field, Json>;
  readonly #warn: Warn;

  constructor(fields: ReadonlyMap<Field, Json>, warn: Warn) {
    this.#fields = fields;
    this.#warn = warn;
  }

  text(name: Field): string | null {
    const value = this.#fields.get(name) ?? null;
    if (value === null || value === '') return null;
    if (typeof value === 'string') return value;
    if (typeof value === 'number' || typeof value === 'boolean') return String(value);
    return this.#wrong(name, 'a string');
  }

  number(name: Field): number | null {
    const value = this.#fields.get(name) ?? null;
    if (value === null) return null;
    const number = typeof value === 'string' && value.trim() !== '' ? Number(value) : value;
    return typeof number === 'number' && Number.isFinite(number) ? number : this.#wrong(name, 'a number');
  }

  seconds(name: Field): number | null {
    const seconds = this.number(name);
    if (seconds === null) return null;
    return seconds > 0 ? Math.min(seconds * 1_000, limits.maxActionTimeoutMs) : this.#wrong(name, 'seconds above 0');
  }

  flag(name: Field): boolean | null {
    const value = this.#fields.get(name) ?? null;
    if (value === null || typeof value === 'boolean') return value;
    if (value === '' || value === 'true') return true;
    if (value === 'false') return false;
    return this.#wrong(name, 'true or false');
  }

  choice<T extends string>(name: Field, allowed: readonly T[]): T | null {
    const value = this.#fields.get(name) ?? null;
    if (value === null) return null;
    return oneOf(allowed, value) ?? this.#wrong(name, allowed.join(', '));
  }

  list(name: Field): readonly string[] | null {
    const value = this.#fields.get(name) ?? null;
    if (value === null) return null;
    if (typeof value === 'string') return readList(value.trim().replace(/^\[|\]$/g, ''));
    if (Array.isArray(value) && value.every((item) => typeof item === 'string')) return value;
    return this.#wrong(name, 'a list of ids');
  }

  retry(): RetryPolicy | null {
    const value = this.#fields.get('retry') ?? null;
    const again = this.number('retry_count');
    const delay = this.number('retry_delay_seconds');
    const base: RetryPolicy = {
      maxAttempts: 1,
      backoff: 'exponential',
      delayMs: delay === null || delay < 0 ? limits.retryDelayMs : delay * 1_000,
      maxDelayMs: limits.retryMaxDelayMs,
    };
    if (isJsonObject(value)) return { ...base, ...this.#retryObject(value) };
    const attempts = value === null ? (again === null ? null : again + 1) : this.number('retry');
    if (attempts === null) return null;
    return { ...base, maxAttempts: clampAttempts(attempts) };
  }

  #retryObject(value: JsonObject): Partial<RetryPolicy> {
    const read = new Map(Object.entries(value));
    const found: { -readonly [K in keyof RetryPolicy]?: RetryPolicy[K] } = {};
    const attempts = read.get('max_attempts');
    const backoff = oneOf<Backoff>(['none', 'linear', 'exponential'], read.get('backoff') ?? null);
    const delay = read.get('delay');
    const maxDelay = read.get('max_delay');
    found.maxAttempts = clampAttempts(typeof attempts === 'number' ? attempts : limits.retryAttempts);
    if (backoff !== null) found.backoff = backoff;
    if (typeof delay === 'number' && delay >= 0) found.delayMs = delay * 1_000;
    if (typeof maxDelay === 'number' && maxDelay >= 0) found.maxDelayMs = maxDelay * 1_000;
    return found;
  }

  #wrong(name: Field, expected: string): null {
    const value = this.#fields.get(name) ?? null;
    this.#warn('invalid_field', `"${name}" must be ${expected}, found ${cut(JSON.stringify(value))}; it was ignored`);
    return null;
  }
}

function clampAttempts(attempts: number): number {
  return Math.min(limits.maxRetryAttempts, Math.max(1, Math.trunc(attempts)));
}

function isField(name: string): name is Field {
  return FIELD_SET.has(name);
}

function oneOf<T extends string>(allowed: readonly T[], value: Json): T | null {
  return allowed.find((item) => item === value) ?? null;
}

function single(value: AttributeValue | undefined): string | null {
  if (value === undefined) return null;
  return typeof value === 'string' ? value : value.join(',');
}

function kindOf(value: Json): string {
  return value === null ? 'null' : Array.isArray(value) ? 'a list' : `a ${typeof value}`;
}

export function cut(text: string): string {
  return text.length > limits.excerptChars ? `${text.slice(0, limits.excerptChars)}…` : text;
}
