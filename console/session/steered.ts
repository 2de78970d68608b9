/** Messages that were sent into a run while it was active (C5). */
import type { HistoryMessage, SessionEvent } from '../../src/client/index.ts';

export interface Steered {
  /** The model sees it in the next one. */
  readonly iteration: number;
  readonly message: HistoryMessage;
}

/** The message that an event brings into a run; null for all other events. */
export function steeredBy(event: SessionEvent): Steered | null {
  if (event.type !== 'message_received') return null;
  const { run_id: run, iteration, timestamp, data } = event;
  const { content } = data;
  const parts = data.parts as HistoryMessage['parts'] & object;
  const message: HistoryMessage = {
    role: 'user',
    run_id: run,
    timestamp,
    content,
    ...(data.parts !== undefined && { parts }),
  };
  return { iteration, message: { ...message, steered: true } };
}
