/**
 * Counts the UTF-8 bytes of streamed text against a limit (P16). Cheaper than reading every character: short pieces
 * are collected and passed to the platform's encoder together.
 *
 * Invariants:
 *  1. The accepted prefix does not depend on how the text was cut, even inside a surrogate pair.
 *  2. Fewer than `BUFFERED_CHARS` characters are kept.
 *  3. The next `room` characters fit, whatever they are.
 */

const BUFFERED_CHARS = 2_048;
/** Pieces of at least this length are encoded at once. */
const LONG_PIECE_CHARS = 512;
const encoder = new TextEncoder();
const scratch = new Uint8Array(8_192);

export class ByteMeter {
  readonly #limit: number;
  /** Bytes so far, without the buffered text. */
  #bytes = 0;
  #buffered = '';
  /** Close to the limit, every character is counted; `#buffered` then only says whether a pair is half read. */
  #exact = false;
  /** Characters that are certain to fit and may be passed to `take`. */
  room: number;

  constructor(limit: number) {
    this.#limit = limit;
    this.room = this.#certainRoom();
  }

  /** Counts a piece of at most `room` characters. */
  take(piece: string): void {
    this.room -= piece.length;
    if (piece.length < LONG_PIECE_CHARS) {
      this.#buffered += piece;
      if (this.#buffered.length >= BUFFERED_CHARS) this.#countBuffered();
      return;
    }
    if (this.#buffered !== '') this.#countBuffered();
    // The buffer contains half a pair at most.
    this.#buffered = this.#buffered === '' ? piece : this.#buffered + piece;
    this.#countBuffered();
  }

  /** Counts any piece. @returns the prefix that fits, whole characters only */
  fit(piece: string): string {
    if (!this.#exact && piece.length > this.room) {
      this.#countBuffered();
      if (piece.length > this.room) this.#switchToExact();
    }
    if (this.#exact) return this.#fitExactly(piece);
    this.take(piece);
    return piece;
  }

  #certainRoom(): number {
    // One byte is reserved for the second half of a pair whose first half is last.
    return Math.floor((this.#limit - this.#bytes - 1) / 3) - this.#buffered.length;
  }

  #countBuffered(): void {
    const text = this.#buffered;
    // The first half of a surrogate pair waits for the second.
    const whole = isHighSurrogate(text.charCodeAt(text.length - 1)) ? text.slice(0, -1) : text;
    this.#bytes += utf8Bytes(whole);
    this.#buffered = whole.length === text.length ? '' : text.slice(whole.length);
    this.room = this.#certainRoom();
  }

  #switchToExact(): void {
    this.#exact = true;
    this.room = 0;
    this.#bytes += this.#buffered.length * 3;
  }

  #fitExactly(piece: string): string {
    let halfRead = this.#buffered !== '';
    for (let index = 0; index < piece.length; index += 1) {
      const code = piece.charCodeAt(index);
      const high = isHighSurrogate(code);
      // A pair has four bytes: three for its first half, one for its second. A lone half has three.
      const size = code < 0x80 || (halfRead && isLowSurrogate(code)) ? 1 : code < 0x800 ? 2 : 3;
      if (this.#bytes + (high ? 4 : size) > this.#limit) return piece.slice(0, index);
      halfRead = high;
      this.#bytes += size;
    }
    if (piece !== '') this.#buffered = halfRead ? piece.slice(-1) : '';
    return piece;
  }
}

/** A lone surrogate counts as three bytes, the size of the replacement character. */
export function utf8Bytes(text: string): number {
  let bytes = 0;
  for (let rest = text; ;) {
    const { read, written } = encoder.encodeInto(rest, scratch);
    bytes += written;
    if (read === rest.length) return bytes;
    rest = rest.slice(read);
  }
}

function isHighSurrogate(code: number): boolean {
  return code >= 0xd800 && code <= 0xdbff;
}

function isLowSurrogate(code: number): boolean {
  return code >= 0xdc00 && code <= 0xdfff;
}
