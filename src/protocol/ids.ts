/** What ids, output keys and feed ids may look like (P12). */
import { limits } from '../domain/limits.ts';

// eslint-disable-next-line no-control-regex
const FORBIDDEN = /[<>&"'\s\u0000-\u001F\u007F-\u009F]/;

/** What ids look like that people and models choose; the rest is looked at closely. */
const USUAL = /^[\w.-]{1,64}$/;

/** @returns a complaint that names what is allowed, or null */
export function idComplaint(kind: 'id' | 'output_key', value: string): string | null {
  if (USUAL.test(value) && value.length <= limits.idChars) return null;
  if (value !== '' && value.length <= limits.idChars && !FORBIDDEN.test(value)) return null;
  const shown = JSON.stringify(value.length > limits.excerptChars ? `${value.slice(0, limits.excerptChars)}…` : value);
  return `${kind} ${shown} is not allowed: 1 to ${limits.idChars} characters, none of < > & " ', white space or control characters`;
}
