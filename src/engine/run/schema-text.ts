/**
 * Redacts the texts of a JSON Schema (C9). Names of properties and values of enumerations stay, because the answer must use
 * them.
 */
import type { Json, JsonObject } from '../../domain/json.ts';
import { isJsonObject } from '../../domain/json.ts';

const TEXTS = new Set(['title', 'description', 'default', 'examples', 'enumNames', '$comment']);

/** @returns the identical value if nothing was redacted */
export function redactedSchema(schema: Json, redact: (value: Json) => Json): Json {
  if (Array.isArray(schema)) return mapped(schema, (item) => redactedSchema(item, redact));
  if (!isJsonObject(schema)) return schema;
  return members(schema, (name, value) => {
    if (TEXTS.has(name)) return redact(value);
    if (name !== 'properties' || !isJsonObject(value)) return redactedSchema(value, redact);
    return members(value, (_property, inner) => redactedSchema(inner, redact));
  });
}

function mapped(items: Json[], map: (item: Json) => Json): Json {
  const safe = items.map(map);
  return safe.every((item, index) => item === items[index]) ? items : safe;
}

function members(object: JsonObject, map: (name: string, value: Json) => Json): Json {
  const safe = Object.entries(object).map(([name, value]): [string, Json] => [name, map(name, value)]);
  return safe.every(([name, value]) => value === object[name]) ? object : Object.fromEntries(safe);
}
