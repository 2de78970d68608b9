/**
 * The actions of a run as streams show them: as calls of tools, from their start or a request for approval on, because their
 * references have values then; a call of a client tool, with an id of its own, when it is made.
 */
import type { EventOf, SessionEvent } from '../domain/event.ts';
import type { Json, JsonObject } from '../domain/json.ts';

/** How a call has ended. `message` of a skipped one: the condition, or the dependency that did not complete. */
export type CallEnd =
  | { readonly status: 'completed'; readonly output: Json }
  | {
      readonly status: 'failed' | 'rejected' | 'skipped' | 'cancelled';
      readonly code: string;
      readonly message: string;
    };

export interface ShownCall {
  readonly iteration: number;
  readonly actionId: string;
  /** Of a rejected action, which may have the id of another one: the number of its event; null for others. */
  readonly rejectedAt: number | null;
  readonly name: string;
  readonly isAgent: boolean;
  readonly isBackground: boolean;
  /** Id of a call of a client tool; null: the server executes it. */
  readonly callId: string | null;
}

/** What an event changes. A call that ends may begin with the same event. */
export interface CallChange {
  readonly call: ShownCall;
  /** The parameters of a call that begins; null: it is shown already. */
  readonly begins: JsonObject | null;
  readonly end: CallEnd | null;
}

type ActionEvent = SessionEvent & { readonly action_id: string };

export class ShownCalls {
  readonly #clientTools: readonly string[];
  /** What was queued and has not started. */
  readonly #queued = new Map<string, EventOf<'action_queued'>['data']>();
  readonly #shown = new Map<string, ShownCall>();

  /** @param clientTools their calls are shown when they are made */
  constructor(clientTools: readonly string[]) {
    this.#clientTools = clientTools;
  }

  /** The call of the action of an event, if it is shown. */
  of(event: SessionEvent): ShownCall | undefined {
    return this.#shown.get(keyOf(event));
  }

  /** The same by the id of the action. */
  at(iteration: number, actionId: string): ShownCall | undefined {
    return this.#shown.get(`${iteration}-${actionId}`);
  }

  all(): Iterable<ShownCall> {
    return this.#shown.values();
  }

  /** @returns what the event changes; null: nothing */
  take(event: SessionEvent): CallChange | null {
    if (!isAboutAction(event)) return null;
    switch (event.type) {
      case 'action_queued':
        this.#queued.set(keyOf(event), event.data);
        return null;
      case 'action_started':
        if (event.data.attempt > 1 || this.#clientTools.includes(nameOf(event))) return null;
        return this.#begun(event, event.data.parameters);
      case 'approval_requested':
        return this.#begun(event, event.data.parameters);
      case 'client_tool_called': {
        const { call_id: callId, parameters } = event.data;
        return { call: this.#add(event, { callId }), begins: parameters, end: null };
      }
      case 'action_rejected': {
        const { code, message, parameters = {} } = event.data;
        // The action that has the id may be another one.
        const call = { ...callOf(event), rejectedAt: event.seq };
        return { call, begins: parameters, end: { status: 'rejected', code, message } };
      }
      case 'action_completed':
        return this.#ended(event, { status: 'completed', output: event.data.output });
      case 'action_failed':
        return this.#ended(event, { status: 'failed', ...event.data.error });
      case 'action_skipped': {
        const { because, reason } = event.data;
        return this.#ended(event, { status: 'skipped', code: 'skipped', message: because ?? reason });
      }
      case 'action_cancelled':
        return this.#ended(event, { status: 'cancelled', code: 'cancelled', message: event.data.reason });
      default:
        return null;
    }
  }

  #begun(event: ActionEvent, resolved: JsonObject | undefined): CallChange | null {
    const key = keyOf(event);
    if (this.#shown.has(key)) return null;
    const queued = this.#queued.get(key);
    const isBackground = queued?.mode === 'fire_and_forget';
    const call = this.#add(event, { isAgent: queued?.type === 'agent', isBackground });
    return { call, begins: resolved ?? queued?.parameters ?? {}, end: null };
  }

  #add(event: ActionEvent, more: Partial<ShownCall>): ShownCall {
    const key = keyOf(event);
    const call = { ...callOf(event), ...more };
    this.#queued.delete(key);
    this.#shown.set(key, call);
    return call;
  }

  #ended(event: ActionEvent, end: CallEnd): CallChange | null {
    const begun = this.#begun(event, undefined);
    const call = begun?.call ?? this.of(event);
    return call === undefined ? null : { call, begins: begun?.begins ?? null, end };
  }
}

function callOf(event: ActionEvent): ShownCall {
  const { iteration, action_id: actionId } = event;
  return {
    iteration,
    actionId,
    rejectedAt: null,
    name: nameOf(event),
    isAgent: false,
    isBackground: false,
    callId: null,
  };
}

function isAboutAction(event: SessionEvent): event is ActionEvent {
  return event.action_id !== undefined;
}

const keyOf = ({ iteration, action_id: id = '' }: SessionEvent): string => `${iteration}-${id}`;

const nameOf = ({ action_name: name, action_id: id }: ActionEvent): string => name ?? id;
