/** The actions of a message, what they wait for, and what they print. Part of the fold in message.ts. */
import type { EventOf, SessionEvent } from '../domain/event.ts';
import type { Action, Message } from './message-types.ts';

/** An event that begins, changes or ends an action. */
export function foldAction(message: Message, event: SessionEvent): Message {
  switch (event.type) {
    case 'action_queued': {
      const { type, mode, parameters, depends_on } = event.data;
      return changed(message, event, { type, mode, parameters, depends_on });
    }
    case 'action_started': {
      const { attempt, parameters } = event.data;
      return changed(message, event, {
        status: 'running',
        attempts: attempt,
        ...(parameters === undefined ? {} : { parameters }),
      });
    }
    case 'action_completed':
      return settled(message, event, { status: 'completed', output: event.data.output });
    case 'action_failed':
      return settled(message, event, { status: 'failed', error: event.data.error });
    case 'action_skipped': {
      const { reason, because } = event.data;
      const text = because === null ? reason : `${reason}: ${because}`;
      return settled(message, event, { status: 'skipped', error: { code: 'skipped', message: text } });
    }
    case 'action_cancelled':
      return settled(message, event, {
        status: 'cancelled',
        error: { code: 'cancelled', message: event.data.reason },
      });
    case 'action_rejected': {
      const { code, message: text, type, mode, parameters = null } = event.data;
      // It was never accepted: another action with its id has a row of its own.
      const action = { ...newAction(event), type, mode, parameters };
      const rejected: Action = { ...action, status: 'rejected', error: { code, message: text } };
      return { ...message, actions: [...message.actions, rejected] };
    }
    case 'approval_requested': {
      const approval = { ...event.data, action_id: event.action_id, name: event.action_name ?? null };
      return { ...message, approvals: [...message.approvals, approval] };
    }
    case 'approval_resolved': {
      const { approval_id: id } = event.data;
      return { ...message, approvals: message.approvals.filter(({ approval_id }) => approval_id !== id) };
    }
    case 'client_tool_called':
      return { ...message, calls: [...message.calls, event.data] };
    case 'client_tool_settled': {
      const { call_id: id } = event.data;
      return { ...message, calls: message.calls.filter(({ call_id }) => call_id !== id) };
    }
    case 'progress':
      return progressed(message, event);
    default:
      return message;
  }
}

type ActionEvent = Pick<EventOf<'action_queued'>, 'action_id' | 'action_name' | 'iteration'>;

function newAction({ action_id: id, action_name: name, iteration }: ActionEvent): Action {
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
  };
}

function placeOf(actions: readonly Action[], { action_id: id, iteration }: ActionEvent): number {
  return actions.findLastIndex(
    (action) => action.id === id && action.iteration === iteration && action.status !== 'rejected',
  );
}

function changed(message: Message, event: ActionEvent, change: Partial<Action>): Message {
  const place = placeOf(message.actions, event);
  const action = { ...(message.actions[place] ?? newAction(event)), ...change };
  return { ...message, actions: place === -1 ? [...message.actions, action] : message.actions.with(place, action) };
}

/** The action has ended: nothing is asked about it any more. */
function settled(message: Message, event: ActionEvent, change: Partial<Action>): Message {
  const approvals = message.approvals.filter(({ action_id: id }) => id !== event.action_id);
  return { ...changed(message, event, change), approvals };
}

function progressed(message: Message, event: EventOf<'progress'>): Message {
  const { text } = event.data;
  const action = message.actions[placeOf(message.actions, event)];
  return text === undefined || action === undefined
    ? message
    : changed(message, event, { progress: action.progress + text });
}
