/** Valid ids, output keys and feed ids (P12). */
import { limits } from '../../domain/limits.ts';

// eslint-disable-next-line no-control-regex
const FORBIDDEN = /[<>&"'\s\u0000-\u001F\u007F-\u009F]/;

/** A quick check for common ids: word characters, dots and dashes. Others need the full check. */
function isPlainId(value: string): boolean {
  if (value === '') return false;
  for (let index = 0; index < value.length; index += 1) {
    const code = value.charCodeAt(index);
    const letter = code | 32;
    const usual = (letter >= 97 && letter <= 122) || (code >= 45 && code <= 57 && code !== 47) || code === 95;
    if (!usual) return false;
  }
  return true;
}

/** @returns an issue that names the allowed characters, or null */
export function idIssue(kind: 'id' | 'output_key', value: string): string | null {
  if (value.length <= limits.idChars && (isPlainId(value) || (value !== '' && !FORBIDDEN.test(value)))) return null;
  const shown = JSON.stringify(value.length > limits.excerptChars ? `${value.slice(0, limits.excerptChars)}…` : value);
  return `${kind} ${shown} is not allowed: 1 to ${limits.idChars} characters, none of < > & " ', white space or control characters`;
}
