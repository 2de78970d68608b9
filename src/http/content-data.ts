/**
 * Takes the base64 of files out of the JSON of a message while it arrives (C2). What is left is small enough to be
 * parsed as text; the files are decoded piece by piece (docs/decisions/049-files-leave-the-body-while-it-arrives.md).
 *
 * Owns the decoded files until `end`. Does not check the JSON: what is left has the same structure, so it is valid JSON
 * exactly if the body is.
 *
 * Invariants:
 *  1. Only strings at `content[…].data` are taken out; each is replaced by a mark that is not base64. A key that is
 *     written with escapes is not recognised: its string stays in the text, whose size is limited.
 *  2. All files together hold at most `limits.messageFileBytes`, each at most `limits.messagePartBytes`, and there are
 *     at most `limits.messageParts`. What exceeds this is counted, not held.
 *  3. Each byte costs constant work.
 */
import { Base64Decoder } from '../domain/base64-decoder.ts';
import type { Decoded } from '../domain/base64-decoder.ts';
import { limits } from '../domain/limits.ts';

/** A body without the base64 of its files. */
export interface ReducedBody {
  readonly text: string;
  /** The files by their marks. */
  readonly data: ReadonlyMap<string, Decoded>;
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const COLON = 0x3a;
const OPENING_BRACE = 0x7b;
const CLOSING_BRACE = 0x7d;
const OPENING_BRACKET = 0x5b;
const CLOSING_BRACKET = 0x5d;
const LETTER_U = 0x75;

/** What an escape of one letter stands for; 0: it is none. */
const ESCAPES = new Uint8Array(256);
for (const [letter, character] of Object.entries({
  '"': '"',
  '\\': '\\',
  '/': '/',
  b: '\b',
  f: '\f',
  n: '\n',
  r: '\r',
  t: '\t',
})) {
  ESCAPES[letter.charCodeAt(0)] = character.charCodeAt(0);
}

/** Longer strings are none of the names that matter. */
const NAME_BYTES = 16;

const encoder = new TextEncoder();

export class ContentData {
  readonly #decoder = new TextDecoder();
  readonly #data = new Map<string, Decoded>();
  #pieces: string[] = [];
  #textBytes = 0;
  #heldBytes = 0;

  #depth = 0;
  #isRootObject = false;
  #isInContent = false;
  #isInPart = false;
  /** The last string at a depth that matters, and whether it was the name of a member. */
  #name = '';
  #isValueOf = '';
  #isInString = false;
  #isEscaped = false;
  /** The bytes of a string in which no byte is escaped. Null: it is not one of the names. */
  #string: number[] | null = null;
  /** The file whose base64 is arriving. */
  #file: Base64Decoder | null = null;
  /** What is missing of the escape that arrives in it: its letter, digits of `\u`, or nothing. */
  #escape: 'letter' | 1 | 2 | 3 | 4 | null = null;
  /** The value of the digits of `\u`. */
  #escaped = 0;

  /** Bytes of the text that is left. */
  get textBytes(): number {
    return this.#textBytes;
  }

  feed(chunk: Uint8Array): void {
    let from = 0;
    let at = 0;
    while (at < chunk.length) {
      if (this.#file !== null) {
        at = this.#readData(this.#file, chunk, at);
        from = at;
        continue;
      }
      const byte = chunk[at] ?? 0;
      at += 1;
      if (this.#isInString) this.#readString(byte);
      else if (this.#readStructure(byte)) {
        this.#keep(chunk.subarray(from, at));
        from = at;
      }
    }
    if (this.#file === null) this.#keep(chunk.subarray(from));
  }

  end(): ReducedBody {
    const rest = this.#decoder.decode();
    const text = this.#pieces.join('') + rest;
    this.#pieces = [];
    return { text, data: this.#data };
  }

  #keep(bytes: Uint8Array): void {
    this.#textBytes += bytes.length;
    // What exceeds the limit is refused by the caller.
    if (bytes.length === 0 || this.#textBytes > limits.bodyBytes) return;
    const text = this.#decoder.decode(bytes, { stream: true });
    if (text !== '') this.#pieces.push(text);
  }

  /** @returns whether the base64 of a file begins after this byte */
  #readStructure(byte: number): boolean {
    switch (byte) {
      case QUOTE:
        if (this.#isInPart && this.#depth === 3 && this.#isValueOf === 'data') {
          this.#isValueOf = '';
          this.#beginData();
          return true;
        }
        this.#isInString = true;
        this.#string = this.#depth === 1 || (this.#isInPart && this.#depth === 3) ? [] : null;
        return false;
      case COLON:
        this.#isValueOf = this.#name;
        this.#name = '';
        return false;
      case COMMA:
        this.#isValueOf = '';
        this.#name = '';
        return false;
      case OPENING_BRACE:
      case OPENING_BRACKET:
        this.#open(byte === OPENING_BRACE);
        return false;
      case CLOSING_BRACE:
      case CLOSING_BRACKET:
        this.#close();
        return false;
      default:
        return false;
    }
  }

  #open(isObject: boolean): void {
    this.#depth += 1;
    if (this.#depth === 1) this.#isRootObject = isObject;
    if (this.#depth === 2) this.#isInContent = this.#isRootObject && !isObject && this.#isValueOf === 'content';
    if (this.#depth === 3) this.#isInPart = this.#isInContent && isObject;
    this.#isValueOf = '';
    this.#name = '';
  }

  #close(): void {
    this.#depth -= 1;
    if (this.#depth < 3) this.#isInPart = false;
    if (this.#depth < 2) this.#isInContent = false;
    this.#isValueOf = '';
    this.#name = '';
  }

  #readString(byte: number): void {
    if (this.#isEscaped) this.#isEscaped = false;
    else if (byte === BACKSLASH) {
      this.#isEscaped = true;
      this.#string = null;
    } else if (byte === QUOTE) {
      this.#isInString = false;
      this.#name = this.#string === null ? '' : String.fromCharCode(...this.#string);
    } else if (this.#string !== null) {
      if (this.#string.length < NAME_BYTES) this.#string.push(byte);
      else this.#string = null;
    }
  }

  #beginData(): void {
    const isOneMore = this.#data.size < limits.messageParts;
    const room = limits.messageFileBytes - this.#heldBytes;
    this.#file = new Base64Decoder(isOneMore ? Math.min(limits.messagePartBytes, room) : 0);
  }

  /** @returns where the text goes on */
  #readData(file: Base64Decoder, chunk: Uint8Array, from: number): number {
    for (let at = from; at < chunk.length; at += 1) {
      const byte = chunk[at] ?? 0;
      if (this.#escape !== null) {
        if (!this.#readEscape(file, byte)) return at + 1;
      } else if (byte === QUOTE) {
        this.#endData(file);
        this.#keep(QUOTE_BYTES);
        return at + 1;
      } else if (byte === BACKSLASH) this.#escape = 'letter';
      else if (byte < 0x20) {
        // A control character is not allowed in a string; it stays in the text, which is then not JSON.
        this.#endData(file);
        this.#isInString = true;
        return at;
      } else file.feedByte(byte);
    }
    return chunk.length;
  }

  /** @returns false if it is not an escape: then the base64 has ended */
  #readEscape(file: Base64Decoder, byte: number): boolean {
    if (this.#escape === 'letter') {
      if (byte === LETTER_U) {
        this.#escape = 4;
        this.#escaped = 0;
        return true;
      }
      this.#escape = null;
      const character = ESCAPES[byte] ?? 0;
      if (character === 0) return this.#endInEscape(file);
      file.feedByte(character);
      return true;
    }
    const digit = hexDigit(byte);
    if (digit < 0) return this.#endInEscape(file);
    this.#escaped = this.#escaped * 16 + digit;
    const left = Number(this.#escape) - 1;
    if (left > 0) this.#escape = left as 1 | 2 | 3;
    else {
      this.#escape = null;
      // A character beyond ASCII is no digit of base64.
      file.feedByte(Math.min(this.#escaped, 0xff));
    }
    return true;
  }

  /** What is left in the text is not JSON either. */
  #endInEscape(file: Base64Decoder): boolean {
    this.#escape = null;
    this.#endData(file);
    this.#keep(Uint8Array.of(BACKSLASH, LETTER_U, BACKSLASH));
    this.#isInString = true;
    return false;
  }

  #endData(file: Base64Decoder): void {
    const decoded = file.end();
    this.#heldBytes += decoded.bytes?.length ?? 0;
    this.#file = null;
    const mark = `data:${this.#data.size}`;
    // A mark beyond the number of parts is not base64, and of no file.
    if (this.#data.size < limits.messageParts) this.#data.set(mark, decoded);
    this.#keep(encoder.encode(mark));
  }
}

/** -1 for a byte that is none. */
function hexDigit(byte: number): number {
  if (byte >= 0x30 && byte <= 0x39) return byte - 0x30;
  const lower = byte | 0x20;
  return lower >= 0x61 && lower <= 0x66 ? lower - 0x57 : -1;
}

const QUOTE_BYTES = Uint8Array.of(QUOTE);
