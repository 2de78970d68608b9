/**
 * Asks people about actions of one run (J8): about each call exactly as it will be executed.
 *
 * Owns the open requests and the sum of what they hold. Does not own the calls: they are in the journal, in the
 * request's event, and are read from there whenever an attempt starts.
 *
 * Invariants:
 *  1. The call that is executed is the one in the request: it is not resolved again, by a retry or after a crash.
 *  2. A request shows its parameters whole or not at all; it always states their size and digest.
 *  3. A request is decided once, by the first decision that arrives before it ends.
 */
import { sha256 } from '@noble/hashes/sha2.js';
import { bytesToHex } from '@noble/hashes/utils.js';
import type { ActionDeclaration, ActionError, ActionKey } from '../../domain/action.ts';
import type { EventData } from '../../domain/event.ts';
import { isJsonObject } from '../../domain/json.ts';
import type { JsonObject } from '../../domain/json.ts';
import { limits } from '../../domain/limits.ts';
import { WorkMeter } from '../../domain/work.ts';
import type { SchedulerInput } from '../../scheduler/types.ts';
import type { RunInput } from '../run/run-input.ts';
import type { ResolvedCall } from '../run/resolve-names.ts';
import { actionInFullSession } from '../session/session-full.ts';
import type { ActionScope } from './action-scope.ts';
import { checkCall } from './call-check.ts';

/** A request's event: what people see of it, and what only the execution reads. */
interface ApprovalRequest {
  readonly data: EventData['approval_requested'];
  readonly state: JsonObject;
}

type Asked = Pick<Extract<SchedulerInput, { type: 'approval_asked' }>, 'key' | 'error'>;

const encoder = new TextEncoder();

export class Approvals {
  readonly #scope: ActionScope;
  readonly #open = new Map<ActionKey, string>();
  /** The events that hold the requests. */
  readonly #asked = new Map<ActionKey, number>();
  #bytes = 0;
  /** Of all calls that were resolved for a request, those that were too large among them. */
  #resolvedBytes = 0;
  /** What checking the requests of the run may cost: one turn makes all of them, without a pause. */
  readonly #meter = new WorkMeter(limits.schemaSteps);

  constructor(scope: ActionScope) {
    this.#scope = scope;
  }

  /** Resolves an action for good and asks about it, unless it could not run anyway. */
  ask(key: ActionKey): Asked {
    const { context, log, actions, replay } = this.#scope;
    const recorded = log.replaying ? replay : null;
    const unasked = recorded?.unaskedOf(key) ?? null;
    if (unasked !== null) return { key, error: unasked };
    const asked = recorded?.askedOf(key) ?? null;
    if (asked !== null) {
      const { seq, data } = actions.write('approval_requested', key, asked.data);
      this.#opened(key, seq, data);
      return { key, error: null };
    }
    const request = this.#request(key);
    if ('error' in request) {
      log.record({ type: 'approval_asked', at: context.clock.now(), key, error: request.error });
      return { key, error: request.error };
    }
    const seq = actions.append('approval_requested', key, request.data, request.state);
    this.#opened(key, seq, request.data);
    actions.warn(key, request.call);
    return { key, error: null };
  }

  #opened(key: ActionKey, seq: number, { approval_id: id, bytes }: EventData['approval_requested']): void {
    this.#open.set(key, id);
    this.#asked.set(key, seq);
    this.#bytes += bytes;
  }

  /** The request about an action, or why there is none. */
  #request(key: ActionKey): (ApprovalRequest & { readonly call: ResolvedCall }) | { readonly error: ActionError } {
    const { context, actions, names } = this.#scope;
    const action = actions.declaration(key);
    const refusal = context.journal.full ? actionInFullSession() : this.#exhausted(action);
    if (refusal !== null) return { error: refusal };
    const call = names.resolve(key);
    names.forget(key);
    const error = checkCall(action, call, context, this.#meter);
    // A check that took too much work is made again when the action runs.
    const isUnchecked = call.spent !== true && this.#meter.exceeded;
    if (error !== null && !isUnchecked) return { error };
    const approvalId = context.newApprovalId();
    const { parameters, inputs } = call;
    const text = JSON.stringify({ parameters, inputs });
    const content = encoder.encode(text);
    const left = limits.approvalBytesPerRun - this.#bytes;
    this.#resolvedBytes += content.length;
    if (content.length > left) {
      const message = `Action "${action.id}" needs an approval, and its parameters have ${content.length} bytes with their references resolved; all approval requests of a run may have ${limits.approvalBytesPerRun} bytes together (left: ${left}). Pass less, or a path into the value`;
      return { error: { code: 'approval_too_large', message, retryable: false } };
    }
    const complete = text.length <= limits.approvalChars;
    return {
      call,
      data: {
        approval_id: approvalId,
        type: action.type,
        sha256: bytesToHex(sha256(content)),
        bytes: content.length,
        complete,
        ...(complete ? { parameters } : {}),
        ...(complete && Object.keys(inputs).length > 0 ? { inputs } : {}),
      },
      state: { call: { parameters, inputs } },
    };
  }

  /** Why no further call is resolved for a request of this run; null as long as it may be. */
  #exhausted({ id }: ActionDeclaration): ActionError | null {
    if (this.#resolvedBytes <= limits.approvalBytesResolvedPerRun) return null;
    const message = `Action "${id}" needs an approval, but the calls that this run has resolved for approval requests exceed ${limits.approvalBytesResolvedPerRun} bytes`;
    return { code: 'approval_too_large', message, retryable: false };
  }

  /** @returns whether the decision counts: whether the request was still open */
  resolve({ key, approved, note, told }: Extract<RunInput, { type: 'approval_resolved' }>): boolean {
    const approval = this.close(key);
    if (approval === null) {
      told?.(false);
      return false;
    }
    const { log, actions } = this.#scope;
    actions.append('approval_resolved', key, { approval_id: approval, approved, ...(note === null ? {} : { note }) });
    if (told !== undefined) log.afterSync(() => told(true));
    return true;
  }

  /** Closes the action's open request; returns its id, or null when there is none. */
  close(key: ActionKey): string | null {
    const id = this.#open.get(key) ?? null;
    this.#open.delete(key);
    return id;
  }

  /** Whether a person was asked about the action. */
  has(key: ActionKey): boolean {
    return this.#asked.has(key);
  }

  /**
   * What the action does: the call that a person was asked about, else what its names stand for (P12).
   *
   * @returns null where an earlier version asked a person and kept no call
   */
  callOf(key: ActionKey): ResolvedCall | null {
    const seq = this.#asked.get(key);
    if (seq === undefined) return this.#scope.names.resolve(key);
    return callOf(this.#scope.context.journal.stateAt(seq));
  }

  /** The action that an open request is about. */
  keyOf(approvalId: string): ActionKey | null {
    for (const [key, id] of this.#open) if (id === approvalId) return key;
    return null;
  }
}

/** The call that a request's event holds; null in an event of an earlier version that kept none. */
export function callOf(state: JsonObject | null): ResolvedCall | null {
  const call = state?.['call'];
  if (!isJsonObject(call)) return null;
  const { parameters, inputs } = call;
  return isJsonObject(parameters) && isJsonObject(inputs) ? { parameters, inputs, warnings: [] } : null;
}
