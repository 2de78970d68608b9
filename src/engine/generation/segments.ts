/**
 * Text blocks for the reader: thoughts, bare text and responses.
 *
 * Owns the content of every open block, its offsets, and where a response waits for a reference.
 * Does not own the values of names: it asks for them.
 *
 * Invariants:
 *  1. A block opens and closes with a journaled event; the closing event contains the whole text (J4).
 *  2. Patches of a block have its seq as `segment` and continue at `offset`, in UTF-16 code units.
 *  3. A response stops at the first reference whose producer is running. The rest of the block waits; later blocks do
 *     not (P13).
 *  4. A substituted value is text: nothing in it is parsed or substituted again (X1, P12).
 *  5. The references of a run render at most `limits.runResponseChars`; after that, responses are cut.
 */
import { limits } from '../../domain/limits.ts';
import type { Finality, Reference } from '../../domain/protocol-event.ts';
import type { EventData, TextPatch } from '../../domain/event.ts';
import type { NameValue } from '../run/results.ts';
import type { RunLog } from '../run/run-log.ts';

type BlockType = 'thought' | 'text' | 'response';
type Piece = string | { readonly reference: Reference; readonly resolve: () => NameValue };

interface Block {
  readonly type: BlockType;
  readonly segment: number;
  readonly iteration: number;
  readonly final: Finality;
  content: string;
  /** The beginning of a response with references as written by the model; null without references. */
  written: string | null;
  /** UTF-8 bytes; counted for responses only. */
  bytes: number;
  cut: boolean;
  readonly pieces: Piece[];
  closed: boolean;
  unclosed: boolean;
  /** A crash cut off the rest (J4). */
  shortened: boolean;
}

/** Renders the value of `$name` in a response. */
export type RenderReference = (reference: Reference, value: NameValue) => { text: string; warning: string | null };

export class Segments {
  readonly #log: RunLog;
  readonly #render: RenderReference;
  readonly #streamThoughts: boolean;
  #open: Block | null = null;
  /** Open blocks interrupted by another one: reasoning may arrive between pieces of text. */
  readonly #below: Block[] = [];
  /** Responses that wait for a reference, in order; may include the open block. */
  #held: Block[] = [];
  #responses: { content: string; final: Finality }[] = [];
  #bareText: { readonly iteration: number; readonly content: string }[] = [];
  /** Issued warnings: each reference once, at most `limits.warningsPerGeneration` in a run. */
  readonly #warned = new Set<string>();
  #renderedChars = 0;

  constructor(log: RunLog, options: { readonly render: RenderReference; readonly streamThoughts: boolean }) {
    this.#log = log;
    this.#render = options.render;
    this.#streamThoughts = options.streamThoughts;
  }

  open(type: BlockType, final: Finality = null, data: EventData['thought_started'] = {}): void {
    if (this.#open !== null) this.#below.push(this.#open);
    const segment = this.#log.append(`${type}_started`, type === 'response' ? { final } : data);
    this.#open = {
      type,
      segment,
      iteration: this.#log.iteration,
      final,
      content: '',
      written: null,
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
    if (block.written !== null) addWritten(block, text);
    if (block.pieces.length > 0) block.pieces.push(text);
    else this.#emit(block, text);
  }

  /** A reference in the open response; `resolve` is called now and whenever an action settles. */
  refer(reference: Reference, resolve: () => NameValue): void {
    const block = this.#open;
    if (block === null) return;
    addWritten(block, reference.raw);
    block.pieces.push({ reference, resolve });
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
      for (const piece of block.pieces) {
        this.#emit(block, typeof piece === 'string' ? piece : `[${piece.reference.name}: pending]`);
      }
      block.pieces.length = 0;
      this.#finishIfDone(block);
    }
    this.#held = [];
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

  /** Patches with the whole text of the open blocks, for a reader who connects late (J4). */
  catchUp(): TextPatch[] {
    const open = this.#open === null ? this.#below : [...this.#below, this.#open];
    return [...new Set([...this.#held, ...open])]
      .filter((block) => block.content !== '' && (block.type !== 'thought' || this.#streamThoughts))
      .map((block) => this.#log.liveEvent(block.type, { segment: block.segment, offset: 0, delta: block.content }));
  }

  #flush(block: Block): void {
    const { pieces } = block;
    let done = 0;
    for (const piece of pieces) {
      if (typeof piece === 'string') {
        this.#emit(block, piece);
      } else {
        const value = piece.resolve();
        if (value.type === 'running') break;
        const { text, warning } = this.#rendered(block, piece.reference, value);
        if (warning !== null) this.#warnOnce(value.type === 'unknown' ? 'unknown_reference' : 'missing_path', warning);
        this.#emit(block, text);
      }
      done += 1;
    }
    pieces.splice(0, done);
  }

  /** Renders a reference, unless a limit excludes it from the response. */
  #rendered(block: Block, reference: Reference, value: NameValue): ReturnType<RenderReference> {
    if (block.cut) return { text: '', warning: null };
    if (this.#renderedChars >= limits.runResponseChars) {
      this.#cut(block, `the references of this run have rendered ${limits.runResponseChars} characters`);
      return { text: '', warning: null };
    }
    const rendered = this.#render(reference, value);
    this.#renderedChars += rendered.text.length;
    return rendered;
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

  #emit(block: Block, text: string): void {
    if (text === '' || block.cut) return;
    let delta = text;
    if (block.type === 'response') {
      block.bytes += byteLength(text);
      if (block.bytes > limits.responseBytes) {
        const room = limits.responseBytes - (block.bytes - byteLength(text));
        delta = `${cutToBytes(text, room)}\n[response cut at ${limits.responseBytes} bytes]`;
        block.cut = true;
        this.#log.warn('truncated', `A response is longer than ${limits.responseBytes} bytes; the rest was left out`);
      }
    }
    if (block.type !== 'thought' || this.#streamThoughts) {
      this.#log.live(block.type, { segment: block.segment, offset: block.content.length, delta });
    }
    block.content += delta;
  }

  #finishIfDone(block: Block): void {
    if (!block.closed || block.pieces.length > 0) return;
    const { data } = this.#log.write(
      `${block.type}_completed`,
      {
        segment: block.segment,
        content: block.content,
        ...(block.type === 'response' ? { final: block.final } : {}),
        ...(block.unclosed ? { unclosed: true } : {}),
        ...(block.shortened ? { cut: true } : {}),
      },
      { iteration: block.iteration, ...(block.written === null ? {} : { state: { written: block.written } }) },
    );
    // If the block was already closed before a crash, its stored text applies.
    const { content } = data;
    if (block.type === 'response') this.#responses.push({ content, final: block.final });
    if (block.type === 'text') this.#bareText.push({ iteration: block.iteration, content });
  }
}

function addWritten(block: Block, text: string): void {
  block.written = ((block.written ?? block.content) + text).slice(0, limits.summaryReadChars);
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
