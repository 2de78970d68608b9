/** Reading request bodies: bounded while they arrive, JSON whatever the content type says (H8). */
import { EngineError, messageOf } from '../domain/errors.ts';
import { limits } from '../domain/limits.ts';

function tooLarge(maxBytes: number): EngineError {
  return new EngineError('body_too_large', `The body is larger than ${maxBytes} bytes`, { limit_bytes: maxBytes });
}

/**
 * The body as text.
 *
 * @throws EngineError `body_too_large` as soon as the limit is passed, before the rest is read
 */
export async function readText(request: Request, maxBytes: number = limits.bodyBytes): Promise<string> {
  const parts: string[] = [];
  for await (const text of readChunks(request, maxBytes)) parts.push(text);
  return parts.join('');
}

/**
 * The body piece by piece, as it arrives. Invalid UTF-8 becomes U+FFFD.
 *
 * @throws EngineError `body_too_large`
 */
export async function* readChunks(request: Request, maxBytes: number): AsyncGenerator<string> {
  if (Number(request.headers.get('content-length') ?? 0) > maxBytes) throw tooLarge(maxBytes);
  if (request.body === null) return;
  const decoder = new TextDecoder();
  let bytes = 0;
  for await (const chunk of request.body as ReadableStream<Uint8Array>) {
    bytes += chunk.byteLength;
    if (bytes > maxBytes) throw tooLarge(maxBytes);
    const text = decoder.decode(chunk, { stream: true });
    if (text !== '') yield text;
  }
  const rest = decoder.decode();
  if (rest !== '') yield rest;
}

/**
 * The body as JSON; an empty body is `{}`.
 *
 * @throws EngineError `invalid_json` with line and column where the parser gives them
 */
export async function readJson(request: Request, maxBytes: number = limits.bodyBytes): Promise<unknown> {
  const text = await readText(request, maxBytes);
  if (text.trim() === '') return {};
  try {
    return JSON.parse(text);
  } catch (fault) {
    throw new EngineError('invalid_json', `The body is not valid JSON: ${messageOf(fault).slice(0, 200)}`);
  }
}
