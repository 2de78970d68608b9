/** An issue of a manifest with its position (M1). */
import type { ManifestProblem } from '../../domain/catalog.ts';
import { excerptOf } from '../../bounded/json-size.ts';
import { limits } from '../../domain/limits.ts';

/** `file:line:column: field: message`, which editors recognise as a link. */
export function formatProblem(problem: ManifestProblem): string {
  const field = problem.field === '' ? '' : `${problem.field}: `;
  return `${problem.file}:${problem.line}:${problem.column}: ${field}${problem.message}`;
}

export type FieldPath = readonly (string | number)[];

/** `['steps', 2, 'name']` -> `steps[2].name`. */
export function fieldName(path: FieldPath): string {
  let name = '';
  for (const step of path) {
    if (typeof step === 'number') name += `[${step}]`;
    else name += name === '' ? step : `.${step}`;
  }
  return name;
}

/** A value as JSON for messages, cut to `limits.excerptChars`. */
export function quoted(value: unknown): string {
  return excerptOf(value, limits.excerptChars);
}

/** `null`, `list`, `map`, `string`, …: the type names that YAML authors use. */
export function typeName(value: unknown): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'list';
  if (typeof value === 'object') return 'map';
  return typeof value;
}
