/** A JSON value as `JSON.parse` returns it. */
export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

/** A JSON object. Read own properties only: keys such as `__proto__` may come from a model. */
export type JsonObject = { [key: string]: Json };

/** Narrows an unknown value to a plain JSON object (not null, not an array). */
export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
