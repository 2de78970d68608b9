/** Sets aside what must not be cut into clauses: code, JSON, addresses, quoted words, lists of numbers. */
import { parseJson } from '../../domain/json.ts';

interface Held {
  /** Stands for the value in the masked text: one private-use character. */
  readonly token: string;
  readonly kind: 'fence' | 'code' | 'json' | 'url' | 'quote' | 'numbers';
  readonly value: string;
  /** Of a fence: the word behind its backticks. */
  readonly language: string;
  /** As it was written. */
  readonly written: string;
}

export interface Masked {
  readonly text: string;
  readonly held: readonly Held[];
}

const FIRST_TOKEN = 0xe000;
const MOST_HELD = 1_000;
/** Openings of JSON that turn out to be none; each costs a look at the rest of the text. */
const MOST_FALSE_STARTS = 20;

export function mask(message: string): Masked {
  const held: Held[] = [];
  const hold = (kind: Held['kind'], written: string, value: string, language = ''): string => {
    if (held.length >= MOST_HELD) return written;
    const token = String.fromCharCode(FIRST_TOKEN + held.length);
    held.push({ token, kind, value, language, written });
    return ` ${token} `;
  };
  let text = message
    .replace(/[\uE000-\uF8FF]/g, ' ')
    .replace(/(?<![\d,.]|\b(?:sort|of|numbers):?\s+)\d{1,3}(?:,\d{3})+(?![\d,])/gi, (number) =>
      number.replaceAll(',', ''),
    )
    .replace(/\b(\d{1,6}) and (\d{1,6}) (ms|milliseconds|s|secs?|seconds|min|minutes)\b/gi, '$1 $3 and $2 $3')
    .replace(/```([\w+-]*)[^\S\n]*\n?([\s\S]*?)```/g, (whole, language: string, code: string) =>
      hold('fence', whole, code.replace(/\n$/, ''), language),
    )
    .replace(/`([^`\n]+)`/g, (whole, code: string) => hold('code', whole, code));
  text = text.replace(/[^\S\n]+/g, ' ').replace(/\n[\n ]*/g, '\n');
  text = holdJson(text, (json) => hold('json', json, json));
  text = text
    .replace(/\bhttps?:\/\/[^\s"'<>]*[^\s"'<>.,;:!?)\]]/gi, (url) => hold('url', url, url))
    .replace(/"([^"\n]*)"|“([^“”\n]*)”/g, (whole, plain: string | undefined, curly: string | undefined) =>
      hold('quote', whole, plain ?? curly ?? ''),
    )
    .replace(
      /(?<![-+*/^%.(\d]\s*)-?\d{1,15}(?:\.\d{1,15})?(?:(?:,\s*and\s|\s*,|\s+and\s)\s*-?\d{1,15}(?:\.\d{1,15})?)+(?![\d*]|\s*(?:[-+*/^%]|s\b|ms\b|sec|milli|min))/g,
      (list) => hold('numbers', list, list),
    );
  return { text, held };
}

export function unmask({ held }: Masked, text: string): string {
  return text
    .replace(/ ?([\uE000-\uF8FF]) ?/g, (whole, token: string) => {
      const item = held[token.charCodeAt(0) - FIRST_TOKEN];
      if (item === undefined) return whole;
      return `${whole.startsWith(' ') ? ' ' : ''}${item.written}${whole.endsWith(' ') ? ' ' : ''}`;
    })
    .replace(/ {2,}/g, ' ')
    .trim();
}

/** Replaces every complete JSON object or array of objects that stands in the text. */
function holdJson(text: string, hold: (json: string) => string): string {
  let rest = text;
  let done = '';
  let falseStarts = 0;
  for (;;) {
    const at = rest.search(/\{\s*["}]|(?<![\w\]])\[\s*[{"\d[-]/);
    if (at === -1 || falseStarts === MOST_FALSE_STARTS) return done + rest;
    const end = endOfJson(rest, at);
    if (end === null) {
      falseStarts += 1;
      done += rest.slice(0, at + 1);
      rest = rest.slice(at + 1);
    } else {
      done += rest.slice(0, at) + hold(rest.slice(at, end));
      rest = rest.slice(end);
    }
  }
}

/** Where the JSON value that opens at `start` ends, or null where it is none. */
function endOfJson(text: string, start: number): number | null {
  let depth = 0;
  let inString = false;
  for (let index = start; index < text.length; index += 1) {
    const character = text[index];
    if (inString) {
      if (character === '\\') index += 1;
      else if (character === '"') inString = false;
    } else if (character === '"') inString = true;
    else if (character === '{' || character === '[') depth += 1;
    else if (character === '}' || character === ']') {
      depth -= 1;
      if (depth === 0) return parseJson(text.slice(start, index + 1)) !== undefined ? index + 1 : null;
    }
  }
  return null;
}
