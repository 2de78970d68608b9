/** Values and names from outside, as they are written into the runtime's own tags (X1). */
import type { Json } from '../../domain/json.ts';
import { limits } from '../../domain/limits.ts';
import { sanitizeText, escapeReservedTags } from './escape-reserved-tags.ts';

/** Text unchanged, anything else as compact JSON. */
export function textOf(value: Json): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}

/** Escaped text of at most `maxChars`, without the marker. `reference` names the whole value. */
export function cut(text: string, maxChars: number, reference: string | null): string {
  const safe = escapeReservedTags(sanitizeText(withoutHalfPair(text.slice(0, maxChars))));
  if (text.length <= maxChars && safe.length <= maxChars) return safe;
  const shown = withoutHalfPair(safe.slice(0, maxChars));
  const where = reference === null ? '' : `; the whole value is in ${referenceTo(reference)}`;
  return `${shown}\n[cut after ${shown.length} of ${Math.max(text.length, safe.length)} characters${where}]`;
}

function referenceTo(name: string): string {
  return /^[A-Za-z_]\w*$/.test(name) ? `$${name}` : `\${${attribute(name)}}`;
}

function withoutHalfPair(text: string): string {
  const last = text.charCodeAt(text.length - 1);
  return last >= 0xd800 && last <= 0xdbff ? text.slice(0, -1) : text;
}

const ATTRIBUTE_ESCAPES: Readonly<Record<string, string>> = { '<': '&lt;', '>': '&gt;', '&': '&amp;', '"': '&quot;' };

/** Escapes an attribute value: ids of rejected actions may contain anything. */
export function attribute(text: string): string {
  return sanitizeText(withoutHalfPair(text.slice(0, limits.idChars * 2)))
    .replace(/[<>&"]/g, (character) => ATTRIBUTE_ESCAPES[character] ?? '')
    .replace(/\s+/g, ' ');
}
