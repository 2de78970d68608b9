/** JSON Lines, written as fast as they are read, so that a long session never stands in memory as a whole. */

/** A chunk is at least so long, so that short lines do not cost one each. */
const CHUNK_CHARS = 65_536;

export const LINES_HEADERS = {
  'content-type': 'application/jsonl; charset=utf-8',
  'cache-control': 'no-store',
} as const;

/**
 * @param after done once every line has been taken, before the stream ends; not if the reader leaves before
 * @param closed why nothing more is sent, or null; asked before each chunk, so that a reader that is slow is cut
 */
export function linesOf(
  lines: Iterable<string>,
  after?: () => Promise<void>,
  closed?: () => Error | null,
): ReadableStream<Uint8Array> {
  const iterator = lines[Symbol.iterator]();
  const encoder = new TextEncoder();
  return new ReadableStream(
    {
      async pull(controller) {
        const fault = closed?.() ?? null;
        if (fault !== null) return controller.error(fault);
        let text = '';
        while (text.length < CHUNK_CHARS) {
          const next = iterator.next();
          if (next.done === true) break;
          text += `${next.value}\n`;
        }
        if (text !== '') return controller.enqueue(encoder.encode(text));
        await after?.();
        controller.close();
      },
    },
    // Nothing is read ahead: the end is reached when the reader asks for what comes after the last line.
    { highWaterMark: 0 },
  );
}
