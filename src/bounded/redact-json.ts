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
    let items = value;
    for (const [index, item] of value.entries()) {
      const safe = redactJson(item, redact, options, depth + 1);
      if (safe === item) continue;
      if (items === value) items = [...value];
      items[index] = safe;
    }
    return items;
  }
  const object = value as JsonObject;
  const bytes = options.bytesMember?.(object) ?? null;
  /** Null as long as nothing was redacted. */
  let entries: [string, Json][] | null = null;
  let distinct: ((safe: string) => string) | null = null;
  const names = Object.keys(object);
  for (const [index, name] of names.entries()) {
    const item = object[name] ?? null;
    const safeName = redact(name);
    const safeItem = name === bytes ? item : redactJson(item, redact, options, depth + 1);
    const isSame = safeName === name && safeItem === item;
    if (entries === null && isSame) continue;
    entries ??= names.slice(0, index).map((earlier) => [earlier, object[earlier] ?? null]);
    distinct ??= distinctNames(object);
    entries.push([safeName === name ? name : distinct(safeName), safeItem]);
  }
  return entries === null ? value : (Object.fromEntries(entries) as JsonObject);
}

/** Redacted names that would be equal are numbered, so that no member is lost: `[redacted]`, `[redacted 2]`. */
function distinctNames(object: JsonObject): (safe: string) => string {
  const used = new Set<string>();
  const counts = new Map<string, number>();
  return (safe) => {
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
