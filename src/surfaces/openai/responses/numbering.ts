/**
 * Numbers of the frames of a response, and the pieces of its text: the same live and replayed (E2).
 *
 * A client that resumes filters frames by number, so a replay must give each frame the number that it had. The journal has
 * neither how the text was cut, nor where it stood between other events. Therefore the text is cut by its content alone,
 * and frames of other events wait while a block is open (response-state.ts).
 *
 * @see docs/decisions/024-numbers-of-response-frames.md
 */

/** Greatest length of a piece of text, in UTF-16 code units. */
const PIECE_CHARS = 32;

/** Numbers that belong to one event: more than a block has characters. 2^53 / 2^24 events have numbers. */
const PER_EVENT = 2 ** 24;

export class FrameNumbers {
  #seq = 0;
  #count = 0;

  /** What follows belongs to this event. An event that has waited for a later one counts as a part of it. */
  at(seq: number): void {
    if (seq <= this.#seq) return;
    this.#seq = seq;
    this.#count = 0;
  }

  /** @param size a piece of text takes as many numbers as it has characters, so that they depend on its place only */
  next(size = 1): number {
    this.#count += size;
    return this.#seq * PER_EVENT + this.#count;
  }
}

/**
 * Where the piece of text ends that begins at `from`: after a word with the white space before it, or after
 * `PIECE_CHARS`. Surrogate pairs are not split.
 *
 * @returns null if that depends on text that is still to come
 */
export function endOfPiece(text: string, from: number): number | null {
  const window = text.slice(from, from + PIECE_CHARS);
  const word = /^\s*\S+(?=\s)/.exec(window);
  if (word !== null) return from + word[0].length;
  if (window.length < PIECE_CHARS) return null;
  const splitsPair = /[\uD800-\uDBFF]$/.test(window);
  return from + PIECE_CHARS - (splitsPair ? 1 : 0);
}
