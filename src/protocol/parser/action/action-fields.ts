/**
 * The fields of an action (P6, P18): combines its tag and its JSON body into a declaration.
 * Pure: the caller knows the position in the text, the ordinal and earlier declarations.
 */
import { ACTION_TYPES, DEFAULT_ACTION_TYPE, actionTypeOf, actionSpec } from '../../../domain/action-types.ts';
import type { ActionDeclaration, ActionMode, ActionType, RejectionCode, RetryPolicy } from '../../../domain/action.ts';
import { isJsonObject } from '../../../domain/json.ts';
import type { Json, JsonObject } from '../../../domain/json.ts';
import { limits } from '../../../domain/limits.ts';
import type { WarningCode } from '../../../domain/protocol-event.ts';
import { conditionNames } from '../../../bounded/conditions/condition.ts';
import { idIssue } from '../../references/ids.ts';
import { parameterReferences } from '../../references/references.ts';
import { fieldOf, schedulingFieldOf } from './action-head.ts';
import type { ActionHead, Field, RawFields } from './action-head.ts';
import {
  attributeValue,
  bareName,
  isBackoff,
  isCount,
  parseExactJson,
  readBoolean,
  readDuration,
  readList,
  readMode,
  readNumber,
} from './field-values.ts';

export interface FieldWarning {
  readonly code: WarningCode;
  readonly message: string;
}

/** What the agent's manifest says about the targets of its actions. */
export interface KnownTargets {
  readonly isTool: (name: string) => boolean;
  /** The kind of a parameter; `none` if the target has no such parameter. */
  readonly parameterKind: (type: ActionType, name: string, parameter: string) => 'text' | 'any' | 'none';
}

export type DeclaredFields = Omit<ActionDeclaration, 'ordinal' | 'id' | 'embeddedInThought' | 'repaired' | 'span'>;

export type ReadFields =
  | { readonly ok: true; readonly fields: DeclaredFields; readonly warnings: readonly FieldWarning[] }
  | { readonly ok: false; readonly code: RejectionCode; readonly message: string };

/** How a body is read: as protocol fields (`full`) or as the parameters alone. */
export type BodyForm = 'full' | 'parameters';

/** The body is the parameters in the compact form; also, without a `parameters` key, for a type that needs no name. */
export function bodyForm(head: ActionHead, body: JsonObject): BodyForm {
  const named = head.name !== null || (head.type !== null && !actionSpec(head.type).named);
  if (!named || body['parameters'] !== undefined) return 'full';
  return head.raw.parameters === undefined || Object.keys(body).length > 0 ? 'parameters' : 'full';
}

/** The id that the model gave in the tag or, in the full form, in the body. */
export function declaredId(head: ActionHead, body: JsonObject, form: BodyForm): string | null {
  const { id } = body;
  if (form === 'parameters' || (typeof id !== 'string' && typeof id !== 'number')) return head.id;
  return String(id).trim() || head.id;
}

/**
 * @param mayRefer whether parameters in the body may contain references
 * @param targets what is known about the targets of actions; null if nothing is
 */
export function readFields(
  head: ActionHead,
  body: JsonObject,
  form: BodyForm,
  mayRefer: boolean,
  targets: KnownTargets | null,
): ReadFields {
  return new FieldReader(head, body, form, mayRefer, targets).read();
}

const NO_REFERENCES: readonly string[] = [];

/** Thrown to stop reading fields: the action is rejected. */
class Rejected extends Error {
  readonly code: RejectionCode;
  constructor(code: RejectionCode, message: string) {
    super(message);
    this.code = code;
  }
}

class FieldReader {
  readonly #head: ActionHead;
  readonly #body: JsonObject;
  readonly #form: BodyForm;
  readonly #raw: RawFields;
  readonly #mayRefer: boolean;
  readonly #targets: KnownTargets | null;
  readonly #warnings: FieldWarning[] = [];
  readonly #conflicts: string[] = [];
  readonly #invalid: string[] = [];

  constructor(head: ActionHead, body: JsonObject, form: BodyForm, mayRefer: boolean, targets: KnownTargets | null) {
    this.#head = head;
    this.#body = body;
    this.#form = form;
    this.#raw = head.raw;
    this.#targets = targets;
    // Parameters in the tag are not part of the body's text.
    this.#mayRefer = mayRefer || head.raw.parameters !== undefined || head.unknown.length > 0;
  }

  read(): ReadFields {
    try {
      if (this.#form === 'full') this.#takeBody();
      else if (this.#head.name === null) this.#takeScheduling();
      const fields = this.#fields();
      this.#report('conflicting_field', 'the tag and the body differ; the value in the body was used', this.#conflicts);
      this.#report('invalid_field', 'not valid; ignored', this.#invalid);
      return { ok: true, fields, warnings: this.#warnings };
    } catch (error) {
      if (error instanceof Rejected) return { ok: false, code: error.code, message: error.message };
      throw error;
    }
  }

  #fields(): DeclaredFields {
    const type = this.#type();
    const name = this.#name(type);
    const parameters = this.#withAttributes(type, name, this.#form === 'parameters' ? this.#body : this.#parameters());
    const when = this.#condition();
    let references = this.#mayRefer ? parameterReferences(type, parameters) : NO_REFERENCES;
    if (when !== null) references = [...new Set([...references, ...conditionNames(when)])];
    return {
      type,
      mode: this.#mode(),
      name,
      parameters,
      outputKey: this.#outputKey(),
      dependsOn: this.#dependsOn(),
      waitForAll: this.#boolean('wait_for_all') ?? true,
      timeoutMs: this.#duration('timeout', 0.001),
      retry: this.#retry(),
      onError: this.#onError(),
      when,
      priority: this.#number('priority', Number.isInteger) ?? 0,
      idempotencyKey: this.#idempotencyKey(),
      cacheTtlMs: this.#duration('cache_ttl', 0),
      references,
    };
  }

  #takeBody(): void {
    const body = this.#body;
    const unknown: string[] = [];
    let aliases = null as Map<Field, Json> | null;
    for (const key in body) {
      const field = fieldOf(key);
      if (field === undefined) unknown.push(key);
      else if (key === field) this.#prefer(field, body[key] ?? null);
      else if (aliases?.has(field) !== true) (aliases ??= new Map()).set(field, body[key] ?? null);
    }
    // The canonical field name wins over its other spellings.
    for (const [field, value] of aliases ?? []) if (!Object.hasOwn(body, field)) this.#prefer(field, value);
    this.#report('unknown_field', 'not part of the protocol; ignored. Put parameters in "parameters"', unknown);
  }

  #takeScheduling(): void {
    for (const key in this.#body) {
      const field = schedulingFieldOf(key);
      if (field !== undefined) this.#prefer(field, this.#body[key] ?? null);
    }
  }

  /** The body wins over the tag, except for the name. */
  #prefer(field: Field, value: Json): void {
    if (value === null) return;
    const attribute = this.#raw[field];
    if (attribute !== undefined) {
      if (differs(field, attribute, value)) this.#conflicts.push(field);
      if (field === 'name') return;
    }
    this.#raw[field] = value;
  }

  #type(): ActionType {
    const given = this.#raw.type;
    if (given === undefined) return DEFAULT_ACTION_TYPE;
    const type = typeof given === 'string' ? actionTypeOf(given) : null;
    if (type !== null) return type;
    throw new Rejected('invalid_action', `type ${show(given)} does not exist (known: ${ACTION_TYPES.join(', ')})`);
  }

  #mode(): ActionMode {
    const given = this.#raw.mode;
    if (given === undefined) return 'sync';
    const mode = readMode(given);
    if (mode === null) this.#leaveOut('mode', given, 'sync, async or fire_and_forget');
    return mode ?? 'sync';
  }

  #name(type: ActionType): string {
    const given = this.#raw.name;
    if (typeof given === 'string' && given.trim() !== '') return given.trim();
    if (given !== undefined && typeof given !== 'string') {
      throw new Rejected('invalid_action', `name must be a string, not ${show(given)}`);
    }
    if (!actionSpec(type).named) return type;
    throw new Rejected('invalid_action', `the ${type} action has no name: put "name" in the body`);
  }

  #parameters(): JsonObject {
    const given = this.#raw.parameters;
    if (given === undefined) return {};
    if (isJsonObject(given)) return given;
    // As an attribute, parameters are a JSON object in text form.
    if (typeof given === 'string' && !Object.hasOwn(this.#body, 'parameters')) {
      const value = parseExactJson(given);
      if (isJsonObject(value)) return value;
    }
    throw new Rejected('invalid_action', `parameters must be a JSON object, not ${show(given)}`);
  }

  /** Unknown attributes are parameters of a compact call, unless the body has them. */
  #withAttributes(type: ActionType, name: string, given: JsonObject): JsonObject {
    const { unknown } = this.#head;
    if (unknown.length === 0) return given;
    const taken: string[] = [];
    const parameters: [string, Json][] = [];
    for (const [key, value] of unknown) {
      const kind = this.#form === 'full' ? 'none' : (this.#targets?.parameterKind(type, name, key) ?? 'any');
      if (kind === 'none' || Object.hasOwn(given, key) || taken.includes(key)) continue;
      taken.push(key);
      parameters.push([key, kind === 'text' ? value : attributeValue(value)]);
    }
    const ignored = unknown.flatMap(([key]) => (taken.includes(key) ? [] : [key]));
    this.#report('unknown_attribute', 'not part of the protocol; put parameters in the body', ignored);
    this.#report('unknown_attribute', 'read as parameters; put parameters in the body', taken);
    // fromEntries defines own properties, even for `__proto__`.
    return parameters.length === 0 ? given : Object.fromEntries([...parameters, ...Object.entries(given)]);
  }

  #outputKey(): string | null {
    const given = this.#raw.output_key;
    if (given === undefined || given === '') return null;
    let key = String(given).trim();
    if (key.startsWith('$') && key.length > 1) key = key.slice(1);
    const issue = idIssue('output_key', key);
    if (issue !== null) throw new Rejected('invalid_id', issue);
    return key;
  }

  #dependsOn(): string[] | null {
    const given = this.#raw.depends_on;
    if (given === undefined) return null;
    const items = listOf(given);
    if (items === null) return null;
    const ids: string[] = [];
    for (const item of items) {
      if (typeof item !== 'string' && typeof item !== 'number') {
        throw new Rejected('invalid_action', `depends_on must be a list of ids, not ${show(given)}`);
      }
      const id = bareName(String(item));
      if (id !== '') ids.push(id);
    }
    return ids.length > 1 ? [...new Set(ids)] : ids;
  }

  #retry(): RetryPolicy | null {
    const given = this.#raw.retry;
    const count = this.#number('retry_count', isCount);
    const delay = this.#duration('retry_delay_seconds', 0);
    const policy = given === undefined ? null : this.#retryPolicy(given);
    if (policy === null && count === null && delay === null) return null;
    const attempts = count === null ? (policy?.maxAttempts ?? limits.retryAttempts) : count + 1;
    if (attempts > limits.maxRetryAttempts) this.#leaveOut('retry', attempts, `at most ${limits.maxRetryAttempts}`);
    return {
      maxAttempts: Math.min(attempts, limits.maxRetryAttempts),
      backoff: policy?.backoff ?? 'exponential',
      delayMs: delay ?? policy?.delayMs ?? limits.retryDelayMs,
      maxDelayMs: policy?.maxDelayMs ?? limits.retryMaxDelayMs,
    };
  }

  #retryPolicy(given: Json): RetryPolicy | null {
    const value = typeof given === 'string' ? parseExactJson(given) : given;
    const standard: RetryPolicy = {
      maxAttempts: limits.retryAttempts,
      backoff: 'exponential',
      delayMs: limits.retryDelayMs,
      maxDelayMs: limits.retryMaxDelayMs,
    };
    if (typeof value === 'boolean') return value ? standard : { ...standard, maxAttempts: 1 };
    if (isCount(value)) return { ...standard, maxAttempts: Math.max(1, value) };
    if (!isJsonObject(value)) {
      this.#leaveOut('retry', given, 'a number or an object with max_attempts, backoff, delay, max_delay');
      return null;
    }
    const { max_attempts: attempts, backoff, delay, max_delay: maxDelay } = value;
    if (attempts !== undefined && !(isCount(attempts) && attempts > 0)) {
      this.#leaveOut('retry.max_attempts', attempts, 'an integer of at least 1');
    }
    if (backoff !== undefined && !isBackoff(backoff)) {
      this.#leaveOut('retry.backoff', backoff, 'none, linear or exponential');
    }
    return {
      maxAttempts: isCount(attempts) ? Math.max(1, attempts) : standard.maxAttempts,
      backoff: isBackoff(backoff) ? backoff : standard.backoff,
      delayMs: readDuration(delay, 0) ?? standard.delayMs,
      maxDelayMs: readDuration(maxDelay, 0) ?? standard.maxDelayMs,
    };
  }

  #onError(): 'fail' | 'skip' | 'retry' | null {
    const given = this.#raw.on_error;
    const skip = this.#boolean('skip_on_error') ?? false;
    if (given === undefined) return skip ? 'skip' : null;
    const value = typeof given === 'string' ? given.trim().toLowerCase() : given;
    if (value === 'fail' || value === 'skip' || value === 'retry') return value;
    this.#leaveOut('on_error', given, 'fail, skip or retry');
    return skip ? 'skip' : null;
  }

  #condition(): string | null {
    const given = this.#raw.when;
    if (given === undefined) return null;
    if (typeof given === 'boolean') return String(given);
    if (typeof given === 'string') return given.trim() === '' ? null : given.trim();
    // An action that was meant to be conditional must not run unconditionally.
    throw new Rejected('invalid_action', `when must be a CEL expression in a string, not ${show(given)}`);
  }

  #idempotencyKey(): string | null {
    const given = this.#raw.idempotency_key;
    if (given === undefined) return null;
    const key = typeof given === 'string' || typeof given === 'number' ? String(given) : '';
    if (key !== '' && key.length <= limits.idempotencyKeyChars) return key;
    throw new Rejected(
      'invalid_action',
      `idempotency_key must be a string of 1 to ${limits.idempotencyKeyChars} characters, not ${show(given)}`,
    );
  }

  #boolean(field: Field): boolean | null {
    const given = this.#raw[field];
    if (given === undefined) return null;
    const value = readBoolean(given);
    if (value === null) this.#leaveOut(field, given, 'true or false');
    return value;
  }

  #number(field: Field, accepts: (value: number) => boolean): number | null {
    const given = this.#raw[field];
    if (given === undefined) return null;
    const value = readNumber(given);
    if (value !== null && accepts(value)) return value;
    this.#leaveOut(field, given, 'an integer');
    return null;
  }

  #duration(field: Field, leastSeconds: number): number | null {
    const given = this.#raw[field];
    if (given === undefined) return null;
    const value = readDuration(given, leastSeconds);
    if (value === null) this.#leaveOut(field, given, 'seconds');
    return value;
  }

  /** Ignores a field with an invalid value and reports a warning. */
  #leaveOut(field: string, given: Json, allowed: string): void {
    this.#invalid.push(`${field} ${show(given)} (allowed: ${allowed})`);
  }

  #report(code: WarningCode, what: string, which: readonly string[]): void {
    if (which.length === 0) return;
    const shown = which.slice(0, 8).map((item) => cut(item));
    const more = which.length > shown.length ? ` and ${which.length - shown.length} more` : '';
    this.#warnings.push({ code, message: `${shown.join(', ')}${more}: ${what}` });
  }
}

/** The items of a list in any accepted form; null if the value is not a list. */
function listOf(given: Json): readonly Json[] | null {
  if (typeof given === 'string') return readList(given);
  return Array.isArray(given) ? given : [given];
}

/** Whether tag and body give different values for a field. */
function differs(field: Field, attribute: Json, value: Json): boolean {
  if (field === 'depends_on') return canonicalList(attribute) !== canonicalList(value);
  const text = typeof value === 'object' ? JSON.stringify(value) : String(value);
  const stated = String(attribute).trim();
  if (stated === text.trim()) return false;
  const parsed = parseExactJson(stated);
  return !(parsed !== undefined && JSON.stringify(parsed) === JSON.stringify(value));
}

function canonicalList(given: Json): string {
  return JSON.stringify((listOf(given) ?? []).map((item) => bareName(String(item))));
}

function show(value: Json): string {
  return cut(JSON.stringify(value));
}

function cut(text: string): string {
  return text.length > limits.excerptChars ? `${text.slice(0, limits.excerptChars)}…` : text;
}
