/** What ids, output keys and feed ids may look like (P12). */
import { limits } from '../../domain/limits.ts';

// eslint-disable-next-line no-control-regex
const FORBIDDEN = /[<>&"'\s\u0000-\u001F\u007F-\u009F]/;

/** What ids look like that people and models choose: word characters, dots and dashes; the rest is looked at closely. */
function isUsual(value: string): boolean {
  if (value === '') return false;
  for (let index = 0; index < value.length; index += 1) {
    const code = value.charCodeAt(index);
    const letter = code | 32;
    const usual = (letter >= 97 && letter <= 122) || (code >= 45 && code <= 57 && code !== 47) || code === 95;
    if (!usual) return false;
  }
  return true;
}

/** @returns a issue that names what is allowed, or null */
export function idIssue(kind: 'id' | 'output_key', value: string): string | null {
  if (value.length <= limits.idChars && (isUsual(value) || (value !== '' && !FORBIDDEN.test(value)))) return null;
  const shown = JSON.stringify(value.length > limits.excerptChars ? `${value.slice(0, limits.excerptChars)}…` : value);
  return `${kind} ${shown} is not allowed: 1 to ${limits.idChars} characters, none of < > & " ', white space or control characters`;
}
