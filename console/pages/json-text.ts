/** JSON values in a sentence or a cell. */
import type { Json } from '../../src/client/index.ts';
import { cut } from '../parts/format.ts';

const MOST_CHARS = 2_000;

/** The beginning of a string as it is, nothing for what is missing, and the JSON of everything else. */
export function jsonText(value: Json | undefined): string {
  return cut(typeof value === 'string' ? value : (JSON.stringify(value ?? undefined) ?? ''), MOST_CHARS);
}
