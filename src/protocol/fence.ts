/**
 * Code fences: lines of three or more backticks or tildes, on lines of their own (P9).
 *
 * Owns whether the reader stands inside a fence, and as much of the current line as it takes to know
 * whether it is one. A line is judged when it ends.
 */

/** What may still become the line of a fence. */
const MAY_BE_FENCE = /^ {0,3}(?:$|`{1,2}$|~{1,2}$|`{3,}[^`]*$|~{3,}.*$)/;
const FENCE = /^ {0,3}(`{3,}|~{3,})([^`]*)$/;
/** A longer line is no fence: what is kept of it stays bounded. */
const LONGEST_CHARS = 200;

export class FenceTracker {
  #mark = '';
  /** The line so far while it may be a fence; null once it cannot. */
  #line: string | null = '';

  get open(): boolean {
    return this.#mark !== '';
  }

  get line(): string | null {
    return this.#line;
  }

  /** Nothing but blanks on this line so far. */
  get atLineStart(): boolean {
    return this.#line !== null && this.#line.trim() === '';
  }

  add(piece: string): void {
    if (this.#line === null) return;
    const line = this.#line + piece.slice(0, LONGEST_CHARS + 1);
    this.#line = line.length <= LONGEST_CHARS && MAY_BE_FENCE.test(line.replace(/\r$/, '')) ? line : null;
  }

  /** Something that is not text stood on this line: it is no fence. */
  spoilLine(): void {
    this.#line = null;
  }

  startLine(): void {
    this.#line = '';
  }

  lineIsFence(): boolean {
    return this.#line !== null && FENCE.test(this.#line.replace(/\r$/, ''));
  }

  /** The line has ended: opens or closes a fence where it was one. */
  endLine(): void {
    const match = this.#line === null ? null : FENCE.exec(this.#line.replace(/\r$/, ''));
    this.#line = '';
    if (match === null) return;
    const [, mark = '', info = ''] = match;
    if (this.#mark === '') this.#mark = mark;
    else if (mark[0] === this.#mark[0] && mark.length >= this.#mark.length && info.trim() === '') this.#mark = '';
  }

  /** The current line may be one that wraps the whole text, or that ends such a wrapping. */
  mayWrap(blank: boolean, wrapped: boolean): boolean {
    return (blank || wrapped) && !this.open && this.#line !== null;
  }
}
