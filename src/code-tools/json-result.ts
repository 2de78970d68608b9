/** Values of a code tool as JSON: its parsed parameters, and what it returns (K2). Everything that JSON cannot hold is an error that names the place. */
import type { Json } from '../domain/json.ts';
import { limits } from '../domain/limits.ts';

export class NotJson extends Error {
  override readonly name = 'NotJson';
}

/**
 * A copy of the value. `undefined` members of objects are left out, as in JSON.stringify; objects with `toJSON`, such as
 * dates, are replaced by its result.
 *
 * @throws NotJson for a function, a symbol, a bigint, NaN, an instance of a class, a cycle, or too deep a value
 */
export function jsonOf(value: unknown): Json {
  return value === undefined ? null : copy(value, 'the result', { above: [], isExact: false });
}

/**
 * A copy of the value, which must be the same for every reader: nothing is converted. Only `undefined` members are left out.
 *
 * @throws NotJson for all other values than those of JSON
 */
export function exactJsonOf(value: unknown, name: string): Json {
  return copy(value, name, { above: [], isExact: true });
}

interface Within {
  readonly above: readonly object[];
  /** Nothing is converted. */
  readonly isExact: boolean;
}

function copy(value: unknown, place: string, within: Within): Json {
  switch (typeof value) {
    case 'string':
      return value.toWellFormed();
    case 'boolean':
      return value;
    case 'number':
      if (Number.isFinite(value)) return value;
      throw new NotJson(`${place} is ${value}`);
    case 'object':
      return value === null ? null : copyObject(value, place, within);
    default:
      throw new NotJson(`${place} is a ${typeof value}`);
  }
}

function copyObject(value: object, place: string, { above, isExact }: Within): Json {
  if (above.includes(value)) throw new NotJson(`${place} contains itself`);
  if (above.length >= limits.outcomeDepth)
    throw new NotJson(`${place} is nested more than ${limits.outcomeDepth} deep`);
  const within = { above: [...above, value], isExact };
  if (!isExact && 'toJSON' in value && typeof value.toJSON === 'function') {
    const replaced: unknown = (value.toJSON as () => unknown)();
    return replaced === undefined ? null : copy(replaced, place, within);
  }
  if (Array.isArray(value)) {
    return value.map((item: unknown, at) =>
      item === undefined && !isExact ? null : copy(item, `${place}[${at}]`, within),
    );
  }
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype !== null && prototype !== Object.prototype) {
    const name = (value.constructor as { readonly name?: unknown } | undefined)?.name;
    throw new NotJson(`${place} is an instance of ${typeof name === 'string' && name !== '' ? name : 'a class'}`);
  }
  const members = Object.entries(value).filter(([, member]) => member !== undefined);
  return Object.fromEntries(members.map(([name, member]) => [name, copy(member, `${place}.${name}`, within)]));
}
