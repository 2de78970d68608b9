/** Mistakes in text blocks and in readers' streams. */
import type { Patch } from '../patch.ts';

const SSE = 'src/http/sse.ts';
const COMPACT = 'src/http/compact-frames.ts';
const SEGMENTS = 'src/engine/generation/segments.ts';
const BLOCKS = 'src/engine/generation/generation-blocks.ts';

export const READER_PATCHES: readonly Patch[] = [
  {
    name: 'a reader without room loses a batch',
    file: SSE,
    find: `      this.#live = false;\n      this.#cutAt = this.#cursor;\n`,
    replace: ``,
    invariant: 'same events',
  },
  {
    name: 'a reader gets events again that it has read from the journal',
    file: SSE,
    find: `if (seq !== null && seq <= this.#cursor) return false;`,
    replace: `void seq;`,
    invariant: 'same events',
  },
  {
    name: 'a compact frame continues another event than the one before it',
    file: COMPACT,
    find: `this.#previous = batch.at(-1) ?? previous;`,
    replace: `this.#previous = batch[0] ?? previous;`,
    invariant: 'same compact events',
  },
  {
    name: 'bytes of a compact batch are shared by readers with other texts',
    file: COMPACT,
    find: `known?.previous === previous && known.answer === answer && known.isWhole === isWhole;`,
    replace: `known !== undefined;`,
    invariant: 'same compact events',
  },
  {
    name: 'a batch without its lost predecessors is published',
    file: 'src/engine/session/broadcaster.ts',
    find: `seq > this.#lastSeq + 1) complete`,
    replace: `seq < 0) complete`,
    invariant: 'same events',
  },
  {
    name: 'a reader that has caught up does not get the text of open blocks',
    file: SSE,
    find: `if (open.length > 0) this.#send(controller, open);`,
    replace: ``,
    invariant: 'folded text',
  },
  {
    name: 'the end of a block does not bring the missed patches',
    file: SSE,
    find: `return isBlockEnd(event) ? [wholePatch(event), event] : [];`,
    replace: `return isBlockEnd(event) ? [event] : [];`,
    invariant: 'folded text',
  },
  {
    name: 'patches have the offset of their end',
    file: SEGMENTS,
    find: `this.#log.live(block.type, { segment: block.segment, offset: shownOf(block).length, delta });`,
    replace: `this.#log.live(block.type, { segment: block.segment, offset: shownOf(block).length + delta.length, delta });`,
    invariant: 'folded text',
  },
  {
    name: 'an event overtakes the patches before it',
    file: 'src/http/patch-coalescer.ts',
    find: `if (now && this.#waiting.length === 0) return this.#publish(batch);`,
    replace: `if (now) return this.#publish(batch);`,
    invariant: 'folded text',
  },
  {
    name: 'a cancelled run leaves its blocks open',
    file: SEGMENTS,
    find: `while (this.#open !== null) this.close(true);`,
    replace: ``,
    invariant: 'folded text',
  },
  {
    name: 'a block that a crash has cut off is not marked',
    file: BLOCKS,
    find: `return this.#segments.close(event.unclosed, broke && event.unclosed);`,
    replace: `return this.#segments.close(event.unclosed);`,
    invariant: 'folded text',
  },
  {
    name: 'a reader without room never returns to the journal',
    file: 'src/http/sse.ts',
    find: `if (this.#live) return;\n    const roomBytes`,
    replace: `if (this.#live || this.#liveAt > 0) return;\n    const roomBytes`,
    invariant: 'same events',
  },
];
