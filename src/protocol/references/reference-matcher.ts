/**
 * The grammar of references (P12): `$name.step[0]` and `${name.step[0]}`, one character at a time, so that a text may
 * be cut anywhere.
 *
 * Owns the state of one reference. Does not own its text: the caller keeps it and passes it to `reference`.
 *
 * Invariants:
 *  1. Each character is read once.
 *  2. The outcome is known after at most `limits.referenceChars` characters.
 */
import { limits } from '../../domain/limits.ts';
import type { PathStep, Reference } from '../../domain/protocol-event.ts';

/**
 * The effect of a character.
 *  - `pending`: it may belong to the reference
 *  - `ends_before`: the reference ended before it; the last `tailChars` characters taken are text again
 *  - `ends_with`: it is the last character of the reference
 *  - `text_before`: there is no reference: the characters taken are text, this character is still to be read
 *  - `dollar`: it completes `$$`, a literal dollar sign
 */
export type MatchOutcome = 'pending' | 'ends_before' | 'ends_with' | 'text_before' | 'dollar';

/** Numbers, because a step runs for every character. */
const State = {
  start: 0,
  name: 1,
  dot: 2,
  step: 3,
  index: 4,
  indexEnd: 5,
} as const;
type State = (typeof State)[keyof typeof State];

const MAX_INDEX_DIGITS = 9;
const NO_PATH: readonly PathStep[] = [];

const DOLLAR = 36;
const DOT = 46;
const OPEN_BRACKET = 91;
const CLOSE_BRACKET = 93;
const UNDERSCORE = 95;
const OPEN_BRACE = 123;
const CLOSE_BRACE = 125;
const DELETE = 127;

export class ReferenceMatcher {
  #state: State = State.start;
  #braced = false;
  /** Characters taken, including the `$`. */
  #taken = 1;
  /** Length of the current name or index. */
  #partChars = 0;
  /** Positions of each `.` and `[`, counted from the `$`. */
  readonly #separators: number[] = [];

  /** Begins a new reference, after its `$`. */
  reset(): void {
    this.#state = State.start;
    this.#taken = 1;
    this.#partChars = 0;
    this.#separators.length = 0;
  }

  /** After `ends_before`: how many of the characters taken follow the reference, such as the dot in `$a. `. */
  get tailChars(): number {
    const incomplete = this.#state === State.dot || this.#state === State.index;
    return incomplete ? this.#taken - (this.#separators.at(-1) ?? this.#taken) : 0;
  }

  step(code: number): MatchOutcome {
    const outcome = this.#step(code);
    if (outcome !== 'pending') return outcome;
    this.#taken += 1;
    return this.#taken > limits.referenceChars ? 'text_before' : 'pending';
  }

  /** The text has ended. @returns `ends_before` or `text_before` */
  finish(): MatchOutcome {
    return this.#state === State.start || this.#braced ? 'text_before' : 'ends_before';
  }

  /** @param raw the reference that was matched, from its `$` to its end */
  reference(raw: string): Reference {
    const start = this.#braced ? 2 : 1;
    const end = this.#braced ? raw.length - 1 : raw.length;
    const separators = this.#separators;
    const complete = this.tailChars > 0 ? separators.length - 1 : separators.length;
    if (complete === 0) return { name: raw.slice(start, end), path: NO_PATH, raw };
    const path: PathStep[] = [];
    for (let step = 0; step < complete; step += 1) {
      const from = separators[step] ?? end;
      const to = separators[step + 1] ?? end;
      path.push(raw.charCodeAt(from) === OPEN_BRACKET ? Number(raw.slice(from + 1, to - 1)) : raw.slice(from + 1, to));
    }
    return { name: raw.slice(start, separators[0]), path, raw };
  }

  #step(code: number): MatchOutcome {
    switch (this.#state) {
      case State.start:
        if (code === DOLLAR) return 'dollar';
        this.#braced = code === OPEN_BRACE;
        if (this.#braced) return this.#go(State.name);
        return isNameStart(code) ? this.#go(State.name, 1) : 'text_before';
      case State.name:
        if (!this.#isPartOfName(code)) return this.#partChars === 0 ? 'text_before' : this.#afterPart(code);
        this.#partChars += 1;
        return this.#partChars > limits.referenceNameChars ? 'text_before' : 'pending';
      case State.dot:
        return this.#isPartOfName(code) ? this.#go(State.step) : this.#break();
      case State.step:
        return this.#isPartOfName(code) ? 'pending' : this.#afterPart(code);
      case State.index:
        if (code === CLOSE_BRACKET && this.#partChars > 0) return this.#go(State.indexEnd);
        if (!isDigit(code) || this.#partChars === MAX_INDEX_DIGITS) return this.#break();
        this.#partChars += 1;
        return 'pending';
      case State.indexEnd:
        return this.#afterPart(code);
    }
  }

  /** A name, a step or an index is complete; `code` is the next character. */
  #afterPart(code: number): MatchOutcome {
    if (code === DOT || code === OPEN_BRACKET) {
      this.#separators.push(this.#taken);
      return this.#go(code === DOT ? State.dot : State.index);
    }
    return this.#braced && code === CLOSE_BRACE ? 'ends_with' : this.#break();
  }

  /** `code` cannot continue the reference: without braces the reference ends before it, with braces there is none. */
  #break(): MatchOutcome {
    return this.#braced ? 'text_before' : 'ends_before';
  }

  #go(state: State, partChars = 0): MatchOutcome {
    this.#state = state;
    this.#partChars = partChars;
    return 'pending';
  }

  #isPartOfName(code: number): boolean {
    return this.#braced ? isBracedCharacter(code) : isNameStart(code) || isDigit(code);
  }
}

function isNameStart(code: number): boolean {
  const letter = code | 32;
  return (letter >= 97 && letter <= 122) || code === UNDERSCORE;
}

function isDigit(code: number): boolean {
  return code >= 48 && code <= 57;
}

const BRACED_EXCLUDED: ReadonlySet<number> = new Set([...'"$&\'.<>[]{}'].map((sign) => sign.charCodeAt(0)));

/** Characters allowed in ids (P12), except the delimiters of a reference. */
function isBracedCharacter(code: number): boolean {
  return code > 32 && code !== DELETE && !BRACED_EXCLUDED.has(code);
}
