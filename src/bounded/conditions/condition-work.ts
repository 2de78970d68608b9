/**
 * Charges a condition for its work (S9). The library limits only the syntax, so each node of the syntax tree reports
 * here before it is evaluated, and each operator and function reports its values before it runs. Here also null gets its
 * meaning (D4).
 *
 * Relies on two members of the library's nodes (its version is pinned for this): `evaluate(…)` visits a node, and
 * `handle(…)`, set by its type check, does the node's work with the values of its parts.
 */
import type { ASTNode } from '@marcbachmann/cel-js';
import { isJsonObject } from '../../domain/json.ts';
import type { Json } from '../../domain/json.ts';
import { limits } from '../../domain/limits.ts';
import type { WorkMeter } from '../../domain/work.ts';
import { asksTruth, isHas, isNoSuchMember, resultOfNull } from './null-values.ts';
import type { LibraryNode } from './null-values.ts';

/** Functions read a text once or twice, some by code points. */
const CHARS_PER_STEP = 4;
/** The cost of a search may be the product of both lengths. */
const SEARCH_CHARS_PER_STEP = 256;
const SEARCHES = new Set(['contains', 'indexOf', 'lastIndexOf']);
/** These read the start or the end only. */
const AFFIXES = new Set(['startsWith', 'endsWith']);
/** Cost of converting a time to another time zone. */
const TIME_ZONE_STEPS = 2_000;

/** Errors of the library include a stack trace and an excerpt of the expression. */
const ERROR_STEPS = 200;
const ITEM_STEPS = 3;
const MEMBER_STEPS = 8;

type Work = (...values: unknown[]) => unknown;

/** What is done around each call of a method of a node. */
interface Around {
  /** @returns the result if the library's method is not needed; otherwise undefined */
  readonly before: (values: unknown[]) => unknown;
  readonly after?: (result: unknown) => unknown;
  /** @returns the result instead of the error; undefined: the error counts */
  readonly failed: (fault: unknown) => unknown;
}

/** What an evaluation charges. */
export type ConditionMeter = Pick<WorkMeter, 'charge' | 'chargeChars'>;

/** Charges every later evaluation of the tree. Call it once per tree. @param isStrict what null means (null-values.ts) */
export function chargeCondition(tree: ASTNode, meter: ConditionMeter, isStrict = false): void {
  const known = new Set<object>();
  /** Nodes whose value is asked to be true or false. */
  const asked = new Set<unknown>();
  // Comprehensions catch the errors of their items and continue.
  const failed = (): undefined => void meter.charge(ERROR_STEPS);
  const visit = (part: unknown): void => {
    if (typeof part !== 'object' || part === null || known.has(part)) return;
    known.add(part);
    if (Array.isArray(part)) for (const item of part) visit(item);
    else if (isNode(part)) {
      for (const child of asksTruth(part)) asked.add(child);
      observe(part, 'evaluate', {
        before: () => void meter.charge(),
        after: (result) => (result === null && asked.has(part) ? false : result),
        failed: (fault) => (isHas(part) && isNoSuchMember(fault) ? false : failed()),
      });
      observe(part, 'handle', {
        before: (values) => {
          chargeWork(part, values, meter);
          return resultOfNull(part, values, isStrict);
        },
        failed,
      });
      visit(part.args);
      // The expansion of a comprehension.
      visit(part.meta['alternate']);
    } else if (Object.getPrototypeOf(part) === Object.prototype)
      for (const member of Object.values(part)) visit(member);
  };
  visit(tree);
}

function isNode(part: object): part is LibraryNode {
  return 'op' in part;
}

/** Surrounds each call of a method, even if the library sets or replaces the method later. */
function observe(node: LibraryNode, member: 'evaluate' | 'handle', { before, after, failed }: Around): void {
  let work = node[member];
  const observed: Work = (...values) => {
    const known = before(values);
    if (known !== undefined) return known;
    try {
      const result = work?.apply(node, values);
      return after === undefined ? result : after(result);
    } catch (fault) {
      const instead = failed(fault);
      if (instead !== undefined) return instead;
      throw fault;
    }
  };
  Object.defineProperty(node, member, {
    get: () => (work === undefined ? undefined : observed),
    set: (replacement: Work) => {
      work = replacement;
    },
  });
}

function chargeWork({ op, args }: LibraryNode, values: readonly unknown[], meter: ConditionMeter): void {
  const [left, right] = values;
  switch (op) {
    case '==':
    case '!=':
      return chargeComparison(left, right, meter);
    case 'in':
      meter.charge(lengthOf(right));
      if (Array.isArray(right)) for (const item of right) chargeComparison(left, item, meter);
      return;
    case '+':
    case '<':
    case '<=':
    case '>':
    case '>=':
      return meter.charge((lengthOf(left) + lengthOf(right)) / CHARS_PER_STEP);
    case 'comprehension':
      return meter.charge(ITEM_STEPS * lengthOf(left));
    case 'call':
    case 'rcall':
      return chargeCall(String((args as unknown[])[0]), left as unknown[], meter);
    default:
  }
}

function chargeCall(name: string, values: readonly unknown[], meter: ConditionMeter): void {
  const [subject, sought] = values;
  if (SEARCHES.has(name)) {
    meter.chargeChars(lengthOf(subject));
    return meter.charge((lengthOf(subject) * lengthOf(sought)) / SEARCH_CHARS_PER_STEP);
  }
  if (AFFIXES.has(name)) return meter.chargeChars(lengthOf(sought));
  let length = 0;
  for (const value of values) if (isText(value)) length += value.length;
  meter.charge(length / CHARS_PER_STEP);
  // The library parses a duration with a regular expression of cubic cost.
  if (name === 'duration') meter.charge(length ** 3);
  if (name.startsWith('get') && values.length > 1) meter.charge(TIME_ZONE_STEPS);
}

/** A comparison reads both values as far as they have the same shape. */
function chargeComparison(left: unknown, right: unknown, meter: ConditionMeter): void {
  meter.charge();
  if (typeof left === 'string' && typeof right === 'string') {
    if (left.length === right.length) meter.chargeChars(left.length);
    return;
  }
  if (Array.isArray(left) && Array.isArray(right)) {
    if (left.length !== right.length) return;
    for (const [index, item] of left.entries()) chargeComparison(item, right[index], meter);
  } else if (left instanceof Map && right instanceof Map) {
    if (left.size !== right.size) return;
    for (const [key, item] of left) if (right.has(key)) chargeComparison(item, right.get(key), meter);
  } else if (isPlain(left) && isPlain(right)) {
    const names = Object.keys(left);
    meter.charge(MEMBER_STEPS * names.length);
    for (const name of names) chargeComparison(left[name], right[name], meter);
  } else meter.charge(lengthOf(left) + lengthOf(right));
}

/** Whether a value is the runtime form of a map literal. */
function isPlain(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && Object.getPrototypeOf(value) === Object.prototype;
}

function isText(value: unknown): value is string | Uint8Array {
  return typeof value === 'string' || value instanceof Uint8Array;
}

function lengthOf(value: unknown): number {
  if (isText(value) || Array.isArray(value)) return value.length;
  return value instanceof Map || value instanceof Set ? value.size : 1;
}

/** Which part of a value an expression reads: all of it, or only these members. */
export interface Use {
  isWhole: boolean;
  readonly members: Map<string, Use>;
}

/** Converted values; several conditions may use the same large value. */
const converted = new WeakMap<object, unknown>();

/** Converts the part of a JSON value that an expression reads. */
export function partToCel(value: Json, { isWhole, members }: Use, meter: ConditionMeter): unknown {
  if (isWhole || !isJsonObject(value)) return toCel(value, meter);
  meter.charge(MEMBER_STEPS * members.size);
  const known = [...members].filter(([name]) => Object.hasOwn(value, name));
  return new Map(known.map(([name, use]) => [name, partToCel(value[name] ?? null, use, meter)]));
}

/** Converts a JSON value to a CEL value: integers become `int`, objects lose their prototype. */
export function toCel(value: Json, meter: ConditionMeter, depth = 0): unknown {
  if (typeof value === 'number') return Number.isSafeInteger(value) ? BigInt(value) : value;
  if (typeof value === 'string') meter.chargeChars(value.length);
  if (typeof value !== 'object' || value === null) return value;
  const known = depth === 0 ? converted.get(value) : undefined;
  if (known !== undefined) return known;
  if (depth >= limits.conditionDepth) {
    throw new Error(`a value is nested too deeply (allowed: ${limits.conditionDepth} levels)`);
  }
  let result: unknown;
  if (Array.isArray(value)) {
    meter.charge(value.length);
    result = value.map((item) => toCel(item, meter, depth + 1));
  } else {
    const entries = Object.entries(value);
    meter.charge(MEMBER_STEPS * entries.length);
    result = new Map(entries.map(([key, item]) => [key, toCel(item, meter, depth + 1)]));
  }
  if (depth === 0) converted.set(value, result);
  return result;
}
