/**
 * Reads a tag from the end of its name to its `>` (P1, P5, P16).
 *
 * Owns the text and position of that tag. Does not own its meaning in the open block.
 *
 * Invariants:
 *  1. Each character is read once, however the text was cut.
 *  2. A tag ends after at most `limits.tagBytes` characters, or is `too_long`.
 */
import { limits } from '../../domain/limits.ts';
import { utf8Bytes } from './byte-meter.ts';
import { GREATER, LESS, isSpace } from './characters.ts';
import { TagHead } from './tag-head.ts';
import { matchTag } from './tags.ts';
import type { Tag } from './tags.ts';
import type { TextPosition } from './text-position.ts';

/**
 * The result of reading a tag.
 *  - `pending`: the text ended before the tag did
 *  - `maybe_tag`: the text ended in a `<` that may begin another tag
 *  - `ends`, `self_closing`: the tag ended at its `>`
 *  - `ends_before`: the body's `{` shows that an earlier `>` ended the tag
 *  - `another_tag`: another tag begins before this one ends
 *  - `too_long`: the tag has too many characters
 *  - `not_a_tag`: other text follows the name of a closing tag
 */
export type TagOutcome =
  | 'pending'
  | 'maybe_tag'
  | 'ends'
  | 'self_closing'
  | 'ends_before'
  | 'another_tag'
  | 'too_long'
  | 'not_a_tag';

export class TagReader {
  readonly head = new TagHead();
  /** The name as written, including `<` or `</`. */
  written = '';
  offset = 0;
  line = 1;
  column = 1;
  /** Index where `read` stopped. */
  next = 0;
  /** After `ends_before`: the text after the `>`. */
  rest = '';
  #closing = false;
  /** White space in a closing tag. */
  #space = '';

  begin(tag: Tag, text: string, at: number, position: TextPosition): void {
    this.written = text.slice(at, at + tag.headChars);
    this.offset = position.base + at;
    this.line = position.line;
    this.column = position.column(this.offset);
    this.head.reset(tag.type === 'action');
    this.#closing = tag.closing;
    this.#space = '';
  }

  /** The tag as written so far. */
  get source(): string {
    return this.written + this.inner;
  }

  /** The text after the name. */
  get inner(): string {
    return this.#closing ? this.#space : this.head.text;
  }

  /** Offset of the first character after the name. */
  get innerOffset(): number {
    return this.offset + this.written.length;
  }

  get tooManyBytes(): boolean {
    const chars = this.written.length + this.inner.length;
    // A UTF-16 code unit has at most three UTF-8 bytes.
    return chars * 3 > limits.tagBytes && utf8Bytes(this.source) > limits.tagBytes;
  }

  /** Reads more text, up to `next`. */
  read(text: string, from: number): TagOutcome {
    const room = limits.tagBytes - this.written.length - this.inner.length;
    return this.#closing ? this.#readClosing(text, from, from + room) : this.#readOpening(text, from, from + room);
  }

  /** Adds a held-back `<…`, which did not become another tag, to this tag. */
  takeHeld(held: string): void {
    if (held === '') return;
    this.head.takeLess();
    this.head.read(held, 1, held.length);
  }

  #readOpening(text: string, from: number, limit: number): TagOutcome {
    const to = Math.min(text.length, limit);
    for (let index = from; ;) {
      index = this.head.read(text, index, to);
      this.next = index;
      if (index === to) return to === limit ? 'too_long' : 'pending';
      switch (text.charCodeAt(index)) {
        case LESS: {
          const another = matchTag(text, index);
          if (another !== null) return another === 'more' ? 'maybe_tag' : 'another_tag';
          this.head.takeLess();
          index += 1;
          break;
        }
        case GREATER:
          this.next = index + 1;
          return this.head.end() ? 'self_closing' : 'ends';
        default:
          this.rest = this.head.cutAtTentativeEnd();
          return 'ends_before';
      }
    }
  }

  #readClosing(text: string, from: number, limit: number): TagOutcome {
    let index = from;
    while (index < text.length && index < limit && isSpace(text.charCodeAt(index))) index += 1;
    if (index > from) this.#space += text.slice(from, index);
    this.next = index;
    if (index === text.length) return 'pending';
    if (text.charCodeAt(index) !== GREATER || index >= limit) return 'not_a_tag';
    this.next = index + 1;
    return 'ends';
  }
}
