/** Valid ids, output keys and feed ids (P12). */
import { limits } from '../../domain/limits.ts';

// eslint-disable-next-line no-control-regex
const FORBIDDEN = /[<>&"'\s\u0000-\u001F\u007F-\u009F]/;

/** @returns an issue that names the allowed characters, or null */
export function idIssue(kind: 'id' | 'output_key', value: string): string | null {
  if (value !== '' && value.length <= limits.idChars && !FORBIDDEN.test(value)) return null;
  const shown = JSON.stringify(value.length > limits.excerptChars ? `${value.slice(0, limits.excerptChars)}…` : value);
  return `${kind} ${shown} is not allowed: 1 to ${limits.idChars} characters, none of < > & " ', white space or control characters`;
}
