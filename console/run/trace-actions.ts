/** The actions of a trace. Part of the fold in trace.ts. */
import type { EventOf, SessionEvent } from '../../src/client/index.ts';
import * as limits from '../parts/limits.ts';
import { isSettled, keyOf } from './trace-types.ts';
import type { ActionStatus, ActionStore, Failure, TraceAction, Wait } from './trace-types.ts';

/** An event that begins, changes or ends an action. */
export function applyToAction(trace: ActionStore, event: SessionEvent): void {
  if (event.action_id === undefined) return;
  if (event.type === 'action_rejected') return reject(trace, event);
  const key = keyOf(event.iteration, event.action_id);
  const action = trace.action(key) ?? added(trace, event, key);
  action.name ??= event.action_name ?? null;
  const at = event.timestamp;
  switch (event.type) {
    case 'action_queued':
      action.written = event.data;
      for (const id of event.data.depends_on) trace.connectTo(action, id);
      break;
    case 'action_started':
      closeAttempt(action, at);
      action.status = 'running';
      action.executed = event.data.parameters ?? action.executed;
      action.attempts.push({
        attempt: event.data.attempt,
        startedAt: at,
        endedAt: null,
        error: null,
        retryDelayMs: null,
      });
      break;
    case 'action_retrying':
      closeAttempt(action, at, event.data.error, event.data.delay_ms);
      break;
    case 'action_completed':
      action.output = event.data.output;
      action.isCached = event.data.cached === true;
      settle(trace, action, 'completed', at);
      break;
    case 'action_failed':
      settle(trace, action, 'failed', at, event.data.error);
      trace.failures += 1;
      break;
    case 'action_skipped': {
      const { reason, because } = event.data;
      const message = reason === 'condition' ? 'The condition is false' : 'A dependency did not complete';
      settle(trace, action, 'skipped', at, {
        code: 'skipped',
        message: because === null ? message : `${message}: ${because}`,
      });
      break;
    }
    case 'action_cancelled':
      settle(trace, action, 'cancelled', at, { code: 'cancelled', message: event.data.reason });
      break;
    case 'approval_requested':
      // The attempt has ended with a question.
      closeAttempt(action, at);
      wait(action, 'approval', at);
      break;
    case 'client_tool_called':
      action.executed = event.data.parameters;
      wait(action, 'client tool', at);
      break;
    case 'approval_resolved':
    case 'client_tool_settled':
      endWait(action, at);
      if (!isSettled(action)) action.status = action.attempts.at(-1)?.endedAt === null ? 'running' : 'queued';
      break;
    case 'progress':
      progress(action, event.data);
      break;
    default:
  }
}

type ActionEvent = Pick<SessionEvent, 'action_id' | 'action_name' | 'iteration' | 'timestamp'>;

function added(trace: ActionStore, event: ActionEvent, key: string, status: ActionStatus = 'queued'): TraceAction {
  const action: TraceAction = {
    key,
    id: event.action_id ?? '',
    iteration: event.iteration,
    index: trace.actions.length,
    queuedAt: event.timestamp,
    name: event.action_name ?? null,
    written: {},
    dependencies: [],
    dependents: [],
    wave: null,
    status,
    executed: undefined,
    output: undefined,
    error: null,
    isCached: false,
    attempts: [],
    waits: [],
    endedAt: null,
    progress: '',
    childSessionId: null,
  };
  trace.add(action);
  return action;
}

/** It was never accepted, and its id is free: the key contains the number of the event. */
function reject(trace: ActionStore, event: EventOf<'action_rejected'>): void {
  const action = added(trace, event, `${keyOf(event.iteration, event.action_id)}!${event.seq}`, 'rejected');
  action.written = event.data;
  settle(trace, action, 'rejected', event.timestamp, event.data);
  trace.failures += 1;
}

function settle(
  trace: ActionStore,
  action: TraceAction,
  status: ActionStatus,
  at: number,
  error: Failure | null = null,
): void {
  closeAttempt(action, at, error);
  endWait(action, at);
  action.status = status;
  action.error = error;
  action.endedAt = at;
  trace.settled += 1;
}

/** Also ends an attempt that was lost, before the next one. */
function closeAttempt(
  { attempts }: TraceAction,
  endedAt: number,
  error: Failure | null = null,
  retryDelayMs: number | null = null,
): void {
  const attempt = attempts.at(-1);
  if (attempt?.endedAt === null) Object.assign(attempt, { endedAt, error, retryDelayMs });
}

function wait(action: TraceAction, reason: Wait['for'], at: number): void {
  action.waits.push({ for: reason, from: at, to: null });
  action.status = 'waiting';
}

function endWait({ waits }: TraceAction, at: number): void {
  const last = waits.at(-1);
  if (last !== undefined) last.to ??= at;
}

function progress(action: TraceAction, { event, text = '' }: EventOf<'progress'>['data']): void {
  const child = event?.['session_id'];
  if (typeof child === 'string') action.childSessionId = child;
  action.progress += text;
  // Cutting copies the text, so it happens once for each half of the limit.
  if (action.progress.length < limits.progressChars * 1.5) return;
  action.progress = action.progress.slice(-limits.progressChars).toWellFormed();
}
