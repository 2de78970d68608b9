/**
 * Substring search in linear time. JavaScript's own `indexOf` and `lastIndexOf` take quadratic time in the
 * worst case: searching half a million characters in a million took 40 seconds.
 */

/** Up to this length, the built-in search is cheaper than preparing a table. */
const SHORT = 32;

/** Like `text.indexOf(search, from)`. */
export function indexOfText(text: string, search: string, from = 0): number {
  if (search.length <= SHORT) return text.indexOf(search, from);
  const at = find(text.length - from, (index) => text.charCodeAt(from + index), prefixesOf(search, false));
  return at === -1 ? -1 : from + at;
}

/** Like `text.lastIndexOf(search)`. */
export function lastIndexOfText(text: string, search: string): number {
  if (search.length <= SHORT) return text.lastIndexOf(search);
  const last = text.length - 1;
  const at = find(text.length, (index) => text.charCodeAt(last - index), prefixesOf(search, true));
  return at === -1 ? -1 : text.length - at - search.length;
}

/** Like `text.split(separator)`. */
export function splitText(text: string, separator: string): string[] {
  if (separator.length <= SHORT) return text.split(separator);
  const parts: string[] = [];
  let start = 0;
  for (;;) {
    const at = indexOfText(text, separator, start);
    if (at === -1) break;
    parts.push(text.slice(start, at));
    start = at + separator.length;
  }
  parts.push(text.slice(start));
  return parts;
}

interface Prefixes {
  readonly codes: Uint16Array;
  /** For each index, the length of the longest proper prefix that ends there. */
  readonly fallback: Int32Array;
}

function prefixesOf(search: string, reversed: boolean): Prefixes {
  const { length } = search;
  const codes = new Uint16Array(length);
  for (let index = 0; index < length; index += 1) {
    codes[index] = search.charCodeAt(reversed ? length - 1 - index : index);
  }
  const fallback = new Int32Array(length);
  let matched = 0;
  for (let index = 1; index < length; index += 1) {
    while (matched > 0 && codes[index] !== codes[matched]) matched = fallback[matched - 1] ?? 0;
    if (codes[index] === codes[matched]) matched += 1;
    fallback[index] = matched;
  }
  return { codes, fallback };
}

/** Knuth-Morris-Pratt: no character is read more than twice. */
function find(length: number, codeAt: (index: number) => number, { codes, fallback }: Prefixes): number {
  let matched = 0;
  for (let index = 0; index < length; index += 1) {
    const code = codeAt(index);
    while (matched > 0 && code !== codes[matched]) matched = fallback[matched - 1] ?? 0;
    if (code === codes[matched]) matched += 1;
    if (matched === codes.length) return index - codes.length + 1;
  }
  return -1;
}
