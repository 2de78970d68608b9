/**
 * Counts the UTF-8 bytes of a text that comes in pieces against a limit (P16), for less than it costs
 * to look at every character: short pieces are gathered and handed to the platform's encoder together.
 *
 * Invariants:
 *  1. What fits is decided as if the text had come whole, wherever it was cut, also inside a pair.
 *  2. Fewer than `GATHERED_CHARS` characters are kept.
 *  3. `room` characters more fit, whatever they are.
 */

const GATHERED_CHARS = 2_048;
/** From here on the encoder is called at once. */
const LONG_PIECE_CHARS = 512;
const encoder = new TextEncoder();
const scratch = new Uint8Array(8_192);

export class ByteMeter {
  readonly #limit: number;
  /** Of the text so far, less what is gathered. */
  #bytes = 0;
  #gathered = '';
  /** So close to the limit that every character is counted; `#gathered` then only tells that a pair is half read. */
  #exact = false;
  /** Characters that certainly fit: so many may be passed to `take`. */
  room: number;

  constructor(limit: number) {
    this.#limit = limit;
    this.room = this.#certain();
  }

  /** Counts a piece of at most `room` characters. */
  take(piece: string): void {
    this.room -= piece.length;
    if (piece.length < LONG_PIECE_CHARS) {
      this.#gathered += piece;
      if (this.#gathered.length >= GATHERED_CHARS) this.#countCoalesced();
      return;
    }
    if (this.#gathered !== '') this.#countCoalesced();
    // Half a pair is left.
    this.#gathered = this.#gathered === '' ? piece : this.#gathered + piece;
    this.#countCoalesced();
  }

  /** Counts any piece; returns the beginning of it that fits, whole characters only. */
  fit(piece: string): string {
    if (!this.#exact && piece.length > this.room) {
      this.#countCoalesced();
      if (piece.length > this.room) this.#beExact();
    }
    if (this.#exact) return this.#fitExactly(piece);
    this.take(piece);
    return piece;
  }

  #certain(): number {
    // The one byte is for the second half of a pair whose first half comes last.
    return Math.floor((this.#limit - this.#bytes - 1) / 3) - this.#gathered.length;
  }

  #countCoalesced(): void {
    const text = this.#gathered;
    // Half of a surrogate pair waits for its other half.
    const whole = isHighSurrogate(text.charCodeAt(text.length - 1)) ? text.slice(0, -1) : text;
    this.#bytes += utf8Bytes(whole);
    this.#gathered = whole.length === text.length ? '' : text.slice(whole.length);
    this.room = this.#certain();
  }

  #beExact(): void {
    this.#exact = true;
    this.room = 0;
    this.#bytes += this.#gathered.length * 3;
  }

  #fitExactly(piece: string): string {
    let halfRead = this.#gathered !== '';
    for (let index = 0; index < piece.length; index += 1) {
      const code = piece.charCodeAt(index);
      const high = isHighSurrogate(code);
      // A pair has four bytes: three for its first half, one for its second. Alone, a half counts three.
      const size = code < 0x80 || (halfRead && isLowSurrogate(code)) ? 1 : code < 0x800 ? 2 : 3;
      if (this.#bytes + (high ? 4 : size) > this.#limit) return piece.slice(0, index);
      halfRead = high;
      this.#bytes += size;
    }
    if (piece !== '') this.#gathered = halfRead ? piece.slice(-1) : '';
    return piece;
  }
}

/** Lone surrogates count three bytes, as the replacement character that stands for them has. */
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
