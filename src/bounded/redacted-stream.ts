/**
 * Replaces the matches of patterns in a text that arrives in pieces (C9).
 *
 * Each pattern finds its matches one after the other, each the leftmost one behind the last; the matches of all patterns
 * that overlap are replaced by one mark. A text with escapes of JSON is also searched with line breaks in their place; no
 * mark replaces a part of an escape.
 *
 * Owns the characters that wait. Does not own the patterns.
 *
 * Invariants:
 *  1. The joined output is the same for every division of the text into pieces, also within a surrogate pair.
 *  2. A character waits only if it may become a part of a match: all characters from it to the end of the text so far are
 *     allowed in one of the patterns. At most `most + max(most, BLOCK_CHARS) + 2` wait, for the longest pattern.
 *  3. A character is searched at most twice for each pattern and form of the text, however small the pieces are, and not at all in a run of
 *     allowed characters that is too short for a match or lacks a required character.
 */
import type { BoundedPattern } from './bounded-pattern.ts';
import { EscapeMask, isInsideEscape } from './escape-mask.ts';
import type { Meter } from './pattern.ts';

/** Replaces matches. */
export const REDACTED = '[redacted]';
/** A run of allowed characters is searched in blocks of at least this many. */
const BLOCK_CHARS = 64;
/** `\b` depends on the character before, which may have two code units. */
const CONTEXT_CHARS = 2;
/** Characters that are classified in one step. */
const CHARS_PER_STEP = 16;

/** A match: positions in the whole text. */
interface Found {
  readonly start: number;
  readonly end: number;
}

export class RedactedStream {
  readonly #meter: Meter;
  readonly #scans: readonly Scan[];
  /** The end of the text so far, and its position in the whole text. */
  #tail = '';
  #base = 0;
  /** From the first backslash on: the end of the text with its escapes masked, and its search. */
  #escapes: { readonly mask: EscapeMask; readonly scans: readonly Scan[]; tail: string } | null = null;
  /** Everything before it has been returned. */
  #returned = 0;
  /** The end of the matches that the last mark has replaced. */
  #covered = 0;
  #found: Found[] = [];

  constructor(patterns: readonly BoundedPattern[], meter: Meter) {
    this.#meter = meter;
    this.#scans = patterns.map((pattern) => new Scan(pattern, meter));
  }

  /** The characters that wait. */
  get heldChars(): number {
    return this.#base + this.#tail.length - this.#returned;
  }

  /** @returns what can no longer become a part of a match, with marks */
  feed(piece: string): string {
    return piece === '' ? '' : this.#take(piece, false);
  }

  /** The text is complete. @returns the rest */
  end(): string {
    return this.#take('', true);
  }

  /**
   * The text was cut here; what follows is another text.
   *
   * @returns a mark in place of what waits, because it may be the beginning of a match
   */
  cut(): string {
    const held = this.#tail.slice(this.#returned - this.#base);
    const begin = held.trimStart();
    this.#returned += held.length;
    this.#found = [];
    for (const scan of [...this.#scans, ...(this.#escapes?.scans ?? [])]) scan.skipTo(this.#returned);
    return begin === '' ? held : held.slice(0, held.length - begin.length) + REDACTED;
  }

  #take(piece: string, isEnd: boolean): string {
    if (this.#escapes === null && piece.includes('\\')) {
      this.#escapes = { mask: new EscapeMask(), scans: this.#scans.map((scan) => scan.copy()), tail: this.#tail };
    }
    const escapes = this.#escapes;
    const forms = escapes === null ? 1 : 2;
    this.#meter.charge((piece.length * this.#scans.length * forms) / CHARS_PER_STEP);
    this.#tail += piece;
    if (escapes !== null) escapes.tail += escapes.mask.feed(piece);
    const known = this.#found.length;
    for (const scan of this.#scans) scan.read(this.#tail, this.#base, isEnd, this.#found);
    for (const scan of escapes?.scans ?? []) scan.read(escapes?.tail ?? '', this.#base, isEnd, this.#found);
    this.#keepEscapes(known);
    const scans = [...this.#scans, ...(escapes?.scans ?? [])];
    const decided = Math.min(...scans.map((scan) => scan.decided));
    const needed = decided - CONTEXT_CHARS;
    const until = Math.max(this.#returned, Math.min(decided, this.#base + this.#tail.length));
    const text = this.#until(until);
    const drop = Math.max(0, Math.min(until, needed) - this.#base);
    this.#tail = this.#tail.slice(drop);
    if (escapes !== null) escapes.tail = escapes.tail.slice(drop);
    this.#base += drop;
    return text;
  }

  /** Takes incomplete escapes at both ends out of the new matches, from the number `known` on. */
  #keepEscapes(known: number): void {
    const masked = this.#escapes?.tail;
    if (masked === undefined || known === this.#found.length) return;
    const isInside = (at: number): boolean => isInsideEscape(this.#tail, masked, at - this.#base);
    const whole = this.#found.splice(known).flatMap(({ start, end }): Found[] => {
      let [first, last] = [start, end];
      while (first < last && isInside(first)) first += 1;
      while (first < last && isInside(last)) last -= 1;
      return first < last ? [{ start: first, end: last }] : [];
    });
    for (const match of whole) this.#found.push(match);
  }

  #until(until: number): string {
    let text = '';
    let at = Math.max(this.#returned, Math.min(this.#covered, until));
    const found = this.#found.filter(({ start }) => start < until).toSorted((a, b) => a.start - b.start);
    this.#found = this.#found.filter(({ start }) => start >= until);
    for (const { start, end } of found) {
      if (start >= this.#covered) {
        text += this.#tail.slice(at - this.#base, start - this.#base) + REDACTED;
        this.#covered = end;
      } else if (end > this.#covered) this.#covered = end;
      at = Math.min(this.#covered, until);
    }
    text += this.#tail.slice(at - this.#base, until - this.#base);
    this.#returned = until;
    return text;
  }
}

/** The search of one pattern. All positions are in the whole text. */
class Scan {
  readonly #pattern: BoundedPattern;
  readonly #meter: Meter;
  /** The characters of a run that are searched together, if it is longer. */
  readonly #block: number;
  /** All matches that begin before it are known. */
  decided = 0;
  /** The next character to classify. */
  #next = 0;

  constructor(pattern: BoundedPattern, meter: Meter) {
    this.#pattern = pattern;
    this.#meter = meter;
    this.#block = Math.max(pattern.most, BLOCK_CHARS) + pattern.most + 1;
  }

  copy(): Scan {
    const copy = new Scan(this.#pattern, this.#meter);
    copy.decided = this.decided;
    copy.#next = this.#next;
    return copy;
  }

  skipTo(at: number): void {
    this.decided = at;
    this.#next = at;
  }

  read(tail: string, base: number, isEnd: boolean, found: Found[]): void {
    const { allows } = this.#pattern;
    const length = base + tail.length;
    let at = this.#next;
    while (at < length) {
      const codePoint = tail.codePointAt(at - base) ?? 0;
      // The other half may follow.
      if (!isEnd && at === length - 1 && codePoint >= 0xd800 && codePoint <= 0xdbff) break;
      const after = at + (codePoint > 0xffff ? 2 : 1);
      if (allows(codePoint)) {
        if (after - this.decided > this.#block) this.#searchBlock(tail, base, after, found);
      } else {
        this.#search(tail, base, at, after, found);
        this.decided = Math.max(this.decided, after);
      }
      at = after;
    }
    this.#next = at;
    if (!isEnd) return;
    this.#search(tail, base, length, length, found);
    this.decided = Infinity;
  }

  /** A long run: finds the matches that begin so early that what follows is known, and the character after it. */
  #searchBlock(tail: string, base: number, end: number, found: Found[]): void {
    let until = end - this.#pattern.most - 1;
    const isWithinPair = isLow(tail, until - base) && isHigh(tail, until - base - 1);
    if (isWithinPair) until -= 1;
    this.#search(tail, base, until, end, found);
    this.decided = Math.max(this.decided, until);
  }

  /** Finds the matches that begin before `until`, knowing the text up to `end`. */
  #search(tail: string, base: number, until: number, end: number, found: Found[]): void {
    const { least, required, find } = this.#pattern;
    if (end - this.decided < least || until <= this.decided) return;
    const from = Math.max(0, this.decided - base - CONTEXT_CHARS);
    const text = tail.slice(from, end - base);
    const shift = base + from;
    if (required !== null && !text.includes(required, this.decided - shift)) return;
    while (this.decided < until) {
      const match = find(text, this.decided - shift, this.#meter);
      if (match === null || match.start + shift >= until) return;
      found.push({ start: match.start + shift, end: match.end + shift });
      this.decided = match.end + shift;
    }
  }
}

function isHigh(text: string, at: number): boolean {
  const unit = text.charCodeAt(at);
  return unit >= 0xd800 && unit <= 0xdbff;
}

function isLow(text: string, at: number): boolean {
  const unit = text.charCodeAt(at);
  return unit >= 0xdc00 && unit <= 0xdfff;
}
