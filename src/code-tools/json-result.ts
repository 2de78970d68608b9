/** What a code tool returns, as JSON (K2). Everything that JSON cannot hold is an error that names the place. */
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
  return value === undefined ? null : copy(value, 'the result', []);
}

function copy(value: unknown, place: string, above: readonly object[]): Json {
  switch (typeof value) {
    case 'string':
      return value.toWellFormed();
    case 'boolean':
      return value;
    case 'number':
      if (Number.isFinite(value)) return value;
      throw new NotJson(`${place} is ${value}`);
    case 'object':
      return value === null ? null : copyObject(value, place, above);
    default:
      throw new NotJson(`${place} is a ${typeof value}`);
  }
}

function copyObject(value: object, place: string, above: readonly object[]): Json {
  if (above.includes(value)) throw new NotJson(`${place} contains itself`);
  if (above.length >= limits.outcomeDepth)
    throw new NotJson(`${place} is nested more than ${limits.outcomeDepth} deep`);
  const within = [...above, value];
  if ('toJSON' in value && typeof value.toJSON === 'function') {
    const replaced: unknown = (value.toJSON as () => unknown)();
    return replaced === undefined ? null : copy(replaced, place, within);
  }
  if (Array.isArray(value)) {
    return value.map((item: unknown, at) => (item === undefined ? null : copy(item, `${place}[${at}]`, within)));
  }
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype !== null && prototype !== Object.prototype) {
    const name = (value.constructor as { readonly name?: unknown } | undefined)?.name;
    throw new NotJson(`${place} is an instance of ${typeof name === 'string' && name !== '' ? name : 'a class'}`);
  }
  const members = Object.entries(value).filter(([, member]) => member !== undefined);
  return Object.fromEntries(members.map(([name, member]) => [name, copy(member, `${place}.${name}`, within)]));
}
