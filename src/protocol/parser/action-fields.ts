/**
 * The fields of an action (P6, P18): from the attributes of its tag and its JSON body to a declaration.
 * Pure: whoever calls knows the place in the text, the ordinal and what came before.
 */
import { ACTION_TYPES, actionTypeOf, DEFAULT_ACTION_TYPE, factsOf } from '../../domain/action-types.ts';
import type { ActionDeclaration, ActionMode, ActionType, Backoff, RetryPolicy } from '../../domain/action.ts';
import type { RejectionCode } from '../../domain/action.ts';
import { isJsonObject } from '../../domain/json.ts';
import type { Json, JsonObject } from '../../domain/json.ts';
import { limits } from '../../domain/limits.ts';
import type { WarningCode } from '../../domain/protocol-event.ts';
import { conditionNames } from '../references/condition.ts';
import { parseExactly } from './exact-json.ts';
import { idIssue, isUsual } from '../references/ids.ts';
import { parameterReferences } from '../references/references.ts';
import { isSpace, isWordCharacter, readAttributes, snakeCase } from './tags.ts';

// The fields, as places in a list: reading an action touches nearly all of them.
const NAME = 0;
const TYPE = 1;
const MODE = 2;
const ID = 3;
const PARAMETERS = 4;
const OUTPUT_KEY = 5;
const DEPENDS_ON = 6;
const WAIT_FOR_ALL = 7;
const TIMEOUT = 8;
const RETRY = 9;
const RETRY_COUNT = 10;
const RETRY_DELAY_SECONDS = 11;
const ON_ERROR = 12;
const SKIP_ON_ERROR = 13;
const WHEN = 14;
const PRIORITY = 15;
const IDEMPOTENCY_KEY = 16;
const CACHE_TTL = 17;

/** By place; those up to `PARAMETERS` name the action or hold its parameters, the others may stand beside parameters. */
const NAMES: readonly string[] = [
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
];

/** What tag and body say, by place; undefined where neither says anything. */
type Given = (Json | undefined)[];

/** What the opening tag alone says. Belongs to one action: reading its fields uses it up. */
export interface ActionHead {
  /** Null when the tag names a type that does not exist. */
  readonly type: ActionType | null;
  readonly mode: ActionMode | null;
  readonly name: string | null;
  readonly id: string | null;
  readonly given: Given;
  readonly unknown: readonly string[];
}

export interface FieldWarning {
  readonly code: WarningCode;
  readonly message: string;
}

type DeclaredFields = Omit<ActionDeclaration, 'ordinal' | 'id' | 'embeddedInThought' | 'repaired' | 'span'>;

export type ReadFields =
  | { readonly ok: true; readonly fields: DeclaredFields; readonly warnings: readonly FieldWarning[] }
  | { readonly ok: false; readonly code: RejectionCode; readonly message: string };

/** Every spelling of a field to its place. */
const PLACES: ReadonlyMap<string, number> = new Map([
  ...NAMES.map((name, place) => [name, place] as const),
  ['arguments', PARAMETERS],
  ['params', PARAMETERS],
  ['timeout_seconds', TIMEOUT],
  ['condition', WHEN],
]);

function placeOf(key: string): number | undefined {
  // What is in most bodies needs no look into the table.
  switch (key) {
    case 'name':
      return NAME;
    case 'parameters':
      return PARAMETERS;
    case 'output_key':
      return OUTPUT_KEY;
    case 'depends_on':
      return DEPENDS_ON;
    default:
      return PLACES.get(key) ?? PLACES.get(snakeCase(key));
  }
}

const MODES: ReadonlyMap<string, ActionMode> = new Map([
  ['sync', 'sync'],
  ['async', 'async'],
  ['fire_and_forget', 'fire_and_forget'],
  ['background', 'fire_and_forget'],
]);

const NONE: readonly string[] = [];
const NOTHING_GIVEN: Given = NAMES.map(() => undefined);

/** @param tag what stands between `<action` and `>` */
export function readHead(tag: string): ActionHead {
  const given: Given = NOTHING_GIVEN.slice();
  let unknown: string[] | null = null;
  readAttributes(tag, (key, value) => {
    const place = placeOf(key);
    if (place === undefined) (unknown ??= []).push(key);
    else given[place] ??= value;
  });
  return headOf(given, unknown);
}

/**
 * The short way, for tags as they mostly are: ` name="value"` again and again, with nothing in the values
 * that a tag could be taken for. Such a tag ends at its first `>`.
 *
 * @param text in which `start` to `end` is what stands between `<action` and the first `>` behind it
 * @returns null when it is not certain that the tag ends there, or how it is to be read
 */
export function readPlainHead(text: string, start: number, end: number): ActionHead | null {
  const given: Given = NOTHING_GIVEN.slice();
  let unknown: string[] | null = null;
  let index = start;
  for (;;) {
    const before = index;
    while (index < end && isSpace(text.charCodeAt(index))) index += 1;
    if (index === end) break;
    const name = index;
    while (index < end && isWordCharacter(text.charCodeAt(index))) index += 1;
    if (index === name) {
      if (text.charCodeAt(index) === SLASH && index === end - 1) break;
      return null;
    }
    if (name === before || text.charCodeAt(index) !== EQUALS_SIGN || text.charCodeAt(index + 1) !== QUOTE) return null;
    const value = index + 2;
    let quote = value;
    for (; quote < end; quote += 1) {
      const code = text.charCodeAt(quote);
      if (code === QUOTE) break;
      if (code === LESS || code === AMPERSAND || code === OPEN_BRACKET || code === BACKSLASH) return null;
    }
    if (quote === end) return null;
    const place = usualPlace(text, name, index) ?? placeOf(text.slice(name, index));
    if (place === undefined) (unknown ??= []).push(text.slice(name, index));
    else given[place] ??= text.slice(value, quote);
    index = quote + 1;
  }
  return headOf(given, unknown);
}

const QUOTE = 34;
const AMPERSAND = 38;
const SLASH = 47;
const LESS = 60;
const EQUALS_SIGN = 61;
const OPEN_BRACKET = 91;
const BACKSLASH = 92;

/** The attributes that are in most tags, found without making a string of their names, letter by letter. */
function usualPlace(text: string, from: number, to: number): number | undefined {
  const first = text.charCodeAt(from);
  const second = text.charCodeAt(from + 1);
  if (to - from === 2) return first === 105 && second === 100 ? ID : undefined; // id
  if (to - from === 4) {
    const third = text.charCodeAt(from + 2);
    if (text.charCodeAt(from + 3) !== 101) return undefined; // e
    if (first === 110 && second === 97 && third === 109) return NAME; // nam
    if (first === 109 && second === 111 && third === 100) return MODE; // mod
    return first === 116 && second === 121 && third === 112 ? TYPE : undefined; // typ
  }
  if (first === 116 && to - from === 7) return text.startsWith('timeout', from) ? TIMEOUT : undefined; // t
  if (first === 100 && to - from === 10) return text.startsWith('depends_on', from) ? DEPENDS_ON : undefined; // d
  return undefined;
}

function headOf(given: Given, unknown: string[] | null): ActionHead {
  const mode = given[MODE];
  const name = given[NAME];
  const id = given[ID];
  const said = given[TYPE];
  const type = typeof said === 'string' ? actionTypeOf(said) : DEFAULT_ACTION_TYPE;
  if (type !== null && said !== undefined) given[TYPE] = type;
  const known = typeof mode === 'string' ? readMode(mode) : 'sync';
  // The same text, but one that is compared at a glance when the fields are read.
  if (known === mode) given[MODE] = known;
  return {
    type,
    mode: known,
    name: typeof name === 'string' ? trimmed(name) || null : null,
    id: typeof id === 'string' ? trimmed(id) || null : null,
    given,
    unknown: unknown ?? NONE,
  };
}

/** `trim`, asked only where there may be something to trim. */
function trimmed(text: string): string {
  const last = text.charCodeAt(text.length - 1);
  const first = text.charCodeAt(0);
  return isSpace(first) || isSpace(last) || first > 127 || last > 127 ? text.trim() : text;
}

/** The id that the model gave, in the tag or, in the full form, in the body. */
export function givenId(head: ActionHead, body: JsonObject): string | null {
  const { id } = body;
  if (id === undefined || isParametersOnly(head, body)) return head.id;
  return typeof id === 'string' || typeof id === 'number' ? trimmed(String(id)) || head.id : head.id;
}

/** The body is the parameters: the compact form, or a type that needs no name, without `parameters`. */
function isParametersOnly(head: ActionHead, body: JsonObject): boolean {
  if (head.name === null && (head.type === null || factsOf(head.type).named)) return false;
  if (body['parameters'] !== undefined) return false;
  return head.given[PARAMETERS] === undefined || Object.keys(body).length > 0;
}

/** @param mayRefer whether parameters that stand in the body may hold references at all */
export function readFields(head: ActionHead, body: JsonObject, mayRefer: boolean): ReadFields {
  return new FieldReader(head, body, mayRefer).read();
}

const NO_WARNINGS: readonly FieldWarning[] = [];

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
  readonly #given: Given;
  readonly #mayRefer: boolean;
  #warnings: FieldWarning[] | null = null;
  #conflicts: string[] | null = null;
  #invalid: string[] | null = null;

  constructor(head: ActionHead, body: JsonObject, mayRefer: boolean) {
    this.#head = head;
    this.#body = body;
    // Parameters in the tag are text of their own.
    this.#mayRefer = mayRefer || head.given[PARAMETERS] !== undefined;
    this.#given = head.given;
  }

  read(): ReadFields {
    try {
      const { unknown } = this.#head;
      if (unknown.length > 0) {
        this.#report('unknown_attribute', 'not part of the protocol; put parameters into the body', unknown);
      }
      const parametersOnly = isParametersOnly(this.#head, this.#body);
      if (!parametersOnly) this.#takeBody();
      else if (this.#head.name === null) this.#takeScheduling();
      const fields = this.#fields(parametersOnly);
      if (this.#conflicts !== null) {
        this.#report('conflicting_field', 'the tag and the body differ; the body was taken', this.#conflicts);
      }
      if (this.#invalid !== null) this.#report('invalid_field', 'not understood and left out', this.#invalid);
      return { ok: true, fields, warnings: this.#warnings ?? NO_WARNINGS };
    } catch (fault) {
      if (fault instanceof Refusal) return { ok: false, code: fault.code, message: fault.message };
      throw fault;
    }
  }

  #fields(parametersOnly: boolean): DeclaredFields {
    const given = this.#given;
    const type = this.#type();
    const name = this.#name(type);
    const parameters = parametersOnly ? this.#body : this.#parameters();
    const when = this.#condition();
    let references = this.#mayRefer ? parameterReferences(type, parameters) : NONE;
    if (when !== null) references = [...new Set([...references, ...conditionNames(when)])];
    return {
      type,
      mode: this.#mode(),
      name,
      parameters,
      outputKey: given[OUTPUT_KEY] === undefined ? null : this.#outputKey(),
      dependsOn: given[DEPENDS_ON] === undefined ? null : this.#dependsOn(),
      waitForAll: this.#boolean(WAIT_FOR_ALL) ?? true,
      timeoutMs: this.#seconds(TIMEOUT, 0.001),
      retry: this.#retry(),
      onError: this.#onError(),
      when,
      priority: this.#number(PRIORITY, Number.isInteger) ?? 0,
      idempotencyKey: given[IDEMPOTENCY_KEY] === undefined ? null : this.#idempotencyKey(),
      cacheTtlMs: this.#seconds(CACHE_TTL, 0),
      references,
    };
  }

  #takeBody(): void {
    const body = this.#body;
    let unknown: string[] | null = null;
    let aliases: Map<number, Json> | null = null;
    for (const key in body) {
      const place = placeOf(key);
      if (place === undefined) (unknown ??= []).push(key);
      else if (key === NAMES[place]) this.#prefer(place, body[key] ?? null);
      else if (!(aliases ??= new Map<number, Json>()).has(place)) aliases.set(place, body[key] ?? null);
    }
    // The field's own name wins over its other spellings.
    for (const [place, value] of aliases ?? []) {
      if (!Object.hasOwn(body, NAMES[place] ?? '')) this.#prefer(place, value);
    }
    if (unknown !== null) {
      this.#report('unknown_field', 'not part of the protocol and left out; parameters go into "parameters"', unknown);
    }
  }

  #takeScheduling(): void {
    for (const key in this.#body) {
      const place = PLACES.get(key) ?? NAME;
      if (place > PARAMETERS) this.#prefer(place, this.#body[key] ?? null);
    }
  }

  /** The body wins over the tag, but for a name in the tag. */
  #prefer(place: number, value: Json): void {
    if (value === null) return;
    const attribute = this.#given[place];
    if (attribute !== undefined) {
      if (differs(place, attribute, value)) (this.#conflicts ??= []).push(NAMES[place] ?? '');
      if (place === NAME) return;
    }
    this.#given[place] = value;
  }

  #type(): ActionType {
    const given = this.#given[TYPE];
    if (given === undefined) return DEFAULT_ACTION_TYPE;
    const type = typeof given === 'string' ? actionTypeOf(given) : null;
    if (type !== null) return type;
    throw new Refusal('invalid_action', `type ${show(given)} does not exist (known: ${ACTION_TYPES.join(', ')})`);
  }

  #mode(): ActionMode {
    const given = this.#given[MODE];
    if (given === undefined) return 'sync';
    const mode = typeof given === 'string' ? readMode(given) : null;
    if (mode === null) this.#refuseValue('mode', given, 'sync, async or fire_and_forget');
    return mode ?? 'sync';
  }

  #name(type: ActionType): string {
    const given = this.#given[NAME];
    if (typeof given === 'string' && trimmed(given) !== '') return trimmed(given);
    if (given !== undefined && typeof given !== 'string') {
      throw new Refusal('invalid_action', `name must be a text, not ${show(given)}`);
    }
    if (!factsOf(type).named) return type;
    throw new Refusal('invalid_action', `the ${type} action has no name: put "name" into the body`);
  }

  #parameters(): JsonObject {
    const given = this.#given[PARAMETERS];
    if (given === undefined) return {};
    if (isJsonObject(given)) return given;
    // As an attribute, parameters are the text of a JSON object.
    if (typeof given === 'string' && !Object.hasOwn(this.#body, 'parameters')) {
      const value = parseJson(given);
      if (isJsonObject(value)) return value;
    }
    throw new Refusal('invalid_action', `parameters must be a JSON object, not ${show(given)}`);
  }

  #outputKey(): string | null {
    const given = this.#given[OUTPUT_KEY];
    if (given === undefined || given === '') return null;
    let key = trimmed(String(given));
    if (key.startsWith('$') && key.length > 1) key = key.slice(1);
    const issue = idIssue('output_key', key);
    if (issue !== null) throw new Refusal('invalid_id', issue);
    return key;
  }

  #dependsOn(): string[] | null {
    const given = this.#given[DEPENDS_ON];
    if (given === undefined) return null;
    // Nearly always one id.
    if (typeof given === 'string' && isUsual(given) && !isAbsent(given)) return [given];
    const items = typeof given === 'string' ? listOf(given) : Array.isArray(given) ? given : [given];
    if (items === null) return null;
    const ids = new Set<string>();
    for (const item of items) {
      if (typeof item !== 'string' && typeof item !== 'number') {
        throw new Refusal('invalid_action', `depends_on must be a list of ids, not ${show(given)}`);
      }
      const id = bareName(String(item));
      if (id !== '') ids.add(id);
    }
    return [...ids];
  }

  #retry(): RetryPolicy | null {
    const given = this.#given[RETRY];
    const count = this.#number(RETRY_COUNT, isCount);
    const delay = this.#seconds(RETRY_DELAY_SECONDS, 0);
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
    const given = this.#given[ON_ERROR];
    const skip = this.#boolean(SKIP_ON_ERROR) ?? false;
    if (given === undefined) return skip ? 'skip' : null;
    const value = typeof given === 'string' ? given.trim().toLowerCase() : given;
    if (value === 'fail' || value === 'skip' || value === 'retry') return value;
    this.#refuseValue('on_error', given, 'fail, skip or retry');
    return skip ? 'skip' : null;
  }

  #condition(): string | null {
    const given = this.#given[WHEN];
    if (given === undefined) return null;
    if (typeof given === 'boolean') return String(given);
    if (typeof given === 'string') return given.trim() === '' ? null : given.trim();
    // Running unconditionally what was meant to be conditional is worse than not running it.
    throw new Refusal('invalid_action', `when must be a CEL expression in a text, not ${show(given)}`);
  }

  #idempotencyKey(): string | null {
    const given = this.#given[IDEMPOTENCY_KEY];
    if (given === undefined) return null;
    const key = typeof given === 'string' || typeof given === 'number' ? String(given) : '';
    if (key !== '' && key.length <= limits.idempotencyKeyChars) return key;
    throw new Refusal(
      'invalid_action',
      `idempotency_key must be a text of 1 to ${limits.idempotencyKeyChars} characters, not ${show(given)}`,
    );
  }

  #boolean(place: number): boolean | null {
    const given = this.#given[place];
    if (given === undefined) return null;
    const value = readBoolean(given);
    if (value === null) this.#refuseValue(NAMES[place] ?? '', given, 'true or false');
    return value;
  }

  #number(place: number, accepts: (value: number) => boolean): number | null {
    const given = this.#given[place];
    if (given === undefined) return null;
    const value = typeof given === 'string' && given.trim() !== '' ? Number(given) : given;
    if (typeof value === 'number' && accepts(value)) return value;
    this.#refuseValue(NAMES[place] ?? '', given, 'a whole number');
    return null;
  }

  #seconds(place: number, least: number): number | null {
    const given = this.#given[place];
    if (given === undefined) return null;
    const value = milliseconds(given, least);
    if (value === null) this.#refuseValue(NAMES[place] ?? '', given, 'seconds');
    return value;
  }

  #refuseValue(field: string, given: Json, allowed: string): void {
    (this.#invalid ??= []).push(`${field} ${show(given)} (allowed: ${allowed})`);
  }

  #report(code: WarningCode, what: string, which: readonly string[]): void {
    const shown = which.slice(0, 8).map((item) => cut(item));
    const more = which.length > shown.length ? ` and ${which.length - shown.length} more` : '';
    (this.#warnings ??= []).push({ code, message: `${shown.join(', ')}${more}: ${what}` });
  }
}

function readMode(given: string): ActionMode | null {
  if (given === 'async' || given === 'sync') return given;
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

/** As `Number`, which takes its time for a text that it has not seen. */
function readNumber(text: string): number {
  if (text.length > 9) return Number(text);
  let value = 0;
  for (let index = 0; index < text.length; index += 1) {
    const digit = text.charCodeAt(index) - 48;
    if (digit < 0 || digit > 9) return Number(text);
    value = value * 10 + digit;
  }
  return value;
}

/** One run of white space at most: two that meet would share it out in every way. */
const DURATION = /^(\d+(?:\.\d+)?)\s*(ms|s|sec|seconds|m|min|minutes)?$/i;

/** Seconds as a number, or as a text such as `30`, `1.5s`, `500ms`, `2m`. */
function milliseconds(given: Json | undefined, least: number): number | null {
  let seconds = typeof given === 'string' && given !== '' ? readNumber(given) : Number.NaN;
  if (typeof given === 'number') seconds = given;
  else if (typeof given === 'string' && Number.isNaN(seconds)) {
    const [, digits, unit = 's'] = DURATION.exec(given.trim()) ?? [];
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
  if (isAbsent(inner)) return null;
  return inner
    .split(',')
    .map((item) => unquoted(item.trim()))
    .filter((item) => item !== '');
}

function unquoted(item: string): string {
  let from = 0;
  let to = item.length;
  while (from < to && QUOTES.includes(item.charAt(from))) from += 1;
  while (to > from && QUOTES.includes(item.charAt(to - 1))) to -= 1;
  return item.slice(from, to);
}

const QUOTES = '"\'`';

function isAbsent(list: string): boolean {
  return (list.length === 4 || list.length === 9) && /^(?:null|none|undefined)$/i.test(list);
}

/** `$id` and `${id}` name the same action as `id`. */
function bareName(item: string): string {
  const name = item.trim();
  return name.startsWith('$') ? name.replace(/^\$\{?([^{}]+)\}?$/, '$1') : name;
}

function differs(place: number, attribute: Json, value: Json): boolean {
  if (place === DEPENDS_ON) return canonicalList(attribute) !== canonicalList(value);
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
    return parseExactly(text);
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
