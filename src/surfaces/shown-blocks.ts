/** The open blocks of text of a stream, in the order in which they began, also if a replay has their text only at their end. */
import type { BlockEnd, EventOf, TextPatch } from '../domain/event.ts';
import { ShownText } from './shown-text.ts';

export interface ShownBlock {
  readonly segment: number;
  /** Position among the blocks of the stream, 1-based. */
  readonly number: number;
  readonly part: 'text' | 'reasoning';
}

/** The frames of a protocol. */
export interface BlockFrames<F> {
  /** What precedes the first frame of a block. */
  readonly before: () => readonly F[];
  readonly start: (block: ShownBlock) => readonly F[];
  readonly delta: (block: ShownBlock, text: string) => F;
  readonly end: (block: ShownBlock) => readonly F[];
}

export class ShownBlocks<F> {
  readonly #frames: BlockFrames<F>;
  readonly #open = new Map<number, { readonly block: ShownBlock; readonly text: ShownText }>();
  #count = 0;

  constructor(frames: BlockFrames<F>) {
    this.#frames = frames;
  }

  open({ seq: segment, type }: EventOf<'thought_started' | 'text_started' | 'response_started'>): void {
    this.#count += 1;
    const block = { segment, number: this.#count, part: type === 'thought_started' ? 'reasoning' : 'text' } as const;
    this.#open.set(segment, { block, text: new ShownText() });
  }

  add({ data: { segment, offset, delta } }: TextPatch): F[] {
    return this.#text(segment, (text) => text.add(offset, delta));
  }

  close({ data: { segment, content } }: BlockEnd): F[] {
    const rest = this.#text(segment, (text) => text.end(content));
    const closed = this.#open.get(segment);
    this.#open.delete(segment);
    return closed?.text.isShown === true ? [...rest, ...this.#frames.end(closed.block)] : rest;
  }

  /** What precedes another part: open blocks that have no text yet. @param before only blocks that began before this one */
  begun(before = Infinity): F[] {
    return [...this.#open.values()].flatMap(({ block, text }) => {
      if (text.isShown || block.segment >= before) return [];
      const blank = text.show();
      const started = this.#frames.start(block);
      return blank === '' ? started : [...started, this.#frames.delta(block, blank)];
    });
  }

  /** Ends what is open. */
  closeAll(): F[] {
    const ends = [...this.#open.values()].flatMap(({ block, text }) => (text.isShown ? this.#frames.end(block) : []));
    this.#open.clear();
    return ends;
  }

  #text(segment: number, take: (text: ShownText) => string): F[] {
    const open = this.#open.get(segment);
    if (open === undefined) return [];
    const { block, text } = open;
    const { isShown } = text;
    const delta = take(text);
    if (delta === '') return [];
    const { before, start } = this.#frames;
    if (isShown) return [this.#frames.delta(block, delta)];
    // A new step may close what is open: this block begins in it.
    const first = [...before(), ...this.begun(segment)];
    this.#open.set(segment, open);
    return [...first, ...start(block), this.#frames.delta(block, delta)];
  }
}
