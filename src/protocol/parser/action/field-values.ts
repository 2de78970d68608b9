/** Reads field values of an action in every accepted spelling (P5, P6, P18). */
import type { ActionMode, Backoff } from '../../../domain/action.ts';
import type { Json } from '../../../domain/json.ts';
import { limits } from '../../../domain/limits.ts';
import { parseExactly } from './exact-json.ts';

const MODES: ReadonlyMap<string, ActionMode> = new Map([
  ['sync', 'sync'],
  ['async', 'async'],
  ['fire_and_forget', 'fire_and_forget'],
  ['background', 'fire_and_forget'],
  ['detached', 'fire_and_forget'],
]);

/** Converts `dependsOn`, `depends-on` and `Depends_On` to `depends_on`. */
export function snakeCase(name: string): string {
  return name
    .replace(/([a-z0-9])([A-Z])/g, '$1_$2')
    .replaceAll('-', '_')
    .toLowerCase();
}

export function readMode(given: Json): ActionMode | null {
  if (typeof given !== 'string') return null;
  return MODES.get(given) ?? MODES.get(snakeCase(given.trim()).replace(/\s+/g, '_')) ?? null;
}

export function readBoolean(given: Json): boolean | null {
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

export function readNumber(given: Json): number | null {
  const value = typeof given === 'string' && given.trim() !== '' ? Number(given) : given;
  return typeof value === 'number' ? value : null;
}

/** Only one run of white space: two adjacent ones would make matching quadratic. */
const DURATION = /^(\d+(?:\.\d+)?)\s*(ms|s|sec|seconds|m|min|minutes)?$/i;

/**
 * Milliseconds from a number of seconds, or from a string such as `30`, `1.5s`, `500ms`, `2m`; null also for more than
 * `limits.durationMs`.
 */
export function readDuration(given: Json | undefined, leastSeconds: number): number | null {
  const seconds = typeof given === 'string' && given !== '' ? secondsIn(given) : given;
  const valid = typeof seconds === 'number' && seconds >= leastSeconds && seconds * 1_000 <= limits.durationMs;
  return valid ? Math.round(seconds * 1_000) : null;
}

function secondsIn(text: string): number {
  const plain = Number(text);
  if (!Number.isNaN(plain)) return plain;
  const [, digits, unit = 's'] = DURATION.exec(text.trim()) ?? [];
  if (digits === undefined) return Number.NaN;
  const factor = unit.toLowerCase() === 'ms' ? 0.001 : unit.toLowerCase().startsWith('m') ? 60 : 1;
  return Number(digits) * factor;
}

/** A common id: no list separators and no quotes. */
const PLAIN_ID = /^[\w.-]+$/;
const ABSENT = /^(?:null|none|undefined)$/i;

/** Ids in a string: `["a","b"]`, `['a']`, `[a, b]`, `a, b`, `["a","b"`. Null for `null` and `none`. */
export function readList(text: string): string[] | null {
  if (PLAIN_ID.test(text)) return ABSENT.test(text) ? null : [text];
  const inner = text.trim().replace(/^\[/, '').replace(/\]$/, '');
  if (ABSENT.test(inner)) return null;
  return inner
    .split(',')
    .map((item) => unquoted(item.trim()))
    .filter((item) => item !== '');
}

const QUOTES = '"\'`';

function unquoted(item: string): string {
  let from = 0;
  let to = item.length;
  while (from < to && QUOTES.includes(item.charAt(from))) from += 1;
  while (to > from && QUOTES.includes(item.charAt(to - 1))) to -= 1;
  return item.slice(from, to);
}

/** Strips reference syntax: `$id` and `${id}` name the action `id`. */
export function bareName(item: string): string {
  const name = item.trim();
  return name.startsWith('$') ? name.replace(/^\$\{?([^{}]+)\}?$/, '$1') : name;
}

export function isBackoff(value: Json | undefined): value is Backoff {
  return value === 'none' || value === 'linear' || value === 'exponential';
}

/** A non-negative safe integer. */
export function isCount(value: Json | undefined): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0;
}

/** @returns undefined if the text is not strict JSON */
export function parseExactJson(text: string): Json | undefined {
  try {
    return parseExactly(text);
  } catch {
    return undefined;
  }
}

const SCALAR = /^(?:true|false|-?(?:0|[1-9]\d{0,14})(?:\.\d{1,15})?)$/;

/** The value of a parameter that is written as an attribute: JSON if it is a number, a boolean, a list or an object. */
export function attributeValue(text: string): Json {
  const mayBeJson = SCALAR.test(text) || text.startsWith('{') || text.startsWith('[');
  return mayBeJson ? (parseExactJson(text) ?? text) : text;
}
