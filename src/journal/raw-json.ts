/**
 * Finds the position of values in JSON text without parsing it, so that one file can be read from an outcome of many
 * megabytes. The text must come from `JSON.stringify`: valid, and without white space between its parts.
 */

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
/** `[` and `{`, and `]` and `}`, differ in this bit. */
const BRACE = 0x20;
const OPENING = 0x5b;
const CLOSING = 0x5d;

/** The range of a value: from its first character to after its last. */
export interface Place {
  readonly from: number;
  readonly to: number;
}

/** The members of the object at `from`; empty if it is not an object. */
export function membersAt(text: string, from: number): ReadonlyMap<string, Place> {
  const members = new Map<string, Place>();
  if (text[from] !== '{') return members;
  for (let at = from + 1; text[at] === '"';) {
    const colon = endOfString(text, at);
    const place = { from: colon + 1, to: endOf(text, colon + 1) };
    members.set(JSON.parse(text.slice(at, colon)) as string, place);
    at = place.to + 1;
  }
  return members;
}

/** The first items of the list at `from`, at most `most`; empty if it is not a list. */
export function itemsAt(text: string, from: number, most: number): Place[] {
  const items: Place[] = [];
  if (text[from] !== '[' || text[from + 1] === ']') return items;
  for (let at = from + 1; items.length < most;) {
    const to = endOf(text, at);
    items.push({ from: at, to });
    if (text.charCodeAt(to) !== COMMA) break;
    at = to + 1;
  }
  return items;
}

/** The string at a place; undefined if it is not a string. */
export function stringAt(text: string, place: Place | undefined): string | undefined {
  return place !== undefined && text.charCodeAt(place.from) === QUOTE
    ? (JSON.parse(text.slice(place.from, place.to)) as string)
    : undefined;
}

/** The index after the value that begins at `from`. */
export function endOf(text: string, from: number): number {
  let depth = 0;
  for (let at = from; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) {
      at = endOfString(text, at) - 1;
      if (depth === 0) return at + 1;
    } else if ((code & ~BRACE) === OPENING) depth += 1;
    else if ((code & ~BRACE) === CLOSING) {
      if (depth === 0) return at;
      depth -= 1;
      if (depth === 0) return at + 1;
    } else if (code === COMMA && depth === 0) return at;
  }
  return text.length;
}

/** @param from index of the opening quote */
function endOfString(text: string, from: number): number {
  for (let at = text.indexOf('"', from + 1); at !== -1; at = text.indexOf('"', at + 1)) {
    let backslashes = 0;
    while (text.charCodeAt(at - 1 - backslashes) === BACKSLASH) backslashes += 1;
    if (backslashes % 2 === 0) return at + 1;
  }
  return text.length;
}
