/**
 * Repairs the JSON that models write (P8). The library does the repair. This file accepts its result only if every
 * string in it begins and ends at a quote of the source and has the same content, so that nothing is invented: no
 * string ends early, and no prose becomes a value. Repair may add closing brackets and drop commas, comments and code
 * fences.
 */
import { jsonrepair } from 'jsonrepair';
import type { JsonObject } from '../../../domain/json.ts';
import { isJsonObject } from '../../../domain/json.ts';
import { limits } from '../../../domain/limits.ts';
import { parseExactly } from './exact-json.ts';

/** @returns the repaired object, or null if repair would have to guess */
export function repairObject(source: string): JsonObject | null {
  if (source.length > limits.repairChars || quotesIn(source) > limits.repairQuotes) return null;
  try {
    const repaired = jsonrepair(source);
    const value = parseExactly(repaired);
    return isJsonObject(value) && new Alignment(source, repaired).matches() ? value : null;
  } catch {
    return null;
  }
}

const QUOTES = /["'`\u2018\u2019\u201C\u201D]/g;

/** The library searches for the end of the string at every quote: its cost is quadratic in the number of quotes. */
function quotesIn(source: string): number {
  return source.match(QUOTES)?.length ?? 0;
}

const TOKEN = /[ \t\r\n]*("(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s{}[\],:"]+)/y;
const SKIPPED = /(?:\s|\/\*[\s\S]*?(?:\*\/|$)|\/\/[^\n]*|```\w*)+/y;
const IDENTIFIER = /[A-Za-z_$][\w$-]*/y;
const WORDS: Readonly<Record<string, readonly string[]>> = {
  true: ['True'],
  false: ['False'],
  null: ['None', 'undefined'],
};
const ESCAPES: Readonly<Record<string, string>> = {
  n: '\n',
  r: '\r',
  t: '\t',
  b: '\b',
  f: '\f',
  '/': '/',
  '\\': '\\',
  '"': '"',
  "'": "'",
  '`': '`',
  '\n': '\n',
};
const CLOSING_QUOTE: Readonly<Record<string, string>> = {
  '"': '"',
  "'": "'",
  '`': '`',
  '\u201C': '\u201D',
  '\u2018': '\u2019',
};

/** Compares the repaired text with its source, token by token. */
class Alignment {
  readonly #source: string;
  readonly #repaired: string;
  #at = 0;

  constructor(source: string, repaired: string) {
    this.#source = source;
    this.#repaired = repaired;
  }

  matches(): boolean {
    const tokens = [...this.#tokens()];
    for (const [index, token] of tokens.entries()) {
      const key = tokens[index + 1] === ':';
      if (!this.#accepts(token, key)) return false;
    }
    this.#skip();
    // The rest may contain only closing brackets and separators.
    while (this.#at < this.#source.length) {
      if (!'}],;'.includes(this.#source.charAt(this.#at))) return false;
      this.#at += 1;
      this.#skip();
    }
    return true;
  }

  *#tokens(): Generator<string> {
    TOKEN.lastIndex = 0;
    for (;;) {
      const token = TOKEN.exec(this.#repaired)?.[1];
      if (token === undefined) return;
      yield token;
    }
  }

  #accepts(token: string, key: boolean): boolean {
    this.#skip();
    const source = this.#source;
    if (token !== ',' && source[this.#at] === ',') {
      // The library dropped a superfluous comma.
      this.#at += 1;
      this.#skip();
    }
    const first = token.charAt(0);
    if (first === '"') {
      const value: unknown = JSON.parse(token);
      if (typeof value !== 'string') return false;
      if (this.#acceptsString(value)) return true;
      return key && this.#take(IDENTIFIER) === value;
    }
    if (source.startsWith(token, this.#at)) {
      this.#at += token.length;
      return true;
    }
    if (token === '}' || token === ']' || token === ',') return true;
    const spelling = WORDS[token]?.find((word) => source.startsWith(word, this.#at));
    if (spelling === undefined) return false;
    this.#at += spelling.length;
    return true;
  }

  #acceptsString(value: string): boolean {
    const source = this.#source;
    const quote = CLOSING_QUOTE[source.charAt(this.#at)];
    if (quote === undefined) return false;
    let at = this.#at + 1;
    for (let index = 0; index < value.length; index += 1, at += 1) {
      let character = source.charAt(at);
      if (character === '\\') {
        at += 1;
        const escape = source.charAt(at);
        if (escape === 'u') {
          character = String.fromCharCode(Number.parseInt(source.slice(at + 1, at + 5), 16));
          at += 4;
        } else character = ESCAPES[escape] ?? '';
      }
      if (character !== value.charAt(index)) return false;
    }
    if (source.charAt(at) !== quote) return false;
    this.#at = at + 1;
    return true;
  }

  #take(pattern: RegExp): string | null {
    pattern.lastIndex = this.#at;
    const taken = pattern.exec(this.#source)?.[0] ?? null;
    if (taken !== null) this.#at += taken.length;
    return taken;
  }

  #skip(): void {
    SKIPPED.lastIndex = this.#at;
    const skipped = SKIPPED.exec(this.#source)?.[0];
    if (skipped !== undefined) this.#at += skipped.length;
  }
}
