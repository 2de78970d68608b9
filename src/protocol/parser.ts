/**
 * The protocol parser: model text in, protocol events out, as the text arrives (P1-P18).
 *
 * Owns the place in the text, the open block, and the body of the open action. Does not own what a
 * name refers to, what may run, or what a response is worth: it reports what was written.
 *
 * Invariants:
 *  1. Events depend on the text alone, never on how it was cut into chunks (P3).
 *  2. What is held back is bounded: a beginning of a tag or of a reference, white space at an edge,
 *     a line that may be a wrapping code fence, the body of the open action (P4).
 *  3. Every character is looked at a bounded number of times; inside text the search jumps.
 *  4. Nothing that the model did not finish writing becomes a declaration; bad input never throws.
 */
import { jsonrepair } from 'jsonrepair';
import type { ActionRejection, ActionType, RejectionCode } from '../domain/action.ts';
import { messageOf } from '../domain/errors.ts';
import type { JsonObject } from '../domain/json.ts';
import { isJsonObject } from '../domain/json.ts';
import { limits } from '../domain/limits.ts';
import type { Finality, ProtocolEvent, WarningCode } from '../domain/protocol-event.ts';
import { cut, isRefusal, isValidId, readAction, readActionTag } from './action-body.ts';
import type { ActionTag } from './action-body.ts';
import { FenceTracker } from './fence.ts';
import { JsonScanner } from './json-scanner.ts';
import { readReference } from './references.ts';
import { findTagEnd, isSpace, parseAttributes, readTagStart } from './tags.ts';
import type { TagScan, TagStart } from './tags.ts';

export interface ParserOptions {
  /** `strict` turns the repair of bodies off (P8). */
  readonly json: 'repair' | 'strict';
  /** Actions inside `<think>` run too (P9). */
  readonly actInReasoning: boolean;
  /** Number of the first `auto_…` id; ids count through the run (P6). */
  readonly firstAutoId?: number;
  /** Whether a repaired body of this action must be refused (P8, S7). */
  readonly unsafe?: (type: ActionType, name: string) => boolean;
}

export interface ProtocolParser {
  /** Feeds the next piece of text, cut anywhere; returns the events that it completes. */
  feed(chunk: string): readonly ProtocolEvent[];
  /** The text has ended: closes what is open. An action that is still open is rejected. */
  end(): readonly ProtocolEvent[];
  /** For the next generation's `firstAutoId`. */
  readonly nextAutoId: number;
}

export function createParser(options: ParserOptions): ProtocolParser {
  return new Parser(options);
}

type Mode = 'top' | 'thought' | 'response' | 'action' | 'dropped' | 'closed';

interface OpenAction {
  readonly tag: ActionTag;
  readonly parent: 'top' | 'thought';
  readonly scanner: JsonScanner;
  /** Offset of the `<` in the generation. */
  readonly start: number;
  readonly line: number;
  readonly column: number;
  /** Place of the body's first character. */
  readonly bodyLine: number;
  readonly bodyColumn: number;
  readonly tagText: string;
  body: string;
  bodyBytes: number;
  tooLarge: boolean;
}

class Parser implements ProtocolParser {
  readonly #options: ParserOptions;
  #events: ProtocolEvent[] = [];
  #mode: Mode = 'top';
  #buffer = '';
  #at = 0;
  /** Offset of the buffer's first character in the generation. */
  #base = 0;
  #bytes = 0;
  #ending = false;
  /** Lines and the offset of the last line break, up to `#counted` (an offset). */
  #lines = 1;
  #lineStart = 0;
  #counted = 0;

  /** The open text block, if any: bare text opens with its first character. */
  #hasText = false;
  #space = '';
  #reasoning = false;
  #fence = new FenceTracker();
  /** Nothing but white space so far: a fence that opens here wraps the whole text. */
  #blank = true;
  #wrapped = false;

  #tagScan: TagScan | null = null;
  #action: OpenAction | null = null;
  #dropped: { readonly name: string; readonly parent: 'top' | 'thought' } | null = null;
  #ordinal = 0;
  #autoId: number;
  readonly #ids = new Map<string, string>();
  #warnings = 0;
  #warnedReasoning = false;

  constructor(options: ParserOptions) {
    this.#options = options;
    this.#autoId = options.firstAutoId ?? 1;
  }

  get nextAutoId(): number {
    return this.#autoId;
  }

  feed(chunk: string): readonly ProtocolEvent[] {
    if (this.#mode === 'closed' || chunk === '') return [];
    let text = chunk;
    this.#bytes += utf8Length(chunk);
    const over = this.#bytes > limits.generationBytes;
    if (over) text = chunk.slice(0, Math.max(0, chunk.length - (this.#bytes - limits.generationBytes)));
    this.#compact();
    this.#buffer += text;
    this.#run();
    if (over) {
      this.#warn('text_too_large', `The text is longer than ${limits.generationBytes} bytes; the rest was not read`);
      this.#finish();
    }
    return this.#take();
  }

  end(): readonly ProtocolEvent[] {
    if (this.#mode !== 'closed') this.#finish();
    return this.#take();
  }

  #take(): readonly ProtocolEvent[] {
    const events = this.#events;
    this.#events = [];
    return events;
  }

  #finish(): void {
    this.#compact();
    this.#ending = true;
    this.#run();
    if (this.#action !== null) {
      const action = this.#action;
      this.#reject(action, 'unclosed', 'The text ended before </action>; the action was not run', action.body.length);
      this.#action = null;
      this.#mode = action.parent;
    }
    if (this.#dropped !== null) this.#mode = this.#dropped.parent;
    this.#closeBlock(true);
    this.#mode = 'closed';
    this.#buffer = '';
  }

  #compact(): void {
    if (this.#at === 0) return;
    this.#countLines(this.#at);
    this.#base += this.#at;
    this.#buffer = this.#buffer.slice(this.#at);
    if (this.#tagScan !== null) this.#tagScan.at -= this.#at;
    this.#at = 0;
  }

  /** Reads until the buffer is used up or more text is needed to decide. */
  #run(): void {
    while (this.#at < this.#buffer.length) {
      const mode = this.#mode;
      const goOn =
        mode === 'action' ? this.#readBody() : mode === 'dropped' ? this.#readDropped() : this.#readText(mode);
      if (!goOn) return;
    }
  }

  // --- text blocks -------------------------------------------------------------------------------

  /** One stretch of text up to the next thing that may mean something; false when more text is needed. */
  #readText(mode: Mode): boolean {
    const text = this.#buffer;
    const from = this.#at;
    const stop = nextSpecial(text, from, mode === 'response');
    if (stop > from) {
      this.#write(text.slice(from, stop));
      this.#at = stop;
      if (stop === text.length) return false;
    }
    const code = text.charCodeAt(stop);
    if (code === 60) return this.#readLessThan(mode);
    if (code === 36) return this.#readDollar();
    // A line break: whether its line was a fence is known now.
    this.#at = stop + 1;
    this.#endLine();
    return true;
  }

  #endLine(): void {
    if (this.#mode === 'top' && this.#fence.mayWrap(this.#blank, this.#wrapped)) {
      const line = this.#fence.line ?? '';
      const isFence = this.#fence.lineIsFence();
      if (isFence) {
        // The wrapper's own lines are no text.
        this.#wrapped = !this.#wrapped;
        this.#blank = false;
        this.#fence.startLine();
        return;
      }
      this.#fence.startLine();
      if (line !== '') this.#emit(line);
      this.#emit('\n');
      return;
    }
    this.#fence.endLine();
    this.#emit('\n');
  }

  /** Plain text of the current line: told to the fence tracker, and sent on unless the line may be a wrapper. */
  #write(piece: string): void {
    const held =
      this.#mode === 'top' && this.#fence.mayWrap(this.#blank, this.#wrapped) ? (this.#fence.line ?? '') : null;
    this.#fence.add(piece);
    if (held === null) return this.#emit(piece);
    if (this.#fence.mayWrap(this.#blank, this.#wrapped)) return;
    this.#emit(held + piece);
  }

  /** Sends text of the open block; white space at its edges is kept back (J4). */
  #emit(piece: string): void {
    let text = piece;
    if (!this.#hasText) {
      text = text.trimStart();
      if (text === '') return;
      this.#startText();
    }
    const end = text.trimEnd().length;
    if (end === 0) {
      this.#space += text;
      return;
    }
    const delta = this.#space + text.slice(0, end);
    this.#space = text.slice(end);
    this.#delta(delta);
  }

  #startText(): void {
    this.#hasText = true;
    this.#space = '';
    this.#blank = false;
    if (this.#mode === 'top') this.#events.push({ type: 'text_started', offset: this.#base + this.#at });
  }

  #delta(delta: string): void {
    const type = this.#mode === 'thought' ? 'thought' : this.#mode === 'response' ? 'response' : 'text';
    const last = this.#events.at(-1);
    if (last !== undefined && last.type === type)
      this.#events[this.#events.length - 1] = { type, delta: last.delta + delta };
    else this.#events.push({ type, delta });
  }

  /** What is held of a possible wrapper line is text after all. */
  #releaseLine(): void {
    if (this.#mode !== 'top' || !this.#fence.mayWrap(this.#blank, this.#wrapped)) return;
    const line = this.#fence.line ?? '';
    const wrapper = this.#ending && this.#fence.lineIsFence();
    this.#fence.spoilLine();
    if (line !== '' && !wrapper) this.#emit(line);
  }

  /** Closes the block that the reader stands in; bare text only where it has begun. */
  #closeBlock(unclosed: boolean): void {
    this.#releaseLine();
    if (this.#mode === 'thought') this.#events.push({ type: 'thought_completed', unclosed });
    else if (this.#mode === 'response') this.#events.push({ type: 'response_completed', unclosed });
    else if (this.#mode === 'top' && this.#hasText) this.#events.push({ type: 'text_completed' });
    this.#hasText = false;
    this.#space = '';
  }

  #enter(mode: 'top' | 'thought' | 'response'): void {
    this.#mode = mode;
    this.#hasText = false;
    this.#space = '';
    // Outside a block the line goes on; inside, a line begins.
    if (mode === 'top') this.#fence.spoilLine();
    else this.#fence = new FenceTracker();
  }

  // --- tags --------------------------------------------------------------------------------------

  #readLessThan(mode: Mode): boolean {
    const text = this.#buffer;
    const at = this.#at;
    if (mode === 'response' && at + 1 < text.length && text.charCodeAt(at + 1) !== 47) return this.#literal(1);
    const tag = readTagStart(text, at);
    if (tag === 'text') return this.#literal(1);
    if (tag === 'more') return this.#ending ? this.#literal(1) : false;
    if (!this.#means(mode, tag)) return this.#literal(tag.end - at);
    return tag.close ? this.#readClose(tag) : this.#readOpen(tag);
  }

  /** Whether a tag is one here, or text (P1, P2, P9). */
  #means(mode: Mode, tag: TagStart): boolean {
    if (mode === 'response') return tag.close && tag.kind === 'response' && !this.#fence.open;
    if (mode === 'thought') {
      if (this.#fence.open) return tag.close && tag.kind === 'thought' && this.#fence.atLineStart;
      if (tag.kind === 'action' && this.#reasoning && !this.#options.actInReasoning) {
        if (!this.#warnedReasoning) {
          this.#warnedReasoning = true;
          this.#warn(
            'action_in_reasoning',
            'An action inside <think> is a draft and was not run (protocol.act_in_reasoning)',
          );
        }
        return false;
      }
      return true;
    }
    return !this.#fence.open;
  }

  #literal(length: number): boolean {
    this.#write(this.#buffer.slice(this.#at, this.#at + length));
    this.#at += length;
    return true;
  }

  #readClose(tag: TagStart): boolean {
    const text = this.#buffer;
    let end = tag.end;
    while (end < text.length && isSpace(text.charCodeAt(end))) end += 1;
    if (end === text.length) {
      if (!this.#ending && end - this.#at <= limits.tagBytes) return false;
      return this.#literal(tag.end - this.#at);
    }
    if (text.charCodeAt(end) !== 62) return this.#literal(tag.end - this.#at);
    const mode = this.#mode;
    this.#releaseLine();
    if (tag.kind !== mode) {
      this.#warn('stray_close_tag', `</${tag.name}> closes nothing here; it was dropped`);
      this.#fence.spoilLine();
      this.#at = end + 1;
      return true;
    }
    this.#closeBlock(false);
    this.#at = end + 1;
    this.#enter('top');
    return true;
  }

  #readOpen(tag: TagStart): boolean {
    const text = this.#buffer;
    const at = this.#at;
    this.#tagScan ??= { at: tag.end, quote: 0, before: 0 };
    const end = findTagEnd(text, this.#tagScan);
    if (end === 'more') {
      if (this.#ending) {
        this.#tagScan = null;
        return this.#cutTag(tag);
      }
      if (text.length - at <= limits.tagBytes) return false;
    }
    this.#tagScan = null;
    if (end === 'more' || (typeof end === 'number' && end - at > limits.tagBytes)) {
      this.#warn('tag_too_large', `A <${tag.name}> tag is longer than ${limits.tagBytes} bytes; it was read as text`);
      return this.#literal(tag.end - at);
    }
    if (end === 'text') return this.#literal(tag.end - at);
    this.#releaseLine();
    const selfClosing = text.charCodeAt(end - 1) === 47 && end - 1 >= tag.end;
    const inner = text.slice(tag.end, selfClosing ? end - 1 : end);
    this.#open(tag, inner, selfClosing, end + 1);
    return true;
  }

  /** The text ended inside an opening tag: an action is rejected, anything else was no block yet. */
  #cutTag(tag: TagStart): boolean {
    if (tag.kind === 'action') {
      const { line, column } = this.#place(this.#at);
      const action = readActionTag(parseAttributes(this.#buffer.slice(tag.end)));
      this.#leaveTextFor();
      this.#refuse(action, 'unclosed', 'The text ended inside an <action> tag; the action was not run', {
        line,
        column,
        excerpt: cut(this.#buffer.slice(this.#at)),
      });
    }
    this.#at = this.#buffer.length;
    return false;
  }

  #open(tag: TagStart, inner: string, selfClosing: boolean, next: number): void {
    const start = this.#at;
    if (tag.kind === 'runtime') {
      this.#warn('forged_tag', `<${tag.name}> belongs to the runtime; what it holds was dropped`);
      this.#blank = false;
      this.#fence.spoilLine();
      this.#at = next;
      if (selfClosing) return;
      this.#dropped = { name: tag.name, parent: this.#mode === 'thought' ? 'thought' : 'top' };
      this.#mode = 'dropped';
      return;
    }
    if (tag.kind === 'action') return this.#openAction(tag, inner, selfClosing, next);
    // A thought that is still open, or bare text, ends where the next block begins (P9).
    this.#closeBlock(this.#mode === 'thought');
    this.#blank = false;
    this.#at = next;
    if (tag.kind === 'thought') {
      this.#reasoning = tag.name !== 'thought';
      this.#events.push({ type: 'thought_started', offset: this.#base + start, reasoning: this.#reasoning });
    } else {
      const final = finality(parseAttributes(inner).get('final'));
      this.#events.push({ type: 'response_started', offset: this.#base + start, final });
    }
    this.#enter(tag.kind);
    if (!selfClosing) return;
    this.#closeBlock(false);
    this.#enter('top');
  }

  /** Bare text ends where an action begins; a thought goes on around it. */
  #leaveTextFor(): void {
    if (this.#mode === 'top') this.#closeBlock(false);
    this.#blank = false;
    this.#fence.spoilLine();
  }

  // --- actions -----------------------------------------------------------------------------------

  #openAction(tag: TagStart, inner: string, selfClosing: boolean, next: number): void {
    this.#leaveTextFor();
    const read = readActionTag(parseAttributes(inner));
    const { line, column } = this.#place(this.#at);
    const start = this.#base + this.#at;
    const tagText = this.#buffer.slice(tag.end, next);
    const { line: bodyLine, column: bodyColumn } = this.#place(next);
    this.#action = {
      tag: read,
      parent: this.#mode === 'thought' ? 'thought' : 'top',
      scanner: new JsonScanner(),
      start,
      line,
      column,
      bodyLine,
      bodyColumn,
      tagText,
      body: '',
      bodyBytes: 0,
      tooLarge: false,
    };
    this.#at = next;
    this.#events.push({ type: 'action_opened', actionType: read.type, name: read.name, mode: read.mode });
    if (selfClosing) this.#closeAction();
    else this.#mode = 'action';
  }

  #readBody(): boolean {
    const action = this.#action;
    if (action === null) return false;
    const text = this.#buffer;
    const stop = action.scanner.scan(text, this.#at);
    this.#keep(action, text.slice(this.#at, stop));
    this.#at = stop;
    if (stop === text.length) return false;
    const tag = readTagStart(text, stop);
    if (tag === 'more' && !this.#ending) return false;
    if (typeof tag === 'object' && tag.kind !== 'runtime') {
      if (tag.close && tag.kind === 'action') {
        let end = tag.end;
        while (end < text.length && isSpace(text.charCodeAt(end))) end += 1;
        if (end === text.length && !this.#ending && end - stop <= limits.tagBytes) return false;
        if (text.charCodeAt(end) === 62) {
          this.#at = end + 1;
          this.#closeAction();
          return true;
        }
      } else if (!action.scanner.malformed) {
        // The close was forgotten; the tag that shows it is read in its own right.
        this.#reject(
          action,
          'unclosed',
          `<${tag.close ? '/' : ''}${tag.name}> came before </action>; the action was not run`,
          action.body.length,
        );
        this.#action = null;
        this.#mode = action.parent;
        return true;
      }
    }
    action.scanner.passLessThan();
    this.#keep(action, '<');
    this.#at = stop + 1;
    return true;
  }

  #keep(action: OpenAction, piece: string): void {
    if (piece === '' || action.tooLarge) return;
    action.bodyBytes += utf8Length(piece);
    if (action.bodyBytes > limits.actionBodyBytes) {
      action.tooLarge = true;
      action.body = action.body.slice(0, limits.excerptChars);
      return;
    }
    action.body += piece;
  }

  #closeAction(): void {
    const action = this.#action;
    if (action === null) return;
    this.#action = null;
    this.#mode = action.parent;
    if (action.tooLarge) {
      return this.#reject(action, 'too_large', `The body is longer than ${limits.actionBodyBytes} bytes`, 0);
    }
    if (action.scanner.maxDepth > limits.jsonDepth) {
      return this.#reject(action, 'too_deep', `The body is nested deeper than ${limits.jsonDepth} levels`, 0);
    }
    const parsed = this.#parseBody(action);
    if ('code' in parsed) return this.#reject(action, parsed.code, parsed.message, parsed.position);
    const { tag } = action;
    const warnings: [WarningCode, string][] = [];
    const read = readAction(tag, parsed.value, (code, message) => warnings.push([code, message]));
    const id = this.#claimId(tag.id);
    for (const [code, message] of warnings) this.#warn(code, `Action "${cut(id)}": ${message}`);
    if (isRefusal(read)) return this.#reject(action, read.code, read.message, 0, id);
    if (!isValidId(id)) {
      const message = `The id "${cut(id)}" must have 1 to ${limits.idChars} characters, none of < > & " ' or white space`;
      return this.#reject(action, 'invalid_id', message, 0, id);
    }
    const letter = `${action.tagText}${action.body}`;
    const earlier = this.#ids.get(id);
    if (earlier === letter) {
      return this.#warn('duplicate_action', `Action "${id}" stands twice, letter by letter; the second was ignored`);
    }
    if (earlier !== undefined) {
      return this.#reject(
        action,
        'duplicate_id',
        `The id "${id}" is taken by another action of this generation`,
        0,
        id,
      );
    }
    this.#ids.set(id, letter);
    if (parsed.repaired) {
      if (this.#options.unsafe?.(read.type, read.name) === true) {
        const message = `The body is not valid JSON, and what "${cut(read.name)}" does cannot be undone: write it again as strict JSON`;
        return this.#reject(action, 'repair_refused', message, parsed.position, id);
      }
      this.#warn('repaired_json', `Action "${id}": the body was not valid JSON and was mended`);
    }
    if (this.#ordinal >= limits.actionsPerGeneration) {
      const message = `A generation may declare ${limits.actionsPerGeneration} actions`;
      return this.#reject(action, 'too_many_actions', message, 0, id);
    }
    this.#events.push({
      type: 'action_declared',
      action: {
        ...read,
        ordinal: this.#nextOrdinal(),
        id,
        embeddedInThought: action.parent === 'thought',
        repaired: parsed.repaired,
        span: { start: action.start, end: this.#base + this.#at },
      },
    });
  }

  /** Strict JSON first, then repair, within its limits (P8). */
  #parseBody(
    action: OpenAction,
  ):
    | { readonly value: JsonObject; readonly repaired: boolean; readonly position: number }
    | { readonly code: RejectionCode; readonly message: string; readonly position: number } {
    const { body } = action;
    if (body.trim() === '') return { value: {}, repaired: false, position: 0 };
    let fault: string;
    try {
      const value: unknown = JSON.parse(body);
      if (isJsonObject(value)) return { value, repaired: false, position: 0 };
      return { code: 'invalid_json', message: 'The body must be one JSON object', position: 0 };
    } catch (error) {
      fault = messageOf(error);
    }
    const position = Number(/position (\d+)/.exec(fault)?.[1] ?? 0);
    const broken = { code: 'invalid_json' as const, message: `The body is not valid JSON: ${cut(fault)}`, position };
    if (this.#options.json === 'strict') return broken;
    const bare = withoutFence(body);
    // Repair may add brackets, but a string that was never closed is not ours to end.
    if (!bare.startsWith('{') || action.scanner.inString || action.scanner.illegal) return broken;
    if (action.scanner.malformed && !bare.endsWith('}')) return broken;
    try {
      const value: unknown = JSON.parse(jsonrepair(bare));
      return isJsonObject(value) ? { value, repaired: true, position } : broken;
    } catch {
      return broken;
    }
  }

  #claimId(given: string | null): string {
    if (given !== null) return given;
    let id = `auto_${this.#autoId}`;
    while (this.#ids.has(id)) {
      this.#autoId += 1;
      id = `auto_${this.#autoId}`;
    }
    this.#autoId += 1;
    return id;
  }

  #nextOrdinal(): number {
    this.#ordinal += 1;
    return this.#ordinal - 1;
  }

  #reject(action: OpenAction, code: RejectionCode, message: string, position: number, id?: string): void {
    const before = action.body.slice(0, position);
    const breaks = before.split('\n').length - 1;
    const line = action.bodyLine + breaks;
    const column = breaks === 0 ? action.bodyColumn + position : position - before.lastIndexOf('\n');
    const from = Math.max(0, position - limits.excerptChars / 2);
    const excerpt = action.body.slice(from, from + limits.excerptChars);
    this.#refuse(action.tag, code, message, { line, column, excerpt }, id);
  }

  #refuse(
    tag: ActionTag,
    code: RejectionCode,
    message: string,
    place: Pick<ActionRejection, 'line' | 'column' | 'excerpt'>,
    id: string = this.#claimId(tag.id),
  ): void {
    // Rejections past the limit would be without bound: a few say what the rest would.
    if (this.#ordinal >= limits.actionsPerGeneration + 16) return;
    this.#events.push({
      type: 'action_rejected',
      rejection: {
        ordinal: this.#nextOrdinal(),
        id: cut(id),
        type: tag.type,
        mode: tag.mode,
        name: tag.name === null ? null : cut(tag.name),
        code,
        message,
        ...place,
      },
    });
  }

  // --- the rest ----------------------------------------------------------------------------------

  /** Inside a forged runtime block: everything goes, up to its close or the block around it (P2). */
  #readDropped(): boolean {
    const dropped = this.#dropped;
    if (dropped === null) return false;
    const text = this.#buffer;
    const at = text.indexOf('<', this.#at);
    if (at === -1) {
      this.#at = text.length;
      return false;
    }
    this.#at = at;
    const tag = readTagStart(text, at);
    if (tag === 'more' && !this.#ending) return false;
    if (typeof tag === 'object') {
      const enclosing = tag.kind === 'thought' && (tag.close ? dropped.parent === 'thought' : true);
      if (enclosing || (tag.kind === 'response' && !tag.close)) {
        this.#dropped = null;
        this.#mode = dropped.parent;
        return true;
      }
      if (tag.close && tag.name === dropped.name) {
        const end = text.indexOf('>', tag.end);
        if (end === -1 && !this.#ending && text.length - at <= limits.tagBytes) return false;
        this.#dropped = null;
        this.#mode = dropped.parent;
        this.#at = end === -1 ? text.length : end + 1;
        return true;
      }
    }
    this.#at = at + 1;
    return true;
  }

  #readDollar(): boolean {
    const found = readReference(this.#buffer, this.#at, this.#ending);
    if (found === 'more') return false;
    if (found === 'text') return this.#literal(1);
    if (found.reference === null) {
      this.#fence.add('$');
      this.#emit('$');
    } else {
      this.#fence.spoilLine();
      if (!this.#hasText) this.#startText();
      if (this.#space !== '') this.#delta(this.#space);
      this.#space = '';
      this.#events.push({ type: 'response_reference', reference: found.reference });
    }
    this.#at = found.end;
    return true;
  }

  #warn(code: WarningCode, message: string): void {
    this.#warnings += 1;
    if (this.#warnings > limits.warningsPerGeneration) return;
    const last = this.#warnings === limits.warningsPerGeneration;
    this.#events.push({
      type: 'warning',
      code: last ? 'truncated' : code,
      message: last ? `More than ${limits.warningsPerGeneration} warnings; the rest is not listed` : message,
      offset: this.#base + this.#at,
    });
  }

  /** Line and column, both from 1, of an index in the buffer. */
  #place(index: number): { line: number; column: number } {
    this.#countLines(index);
    return { line: this.#lines, column: this.#base + index - this.#lineStart + 1 };
  }

  #countLines(index: number): void {
    const until = this.#base + index;
    for (let at = this.#buffer.indexOf('\n', this.#counted - this.#base); at !== -1 && at < index;) {
      this.#lines += 1;
      this.#lineStart = this.#base + at + 1;
      at = this.#buffer.indexOf('\n', at + 1);
    }
    this.#counted = Math.max(this.#counted, until);
  }
}

/** The next index at or behind `from` where a tag, a line break or (in responses) a reference may stand. */
function nextSpecial(text: string, from: number, dollars: boolean): number {
  for (let i = from; i < text.length; i += 1) {
    const code = text.charCodeAt(i);
    if (code === 60 || code === 10 || (dollars && code === 36)) return i;
  }
  return text.length;
}

function finality(value: string | readonly string[] | undefined): Finality {
  if (typeof value !== 'string') return null;
  const word = value.toLowerCase();
  return word === 'true' ? true : word === 'false' ? false : null;
}

function withoutFence(body: string): string {
  return body
    .trim()
    .replace(/^(`{3,})[^\n`]*\n?/, '')
    .replace(/\n?`{3,}$/, '')
    .trim();
}

/** Bytes of UTF-8; a pair that a chunk has torn counts as it would whole. */
function utf8Length(text: string): number {
  let bytes = text.length;
  for (let i = 0; i < text.length; i += 1) {
    const code = text.charCodeAt(i);
    if (code > 0x7f) bytes += code > 0x7ff && (code < 0xd800 || code > 0xdfff) ? 2 : 1;
  }
  return bytes;
}
