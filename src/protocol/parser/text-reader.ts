/**
 * Reads the text of the open block up to the next tag that is significant there (P1, P9, P12).
 *
 * Owns the position within the line (Fences), a possible wrapper line (Wrapper), and the open reference.
 * Does not own the block (BlockWriter) or the effect of a tag.
 *
 * Invariants:
 *  1. Text between tags, references and line starts is skipped with `indexOf`.
 *  2. Each character is read a bounded number of times, however the text was cut.
 *  3. Text is appended to the block as soon as it is certain to be text.
 */
import { ReferenceMatcher } from '../references/reference-matcher.ts';
import type { MatchOutcome } from '../references/reference-matcher.ts';
import type { BlockWriter } from './block-writer.ts';
import { LESS } from './characters.ts';
import { Fences } from './fences.ts';
import { InlineCode } from './inline-code.ts';
import { Occurrences } from './occurrences.ts';
import { isThought, matchTag } from './tags.ts';
import type { Tag } from './tags.ts';
import type { TextPosition } from './text-position.ts';
import { Wrapper } from './wrapper.ts';

/**
 * What is being read.
 *  - `text`: the text of the block
 *  - `reference`: the text after a `$` in a response
 *  - `wrapper_line`: a line that may be a fence around the whole output
 */
type State = 'text' | 'reference' | 'wrapper_line';

/**
 * Where `read` stopped: at a significant tag, at the possible beginning of a tag, at a tag that the rest of its line
 * may quote, or at the end of the text.
 */
export type Stop = Tag | 'more' | 'undecided' | 'end';

export class TextReader {
  readonly #writer: BlockWriter;
  readonly #position: TextPosition;
  readonly #actInReasoning: boolean;
  readonly #wrapper = new Wrapper();
  readonly #code = new InlineCode();
  readonly #fences: Fences;
  readonly #matcher = new ReferenceMatcher();
  readonly #lessSigns = new Occurrences('<');
  readonly #dollars = new Occurrences('$');
  readonly #lineFeeds = new Occurrences('\n');
  #state: State = 'text';
  #reference = '';
  #warnedOfDrafts = false;
  /** Where `read` stopped. */
  next = 0;

  constructor(writer: BlockWriter, position: TextPosition, actInReasoning: boolean) {
    this.#writer = writer;
    this.#position = position;
    this.#actInReasoning = actInReasoning;
    this.#fences = new Fences(position, this.#wrapper, this.#code);
  }

  /** Whether text without `<`, `$`, line feeds and, in a response, backticks can be appended unchanged. */
  get takesPlainText(): boolean {
    return this.#state === 'text' && this.#fences.insideLine && this.#writer.started;
  }

  /** After `undecided`: reads the next text of the line. @returns whether `read` can continue at the tag */
  search(text: string): boolean {
    return this.#code.search(text);
  }

  /** After `undecided`: the text has ended. */
  endSearch(): void {
    this.#code.endSearch();
  }

  /** Prepares for a new text in `read`. */
  reset(): void {
    this.#lessSigns.reset();
    this.#dollars.reset();
    this.#lineFeeds.reset();
    this.#code.reset();
  }

  read(text: string, from: number): Stop {
    this.next = from;
    const inResponse = this.#writer.block === 'response';
    if (inResponse) this.#code.skipTo(this.#position.base + from);
    const stop = this.#read(text);
    if (inResponse && !this.#fences.open) this.#code.read(text, this.next, this.#position.base);
    return stop;
  }

  #read(text: string): Stop {
    for (;;) {
      switch (this.#state) {
        case 'text': {
          const stop = this.#readText(text);
          if (stop !== 'reference' && stop !== 'wrapper_line') return stop;
          this.#state = stop;
          break;
        }
        case 'reference':
          this.#readReference(text);
          break;
        case 'wrapper_line':
          this.#readWrapperLine(text);
          break;
      }
      if (this.next === text.length) return 'end';
    }
  }

  /** The generation has ended in this state. @param held an incomplete tag, which is therefore text */
  finish(held: string): void {
    switch (this.#state) {
      case 'text':
        return this.append(held, this.#position.base);
      case 'reference':
        return this.#endReference(this.#matcher.finish());
      case 'wrapper_line':
        if (!this.#wrapper.closes) this.#appendWrapperLine(this.#position.base);
    }
  }

  /** A block begins after its tag. */
  enterBlock(): void {
    this.#fences.reset(true);
  }

  /** Text continues after a block's end. */
  leaveBlock(): void {
    this.#fences.reset(false);
  }

  /** Text continues after a tag. @param atLineStart the line contains only white space so far */
  enterLine(atLineStart = false): void {
    if (atLineStart) this.#fences.enterLineStart();
    else this.#fences.enterLine();
  }

  /** The generation has produced output: it can no longer be wrapped (P9). */
  forbidWrapper(): void {
    this.#wrapper.forbidOpening();
  }

  /** Appends text that was held back. @param offset of its first character */
  append(text: string, offset: number): void {
    this.#append(text, 0, text.length, offset);
  }

  #append(text: string, from: number, to: number, offset = this.#position.base + from): void {
    this.#writer.append(text, from, to, offset);
    if (this.#writer.started) this.#wrapper.forbidOpening();
  }

  #readText(text: string): Stop | 'reference' | 'wrapper_line' {
    const end = text.length;
    const { block } = this.#writer;
    let from = this.next;
    let index = from;
    for (;;) {
      if (!this.#fences.insideLine) {
        // Whether a wrapper may open depends on the preceding text.
        if (block === 'text' && from < index) {
          this.#append(text, from, index);
          from = index;
        }
        index = this.#fences.readLineStart(text, index, block);
        if (this.#fences.atLineStart && index < end && text.charCodeAt(index) !== LESS) {
          return this.#stop('wrapper_line', text, from, index);
        }
      }
      // Inside a fence only a tag at the start of a line can be significant.
      const less = this.#fences.open && !this.#fences.atLineStart ? end : this.#lessSigns.from(text, index);
      const dollar = block === 'response' ? this.#dollars.from(text, index) : end;
      const stop = Math.min(less, dollar);
      const lineFeed = index === stop ? stop : this.#lineFeeds.from(text, index);
      if (lineFeed < stop) {
        if (block === 'response' && !this.#fences.open) this.#code.read(text, lineFeed, this.#position.base);
        index = lineFeed + 1;
        this.#fences.endLine(this.#position.base + index);
        continue;
      }
      index = stop;
      if (index === end) return this.#stop('end', text, from, end);
      if (index === dollar) {
        this.#matcher.reset();
        return this.#stop('reference', text, from, index);
      }
      const found = matchTag(text, index);
      if (found === 'more') return this.#stop(found, text, from, index);
      if (found !== null && this.#matters(found)) {
        if (block !== 'response') return this.#stop(found, text, from, index);
        const verdict = this.#code.judge(text, index, index + found.headChars, this.#position.base);
        if (verdict !== 'quoted') return this.#stop(verdict === 'tag' ? found : 'undecided', text, from, index);
      }
      if (found !== null && this.#isDraft(found) && !this.#warnedOfDrafts) {
        this.#append(text, from, index);
        from = index;
        this.#warnOfDrafts(index);
      }
      this.#fences.enterLine();
      index += 1;
    }
  }

  #stop<S>(stop: S, text: string, from: number, index: number): S {
    this.#append(text, from, index);
    this.next = index;
    return stop;
  }

  /** Whether a tag is significant in the open block, or is text. */
  #matters(tag: Tag): boolean {
    const { block, reasoning } = this.#writer;
    if (block === 'response') return tag.closing && tag.type === 'response' && !this.#fences.open;
    if (this.#fences.open) return block === 'thought' && tag.closing && isThought(tag) && this.#fences.atLineStart;
    return tag.type !== 'action' || !reasoning || this.#actInReasoning;
  }

  /** Whether a tag that is not significant begins an action: in reasoning, outside of fences, only action tags are not. */
  #isDraft(tag: Tag): boolean {
    return this.#writer.reasoning && !this.#fences.open && !tag.closing;
  }

  #warnOfDrafts(at: number): void {
    this.#warnedOfDrafts = true;
    const message = 'Actions inside <think> are drafts and do not run';
    this.#writer.warn('action_in_reasoning', message, this.#position.base + at);
  }

  // ---------------------------------------------------------------- references (P12)

  #readReference(text: string): void {
    const start = this.next;
    let index = this.#reference === '' ? start + '$'.length : start;
    let outcome: MatchOutcome = 'pending';
    while (index < text.length) {
      outcome = this.#matcher.step(text.charCodeAt(index));
      if (outcome !== 'pending') break;
      index += 1;
    }
    if (outcome === 'ends_with' || outcome === 'dollar') index += 1;
    this.#reference += text.slice(start, index);
    this.next = index;
    if (outcome !== 'pending') this.#endReference(outcome);
  }

  #endReference(outcome: MatchOutcome): void {
    const raw = this.#reference;
    this.#reference = '';
    this.#state = 'text';
    this.#fences.enterLine();
    switch (outcome) {
      case 'ends_before':
      case 'ends_with': {
        const end = outcome === 'ends_with' ? raw.length : raw.length - this.#matcher.tailChars;
        this.#writer.appendReference(this.#matcher.reference(raw.slice(0, end)));
        this.#writer.appendAsIs(raw.slice(end));
        return;
      }
      case 'dollar':
        return this.#writer.appendAsIs('$');
      case 'pending':
      case 'text_before':
        this.#writer.appendAsIs(raw);
    }
  }

  // ---------------------------------------------------------------- wrappers (P9)

  /** Holds a line back until it is clear whether it is a fence around the whole output. */
  #readWrapperLine(text: string): void {
    for (; this.next < text.length; this.next += 1) {
      switch (this.#wrapper.step(text.charAt(this.next))) {
        case 'pending':
          break;
        case 'fence':
          this.#state = 'text';
          this.next += 1;
          this.#fences.endLine(this.#position.base + this.next);
          return;
        case 'fence_before':
        case 'text_before':
          this.#state = 'text';
          this.#fences.enterLine();
          // Empty after a fence.
          this.#appendWrapperLine(this.#position.base + this.next);
          return;
      }
    }
  }

  /** @param end offset after the line */
  #appendWrapperLine(end: number): void {
    const line = this.#wrapper.takeLine();
    this.append(line, end - line.length);
  }
}
