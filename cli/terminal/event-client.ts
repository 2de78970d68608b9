/** Reads the system's Server-Sent Events from a fetch response. */
import { createParser } from 'eventsource-parser';
import { frameDecoder } from '../../src/client/frame-decoder.ts';
import type { SessionEvent } from '../../src/domain/event.ts';

/**
 * The events of a streaming answer in the full or the compact form, as they arrive.
 *
 * @throws Error with the problem document's code and detail when the answer is not a stream
 */
export async function* readEvents(response: Response): AsyncGenerator<SessionEvent> {
  if (!response.ok || response.body === null) {
    throw new Error(`HTTP ${response.status}: ${(await response.text()).slice(0, 500)}`);
  }
  const waiting: SessionEvent[] = [];
  const frames = frameDecoder();
  const parser = createParser({ onEvent: ({ data }) => void waiting.push(frames(data)) });
  const decoder = new TextDecoder();
  for await (const chunk of response.body) {
    parser.feed(decoder.decode(chunk, { stream: true }));
    yield* waiting.splice(0);
  }
}
