/** Reads the system's Server-Sent Events from a fetch response. */
import { createParser } from 'eventsource-parser';

export interface WireEvent {
  readonly seq: number | null;
  readonly type: string;
  readonly session_id: string;
  readonly run_id: string;
  readonly iteration: number;
  readonly timestamp: number;
  readonly action_id?: string;
  readonly action_name?: string;
  readonly data: Record<string, unknown>;
}

/**
 * The events of a streaming answer, as they arrive.
 *
 * @throws Error with the problem document's code and detail when the answer is not a stream
 */
export async function* readEvents(response: Response): AsyncGenerator<WireEvent> {
  if (!response.ok || response.body === null) {
    throw new Error(`HTTP ${response.status}: ${(await response.text()).slice(0, 500)}`);
  }
  const waiting: WireEvent[] = [];
  const parser = createParser({ onEvent: ({ data }) => void waiting.push(JSON.parse(data) as WireEvent) });
  const decoder = new TextDecoder();
  for await (const chunk of response.body) {
    parser.feed(decoder.decode(chunk, { stream: true }));
    yield* waiting.splice(0);
  }
}
