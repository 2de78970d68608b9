/**
 * Where the condition of a step names things of its workflow (M6): `steps`, `trigger`, `item` and `index`,
 * bare or as `$(…)`. Words in quotes are text, members of other values are theirs, and a comprehension's
 * own variable is its own.
 */
import { parse } from '@marcbachmann/cel-js';

export interface NamedInCondition {
  /** Where the name stands in the text, with all that is its writing. */
  readonly start: number;
  readonly end: number;
  /** `['steps', 'a', 'rows']`; the name of a method that is called on it is not part of it. */
  readonly path: readonly string[];
  /** Only whether it is there is asked: `has(item.price)`. */
  readonly asked: boolean;
}

/** A quote that is never closed goes to the end: looked for again from each further one, it would cost the square of the length. */
const QUOTED = /"(?:[^"\\]|\\.)*(?:"|\\?$)|'(?:[^'\\]|\\.)*(?:'|\\?$)/g;
const QUOTED_OR_DOLLAR = /("(?:[^"\\]|\\.)*(?:"|\\?$)|'(?:[^'\\]|\\.)*(?:'|\\?$))|\$(?:\{([\w.[\]]+)\}|(?=[A-Za-z_]))/g;
const QUOTED_REFERENCE = /^["']\$\(\s*((?:steps|trigger|item|index)(?:\.\w+)*)\s*\)["']$/;
const NAMED =
  /\$\(\s*((?:steps|trigger|item|index)(?:\.\w+)*)\s*\)|(?<![\w.$]|\.\s+)\$?((?:steps|trigger|item|index)\b(?:\.[A-Za-z_]\w*)*)(\s*\()?/g;
const COMPREHENSION = /\.(?:all|exists|exists_one|map|filter)\(\s*(\w+)\s*,/g;
/** White space that may stand between `has(` and a name. */
const HAS_CHARS = 64;
const HAS_OPENS = /\bhas\(\s*$/;
const HAS_ENDS = /^\s*\)/;

/** In their order. */
export function namesInCondition(text: string): NamedInCondition[] {
  const found: NamedInCondition[] = [];
  // Quoted text is blanked out at its length, so that places stay places.
  const bare = text.replaceAll(QUOTED, (quoted, start: number) => {
    const path = QUOTED_REFERENCE.exec(quoted)?.[1]?.split('.');
    if (path !== undefined) found.push({ start, end: start + quoted.length, path, asked: false });
    return ' '.repeat(quoted.length);
  });
  const bound = boundIn(bare);
  for (const { 0: written, 1: reference, 2: plain, 3: call = '', index } of bare.matchAll(NAMED)) {
    const whole = (reference ?? plain ?? '').split('.');
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
      found.push({ start: from + has.index, end: end + closing.length, path, asked: true });
    } else found.push({ start, end, path, asked: false });
  }
  return found.toSorted((a, b) => a.start - b.start);
}

/** Why the text cannot be read as CEL at all; null when it can. What its names stand for only a run knows. */
export function whyNotCel(text: string): string | null {
  let plain = '';
  let at = 0;
  for (const { start, end, asked } of namesInCondition(text)) {
    plain += text.slice(at, start) + (asked ? 'true' : 'named');
    at = end;
  }
  plain += text.slice(at);
  try {
    // Other names may have a `$` as well.
    parse(plain.replace(QUOTED_OR_DOLLAR, (_all, quoted?: string, braced?: string) => quoted ?? braced ?? ''));
    return null;
  } catch (fault) {
    return fault instanceof Error ? (fault.message.split('\n')[0] ?? '') : String(fault);
  }
}

/** Variables of comprehensions, and from where to where they are theirs. */
function boundIn(bare: string): { readonly name: string; readonly from: number; readonly to: number }[] {
  const ends = closings(bare);
  return [...bare.matchAll(COMPREHENSION)].map(({ 0: opening, 1: name = '', index }) => {
    const to = ends.get(index + opening.indexOf('(')) ?? bare.length;
    return { name, from: index, to };
  });
}

/** For each opening parenthesis, the place behind the one that closes it. */
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
