/**
 * The open block and its text, as events (P1, P4, P9, J4).
 *
 * Owns the events that were not handed out yet, the text that was not emitted yet, and the count of warnings.
 * Does not own where the text is, nor what ends a block.
 *
 * Invariants:
 *  1. Blocks do not nest: each is closed before the next one opens. Outside of tags the block is `text`.
 *  2. White space at the edges of a block is dropped, so white space at the end waits for what follows it (J4).
 *  3. Every other text is emitted with the chunk that carries it (P4), before any event that follows it.
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
  /** White space that is text only if more text follows. */
  #space = '';
  /** Text of this chunk. */
  #pending = '';

  get block(): Block {
    return this.#block;
  }

  /** The block is a thought in which models draft (P9). */
  get reasoning(): boolean {
    return this.#reasoning;
  }

  /** The block has shown text: its leading white space is over. */
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
   * @param offset of the character at `from`, in the generation
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

  /** Appends text that follows a reference or was taken for one: white space before it is no edge. */
  appendAsIs(text: string): void {
    this.#started = true;
    this.#pending += text;
  }

  /** A whole chunk of a block that has started. @returns what `append` and `take` would */
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

  /** Emits an event behind the text that comes before it. */
  emit(event: ProtocolEvent): void {
    this.#flush();
    this.#push(event);
  }

  warn(code: WarningCode, message: string, offset: number): void {
    this.#warnings += 1;
    const most = limits.warningsPerGeneration;
    if (this.#warnings <= most) this.emit({ type: 'warning', code, message, offset });
    else if (this.#warnings === most + 1) {
      const more = `More than ${most} warnings; further ones are not shown`;
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
   * @param unclosedAt offset at which a block that has no closing tag ends; null for one that has
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

  /** Emits what is text for certain; keeps white space that may be the block's edge. */
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

/** White space, or the byte order mark of the whole text. */
function isEdge(code: number, offset: number): boolean {
  return isSpace(code) || (code === BYTE_ORDER_MARK && offset === 0);
}
