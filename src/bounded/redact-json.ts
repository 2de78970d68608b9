/** Redacts JSON, whatever is to be hidden: secrets (X3), or matches of patterns (C9). */
import type { Json, JsonObject } from '../domain/json.ts';
import { limits } from '../domain/limits.ts';
import { TooDeep } from './json-size.ts';

interface RedactJsonOptions {
  /** The member of an object that is not text: the base64 of a file. Default: there is none. */
  readonly bytesMember?: (object: JsonObject) => string | null;
  /** A number whose text is redacted becomes a string. Default: numbers stay. */
  readonly numbers?: boolean;
  /** In place of what is deeper than `limits.outcomeDepth`. Default: an error. */
  readonly tooDeep?: Json;
}

/**
 * The value with redacted names and strings; the identical value if nothing was redacted.
 *
 * @throws TooDeep past `limits.outcomeDepth`, because later code walks values without a depth limit
 */
export function redactJson(
  value: Json,
  redact: (text: string) => string,
  options: RedactJsonOptions = {},
  depth = 0,
): Json {
  if (typeof value === 'string') return redact(value);
  if (typeof value === 'number' && options.numbers === true) {
    const text = String(value);
    const safe = redact(text);
    return safe === text ? value : safe;
  }
  if (typeof value !== 'object' || value === null) return value;
  if (depth >= limits.outcomeDepth) {
    if (options.tooDeep !== undefined) return options.tooDeep;
    throw new TooDeep(`the output is nested too deeply (allowed: ${limits.outcomeDepth} levels)`);
  }
  if (Array.isArray(value)) {
    const items = value.map((item) => redactJson(item, redact, options, depth + 1));
    return items.every((item, index) => item === value[index]) ? value : items;
  }
  const object = value as JsonObject;
  const bytes = options.bytesMember?.(object) ?? null;
  const nameOf = distinctNames(object, redact);
  const entries = Object.entries(object).map(([name, item]): [string, Json] => [
    nameOf(name),
    name === bytes ? item : redactJson(item ?? null, redact, options, depth + 1),
  ]);
  const same = entries.every(([name, item]) => Object.hasOwn(value, name) && item === object[name]);
  return same ? value : (Object.fromEntries(entries) as JsonObject);
}

/** Redacted names that would be equal are numbered, so that no member is lost: `[redacted]`, `[redacted 2]`. */
function distinctNames(object: JsonObject, redact: (text: string) => string): (name: string) => string {
  const used = new Set<string>();
  const counts = new Map<string, number>();
  return (name) => {
    const safe = redact(name);
    if (safe === name) return name;
    let count = counts.get(safe) ?? 0;
    let distinct = safe;
    do {
      count += 1;
      distinct = count === 1 ? safe : numbered(safe, count);
    } while (used.has(distinct) || Object.hasOwn(object, distinct));
    counts.set(safe, count);
    used.add(distinct);
    return distinct;
  };
}

function numbered(name: string, count: number): string {
  return name.endsWith(']') ? `${name.slice(0, -1)} ${count}]` : `${name} ${count}`;
}
