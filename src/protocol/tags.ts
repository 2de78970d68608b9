/** The closed set of tags and how their attributes are read (P1, P2, P5). */

export type BlockTag = 'thought' | 'action' | 'response';
export type TagKind = BlockTag | 'runtime';

/** Every name that is a tag; all else in angle brackets is text. Aliases of `thought` are reasoning (P9). */
const NAMES: ReadonlyMap<string, TagKind> = new Map<string, TagKind>([
  ['thought', 'thought'],
  ['think', 'thought'],
  ['thinking', 'thought'],
  ['action', 'action'],
  ['response', 'response'],
  ['context_feed', 'runtime'],
  ['action_result', 'runtime'],
  ['results', 'runtime'],
  ['system', 'runtime'],
]);
const LONGEST_NAME = 13;

export interface TagStart {
  readonly name: string;
  readonly kind: TagKind;
  readonly close: boolean;
  /** Index behind the name. */
  readonly end: number;
}

/**
 * What stands at a `<`: the beginning of a tag, ordinary text, or too little to say.
 *
 * @param at index of the `<`
 */
export function readTagStart(text: string, at: number): TagStart | 'text' | 'more' {
  let from = at + 1;
  const close = text.charCodeAt(from) === 47;
  if (close) from += 1;
  let end = from;
  while (end < text.length && end - from <= LONGEST_NAME && isNameChar(text.charCodeAt(end))) end += 1;
  const name = text.slice(from, end).toLowerCase();
  if (end === text.length) return couldBecomeName(name) ? 'more' : 'text';
  const kind = NAMES.get(name);
  if (kind === undefined) return 'text';
  const next = text.charCodeAt(end);
  const ends = next === 62 || isSpace(next) || (next === 47 && !close);
  return ends ? { name, kind, close, end } : 'text';
}

function couldBecomeName(beginning: string): boolean {
  for (const name of NAMES.keys()) if (name.startsWith(beginning)) return true;
  return false;
}

function isNameChar(code: number): boolean {
  return (code >= 97 && code <= 122) || (code >= 65 && code <= 90) || code === 95;
}

export function isSpace(code: number): boolean {
  return code === 32 || code === 10 || code === 9 || code === 13 || code === 12;
}

/** Where in an opening tag the search for its `>` stands; goes on with the next chunk. */
export interface TagScan {
  at: number;
  quote: number;
  /** The last character that was not white space: a quote opens only behind `=`, `[` or `,`. */
  before: number;
}

/**
 * Looks for the `>` that ends an opening tag; quoted ones do not count.
 *
 * @returns the index of the `>`, `text` when a `<` shows that this was no tag, or `more`
 */
export function findTagEnd(text: string, scan: TagScan): number | 'text' | 'more' {
  while (scan.at < text.length) {
    const code = text.charCodeAt(scan.at);
    if (scan.quote !== 0) {
      const close = text.indexOf(String.fromCharCode(scan.quote), scan.at);
      scan.at = close === -1 ? text.length : close + 1;
      if (close !== -1) {
        scan.before = scan.quote;
        scan.quote = 0;
      }
      continue;
    }
    if (code === 62) return scan.at;
    if (code === 60) return 'text';
    if ((code === 34 || code === 39) && (scan.before === 61 || scan.before === 91 || scan.before === 44))
      scan.quote = code;
    if (!isSpace(code)) scan.before = code;
    scan.at += 1;
  }
  return 'more';
}

export type AttributeValue = string | readonly string[];

/**
 * Reads `type="tool" mode=async depends_on=["a","b"` and every other form of P5. The first of two
 * attributes of a name counts.
 *
 * @param text what stands between the tag's name and its `>`, without a closing `/`
 */
export function parseAttributes(text: string): Map<string, AttributeValue> {
  const found = new Map<string, AttributeValue>();
  let at = 0;
  const skipSpace = (): void => {
    while (at < text.length && isSpace(text.charCodeAt(at))) at += 1;
  };
  while (at < text.length) {
    skipSpace();
    const nameStart = at;
    while (at < text.length && !isSpace(text.charCodeAt(at)) && text[at] !== '=') at += 1;
    const name = text.slice(nameStart, at).toLowerCase();
    skipSpace();
    if (text[at] !== '=') {
      if (name !== '' && !found.has(name)) found.set(name, '');
      continue;
    }
    at += 1;
    skipSpace();
    const [value, end] = readValue(text, at);
    at = end;
    if (name !== '' && !found.has(name)) found.set(name, value);
  }
  return found;
}

function readValue(text: string, at: number): [AttributeValue, number] {
  const first = text[at];
  if (first === '"' || first === "'") {
    const close = text.indexOf(first, at + 1);
    const end = close === -1 ? text.length : close;
    return [text.slice(at + 1, end), end + 1];
  }
  if (first === '[') {
    const close = text.indexOf(']', at);
    const end = close === -1 ? text.length : close;
    return [readList(text.slice(at + 1, end)), end + 1];
  }
  let end = at;
  while (end < text.length && !isSpace(text.charCodeAt(end))) end += 1;
  return [text.slice(at, end), end];
}

/** `"a", 'b', c` -> a, b, c. */
export function readList(text: string): string[] {
  return text
    .split(',')
    .map((item) =>
      item
        .trim()
        .replace(/^(["'])(.*)\1$/, '$2')
        .replace(/^["']|["']$/g, ''),
    )
    .filter((item) => item !== '');
}
