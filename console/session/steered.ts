/** Messages that were sent into a run while it was active (C5). */
import type { HistoryMessage, SessionEvent } from '../../src/client/index.ts';

export interface Steered {
  /** The model sees it in the next one. */
  readonly iteration: number;
  readonly message: HistoryMessage;
}

/** The message that an event brings into a run; null for all other events. */
export function steeredBy({ type, run_id: run, iteration, timestamp, data }: SessionEvent): Steered | null {
  if ((type as string) !== 'message_received') return null;
  const { content, parts } = data as unknown as Pick<HistoryMessage, 'content' | 'parts'>;
  const message: HistoryMessage = {
    role: 'user',
    run_id: run,
    timestamp,
    content,
    ...(parts !== undefined && { parts }),
  };
  return { iteration, message: { ...message, steered: true } };
}
