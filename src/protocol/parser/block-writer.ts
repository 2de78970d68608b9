/**
 * The open block and its text, as events (P1, P4, P9, J4).
 *
 * Owns the events that were not returned yet, the text that was not emitted yet, and the number of warnings.
 * Does not own the position in the text or the decision to end a block.
 *
 * Invariants:
 *  1. Blocks do not nest: each is closed before the next one opens. Outside of tags the block is `text`.
 *  2. White space at the edges of a block is dropped, so trailing white space waits for the next text (J4).
 *  3. All other text is emitted with the chunk that contains it (P4), before any later event.
 */
import { limits } from '../../domain/limits.ts';
import type { Finality, ProtocolEvent, Reference, WarningCode } from '../../domain/protocol-event.ts';
import { BYTE_ORDER_MARK, isSpace } from './characters.ts';

export type Block = 'text' | 'thought' | 'response';

const NOTHING: readonly ProtocolEvent[] = [];

export class BlockWriter {
  #events: ProtocolEvent[] | null = null;
  #warnings = 0;
  #block: Block = 'text';
  #reasoning = false;
  #started = false;
  /** White space that is emitted only if more text follows. */
  #space = '';
  /** Text of the current chunk. */
  #pending = '';

  get block(): Block {
    return this.#block;
  }

  /** The block is a reasoning block, where models draft (P9). */
  get reasoning(): boolean {
    return this.#reasoning;
  }

  /** The block has emitted text: leading white space has ended. */
  get started(): boolean {
    return this.#started;
  }

  /** The events since the last call. */
  take(): readonly ProtocolEvent[] {
    this.#flush();
    const events = this.#events;
    this.#events = null;
    return events ?? NOTHING;
  }

  /**
   * Appends text of the open block.
   *
   * @param offset of the character at `from`, from the start of the generation
   */
  append(text: string, from: number, to: number, offset: number): void {
    let start = from;
    if (!this.#started) {
      while (start < to && isEdge(text.charCodeAt(start), offset + start - from)) start += 1;
      if (start === to) return;
      this.#start(offset + start - from);
    }
    if (start < to) this.#pending += start === 0 && to === text.length ? text : text.slice(start, to);
  }

  /** Appends text after a reference, or text that looked like one: white space before it is kept. */
  appendAsIs(text: string): void {
    this.#started = true;
    this.#pending += text;
  }

  /** Appends a whole chunk to a started block. @returns the same events as `append` and `take` */
  chunk(text: string): readonly ProtocolEvent[] {
    if (isSpace(text.charCodeAt(text.length - 1))) {
      this.#pending = text;
      return this.take();
    }
    const delta = this.#space === '' ? text : this.#space + text;
    this.#space = '';
    return [{ type: this.#block, delta }];
  }

  appendReference(reference: Reference): void {
    this.#started = true;
    const before = this.#space + this.#pending;
    this.#space = '';
    this.#pending = '';
    if (before !== '') this.#push({ type: 'response', delta: before });
    this.#push({ type: 'response_reference', reference });
  }

  /** Emits an event after the text that precedes it. */
  emit(event: ProtocolEvent): void {
    this.#flush();
    this.#push(event);
  }

  warn(code: WarningCode, message: string, offset: number): void {
    this.#warnings += 1;
    const most = limits.warningsPerGeneration;
    if (this.#warnings <= most) this.emit({ type: 'warning', code, message, offset });
    else if (this.#warnings === most + 1) {
      const more = `More than ${most} warnings; further warnings are not shown`;
      this.emit({ type: 'warning', code: 'truncated', message: more, offset });
    }
  }

  openThought(offset: number, reasoning: boolean): void {
    this.#enter('thought');
    this.#reasoning = reasoning;
    this.#push({ type: 'thought_started', offset, reasoning });
  }

  openResponse(offset: number, final: Finality): void {
    this.#enter('response');
    this.#push({ type: 'response_started', offset, final });
  }

  /**
   * Closes the open block.
   *
   * @param unclosedAt offset where a block without a closing tag ends; null if it has one
   */
  close(unclosedAt: number | null): void {
    const block = this.#block;
    this.#flush();
    if (block === 'text') {
      if (this.#started) this.#push({ type: 'text_completed' });
    } else {
      const unclosed = unclosedAt !== null;
      if (unclosed) this.warn('unclosed', `The ${block} has no closing tag; it was closed here`, unclosedAt);
      this.#push({ type: block === 'thought' ? 'thought_completed' : 'response_completed', unclosed });
    }
    this.#enter('text');
  }

  #enter(block: Block): void {
    this.#block = block;
    this.#reasoning = false;
    this.#started = false;
    this.#space = '';
  }

  #start(offset: number): void {
    this.#started = true;
    if (this.#block === 'text') this.emit({ type: 'text_started', offset });
  }

  /** Emits the pending text, except for trailing white space, which may end the block. */
  #flush(): void {
    const text = this.#pending;
    if (text === '') return;
    this.#pending = '';
    let end = text.length;
    while (end > 0 && isSpace(text.charCodeAt(end - 1))) end -= 1;
    if (end === 0) {
      this.#space += text;
      return;
    }
    const delta = this.#space + (end === text.length ? text : text.slice(0, end));
    this.#space = end === text.length ? '' : text.slice(end);
    this.#push({ type: this.#block, delta });
  }

  #push(event: ProtocolEvent): void {
    if (this.#events === null) this.#events = [event];
    else this.#events.push(event);
  }
}

/** White space, or the byte order mark at the start of the text. */
function isEdge(code: number, offset: number): boolean {
  return isSpace(code) || (code === BYTE_ORDER_MARK && offset === 0);
}
