/** The actions of a view, what they wait for, and what they print. Part of the fold in reduce.ts. */
import type { EventOf } from '../domain/event.ts';
import type { Action, Asked, Attempt, Extent, Failure, RunView, Wait } from './run-view.ts';

/** Characters of what an action prints that its view keeps: the end. */
const PROGRESS_CHARS = 65_536;

type ActionEvent = EventOf<
  | 'action_queued'
  | 'action_started'
  | 'action_retrying'
  | 'action_completed'
  | 'action_failed'
  | 'action_skipped'
  | 'action_cancelled'
  | 'action_rejected'
  | 'approval_requested'
  | 'approval_resolved'
  | 'client_tool_called'
  | 'client_tool_settled'
  | 'progress'
>;

/** An event that begins, changes or ends an action. */
export function reduceAction(view: RunView, event: ActionEvent, extent: Extent): RunView {
  const at = event.timestamp;
  const isWhole = extent === 'whole';
  switch (event.type) {
    case 'action_queued': {
      const { type, mode, depends_on, embedded_in_thought: isInThought, repaired } = event.data;
      const parameters = isWhole ? event.data.parameters : null;
      return changed(view, event, ({ seqs }) => ({
        type,
        mode,
        depends_on,
        parameters,
        written: parameters,
        is_in_thought: isInThought === true,
        is_repaired: repaired === true,
        // A second declaration adds the parameters (P6).
        seqs: { ...seqs, written: event.seq },
      }));
    }
    case 'action_started': {
      const { attempt, parameters } = event.data;
      return changed(view, event, ({ tries, seqs }) => ({
        status: 'running',
        attempts: attempt,
        // An attempt that was lost ends before the next one.
        tries: [...closedTries(tries, at), tryOf(attempt, at)],
        ...(parameters === undefined || !isWhole ? {} : { parameters }),
        seqs: { ...seqs, executed: seqs.executed ?? (parameters === undefined ? seqs.written : event.seq) },
      }));
    }
    case 'action_retrying': {
      const { error, delay_ms: delayMs } = event.data;
      return changed(view, event, ({ tries }) => ({ tries: closedTries(tries, at, error, delayMs) }));
    }
    case 'action_completed': {
      const output = isWhole ? event.data.output : null;
      const settledView = settled(view, event, {
        status: 'completed',
        output,
        is_cached: isWhole && event.data.cached === true,
      });
      // The outcome of an equal action was reused: this one was not started.
      return changed(settledView, event, ({ seqs }) => ({
        seqs: { ...seqs, executed: seqs.executed ?? seqs.written },
      }));
    }
    case 'action_failed':
      return settled(view, event, { status: 'failed', error: event.data.error });
    case 'action_skipped': {
      const { reason, because } = event.data;
      const message = because === null ? reason : `${reason}: ${because}`;
      return settled(view, event, { status: 'skipped', error: { code: 'skipped', message }, skipped: event.data });
    }
    case 'action_cancelled':
      return settled(view, event, {
        status: 'cancelled',
        error: { code: 'cancelled', message: event.data.reason },
      });
    case 'action_rejected':
      return { ...view, actions: [...view.actions, rejected(event, isWhole)] };
    case 'approval_requested': {
      // The attempt has ended with a question.
      const waiting = changed(view, event, ({ tries, waits }) => ({
        tries: closedTries(tries, at),
        waits: [...waits, { for: 'approval', from: at, to: null }],
      }));
      return { ...waiting, approvals: [...view.approvals, { ...event.data, ...askedBy(event) }] };
    }
    case 'approval_resolved': {
      const { approval_id: id } = event.data;
      const answered = changed(view, event, ({ waits }) => ({ waits: endedWaits(waits, at) }));
      return { ...answered, approvals: view.approvals.filter(({ approval_id }) => approval_id !== id) };
    }
    case 'client_tool_called': {
      const { parameters } = event.data;
      const called = changed(view, event, ({ waits }) => ({
        ...(isWhole ? { parameters } : {}),
        waits: [...waits, { for: 'client tool', from: at, to: null }],
      }));
      return { ...called, calls: [...view.calls, { ...askedBy(event), ...event.data }] };
    }
    case 'client_tool_settled': {
      const { call_id: id } = event.data;
      const answered = changed(view, event, ({ waits }) => ({ waits: endedWaits(waits, at) }));
      return { ...answered, calls: view.calls.filter(({ call_id }) => call_id !== id) };
    }
    case 'progress':
      return isWhole ? progressed(view, event) : view;
  }
}

type AboutAction = Pick<EventOf<'action_queued'>, 'action_id' | 'action_name' | 'iteration' | 'timestamp'>;

function newAction({ action_id: id, action_name: name, iteration, timestamp }: AboutAction): Action {
  return {
    id,
    iteration,
    name: name ?? null,
    type: null,
    mode: null,
    status: 'queued',
    parameters: null,
    depends_on: [],
    output: null,
    error: null,
    attempts: 0,
    progress: '',
    written: null,
    is_in_thought: false,
    is_repaired: false,
    is_cached: false,
    skipped: null,
    tries: [],
    waits: [],
    child_session_id: null,
    queued_at: timestamp,
    ended_at: null,
    seqs: { written: null, executed: null, ended: null },
  };
}

/** It was never accepted: another action with its id has a row of its own. */
function rejected(event: EventOf<'action_rejected'>, isWhole: boolean): Action {
  const { code, message, type, mode, parameters } = event.data;
  const { seq, timestamp } = event;
  const declared = isWhole ? (parameters ?? null) : null;
  return {
    ...newAction(event),
    type,
    mode,
    parameters: declared,
    written: declared,
    status: 'rejected',
    error: { code, message },
    ended_at: timestamp,
    seqs: { written: null, executed: parameters === undefined ? null : seq, ended: seq },
  };
}

/** The place of an accepted action. An id may be used again in a later iteration (P6). */
function placeOf(actions: readonly Action[], { action_id: id, iteration }: AboutAction): number {
  return actions.findLastIndex(
    (action) => action.id === id && action.iteration === iteration && action.status !== 'rejected',
  );
}

function changed(view: RunView, event: AboutAction, change: (action: Action) => Partial<Action>): RunView {
  const place = placeOf(view.actions, event);
  const action = view.actions[place] ?? newAction(event);
  const name = action.name ?? event.action_name ?? null;
  const next = { ...action, name, ...change(action) };
  return { ...view, actions: place === -1 ? [...view.actions, next] : view.actions.with(place, next) };
}

/** The action has ended: nothing is asked about it any more. */
function settled(view: RunView, event: AboutAction & { readonly seq: number }, end: Partial<Action>): RunView {
  const { timestamp: at, seq } = event;
  const isOther = ({ action_id: id, iteration }: { readonly action_id: string; readonly iteration: number }): boolean =>
    id !== event.action_id || iteration !== event.iteration;
  const ended = changed(view, event, ({ tries, waits, seqs }) => ({
    ...end,
    tries: closedTries(tries, at, end.error ?? null),
    waits: endedWaits(waits, at),
    ended_at: at,
    seqs: { ...seqs, ended: seq },
  }));
  return { ...ended, approvals: view.approvals.filter(isOther), calls: view.calls.filter(isOther) };
}

function askedBy(event: EventOf<'approval_requested' | 'client_tool_called'>): Asked {
  const { action_id, action_name: name = null, iteration, seq, timestamp: asked_at } = event;
  return { action_id, name, iteration, seq, asked_at };
}

function tryOf(attempt: number, startedAt: number): Attempt {
  return { attempt, started_at: startedAt, ended_at: null, error: null, retry_delay_ms: null };
}

function closedTries(
  tries: readonly Attempt[],
  at: number,
  error: Failure | null = null,
  retryDelayMs: number | null = null,
): readonly Attempt[] {
  const last = tries.at(-1);
  if (last === undefined || last.ended_at !== null) return tries;
  return [...tries.slice(0, -1), { ...last, ended_at: at, error, retry_delay_ms: retryDelayMs }];
}

function endedWaits(waits: readonly Wait[], at: number): readonly Wait[] {
  const last = waits.at(-1);
  return last === undefined || last.to !== null ? waits : [...waits.slice(0, -1), { ...last, to: at }];
}

function progressed(view: RunView, event: EventOf<'progress'>): RunView {
  const { text = '', event: inner } = event.data;
  const action = view.actions[placeOf(view.actions, event)];
  if (action === undefined) return view;
  const child = inner?.['session_id'];
  const childId = typeof child === 'string' ? child : action.child_session_id;
  if (text === '' && childId === action.child_session_id) return view;
  const progress = action.progress + text;
  // Cutting copies the text, so it happens once for each half of the limit.
  const isLong = progress.length > PROGRESS_CHARS * 1.5;
  const kept = isLong ? progress.slice(-PROGRESS_CHARS).toWellFormed() : progress;
  return changed(view, event, () => ({ progress: kept, child_session_id: childId }));
}
