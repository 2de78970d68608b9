/**
 * Patterns for text that is still arriving: regular expressions in linear time (pattern.ts) whose matches are never empty
 * and have a greatest length (C9).
 */
import { limits } from '../domain/limits.ts';
import { extentOf } from './pattern-extent.ts';
import type { Extent, PatternExtent } from './pattern-extent.ts';
import { compilePattern } from './pattern.ts';
import type { Meter, Pattern } from './pattern.ts';

export interface BoundedPattern extends Extent, Pick<Pattern, 'find'> {
  /** Whether this code point may occur in a match. */
  allows(codePoint: number): boolean;
}

export type CompiledBoundedPattern =
  | { readonly ok: true; readonly pattern: BoundedPattern }
  /** Follows the pattern in a message: `may match an empty text`. */
  | { readonly ok: false; readonly reason: string };

const ASCII = 128;
/** The characters of a pattern are tested while it is compiled. */
const UNCHARGED: Meter = { charge: () => undefined };

/** @param meter charged by the pattern's size. @throws WorkExceeded */
export function compileBounded(source: string, meter: Meter): CompiledBoundedPattern {
  if (source.length > limits.redactPatternChars) {
    return { ok: false, reason: `has ${source.length} characters (allowed: ${limits.redactPatternChars})` };
  }
  const compiled = compilePattern(source, meter);
  if (!compiled.ok) return compiled;
  const found = extentOf(source);
  if (!found.ok) return found;
  const { extent } = found;
  const { least, most, required } = extent;
  if (least === 0) return { ok: false, reason: 'may match an empty text: at least one character must be required' };
  if (most > limits.redactMatchChars) {
    const reason = `may match ${most} characters (allowed: ${limits.redactMatchChars}): lower the numbers in braces`;
    return { ok: false, reason };
  }
  const allows = allowedBy(extent, meter);
  if (typeof allows === 'string') return { ok: false, reason: allows };
  const { find } = compiled.pattern;
  return { ok: true, pattern: { least, most, required, find, allows } };
}

/** @returns the reason, if the classes of the pattern cannot be matched on their own */
function allowedBy({ literals, classes }: PatternExtent, meter: Meter): ((codePoint: number) => boolean) | string {
  const union = classes.size === 0 ? null : compilePattern([...classes].join('|'), meter);
  if (union?.ok === false) return union.reason;
  const test = (codePoint: number): boolean => {
    const character = String.fromCodePoint(codePoint);
    return literals.has(character) || union?.pattern.test(character, UNCHARGED) === true;
  };
  const ascii = Uint8Array.from({ length: ASCII }, (_, codePoint) => Number(test(codePoint)));
  const known = new Map<number, boolean>();
  return (codePoint) => {
    if (codePoint < ASCII) return ascii[codePoint] === 1;
    let isAllowed = known.get(codePoint);
    if (isAllowed === undefined) {
      isAllowed = test(codePoint);
      if (known.size >= limits.redactKnownChars) known.clear();
      known.set(codePoint, isAllowed);
    }
    return isAllowed;
  };
}
