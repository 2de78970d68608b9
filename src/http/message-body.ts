/** Reads the body of a message: its JSON, and the files in it, which are decoded while they arrive (C2). */
import { EngineError } from '../domain/errors.ts';
import { limits } from '../domain/limits.ts';
import type { Decoded } from '../domain/base64-decoder.ts';
import { parseBody, readBytes } from './body.ts';
import { ContentData } from './content-data.ts';
import type { BodyPlace } from './large-bodies.ts';

export interface ReadMessage {
  readonly json: unknown;
  /** What `data` of its parts stands for, by the text that the JSON has instead of the base64. */
  readonly data: ReadonlyMap<string, Decoded>;
}

/**
 * @param place of the body among those that are being read
 * @throws EngineError `body_too_large`, `invalid_json`; `large_bodies_busy` if other large bodies take too long
 */
export async function readMessage(request: Request, place: BodyPlace): Promise<ReadMessage> {
  const content = new ContentData();
  for await (const chunk of readBytes(request, limits.messageBodyBytes)) {
    await place.received(chunk.length);
    content.feed(chunk);
  }
  if (content.textBytes > limits.bodyBytes) {
    const message = `The body without the data of its files is larger than ${limits.bodyBytes} bytes`;
    throw new EngineError('body_too_large', message, { limit_bytes: limits.bodyBytes });
  }
  const { text, data } = content.end();
  return { json: parseBody(text), data };
}
