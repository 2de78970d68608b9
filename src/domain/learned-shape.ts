/**
 * What the results of a target have in common, learned from one run to the next (L4). Pure.
 *
 * A learned shape is shown in the system prompt of all sessions of the namespace, and the keys of a result are untrusted
 * data. Three rules follow:
 *
 * 1. A key that only one run's results had is stored with `~`. After the first run such keys are shown, unless the object
 *    may be a map of data (`visibleKeys`). Later, a new key is shown once results of two runs had it: a key that is data,
 *    such as a user's name, seldom appears twice, and a single manipulated page changes no prompt. Each key is limited in
 *    words and characters (`isPlainKey`): long enough for `next_page_token`, too short for a sentence.
 * 2. An object that is a map becomes `{…: V}` for good, where V is the shape of its values: if it has
 *    `limits.shapeMapKeys` keys with records of equal shape, more than `limits.shapeKeys` keys with equal values, or if
 *    two results with values of one kind share less than half of their keys. The last rule does not apply to scalar values
 *    when half of the known keys were confirmed, so one unusual result does not replace a known shape.
 * 3. A shape only grows: a key that a result lacks becomes optional (`key?`), and a value of two types gets both. So a shape
 *    settles after a few runs, and the prompt stays the same and cacheable.
 */
import { limits } from './limits.ts';
import { define, isList, isObject, isPlainKey, OTHERS, UNKNOWN } from './shape.ts';
import type { Shape } from './shape.ts';

interface Key {
  readonly name: string;
  readonly isOptional: boolean;
  /** Results of one run only had it. */
  readonly isOnce: boolean;
  readonly value: Shape;
}

type ObjectShape = Exclude<Shape, string | readonly [Shape]>;

/** The shape of one result as the first that is known of its target. */
export function seenOnce(shape: Shape): Shape {
  if (isList(shape)) return [seenOnce(shape[0])];
  if (!isObject(shape)) return shape;
  const keys = keysOf(shape).map((key) => ({ ...key, isOnce: true, value: seenOnce(key.value) }));
  return objectOf(keys, hasOthers(shape));
}

/** What is known from the results of one run, or from two runs that may have known the same. */
export function combined(first: Shape, second: Shape): Shape {
  return join(first, second, false);
}

/**
 * @param earlier what is known from the runs before
 * @param observed what this run's results have in common: the result of `seenOnce` or `combined`
 */
export function learned(earlier: Shape | undefined, observed: Shape): Shape {
  return earlier === undefined ? observed : join(earlier, observed, true);
}

/** The shape of a key's value, whether the key is shown or not. */
export function learnedValue(shape: Shape | undefined, name: string): Shape | undefined {
  if (shape === undefined || !isObject(shape)) return undefined;
  return keysOf(shape).find((key) => key.name === name)?.value ?? (isMap(shape) ? shape[OTHERS] : undefined);
}

/** @param confirms whether a key of both is confirmed by that, because they are from different runs */
function join(first: Shape, second: Shape, confirms: boolean): Shape {
  if (first === UNKNOWN) return second;
  if (second === UNKNOWN) return first;
  if (isObject(first)) return isObject(second) ? joinObjects(first, second, confirms) : first;
  if (isObject(second)) return second;
  if (isList(first)) return isList(second) ? [join(first[0], second[0], confirms)] : first;
  if (isList(second)) return second;
  return [...new Set([...first.split('|'), ...second.split('|')])].sort().join('|');
}

function joinObjects(first: ObjectShape, second: ObjectShape, confirms: boolean): Shape {
  const known = keysOf(first);
  const newer = new Map(keysOf(second).map((key) => [key.name, key]));
  if (isMap(first) || isMap(second) || areEntries(known, newer)) {
    return { [OTHERS]: join(entryOf(first), entryOf(second), confirms) };
  }
  const keys: Key[] = known.map((key) => {
    const other = newer.get(key.name);
    newer.delete(key.name);
    if (other === undefined) return { ...key, isOptional: key.isOptional || !hasOthers(second) };
    return {
      name: key.name,
      isOptional: key.isOptional || other.isOptional,
      isOnce: !confirms && key.isOnce && other.isOnce,
      value: join(key.value, other.value, confirms),
    };
  });
  for (const key of newer.values()) keys.push({ ...key, isOptional: key.isOptional || !hasOthers(first) });
  return objectOf(keys, hasOthers(first) || hasOthers(second));
}

function keysOf(shape: ObjectShape): Key[] {
  return Object.entries(shape).flatMap(([written, value]) => {
    const isOnce = written.endsWith('~');
    const plain = isOnce ? written.slice(0, -1) : written;
    const isOptional = plain.endsWith('?');
    const name = isOptional ? plain.slice(0, -1) : plain;
    return isPlainKey(name) ? [{ name, isOptional, isOnce, value }] : [];
  });
}

function objectOf(keys: readonly Key[], others: boolean): Shape {
  const isTooLong = keys.length > limits.shapeKeys;
  if (isRecordMap(keys) || ((isTooLong || (others && keys.length === limits.shapeKeys)) && areEqual(keys))) {
    return { [OTHERS]: entryOfKeys(keys) };
  }
  const shape: Record<string, Shape> = {};
  for (const { name, isOptional, isOnce, value } of keys.slice(0, limits.shapeKeys)) {
    define(shape, `${name}${isOptional ? '?' : ''}${isOnce ? '~' : ''}`, value);
  }
  if (others || isTooLong) shape[OTHERS] = UNKNOWN;
  return shape;
}

/** `{…: any}` is an object of which nothing is known. */
function isMap(shape: ObjectShape): boolean {
  return keysOf(shape).length === 0 && Object.hasOwn(shape, OTHERS) && shape[OTHERS] !== UNKNOWN;
}

function hasOthers(shape: ObjectShape): boolean {
  return Object.hasOwn(shape, OTHERS);
}

/** The shape of the values of a map. */
function entryOf(shape: ObjectShape): Shape {
  return isMap(shape) ? (shape[OTHERS] ?? UNKNOWN) : entryOfKeys(keysOf(shape));
}

function entryOfKeys(keys: readonly Key[]): Shape {
  return keys.reduce<Shape>((entry, { value }) => combined(entry, value), UNKNOWN);
}

function isRecordMap(keys: readonly Key[]): boolean {
  return keys.filter(({ value }) => isRecord(value)).length >= limits.shapeMapKeys && areEqual(keys);
}

function areEqual(keys: readonly Key[]): boolean {
  const [first, ...rest] = keys.filter(({ value }) => !isEmpty(value));
  if (first === undefined) return false;
  return (
    rest.every(({ value }) => isAlike(first.value, value, true)) &&
    keys.every(({ value }) => value === UNKNOWN || kindOf(value) === kindOf(first.value))
  );
}

/** Whether two objects are maps whose keys are data. */
function areEntries(known: readonly Key[], newer: ReadonlyMap<string, Key>): boolean {
  const common = known.filter(({ name }) => newer.has(name)).length;
  if (common * 2 >= Math.min(known.length, newer.size)) return false;
  const values = [...known, ...newer.values()].map(({ value }) => value);
  const [first, ...rest] = values.filter((value) => !isEmpty(value));
  if (first === undefined || rest.length === 0) return false;
  if (typeof first === 'string' && known.filter(({ isOnce }) => !isOnce).length * 2 >= known.length) return false;
  return (
    rest.every((value) => isAlike(first, value, false)) &&
    values.every((value) => value === UNKNOWN || kindOf(value) === kindOf(first))
  );
}

/** Says nothing about other values of the same map. */
function isEmpty(shape: Shape): boolean {
  if (isList(shape)) return isEmpty(shape[0]);
  return shape === UNKNOWN || (isObject(shape) && Object.keys(shape).length === 0);
}

/** An object with keys, or a list of them. */
function isRecord(shape: Shape): boolean {
  return isList(shape) ? isRecord(shape[0]) : isObject(shape) && Object.keys(shape).length > 0;
}

function kindOf(shape: Shape): string {
  if (isList(shape)) return 'list';
  return isObject(shape) ? 'object' : shape;
}

/** @param equal whether objects have the same keys; otherwise they share half of the keys of the smaller one */
function isAlike(first: Shape, second: Shape, equal: boolean): boolean {
  if (first === UNKNOWN || second === UNKNOWN) return true;
  if (kindOf(first) !== kindOf(second)) return false;
  if (isList(first)) return isList(second) && isAlike(first[0], second[0], equal);
  if (!isObject(first) || !isObject(second)) return true;
  if (isMap(first) || isMap(second)) return isAlike(entryOf(first), entryOf(second), equal);
  const others = new Map(keysOf(second).map((key) => [key.name, key.value]));
  const keys = keysOf(first);
  const common = keys.filter(({ name }) => others.has(name));
  const smaller = Math.min(keys.length, others.size);
  if (!equal) return common.length * 2 >= smaller;
  const isCut = hasOthers(first) || hasOthers(second);
  return (
    common.length === (isCut ? smaller : Math.max(keys.length, others.size)) &&
    common.every(({ name, value }) => isAlike(value, others.get(name) ?? UNKNOWN, true))
  );
}
