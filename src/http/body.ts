/** Reads request bodies: size-limited while they arrive, and as JSON regardless of the content type (H8). */
import { EngineError, messageOf } from '../domain/errors.ts';
import { exceededLimit } from '../domain/json.ts';
import { limits } from '../domain/limits.ts';

export function bodyTooLarge(maxBytes: number): EngineError {
  return new EngineError('body_too_large', `The body is larger than ${maxBytes} bytes`, { limit_bytes: maxBytes });
}

/** The error for a body that ended with this error: usually the client has gone, which is no fault of the system. */
export function bodyCut(fault: unknown): EngineError {
  return fault instanceof EngineError ? fault : new EngineError('invalid_request', 'The body ended early', {}, fault);
}

/** Called with the size of each piece before it is kept. */
export type Received = (bytes: number) => Promise<void>;

/**
 * The body as text.
 *
 * @throws EngineError `body_too_large` as soon as the limit is exceeded
 */
export async function readText(
  request: Request,
  maxBytes: number = limits.bodyBytes,
  received?: Received,
): Promise<string> {
  const parts: string[] = [];
  for await (const text of readChunks(request, maxBytes, received)) parts.push(text);
  return parts.join('');
}

/**
 * The body piece by piece, as it arrives. Invalid UTF-8 becomes U+FFFD.
 *
 * @throws EngineError `body_too_large`
 */
export async function* readChunks(request: Request, maxBytes: number, received?: Received): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  for await (const chunk of readBytes(request, maxBytes)) {
    await received?.(chunk.byteLength);
    const text = decoder.decode(chunk, { stream: true });
    if (text !== '') yield text;
  }
  const rest = decoder.decode();
  if (rest !== '') yield rest;
}

/**
 * The bytes of the body, as they arrive.
 *
 * @throws EngineError `body_too_large` after the last byte within the limit; `invalid_request` if the client has gone
 */
export async function* readBytes(request: Request, maxBytes: number): AsyncGenerator<Uint8Array> {
  if (Number(request.headers.get('content-length') ?? 0) > maxBytes + limits.bodyDrainBytes)
    throw bodyTooLarge(maxBytes);
  if (request.body === null) return;
  let bytes = 0;
  for await (const chunk of uncut(request.body)) {
    bytes += chunk.byteLength;
    // Past the limit, a part of the rest is read and discarded: a client that still sends would not read the response.
    if (bytes > maxBytes + limits.bodyDrainBytes) throw bodyTooLarge(maxBytes);
    if (bytes <= maxBytes) yield chunk;
  }
  if (bytes > maxBytes) throw bodyTooLarge(maxBytes);
}

async function* uncut(body: ReadableStream<Uint8Array>): AsyncGenerator<Uint8Array> {
  try {
    yield* body;
  } catch (fault) {
    throw bodyCut(fault);
  }
}

/**
 * The body as JSON; an empty body is `{}`.
 *
 * @throws EngineError `invalid_json` with line and column if the parser reports them
 */
export async function readJson(
  request: Request,
  maxBytes: number = limits.bodyBytes,
  received?: Received,
): Promise<unknown> {
  return parseBody(await readText(request, maxBytes, received));
}

/** @throws EngineError `invalid_json` */
export function parseBody(text: string): unknown {
  if (text.trim() === '') return {};
  const tooMuch = whatIsTooMuch(text);
  if (tooMuch !== null) throw new EngineError('invalid_json', `The body ${tooMuch}`);
  try {
    return JSON.parse(text);
  } catch (fault) {
    throw new EngineError('invalid_json', `The body is not valid JSON: ${messageOf(fault).slice(0, 200)}`);
  }
}

/** How a JSON text exceeds a limit, or null. */
function whatIsTooMuch(text: string): string | null {
  const { requestDepth: depth, requestValues: values, requestMembers: members } = limits;
  switch (exceededLimit(text, { depth, values, members })) {
    case 'depth':
      return `is nested deeper than ${depth} levels`;
    case 'values':
      return `contains more than ${values} values`;
    case 'members':
      return `contains an object with more than ${members} members`;
    case null:
      return null;
  }
}

/** The posted form of an execution or a plan. */
export type PostedProtocol =
  | { readonly json: unknown }
  /** Protocol text that has arrived completely. */
  | { readonly text: string }
  /** Protocol text that is still arriving: the unread request body. */
  | { readonly streamed: true };

/**
 * Distinguishes JSON from protocol text. Anything but `text/plain` is JSON, regardless of its content type (H8).
 * Browsers and fetch also label a JSON string `text/plain`, so a complete body that is an object with `protocol_text`
 * is JSON as well. A body of unknown length is protocol text that may still be arriving.
 */
export async function readProtocolBody(request: Request): Promise<PostedProtocol> {
  if (!(request.headers.get('content-type') ?? '').startsWith('text/plain')) return { json: await readJson(request) };
  if (request.headers.get('content-length') === null) return { streamed: true };
  const text = await readText(request);
  // Protocol text contains tags. Text that begins like JSON and has no tags was meant as JSON.
  const looksLikeJson = /^\s*[{[]/.test(text) && (!text.includes('<') || text.includes('"protocol_text"'));
  return looksLikeJson ? { json: parseBody(text) } : { text };
}
