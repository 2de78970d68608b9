/** Redacts JSON, whatever is to be hidden: secrets (X3), or matches of patterns (C9). */
import type { Json, JsonObject } from '../domain/json.ts';
import { limits } from '../domain/limits.ts';
import { TooDeep } from './json-size.ts';

interface RedactJsonOptions {
  /** The member of an object that is not text: the base64 of a file. Default: there is none. */
  readonly bytesMember?: (object: JsonObject) => string | null;
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
  const entries = Object.entries(object).map(([name, item]): [string, Json] => [
    redact(name),
    name === bytes ? item : redactJson(item ?? null, redact, options, depth + 1),
  ]);
  const same = entries.every(([name, item]) => Object.hasOwn(value, name) && item === object[name]);
  return same ? value : (Object.fromEntries(entries) as JsonObject);
}
