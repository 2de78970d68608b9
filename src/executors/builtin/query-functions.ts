/**
 * The functions of JMESPath, each charged for its work before it runs. The library checks arguments and does the work,
 * except for functions whose library version takes more than linear or unbounded time; these are implemented here.
 */
import { TreeInterpreter } from '@jmespath-community/jmespath';
import type { compile } from '@jmespath-community/jmespath';
import { jsonChars } from '../../bounded/json-size.ts';
import { indexOfText, lastIndexOfText, splitText } from '../../bounded/text-search.ts';
import { limits } from '../../domain/limits.ts';
import type { WorkMeter } from '../../domain/work.ts';

export type Node = ReturnType<typeof compile>;
export type Value = null | boolean | number | string | Value[] | { [key: string]: Value };

/** Evaluates the expressions that are arguments of functions. */
export interface Interpreter {
  visit(reference: Node, value: Value): Value;
}

export interface Sizes {
  /** Number of members of an object; counted once and cached. */
  keyCount(value: object): number;
}

export interface Functions {
  /** @throws Error for an unknown name or a wrong argument, WorkExceeded */
  call(name: string, values: Value[]): Value;
}

type Runtime = (typeof TreeInterpreter)['runtime'];
/** Reading or writing a member of a large object costs several times as much as a list item. */
export const MEMBER_STEPS = 8;

type Compute = (values: Value[]) => Value;

/** The library exports a single shared instance; each evaluation creates its own. */
const LibraryRuntime = TreeInterpreter.runtime.constructor as new (interpreter: Interpreter) => Runtime;

export function createFunctions(interpreter: Interpreter, sizes: Sizes, meter: WorkMeter): Functions {
  const runtime = new LibraryRuntime(interpreter);
  const { _functionTable: table } = runtime;
  for (const [name, compute] of Object.entries(replacements(interpreter, meter))) {
    const entry = table[name];
    if (entry !== undefined) table[name] = { ...entry, _func: compute };
  }
  return {
    call(name, values) {
      if (!Object.hasOwn(table, name)) throw new Error(`Unknown function: ${name}()`);
      for (const value of values) chargeArgument(value, sizes, meter);
      return runtime.callFunction(name, values as Parameters<Runtime['callFunction']>[1]) as Value;
    },
  };
}

/** Nearly every function reads its arguments once, and the library reads lists to check their types. */
function chargeArgument(value: Value, sizes: Sizes, meter: WorkMeter): void {
  if (typeof value === 'string') meter.chargeChars(value.length);
  else if (Array.isArray(value)) meter.charge(value.length);
  // An expression is also an object, with few members.
  else if (typeof value === 'object' && value !== null) meter.charge(MEMBER_STEPS * sizes.keyCount(value));
}

/** An argument that is an expression (`&name`). The library passes its syntax tree as a value, and has checked its type. */
function expressionOf(argument: Value | undefined): Node {
  return argument as unknown as Node;
}

/** Functions whose work is not a single pass over their arguments. Arguments are checked before they run. */
function replacements(interpreter: Interpreter, meter: WorkMeter): Readonly<Record<string, Compute>> {
  const pad =
    (atStart: boolean): Compute =>
    ([subject, width, filling]) => {
      const [text, length, unit] = [subject as string, width as number, (filling as string | undefined) || ' '];
      if (unit.length > 1) throw new Error('the padding must be one character');
      if (length < 0 || !Number.isInteger(length)) throw new Error('a width must be a whole number of at least 0');
      meter.chargeChars(length);
      if (text === '') return '';
      return atStart ? text.padStart(length, unit) : text.padEnd(length, unit);
    };
  const find =
    (search: (text: string, sought: string) => number): Compute =>
    ([subject, sought, from, to]) => {
      const [text, word] = [subject as string, sought as string];
      if (text === '' || word === '') return null;
      const start = Math.max(wholeNumber(from || 0), 0);
      const end = Math.min(wholeNumber(to || text.length), text.length);
      const at = search(text.slice(start, end), word);
      return at === -1 ? null : at + start;
    };
  const trim =
    (ends: { readonly start: boolean; readonly end: boolean }): Compute =>
    ([subject, characters]) =>
      trimmed(subject as string, (characters as string | undefined) || null, ends);
  const extremeBy = (list: Value[], reference: Node, sign: 1 | -1): Value => {
    let best: number | string = sign * -Infinity;
    let found: Value = null;
    for (const item of list) {
      const key = interpreter.visit(reference, item);
      if (typeof key !== 'number' && typeof key !== 'string') throw new Error('keys must be strings or numbers');
      if (typeof key === 'string') meter.charge(key.length);
      if (sign === 1 ? key > best : key < best) [best, found] = [key, item];
    }
    return found || null;
  };
  return {
    contains: ([subject, sought]) => {
      if (Array.isArray(subject)) {
        if (typeof sought === 'string') chargeComparisons(subject, sought.length, meter);
        return subject.includes(sought ?? null);
      }
      return typeof sought === 'string' ? indexOfText(subject as string, sought) !== -1 : null;
    },
    find_first: find(indexOfText),
    find_last: find(lastIndexOfText),
    from_items: ([list]) => {
      const pairs = list as Value[][];
      meter.charge(MEMBER_STEPS * pairs.length);
      if (pairs.some((pair) => pair.length !== 2 || typeof pair[0] !== 'string')) {
        throw new Error('from_items() needs pairs of a string and a value');
      }
      return Object.fromEntries(pairs as [string, Value][]);
    },
    group_by: ([list, reference]) => {
      const groups = new Map<string, Value[]>();
      for (const item of list as Value[]) {
        const key = interpreter.visit(expressionOf(reference), item ?? {});
        if (typeof key !== 'string') throw new Error('group_by() needs string keys');
        const group = groups.get(key);
        if (group === undefined) {
          meter.charge(MEMBER_STEPS);
          groups.set(key, [item]);
        } else group.push(item);
      }
      return Object.fromEntries(groups);
    },
    // Works on code points, which costs several times as much as a scan.
    length: ([value]) => {
      if (typeof value !== 'string') return Array.isArray(value) ? value.length : Object.keys(value as object).length;
      let count = 0;
      for (let index = 0; index < value.length; index += 1) {
        if ((value.codePointAt(index) ?? 0) > 0xffff) index += 1;
        count += 1;
      }
      return count;
    },
    reverse: ([value]) => {
      if (Array.isArray(value)) return value.toReversed();
      meter.charge((value as string).length);
      return [...(value as string)].toReversed().join('');
    },
    join: ([glue, list]) => {
      const texts = list as string[];
      let chars = (glue as string).length * texts.length;
      for (const text of texts) chars += text.length;
      meter.chargeChars(chars);
      return texts.join(glue as string);
    },
    max: ([list]) => extreme(list as (number | string)[], 1, meter),
    max_by: ([list, reference]) => extremeBy(list as Value[], expressionOf(reference), 1),
    min: ([list]) => extreme(list as (number | string)[], -1, meter),
    min_by: ([list, reference]) => extremeBy(list as Value[], expressionOf(reference), -1),
    pad_left: pad(true),
    pad_right: pad(false),
    replace: ([subject, sought, by, count]) =>
      replaced(subject as string, sought as string, by as string, count as number | undefined, meter),
    split: ([subject, separator, count]) =>
      pieces(subject as string, separator as string, count as number | null | undefined, meter),
    sort: ([list]) => {
      const items = list as (number | string)[];
      chargeSort(items.length, meter);
      if (typeof items[0] === 'string') return (items as string[]).toSorted((a, b) => compareTexts(a, b, meter));
      // Numbers are sorted as strings, as in the library.
      return items.toSorted();
    },
    sort_by: ([list, reference]) => sortedBy(list as Value[], expressionOf(reference), interpreter, meter),
    to_string: ([value]) => {
      if (typeof value === 'string') return value;
      const chars = jsonChars(value, limits.queryResultChars, limits.queryDepth, meter);
      if (chars === Infinity) throw new Error(`the string would be too long (allowed: ${limits.queryResultChars})`);
      meter.chargeChars(chars);
      return JSON.stringify(value);
    },
    trim: trim({ start: true, end: true }),
    trim_left: trim({ start: true, end: false }),
    trim_right: trim({ start: false, end: true }),
    zip: (lists) => {
      const length = Math.min(...lists.map((list) => (list as Value[]).length));
      meter.charge(length * lists.length);
      return Array.from({ length }, (_, index) => lists.map((list) => (list as Value[])[index] ?? null));
    },
  };
}

/** The largest (`sign` 1) or smallest (-1) of numbers, or of strings in locale order. */
function extreme(list: readonly (number | string)[], sign: 1 | -1, meter: WorkMeter): Value {
  let best: number | string | null = null;
  for (const item of list) {
    if (best === null) best = item;
    else if (typeof item === 'number')
      best = sign === 1 ? Math.max(best as number, item) : Math.min(best as number, item);
    else {
      // Locale order costs about ten times as much as a scan.
      meter.charge(Math.min(item.length, (best as string).length));
      if (Math.sign(item.localeCompare(best as string)) === sign) best = item;
    }
  }
  return best;
}

/** Strings of equal length are compared to the end. */
function chargeComparisons(list: readonly Value[], length: number, meter: WorkMeter): void {
  for (const item of list) if (typeof item === 'string' && item.length === length) meter.chargeChars(length);
}

function wholeNumber(value: Value): number {
  if (typeof value !== 'number' || !Number.isInteger(value))
    throw new Error('a position in a string must be a whole number');
  return value;
}

/** Number of pieces or replacements. */
function countOf(value: number): number {
  if (value < 0 || !Number.isInteger(value)) throw new Error('a count must be a whole number of at least 0');
  return value;
}

function replaced(text: string, sought: string, by: string, count: number | undefined, meter: WorkMeter): string {
  if (count === 0) return text;
  if (!count) {
    const parts = splitText(text, sought);
    meter.charge(parts.length);
    meter.chargeChars(text.length + (parts.length - 1) * by.length);
    return parts.join(by);
  }
  let result = text;
  for (let left = countOf(count); left > 0; left -= 1) {
    const at = indexOfText(result, sought);
    if (at === -1) break;
    const [before, after] = [result.slice(0, at), result.slice(at + sought.length)];
    // `$` in the replacement may insert the whole text before or after the match.
    meter.chargeChars(result.length + by.length + (by.split('$').length - 1) * result.length);
    const stands: Readonly<Record<string, string>> = { $$: '$', '$&': sought, '$`': before, "$'": after };
    result = before + by.replaceAll(/\$[$&`']/g, (sign) => stands[sign] ?? sign) + after;
  }
  return result;
}

function pieces(text: string, separator: string, count: number | null | undefined, meter: WorkMeter): Value {
  if (text === '' && separator === '') return [];
  if (separator === '') meter.charge(text.length);
  const limit = count === null || count === undefined ? Infinity : countOf(count);
  if (limit === 0) return [text];
  const parts = splitText(text, separator);
  meter.charge(parts.length);
  if (limit === Infinity) return parts;
  return [...parts.slice(0, limit), parts.slice(limit).join(separator)];
}

function chargeSort(length: number, meter: WorkMeter): void {
  meter.charge(length * Math.ceil(Math.log2(length + 1)));
}

/** By code points. Equal strings count as descending, as in the library, whose order of equal keys depends on it. */
function compareTexts(left: string, right: string, meter: WorkMeter): number {
  const length = Math.min(left.length, right.length);
  let at = 0;
  while (at < length && left.charCodeAt(at) === right.charCodeAt(at)) at += 1;
  meter.chargeChars(at);
  if (at === length) return left.length > right.length ? 1 : -1;
  const [a, b] = [left.charCodeAt(at), right.charCodeAt(at)];
  // A lone surrogate is greater than all other code points.
  if (isSurrogate(a) !== isSurrogate(b)) return isSurrogate(a) ? 1 : -1;
  return a > b ? 1 : -1;
}

function isSurrogate(code: number): boolean {
  return code >= 0xd800 && code <= 0xdfff;
}

/** Computes each key once, not at every comparison. */
function sortedBy(list: Value[], reference: Node, interpreter: Interpreter, meter: WorkMeter): Value[] {
  const keyed = list.map((item) => ({ item, key: interpreter.visit(reference, item) }));
  const type = typeof keyed[0]?.key;
  for (const { key } of keyed) {
    if (typeof key !== 'number' && typeof key !== 'string')
      throw new Error('sort_by() needs keys that are strings or numbers');
    if (typeof key !== type) throw new Error('sort_by() needs keys of one type');
  }
  chargeSort(keyed.length, meter);
  keyed.sort((a, b) =>
    typeof a.key === 'string' ? compareTexts(a.key, b.key as string, meter) : (a.key as number) - (b.key as number),
  );
  return keyed.map(({ item }) => item);
}

const WHITE = /[\s\u0085]/;

/** In one pass; the library's regular expressions take quadratic time on a run of characters. */
function trimmed(
  text: string,
  characters: string | null,
  ends: { readonly start: boolean; readonly end: boolean },
): string {
  const set = characters === null ? null : new Set(characters.split(''));
  const drops = (at: number): boolean => (set === null ? WHITE.test(text.charAt(at)) : set.has(text.charAt(at)));
  let start = 0;
  let end = text.length;
  if (ends.end) while (end > 0 && drops(end - 1)) end -= 1;
  if (ends.start) while (start < end && drops(start)) start += 1;
  return text.slice(start, end);
}
