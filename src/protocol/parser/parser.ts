/**
 * The parser: a model's text, cut anywhere, to protocol events (P1-P18).
 *
 * Owns where in the text it stands: the open block, the open tag, the open action, and the few
 * characters that are not decided yet. Does not own what names refer to, what an action may do, or
 * whether it will run.
 *
 * Invariants:
 *  1. Any cutting of the same text gives the same events once neighbouring deltas are joined (P3).
 *  2. Every character is looked at a bounded number of times: what waits for more text is either short
 *     (the beginning of a tag's name) or kept by a machine that goes on where it stopped (P3).
 *  3. Text is emitted with the chunk that carries it, but for a suffix that may yet become a tag, a
 *     reference or the white space at a block's edge (P4, J4).
 *  4. An action is declared only by its own `</action>` or `/>`; what is open at the end is rejected (P15).
 *  5. No input throws.
 */
import type { ActionDeclaration, ActionType, RejectionCode } from '../../domain/action.ts';
import { parseJson, type Json } from '../../domain/json.ts';
import { limits } from '../../domain/limits.ts';
import type { Finality, ProtocolEvent, Reference, WarningCode } from '../../domain/protocol-event.ts';
import { brokenBody, strictBody } from './action-body.ts';
import type { ReadBody } from './action-body.ts';
import { givenId, readFields, readHead, readPlainHead } from './action-fields.ts';
import type { ActionHead } from './action-fields.ts';
import { ByteMeter, utf8Bytes } from './byte-meter.ts';
import { DeclaredIds } from './declared-ids.ts';
import { idIssue } from '../references/ids.ts';
import { JsonScanner } from './json-scanner.ts';
import {
  DOLLAR_WITH,
  ENDED_BEFORE,
  ENDED_WITH,
  GOES_ON,
  ReferenceMatcher,
  parseReference,
  readReference,
} from '../references/references.ts';
import {
  ACTION,
  FIRST_RUNTIME_TAG,
  MORE,
  NO_TAG,
  REASONING,
  RESPONSE,
  THOUGHT,
  TagEnd,
  headLength,
  isClosing,
  isSpace,
  matchTag,
  readAttributes,
  tagKind,
} from './tags.ts';

/** What is counted once in a generation, whoever reads it: its text, its native calls (P6, P16, P17). */
export interface Numbering {
  /** Of the next action. */
  ordinal: number;
  /** Of the next `auto_N`. */
  autoId: number;
}

export interface ParserOptions {
  /** `strict` turns the mending of JSON off (P8). */
  readonly json: 'repair' | 'strict';
  /** Actions in `<think>` run (P9). */
  readonly actInReasoning: boolean;
  /** Number of the first `auto_N` of this generation; ids count through a run (P6). */
  readonly firstAutoId?: number;
  /** Counts that this reader shares with others of the generation; `firstAutoId` means nothing then (P17). */
  readonly numbering?: Numbering;
  /** Actions that the run may still declare; the generation's own limit holds as well (P16). */
  readonly actionsLeft?: number;
  /** What one generation may declare. Default: `limits.actionsPerGeneration`. */
  readonly maxActions?: number;
  /** Whether a target's effects are unsafe: then a mended body is refused (P8). */
  readonly unsafe?: (type: ActionType, name: string) => boolean;
}

export interface ProtocolParser {
  /**
   * Feeds the next piece of model output.
   *
   * @param chunk decoded text, cut anywhere; may split a tag or a surrogate pair
   * @returns the events that this chunk completes, in document order
   */
  feed(chunk: string): readonly ProtocolEvent[];
  /** The text is over: closes what is open. Later calls do nothing. */
  end(): readonly ProtocolEvent[];
  /** For the parser of the run's next generation. */
  readonly nextAutoId: number;
  /** An action was declared or rejected. */
  readonly sawAction: boolean;
  readonly sawResponse: boolean;
}

export function createParser(options: ParserOptions): ProtocolParser {
  return new Parser(options);
}

const NOTHING: readonly ProtocolEvent[] = [];

// The open block.
const TOP = 0;
const IN_THOUGHT = 1;
const IN_RESPONSE = 2;

// What the machine is doing.
const TEXT = 0;
const OPEN_TAG = 1;
const CLOSE_TAG = 2;
const BODY = 3;
/** Inside a forged block of the runtime (P2). */
const DROP = 4;
const REFERENCE = 5;
/** A line that may open or close a fence around the whole output (P9). */
const WRAPPER = 6;

// Where on its line the text stands, for code fences.
const MIDDLE = 0;
/** Nothing but white space so far. */
const LINE_START = 1;
const FENCE_RUN = 2;
const FENCE_INFO = 3;

// What the next chunk may be without going through the machine.
const NOT_QUICK = 0;
const WORDS = 1;
const BODY_TEXT = 2;
const TAG_TEXT = 3;
// Up to here it is cheaper to look at each character than to search for several.
const SMALL_CHUNK_CHARS = 16;
/** Longer tags are measured by the machine. */
const SHORT_TAG_CHARS = limits.tagBytes / 4;

const LINE_FEED = 10;
const SPACE = 32;
const DOLLAR = 36;
const SLASH = 47;
const LESS = 60;
const GREATER = 62;
const BACKTICK = 96;
const TILDE = 126;
const BYTE_ORDER_MARK = 0xfeff;

/**
 * A text that grows piece by piece is a chain of its pieces until somebody looks into it. Chains that are put
 * together at these lengths leave little to do under the closing tag.
 */
const TAIL_CHARS = 1_024;
const TAIL_PIECES = 64;

/** The beginning of a reference waits as it is up to here; a longer one is read character by character. */
const HELD_REFERENCE_CHARS = 16;

/** What stands in the opening tags of most responses. */
const FINAL = ' final="true"';
const NOT_FINAL = ' final="false"';

/** A wrapper's opening line is held back; a longer one is text. */
const WRAPPER_LINE_CHARS = 120;

/** An action whose opening tag was read and whose body is being collected. */
interface OpenAction {
  readonly ordinal: number;
  readonly head: ActionHead;
  readonly tag: string;
  readonly start: number;
  readonly line: number;
  readonly column: number;
  readonly embedded: boolean;
  /** Set when the action is refused whatever its body holds. */
  refusal: { readonly code: RejectionCode; readonly message: string } | null;
  /** Past the limit on actions and its one rejection: read over, not reported. */
  readonly ignored: boolean;
}

class Parser implements ProtocolParser {
  readonly #options: ParserOptions;
  readonly #maxActions: number;
  #events: ProtocolEvent[] | null = null;
  #warnings = 0;

  // --- place in the text ---
  /** Offset of the first character of the text at hand. */
  #base = 0;
  #held = '';
  // The next of each in the text at hand, at or behind the place where it was looked for; -1: not looked for.
  #nextLess = -1;
  #nextLineFeed = -1;
  #nextDollar = -1;
  #nextGreater = -1;
  readonly #meter = new ByteMeter(limits.generationBytes);
  #line = 1;
  /** Offset of the first character of the current line. */
  #lineOffset = 0;
  #stopped = false;
  #ended = false;
  #quick = NOT_QUICK;

  // --- the open block ---
  #mode = TEXT;
  #block = TOP;
  #reasoning = false;
  /** The block has shown text: leading white space is over. */
  #started = false;
  /** White space that is text only if more text follows (J4). */
  #space = '';
  /** Text of this chunk that is not emitted yet. */
  #pending = '';
  /** Nothing but white space in the generation so far. */
  #pristine = true;

  // --- code fences ---
  #place = LINE_START;
  #fence = 0;
  #fenceLength = 0;
  #runChar = 0;
  #runLength = 0;
  #infoBlank = true;
  #wrapper = 0;
  #wrapperLength = 0;
  #wrapperLine = '';

  // --- the open tag ---
  #returnTo = TEXT;
  #tagKind = 0;
  #tagHead = '';
  #tagText = '';
  /** What the tag says, where the short way could tell. */
  #plainHead: ActionHead | null = null;
  #tagOffset = 0;
  #tagLine = 1;
  #tagColumn = 1;
  readonly #tagEnd = new TagEnd();
  #dropKind = 0;

  // --- the open reference ---
  readonly #matcher = new ReferenceMatcher();
  #reference = '';

  // --- the open action ---
  #action: OpenAction | null = null;
  /** Body text the scanner has seen. */
  #scanned = '';
  /** Body text it has not. */
  #fresh = '';
  #bodyChars = 0;
  /** Body text that came last, in pieces that hold no `<`: no line or byte of it is counted yet. */
  #tail = '';
  #tailPieces = 0;
  #bodyTooLarge = false;
  #bodyOffset = 0;
  /** The body, when it was found to be strict JSON. */
  #parsed: Json | undefined = undefined;
  readonly #scanner = new JsonScanner();

  // --- what the generation has declared ---
  readonly #numbering: Numbering;
  readonly #ids = new DeclaredIds();
  #sawResponse = false;
  #warnedOfDrafts = false;
  #repairCharsLeft: number = limits.repairCharsPerGeneration;

  constructor(options: ParserOptions) {
    this.#options = options;
    this.#numbering = options.numbering ?? { ordinal: 0, autoId: options.firstAutoId ?? 1 };
    this.#maxActions = Math.max(
      0,
      Math.min(options.maxActions ?? limits.actionsPerGeneration, options.actionsLeft ?? Infinity),
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
    // Most chunks are a few words in the middle of a line, or of a body: those need no machine.
    const chars = chunk.length;
    if (chars !== 0 && chars <= this.#meter.room) {
      switch (this.#quick) {
        case WORDS:
          if (chars <= SMALL_CHUNK_CHARS && this.#place === MIDDLE && isPlainAscii(chunk)) {
            this.#meter.takeAscii(chars);
            this.#base += chars;
            return this.#words(chunk);
          }
          if (chunk.indexOf('<') !== -1 || (this.#block === IN_RESPONSE && chunk.indexOf('$') !== -1)) break;
          if (!this.#passLines(chunk, chunk.indexOf('\n'))) break;
          this.#take(chunk);
          return this.#words(chunk);
        case BODY_TEXT:
          if (chunk.indexOf('<') !== -1) break;
          this.#meter.reserve(chars);
          this.#base += chars;
          this.#tail = this.#tailPieces === 0 ? chunk : this.#tail + chunk;
          this.#tailPieces += 1;
          if (this.#tailPieces === TAIL_PIECES || this.#tail.length >= TAIL_CHARS) this.#settleTail();
          return NOTHING;
        case TAG_TEXT:
          if (chars > SMALL_CHUNK_CHARS || !isAsciiOutside(chunk, LESS, GREATER)) break;
          if (this.#tagText.length + chars >= SHORT_TAG_CHARS) break;
          this.#meter.takeAscii(chars);
          this.#base += chars;
          this.#tagText += chunk;
          return NOTHING;
        default:
      }
    }
    return this.#feedAny(chunk);
  }

  /** A chunk of the open block that is text as a whole; white space at its end waits (J4). */
  #words(chunk: string): readonly ProtocolEvent[] {
    const last = chunk.length - 1;
    const code = chunk.charCodeAt(last);
    if (!isSpace(code)) {
      if (this.#space === '') return [textEvent(this.#block, chunk)];
      const delta = this.#space + chunk;
      this.#space = '';
      return [textEvent(this.#block, delta)];
    }
    // Nearly always one blank behind a word.
    if (code === SPACE && last > 0 && !isSpace(chunk.charCodeAt(last - 1))) {
      const delta = this.#space + chunk.slice(0, last);
      this.#space = ' ';
      return [textEvent(this.#block, delta)];
    }
    this.#pending = chunk;
    this.#flush();
    return this.#takeEvents();
  }

  /** What the next chunk may be without going through the machine. */
  #quickWay(): number {
    switch (this.#mode) {
      case TEXT:
        return this.#started && this.#place <= LINE_START ? WORDS : NOT_QUICK;
      case BODY:
        return this.#bodyTooLarge ? NOT_QUICK : BODY_TEXT;
      case OPEN_TAG:
        return this.#tagEnd.doubts ? NOT_QUICK : TAG_TEXT;
      default:
        return NOT_QUICK;
    }
  }

  /** Goes over the line breaks of a chunk of text; false, and nothing done, where a fence may begin or end. */
  #passLines(chunk: string, lineFeed: number): boolean {
    if (lineFeed === -1 && this.#place === MIDDLE) return true;
    if (this.#place === LINE_START && mayFence(chunk.charCodeAt(0))) return false;
    let lines = 0;
    let last = -1;
    for (let at = lineFeed; at !== -1; at = chunk.indexOf('\n', at + 1)) {
      if (at + 1 < chunk.length && mayFence(chunk.charCodeAt(at + 1))) return false;
      lines += 1;
      last = at;
    }
    this.#line += lines;
    if (last !== -1) this.#lineOffset = this.#base + last + 1;
    // An empty line leaves the next one at its start.
    this.#place = last === chunk.length - 1 ? LINE_START : MIDDLE;
    return true;
  }

  /** Counts characters that certainly fit into the generation (P16). */
  #take(chunk: string): void {
    this.#meter.take(chunk);
    this.#base += chunk.length;
  }

  #feedAny(chunk: string): readonly ProtocolEvent[] {
    if (this.#stopped || this.#ended || chunk === '') return NOTHING;
    if (this.#tailPieces !== 0) this.#settleTail();
    const kept = this.#meter.fit(chunk);
    const events = this.#read(kept);
    this.#quick = this.#held === '' ? this.#quickWay() : NOT_QUICK;
    if (kept.length === chunk.length) return events;
    this.#stopped = true;
    this.#quick = NOT_QUICK;
    this.#warn(
      'text_too_large',
      `The generation is longer than ${limits.generationBytes} bytes; the rest was ignored`,
      this.#base + this.#held.length,
    );
    return [...events, ...this.#takeEvents()];
  }

  #read(chunk: string): readonly ProtocolEvent[] {
    const text = this.#held === '' ? chunk : this.#held + chunk;
    this.#held = '';
    this.#run(text);
    this.#base += text.length - this.#held.length;
    this.#flush();
    return this.#takeEvents();
  }

  end(): readonly ProtocolEvent[] {
    if (this.#ended) return NOTHING;
    this.#ended = true;
    this.#quick = NOT_QUICK;
    if (this.#tailPieces !== 0) this.#settleTail();
    this.#finish();
    return this.#takeEvents();
  }

  #takeEvents(): readonly ProtocolEvent[] {
    const events = this.#events;
    this.#events = null;
    return events ?? NOTHING;
  }

  #run(text: string): void {
    this.#nextLess = -1;
    this.#nextLineFeed = -1;
    this.#nextDollar = -1;
    this.#nextGreater = -1;
    let index = 0;
    while (index < text.length) {
      switch (this.#mode) {
        case TEXT:
          index = this.#scanText(text, index);
          break;
        case OPEN_TAG:
          index = this.#scanOpenTag(text, index);
          break;
        case CLOSE_TAG:
          index = this.#scanCloseTag(text, index);
          break;
        case BODY:
          index = this.#scanBody(text, index);
          break;
        case DROP:
          index = this.#scanDropped(text, index);
          break;
        case REFERENCE:
          index = this.#scanReference(text, index);
          break;
        default:
          index = this.#scanWrapperLine(text, index);
      }
    }
  }

  // ---------------------------------------------------------------- text of a block

  #scanText(text: string, start: number): number {
    const end = text.length;
    const inResponse = this.#block === IN_RESPONSE;
    let from = start;
    let index = start;
    for (;;) {
      // The beginning of a line is read character by character, the rest in jumps.
      while (this.#place !== MIDDLE && index < end) {
        const code = text.charCodeAt(index);
        if (code === LINE_FEED) {
          index += 1;
          this.#endLine(index);
        } else if (this.#place === LINE_START) {
          if (code === LESS) break;
          if (this.#isEdge(code, this.#base + index)) index += 1;
          else if (code === BACKTICK || code === TILDE) {
            if (this.#block === TOP) {
              this.#append(text, from, index);
              from = index;
              if (this.#mayWrap(code)) {
                this.#mode = WRAPPER;
                this.#wrapperLine = '';
                return index;
              }
            }
            if (this.#fence === 0 || this.#fence === code) {
              this.#place = FENCE_RUN;
              this.#runChar = code;
              this.#runLength = 1;
              index += 1;
            } else this.#place = MIDDLE;
          } else this.#place = MIDDLE;
        } else if (this.#place === FENCE_RUN) {
          if (code === this.#runChar) {
            this.#runLength += 1;
            index += 1;
          } else {
            this.#place = this.#runLength >= Math.max(3, this.#fenceLength) ? FENCE_INFO : MIDDLE;
            this.#infoBlank = true;
          }
        } else if (isSpace(code)) index += 1;
        else if (this.#fence !== 0) {
          // A closing fence has nothing behind it but perhaps the end of the block.
          if (code === LESS && this.#infoBlank) this.#closeFence();
          this.#place = MIDDLE;
        } else if (code === LESS || (code === DOLLAR && inResponse) || (code === BACKTICK && this.#runChar === code)) {
          this.#place = MIDDLE;
        } else {
          this.#infoBlank = false;
          index += 1;
        }
      }
      if (index >= end) {
        this.#append(text, from, end);
        return end;
      }
      if (this.#nextLess < index) this.#nextLess = indexOrEnd(text, '<', index);
      if (inResponse && this.#nextDollar < index) this.#nextDollar = indexOrEnd(text, '$', index);
      // Inside a fence only a tag at the beginning of a line can matter.
      const tag = this.#fence === 0 || this.#place === LINE_START ? this.#nextLess : end;
      const dollar = inResponse ? this.#nextDollar : end;
      const stop = tag < dollar ? tag : dollar;
      if (index !== stop) {
        if (this.#nextLineFeed < index) this.#nextLineFeed = indexOrEnd(text, '\n', index);
        if (this.#nextLineFeed < stop) {
          index = this.#passLineFeeds(text, stop);
          continue;
        }
        index = stop;
      }
      if (index === end) {
        this.#append(text, from, end);
        return end;
      }
      if (index === dollar) {
        this.#append(text, from, index);
        const reference = readReference(text, index, false);
        if (typeof reference === 'object' && reference !== null) {
          this.#started = true;
          this.#place = MIDDLE;
          this.#emitReference(reference);
          index += reference.raw.length;
          from = index;
          continue;
        }
        if (reference === 'open' && end - index <= HELD_REFERENCE_CHARS) {
          this.#held = text.slice(index);
          return end;
        }
        this.#mode = REFERENCE;
        this.#matcher.reset();
        this.#reference = '$';
        return index + 1;
      } else {
        const found = matchTag(text, index);
        if (found === MORE) {
          this.#append(text, from, index);
          this.#held = text.slice(index);
          return end;
        }
        if (found !== NO_TAG) {
          if (this.#matters(found)) {
            this.#append(text, from, index);
            return this.#takeTag(text, index, found);
          }
          if (this.#isDraft(found) && !this.#warnedOfDrafts) {
            this.#append(text, from, index);
            from = index;
            this.#warnedOfDrafts = true;
            this.#warn('action_in_reasoning', 'Actions inside <think> are drafts and do not run', this.#base + index);
          }
        }
        this.#place = MIDDLE;
        index += 1;
      }
    }
  }

  /**
   * Goes over line breaks before `stop`, the next of which is known, as long as the lines that they
   * begin hold nothing that has to be looked at closely.
   *
   * @returns where the text goes on
   */
  #passLineFeeds(text: string, stop: number): number {
    let lineFeed = this.#nextLineFeed;
    let next = lineFeed;
    let lines = 0;
    let place = LINE_START;
    do {
      next = lineFeed + 1;
      lines += 1;
      const code = text.charCodeAt(next);
      if (code === LINE_FEED) {
        lineFeed = next;
        continue;
      }
      if (next === text.length || code === LESS || mayFence(code)) {
        place = LINE_START;
        break;
      }
      place = MIDDLE;
      lineFeed = indexOrEnd(text, '\n', next);
    } while (lineFeed < stop);
    this.#place = place;
    this.#nextLineFeed = lineFeed;
    this.#line += lines;
    this.#lineOffset = this.#base + next;
    return next;
  }

  /** Reads a tag that means something: at once where it is plain and all of it is here, as nearly always. */
  #takeTag(text: string, at: number, tag: number): number {
    const kind = tagKind(tag);
    const start = at + headLength(tag);
    if (kind === ACTION && !isClosing(tag))
      return this.#takePlainAction(text, at, start) ?? this.#beginTag(text, at, tag, TEXT);
    const attributes = isClosing(tag) || kind !== RESPONSE ? '' : usualAttributes(text, start);
    const end = start + attributes.length;
    if (kind >= FIRST_RUNTIME_TAG || text.charCodeAt(end) !== GREATER) return this.#beginTag(text, at, tag, TEXT);
    this.#tagOffset = this.#base + at;
    if (isClosing(tag)) {
      this.#tagHead = text.slice(at, start);
      this.#closeByTag(kind);
    } else {
      this.#tagText = attributes;
      this.#place = MIDDLE;
      this.#pristine = false;
      this.#closeBlock(true);
      if (kind === RESPONSE) this.#openResponse();
      else this.#openThought(kind === REASONING);
    }
    return end + 1;
  }

  /** @returns where the text goes on; null, and nothing done, where the opening tag must be read step by step */
  #takePlainAction(text: string, at: number, start: number): number | null {
    if (this.#nextGreater < start) this.#nextGreater = indexOrEnd(text, '>', start);
    const end = this.#nextGreater;
    if (end === text.length || end - start > SHORT_TAG_CHARS) return null;
    const head = readPlainHead(text, start, end);
    if (head === null) return null;
    const selfClosing = text.charCodeAt(end - 1) === SLASH;
    this.#tagText = text.slice(start, selfClosing ? end - 1 : end);
    this.#tagOffset = this.#base + at;
    this.#tagLine = this.#line;
    this.#tagColumn = this.#tagOffset - this.#lineOffset + 1;
    this.#countLines(this.#tagText, this.#base + start);
    this.#returnTo = TEXT;
    this.#plainHead = head;
    this.#pristine = false;
    this.#openAction(null);
    this.#beginBody(this.#base + end + 1);
    if (!selfClosing) return this.#scanWholeBody(text, end + 1);
    this.#closeAction(this.#base + end + 1);
    return end + 1;
  }

  /** Whether a tag means anything in the open block, or is text of it. */
  #matters(tag: number): boolean {
    const kind = tagKind(tag);
    const closing = isClosing(tag);
    if (this.#block === IN_RESPONSE) return closing && kind === RESPONSE && this.#fence === 0;
    if (this.#fence !== 0) {
      return this.#block === IN_THOUGHT && closing && isThought(kind) && this.#place === LINE_START;
    }
    return !(kind === ACTION && this.#reasoning && !this.#options.actInReasoning);
  }

  #isDraft(tag: number): boolean {
    return this.#reasoning && this.#fence === 0 && tagKind(tag) === ACTION && !isClosing(tag);
  }

  #endLine(next: number): void {
    if (
      this.#place === FENCE_INFO ||
      (this.#place === FENCE_RUN && this.#runLength >= Math.max(3, this.#fenceLength))
    ) {
      if (this.#fence === 0) {
        this.#fence = this.#runChar;
        this.#fenceLength = this.#runLength;
      } else this.#closeFence();
    }
    this.#place = LINE_START;
    this.#line += 1;
    this.#lineOffset = this.#base + next;
  }

  #closeFence(): void {
    this.#fence = 0;
    this.#fenceLength = 0;
  }

  /** Takes text of the open block; leading white space of the block is dropped (J4). */
  #append(text: string, from: number, to: number): void {
    let start = from;
    if (!this.#started) {
      while (start < to && this.#isEdge(text.charCodeAt(start), this.#base + start)) start += 1;
      if (start === to) return;
      this.#start(this.#base + start);
    }
    if (start < to) this.#pending += text.slice(start, to);
  }

  /** Text whose place in the chunk is gone: what was held back and turned out to be ordinary. */
  #appendLiteral(text: string, offset: number): void {
    let start = 0;
    if (!this.#started) {
      while (start < text.length && isSpace(text.charCodeAt(start))) start += 1;
      if (start === text.length) return;
      this.#start(offset + start);
    }
    this.#pending += start === 0 ? text : text.slice(start);
  }

  /** White space, or the byte order mark of the whole text. */
  #isEdge(code: number, offset: number): boolean {
    return isSpace(code) || (code === BYTE_ORDER_MARK && offset === 0);
  }

  #start(offset: number): void {
    this.#started = true;
    this.#pristine = false;
    if (this.#block === TOP) this.#emit({ type: 'text_started', offset });
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
    const delta = end === text.length ? this.#space + text : this.#space + text.slice(0, end);
    // Nearly always one blank, which needs no string of its own.
    this.#space = end === text.length ? '' : end === text.length - 1 && text.endsWith(' ') ? ' ' : text.slice(end);
    this.#push(textEvent(this.#block, delta));
  }

  // ---------------------------------------------------------------- wrappers (P9)

  #mayWrap(code: number): boolean {
    return this.#block === TOP && this.#fence === 0 && (this.#wrapper === 0 ? this.#pristine : this.#wrapper === code);
  }

  /** Holds a line back until it is clear whether it is a fence around the whole output. */
  #scanWrapperLine(text: string, start: number): number {
    const opening = this.#wrapper === 0;
    let index = start;
    for (; index < text.length; index += 1) {
      const code = text.charCodeAt(index);
      const line = this.#wrapperLine;
      const first = this.#runChar;
      if (line === '') {
        this.#runChar = code;
        this.#runLength = 1;
      } else if (code === first && this.#runLength === line.length && line.length < WRAPPER_LINE_CHARS) {
        this.#runLength += 1;
      } else {
        const runOver = this.#runLength < Math.max(3, this.#wrapperLength);
        const closes = !opening && !runOver;
        if (code === LINE_FEED && !runOver) {
          this.#wrapper = opening ? first : 0;
          this.#wrapperLength = opening ? this.#runLength : 0;
          this.#pristine = false;
          this.#wrapperLine = '';
          this.#mode = TEXT;
          this.#endLine(index + 1);
          return index + 1;
        }
        if (code === LESS && closes) {
          this.#wrapper = 0;
          this.#wrapperLength = 0;
          this.#wrapperLine = '';
          this.#leaveWrapperLine();
          return index;
        }
        const refused =
          runOver ||
          code === LESS ||
          (opening ? code === BACKTICK && first === BACKTICK : !isSpace(code)) ||
          line.length >= WRAPPER_LINE_CHARS;
        if (refused) {
          this.#leaveWrapperLine();
          this.#appendLiteral(line, this.#base + index - line.length);
          return index;
        }
      }
      this.#wrapperLine += text.charAt(index);
    }
    return index;
  }

  #leaveWrapperLine(): void {
    this.#mode = TEXT;
    this.#place = MIDDLE;
  }

  // ---------------------------------------------------------------- references (P12)

  #scanReference(text: string, start: number): number {
    let index = start;
    let outcome = GOES_ON;
    while (index < text.length) {
      outcome = this.#matcher.step(text.charCodeAt(index));
      if (outcome !== GOES_ON) break;
      index += 1;
    }
    const taken = outcome === ENDED_WITH || outcome === DOLLAR_WITH ? index + 1 : index;
    this.#reference += text.slice(start, taken);
    if (outcome !== GOES_ON) this.#endReference(outcome);
    return taken;
  }

  #endReference(outcome: number): void {
    const raw = this.#reference;
    this.#reference = '';
    this.#mode = TEXT;
    this.#place = MIDDLE;
    this.#started = true;
    if (outcome === ENDED_BEFORE || outcome === ENDED_WITH) {
      const end = outcome === ENDED_WITH ? raw.length : raw.length - this.#matcher.tailChars;
      this.#emitReference(parseReference(raw.slice(0, end)));
      this.#pending += raw.slice(end);
    } else this.#pending += outcome === DOLLAR_WITH ? '$' : raw;
  }

  /** The text ended in a reference that waited for more. */
  #finishReference(held: string): void {
    this.#matcher.reset();
    this.#reference = '$';
    this.#scanReference(held, 1);
    if (this.#reference !== '') this.#endReference(this.#matcher.finish());
  }

  #emitReference(reference: Reference): void {
    const before = this.#space + this.#pending;
    this.#space = '';
    this.#pending = '';
    if (before !== '') this.#push({ type: 'response', delta: before });
    this.#push({ type: 'response_reference', reference });
  }

  // ---------------------------------------------------------------- tags

  #beginTag(text: string, at: number, tag: number, returnTo: number): number {
    const length = headLength(tag);
    this.#tagKind = tagKind(tag);
    this.#tagHead = text.slice(at, at + length);
    this.#tagText = '';
    this.#tagOffset = this.#base + at;
    this.#tagLine = this.#line;
    this.#tagColumn = this.#tagOffset - this.#lineOffset + 1;
    this.#returnTo = returnTo;
    this.#plainHead = null;
    this.#mode = isClosing(tag) ? CLOSE_TAG : OPEN_TAG;
    if (this.#mode === OPEN_TAG) this.#tagEnd.reset();
    return at + length;
  }

  #scanOpenTag(text: string, start: number): number {
    const room = limits.tagBytes - this.#tagHead.length - this.#tagText.length;
    const end = Math.min(text.length, start + room);
    let from = start;
    let index = start;
    if (!this.#tagEnd.doubts) {
      // Only a bracket can end or break a tag: what stands before it is looked at when one comes.
      if (this.#nextGreater < start) this.#nextGreater = indexOrEnd(text, '>', start);
      if (this.#nextLess < start) this.#nextLess = indexOrEnd(text, '<', start);
      index = Math.min(this.#nextGreater, this.#nextLess, end);
      if (index < end) {
        const alone = this.#tagText === '';
        this.#tagText = alone ? text.slice(start, index) : this.#tagText + text.slice(start, index);
        let head: ActionHead | null = null;
        if (this.#tagKind === ACTION && index === this.#nextGreater) {
          head = alone ? readPlainHead(text, start, index) : readPlainHead(this.#tagText, 0, this.#tagText.length);
        }
        this.#plainHead = head;
        from = index;
        if (index === this.#nextGreater && (head !== null || this.#tagKind !== ACTION)) {
          this.#completePlainTag(this.#base + index + 1);
          return this.#mode === BODY ? this.#scanWholeBody(text, index + 1) : index + 1;
        }
        if (this.#tagKind === ACTION) this.#tagEnd.catchUp(this.#tagText);
      }
    }
    while (index < end) {
      index = this.#tagKind === ACTION ? this.#tagEnd.scan(text, index, end) : nextBracket(text, index, end);
      if (index === end) break;
      const code = text.charCodeAt(index);
      if (code === LESS) {
        const found = matchTag(text, index);
        if (found === MORE) {
          this.#tagText += text.slice(from, index);
          this.#held = text.slice(index);
          return text.length;
        }
        if (found !== NO_TAG) {
          this.#tagText += text.slice(from, index);
          this.#breakTag('another tag begins inside its opening tag');
          return index;
        }
        this.#tagText += text.slice(from, index + 1);
        this.#tagEnd.skip(code);
        index += 1;
        from = index;
        continue;
      }
      this.#tagText += text.slice(from, index);
      if (code !== GREATER) {
        // The `{` of the body proves that a quote was never closed.
        const { doubtfulAt } = this.#tagEnd;
        const between = this.#tagText.slice(doubtfulAt + 1);
        this.#tagText = this.#tagText.slice(0, doubtfulAt);
        this.#completeOpenTag(false, this.#base + index - between.length);
        if (this.#mode === BODY) this.#addBody(between);
        return index;
      }
      const slash = this.#tagText.charCodeAt(this.#tagText.length - 1) === SLASH;
      const selfClosing = slash && (this.#tagKind !== ACTION || this.#tagEnd.selfClosing);
      if (selfClosing) this.#tagText = this.#tagText.slice(0, -1);
      this.#completeOpenTag(selfClosing, this.#base + index + 1);
      return index + 1;
    }
    this.#tagText += text.slice(from, index);
    if (index - start < room) return index;
    this.#refuseLargeTag();
    return index;
  }

  /** Completes a tag whose first `>` is its end beyond doubt. */
  #completePlainTag(next: number): void {
    const tag = this.#tagText;
    const selfClosing = tag.charCodeAt(tag.length - 1) === SLASH;
    if (selfClosing) this.#tagText = tag.slice(0, -1);
    this.#completeOpenTag(selfClosing, next);
  }

  /** Another tag begins before this one's `>`: it never was a tag, or it is an action that was cut off. */
  #breakTag(why: string): void {
    if (this.#tagKind === ACTION && this.#tagText.includes('=')) {
      this.#countLines(this.#tagText, this.#tagOffset + this.#tagHead.length);
      this.#openAction(null);
      this.#rejectUnclosed(why);
    } else this.#tagIsText();
  }

  /** What looked like a tag is text of the block. */
  #tagIsText(): void {
    const text = this.#tagHead + this.#tagText;
    this.#mode = TEXT;
    this.#place = MIDDLE;
    this.#appendLiteral(text, this.#tagOffset);
    this.#countLines(this.#tagText, this.#tagOffset + this.#tagHead.length);
    const lineFeed = text.lastIndexOf('\n');
    if (lineFeed !== -1 && text.slice(lineFeed).trim() === '') this.#place = LINE_START;
  }

  #refuseLargeTag(): void {
    const message = `A tag is longer than ${limits.tagBytes} bytes`;
    this.#plainHead = null;
    if (this.#tagKind === ACTION) {
      this.#countLines(this.#tagText, this.#tagOffset + this.#tagHead.length);
      this.#openAction({ code: 'too_large', message });
      this.#beginBody(this.#tagOffset + this.#tagHead.length + this.#tagText.length);
      this.#scanner.giveUp();
      return;
    }
    this.#warn('tag_too_large', `${message}; it was taken as text`, this.#tagOffset);
    this.#tagIsText();
  }

  #completeOpenTag(selfClosing: boolean, next: number): void {
    const kind = this.#tagKind;
    const length = this.#tagHead.length + this.#tagText.length;
    if (length * 3 > limits.tagBytes && utf8Bytes(this.#tagHead + this.#tagText) > limits.tagBytes) {
      this.#refuseLargeTag();
      this.#bodyOffset = next;
      if (this.#mode === TEXT) this.#appendLiteral(selfClosing ? '/>' : '>', next - 1);
      else if (selfClosing) this.#closeAction(next);
      return;
    }
    this.#countLines(this.#tagText, this.#tagOffset + this.#tagHead.length);
    this.#mode = TEXT;
    this.#place = MIDDLE;
    this.#pristine = false;
    if (kind === ACTION) {
      this.#openAction(null);
      this.#beginBody(next);
      if (selfClosing) this.#closeAction(next);
    } else if (kind >= FIRST_RUNTIME_TAG) {
      this.#warn(
        'forged_tag',
        `${this.#tagHead}> belongs to the runtime; it was dropped with what it holds`,
        this.#tagOffset,
      );
      if (!selfClosing) {
        this.#mode = DROP;
        this.#dropKind = kind;
      }
    } else {
      this.#closeBlock(true);
      if (kind === RESPONSE) this.#openResponse();
      else this.#openThought(kind === REASONING);
      if (selfClosing) this.#closeBlock(false);
    }
  }

  #scanCloseTag(text: string, start: number): number {
    let index = start;
    const room = start + limits.tagBytes - this.#tagHead.length - this.#tagText.length;
    while (index < text.length && index < room && isSpace(text.charCodeAt(index))) index += 1;
    this.#tagText += text.slice(start, index);
    if (index === text.length) return index;
    if (text.charCodeAt(index) === GREATER && index < room) {
      this.#completeCloseTag(this.#base + index + 1);
      return index + 1;
    }
    // Not a tag after all.
    const literal = this.#tagHead + this.#tagText;
    this.#mode = this.#returnTo;
    if (this.#returnTo === TEXT) this.#tagIsText();
    else if (this.#returnTo === BODY) this.#addBody(literal);
    else this.#countLines(literal, this.#tagOffset);
    return index;
  }

  #completeCloseTag(next: number): void {
    const kind = this.#tagKind;
    this.#mode = TEXT;
    switch (this.#returnTo) {
      case BODY:
        if (kind === ACTION ? this.#endsBody() : !this.#hidden()) {
          if (kind === ACTION) this.#closeAction(next);
          else {
            this.#rejectUnclosed(`${this.#tagHead}> stands where its </action> was expected`);
            this.#countLines(this.#tagText, this.#tagOffset + this.#tagHead.length);
            this.#closeByTag(kind);
          }
        } else {
          this.#mode = BODY;
          this.#addBody(`${this.#tagHead}${this.#tagText}>`);
        }
        return;
      case DROP:
        this.#countLines(this.#tagText, this.#tagOffset + this.#tagHead.length);
        if (kind === this.#dropKind) this.#place = MIDDLE;
        else if (isThought(kind) && this.#block === IN_THOUGHT) this.#closeByTag(kind);
        else this.#mode = DROP;
        return;
      default:
        this.#countLines(this.#tagText, this.#tagOffset + this.#tagHead.length);
        this.#closeByTag(kind);
    }
  }

  #closeByTag(kind: number): void {
    this.#place = MIDDLE;
    this.#pristine = false;
    const fits = (this.#block === IN_THOUGHT && isThought(kind)) || (this.#block === IN_RESPONSE && kind === RESPONSE);
    if (fits) this.#closeBlock(false);
    else this.#warn('stray_close_tag', `${this.#tagHead}> closes nothing; it was dropped`, this.#tagOffset);
  }

  #scanDropped(text: string, start: number): number {
    let index = start;
    for (;;) {
      if (this.#nextLess < index) this.#nextLess = indexOrEnd(text, '<', index);
      const less = this.#nextLess;
      if (less === text.length) {
        this.#countLines(text.slice(start), this.#base + start);
        return less;
      }
      const found = matchTag(text, less);
      const kind = tagKind(found);
      if (found === MORE) {
        this.#countLines(text.slice(start, less), this.#base + start);
        this.#held = text.slice(less);
        return text.length;
      }
      if (found !== NO_TAG) {
        if (isClosing(found)) {
          if (kind === this.#dropKind || (isThought(kind) && this.#block === IN_THOUGHT)) {
            this.#countLines(text.slice(start, less), this.#base + start);
            return this.#beginTag(text, less, found, DROP);
          }
        } else if (isThought(kind) || kind === RESPONSE) {
          this.#countLines(text.slice(start, less), this.#base + start);
          this.#mode = TEXT;
          this.#place = MIDDLE;
          return less;
        }
      }
      index = less + 1;
    }
  }

  // ---------------------------------------------------------------- blocks

  #openThought(reasoning: boolean): void {
    this.#enterBlock(IN_THOUGHT);
    this.#reasoning = reasoning;
    this.#emit({ type: 'thought_started', offset: this.#tagOffset, reasoning });
  }

  #openResponse(): void {
    const tag = this.#tagText;
    const final = tag === FINAL ? true : tag === NOT_FINAL ? false : this.#finality(tag);
    this.#enterBlock(IN_RESPONSE);
    this.#sawResponse = true;
    this.#emit({ type: 'response_started', offset: this.#tagOffset, final });
  }

  #finality(tag: string): Finality {
    let final: Finality = null;
    const unknown: string[] = [];
    let invalid: string | null = null;
    readAttributes(tag, (name, value) => {
      if (name.toLowerCase() !== 'final') unknown.push(name);
      else if (/^(?:true|yes|1|final)$/i.test(value.trim())) final = true;
      else if (/^(?:false|no|0)$/i.test(value.trim())) final = false;
      else if (!/^auto$/i.test(value.trim())) invalid = value;
    });
    if (unknown.length > 0) {
      this.#warn('unknown_attribute', `<response> has no attribute ${excerptOf(unknown.join(', '))}`, this.#tagOffset);
    }
    if (invalid !== null) {
      this.#warn('invalid_field', `final="${excerptOf(invalid)}" is neither true nor false`, this.#tagOffset);
    }
    return final;
  }

  #enterBlock(block: number): void {
    this.#block = block;
    this.#reasoning = false;
    this.#started = false;
    this.#space = '';
    this.#closeFence();
    this.#place = LINE_START;
  }

  /** Closes the open block, if any, and returns to the top level. */
  #closeBlock(unclosed: boolean): void {
    const block = this.#block;
    this.#flush();
    this.#space = '';
    if (block === TOP) {
      if (this.#started) this.#push({ type: 'text_completed' });
    } else {
      const name = block === IN_THOUGHT ? 'thought' : 'response';
      if (unclosed) {
        this.#warn('unclosed', `The ${name} has no closing tag; it was closed here`, this.#base + this.#heldBack());
      }
      this.#emit({ type: block === IN_THOUGHT ? 'thought_completed' : 'response_completed', unclosed });
    }
    this.#block = TOP;
    this.#reasoning = false;
    this.#started = false;
    this.#closeFence();
    this.#place = MIDDLE;
  }

  /** Offset within the text at hand where an implicit close happens: the tag that made it, or the end. */
  #heldBack(): number {
    return this.#ended ? 0 : this.#tagOffset - this.#base;
  }

  // ---------------------------------------------------------------- actions

  /** @param refusal set when the action cannot be accepted whatever its body holds */
  #openAction(refusal: OpenAction['refusal']): void {
    this.#ids.settle();
    if (this.#block === TOP) this.#closeBlock(false);
    const { ordinal } = this.#numbering;
    const ignored = ordinal > this.#maxActions;
    const tooMany = ordinal === this.#maxActions;
    if (!ignored) this.#numbering.ordinal += 1;
    const head = this.#plainHead ?? readHead(refusal === null ? this.#tagText : '');
    this.#plainHead = null;
    this.#action = {
      ordinal,
      head,
      tag: this.#tagText,
      start: this.#tagOffset,
      line: this.#tagLine,
      column: this.#tagColumn,
      embedded: this.#block === IN_THOUGHT,
      refusal: tooMany
        ? {
            code: 'too_many_actions',
            message: `More than ${this.#maxActions} actions; this one and all that follow are ignored`,
          }
        : refusal,
      ignored,
    };
    if (!ignored && !tooMany) {
      this.#emit({ type: 'action_opened', actionType: head.type, name: head.name, mode: head.mode });
    }
  }

  #beginBody(offset: number): void {
    this.#mode = BODY;
    this.#scanned = '';
    this.#fresh = '';
    this.#bodyChars = 0;
    this.#bodyTooLarge = false;
    this.#bodyOffset = offset;
    this.#parsed = undefined;
    if (this.#scanner.used) this.#scanner.reset();
  }

  #scanBody(text: string, start: number): number {
    let from = start;
    let index = start;
    for (;;) {
      if (this.#nextLess < index) this.#nextLess = indexOrEnd(text, '<', index);
      const less = this.#nextLess;
      if (less === text.length) {
        this.#addBody(from === 0 ? text : text.slice(from));
        return less;
      }
      const found = matchTag(text, less);
      if (found === MORE) {
        this.#addBody(text.slice(from, less));
        this.#held = text.slice(less);
        return text.length;
      }
      const kind = tagKind(found);
      index = less + 1;
      if (found === NO_TAG || kind >= FIRST_RUNTIME_TAG) continue;
      this.#addBody(text.slice(from, less));
      from = less;
      if (isClosing(found)) {
        const end = less + headLength(found);
        if (kind !== ACTION || text.charCodeAt(end) !== GREATER) return this.#beginTag(text, less, found, BODY);
        if (!this.#endsBody()) continue;
        this.#returnTo = TEXT;
        this.#closeAction(this.#base + end + 1);
        return end + 1;
      }
      if (!this.#hidden()) {
        this.#tagOffset = this.#base + less;
        this.#rejectUnclosed(`<${headName(text, less, found)}> begins before its </action>`);
        return less;
      }
    }
  }

  /** A body that stands in one chunk with its closing tag and is strict JSON: most are. Anything else goes the long way. */
  #scanWholeBody(text: string, start: number): number {
    // A body that is not used is scanned only: an error for each one that is not JSON takes more time than all the rest.
    if (this.#action?.ignored === true) return start;
    if (this.#nextLess < start) this.#nextLess = indexOrEnd(text, '<', start);
    const end = this.#nextLess;
    if (!text.startsWith('</action>', end) || end - start > limits.actionBodyBytes) return start;
    const body = text.slice(start, end);
    this.#parsed = parseJson(body);
    if (this.#parsed === undefined) return start;
    this.#addBody(body);
    const next = end + '</action>'.length;
    this.#closeAction(this.#base + next);
    return next;
  }

  #addBody(text: string): void {
    this.#countLines(text, this.#bodyOffset + this.#bodyChars);
    this.#bodyChars += text.length;
    if (this.#bodyTooLarge) {
      this.#scanner.scan(text);
      return;
    }
    this.#fresh = this.#fresh === '' ? text : this.#fresh + text;
    if (this.#bodyChars > limits.actionBodyBytes) {
      // Kept no longer; the scanner alone finds the end.
      this.#bodyTooLarge = true;
      this.#scanner.scan(this.#fresh);
      this.#scanned = '';
      this.#fresh = '';
    }
  }

  /** Does with the last pieces of the body what was put off. */
  #settleTail(): void {
    const tail = this.#tail;
    this.#tail = '';
    this.#tailPieces = 0;
    this.#addBody(tail);
    this.#meter.takeReserved(tail);
  }

  /** Whether the place reached hides a tag: it stands in a string of the body (P7). */
  #hidden(): boolean {
    this.#scanFresh();
    return this.#scanner.hidesTag;
  }

  #scanFresh(): void {
    if (this.#fresh === '') return;
    this.#scanner.scan(this.#fresh);
    this.#scanned += this.#fresh;
    this.#fresh = '';
  }

  /** Whether the `</action>` reached ends the action. */
  #endsBody(): boolean {
    // A body that is strict JSON as a whole needs no scan.
    if (!this.#bodyTooLarge && !this.#scanner.used && this.#action?.ignored !== true) {
      this.#parsed = parseJson(this.#fresh);
      if (this.#parsed !== undefined) return true;
    }
    this.#scanFresh();
    return !this.#scanner.inString;
  }

  #closeAction(next: number): void {
    const action = this.#action;
    if (action === null) return;
    const source = this.#scanned === '' ? this.#fresh : this.#scanned + this.#fresh;
    if (this.#returnTo === BODY) this.#countLines(this.#tagText, this.#tagOffset + this.#tagHead.length);
    if (!action.ignored) this.#declare(action, source, next);
    this.#leaveAction();
  }

  #leaveAction(): void {
    this.#action = null;
    this.#scanned = '';
    this.#fresh = '';
    this.#mode = TEXT;
    this.#place = MIDDLE;
  }

  #declare(action: OpenAction, source: string, end: number): void {
    const tooLarge =
      this.#bodyTooLarge || (source.length * 3 > limits.actionBodyBytes && utf8Bytes(source) > limits.actionBodyBytes);
    if (action.refusal !== null) {
      this.#reject(action, action.refusal.code, action.refusal.message);
      return;
    }
    if (tooLarge) {
      this.#reject(action, 'too_large', `The body is longer than ${limits.actionBodyBytes} bytes`);
      return;
    }
    const read = this.#readBody(source);
    if (!read.ok) {
      this.#rejectAt(action, read.code, read.message, source, read.index);
      return;
    }
    const { body, repaired } = read;
    const given = givenId(action.head, body);
    const idProblem = given === null ? null : idIssue('id', given);
    if (idProblem !== null) {
      this.#reject(action, 'invalid_id', idProblem, given);
      return;
    }
    // A `$` can also be written `\u0024`.
    const mayRefer = repaired || source.includes('$') || source.includes('\\');
    const fields = readFields(action.head, body, mayRefer);
    if (!fields.ok) {
      this.#reject(action, fields.code, fields.message, given);
      return;
    }
    const { type, name } = fields.fields;
    if (repaired && this.#options.unsafe?.(type, name) === true) {
      this.#reject(
        action,
        'repair_refused',
        `The body is not strict JSON, and ${type} "${name}" has effects that must not rest on a mended body: send strict JSON`,
        given,
      );
      return;
    }
    if (given !== null && this.#repeats(action, given, source)) return;
    if (repaired)
      this.#warn('repaired_json', `The body of "${given ?? name}" was not strict JSON; it was mended`, action.start);
    for (const warning of fields.warnings) this.#warn(warning.code, warning.message, action.start);
    const declared = fields.fields;
    const declaration: ActionDeclaration = {
      ordinal: action.ordinal,
      id: given ?? this.#autoId(),
      type,
      mode: declared.mode,
      name,
      parameters: declared.parameters,
      outputKey: declared.outputKey,
      dependsOn: declared.dependsOn,
      waitForAll: declared.waitForAll,
      timeoutMs: declared.timeoutMs,
      retry: declared.retry,
      onError: declared.onError,
      when: declared.when,
      priority: declared.priority,
      idempotencyKey: declared.idempotencyKey,
      cacheTtlMs: declared.cacheTtlMs,
      references: declared.references,
      embeddedInThought: action.embedded,
      repaired,
      span: { start: action.start, end },
    };
    this.#emit({ type: 'action_declared', action: declaration });
  }

  #readBody(source: string): ReadBody {
    const value = this.#parsed ?? parseJson(source) ?? (source.trim() === '' ? {} : undefined);
    if (value !== undefined) return strictBody(value, source);
    this.#scanFresh();
    const mend = this.#options.json === 'repair' && source.length <= this.#repairCharsLeft;
    if (mend) this.#repairCharsLeft -= source.length;
    return brokenBody(source, this.#scanner.maxDepth, mend);
  }

  /** The id was used before in this generation; reports it (P6). */
  #repeats(action: OpenAction, id: string, source: string): boolean {
    switch (this.#ids.declare(id, `${action.tag}>${source}`)) {
      case 'new':
        return false;
      case 'same': {
        const message = `The action "${id}" was declared twice, word for word; it runs once`;
        this.#warn('duplicate_action', message, action.start);
        return true;
      }
      default: {
        const message = `The id "${id}" is already used in this generation; choose another`;
        this.#reject(action, 'duplicate_id', message, id);
        return true;
      }
    }
  }

  #autoId(): string {
    for (;;) {
      const id = `auto_${this.#numbering.autoId}`;
      this.#numbering.autoId += 1;
      if (!this.#ids.has(id)) return id;
    }
  }

  #rejectUnclosed(why: string): void {
    const action = this.#action;
    if (action === null) return;
    if (!action.ignored) {
      const refusal =
        action.refusal ??
        (this.#stopped
          ? { code: 'too_large' as const, message: `The generation is longer than ${limits.generationBytes} bytes` }
          : { code: 'unclosed' as const, message: `The action was never closed, so it does not run: ${why}` });
      this.#reject(action, refusal.code, refusal.message);
    }
    this.#leaveAction();
  }

  #reject(action: OpenAction, code: RejectionCode, message: string, id: string | null = action.head.id): void {
    const body = this.#scanned + this.#fresh;
    const excerpt = excerptOf(`<action${action.tag}>${body.slice(0, limits.excerptChars)}`);
    this.#emitRejection(action, code, message, id, action.line, action.column, excerpt);
  }

  /** Rejects with the place of a fault inside the body. */
  #rejectAt(action: OpenAction, code: RejectionCode, message: string, source: string, index: number): void {
    const before = `${action.tag}>${source.slice(0, index)}`;
    const lineFeed = before.lastIndexOf('\n');
    const line = action.line + (lineFeed === -1 ? 0 : before.split('\n').length - 1);
    const column = lineFeed === -1 ? action.column + '<action'.length + before.length : before.length - lineFeed;
    const from = Math.max(0, Math.min(index, source.length) - limits.excerptChars / 2);
    const excerpt = excerptOf(source.slice(from).trimStart());
    this.#emitRejection(action, code, message, action.head.id, line, column, excerpt);
  }

  #emitRejection(
    action: OpenAction,
    code: RejectionCode,
    message: string,
    id: string | null,
    line: number,
    column: number,
    excerpt: string,
  ): void {
    const { type, mode, name } = action.head;
    const shownId = excerptOf(id ?? this.#autoId());
    this.#emit({
      type: 'action_rejected',
      rejection: {
        ordinal: action.ordinal,
        id: shownId,
        type,
        mode,
        name,
        code,
        message: `Action "${shownId}", line ${line}: ${message}`,
        line,
        column,
        excerpt,
      },
    });
  }

  // ---------------------------------------------------------------- the end (P9, P15)

  #finish(): void {
    const held = this.#held;
    this.#held = '';
    switch (this.#mode) {
      case TEXT:
        if (held.charCodeAt(0) === DOLLAR) this.#finishReference(held);
        else if (!this.#closesBlock(held)) this.#appendLiteral(held, this.#base);
        break;
      case OPEN_TAG:
        this.#tagText += held;
        this.#breakTag('the text ended inside its opening tag');
        break;
      case CLOSE_TAG:
        if (this.#returnTo === BODY) this.#rejectUnclosed('the text ended');
        else if (this.#returnTo === TEXT && !this.#closesBlock(this.#tagHead)) this.#tagIsText();
        break;
      case BODY:
        this.#addBody(held);
        this.#rejectUnclosed('the text ended');
        break;
      case REFERENCE:
        this.#endReference(this.#matcher.finish());
        break;
      case WRAPPER:
        if (this.#wrapper === 0 || this.#runLength < this.#wrapperLength) {
          this.#appendLiteral(this.#wrapperLine, this.#base - this.#wrapperLine.length);
        }
        break;
      default:
    }
    this.#mode = TEXT;
    this.#base += held.length;
    this.#closeBlock(true);
  }

  /** Whether the text broke off inside the closing tag of the open block. */
  #closesBlock(held: string): boolean {
    const begun = held.toLowerCase();
    if (begun.length < 2 || this.#block === TOP) return false;
    if (this.#block === IN_RESPONSE) return '</response'.startsWith(begun);
    return '</thought'.startsWith(begun) || '</thinking'.startsWith(begun);
  }

  // ---------------------------------------------------------------- bookkeeping

  /** Keeps the line number right over text that was not read as a block's text. */
  #countLines(text: string, offset: number): void {
    let lineFeed = text.indexOf('\n');
    while (lineFeed !== -1) {
      this.#line += 1;
      this.#lineOffset = offset + lineFeed + 1;
      lineFeed = text.indexOf('\n', lineFeed + 1);
    }
  }

  #warn(code: WarningCode, message: string, offset: number): void {
    this.#warnings += 1;
    if (this.#warnings <= limits.warningsPerGeneration) this.#emit({ type: 'warning', code, message, offset });
    else if (this.#warnings === limits.warningsPerGeneration + 1) {
      const more = `More than ${limits.warningsPerGeneration} warnings; further ones are not shown`;
      this.#emit({ type: 'warning', code: 'truncated', message: more, offset });
    }
  }

  /** Emits an event after the text that stands before it. */
  #emit(event: ProtocolEvent): void {
    this.#flush();
    this.#push(event);
  }

  #push(event: ProtocolEvent): void {
    if (this.#events === null) this.#events = [event];
    else this.#events.push(event);
  }
}

/** Printable ASCII without the characters that could begin a tag or a reference. */
function isPlainAscii(chunk: string): boolean {
  for (let index = 0; index < chunk.length; index += 1) {
    const code = chunk.charCodeAt(index);
    if (code < 32 || code > 126 || code === LESS || code === DOLLAR) return false;
  }
  return true;
}

/** ASCII without either of two characters. */
function isAsciiOutside(chunk: string, one: number, other: number): boolean {
  for (let index = 0; index < chunk.length; index += 1) {
    const code = chunk.charCodeAt(index);
    if (code > 127 || code === one || code === other) return false;
  }
  return true;
}

/** At the beginning of a line: white space or a fence character. */
function mayFence(code: number): boolean {
  return code === BACKTICK || code === TILDE || (isSpace(code) && code !== LINE_FEED);
}

function textEvent(block: number, delta: string): ProtocolEvent {
  if (block === IN_THOUGHT) return { type: 'thought', delta };
  return block === IN_RESPONSE ? { type: 'response', delta } : { type: 'text', delta };
}

function indexOrEnd(text: string, character: string, from: number): number {
  const found = text.indexOf(character, from);
  return found === -1 ? text.length : found;
}

/** Index of the next `<` or `>`, or `to`. */
function nextBracket(text: string, from: number, to: number): number {
  let index = from;
  while (index < to) {
    const code = text.charCodeAt(index);
    if (code === LESS || code === GREATER) break;
    index += 1;
  }
  return index;
}

/** Those of a response's opening tag, if they begin as most do. */
function usualAttributes(text: string, from: number): string {
  if (text.startsWith(FINAL, from)) return FINAL;
  return text.startsWith(NOT_FINAL, from) ? NOT_FINAL : '';
}

function isThought(kind: number): boolean {
  return kind === THOUGHT || kind === REASONING;
}

function headName(text: string, at: number, tag: number): string {
  return text.slice(at + 1, at + headLength(tag));
}

/** Cut to `limits.excerptChars`, whole characters only. */
function excerptOf(text: string): string {
  if (text.length <= limits.excerptChars) return text;
  const last = text.charCodeAt(limits.excerptChars - 1);
  return text.slice(0, last >= 0xd800 && last <= 0xdbff ? limits.excerptChars - 1 : limits.excerptChars);
}
