/**
 * The position in Markdown text that is written piece by piece: whether a line has just begun, and whether it is inside
 * a code fence. Reads each character once.
 */

/** Characters of a line that are kept: enough for the indentation and a fence. */
const KEPT_CHARS = 40;
const BACKTICK = 0x60;

/** As in responses: list and quotation marks may come before it (P9). */
const FENCE = /^(?:\s|[-*+>]\s|\d+[.)]\s)*(`{3,}|~{3,})/;
const INDENT = /^ {0,3}$/;

export class MarkdownPosition {
  #line = '';
  /** The line is longer than what is kept of it. */
  #isLonger = false;
  #fence: string | null = null;
  #isAfterBlank = true;
  /** The line has an odd number of backticks so far. */
  #isInCode = false;

  write(text: string): void {
    let from = 0;
    for (let end = text.indexOf('\n'); end !== -1; end = text.indexOf('\n', from)) {
      this.#extend(text, from, end);
      this.#endLine();
      from = end + 1;
    }
    this.#extend(text, from, text.length);
  }

  /** The white space before the current position if the line has no other text and is not in a code fence, else null. */
  get indent(): string | null {
    return this.#fence === null && !this.#isLonger && INDENT.test(this.#line) ? this.#line : null;
  }

  get isInFence(): boolean {
    return this.#fence !== null;
  }

  /** Whether a code span may be open in the line: its number of backticks is odd. */
  get isInCode(): boolean {
    return this.#isInCode;
  }

  /** Whether the previous line is blank, or there is none. */
  get isAfterBlank(): boolean {
    return this.#isAfterBlank;
  }

  #extend(text: string, from: number, to: number): void {
    const room = KEPT_CHARS - this.#line.length;
    if (to - from > room) this.#isLonger = true;
    for (let at = from; at < to; at += 1) if (text.charCodeAt(at) === BACKTICK) this.#isInCode = !this.#isInCode;
    if (room > 0 && to > from) this.#line += text.slice(from, Math.min(to, from + room));
  }

  #endLine(): void {
    const mark = FENCE.exec(this.#line)?.[1];
    if (mark !== undefined) {
      if (this.#fence === null) this.#fence = mark;
      else if (this.#closes(mark)) this.#fence = null;
    }
    this.#isAfterBlank = !this.#isLonger && this.#line.trim() === '';
    this.#line = '';
    this.#isLonger = false;
    this.#isInCode = false;
  }

  /** A fence is closed by the same character, at least as often, with nothing behind it. */
  #closes(mark: string): boolean {
    const behind = this.#line.trimStart().slice(mark.length).trim();
    return (
      this.#line.trimStart().startsWith(mark) && behind === '' && !this.#isLonger && mark.startsWith(this.#fence ?? '')
    );
  }
}
