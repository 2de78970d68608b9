/** Sends text while it is read, so that a long session is never completely in memory. */
import { limits } from '../domain/limits.ts';

/** Minimum chunk length, so that short pieces are combined. */
const CHUNK_CHARS = 65_536;

export const LINES_HEADERS = {
  'content-type': 'application/jsonl; charset=utf-8',
  'cache-control': 'no-store',
} as const;

interface JsonOptions extends Pick<TextOptions, 'closed'> {
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** Default: 200. */
  readonly status?: number;
}

interface TextOptions {
  /** Runs after everything was read, before the stream ends; not if the reader disconnects earlier. */
  readonly after?: () => Promise<void>;
  /** Why nothing more may be sent, or null; checked before each chunk, so that a slow reader can be cut off. */
  readonly closed?: () => Error | null;
}

/** @param pieces text in order; the iterator itself yields between slices */
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
    // No read-ahead: the end is reached when the reader requests data after the last piece.
    { highWaterMark: 0 },
  );
}

/** JSON in pieces as a response: complete if it fits into a slice, else streamed while it is read. */
export async function jsonAnswer(
  pieces: AsyncIterable<string>,
  { headers = {}, status = 200, ...options }: JsonOptions = {},
): Promise<Response> {
  const iterator = pieces[Symbol.asyncIterator]();
  const init = { status, headers: { ...headers, 'content-type': 'application/json' } };
  let begun = '';
  while (begun.length <= limits.sliceChars) {
    const next = await iterator.next();
    if (next.done === true) return new Response(begun, init);
    begun += next.value;
  }
  return new Response(textStream(resumed(begun, iterator), options), init);
}

async function* resumed(begun: string, rest: AsyncIterator<string>): AsyncGenerator<string> {
  try {
    yield begun;
    for (let next = await rest.next(); next.done !== true; next = await rest.next()) yield next.value;
  } finally {
    await rest.return?.();
  }
}
