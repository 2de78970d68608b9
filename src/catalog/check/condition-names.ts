/**
 * Finds references in the condition of a step (M6): `steps`, `trigger`, `item` and `index`, plain or as `$(…)`. Ignores
 * words in quotes, members of other values, and variables of comprehensions.
 */
import { parse } from '@marcbachmann/cel-js';
import { membersOf } from '../../domain/workflow-path.ts';

export interface NamedInCondition {
  /** Position of the reference in the text, including its syntax. */
  readonly start: number;
  readonly end: number;
  /** `['steps', 'a', 'rows']`, without the name of a method that is called on it. */
  readonly path: readonly string[];
  /** Whether only its existence is tested: `has(item.price)`. */
  readonly isTest: boolean;
}

/**
 * An unclosed quote extends to the end of the text; searching again from each further quote would take quadratic time.
 */
const QUOTED = /"(?:[^"\\]|\\.)*(?:"|\\?$)|'(?:[^'\\]|\\.)*(?:'|\\?$)/g;
const QUOTED_OR_DOLLAR = /("(?:[^"\\]|\\.)*(?:"|\\?$)|'(?:[^'\\]|\\.)*(?:'|\\?$))|\$(?:\{([\w.[\]]+)\}|(?=[A-Za-z_]))/g;
const QUOTED_REFERENCE = /^["']\$\(\s*((?:steps|trigger|item|index|acc)(?:\.\w+|\[\d+\])*)\s*\)["']$/;
const NAMED =
  /\$\(\s*((?:steps|trigger|item|index|acc)(?:\.\w+|\[\d+\])*)\s*\)|(?<![\w.$]|\.\s+)\$?((?:steps|trigger|item|index|acc)\b(?:\.[A-Za-z_]\w*)*)(\s*\()?/g;
const COMPREHENSION = /\.(?:all|exists|exists_one|map|filter)\(\s*(\w+)\s*,/g;
/** Maximum white space between `has(` and a name. */
const HAS_CHARS = 64;
const HAS_OPENS = /\bhas\(\s*$/;
const HAS_ENDS = /^\s*\)/;

/** In order of appearance. */
export function namesInCondition(text: string): NamedInCondition[] {
  const found: NamedInCondition[] = [];
  // blank out quoted text, keeping positions
  const bare = text.replaceAll(QUOTED, (quoted, start: number) => {
    const path = QUOTED_REFERENCE.exec(quoted)?.[1];
    if (path !== undefined) found.push({ start, end: start + quoted.length, path: membersOf(path), isTest: false });
    return ' '.repeat(quoted.length);
  });
  const bound = boundIn(bare);
  for (const { 0: written, 1: reference, 2: plain, 3: call = '', index } of bare.matchAll(NAMED)) {
    const whole = membersOf(reference ?? plain ?? '');
    const method = call !== '' && reference === undefined;
    const path = method ? whole.slice(0, -1) : whole;
    const [root] = path;
    if (root === undefined) continue;
    if (bound.some(({ name, from, to }) => name === root && index > from && index < to)) continue;
    const length = written.length - (method ? call.length + 1 + (whole.at(-1)?.length ?? 0) : 0);
    const [start, end] = [index, index + length];
    const from = Math.max(0, start - HAS_CHARS);
    const has = HAS_OPENS.exec(bare.slice(from, start));
    const closing = HAS_ENDS.exec(bare.slice(end, end + HAS_CHARS))?.[0];
    if (has !== null && closing !== undefined) {
      found.push({ start: from + has.index, end: end + closing.length, path, isTest: true });
    } else found.push({ start, end, path, isTest: false });
  }
  return found.toSorted((a, b) => a.start - b.start);
}

/** Why the text is not valid CEL; null if it is. Only a run knows the values of the names. */
export function whyNotCel(text: string): string | null {
  let plain = '';
  let at = 0;
  for (const { start, end, isTest } of namesInCondition(text)) {
    plain += text.slice(at, start) + (isTest ? 'true' : 'named');
    at = end;
  }
  plain += text.slice(at);
  try {
    // other names may also have a `$`
    parse(plain.replace(QUOTED_OR_DOLLAR, (_all, quoted?: string, braced?: string) => quoted ?? braced ?? ''));
    return null;
  } catch (fault) {
    return fault instanceof Error ? (fault.message.split('\n')[0] ?? '') : String(fault);
  }
}

/** Variables of comprehensions, with their range. */
function boundIn(bare: string): { readonly name: string; readonly from: number; readonly to: number }[] {
  const ends = closings(bare);
  return [...bare.matchAll(COMPREHENSION)].map(({ 0: opening, 1: name = '', index }) => {
    const to = ends.get(index + opening.indexOf('(')) ?? bare.length;
    return { name, from: index, to };
  });
}

/** Maps each opening parenthesis to the position after its closing one. */
function closings(text: string): ReadonlyMap<number, number> {
  const ends = new Map<number, number>();
  const open: number[] = [];
  for (let at = 0; at < text.length; at += 1) {
    if (text[at] === '(') open.push(at);
    else if (text[at] === ')') {
      const opening = open.pop();
      if (opening !== undefined) ends.set(opening, at + 1);
    }
  }
  return ends;
}
