/**
 * The compact form of a stream (Z4): frames without what the frame before them has said.
 *
 * The data of a frame has one of two forms:
 *  - `[ms, "text"]`: continues the block of the patch before it, `ms` milliseconds after that patch.
 *  - An object: the event without the members that are equal to those of the event before it (`session_id`, `run_id`,
 *    `iteration`), without `seq` if that is null, with `t`, the milliseconds since the event before it, instead of
 *    `timestamp`. The closing event of a block has the number of characters in place of a text that the stream has sent
 *    completely. `agent_completed` has the segment of the last block in place of an answer that is the text of that block.
 *
 * Owns what one reader was sent last. Does not own the selection of events (sse.ts).
 *
 * Invariants:
 *  1. The first frame of a stream is complete, so a reader needs nothing from an earlier connection.
 *  2. Decoded, a stream has the events of the full form, member for member (J4).
 *  3. A frame depends only on its batch and on the last event of the batch before it. Readers that got the same batch
 *     before share the bytes of the next one. What was sent of the last block decides only whether its text is left out.
 *  4. The state of a reader is two events and the length of one text; that of a decoder is one event and one text.
 */
import { encodeData, isBlockEnd, isTextPatch } from '../domain/event.ts';
import type { BlockEnd, SessionEvent, TextPatch } from '../domain/event.ts';
import type { EventBatch } from '../engine/session/broadcaster.ts';

const utf8 = new TextEncoder();

/** The bytes of a batch, and what they depend on. */
interface Encoded {
  readonly previous: SessionEvent | null;
  readonly answer: BlockEnd | null;
  readonly isWhole: boolean;
  readonly bytes: Uint8Array;
}

const encodedBatches = new WeakMap<EventBatch, Encoded>();

/** Encodes the batches of one stream, in order. */
export class CompactEncoder {
  /** The block of the last patch, and the UTF-16 code units that were sent of it without a gap; -1 after a gap. */
  #open = { segment: 0, chars: -1 };
  #previous: SessionEvent | null = null;
  /** The block end whose text is the last one that the reader has. */
  #answer: BlockEnd | null = null;

  encode(batch: EventBatch): Uint8Array {
    const previous = this.#previous;
    const isWhole = this.#take(batch);
    const answer = batch.some(({ type }) => type === 'agent_completed') ? this.#answer : null;
    const known = encodedBatches.get(batch);
    const isSame = known?.previous === previous && known.answer === answer && known.isWhole === isWhole;
    const bytes = isSame ? known.bytes : utf8.encode(framesOf(batch, previous, answer, isWhole));
    if (!isSame) encodedBatches.set(batch, { previous, answer, isWhole, bytes });
    this.#previous = batch.at(-1) ?? previous;
    for (const event of batch) this.#answer = answerAfter(event, this.#answer, isWhole);
    return bytes;
  }

  /** @returns whether the reader has the text of every block that ends in this batch */
  #take(batch: EventBatch): boolean {
    let isWhole = true;
    for (const event of batch) {
      const { segment, chars } = this.#open;
      if (isTextPatch(event)) {
        const { offset, delta } = event.data;
        const isNext = offset === 0 || (event.data.segment === segment && offset <= chars);
        this.#open = { segment: event.data.segment, chars: isNext ? offset + delta.length : -1 };
      } else if (isBlockEnd(event)) {
        // A replay has no patches: its data need not be parsed.
        isWhole &&= chars >= 0 && event.data.segment === segment && event.data.content.length === chars;
      }
    }
    return isWhole;
  }
}

/** The block end whose text is the last one that a reader has after an event. */
function answerAfter(event: SessionEvent, before: BlockEnd | null, isWhole: boolean): BlockEnd | null {
  if (isBlockEnd(event)) return isWhole ? event : null;
  return isTextPatch(event) ? null : before;
}

function framesOf(batch: EventBatch, before: SessionEvent | null, lastEnd: BlockEnd | null, isWhole: boolean): string {
  let text = '';
  let previous = before;
  let answer = lastEnd;
  for (const event of batch) {
    const id = event.seq === null ? '' : `id: ${event.seq}\n`;
    text += `${id}data: ${continued(event, previous) ?? changed(event, previous, answer, isWhole)}\n\n`;
    previous = event;
    answer = answerAfter(event, answer, isWhole);
  }
  return text;
}

/** A patch that continues the patch before it; null for other events. */
function continued(event: SessionEvent, previous: SessionEvent | null): string | null {
  if (previous === null || !isTextPatch(event) || !isTextPatch(previous) || !hasSameHead(event, previous)) return null;
  const { segment, offset, delta } = previous.data;
  if (event.data.segment !== segment || event.data.offset !== offset + delta.length) return null;
  const ms = elapsedMs(event, previous);
  return ms === null ? null : `[${ms},${JSON.stringify(event.data.delta)}]`;
}

function hasSameHead(one: TextPatch, other: TextPatch): boolean {
  return (
    one.type === other.type &&
    one.session_id === other.session_id &&
    one.run_id === other.run_id &&
    one.iteration === other.iteration
  );
}

/** Null if the time of the event is not the exact sum. */
function elapsedMs({ timestamp }: SessionEvent, previous: SessionEvent): number | null {
  const ms = timestamp - previous.timestamp;
  return previous.timestamp + ms === timestamp ? ms : null;
}

/** The event without what the one before it has said. */
function changed(
  event: SessionEvent,
  previous: SessionEvent | null,
  answer: BlockEnd | null,
  isWhole: boolean,
): string {
  const { seq, type, session_id, run_id, iteration, timestamp, action_id, action_name } = event;
  const ms = previous === null ? null : elapsedMs(event, previous);
  const head = JSON.stringify({
    seq: seq ?? undefined,
    type,
    session_id: session_id === previous?.session_id ? undefined : session_id,
    run_id: run_id === previous?.run_id ? undefined : run_id,
    iteration: iteration === previous?.iteration ? undefined : iteration,
    timestamp: ms === null ? timestamp : undefined,
    t: ms === null || ms === 0 ? undefined : ms,
    action_id,
    action_name,
  });
  return `${head.slice(0, -1)},"data":${dataOf(event, answer, isWhole)}}`;
}

function dataOf(event: SessionEvent, answer: BlockEnd | null, isWhole: boolean): string {
  if (isWhole && isBlockEnd(event)) return JSON.stringify({ ...event.data, content: event.data.content.length });
  if (answer !== null && event.type === 'agent_completed' && event.data.response === answer.data.content) {
    return JSON.stringify({ ...event.data, response: answer.data.segment });
  }
  return encodeData(event);
}
