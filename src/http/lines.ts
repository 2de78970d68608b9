/** Text that is sent as it is read, so that a long session never stands in memory as a whole. */
import { limits } from '../domain/limits.ts';

/** A chunk is at least so long, so that short pieces do not cost one each. */
const CHUNK_CHARS = 65_536;

export const LINES_HEADERS = {
  'content-type': 'application/jsonl; charset=utf-8',
  'cache-control': 'no-store',
} as const;

interface TextOptions {
  /** Done once everything has been taken, before the stream ends; not if the reader leaves before. */
  readonly after?: () => Promise<void>;
  /** Why nothing more is sent, or null; asked before each chunk, so that a reader that is slow is cut. */
  readonly closed?: () => Error | null;
}

/** @param pieces text in order; they pause between slices by themselves */
export function textStream(pieces: AsyncIterable<string>, options: TextOptions = {}): ReadableStream<Uint8Array> {
  const iterator = pieces[Symbol.asyncIterator]();
  const encoder = new TextEncoder();
  return new ReadableStream(
    {
      async pull(controller) {
        const fault = options.closed?.() ?? null;
        if (fault !== null) return controller.error(fault);
        let text = '';
        while (text.length < CHUNK_CHARS) {
          const next = await iterator.next();
          if (next.done === true) break;
          text += next.value;
        }
        if (text !== '') return controller.enqueue(encoder.encode(text));
        await options.after?.();
        controller.close();
      },
      async cancel() {
        await iterator.return?.();
      },
    },
    // Nothing is read ahead: the end is reached when the reader asks for what comes after the last piece.
    { highWaterMark: 0 },
  );
}

/** JSON in pieces as an answer: whole where it fits into a slice, else as it is read. */
export async function jsonAnswer(
  pieces: AsyncIterable<string>,
  headers: Readonly<Record<string, string>> = {},
  options: TextOptions = {},
): Promise<Response> {
  const iterator = pieces[Symbol.asyncIterator]();
  const all = { ...headers, 'content-type': 'application/json' };
  let begun = '';
  while (begun.length <= limits.sliceChars) {
    const next = await iterator.next();
    if (next.done === true) return new Response(begun, { headers: all });
    begun += next.value;
  }
  return new Response(textStream(resumed(begun, iterator), options), { headers: all });
}

async function* resumed(begun: string, rest: AsyncIterator<string>): AsyncGenerator<string> {
  try {
    yield begun;
    for (let next = await rest.next(); next.done !== true; next = await rest.next()) yield next.value;
  } finally {
    await rest.return?.();
  }
}
