/** A position in the generation's text: offsets in UTF-16 code units, 1-based lines and columns. */
export class TextPosition {
  /** Offset of the first character of the current text. */
  base = 0;
  line = 1;
  /** Offset of the first character of the line. */
  #lineStart = 0;

  /** @param offset of a character of the current line */
  column(offset: number): number {
    return offset - this.#lineStart + 1;
  }

  /** A line ended. @param next offset of the character after its line feed */
  endLine(next: number): void {
    this.line += 1;
    this.#lineStart = next;
  }

  /** @param offset of the first character of `text` */
  countLines(text: string, offset: number): void {
    let lineFeed = text.indexOf('\n');
    while (lineFeed !== -1) {
      this.endLine(offset + lineFeed + 1);
      lineFeed = text.indexOf('\n', lineFeed + 1);
    }
  }
}
