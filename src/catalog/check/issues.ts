/**
 * Validates a document against a schema and reports issues in the author's terms: the field, what was found, what is
 * allowed (M1). An unknown field is an error (K10): without it, the manifest would say something else. `metadata` and
 * fields that begin with `x-` are free at every depth; they are kept and have no effect.
 */
import type { z } from 'zod';
import { isJsonObject } from '../../domain/json.ts';
import type { Json, JsonObject } from '../../domain/json.ts';
import { limits } from '../../domain/limits.ts';
import { nearestNames } from '../../domain/nearest.ts';
import { fieldName, quoted, typeName } from './problem.ts';
import type { FieldPath } from './problem.ts';

export interface Issue {
  readonly path: FieldPath;
  /** Whether the issue is about the field's name or its value. */
  readonly part: 'key' | 'value';
  readonly message: string;
}

export interface Checked<T> {
  /** Null if there are errors. */
  readonly value: T | null;
  readonly errors: readonly Issue[];
  /** Free fields by path (`loop.x-note`) with their values; they are moved to `metadata`. */
  readonly free: JsonObject;
}

/** Whether a field is one of authors and of other programs: it may be anywhere, and has no effect. */
export function isFreeField(name: string): boolean {
  return name === 'metadata' || name.startsWith('x-');
}

/** The message about a field that no schema knows. @param known the fields that are allowed in its place */
export function unknownField(name: string, known: readonly string[]): string {
  const near = nearestNames(name, known);
  return `unknown field.${near.length > 0 ? ` Did you mean ${near.join(' or ')}?` : ''}`;
}

/** Validates `written` without changing it. */
export function check<T>(schema: z.ZodType<T>, written: JsonObject): Checked<T> {
  const value = structuredClone(written);
  const free: JsonObject = {};
  const unknown: Issue[] = [];

  let result = schema.safeParse(value);
  // removing unknown fields allows their siblings to be validated; each round removes at least one
  while (!result.success) {
    let removed = 0;
    for (const { owner, path, key } of unrecognised(result.error.issues, value)) {
      const written = owner[key] ?? null;
      delete owner[key];
      removed += 1;
      const place = [...path, key];
      if (isFreeField(key)) free[fieldName(place)] = written;
      else if (unknown.length < limits.manifestProblems) {
        unknown.push({ path: place, part: 'key', message: unknownField(key, fieldsOf(schema, path, value)) });
      }
    }
    if (removed === 0) break;
    result = schema.safeParse(value);
  }
  if (result.success && unknown.length === 0) return { value: result.data, errors: [], free };
  const issues = result.error?.issues.slice(0, limits.manifestProblems) ?? [];
  return { value: null, errors: [...unknown, ...issues.flatMap((issue) => toIssues(issue, value, []))], free };
}

interface Unrecognised {
  /** The map that has the field; a part of the checked value. */
  readonly owner: JsonObject;
  readonly path: FieldPath;
  readonly key: string;
}

/** Unknown fields, also of the only member of a union that a map can be. */
function unrecognised(
  issues: readonly z.core.$ZodIssue[],
  value: JsonObject,
  parent: FieldPath = [],
): readonly Unrecognised[] {
  return issues.flatMap((issue): readonly Unrecognised[] => {
    const path = [...parent, ...plainPath(issue.path)];
    if (issue.code === 'invalid_union') {
      const found = issue.errors
        .filter((errors) => errors.some(({ code }) => code === 'unrecognized_keys' || code === 'invalid_union'))
        .map((errors) => unrecognised(errors, value, path));
      return found.length === 1 ? (found[0] ?? []) : [];
    }
    const owner = at(value, path);
    if (issue.code !== 'unrecognized_keys' || !isJsonObject(owner)) return [];
    return issue.keys.map((key) => ({ owner, path, key }));
  });
}

function toIssues(issue: z.core.$ZodIssue, value: JsonObject, parent: FieldPath): Issue[] {
  const path = [...parent, ...plainPath(issue.path)];
  // if the value has the shape of one member of a union, report that member's issue
  const branch =
    issue.code === 'invalid_union'
      ? issue.errors.find((errors) => errors.length > 0 && errors.every((error) => error.path.length > 0))
      : undefined;
  if (branch !== undefined) return branch.flatMap((inner) => toIssues(inner, value, path));
  return [{ path, part: 'value', message: sentence(issue, at(value, path)) }];
}

/** What is wrong with a part of a document, as a person who wrote it understands it. @param document that was checked */
export function describeIssue(issue: z.core.$ZodIssue, document: Json): string {
  return sentence(issue, at(document, plainPath(issue.path)));
}

function sentence(issue: z.core.$ZodIssue, found: Json | undefined): string {
  const shown = found === undefined ? 'nothing' : `${typeName(found)} ${quoted(found)}`;
  switch (issue.code) {
    case 'invalid_type': {
      if (issue.expected === 'never') return issue.message;
      const expected = WORDS[issue.expected] ?? issue.expected;
      return found === undefined ? `is missing; it must be ${expected}` : `must be ${expected}, found ${shown}`;
    }
    case 'invalid_value': {
      const allowed = issue.values.map(String);
      return found === undefined
        ? `is missing (allowed: ${allowed.join(', ')})`
        : `${quoted(found)} is not allowed (allowed: ${allowed.join(', ')})${suggestion(found, allowed)}`;
    }
    case 'invalid_union': {
      // a discriminated union names its discriminant; a plain union has its own message
      const choices = choicesOf(issue);
      if (choices !== null) {
        return `${found === undefined ? 'is missing' : `${quoted(found)} is not allowed`} (allowed: ${choices.join(', ')})${suggestion(found, choices)}`;
      }
      return found === undefined ? `is missing; it ${issue.message}` : `${issue.message}, found ${shown}`;
    }
    case 'too_small':
      return `must be ${issue.inclusive === false ? 'more than' : 'at least'} ${issue.minimum}${unit(issue.origin)}, found ${shown}`;
    case 'too_big':
      return `must be ${issue.inclusive === false ? 'less than' : 'at most'} ${issue.maximum}${unit(issue.origin)}, found ${shown}`;
    default:
      return `${issue.message}, found ${shown}`;
  }
}

const WORDS: Readonly<Record<string, string>> = {
  string: 'text',
  number: 'a number',
  int: 'a whole number',
  boolean: 'true or false',
  array: 'a list',
  object: 'a map',
  record: 'a map',
};

function unit(origin: string): string {
  if (origin === 'string') return ' characters long';
  return origin === 'array' ? ' items long' : '';
}

function suggestion(found: Json | undefined, allowed: readonly string[]): string {
  if (typeof found !== 'string') return '';
  const near = nearestNames(found, allowed);
  return near.length > 0 ? `. Did you mean ${near[0]}?` : '';
}

function choicesOf(issue: z.core.$ZodIssueInvalidUnion): string[] | null {
  if (!('options' in issue) || !Array.isArray(issue.options)) return null;
  return issue.options.map(String);
}

function plainPath(path: readonly PropertyKey[]): (string | number)[] {
  return path.map((step) => (typeof step === 'number' ? step : String(step)));
}

function at(value: Json, path: FieldPath): Json | undefined {
  let current: Json | undefined = value;
  for (const step of path) {
    if (Array.isArray(current)) current = current[Number(step)];
    else if (isJsonObject(current) && Object.hasOwn(current, step)) current = current[step];
    else return undefined;
  }
  return current;
}

/** The known field names at `path` of a document, for suggestions; empty if unknown. */
function fieldsOf(schema: z.ZodType, path: FieldPath, document: JsonObject): string[] {
  let current: unknown = schema;
  for (const [depth, step] of path.entries()) {
    // list items have the fields of the list's schema
    if (typeof step !== 'string') continue;
    current = shapeOf(current, at(document, path.slice(0, depth)))?.[step] ?? valuesOf(current);
  }
  return Object.keys(shapeOf(current, at(document, path)) ?? {});
}

type Shape = Readonly<Record<string, unknown>>;

/** The fields of a schema and their schemas; those of a union are the fields of the members that `value` may be. */
function shapeOf(schema: unknown, value: Json | undefined): Shape | null {
  let current = schema;
  while (typeof current === 'object' && current !== null) {
    if ('shape' in current && typeof current.shape === 'object') return current.shape as Shape;
    if ('options' in current && Array.isArray(current.options)) {
      const shapes = current.options.map((option) => shapeOf(option, value)).filter((shape) => shape !== null);
      const possible = shapes.filter(({ type }) => mayBe(type, isJsonObject(value) ? value['type'] : undefined));
      return Object.assign({}, ...possible) as Shape;
    }
    if (!('unwrap' in current) || typeof current.unwrap !== 'function') return null;
    current = (current.unwrap as () => unknown)();
  }
  return null;
}

/** The schema of the values of a map with free names, also as a member of a union; null if there is none. */
function valuesOf(schema: unknown): unknown {
  if (typeof schema !== 'object' || schema === null) return null;
  if ('valueType' in schema) return schema.valueType;
  if ('options' in schema && Array.isArray(schema.options)) {
    return schema.options.map(valuesOf).find((one) => one !== null) ?? null;
  }
  return 'unwrap' in schema && typeof schema.unwrap === 'function'
    ? valuesOf((schema.unwrap as () => unknown)())
    : null;
}

/** Whether a member of a union may be meant by its `type`. */
function mayBe(schema: unknown, type: Json | undefined): boolean {
  if (typeof schema !== 'object' || schema === null || !('values' in schema) || typeof type !== 'string') return true;
  return !(schema.values instanceof Set) || schema.values.has(type);
}
