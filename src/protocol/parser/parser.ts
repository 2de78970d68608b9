/**
 * The parser: converts a model's text, cut anywhere, to protocol events (P1-P18).
 *
 * Owns the current state (`State`) and the few characters that are not decided yet. Each state has a reader: text with
 * fences and references (TextReader), a tag (TagReader), an action and its body (ActionReader). BlockWriter has the
 * open block and its events. Does not own the meaning of names, permissions, or whether an action runs.
 *
 * Invariants:
 *  1. The same text gives the same events, however it is cut, once adjacent deltas are joined (P3).
 *  2. Every character is read a bounded number of times. Undecided text is either short (the start of a tag name) or
 *     held by a state machine that continues where it stopped (P3).
 *  3. Text is emitted with the chunk that contains it, except for a suffix that may become a tag, a reference, or
 *     white space at the end of a block (P4, J4), and the line after a `</response>` that inline code may quote (P9).
 *  4. Only `</action>` or `/>` declares an action; an action that is open at the end is rejected, and so is one that
 *     inline code may quote (P15).
 *  5. No input throws.
 *
 * Long because it is one state machine: all states and the ways between them are read together.
 */
import type { ActionType } from '../../domain/action.ts';
import { limits } from '../../domain/limits.ts';
import type { ProtocolEvent } from '../../domain/protocol-event.ts';
import type { KnownTargets } from './action/action-fields.ts';
import { ActionReader } from './action/action-reader.ts';
import type { Numbering, Rejection } from './action/action-reader.ts';
import { BlockWriter } from './block-writer.ts';
import { ByteMeter } from './byte-meter.ts';
import { BACKTICK, DOLLAR, LESS, LINE_FEED } from './characters.ts';
import { excerptOf } from './excerpt.ts';
import { readFinality } from './finality.ts';
import { Occurrences } from './occurrences.ts';
import { TagReader } from './tag-reader.ts';
import { isThought, matchTag } from './tags.ts';
import type { Tag } from './tags.ts';
import { TextPosition } from './text-position.ts';
import { TextReader } from './text-reader.ts';

export interface ParserOptions {
  /** `strict` turns JSON repair off (P8). */
  readonly json: 'repair' | 'strict';
  /** Actions in `<think>` are executed (P9). */
  readonly actInReasoning: boolean;
  /** Number of the first `auto_N` of this generation; the numbers continue through a run (P6). */
  readonly firstAutoId?: number;
  /** Counters shared with other readers of the generation; `firstAutoId` is ignored if set (P17). */
  readonly numbering?: Numbering;
  /** Actions that the run may still declare; the generation's own limit also applies (P16). */
  readonly actionsLeft?: number;
  /** Whether a target has unsafe effects: then a repaired body is rejected (P8). */
  readonly unsafe?: (type: ActionType, name: string) => boolean;
  /** What the agent's manifest says about targets; without it, nothing is known. */
  readonly targets?: KnownTargets | null;
}

export interface ProtocolParser {
  /**
   * Feeds the next piece of model output.
   *
   * @param chunk decoded text, cut anywhere; may split a tag or a surrogate pair
   * @returns the events that this chunk completes, in document order; offsets are UTF-16 code units from the start
   *   of the generation
   */
  feed(chunk: string): readonly ProtocolEvent[];
  /**
   * Ends the text and closes open blocks. Later calls have no effect.
   *
   * @param cut the model had not finished: what may be the beginning of a tag is dropped (P15)
   */
  end(cut?: boolean): readonly ProtocolEvent[];
  /** First number for the parser of the run's next generation. */
  readonly nextAutoId: number;
  /** An action was declared or rejected. */
  readonly sawAction: boolean;
  readonly sawResponse: boolean;
}

export function createParser(options: ParserOptions): ProtocolParser {
  return new Parser(options);
}

/**
 * What is being read.
 *  - `text`: the text of the open block
 *  - `body`: the body of the open action
 *  - `forged`: a runtime block that the model wrote, which is dropped (P2)
 *  - `tag`: a tag, after its name
 */
type State = Surrounding | 'tag';
/** The state in which a tag begins. */
type Surrounding = 'text' | 'body' | 'forged';

const NOTHING: readonly ProtocolEvent[] = [];

/** Up to this length, checking each character is cheaper than several searches. */
const SMALL_CHUNK_CHARS = 16;

class Parser implements ProtocolParser {
  readonly #numbering: Numbering;
  readonly #meter = new ByteMeter(limits.generationBytes);
  readonly #position = new TextPosition();
  readonly #writer = new BlockWriter();
  readonly #text: TextReader;
  readonly #reader = new TagReader();
  readonly #actions: ActionReader;
  readonly #lessSigns = new Occurrences('<');

  #state: State = 'text';
  /** Trailing characters that may begin a tag, or a `</response>` that the rest of its line may quote. */
  #held = '';
  /** The rest of the line after the held tag is searched for the end of the inline code (P9). */
  #searching = false;
  #tag: Tag | null = null;
  #surrounding: Surrounding = 'text';
  /** Name of the open forged block. */
  #forged = '';
  /** No more text is accepted: it has ended or is too long. */
  #closed = false;
  #ended = false;
  /** The text has ended, and the rest of a line that was held back is being read. */
  #ending = false;
  #sawResponse = false;

  constructor(options: ParserOptions) {
    this.#text = new TextReader(this.#writer, this.#position, options.actInReasoning);
    this.#numbering = options.numbering ?? { ordinal: 0, autoId: options.firstAutoId ?? 1 };
    const most = Math.min(limits.actionsPerGeneration, options.actionsLeft ?? Infinity);
    this.#actions = new ActionReader(
      {
        maxActions: Math.max(0, most),
        strict: options.json === 'strict',
        unsafe: options.unsafe,
        targets: options.targets ?? null,
      },
      this.#numbering,
      this.#writer,
      this.#position,
    );
  }

  get nextAutoId(): number {
    return this.#numbering.autoId;
  }

  get sawAction(): boolean {
    return this.#numbering.ordinal > 0;
  }

  get sawResponse(): boolean {
    return this.#sawResponse;
  }

  feed(chunk: string): readonly ProtocolEvent[] {
    if (this.#closed || chunk === '') return NOTHING;
    // Most chunks are a few words inside a line, or a part of a body without a tag.
    if (this.#held === '' && chunk.length <= this.#meter.room) {
      if (this.#state === 'text') {
        if (this.#text.takesPlainText && isPlain(chunk, this.#writer.block === 'response')) {
          this.#meter.take(chunk);
          this.#position.base += chunk.length;
          return this.#writer.chunk(chunk);
        }
      } else if (this.#state === 'body' && chunk.indexOf('<') === -1) {
        this.#meter.take(chunk);
        this.#position.base += chunk.length;
        this.#actions.body.add(chunk);
        return NOTHING;
      }
    }
    return this.#feedAny(chunk);
  }

  end(cut = false): readonly ProtocolEvent[] {
    if (this.#ended) return NOTHING;
    this.#finish(cut);
    this.#closed = true;
    this.#ended = true;
    return this.#writer.take();
  }

  #feedAny(chunk: string): readonly ProtocolEvent[] {
    const kept = this.#meter.fit(chunk);
    const text = this.#held === '' ? kept : this.#held + kept;
    if (this.#searching && !this.#text.search(kept)) this.#held = text;
    else this.#readAll(text);
    if (kept.length < chunk.length) {
      this.#closed = true;
      const message = `${tooLong('The generation', limits.generationBytes)}; the rest was ignored`;
      this.#writer.warn('text_too_large', message, this.#position.base + this.#held.length);
    }
    return this.#writer.take();
  }

  #readAll(text: string): void {
    this.#held = '';
    this.#searching = false;
    this.#run(text);
    this.#position.base += text.length - this.#held.length;
  }

  #run(text: string): void {
    this.#lessSigns.reset();
    this.#text.reset();
    let index = 0;
    while (index < text.length) {
      switch (this.#state) {
        case 'text':
          index = this.#readText(text, index);
          break;
        case 'body':
          index = this.#readBody(text, index);
          break;
        case 'tag':
          index = this.#readTag(text, index);
          break;
        case 'forged':
          index = this.#readForged(text, index);
          break;
      }
    }
  }

  #readText(text: string, start: number): number {
    const stop = this.#text.read(text, start);
    const { next } = this.#text;
    if (stop === 'end') return text.length;
    if (typeof stop !== 'string') return this.#beginTag(stop, text, next);
    this.#searching = stop === 'undecided';
    this.#held = text.slice(next);
    return text.length;
  }

  #enterText(atLineStart = false): void {
    this.#state = 'text';
    this.#text.enterLine(atLineStart);
  }

  // ---------------------------------------------------------------- tags

  #beginTag(tag: Tag, text: string, at: number): number {
    this.#surrounding = this.#state === 'text' || this.#state === 'body' ? this.#state : 'forged';
    this.#state = 'tag';
    this.#tag = tag;
    this.#reader.begin(tag, text, at, this.#position);
    return at + tag.headChars;
  }

  #readTag(text: string, start: number): number {
    const tag = this.#tag;
    if (tag === null) return start;
    const reader = this.#reader;
    const outcome = reader.read(text, start);
    const { next } = reader;
    const after = this.#position.base + next;
    switch (outcome) {
      case 'pending':
        return next;
      case 'maybe_tag':
        this.#held = text.slice(next);
        return text.length;
      case 'ends':
        if (tag.closing) this.#completeClosing(tag, after);
        else this.#completeOpening(tag, false, after);
        return next;
      case 'self_closing':
        this.#completeOpening(tag, true, after);
        return next;
      case 'ends_before':
        this.#completeOpening(tag, false, after - reader.rest.length);
        if (this.#state === 'body') this.#actions.body.add(reader.rest);
        return next;
      case 'another_tag':
        this.#breakOpening(tag, 'another tag begins inside its opening tag');
        return next;
      case 'too_long':
        this.#refuseOpening(tag, after);
        return next;
      case 'not_a_tag':
        this.#breakClosing();
        return next;
    }
  }

  #completeOpening(tag: Tag, selfClosing: boolean, next: number): void {
    const reader = this.#reader;
    if (reader.tooManyBytes) {
      this.#refuseOpening(tag, next);
      if (this.#state === 'text') this.#text.append(selfClosing ? '/>' : '>', next - 1);
      else if (selfClosing) this.#closeAction(next);
      return;
    }
    this.#countTagLines();
    this.#enterText();
    this.#text.forbidWrapper();
    switch (tag.type) {
      case 'action':
        this.#openAction(next);
        if (selfClosing) this.#closeAction(next);
        return;
      case 'runtime':
        this.#writer.warn(
          'forged_tag',
          `${reader.written}> is reserved for the runtime; it was dropped with its content`,
          reader.offset,
        );
        if (selfClosing) return;
        this.#state = 'forged';
        this.#forged = tag.name;
        return;
      case 'thought':
      case 'reasoning':
        this.#closeBlock(reader.offset);
        this.#writer.openThought(reader.offset, tag.type === 'reasoning');
        break;
      case 'response':
        this.#closeBlock(reader.offset);
        this.#openResponse();
        break;
    }
    this.#text.enterBlock();
    if (selfClosing) this.#closeBlock(null);
  }

  #openResponse(): void {
    const { head, offset } = this.#reader;
    const { final, unknown, invalid, nonTerminating } = readFinality(head);
    if (unknown.length > 0) {
      const message = `<response> has no attribute ${excerptOf(unknown.join(', '))}`;
      this.#writer.warn('unknown_attribute', message, offset);
    }
    if (nonTerminating !== null) {
      const message = `non_terminating="${excerptOf(nonTerminating)}" means final="${String(final)}"`;
      this.#writer.warn('foreign_form', message, offset);
    }
    if (invalid !== null) {
      this.#writer.warn('invalid_field', `final="${excerptOf(invalid)}" is neither true nor false`, offset);
    }
    this.#sawResponse = true;
    this.#writer.openResponse(offset, final);
  }

  /** Another tag, or the end of the text, precedes this tag's `>`: it is text, or a truncated action. */
  #breakOpening(tag: Tag, why: string): void {
    if (!this.#isAction(tag)) return this.#takeTagAsText();
    this.#countTagLines();
    this.#openAction(this.#position.base);
    this.#abandonAction(why);
  }

  /** Whether an opening tag that is not complete is certainly that of an action. */
  #isAction(tag: Tag): boolean {
    return tag.type === 'action' && this.#reader.inner.includes('=');
  }

  #refuseOpening(tag: Tag, next: number): void {
    const message = tooLong('A tag', limits.tagBytes);
    if (tag.type !== 'action') {
      this.#writer.warn('tag_too_large', `${message}; it was read as text`, this.#reader.offset);
      return this.#takeTagAsText();
    }
    this.#countTagLines();
    this.#openAction(next, { code: 'too_large', message });
    this.#actions.body.giveUp();
  }

  /** Treats an apparent tag as text of the block. */
  #takeTagAsText(): void {
    const { source, offset } = this.#reader;
    const lineFeed = source.lastIndexOf('\n');
    this.#enterText(lineFeed !== -1 && source.slice(lineFeed).trim() === '');
    this.#text.append(source, offset);
    this.#countTagLines();
  }

  #completeClosing(tag: Tag, next: number): void {
    switch (this.#surrounding) {
      case 'text':
        this.#countTagLines();
        return this.#closeByTag(tag);
      case 'body': {
        const { body } = this.#actions;
        if (tag.type === 'action' ? !body.endsHere : body.hidesTag) {
          this.#state = 'body';
          return body.add(`${this.#reader.source}>`);
        }
        if (tag.type === 'action') this.#closeAction(next);
        else this.#abandonAction(`${this.#reader.written}> was found where its </action> was expected`);
        this.#countTagLines();
        if (tag.type !== 'action') this.#closeByTag(tag);
        return;
      }
      case 'forged':
        this.#countTagLines();
        if (tag.name === this.#forged) this.#enterText();
        else if (isThought(tag) && this.#writer.block === 'thought') this.#closeByTag(tag);
        else this.#state = 'forged';
    }
  }

  /** A closing tag's name is followed by something other than white space. */
  #breakClosing(): void {
    const { source, offset } = this.#reader;
    this.#state = this.#surrounding;
    switch (this.#surrounding) {
      case 'text':
        return this.#takeTagAsText();
      case 'body':
        return this.#actions.body.add(source);
      case 'forged':
        this.#position.countLines(source, offset);
    }
  }

  #closeByTag(tag: Tag): void {
    const { block } = this.#writer;
    this.#enterText();
    this.#text.forbidWrapper();
    if (block === 'thought' ? isThought(tag) : block === 'response' && tag.type === 'response') {
      this.#closeBlock(null);
      return;
    }
    const { written, offset } = this.#reader;
    this.#writer.warn('stray_close_tag', `${written}> closes no open block; it was dropped`, offset);
  }

  /** @param unclosedAt offset where a block without a closing tag ends; null if it has one */
  #closeBlock(unclosedAt: number | null): void {
    this.#writer.close(unclosedAt);
    this.#text.leaveBlock();
  }

  #countTagLines(): void {
    this.#position.countLines(this.#reader.inner, this.#reader.innerOffset);
  }

  // ---------------------------------------------------------------- forged blocks (P2)

  #readForged(text: string, start: number): number {
    for (let index = start; ;) {
      const less = this.#lessSigns.from(text, index);
      const found = less === text.length ? null : matchTag(text, less);
      const opens = found !== null && found !== 'more' && this.#opensBlock(found);
      const closes = found !== null && found !== 'more' && this.#mayCloseForged(found);
      if (less === text.length || found === 'more' || opens || closes) {
        this.#position.countLines(text.slice(start, less), this.#position.base + start);
        if (closes) return this.#beginTag(found, text, less);
        if (opens) this.#enterText();
        if (found === 'more') this.#held = text.slice(less);
        return opens ? less : text.length;
      }
      index = less + 1;
    }
  }

  #opensBlock(tag: Tag): boolean {
    return !tag.closing && (isThought(tag) || tag.type === 'response');
  }

  #mayCloseForged(tag: Tag): boolean {
    return tag.closing && (tag.name === this.#forged || (isThought(tag) && this.#writer.block === 'thought'));
  }

  // ---------------------------------------------------------------- actions

  /** @param bodyOffset offset of the first character of the body */
  #openAction(bodyOffset: number, rejection: Rejection | null = null): void {
    if (this.#writer.block === 'text') this.#closeBlock(null);
    this.#actions.open(this.#reader, bodyOffset, rejection ?? (this.#ending ? MAYBE_QUOTED : null));
    this.#state = 'body';
  }

  #closeAction(end: number): void {
    this.#actions.close(end);
    this.#enterText();
  }

  #abandonAction(why: string): void {
    this.#actions.abandon(
      this.#closed
        ? { code: 'too_large', message: tooLong('The generation', limits.generationBytes) }
        : { code: 'unclosed', message: `The action was not closed, so it does not run: ${why}` },
    );
    this.#enterText();
  }

  #readBody(text: string, start: number): number {
    const { body } = this.#actions;
    let from = start;
    for (let index = start; ;) {
      const less = this.#lessSigns.from(text, index);
      const found = less === text.length ? null : matchTag(text, less);
      index = less + 1;
      if (less < text.length && (found === null || (found !== 'more' && found.type === 'runtime'))) continue;
      body.add(from === 0 && less === text.length ? text : text.slice(from, less));
      from = less;
      if (found === null) return text.length;
      if (found === 'more') {
        this.#held = text.slice(less);
        return text.length;
      }
      if (found.closing) return this.#beginTag(found, text, less);
      if (body.hidesTag) continue;
      this.#abandonAction(`${text.slice(less, less + found.headChars)}> was found before its </action>`);
      return less;
    }
  }

  // ---------------------------------------------------------------- the end (P9, P15)

  #finish(cut: boolean): void {
    while (this.#searching) {
      this.#ending = true;
      this.#text.endSearch();
      this.#readAll(this.#held);
    }
    const held = this.#held;
    const end = this.#position.base + held.length;
    this.#held = '';
    switch (this.#state) {
      case 'text':
        this.#text.finish(cut || this.#beginsClosing(held) ? '' : held);
        break;
      case 'tag':
        this.#finishTag(held, cut);
        break;
      case 'body':
        this.#actions.body.add(held);
        this.#abandonAction('the text ended');
        break;
      case 'forged':
        break;
    }
    this.#position.base = end;
    this.#closeBlock(end);
  }

  #finishTag(held: string, cut: boolean): void {
    const tag = this.#tag;
    if (tag === null) return;
    if (!tag.closing) {
      this.#reader.takeHeld(held);
      if (!cut || this.#isAction(tag)) this.#breakOpening(tag, 'the text ended inside its opening tag');
    } else if (this.#surrounding === 'body') this.#abandonAction('the text ended');
    else if (this.#surrounding === 'text' && !cut && !this.#beginsClosing(this.#reader.written)) this.#takeTagAsText();
  }

  /** Whether the text ended inside the closing tag of the open block. */
  #beginsClosing(held: string): boolean {
    const written = held.toLowerCase();
    if (written.length < 2) return false;
    switch (this.#writer.block) {
      case 'text':
        return false;
      case 'response':
        return '</response'.startsWith(written);
      case 'thought':
        return '</thought'.startsWith(written) || '</thinking'.startsWith(written);
    }
  }
}

/** More text could have shown that the action is a quotation, which never runs (P9, P15). */
const MAYBE_QUOTED: Rejection = {
  code: 'unclosed',
  message: 'It does not run: the text ended on its line, where inline code is open. Write it on a separate line',
};

/** Whether a chunk contains nothing that could begin a tag, a reference, a line or, in a response, inline code. */
function isPlain(chunk: string, inResponse: boolean): boolean {
  if (chunk.length > SMALL_CHUNK_CHARS) {
    if (inResponse && chunk.indexOf('`') !== -1) return false;
    return chunk.indexOf('<') === -1 && chunk.indexOf('\n') === -1 && chunk.indexOf('$') === -1;
  }
  for (let index = 0; index < chunk.length; index += 1) {
    const code = chunk.charCodeAt(index);
    if (code === LESS || code === LINE_FEED || code === DOLLAR || (code === BACKTICK && inResponse)) return false;
  }
  return true;
}

function tooLong(what: string, bytes: number): string {
  return `${what} is longer than ${bytes} bytes`;
}
