/** Forwards the body of a request to a session's object, without decoding it and without holding a large one. */
import { joinedBytes } from '../domain/bytes.ts';
import { limits } from '../domain/limits.ts';
import { bodyCut, bodyTooLarge } from './body.ts';

/**
 * A small body is forwarded when all of it has arrived, so that an early error of the object leaves no half-read stream.
 * A larger one is forwarded while it arrives. The object gets one byte more than the limit at most, and refuses it.
 *
 * Resolves when the rest of the body was read and discarded: a client that still sends would not read the response.
 *
 * @param maxBytes limit of the body; the object has the same one
 * @throws EngineError `body_too_large`, if the stated length is far beyond the limit; `invalid_request` if the client has
 *   gone
 */
export async function forwardBody(
  request: Request,
  maxBytes: number,
  forward: (request: Request) => Promise<Response>,
): Promise<Response> {
  const { method, url, body } = request;
  if (body === null) return await forward(request);
  const stated = Number(request.headers.get('content-length') ?? 0);
  if (stated > maxBytes + limits.bodyDrainBytes) throw bodyTooLarge(maxBytes);
  const headers = new Headers(request.headers);
  // That of the forwarded body is set by the platform.
  headers.delete('content-length');
  const source = new BodySource(body, maxBytes);
  const first = await source.first(limits.largeBodyBytes);
  if (source.hasEnded) return await forward(new Request(url, { method, headers, body: first }));
  const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>();
  const init: RequestInit & { readonly duplex: 'half' } = { method, headers, body: readable, duplex: 'half' };
  let onAnswered = (): void => undefined;
  const answered = new Promise<void>((resolve) => (onAnswered = resolve));
  const sent = source.send(first, writable, answered);
  try {
    return await forward(new Request(url, init));
  } finally {
    onAnswered();
    await sent;
  }
}

/** A body that is read up to its limit, and discarded beyond it. */
class BodySource {
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>;
  readonly #maxBytes: number;
  #bytes = 0;
  hasEnded = false;

  constructor(body: ReadableStream<Uint8Array>, maxBytes: number) {
    this.#reader = body.getReader();
    this.#maxBytes = maxBytes;
  }

  /** The body, or a beginning that is longer than this. */
  async first(bytes: number): Promise<Uint8Array<ArrayBuffer>> {
    const chunks: Uint8Array[] = [];
    while (!this.hasEnded && this.#bytes <= bytes) chunks.push(await this.#next());
    return joinedBytes(chunks);
  }

  /** Sends the rest until the object has answered; then it is only read. Never throws: the object's answer counts. */
  async send(first: Uint8Array, to: WritableStream<Uint8Array>, answered: Promise<void>): Promise<void> {
    let isOpen = true;
    void answered.then(() => (isOpen = false));
    const writer = to.getWriter();
    // The object cancels what it does not read.
    writer.closed.catch(() => (isOpen = false));
    const write = async (chunk: Uint8Array): Promise<void> => {
      if (isOpen && chunk.length > 0) await Promise.race([writer.write(chunk).catch(() => (isOpen = false)), answered]);
    };
    try {
      await write(first);
      while (!this.hasEnded && this.#bytes <= this.#maxBytes + limits.bodyDrainBytes) await write(await this.#next());
      const closed = writer.close();
      closed.catch(() => undefined);
      await Promise.race([closed, answered]);
    } catch (fault) {
      // The client has gone: what it has not sent must not look like the end of the body.
      await writer.abort(fault).catch(() => undefined);
    }
    if (!this.hasEnded) await this.#reader.cancel().catch(() => undefined);
  }

  /** The next piece, up to one byte beyond the limit; empty at the end and beyond. */
  async #next(): Promise<Uint8Array> {
    const { done, value } = await this.#reader.read().catch((fault: unknown) => {
      throw bodyCut(fault);
    });
    if (done) {
      this.hasEnded = true;
      return new Uint8Array(0);
    }
    const room = Math.max(0, this.#maxBytes + 1 - this.#bytes);
    this.#bytes += value.length;
    return value.length > room ? value.subarray(0, room) : value;
  }
}
