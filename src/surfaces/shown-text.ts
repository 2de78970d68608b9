/**
 * The text of one block, as its patches come (J4). Each part is shown once, also if patches overlap, and a block of white
 * space is not shown.
 */
export class ShownText {
  /** UTF-16 code units of its text that were seen. */
  #seen = 0;
  /** White space at its beginning, until it is shown. */
  #blank = '';
  #isShown = false;

  get isShown(): boolean {
    return this.#isShown;
  }

  /** @returns what to show now; '' for nothing */
  add(offset: number, delta: string): string {
    const added = delta.slice(Math.max(0, this.#seen - offset));
    this.#seen = Math.max(this.#seen, offset + delta.length);
    if (this.#isShown || added === '') return added;
    this.#blank += added;
    return /\S/.test(this.#blank) ? this.show() : '';
  }

  /** The block has ended. @returns the rest of its whole text to show; '' for nothing */
  end(content: string): string {
    return this.add(this.#seen, content.slice(this.#seen));
  }

  /** Shows the block, although it may be blank so far. @returns its text */
  show(): string {
    this.#isShown = true;
    return this.#blank;
  }
}
