/**
 * The extent of a regular expression, computed from its syntax: its shortest and longest match, and the characters that
 * may occur in a match. Expects an expression that `compilePattern` accepts.
 */

export interface Extent {
  /** Lengths of the shortest and of the longest match, in UTF-16 code units; the longest may be overestimated. */
  readonly least: number;
  readonly most: number;
  /** A character of every match; null if none is known. */
  readonly required: string | null;
}

export interface PatternExtent extends Extent {
  /** Characters that may occur in a match: single ones, and sources of classes such as `\w` or `[a-z]`. */
  readonly literals: ReadonlySet<string>;
  readonly classes: ReadonlySet<string>;
}

export type FoundExtent =
  | { readonly ok: true; readonly extent: PatternExtent }
  /** Follows the pattern in a message. */
  | { readonly ok: false; readonly reason: string };

const EMPTY: Extent = { least: 0, most: 0, required: null };
const CONTROLS: Readonly<Record<string, string>> = { n: '\n', r: '\r', t: '\t', v: '\v', f: '\f', '0': '\0' };
const ESCAPE = /\\(?:[pP]\{[^}]*\}|u\{[0-9a-fA-F]+\}|u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|c[A-Za-z]|[^])/uy;
const CLASS = /\[(?:\\[^]|[^\\\]])*\]/uy;
const QUANTIFIER = /(?:([*+?])|\{(\d+)(,?)(\d*)\})\??/y;
const GROUP = /\((?:\?:|\?<[A-Za-z_$][\w$]*>)?/y;
/** Classes with characters beyond U+FFFF, which have two code units. */
const MAY_BE_LONG = /^\[\^|\\[pPDWS]|\\u\{|[\u{10000}-\u{10FFFF}]/u;

class Refused extends Error {}

/** @param source with flag `u` */
export function extentOf(source: string): FoundExtent {
  try {
    return { ok: true, extent: new Reader(source).read() };
  } catch (fault) {
    if (fault instanceof Refused) return { ok: false, reason: fault.message };
    throw fault;
  }
}

class Reader {
  readonly #source: string;
  readonly #literals = new Set<string>();
  readonly #classes = new Set<string>();
  #at = 0;

  constructor(source: string) {
    this.#source = source;
  }

  read(): PatternExtent {
    return { ...this.#alternatives(), literals: this.#literals, classes: this.#classes };
  }

  #alternatives(): Extent {
    let all = this.#sequence();
    while (this.#source[this.#at] === '|') {
      this.#at += 1;
      const next = this.#sequence();
      all = {
        least: Math.min(all.least, next.least),
        most: Math.max(all.most, next.most),
        required: all.required === next.required ? all.required : null,
      };
    }
    return all;
  }

  #sequence(): Extent {
    let all = EMPTY;
    for (let next = this.#source[this.#at]; next !== undefined && next !== '|' && next !== ')';) {
      const part = this.#quantified(this.#atom());
      const required = better(all.required, part.required);
      all = { least: all.least + part.least, most: all.most + part.most, required };
      next = this.#source[this.#at];
    }
    return all;
  }

  #quantified(atom: Extent): Extent {
    const [written, sign, least, comma, most] = this.#take(QUANTIFIER) ?? [];
    if (written === undefined) return atom;
    if (sign === '*') throw new Refused('has no greatest length: write {0,64} instead of *');
    if (sign === '+') throw new Refused('has no greatest length: write {1,64} instead of +');
    if (sign === '?') return times(atom, 0, 1);
    if (comma === ',' && most === '') {
      throw new Refused(`has no greatest length: write {${least},64} instead of {${least},}`);
    }
    return times(atom, Number(least), Number(comma === '' ? least : most));
  }

  #atom(): Extent {
    const character = String.fromCodePoint(this.#source.codePointAt(this.#at) ?? 0);
    switch (character) {
      case '^':
      case '$':
        throw new Refused(`has the anchor ${character}, but text that is still arriving has no fixed start or end`);
      case '(':
        return this.#group();
      case '[':
        return this.#class(this.#take(CLASS)?.[0] ?? '');
      case '\\':
        return this.#escape(this.#take(ESCAPE)?.[0] ?? '');
      case '.':
        this.#at += 1;
        this.#classes.add(character);
        return { least: 1, most: 2, required: null };
      default:
        this.#at += character.length;
        return this.#literal(character);
    }
  }

  #group(): Extent {
    const [opening = '('] = this.#take(GROUP) ?? [];
    if (opening === '(' && this.#source[this.#at] === '?') {
      throw new Refused('changes its flags in a group: write [Aa] where a letter may be upper or lower case');
    }
    const inner = this.#alternatives();
    // The closing parenthesis.
    this.#at += 1;
    return inner;
  }

  #class(source: string): Extent {
    if (/\\u[dD][89a-fA-F]/.test(source)) throw halfCharacter();
    this.#classes.add(source);
    return { least: 1, most: MAY_BE_LONG.test(source) ? 2 : 1, required: null };
  }

  #escape(source: string): Extent {
    const [, kind = ''] = source;
    if (source === '\\b' || source === '\\B') return EMPTY;
    if (/^[pPdDwWsS]$/.test(kind)) return this.#class(source);
    if (/^\\u[dD][89a-fA-F]/.test(source)) throw halfCharacter();
    if (source.length === 2) return this.#literal(CONTROLS[kind] ?? kind);
    if (kind === 'c') return this.#literal(String.fromCharCode((source.codePointAt(2) ?? 0) % 32));
    return this.#literal(String.fromCodePoint(Number.parseInt(source.slice(2).replaceAll(/[{}]/g, ''), 16)));
  }

  #literal(character: string): Extent {
    this.#literals.add(character);
    return { least: character.length, most: character.length, required: character };
  }

  #take(expression: RegExp): RegExpExecArray | null {
    expression.lastIndex = this.#at;
    const found = expression.exec(this.#source);
    if (found !== null) this.#at += found[0].length;
    return found;
  }
}

function times({ least, most, required }: Extent, fewest: number, highest: number): Extent {
  return { least: least * fewest, most: most * highest, required: fewest === 0 ? null : required };
}

/** Letters and digits are frequent, so another character tells more. */
function better(one: string | null, other: string | null): string | null {
  return one === null || (other !== null && /[\p{L}\p{N}]/u.test(one)) ? (other ?? one) : one;
}

function halfCharacter(): Refused {
  return new Refused(String.raw`has half of a surrogate pair: write \u{…} with the whole code point`);
}
