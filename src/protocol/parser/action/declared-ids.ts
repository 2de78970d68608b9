/** The ids and declarations of one generation: distinguishes a repeated declaration from an id conflict (P6). */

/** Declarations are kept verbatim up to this total, then as hashes, to bound memory. */
const KEPT_CHARS = 24_576;
/** Texts up to this length are hashed later. */
const WAITING_CHARS = 8_192;

export class DeclaredIds {
  readonly #declared = new Map<string, string | number>();
  #charsLeft = KEPT_CHARS;
  /** The latest id whose text is still to be hashed. */
  #waiting: string | null = null;

  has(id: string): boolean {
    return this.#declared.has(id);
  }

  /**
   * @param text the whole declaration, verbatim
   * @returns `new` (now recorded); `same` for the same text under this id; `other` for a different text
   */
  declare(id: string, text: string): 'new' | 'same' | 'other' {
    const known = this.#declared.get(id);
    if (known !== undefined) return known === (typeof known === 'string' ? text : hash(text)) ? 'same' : 'other';
    this.settle();
    if (text.length <= this.#charsLeft) {
      this.#charsLeft -= text.length;
      this.#declared.set(id, text);
    } else if (text.length <= WAITING_CHARS) {
      this.#declared.set(id, text);
      this.#waiting = id;
    } else this.#declared.set(id, hash(text));
    return 'new';
  }

  /** Replaces the declaration under an id. */
  replace(id: string, text: string): void {
    this.#declared.delete(id);
    this.declare(id, text);
  }

  /** Does the hashing that `declare` postponed. */
  settle(): void {
    if (this.#waiting === null) return;
    const text = this.#declared.get(this.#waiting);
    if (typeof text === 'string') this.#declared.set(this.#waiting, hash(text));
    this.#waiting = null;
  }
}

const encoder = new TextEncoder();
const bytes = new Uint8Array(8_192);
const words = new Uint32Array(bytes.buffer);

/** A 53-bit hash of a text, four bytes at a time. */
function hash(text: string): number {
  let low = 0x811c9dc5 ^ text.length;
  let high = 0x01000193;
  let third = 0x9747b28c;
  let fourth = 0x3c6ef372;
  for (let rest = text; ;) {
    const { read, written } = encoder.encodeInto(rest, bytes);
    bytes.fill(0, written, Math.min(bytes.length, written + 15));
    // Four independent lanes, each over every fourth word.
    const count = (written + 3) >> 2;
    for (let index = 0; index < count; index += 4) {
      low = Math.imul(low ^ (words[index] ?? 0), 0x01000193);
      high = Math.imul(high ^ (words[index + 1] ?? 0), 0x5bd1e995);
      third = Math.imul(third ^ (words[index + 2] ?? 0), 0x01000193);
      fourth = Math.imul(fourth ^ (words[index + 3] ?? 0), 0x5bd1e995);
      low ^= low >>> 15;
      high ^= high >>> 13;
      third ^= third >>> 15;
      fourth ^= fourth >>> 13;
    }
    if (read === rest.length) break;
    rest = rest.slice(read);
  }
  low = Math.imul(low ^ third, 0x01000193) ^ (fourth >>> 15);
  high = Math.imul(high ^ fourth, 0x5bd1e995) ^ (third >>> 13);
  low = Math.imul(low ^ (high >>> 15), 0x2c1b3c6d);
  high = Math.imul(high ^ (low >>> 13), 0x297a2d39);
  return (high & 0x1fffff) * 4_294_967_296 + (low >>> 0);
}
