/**
 * Code fences in the text of a block (P9): tags inside a fence are quoted text and have no effect.
 *
 * Owns the position within the line, and the open fence. Does not own the text.
 *
 * Invariants:
 *  1. A fence is a line that begins with at least three backticks or tildes. In a response, list and quotation marks may
 *     come before them. A line of at least as many of the same character, and nothing else, closes it.
 *  2. After a line of a response that leaves such a run open, marks without an info string may close it: in the rest
 *     of the response they open no fence.
 *  3. Only the beginning of a line is read character by character.
 */
import {
  ASTERISK,
  BACKTICK,
  BYTE_ORDER_MARK,
  CLOSE_PARENTHESIS,
  DOLLAR,
  FULL_STOP,
  GREATER,
  HYPHEN,
  LESS,
  LINE_FEED,
  PLUS,
  TILDE,
  isDigit,
  isSpace,
} from './characters.ts';
import type { Block } from './block-writer.ts';
import type { InlineCode } from './inline-code.ts';
import type { TextPosition } from './text-position.ts';
import type { Wrapper } from './wrapper.ts';

type Place =
  /** Only white space on the line so far. */
  | 'line_start'
  /** In the number of a list item. */
  | 'number'
  /** After the mark of a list item or quotation: white space must follow. */
  | 'item'
  /** In the backticks or tildes of a possible fence. */
  | 'marks'
  /** After the marks. */
  | 'info'
  | 'inside_line';

/** Minimum number of backticks or tildes in a fence. */
const FENCE_MARKS = 3;

export class Fences {
  readonly #position: TextPosition;
  readonly #wrapper: Wrapper;
  readonly #code: InlineCode;
  #place: Place = 'line_start';
  /** The character of the open fence; 0 for none. */
  #open = 0;
  #openMarks = 0;
  /** Mark of the current line, if it may be a fence. */
  #mark = 0;
  #marks = 0;
  #infoBlank = true;
  /** A line left a run of marks open. */
  #doubtful = false;

  constructor(position: TextPosition, wrapper: Wrapper, code: InlineCode) {
    this.#position = position;
    this.#wrapper = wrapper;
    this.#code = code;
  }

  get open(): boolean {
    return this.#open !== 0;
  }

  get atLineStart(): boolean {
    return this.#place === 'line_start';
  }

  get insideLine(): boolean {
    return this.#place === 'inside_line';
  }

  /** A block begins or ends: closes the fence. */
  reset(atLineStart: boolean): void {
    this.#close();
    this.#doubtful = false;
    this.#code.startLine(null);
    this.#place = atLineStart ? 'line_start' : 'inside_line';
  }

  enterLine(): void {
    this.#place = 'inside_line';
  }

  enterLineStart(): void {
    this.#place = 'line_start';
  }

  /** A line ended. @param next offset of the character after its line feed */
  endLine(next: number): void {
    if (this.#place === 'info' || (this.#place === 'marks' && this.#isFence())) {
      if (this.open) this.#close();
      else if (!this.#doubtful || !this.#infoBlank) {
        this.#open = this.#mark;
        this.#openMarks = this.#marks;
      }
    } else if (!this.open && this.#code.leavesOpen(FENCE_MARKS)) this.#doubtful = true;
    this.#place = 'line_start';
    this.#position.endLine(next);
    this.#code.startLine(next);
  }

  #close(): void {
    this.#open = 0;
    this.#openMarks = 0;
  }

  /**
   * Reads the beginning of a line, and of the next lines while they are short.
   *
   * @returns the index of the first character inside a line. At the start of a line it stops at a `<`, or at a mark
   *   that may begin the wrapper's line.
   */
  readLineStart(text: string, from: number, block: Block): number {
    let index = from;
    for (; index < text.length && this.#place !== 'inside_line';) {
      const code = text.charCodeAt(index);
      if (code === LINE_FEED) {
        index += 1;
        this.endLine(this.#position.base + index);
        continue;
      }
      switch (this.#place) {
        case 'line_start':
          if (isSpace(code) || (code === BYTE_ORDER_MARK && this.#position.base + index === 0)) break;
          if (code === LESS) return index;
          if (block === 'response' && !this.open && this.#beginsItem(code)) break;
          if (code !== BACKTICK && code !== TILDE) return this.#enter(index);
          if (block === 'text' && !this.open && this.#wrapper.mayBeginWith(code)) return index;
          if (this.open && this.#open !== code) return this.#enter(index);
          this.#place = 'marks';
          this.#mark = code;
          this.#marks = 1;
          this.#infoBlank = true;
          break;
        case 'number':
          if (isDigit(code)) break;
          if (code !== FULL_STOP && code !== CLOSE_PARENTHESIS) return this.#enter(index);
          this.#place = 'item';
          break;
        case 'item':
          if (!isSpace(code)) return this.#enter(index);
          this.#place = 'line_start';
          break;
        case 'marks':
          if (code === this.#mark) {
            this.#marks += 1;
            break;
          }
          if (!this.#isFence()) return this.#enter(index);
          this.#place = 'info';
          continue;
        case 'info':
          if (isSpace(code)) break;
          if (this.open) {
            // Only the end of the block may follow a closing fence.
            if (code === LESS && this.#infoBlank) {
              this.#close();
              this.#code.startLine(this.#position.base + index);
            }
            return this.#enter(index);
          }
          if (code === LESS || (code === DOLLAR && block === 'response')) return this.#enter(index);
          if (code === BACKTICK && this.#mark === BACKTICK) return this.#enter(index);
          this.#infoBlank = false;
          break;
      }
      index += 1;
    }
    return index;
  }

  /** Whether a character may begin a list item or quotation. */
  #beginsItem(code: number): boolean {
    if (isDigit(code)) this.#place = 'number';
    else if (code === HYPHEN || code === ASTERISK || code === PLUS || code === GREATER) this.#place = 'item';
    return this.#place !== 'line_start';
  }

  #enter(index: number): number {
    this.#place = 'inside_line';
    return index;
  }

  #isFence(): boolean {
    return this.#marks >= Math.max(FENCE_MARKS, this.#openMarks);
  }
}
