/**
 * Inline code in the lines of a response (P9): decides whether a `</response>` is quoted by it.
 *
 * A run of backticks opens a span that the next run of the same length on the line closes. A run that nothing closes
 * is text, so the rest of the line decides about a tag in an open span.
 *
 * Owns the runs of the current line, and the search in the rest of the line. Does not own the text.
 *
 * Invariants:
 *  1. The verdict depends on the characters of the line only, not on how they were cut.
 *  2. The search reads at most `limits.inlineCodeChars` characters, each once. Then the tag counts.
 */
import { limits } from '../../domain/limits.ts';
import { BACKTICK, LINE_FEED } from './characters.ts';
import { Occurrences } from './occurrences.ts';

/** `more`: the text ended before the line did. */
export type Verdict = 'quoted' | 'tag' | 'more';

export class InlineCode {
  readonly #backticks = new Occurrences('`');
  /** Offset of the first character that was not read. */
  #next = 0;
  /** Lengths of the runs that may still be closed on this line, in order, all different. */
  #open: number[] = [];
  /** The latest run, and the offset after it. */
  #run = 0;
  #runEnd = -1;
  /** The search after a tag: its latest run, and the number of characters read. */
  #found = 0;
  #searched = 0;
  #verdict: Verdict = 'more';

  /** Prepares for a new text. */
  reset(): void {
    this.#backticks.reset();
  }

  /** Starts a line, or a block. @param offset of its first character; null if it is not known */
  startLine(offset: number | null): void {
    this.#run = 0;
    if (this.#open.length > 0) this.#open = [];
    if (offset !== null) this.#next = offset;
  }

  /** Continues at this offset. Text before it contains no backticks. */
  skipTo(offset: number): void {
    this.#next = offset;
  }

  /** Reads text of the line. @param base offset of the text's first character */
  read(text: string, to: number, base: number): void {
    let index = this.#next - base;
    for (;;) {
      const start = this.#backticks.from(text, index);
      if (start >= to) break;
      index = start + 1;
      while (index < to && text.charCodeAt(index) === BACKTICK) index += 1;
      if (base + start !== this.#runEnd) this.#endRun();
      this.#run += index - start;
      this.#runEnd = base + index;
    }
    this.#next = base + to;
  }

  /** At the end of a line: whether a run of at least `marks` backticks was not closed. */
  leavesOpen(marks: number): boolean {
    this.#endRun();
    return this.#open.some((run) => run >= marks);
  }

  /**
   * Judges a tag. After `more`, `search` continues, and the next call returns its verdict.
   *
   * @param at the tag's first character; the text before it was read
   * @param from the first character after its name
   */
  judge(text: string, at: number, from: number, base: number): Verdict {
    if (this.#verdict === 'more') {
      this.read(text, at, base);
      this.#endRun();
      if (this.#open.length === 0) return 'tag';
      this.#found = 0;
      this.#searched = 0;
      this.search(text, from);
    }
    const verdict = this.#verdict;
    this.#verdict = 'more';
    return verdict;
  }

  /** Reads the next text after a tag. @returns whether the verdict is known */
  search(text: string, from = 0): boolean {
    for (let index = from; index < text.length && this.#verdict === 'more'; index += 1) {
      const code = text.charCodeAt(index);
      this.#searched += 1;
      if (code === BACKTICK) this.#found += 1;
      else if (this.#closes()) this.#verdict = 'quoted';
      else {
        this.#found = 0;
        if (code === LINE_FEED) this.#verdict = 'tag';
      }
      if (this.#verdict === 'more' && this.#searched === limits.inlineCodeChars) this.#verdict = 'tag';
    }
    return this.#verdict !== 'more';
  }

  /** The text has ended during the search. */
  endSearch(): void {
    this.#verdict = this.#closes() ? 'quoted' : 'tag';
  }

  #closes(): boolean {
    return this.#found > 0 && this.#open.includes(this.#found);
  }

  #endRun(): void {
    if (this.#run === 0) return;
    const opening = this.#open.indexOf(this.#run);
    if (opening === -1) this.#open.push(this.#run);
    else this.#open.length = opening;
    this.#run = 0;
  }
}
