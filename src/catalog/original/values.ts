/** Values as the original's loaders read them. */
import type { Json } from '../../domain/json.ts';

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
