/**
 * The shape of a result: keys and types, never values. Read from a manifest's `returns` or from a result.
 *
 * Keys of a result are data, so its shape contains only short identifiers of few words. Every shape is limited in depth,
 * parts and keys (`limits.shape…`).
 */
import type { Json, JsonObject } from './json.ts';
import { isJsonObject } from './json.ts';
import { limits } from './limits.ts';

/**
 * A type such as `text`, `number`, `boolean` or `any`; a list with the shape of its items; an object with the shape of
 * each key. A key that ends in `?` is optional.
 * The key `…` represents the hidden keys; its shape is the shape of their values.
 */
export type Shape = string | readonly [Shape] | { readonly [key: string]: Shape };

const UNKNOWN = 'any';
const OTHERS = '…';
const KEY = /^[A-Za-z_][A-Za-z0-9_-]*$/;
/** Between words: `_`, `-`, and changes of case as in `pageToken` and `HTMLPage`. */
const WORD_ENDS = /[_-]+|(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])/;
const TYPES: Readonly<Record<string, string>> = { string: 'text', integer: 'number', array: '[any]', object: '{…}' };

/** Whether a key of a result is an identifier that is too short for a sentence. */
function isPlainKey(key: string): boolean {
  return (
    key.length <= limits.shapeKeyChars &&
    KEY.test(key) &&
    key.split(WORD_ENDS).filter((word) => word !== '').length <= limits.shapeKeyWords
  );
}

/** The shape of a result. */
export function shapeOfValue(value: Json): Shape {
  return ofValue(value, 0, { left: limits.shapeParts });
}

interface Parts {
  left: number;
}

function ofValue(value: Json, depth: number, parts: Parts): Shape {
  parts.left -= 1;
  if (value === null) return UNKNOWN;
  if (typeof value === 'string') return 'text';
  if (typeof value !== 'object') return typeof value;
  const isDeep = depth >= limits.shapeDepth;
  if (Array.isArray(value)) {
    if (isDeep) return [UNKNOWN];
    const items = value.slice(0, limits.shapeItems).map((item) => ofValue(item, depth + 1, parts));
    return [items.reduce(merged, UNKNOWN)];
  }
  const shape: Record<string, Shape> = {};
  let keys = 0;
  for (const key in value) {
    if (!Object.hasOwn(value, key)) continue;
    keys += 1;
    if (isDeep || keys > limits.shapeKeys || parts.left <= 0 || !isPlainKey(key)) {
      shape[OTHERS] = UNKNOWN;
      if (isDeep || keys > limits.shapeKeys || parts.left <= 0) break;
    } else define(shape, key, ofValue(value[key] ?? null, depth + 1, parts));
  }
  return shape;
}

/** `__proto__` is a key like any other. */
function define(shape: Record<string, Shape>, key: string, value: Shape): void {
  Object.defineProperty(shape, key, { value, enumerable: true, configurable: true, writable: true });
}

/** The shape of list items of both shapes. */
function merged(first: Shape, second: Shape): Shape {
  if (first === UNKNOWN) return second;
  if (isList(first)) return isList(second) ? [merged(first[0], second[0])] : first;
  if (!isObject(first) || !isObject(second)) return first;
  const shape: Record<string, Shape> = {};
  for (const [key, value] of Object.entries(first)) {
    define(shape, key, Object.hasOwn(second, key) ? merged(value, second[key] ?? UNKNOWN) : value);
  }
  for (const [key, value] of Object.entries(second)) {
    if (Object.hasOwn(shape, key)) continue;
    const isFull = Object.keys(shape).length >= limits.shapeKeys;
    define(shape, isFull ? OTHERS : key, isFull ? UNKNOWN : value);
  }
  return shape;
}

function isList(shape: Shape): shape is readonly [Shape] {
  return Array.isArray(shape);
}

function isObject(shape: Shape): shape is { readonly [key: string]: Shape } {
  return typeof shape === 'object' && !Array.isArray(shape);
}

/** The shape that a JSON Schema describes. */
export function shapeOfSchema(schema: JsonObject): Shape {
  return ofSchema(schema, 0, { left: limits.shapeParts });
}

function ofSchema(schema: Json | undefined, depth: number, parts: Parts): Shape {
  parts.left -= 1;
  if (!isJsonObject(schema)) return UNKNOWN;
  const { enum: options, type, properties, items, additionalProperties: further } = schema;
  if (Array.isArray(options) && options.length > 0) return optionsOf(options);
  if (Array.isArray(type)) {
    const [only, ...others] = type.filter((one) => one !== 'null');
    // What may be null is shown with its members.
    const hasMembers = (only === 'object' && isJsonObject(properties)) || (only === 'array' && isJsonObject(items));
    if (others.length === 0 && hasMembers) return ofSchema({ ...schema, type: only }, depth, parts);
    return type.length === 0 ? UNKNOWN : type.map(typeName).join('|');
  }
  const isDeep = depth >= limits.shapeDepth || parts.left <= 0;
  if (type === 'array' || (type === undefined && isJsonObject(items))) {
    return [isDeep ? UNKNOWN : ofSchema(items, depth + 1, parts)];
  }
  if (type !== 'object' && !(type === undefined && isJsonObject(properties))) return typeName(type);
  if (isDeep || !isJsonObject(properties)) {
    return { [OTHERS]: isDeep || !isJsonObject(further) ? UNKNOWN : ofSchema(further, depth + 1, parts) };
  }
  const required = Array.isArray(schema['required']) ? schema['required'] : null;
  const shape: Record<string, Shape> = {};
  for (const [key, spec] of Object.entries(properties)) {
    if (parts.left <= 0 || Object.keys(shape).length >= limits.shapeKeys) {
      shape[OTHERS] = UNKNOWN;
      break;
    }
    const written = KEY.test(key) ? key : JSON.stringify(key.slice(0, limits.excerptChars));
    const isOptional = required !== null && !required.includes(key);
    define(shape, isOptional ? `${written}?` : written, ofSchema(spec, depth + 1, parts));
  }
  return shape;
}

function typeName(type: Json | undefined): string {
  return typeof type === 'string' ? (TYPES[type] ?? type) : UNKNOWN;
}

function optionsOf(options: readonly Json[]): string {
  const shown = options
    .slice(0, limits.shapeItems)
    .map((option) => JSON.stringify(option).slice(0, limits.excerptChars));
  return [...shown, ...(options.length > shown.length ? [OTHERS] : [])].join('|');
}

/**
 * One line such as `{tickets: [{id: number, title}], total: number}`: a key alone is text. A shape that is too long is
 * shown less deep.
 */
export function renderShape(shape: Shape): string {
  for (let depth: number = limits.shapeDepth + 1; depth > 0; depth -= 1) {
    const text = rendered(shape, depth);
    if (text.length <= limits.shapeChars) return text;
  }
  const text = rendered(shape, 1);
  return `${text.slice(0, text.lastIndexOf(',', limits.shapeChars))}, ${OTHERS}${isObject(shape) ? '}' : ''}`;
}

function rendered(shape: Shape, depth: number): string {
  if (typeof shape === 'string') return shape;
  if (isList(shape)) return depth <= 0 ? `[${OTHERS}]` : `[${rendered(shape[0], depth - 1)}]`;
  if (depth <= 0) return `{${OTHERS}}`;
  const parts = Object.entries(shape).map(([key, value]) => {
    const isAlone = value === 'text' || (key === OTHERS && value === UNKNOWN);
    return isAlone ? key : `${key}: ${rendered(value, depth - 1)}`;
  });
  return `{${parts.join(', ')}}`;
}
