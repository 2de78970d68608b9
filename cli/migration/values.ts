/** Values as the original's loaders read them. */
import type { Json } from '../../src/domain/json.ts';
import type { Draft } from './draft.ts';

/** A number, also written as text; null for other values. */
export function numberOf(value: Json | undefined): number | null {
  if (typeof value === 'number') return value;
  return typeof value === 'string' && /^\s*-?\d+(\.\d+)?\s*$/.test(value) ? Number(value) : null;
}

/** The same as a whole number. */
export function wholeOf(value: Json | undefined): number | null {
  const number = numberOf(value);
  return number === null || !Number.isFinite(number) ? null : Math.trunc(number);
}

/** `a`, `a and b`, `a, b and c`. */
export function words(items: readonly string[]): string {
  if (items.length < 2) return items.join('');
  return `${items.slice(0, -1).join(', ')} and ${items.at(-1)}`;
}

/** Names of rules in `validation` of a parameter, and their JSON Schema keywords. */
export const VALIDATION_RULES: Readonly<Record<string, string>> = {
  min: 'minimum',
  minimum: 'minimum',
  max: 'maximum',
  maximum: 'maximum',
  min_length: 'minLength',
  max_length: 'maxLength',
  min_items: 'minItems',
  max_items: 'maxItems',
  pattern: 'pattern',
  enum: 'enum',
  format: 'format',
};

/** Keeps fields of the original that change nothing here under `metadata`. */
export function keepAsMetadata(draft: Draft, fields: readonly string[]): void {
  const found = fields.filter((name) => draft.has([name]));
  const [first] = found;
  if (first === undefined) return;
  const [have, are] = found.length === 1 ? ['has', 'is'] : ['have', 'are'];
  draft.note([first], `${words(found)} ${have} no effect here, and ${are} kept under metadata`);
  for (const name of found) {
    if (draft.has(['metadata', name])) draft.remove([name]);
    else draft.move([name], ['metadata', name]);
  }
}
