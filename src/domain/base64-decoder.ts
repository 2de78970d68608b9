/**
 * Decodes base64 that arrives in pieces, so that the text is never held as a whole.
 *
 * Accepts what `atob` accepts: white space anywhere, and missing padding. Owns the decoded bytes until `end`.
 *
 * Invariants:
 *  1. Memory is in proportion to what has arrived, and at most `mostBytes`. Beyond it, the bytes are released, and the
 *     rest is only counted.
 *  2. Each byte of the text costs constant work.
 */

/** What a base64 text contains. */
export interface Decoded {
  readonly isBase64: boolean;
  /** Length of the bytes. */
  readonly size: number;
  /** Null if there are more than the decoder may keep, or if the text is not base64. */
  readonly bytes: Uint8Array | null;
}

const SPACE = 64;
const PADDING = 65;
const INVALID = 66;
const VALUES = new Uint8Array(256).fill(INVALID);
for (const [value, digit] of [...'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/'].entries()) {
  VALUES[digit.charCodeAt(0)] = value;
}
for (const space of ' \t\n\f\r') VALUES[space.charCodeAt(0)] = SPACE;
VALUES['='.charCodeAt(0)] = PADDING;

/** Multiples of three, so that no group of digits extends beyond a block. Small files need small blocks. */
const FIRST_BLOCK_BYTES = 768;
const LARGEST_BLOCK_BYTES = 196_608;

export class Base64Decoder {
  readonly #mostBytes: number;
  #blocks: Uint8Array[] = [];
  #block = new Uint8Array(0);
  #at = 0;
  /** Bytes of the full blocks before the current one. */
  #before = 0;
  #digits = 0;
  #padding = 0;
  /** The digits of the current group. */
  #group = 0;
  #isBase64 = true;
  #isKept: boolean;

  /** @param mostBytes 0: the bytes are only counted */
  constructor(mostBytes: number) {
    this.#mostBytes = mostBytes;
    this.#isKept = mostBytes > 0;
  }

  /** The bytes that it holds. */
  get heldBytes(): number {
    return this.#isKept ? this.#before + this.#at : 0;
  }

  /** @param text ASCII; other bytes are not base64 */
  feed(text: Uint8Array): void {
    for (const byte of text) this.feedByte(byte);
  }

  feedByte(byte: number): void {
    const value = VALUES[byte] ?? INVALID;
    if (value < SPACE && this.#padding === 0) {
      this.#group = (this.#group << 6) | value;
      this.#digits += 1;
      if ((this.#digits & 3) === 0) this.#endGroup();
    } else if (value === PADDING) this.#padding += 1;
    else if (value !== SPACE && this.#isBase64) this.#fail();
  }

  #endGroup(): void {
    const group = this.#group;
    this.#group = 0;
    if (!this.#isKept) return;
    if (this.#at === this.#block.length) this.#nextBlock();
    if (!this.#isKept) return;
    const block = this.#block;
    const at = this.#at;
    block[at] = group >> 16;
    block[at + 1] = group >> 8;
    block[at + 2] = group;
    this.#at = at + 3;
  }

  #nextBlock(): void {
    this.#before += this.#at;
    if (this.#before > this.#mostBytes) {
      this.#release();
      return;
    }
    const length = Math.min(LARGEST_BLOCK_BYTES, Math.max(FIRST_BLOCK_BYTES, this.#block.length * 2));
    this.#block = new Uint8Array(length);
    this.#blocks.push(this.#block);
    this.#at = 0;
  }

  #fail(): void {
    this.#isBase64 = false;
    this.#release();
  }

  #release(): void {
    this.#isKept = false;
    this.#blocks = [];
    this.#block = new Uint8Array(0);
    this.#at = 0;
  }

  end(): Decoded {
    const left = this.#digits & 3;
    const isComplete = this.#padding === 0 || (this.#padding <= 2 && ((this.#digits + this.#padding) & 3) === 0);
    const size = Math.floor((this.#digits * 3) / 4);
    if (!this.#isBase64 || left === 1 || !isComplete) {
      this.#fail();
      return { isBase64: false, size, bytes: null };
    }
    if (!this.#isKept || size > this.#mostBytes) {
      this.#release();
      return { isBase64: true, size, bytes: null };
    }
    const bytes = new Uint8Array(size);
    let at = 0;
    for (const block of this.#blocks) {
      bytes.set(block === this.#block ? block.subarray(0, this.#at) : block, at);
      at += block === this.#block ? this.#at : block.length;
    }
    if (left === 2) bytes[at] = this.#group >> 4;
    if (left === 3) {
      bytes[at] = this.#group >> 10;
      bytes[at + 1] = this.#group >> 2;
    }
    this.#release();
    return { isBase64: true, size, bytes };
  }
}
