/**
 * Asks people to approve actions of one run, and to answer the questions of their targets (J8). They approve each call
 * exactly as it will be executed.
 *
 * Owns the open requests and their total size. Does not own the calls: they are stored in the journal, in the request's
 * event, and are read from there when an attempt starts.
 *
 * An action has at most one open request. Its approval precedes its first attempt; a question follows an attempt.
 *
 * Invariants:
 *  1. The executed call is the one in the request: it is not resolved again by a retry or after a crash.
 *  2. A request shows its parameters completely or not at all; it always states their size and digest.
 *  3. A request is decided once, by the first decision that arrives before it ends.
 */
import { sha256 } from '@noble/hashes/sha2.js';
import { bytesToHex } from '@noble/hashes/utils.js';
import type { ActionDeclaration, ActionError, ActionKey } from '../../domain/action.ts';
import type { EventData } from '../../domain/event.ts';
import type { JsonObject } from '../../domain/json.ts';
import { limits } from '../../domain/limits.ts';
import { WorkMeter } from '../../domain/work.ts';
import type { SchedulerCommand, SchedulerInput } from '../../scheduler/types.ts';
import type { RunInput } from '../run/run-input.ts';
import type { ResolvedCall } from '../run/resolve-names.ts';
import { actionInFullSession } from '../session/session-full.ts';
import type { OpenRequest } from './approval-list.ts';
import type { ActionScope } from './action-scope.ts';
import { checkCall } from './call-check.ts';
import type { Policies } from '../policy/policies.ts';
import { isSame } from './shown-parameters.ts';
import { Questions, shownQuestion } from './questions.ts';

/** A request's event: the part shown to people, and the part that only the execution reads. */
interface ApprovalRequest {
  /** The call, if it was resolved for this request. */
  readonly call?: ResolvedCall;
  readonly data: EventData['approval_requested'];
  readonly state: JsonObject;
}

type Ask = Pick<Extract<SchedulerCommand, { type: 'ask_approval' }>, 'key' | 'attempt'>;
type Asked = Pick<Extract<SchedulerInput, { type: 'approval_asked' }>, 'key' | 'error'>;

const encoder = new TextEncoder();

export class Approvals {
  readonly questions: Questions;
  readonly #scope: ActionScope;
  readonly #policies: Pick<Policies, 'reasonOf'>;
  /** Ids of the open requests, and when they were made. */
  readonly #open = new Map<ActionKey, { readonly id: string; readonly since: number }>();
  #bytes = 0;
  /** Size of all calls resolved for requests, including those that were too large. */
  #resolvedBytes = 0;
  /** Work limit for validating all requests of the run, which happens in one turn. */
  readonly #meter = new WorkMeter(limits.schemaSteps);

  constructor(scope: ActionScope, policies: Pick<Policies, 'reasonOf'>) {
    this.#scope = scope;
    this.#policies = policies;
    this.questions = new Questions(scope);
  }

  /** Resolves an action permanently and asks for approval, or asks its target's question, unless it could not run anyway. */
  ask({ key, attempt }: Ask): Asked {
    const { context, log, actions, replay, names } = this.#scope;
    const recorded = log.replaying ? replay : null;
    const asked = recorded?.nextApprovalRequest(key) ?? null;
    if (asked !== null) {
      names.forget(key);
      const { seq, data } = actions.write('approval_requested', key, asked.data);
      this.#opened(key, seq, data);
      return { key, error: null };
    }
    // The last request of an action: it fails.
    const unasked = recorded?.approvalErrorOf(key) ?? null;
    if (unasked !== null) return { key, error: unasked };
    const request = attempt === 0 ? this.#request(key) : this.#questionRequest(key);
    if ('error' in request) {
      log.record({ type: 'approval_asked', at: context.clock.now(), key, error: request.error });
      return { key, error: request.error };
    }
    const seq = actions.append('approval_requested', key, request.data, request.state);
    this.#opened(key, seq, request.data);
    if (request.call !== undefined) actions.warn(key, request.call);
    return { key, error: null };
  }

  #opened(key: ActionKey, seq: number, { approval_id: id, bytes, question }: EventData['approval_requested']): void {
    this.#open.set(key, { id, since: this.#scope.context.clock.now() });
    this.#scope.calls.requested(key, seq);
    this.#bytes += bytes;
    if (question !== undefined) this.questions.asked(key, seq);
  }

  /** The request for an answer to the question that the action's attempt has ended with, or the error why there is none. */
  #questionRequest(key: ActionKey): ApprovalRequest | { readonly error: ActionError } {
    const question = this.questions.take(key);
    const found = shownQuestion(this.#scope.actions.declaration(key), question);
    if ('error' in found) return found;
    const request = this.#request(key, true);
    if ('error' in request) return request;
    const { data, state } = request;
    return { data: { ...data, question: found.shown }, state: { ...state, question: question.state } };
  }

  /**
   * The request for an action, or the error why there is none.
   *
   * @param hasRun its call was valid when its first attempt started
   */
  #request(key: ActionKey, hasRun = false): ApprovalRequest | { readonly error: ActionError } {
    const { context, actions, names, calls } = this.#scope;
    const action = actions.declaration(key);
    const refusal = context.journal.full ? actionInFullSession() : this.#exhausted(action);
    if (refusal !== null) return { error: refusal };
    const call = calls.final(key);
    const asked = calls.asked(key);
    names.forget(key);
    const isChecked = (hasRun || calls.isPrepared(key)) && call.spent !== true;
    const error = isChecked ? null : checkCall(action, call, context, this.#meter);
    // A validation that takes too much work is repeated when the action runs.
    const isUnchecked = call.spent !== true && this.#meter.exceeded;
    if (error !== null && !isUnchecked) return { error };
    const approvalId = context.newApprovalId();
    const { parameters, inputs } = call;
    const text = JSON.stringify({ parameters, inputs });
    const content = encoder.encode(text);
    const left = limits.approvalBytesPerRun - this.#bytes;
    this.#resolvedBytes += content.length;
    if (content.length > left) {
      const message = `Action "${action.id}" needs an approval, and its parameters have ${content.length} bytes with resolved references; all approval requests of a run together may have ${limits.approvalBytesPerRun} bytes (left: ${left}). Pass less, or a path into the value`;
      return { error: { code: 'approval_too_large', message, retryable: false } };
    }
    const complete = text.length <= limits.approvalChars;
    const reason = hasRun ? null : this.#policies.reasonOf(key);
    return {
      ...(hasRun ? {} : { call }),
      data: {
        approval_id: approvalId,
        type: action.type,
        sha256: bytesToHex(sha256(content)),
        bytes: content.length,
        complete,
        ...(reason === null ? {} : { reason }),
        ...(complete ? { parameters } : {}),
        ...(complete && Object.keys(inputs).length > 0 ? { inputs } : {}),
      },
      state: {
        call: { parameters, inputs },
        ...(isSame(asked.parameters, parameters) ? {} : { asked: { parameters: asked.parameters, inputs } }),
      },
    };
  }

  /** The error if no further call may be resolved for requests of this run, else null. */
  #exhausted({ id }: ActionDeclaration): ActionError | null {
    if (this.#resolvedBytes <= limits.approvalBytesResolvedPerRun) return null;
    const message = `Action "${id}" needs an approval, but the calls that this run has resolved for approval requests exceed ${limits.approvalBytesResolvedPerRun} bytes`;
    return { code: 'approval_too_large', message, retryable: false };
  }

  /** @returns whether the decision counts, that is, whether the request was still open */
  resolve({ key, approved, note, content, onDecided }: Extract<RunInput, { type: 'approval_resolved' }>): boolean {
    const approval = this.close(key);
    if (approval === null) {
      onDecided?.(false);
      return false;
    }
    const { log, actions } = this.#scope;
    const { data } = actions.write('approval_resolved', key, {
      approval_id: approval,
      approved,
      ...(note === null ? {} : { note }),
      ...(content === undefined ? {} : { content }),
    });
    if (approved) this.questions.answered(key, data.content ?? {});
    if (onDecided !== undefined) log.afterSync(() => onDecided(true));
    return true;
  }

  /** Closes the action's open request. @returns its id, or null if there is none */
  close(key: ActionKey): string | null {
    const open = this.#open.get(key);
    if (open === undefined) return null;
    this.#open.delete(key);
    const { context, results } = this.#scope;
    results.waited(key, context.clock.now() - open.since);
    return open.id;
  }

  /** The open requests. */
  get open(): readonly (OpenRequest & { readonly key: ActionKey })[] {
    return [...this.#open].map(([key, { id }]) => ({ key, id, seq: this.#scope.calls.requestOf(key) ?? 0 }));
  }

  /** The action of an open request. */
  keyOf(approvalId: string): ActionKey | null {
    for (const [key, { id }] of this.#open) if (id === approvalId) return key;
    return null;
  }
}
