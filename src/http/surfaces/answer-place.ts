/**
 * Where the stream begins that follows an answer (E1 to E3): the client has read what came before.
 *
 * What a client answers was asked in a stream that it has read. That stream ended when the run waited next, or at its end.
 * It does not matter who answered, or when: another client may have been faster, and a request may be repeated.
 */
import { endsWait, RUN_TERMINAL_EVENTS } from '../../domain/event.ts';
import type { EventType, SessionEvent } from '../../domain/event.ts';

/** The events that decide it. */
export const PLACE_EVENTS: readonly EventType[] = [
  ...RUN_TERMINAL_EVENTS,
  'client_tool_called',
  'client_tool_settled',
  'approval_requested',
  'approval_resolved',
];

export interface Answered {
  /** Of the calls and approvals. */
  readonly ids: readonly string[];
  /** The client's last answer begins after the event with this seq; null: it does not say. */
  readonly since: number | null;
  /** The client's answers end at the first wait after their beginning: this one begins after the last wait for what it answers. */
  readonly endsAtWait: boolean;
}

/**
 * @param events of the run, up to its end; only `PLACE_EVENTS` are needed
 * @returns seq of the last event that the client has; 0 for none
 */
export async function placeBefore(
  events: AsyncIterable<SessionEvent>,
  { ids, since, endsAtWait }: Answered,
): Promise<number> {
  const answered = new Set(ids);
  /** What is open, with the seq at which it was asked. */
  const open = new Map<string, number>();
  let wait = 0;
  let after = 0;
  /** Something was asked since the last wait, and no answer to an earlier wait has taken effect. */
  let isAsking = false;
  let isWaiting = false;
  for await (const event of events) {
    const seq = event.seq ?? 0;
    if (RUN_TERMINAL_EVENTS.has(event.type)) {
      wait = seq;
      isWaiting = true;
      if (since !== null && seq > since) return seq;
      if ((isAsking || endsAtWait) && open.size > 0) after = seq;
      isAsking = false;
      continue;
    }
    if (endsWait(event)) isWaiting = false;
    const { asked, settled } = questionOf(event);
    if ((open.get(settled) ?? Infinity) < wait) isAsking = false;
    open.delete(settled);
    if (!answered.delete(asked)) continue;
    // Background actions ask while the run waits: the client has read it in the stream that asked the other one.
    const isRead = isWaiting && [...open.values()].some((at) => at < wait);
    after = isRead ? seq : wait;
    open.set(asked, seq);
    if (!isRead) isAsking = true;
  }
  // Background actions ask after the run's end, too.
  return answered.size > 0 ? wait : after;
}

/** The id of the call or approval that an event opens, or closes. */
function questionOf(event: SessionEvent): { readonly asked: string; readonly settled: string } {
  switch (event.type) {
    case 'client_tool_called':
      return { asked: event.data.call_id, settled: '' };
    case 'approval_requested':
      return { asked: event.data.approval_id, settled: '' };
    case 'client_tool_settled':
      return { asked: '', settled: event.data.call_id };
    case 'approval_resolved':
      return { asked: '', settled: event.data.approval_id };
    default:
      return { asked: '', settled: '' };
  }
}
