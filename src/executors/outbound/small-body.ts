/** Bodies that are read before they are passed on. */
import { joinedBytes } from '../../domain/bytes.ts';
import { limits } from '../../domain/limits.ts';

const read = new WeakMap<Response, Uint8Array | string>();

/**
 * The body of a response that has been read already; null: it is read from the response.
 *
 * @returns text if the response names no character set: it is UTF-8
 */
export function bodyRead(response: Response): Uint8Array | string | null {
  return read.get(response) ?? null;
}

/** The rest of a body: the pieces that were read already come first. */
export interface OpenBody {
  readonly reader: ReadableStreamDefaultReader<Uint8Array>;
  readonly pieces: readonly Uint8Array[];
}

/**
 * Reads a small body, whether or not the response says its size: see `bodyRead`.
 *
 * @returns null, or the rest of a body of more than `limits.fetchAtOnceBytes`
 * @throws Error if the body cannot be read, or is longer than it says and than `limits.fetchAtOnceBytes`
 */
export async function readSmall(response: Response, maxBytes: number): Promise<OpenBody | null> {
  const { body, headers } = response;
  if (body === null) return null;
  const most = Math.min(maxBytes, limits.fetchAtOnceBytes);
  if (sizeOf(headers, most) !== null) {
    read.set(response, await wholeBody(response, most));
    return null;
  }
  const reader = body.getReader();
  const pieces: Uint8Array[] = [];
  let length = 0;
  while (length <= most) {
    const { done, value } = await reader.read();
    if (done) {
      read.set(response, pieces.length === 1 && pieces[0] !== undefined ? pieces[0] : joinedBytes(pieces));
      return null;
    }
    pieces.push(value);
    length += value.byteLength;
  }
  return { reader, pieces };
}

/** Reading it at once costs less than a reader. A platform checks the size while it receives the body. */
async function wholeBody(response: Response, most: number): Promise<Uint8Array | string> {
  const isNamed = /charset/i.test(response.headers.get('content-type') ?? '');
  const whole = isNamed ? new Uint8Array(await response.arrayBuffer()) : await response.text();
  if (whole.length > most) throw new Error('the body is longer than its content-length');
  return whole;
}

/** The stated size of a body that is not compressed; null if there is none, or it is larger than `most`. */
function sizeOf(headers: Headers, most: number): number | null {
  const written = headers.get('content-length');
  if (written === null || headers.has('content-encoding')) return null;
  const size = Number(written);
  return Number.isInteger(size) && size >= 0 && size <= most ? size : null;
}

/**
 * The whole body of a small response: most answers of tools are small, and a stream of our own around each would cost more
 * than the rest of the call.
 *
 * @param maxBytes the caller's own limit
 * @returns null, with an unread body, if the response does not say its size, or is larger than `limits.fetchAtOnceBytes`
 * @throws Error if the body is longer than it says, or cannot be read
 */
export async function smallBody(
  { headers, body, status }: Response,
  maxBytes: number,
): Promise<Uint8Array<ArrayBuffer> | null> {
  const size = sizeOf(headers, Math.min(maxBytes, limits.fetchAtOnceBytes));
  if (size === null || body === null || [204, 205, 304].includes(status)) return null;
  const bytes = new Uint8Array(size);
  const reader = body.getReader();
  let length = 0;
  for (let read = await reader.read(); !read.done; read = await reader.read()) {
    if (length + read.value.byteLength > size) {
      void reader.cancel().catch(() => {});
      throw new Error(`the body is longer than its content-length (${size})`);
    }
    bytes.set(read.value, length);
    length += read.value.byteLength;
  }
  return bytes.subarray(0, length);
}
