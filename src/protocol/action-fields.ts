/**
 * The fields of an action (P6, P18): from the attributes of its tag and its JSON body to a declaration.
 * Pure: whoever calls knows the place in the text, the ordinal and what came before.
 */
import { ACTION_TYPES } from '../domain/action.ts';
import type { ActionDeclaration, ActionMode, ActionType, Backoff, RetryPolicy } from '../domain/action.ts';
import type { RejectionCode } from '../domain/action.ts';
import { isJsonObject } from '../domain/json.ts';
import type { Json, JsonObject } from '../domain/json.ts';
import { limits } from '../domain/limits.ts';
import type { WarningCode } from '../domain/protocol-event.ts';
import { conditionNames } from './condition.ts';
import { idComplaint } from './ids.ts';
import { parameterReferences } from './references.ts';
import { snakeCase } from './tags.ts';
import type { Attributes } from './tags.ts';

/** What the opening tag alone says. */
export interface ActionHead {
  readonly attributes: Attributes;
  /** Null when the tag names a type that does not exist. */
  readonly type: ActionType | null;
  readonly mode: ActionMode | null;
  readonly name: string | null;
  readonly id: string | null;
}

export interface FieldWarning {
  readonly code: WarningCode;
  readonly message: string;
}

type DeclaredFields = Omit<ActionDeclaration, 'ordinal' | 'id' | 'embeddedInThought' | 'repaired' | 'span'>;

export type ReadFields =
  | { readonly ok: true; readonly fields: DeclaredFields; readonly warnings: readonly FieldWarning[] }
  | { readonly ok: false; readonly code: RejectionCode; readonly message: string };

/** Types whose body without `parameters` is the parameters, and that need no name. */
const SELF_NAMED: ReadonlySet<ActionType> = new Set(['python', 'shell', 'docker', 'llm']);

/** Alias to field. */
const ALIASES: ReadonlyMap<string, string> = new Map([
  ['timeout_seconds', 'timeout'],
  ['condition', 'when'],
  ['arguments', 'parameters'],
  ['params', 'parameters'],
]);
const FIELDS: ReadonlySet<string> = new Set([
  'name',
  'type',
  'mode',
  'id',
  'parameters',
  'output_key',
  'depends_on',
  'wait_for_all',
  'timeout',
  'retry',
  'retry_count',
  'retry_delay_seconds',
  'on_error',
  'skip_on_error',
  'when',
  'priority',
  'idempotency_key',
  'cache_ttl',
]);
/** Fields that a self-named type's body may hold beside its parameters. */
const SCHEDULING_FIELDS: ReadonlySet<string> = new Set(
  [...FIELDS].filter((field) => !['name', 'type', 'mode', 'id', 'parameters'].includes(field)),
);

const MODES: ReadonlyMap<string, ActionMode> = new Map([
  ['sync', 'sync'],
  ['async', 'async'],
  ['fire_and_forget', 'fire_and_forget'],
  ['background', 'fire_and_forget'],
]);

export function readHead(attributes: Attributes): ActionHead {
  const type = attributes.get('type');
  const mode = attributes.get('mode');
  return {
    attributes,
    type: type === undefined ? 'tool' : readType(type),
    mode: mode === undefined ? 'sync' : readMode(mode),
    name: attributes.get('name')?.trim() || null,
    id: attributes.get('id')?.trim() || null,
  };
}

/** The id that the model gave, in the tag or, in the full form, in the body. */
export function givenId(head: ActionHead, body: JsonObject | null): string | null {
  if (body === null || isParametersOnly(head, body)) return head.id;
  const id = Object.hasOwn(body, 'id') ? body['id'] : undefined;
  return typeof id === 'string' || typeof id === 'number' ? String(id).trim() || head.id : head.id;
}

/** The body is the parameters: the compact form, or a self-named type without `parameters`. */
function isParametersOnly(head: ActionHead, body: JsonObject): boolean {
  if (Object.hasOwn(body, 'parameters')) return false;
  if (head.attributes.has('parameters') && Object.keys(body).length === 0) return false;
  if (head.name !== null) return true;
  return head.type !== null && SELF_NAMED.has(head.type);
}

export function readFields(head: ActionHead, body: JsonObject): ReadFields {
  return new FieldReader(head, body).read();
}

class Refusal extends Error {
  readonly code: RejectionCode;
  constructor(code: RejectionCode, message: string) {
    super(message);
    this.code = code;
  }
}

class FieldReader {
  readonly #head: ActionHead;
  readonly #body: JsonObject;
  readonly #given = new Map<string, Json>();
  readonly #warnings: FieldWarning[] = [];
  readonly #conflicts: string[] = [];
  readonly #invalid: string[] = [];

  constructor(head: ActionHead, body: JsonObject) {
    this.#head = head;
    this.#body = body;
  }

  read(): ReadFields {
    try {
      const parametersOnly = isParametersOnly(this.#head, this.#body);
      this.#collectAttributes();
      if (!parametersOnly) this.#collectBody();
      else if (this.#head.name === null) this.#collectScheduling();
      const fields = this.#fields(parametersOnly);
      this.#report(
        'conflicting_field',
        'the tag and the body say different things; the body was taken',
        this.#conflicts,
      );
      this.#report('invalid_field', 'not understood and left out', this.#invalid);
      return { ok: true, fields, warnings: this.#warnings };
    } catch (fault) {
      if (fault instanceof Refusal) return { ok: false, code: fault.code, message: fault.message };
      throw fault;
    }
  }

  #fields(parametersOnly: boolean): DeclaredFields {
    const type = this.#type();
    const name = this.#name(type);
    const parameters = parametersOnly ? this.#body : this.#parameters();
    const when = this.#condition();
    const references = parameterReferences(type, parameters);
    return {
      type,
      mode: this.#mode(),
      name,
      parameters,
      outputKey: this.#outputKey(),
      dependsOn: this.#dependsOn(),
      waitForAll: this.#boolean('wait_for_all') ?? true,
      timeoutMs: this.#seconds('timeout', 0.001),
      retry: this.#retry(),
      onError: this.#onError(),
      when,
      priority: this.#number('priority', Number.isInteger) ?? 0,
      idempotencyKey: this.#idempotencyKey(),
      cacheTtlMs: this.#seconds('cache_ttl', 0),
      references: when === null ? references : [...new Set([...references, ...conditionNames(when)])],
    };
  }

  #collectAttributes(): void {
    const unknown: string[] = [];
    for (const [key, value] of this.#head.attributes) {
      const field = ALIASES.get(key) ?? key;
      if (!FIELDS.has(field)) unknown.push(key);
      // The field's own name wins over its aliases.
      else if (key === field || !this.#given.has(field)) this.#given.set(field, value);
    }
    this.#report('unknown_attribute', 'not part of the protocol; put parameters into the body', unknown);
  }

  #collectBody(): void {
    const unknown: string[] = [];
    const found = new Map<string, Json>();
    for (const [key, value] of Object.entries(this.#body)) {
      const spelled = snakeCase(key);
      const field = ALIASES.get(spelled) ?? spelled;
      if (!FIELDS.has(field)) unknown.push(key);
      else if (!found.has(field) || key === field) found.set(field, value);
    }
    for (const [field, value] of found) this.#prefer(field, value);
    this.#report('unknown_field', 'not part of the protocol and left out; parameters go into "parameters"', unknown);
  }

  #collectScheduling(): void {
    for (const [key, value] of Object.entries(this.#body)) {
      const field = ALIASES.get(key) ?? key;
      if (SCHEDULING_FIELDS.has(field)) this.#prefer(field, value);
    }
  }

  /** The body wins over the tag, but for a name in the tag. */
  #prefer(field: string, value: Json): void {
    if (value === null) return;
    const attribute = this.#given.get(field);
    if (attribute !== undefined && differs(field, attribute, value)) this.#conflicts.push(field);
    if (field !== 'name' || attribute === undefined) this.#given.set(field, value);
  }

  #type(): ActionType {
    const given = this.#given.get('type');
    if (given === undefined) return 'tool';
    const type = typeof given === 'string' ? readType(given) : null;
    if (type !== null) return type;
    throw new Refusal('invalid_action', `type ${show(given)} does not exist (known: ${ACTION_TYPES.join(', ')})`);
  }

  #mode(): ActionMode {
    const given = this.#given.get('mode');
    if (given === undefined) return 'sync';
    const mode = typeof given === 'string' ? readMode(given) : null;
    if (mode === null) this.#refuseValue('mode', given, 'sync, async or fire_and_forget');
    return mode ?? 'sync';
  }

  #name(type: ActionType): string {
    const given = this.#given.get('name');
    if (typeof given === 'string' && given.trim() !== '') return given.trim();
    if (given !== undefined && typeof given !== 'string') {
      throw new Refusal('invalid_action', `name must be a text, not ${show(given)}`);
    }
    if (SELF_NAMED.has(type)) return type;
    throw new Refusal('invalid_action', `the ${type} action has no name: put "name" into the body`);
  }

  #parameters(): JsonObject {
    const given = this.#given.get('parameters');
    if (given === undefined) return {};
    if (isJsonObject(given)) return given;
    // As an attribute, parameters are the text of a JSON object.
    if (typeof given === 'string' && this.#head.attributes.get('parameters') === given) {
      const value = parseJson(given);
      if (isJsonObject(value)) return value;
    }
    throw new Refusal('invalid_action', `parameters must be a JSON object, not ${show(given)}`);
  }

  #outputKey(): string | null {
    const given = this.#given.get('output_key');
    if (given === undefined || given === '') return null;
    const key = typeof given === 'string' ? given.trim().replace(/^\$(?=.)/, '') : String(given);
    const complaint = idComplaint('output_key', key);
    if (complaint !== null) throw new Refusal('invalid_id', complaint);
    return key;
  }

  #dependsOn(): string[] | null {
    const given = this.#given.get('depends_on');
    if (given === undefined) return null;
    const items = typeof given === 'string' ? listOf(given) : Array.isArray(given) ? given : [given];
    if (items === null) return null;
    const ids = items.map((item) => {
      if (typeof item === 'string' || typeof item === 'number') return bareName(String(item));
      throw new Refusal('invalid_action', `depends_on must be a list of ids, not ${show(given)}`);
    });
    return [...new Set(ids.filter((id) => id !== ''))];
  }

  #retry(): RetryPolicy | null {
    const given = this.#given.get('retry');
    const count = this.#number('retry_count', isCount);
    const delay = this.#seconds('retry_delay_seconds', 0);
    const policy = given === undefined ? null : this.#retryPolicy(given);
    if (policy === null && count === null && delay === null) return null;
    const attempts = count === null ? (policy?.maxAttempts ?? limits.retryAttempts) : count + 1;
    if (attempts > limits.maxRetryAttempts) this.#refuseValue('retry', attempts, `at most ${limits.maxRetryAttempts}`);
    return {
      maxAttempts: Math.min(attempts, limits.maxRetryAttempts),
      backoff: policy?.backoff ?? 'exponential',
      delayMs: delay ?? policy?.delayMs ?? limits.retryDelayMs,
      maxDelayMs: policy?.maxDelayMs ?? limits.retryMaxDelayMs,
    };
  }

  #retryPolicy(given: Json): RetryPolicy | null {
    const value = typeof given === 'string' ? parseJson(given) : given;
    const standard: RetryPolicy = {
      maxAttempts: limits.retryAttempts,
      backoff: 'exponential',
      delayMs: limits.retryDelayMs,
      maxDelayMs: limits.retryMaxDelayMs,
    };
    if (typeof value === 'boolean') return value ? standard : { ...standard, maxAttempts: 1 };
    if (typeof value === 'number' && isCount(value)) return { ...standard, maxAttempts: Math.max(1, value) };
    if (!isJsonObject(value)) {
      this.#refuseValue('retry', given, 'a number or an object with max_attempts, backoff, delay, max_delay');
      return null;
    }
    const { max_attempts: attempts, backoff, delay, max_delay: maxDelay } = value;
    if (attempts !== undefined && !(typeof attempts === 'number' && isCount(attempts) && attempts > 0)) {
      this.#refuseValue('retry.max_attempts', attempts, 'a whole number from 1');
    }
    if (backoff !== undefined && !isBackoff(backoff)) {
      this.#refuseValue('retry.backoff', backoff, 'none, linear or exponential');
    }
    return {
      maxAttempts: typeof attempts === 'number' && isCount(attempts) ? Math.max(1, attempts) : standard.maxAttempts,
      backoff: isBackoff(backoff) ? backoff : standard.backoff,
      delayMs: milliseconds(delay, 0) ?? standard.delayMs,
      maxDelayMs: milliseconds(maxDelay, 0) ?? standard.maxDelayMs,
    };
  }

  #onError(): 'fail' | 'skip' | 'retry' | null {
    const given = this.#given.get('on_error');
    const skip = this.#boolean('skip_on_error') ?? false;
    if (given === undefined) return skip ? 'skip' : null;
    const value = typeof given === 'string' ? given.trim().toLowerCase() : given;
    if (value === 'fail' || value === 'skip' || value === 'retry') return value;
    this.#refuseValue('on_error', given, 'fail, skip or retry');
    return skip ? 'skip' : null;
  }

  #condition(): string | null {
    const given = this.#given.get('when');
    if (given === undefined) return null;
    if (typeof given === 'boolean') return String(given);
    if (typeof given === 'string') return given.trim() === '' ? null : given.trim();
    // Running unconditionally what was meant to be conditional is worse than not running it.
    throw new Refusal('invalid_action', `when must be a CEL expression in a text, not ${show(given)}`);
  }

  #idempotencyKey(): string | null {
    const given = this.#given.get('idempotency_key');
    if (given === undefined) return null;
    const key = typeof given === 'string' || typeof given === 'number' ? String(given) : '';
    if (key !== '' && key.length <= limits.idempotencyKeyChars) return key;
    throw new Refusal(
      'invalid_action',
      `idempotency_key must be a text of 1 to ${limits.idempotencyKeyChars} characters, not ${show(given)}`,
    );
  }

  #boolean(field: string): boolean | null {
    const given = this.#given.get(field);
    if (given === undefined) return null;
    const value = readBoolean(given);
    if (value === null) this.#refuseValue(field, given, 'true or false');
    return value;
  }

  #number(field: string, accepts: (value: number) => boolean): number | null {
    const given = this.#given.get(field);
    if (given === undefined) return null;
    const value = typeof given === 'string' && given.trim() !== '' ? Number(given) : given;
    if (typeof value === 'number' && accepts(value)) return value;
    this.#refuseValue(field, given, 'a whole number');
    return null;
  }

  #seconds(field: string, least: number): number | null {
    const given = this.#given.get(field);
    if (given === undefined) return null;
    const value = milliseconds(given, least);
    if (value === null) this.#refuseValue(field, given, 'seconds');
    return value;
  }

  #refuseValue(field: string, given: Json, allowed: string): void {
    this.#invalid.push(`${field} ${show(given)} (allowed: ${allowed})`);
  }

  #report(code: WarningCode, what: string, which: readonly string[]): void {
    if (which.length === 0) return;
    const shown = which.slice(0, 8).map((item) => cut(item));
    const more = which.length > shown.length ? ` and ${which.length - shown.length} more` : '';
    this.#warnings.push({ code, message: `${shown.join(', ')}${more}: ${what}` });
  }
}

function readType(given: string): ActionType | null {
  const type = given.trim().toLowerCase();
  if (type === 'context_feed') return 'internal';
  return ACTION_TYPES.find((known) => known === type) ?? null;
}

function readMode(given: string): ActionMode | null {
  const mode = snakeCase(given.trim()).replace(/\s+/g, '_');
  return MODES.get(mode) ?? null;
}

function readBoolean(given: Json): boolean | null {
  if (typeof given === 'boolean') return given;
  if (given === 1 || given === 0) return given === 1;
  switch (typeof given === 'string' ? given.trim().toLowerCase() : '') {
    case 'true':
    case 'yes':
    case '1':
      return true;
    case 'false':
    case 'no':
    case '0':
      return false;
    default:
      return null;
  }
}

/** Seconds as a number, or as a text such as `30`, `1.5s`, `500ms`, `2m`. */
function milliseconds(given: Json | undefined, least: number): number | null {
  let seconds = Number.NaN;
  if (typeof given === 'number') seconds = given;
  else if (typeof given === 'string') {
    const [, digits, unit = 's'] = /^\s*(\d+(?:\.\d+)?)\s*(ms|s|sec|seconds|m|min|minutes)?\s*$/i.exec(given) ?? [];
    if (digits !== undefined) {
      const factor = unit.toLowerCase() === 'ms' ? 0.001 : unit.toLowerCase().startsWith('m') ? 60 : 1;
      seconds = Number(digits) * factor;
    }
  }
  return Number.isFinite(seconds) && seconds >= least ? Math.round(seconds * 1000) : null;
}

/** `["a","b"]`, `['a']`, `[a, b]`, `a, b`, `["a","b"`; null for `null` and `none`. */
function listOf(text: string): string[] | null {
  const inner = text.trim().replace(/^\[/, '').replace(/\]$/, '');
  if (/^(?:null|none|undefined)$/i.test(inner)) return null;
  return inner
    .split(',')
    .map((item) => item.trim().replace(/^["'`]+|["'`]+$/g, ''))
    .filter((item) => item !== '');
}

/** `$id` and `${id}` name the same action as `id`. */
function bareName(item: string): string {
  return item.trim().replace(/^\$\{?([^{}]+)\}?$/, '$1');
}

function differs(field: string, attribute: Json, value: Json): boolean {
  if (field === 'depends_on') return canonicalList(attribute) !== canonicalList(value);
  const text = typeof value === 'object' ? JSON.stringify(value) : String(value);
  const said = String(attribute).trim();
  if (said === text.trim()) return false;
  const parsed = parseJson(said);
  return !(parsed !== undefined && JSON.stringify(parsed) === JSON.stringify(value));
}

function canonicalList(given: Json): string {
  const items = typeof given === 'string' ? (listOf(given) ?? []) : Array.isArray(given) ? given : [given];
  return JSON.stringify(items.map((item) => bareName(String(item))));
}

function parseJson(text: string): Json | undefined {
  try {
    return JSON.parse(text) as Json;
  } catch {
    return undefined;
  }
}

function isCount(value: number): boolean {
  return Number.isSafeInteger(value) && value >= 0;
}

function isBackoff(value: Json | undefined): value is Backoff {
  return value === 'none' || value === 'linear' || value === 'exponential';
}

function show(value: Json): string {
  return cut(JSON.stringify(value));
}

function cut(text: string): string {
  return text.length > limits.excerptChars ? `${text.slice(0, limits.excerptChars)}…` : text;
}
