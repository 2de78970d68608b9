/** Builds a collection; keeps its own fields unchanged (M1). */
import type { Json, JsonObject } from '../../domain/json.ts';
import type { MonumentDefinition } from '../catalog.ts';
import type { MonumentInput } from '../schema/schema.ts';
import { toBase } from './build-base.ts';

const BASE_FIELDS = new Set([
  'kind',
  'version',
  'name',
  'summary',
  'description',
  'author',
  'state',
  'tags',
  'metadata',
]);

export function toMonument(input: MonumentInput): MonumentDefinition {
  const body: Record<string, Json> = {};
  for (const [field, value] of Object.entries(input)) {
    if (!BASE_FIELDS.has(field)) body[field] = value as Json;
  }
  return { kind: 'Monument', ...toBase(input, {}), body: body satisfies JsonObject };
}
