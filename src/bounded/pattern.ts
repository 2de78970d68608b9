/**
 * Matches untrusted regular expressions in linear time (RE2). JavaScript's own engine would take years for
 * `^(a+)+$` and 40 letters.
 *
 * The language is that of JSON Schema (ECMAScript, flag `u`) without features that need backtracking: lookaheads,
 * lookbehinds and back references.
 */
import { RE2JS } from 're2js';
import { messageOf } from '../domain/errors.ts';
import { limits } from '../domain/limits.ts';
import type { WorkMeter } from '../domain/work.ts';

export interface Pattern {
  /**
   * Whether the pattern is found in the text. @throws WorkExceeded, before the search, if text and pattern are too long
   */
  test(text: string, meter: Meter): boolean;
  /**
   * The first match that begins at `from` or later, in UTF-16 code units; null if there is none. Characters before `from`
   * count for `\b` only. The search ends near the end of the match, so the caller bounds the text, and the work is known
   * afterwards. @throws WorkExceeded
   */
  find(text: string, from: number, meter: Meter): { readonly start: number; readonly end: number } | null;
}

/** What a search is charged to. */
export type Meter = Pick<WorkMeter, 'charge'>;

export type CompiledPattern =
  | { readonly ok: true; readonly pattern: Pattern }
  /** Follows the pattern in a message: `is not a regular expression`. */
  | { readonly ok: false; readonly reason: string };

/** Cost of parsing an expression, and of each state: measured up to 5 microseconds per state. */
const COMPILE_STEPS = 1_000;
const COMPILE_STEPS_PER_STATE = 100;
/** A Unicode class has hundreds of ranges, so it costs more than others. */
const UNICODE_STATES = 3;
/** For each character and each potentially active state of the pattern; measured. */
const STEPS_PER_STATE = 0.5;
/** A search reads on behind a match, in case a longer one follows; usually a few characters. */
const AFTER_MATCH_CHARS = 16;

/** @param meter charged by the pattern's size. @throws WorkExceeded */
export function compilePattern(source: string, meter: Meter): CompiledPattern {
  if (source.length > limits.patternChars) {
    return refused(`has ${source.length} characters (allowed: ${limits.patternChars})`);
  }
  meter.charge(COMPILE_STEPS);
  if (!isEcmaScript(source)) return refused('is not a regular expression');
  const size = sizeOf(source);
  if (size > limits.patternStates) {
    return refused(
      `is too large: about ${size} states with its repetitions expanded (allowed: ${limits.patternStates})`,
    );
  }
  meter.charge(COMPILE_STEPS_PER_STATE * size);
  try {
    const compiled = RE2JS.compile(RE2JS.translateRegExp(translated(source)));
    const states = compiled.programSize();
    return {
      ok: true,
      pattern: {
        test(text, spent) {
          spent.charge(STEPS_PER_STATE * states * (text.length + 1));
          return compiled.test(text);
        },
        find(text, from, spent) {
          const matcher = compiled.matcher(text);
          const found = matcher.find(from) ? { start: matcher.start(), end: matcher.end() } : null;
          const searched = found === null ? text.length : Math.min(text.length, found.end + AFTER_MATCH_CHARS);
          spent.charge(STEPS_PER_STATE * states * (searched - from + 1));
          return found;
        },
      },
    };
  } catch (fault) {
    const why = messageOf(fault).replace(/^error parsing regexp: /, '');
    const [, unicodeClass] = /character class range: `(\\[pP].*)`$/.exec(why) ?? [];
    if (unicodeClass !== undefined) {
      return refused(
        String.raw`has the class ${unicodeClass}, which RE2 does not know: write a category or a script, such as \p{L} or \p{Greek}`,
      );
    }
    return refused(
      `cannot be matched in linear time: lookaheads, lookbehinds and back references are not supported (${why})`,
    );
  }
}

function refused(reason: string): CompiledPattern {
  return { ok: false, reason };
}

/** Only parses the expression; matches nothing. */
function isEcmaScript(source: string): boolean {
  try {
    return new RegExp(source, 'u') instanceof RegExp;
  } catch {
    return false;
  }
}

const ATOM =
  /\\[pPu]\{[^}]*\}|\\u[0-9a-fA-F]{4}|\\x[0-9a-fA-F]{2}|\\c[A-Za-z]|\\[^]|\[(?:\\[^]|[^\\\]])*\]|\{(\d+)(,?)(\d*)\}|[^]/gu;

/** Approximate number of states of a well-formed expression with its repetitions expanded. */
function sizeOf(source: string): number {
  const outer: number[] = [];
  let sum = 0;
  let last = 0;
  for (const [token, least, comma, most] of source.matchAll(ATOM)) {
    if (token === '(') {
      outer.push(sum);
      [sum, last] = [0, 0];
    } else if (token === ')') {
      last = sum + 2;
      sum = (outer.pop() ?? 0) + last;
    } else if (least === undefined) {
      last = /\\p/i.test(token) ? UNICODE_STATES : 1;
      sum += last;
    } else {
      const times = Math.max(Number(least) + (comma === '' ? 0 : 1), Number(most), 1);
      sum += last * (times - 1);
      last *= times;
    }
  }
  return sum;
}

const SPACE = String.raw`\t-\r \x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}\x{feff}`;
const NO_SPACE = String.raw`\x{0}-\x{8}\x{e}-\x{1f}!-\x{9f}\x{a1}-\x{167f}\x{1681}-\x{1fff}\x{200b}-\x{2027}\x{202a}-\x{202e}\x{2030}-\x{205e}\x{2060}-\x{2fff}\x{3001}-\x{fefe}\x{ff00}-\x{10ffff}`;
const IN_CLASS: Readonly<Record<string, string>> = { '\\s': SPACE, '\\S': NO_SPACE, '\\b': '\\x08' };
const OUTSIDE: Readonly<Record<string, string>> = {
  '.': String.raw`[^\n\r\x{2028}\x{2029}]`,
  '\\s': `[${SPACE}]`,
  '\\S': `[^${SPACE}]`,
};

/** Translates syntax with a different meaning in the two languages. */
function translated(source: string): string {
  let result = '';
  for (const [token] of source.matchAll(ATOM)) {
    if (token === '\\k') throw new Error('back reference \\k');
    if (token.length > 1 && token.startsWith('['))
      result += token.replaceAll(/\\[^]/gu, (escape) => IN_CLASS[escape] ?? escape);
    else result += OUTSIDE[token] ?? token;
  }
  return result;
}
