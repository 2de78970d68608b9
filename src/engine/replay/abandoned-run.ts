/**
 * Ends a run without an owner: its object was lost, or an internal error occurred. Every open block is closed as cut
 * (J4), every accepted action gets its terminal event (S10), then the run gets its own (J3).
 */
import type { Redaction } from '../../bounded/redaction.ts';
import type { RunError } from '../../domain/errors.ts';
import { withWholeTexts } from '../../domain/event.ts';
import type { EventData, EventOf, EventType, JournaledEventType, SessionEvent } from '../../domain/event.ts';
import type { UnwrittenText } from '../generation/segments.ts';
import type { JsonObject } from '../../domain/json.ts';
import type { Journal } from '../../journal/journal.ts';
import { outgoingEntry } from '../run/outgoing-events.ts';
import type { RunRecord, RunStatus } from '../../domain/session.ts';

const ACTION_ENDS: ReadonlySet<JournaledEventType> = new Set<JournaledEventType>([
  'action_completed',
  'action_failed',
  'action_skipped',
  'action_cancelled',
  'action_rejected',
]);

const RUN_ENDS: Readonly<Partial<Record<EventType, RunStatus>>> = {
  agent_completed: 'completed',
  agent_failed: 'failed',
  agent_cancelled: 'cancelled',
};

type Opening = EventOf<'thought_started' | 'text_started' | 'response_started'>;

interface AbandonedRun {
  readonly at: number;
  readonly error: RunError;
  /** The known texts of open blocks; an unknown one is empty. */
  readonly texts?: readonly UnwrittenText[];
  /** Redacts patterns in what leaves (C9). */
  readonly outgoingText?: Redaction | null;
}

/**
 * @returns the appended events, for connected readers, and the text of each block before its end
 */
export function endAbandonedRun(
  journal: Journal,
  run: RunRecord,
  { at, error, texts = [], outgoingText = null }: AbandonedRun,
): SessionEvent[] {
  const blocks = new Map<number, Opening>();
  const open = new Map<string, { readonly event: SessionEvent; started: boolean }>();
  /** Ids of the open calls of clients, by action. */
  const calls = new Map<string, string>();
  let iteration = 0;
  let over: RunStatus | null = null;
  for (const { event, state } of journal.eventsOf(run)) {
    iteration = Math.max(iteration, event.iteration);
    over = RUN_ENDS[event.type] ?? over;
    followBlock(blocks, event);
    const key = state?.['key'];
    if (typeof key !== 'string') continue;
    const action = open.get(key);
    if (event.type === 'action_queued') open.set(key, { event, started: false });
    else if (event.type === 'client_tool_called') calls.set(key, event.data.call_id);
    else if (event.type === 'client_tool_settled') calls.delete(key);
    else if (event.type === 'action_started' && action !== undefined) action.started = true;
    else if (ACTION_ENDS.has(event.type as JournaledEventType)) open.delete(key);
  }
  const appended: SessionEvent[] = [];
  const append = <T extends JournaledEventType>(
    type: T,
    data: EventData[T],
    about: SessionEvent | null,
    state?: JsonObject,
    shown: Partial<EventData[T]> = {},
  ): void => {
    const entry = { data, ...(state === undefined ? {} : { state }) };
    appended.push(
      journal.append({
        type,
        runId: run.runId,
        iteration: about?.iteration ?? iteration,
        at,
        ...(about?.action_id === undefined ? {} : { actionId: about.action_id }),
        ...(about?.action_name === undefined ? {} : { actionName: about.action_name }),
        ...outgoingEntry(outgoingText, type, entry, shown),
      }),
    );
  };
  for (const [segment, opening] of blocks) {
    const { content = '', written = null } = texts.find((text) => text.segment === segment) ?? {};
    // Later prompts show references as they were written: a value may contain the bytes of a file.
    const state = written === null ? undefined : { written };
    const end = { segment, content, cut: true as const };
    switch (opening.type) {
      case 'thought_started':
        append('thought_completed', end, opening, undefined, { content });
        break;
      case 'text_started':
        append('text_completed', end, opening, undefined, { content });
        break;
      case 'response_started':
        append('response_completed', { ...end, final: opening.data.final }, opening, state, { content });
    }
  }
  for (const [key, { event, started }] of open) {
    const call = calls.get(key);
    if (call !== undefined) append('client_tool_settled', { call_id: call, status: 'cancelled' }, event, { key });
    if (started) {
      const message = 'The action had started, and its outcome is unknown';
      append('action_failed', { error: { code: 'outcome_unknown', message, retryable: false } }, event, { key });
    } else {
      append('action_cancelled', { reason: error.message }, event, { key });
    }
  }
  if (over === null) {
    append('agent_failed', { error: { ...error }, iterations: iteration }, null);
  }
  // The events are authoritative; the row may lag behind them.
  journal.runs.end(run.run, over ?? 'failed', at, false);
  return withWholeTexts(appended);
}

function followBlock(blocks: Map<number, Opening>, event: SessionEvent): void {
  switch (event.type) {
    case 'thought_started':
    case 'text_started':
    case 'response_started':
      blocks.set(event.seq, event);
      return;
    case 'thought_completed':
    case 'text_completed':
    case 'response_completed':
      blocks.delete(event.data.segment);
  }
}
