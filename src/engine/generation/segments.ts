/**
 * Text blocks for the reader: thoughts, bare text and responses.
 *
 * Owns the content of every open block, its offsets, and where a response waits for a reference.
 * Does not own the values of names: it asks for them.
 *
 * Invariants:
 *  1. A block opens and closes with a journaled event; the closing event contains the whole text (J4).
 *  2. Patches of a block have its seq as `segment` and continue at `offset`, in UTF-16 code units.
 *  3. A response stops at the first reference whose producer is running, and at an object or list that begins a line
 *     until the next character is known. The rest of the block waits; later blocks do not (P13).
 *  4. A substituted value is text: nothing in it is parsed or substituted again (X1, P12).
 *  5. The references of a run render at most `limits.runResponseChars`; after that, responses are cut.
 *  6. What leaves is redacted after references are substituted: patches, their offsets and the closing event (C9). Values
 *     are redacted as JSON before they become text. Limits and the run's answer are about the text before.
 *  7. A response that was closed with pending values is written again, in a block of its own, when its run has answered
 *     (P13).
 */
import type { RedactedStream } from '../../bounded/redacted-stream.ts';
import type { Redaction } from '../../bounded/redaction.ts';
import { limits } from '../../domain/limits.ts';
import type { Finality, Reference } from '../../domain/protocol-event.ts';
import type { EventData, TextPatch } from '../../domain/event.ts';
import { MarkdownPosition } from '../../protocol/references/markdown-position.ts';
import { gapOf, spelled } from '../run/resolve-names.ts';
import type { OpenReference, RenderedReference } from '../run/resolve-names.ts';
import type { NameValue } from '../run/results.ts';
import type { RunLog } from '../run/run-log.ts';
import { ShownValues } from './shown-values.ts';

type BlockType = 'thought' | 'text' | 'response';

/** A rendered value that begins a line: its form depends on what follows. */
interface UndecidedValue {
  readonly block: NonNullable<RenderedReference['block']>;
  readonly text: string;
  /** For readers, if it is not the same (C9). */
  readonly shown: RenderedReference | null;
}

/** A value as text. `shown`: for readers (C9). */
interface RenderedText {
  readonly text: string;
  readonly shown: string;
}

type Piece = string | OpenReference | UndecidedValue;

/** What follows a value: text in its line, another line, a blank line, or the end of the block. */
type Follows = 'text' | 'line' | 'blank_line' | 'end' | 'unknown';

/** How many pieces of white space after a value are awaited. */
const LOOKAHEAD_PIECES = 16;

interface Block {
  readonly type: BlockType;
  readonly segment: number;
  readonly iteration: number;
  readonly final: Finality;
  /** The text of the block, for the model. */
  content: string;
  /** How much of the text for readers they have: the rest is in a turn that is not durable. */
  sent: number;
  /** Redacts the text for readers (C9); null: they get `content`. `shown`: what it has returned. */
  readonly redacted: RedactedStream | null;
  shown: string;
  /** A response as written by the model, in text and references; null without references. */
  parts: (string | OpenReference)[] | null;
  /** References without a value, by their spelling. */
  readonly missing: Map<string, OpenReference>;
  /** Names whose action waits for an approval or a client. */
  readonly pending: Set<string>;
  /** The block that this one writes again, with all values. */
  readonly completes: number | null;
  readonly position: MarkdownPosition;
  /** UTF-8 bytes; counted for responses only. */
  bytes: number;
  cut: boolean;
  readonly pieces: Piece[];
  closed: boolean;
  unclosed: boolean;
  /** The generation ended early inside this block, so the block does not count as an answer (J4, P15). */
  shortened: boolean;
}

/** A block whose end is not in the journal. */
export interface UnwrittenText {
  readonly segment: number;
  /** As readers have it. */
  readonly content: string;
  /** A response with references, as the model wrote it: its beginning. */
  readonly written: string | null;
}

/** Renders the value of `$name` in a response. */
export type RenderReference = (reference: Reference, value: NameValue) => RenderedReference;

export class Segments {
  readonly #log: RunLog;
  readonly #render: RenderReference;
  readonly #streamThoughts: boolean;
  readonly #hasBlockForms: boolean;
  readonly #outgoingText: Redaction | null;
  readonly #shownValues: ShownValues;
  #open: Block | null = null;
  /** Open blocks interrupted by another one: reasoning may arrive between pieces of text. */
  readonly #below: Block[] = [];
  /** Responses that wait for a reference, in order; may include the open block. */
  #held: Block[] = [];
  /** Blocks whose end is not durable yet. */
  #ending: Block[] = [];
  #responses: { readonly segment: number; content: string; final: Finality }[] = [];
  /** Responses of the current generation with values that are missing or pending. */
  #incomplete: Block[] = [];
  #bareText: { readonly iteration: number; readonly content: string }[] = [];
  /** Issued warnings: each reference once, at most `limits.warningsPerGeneration` in a run. */
  readonly #warned = new Set<string>();
  #renderedChars = 0;

  /** @param options `hasBlockForms`: objects and lists with a line of their own become tables and code blocks */
  constructor(
    log: RunLog,
    options: {
      readonly render: RenderReference;
      readonly streamThoughts: boolean;
      readonly hasBlockForms: boolean;
      readonly outgoingText?: Redaction | null;
    },
  ) {
    this.#outgoingText = options.outgoingText ?? null;
    this.#hasBlockForms = options.hasBlockForms;
    this.#log = log;
    this.#render = options.render;
    this.#shownValues = new ShownValues(this.#outgoingText, options.render);
    this.#streamThoughts = options.streamThoughts;
    log.whenPublished(() => this.published());
  }

  /** A new generation begins. */
  beginGeneration(): void {
    this.#incomplete = [];
  }

  open(type: BlockType, final: Finality = null, data: EventData['thought_started'] = {}): void {
    if (this.#open !== null) this.#below.push(this.#open);
    const segment = this.#log.append(`${type}_started`, type === 'response' ? { final } : data);
    this.#open = this.#newBlock(type, segment, final, null);
  }

  #newBlock(type: BlockType, segment: number, final: Finality, completes: number | null): Block {
    return {
      type,
      segment,
      iteration: this.#log.iteration,
      final,
      content: '',
      sent: 0,
      redacted: this.#outgoingText?.stream() ?? null,
      shown: '',
      parts: null,
      missing: new Map(),
      pending: new Set(),
      completes,
      position: new MarkdownPosition(),
      bytes: 0,
      cut: false,
      pieces: [],
      closed: false,
      unclosed: false,
      shortened: false,
    };
  }

  write(text: string): void {
    const block = this.#open;
    if (block === null) return;
    block.parts?.push(text);
    if (block.pieces.length === 0) return this.#emit(block, text);
    block.pieces.push(text);
    if (isUndecided(block.pieces[0])) this.#flush(block);
  }

  /** A reference in the open response; `resolve` is called now and whenever an action settles. */
  refer(reference: Reference, resolve: () => NameValue): void {
    const block = this.#open;
    if (block === null) return;
    const open = { reference, resolve };
    block.parts ??= [block.content];
    block.parts.push(open);
    block.pieces.push(open);
    this.#flush(block);
    if (block.pieces.length > 0 && !this.#held.includes(block)) this.#held.push(block);
  }

  close(unclosed: boolean, shortened = false): void {
    const block = this.#open;
    if (block === null) return;
    block.shortened = shortened;
    this.#open = this.#below.pop() ?? null;
    block.closed = true;
    block.unclosed = unclosed;
    if (isUndecided(block.pieces[0])) this.#flush(block);
    this.#finishIfDone(block);
  }

  /** An action has settled: responses that waited for it continue. */
  advance(): void {
    if (this.#held.length === 0) return;
    for (const block of this.#held) {
      this.#flush(block);
      this.#finishIfDone(block);
    }
    this.#held = this.#held.filter((block) => block.pieces.length > 0);
  }

  /** The run ends and nothing more can settle: open references are written as pending. */
  finishPending(): void {
    while (this.#open !== null) this.close(true);
    for (const block of this.#held) {
      this.#flush(block, true);
      this.#finishIfDone(block);
    }
    this.#held = [];
  }

  /** Whether the generation's responses lack values, now that everything has settled (P10). */
  checkAnswer(): { readonly missing: boolean; readonly pending: boolean } {
    const { missing } = this;
    for (const { reference, resolve } of missing) {
      const { warning } = this.#render(reference, resolve());
      if (warning !== null) this.#warnOnce(warning.code, warning.message);
    }
    return { missing: missing.length > 0, pending: this.#incomplete.some(({ pending }) => pending.size > 0) };
  }

  /**
   * The references without a value in the responses that may end the run, each once; a value that was pending may be
   * missing now.
   */
  get missing(): readonly OpenReference[] {
    const found = new Map<string, OpenReference>();
    for (const { missing, pending, parts, final } of this.#incomplete) {
      if (final === false) continue;
      for (const [raw, reference] of missing) found.set(raw, reference);
      for (const part of pending.size === 0 ? [] : (parts ?? [])) {
        if (typeof part === 'string' || !pending.has(part.reference.name)) continue;
        const gap = gapOf(part.reference, part.resolve());
        if (gap === 'missing' || gap === 'empty') found.set(part.reference.raw, part);
      }
    }
    return [...found.values()];
  }

  /** Writes the responses with pending values again, in order: all values have settled (P13). */
  completePending(): void {
    const pending = this.#incomplete.filter((block) => block.pending.size > 0);
    this.#incomplete = [];
    for (const { parts, final, segment, unclosed } of pending) {
      const started = this.#log.append('response_started', { final, completes: segment });
      const block = this.#newBlock('response', started, final, segment);
      block.parts = parts;
      for (const part of parts ?? []) block.pieces.push(part);
      block.closed = true;
      block.unclosed = unclosed;
      this.#flush(block, true);
      this.#finishIfDone(block);
    }
  }

  /** The generation did not end the run: none of the responses so far is the answer. */
  continueAfter(): void {
    for (const response of this.#responses) if (response.final === true) response.final = false;
  }

  /** Completed responses of the run so far, in order of completion. */
  get responses(): readonly { readonly content: string; readonly final: Finality }[] {
    return this.#responses;
  }

  /** Bare text of the last generation that had any: earlier generations only accompanied their actions (P11). */
  get bareText(): string {
    const last = this.#bareText.at(-1)?.iteration;
    return this.#bareText
      .filter(({ iteration }) => iteration === last)
      .map(({ content }) => content)
      .join('\n\n');
  }

  /** Patches with the text of the open blocks that readers have, for one who connects late (J4). */
  catchUp(): TextPatch[] {
    return this.#sent(this.#unended()).map(({ type, segment, content }) =>
      this.#log.liveEvent(type, { segment, offset: 0, delta: content }),
    );
  }

  /** The same texts, with those of blocks that ended in a turn that could not be written. */
  unwritten(): UnwrittenText[] {
    return this.#sent([...this.#ending, ...this.#unended()]);
  }

  /** Everything so far is durable, and readers have it. */
  published(): void {
    if (this.#ending.length > 0) this.#ending = [];
    for (const block of this.#unended()) block.sent = shownOf(block).length;
  }

  #unended(): Block[] {
    const open = this.#open === null ? this.#below : [...this.#below, this.#open];
    return [...new Set([...this.#held, ...open])];
  }

  /** What readers have of these blocks: not what a turn adds that fails, such as the value of an action whose end is lost. */
  #sent(blocks: readonly Block[]): (UnwrittenText & Pick<Block, 'type'>)[] {
    const shown = blocks.filter(({ type, sent }) => sent > 0 && (type !== 'thought' || this.#streamThoughts));
    return shown.map((block) => ({
      type: block.type,
      segment: block.segment,
      content: shownOf(block).slice(0, block.sent),
      written: block.parts === null ? null : writtenText(block.parts),
    }));
  }

  /** @param pendingToo a value that is not there yet is written as pending */
  #flush(block: Block, pendingToo = false): void {
    const { pieces } = block;
    let done = 0;
    for (const [index, piece] of pieces.entries()) {
      let next = piece;
      if (typeof next !== 'string' && 'resolve' in next) {
        const value = next.resolve();
        if (value.type === 'running' && !pendingToo) break;
        const rendered = this.#rendered(block, next, value);
        if ('block' in rendered) next = rendered;
        else {
          this.#emit(block, rendered.text, rendered.shown);
          done += 1;
          continue;
        }
      }
      if (typeof next === 'string') this.#emit(block, next);
      else {
        const follows = this.#whatFollows(block, index + 1);
        if (follows === 'unknown') {
          pieces[index] = next;
          break;
        }
        if (follows === 'text') this.#emit(block, next.text, next.shown?.text);
        else this.#emitBlock(block, next, follows);
      }
      done += 1;
    }
    pieces.splice(0, done);
  }

  /**
   * Renders a reference, unless a limit excludes it from the response.
   *
   * @returns its text, or both forms of a value that begins a line
   */
  #rendered(block: Block, { reference, resolve }: OpenReference, value: NameValue): RenderedText | UndecidedValue {
    if (block.cut) return plain('');
    if (this.#renderedChars >= limits.runResponseChars) {
      this.#cut(block, `the references of this run have rendered ${limits.runResponseChars} characters`);
      return plain('');
    }
    // Code in an answer, and a plain `$HOME`, mean the reader's own machine.
    if (value.type === 'value' && value.isContext === true && isForReader(block, reference))
      return plain(reference.raw);
    const gap = gapOf(reference, value);
    // Code is full of names with a dollar sign that are not references.
    const isLacking = gap === 'missing' || gap === 'empty' || (gap === 'unknown' && !block.position.isInFence);
    if (isLacking) block.missing.set(reference.raw, { reference, resolve });
    if (gap === 'pending') block.pending.add(reference.name);
    const { text, block: form, warning } = this.#render(reference, value);
    this.#renderedChars += text.length;
    if (warning !== null) this.#warnOnce(warning.code, warning.message);
    const isInline = form === null || !this.#hasBlockForms || block.position.indent === null;
    const shown = this.#shownValues.rendered(reference, value);
    return isInline ? { text, shown: shown?.text ?? text } : { text, block: form, shown };
  }

  /** What the text from the piece `next` on begins with. */
  #whatFollows({ pieces, closed }: Block, next: number): Follows {
    let hasLineEnd = false;
    for (const piece of pieces.slice(next, next + LOOKAHEAD_PIECES)) {
      if (typeof piece !== 'string') return hasLineEnd ? 'line' : 'text';
      for (const [character] of piece.matchAll(/[^ \t\r]/g)) {
        if (character !== '\n') return hasLineEnd ? 'line' : 'text';
        if (hasLineEnd) return 'blank_line';
        hasLineEnd = true;
      }
    }
    if (pieces.length - next >= LOOKAHEAD_PIECES) return hasLineEnd ? 'line' : 'text';
    return closed ? 'end' : 'unknown';
  }

  /** A value with a line of its own. Blank lines separate a table from the text around it. */
  #emitBlock(block: Block, { block: render, text: compact, shown }: UndecidedValue, follows: Follows): void {
    const { indent, isAfterBlank } = block.position;
    const written = ({ text, isTable }: ReturnType<typeof render>): string => {
      const before = isTable && !isAfterBlank ? `\n${indent ?? ''}` : '';
      return `${before}${text}${isTable && follows === 'line' ? '\n' : ''}`;
    };
    const form = render(indent ?? '');
    // Its compact form was counted when it was rendered.
    this.#renderedChars += Math.max(0, form.text.length - compact.length);
    const text = written(form);
    const shownForm = shown === null ? null : (shown.block?.(indent ?? '') ?? { text: shown.text, isTable: false });
    this.#emit(block, text, shownForm === null ? text : written(shownForm));
  }

  #cut(block: Block, why: string): void {
    this.#emit(block, `\n[response cut: ${why}]`);
    block.cut = true;
    this.#log.warn('truncated', `A response was cut: ${why}; the rest was left out`);
  }

  #warnOnce(code: string, message: string): void {
    if (this.#warned.has(message) || this.#warned.size >= limits.warningsPerGeneration) return;
    this.#warned.add(message);
    this.#log.warn(code, message);
  }

  /** @param shown for readers, before the text around it is redacted */
  #emit(block: Block, text: string, shown = text): void {
    if (text === '' || block.cut) return;
    let delta = text;
    let safe: string | null = null;
    if (block.type === 'response') {
      block.position.write(text);
      block.bytes += byteLength(text);
      if (block.bytes > limits.responseBytes) {
        const room = limits.responseBytes - (block.bytes - byteLength(text));
        const mark = `\n[response cut at ${limits.responseBytes} bytes]`;
        delta = `${cutToBytes(text, room)}${mark}`;
        if (block.redacted !== null) {
          const fits = block.redacted.feed(cutToBytes(shown, room));
          safe = fits + block.redacted.cut() + block.redacted.feed(mark);
        }
        block.cut = true;
        this.#log.warn('truncated', `A response is longer than ${limits.responseBytes} bytes; the rest was left out`);
      }
    }
    if (block.redacted === null) this.#stream(block, delta);
    block.content += delta;
    if (block.redacted !== null) this.#show(block, safe ?? block.redacted.feed(shown));
  }

  /** Redacted text: it may be shorter than what was fed, and continues where the last piece ended. */
  #show(block: Block, delta: string): void {
    if (delta === '') return;
    this.#stream(block, delta);
    block.shown += delta;
  }

  #stream(block: Block, delta: string): void {
    if (block.type === 'thought' && !this.#streamThoughts) return;
    this.#log.live(block.type, { segment: block.segment, offset: shownOf(block).length, delta });
  }

  #finishIfDone(block: Block): void {
    if (!block.closed || block.pieces.length > 0) return;
    const { pending, missing, completes, parts } = block;
    const isWhole = completes === null && !block.shortened;
    if (isWhole && pending.size + missing.size > 0) this.#incomplete.push(block);
    this.#held = this.#held.filter((held) => held !== block);
    this.#ending.push(block);
    if (block.redacted !== null) this.#show(block, block.redacted.end());
    const { data } = this.#log.write(
      `${block.type}_completed`,
      {
        segment: block.segment,
        content: block.content,
        ...(block.type === 'response' ? { final: block.final } : {}),
        ...(pending.size > 0 ? { pending: [...pending].slice(0, limits.gapsListed) } : {}),
        ...(missing.size > 0 ? { missing: [...missing.values()].slice(0, limits.gapsListed).map(spelledOf) } : {}),
        ...(completes === null ? {} : { completes }),
        ...(block.unclosed ? { unclosed: true } : {}),
        ...(block.shortened ? { cut: true } : {}),
      },
      {
        iteration: block.iteration,
        ...(parts === null ? {} : { state: { written: writtenText(parts) } }),
        ...(block.redacted === null ? {} : { shown: { content: block.shown } }),
      },
    );
    // If the block was already closed before a crash, its stored text applies.
    const { content } = data;
    if (block.type === 'response' && !block.shortened) this.#answered(block, content);
    if (block.type === 'text') this.#bareText.push({ iteration: block.iteration, content });
  }

  #answered({ segment, final, completes }: Block, content: string): void {
    const earlier = this.#responses.find((response) => response.segment === completes);
    if (earlier === undefined) this.#responses.push({ segment, content, final });
    else Object.assign(earlier, { content, final });
  }
}

/** The part of a block that readers have. */
function shownOf({ redacted, content, shown }: Block): string {
  return redacted === null ? content : shown;
}

function plain(text: string): RenderedText {
  return { text, shown: text };
}

const SHELL_NAMES = new Set(['$HOME', '$PWD', '$USER']);

function isForReader({ position }: Block, { raw }: Reference): boolean {
  return SHELL_NAMES.has(raw) || position.isInFence || position.isInCode;
}

function spelledOf({ reference }: OpenReference): string {
  return spelled(reference);
}

function isUndecided(piece: Piece | undefined): boolean {
  return typeof piece === 'object' && 'block' in piece;
}

/** The beginning of a response with references as written by the model. */
function writtenText(parts: readonly (string | OpenReference)[]): string {
  let written = '';
  for (const part of parts) {
    if (written.length >= limits.summaryReadChars) break;
    written += typeof part === 'string' ? part : part.reference.raw;
  }
  return written.slice(0, limits.summaryReadChars);
}

const encoder = new TextEncoder();

function byteLength(text: string): number {
  return encoder.encode(text).length;
}

/** The longest prefix of `text` that fits into `bytes` of UTF-8, whole characters only. */
function cutToBytes(text: string, bytes: number): string {
  const buffer = new Uint8Array(bytes);
  const { read } = encoder.encodeInto(text, buffer);
  return text.slice(0, read);
}
