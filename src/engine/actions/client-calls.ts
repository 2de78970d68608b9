/**
 * Calls of client tools of one run (C3): the caller executes them, and posts the result.
 *
 * Owns the calls that are being checked, the open ones, and the total size of their parameters. Does not own the decision
 * to call, or the end of the action.
 *
 * Invariants:
 *  1. A call is shown once its parameters are known to be valid; what is shown is what was resolved (P12).
 *  2. A call is settled once: by the first result that arrives while it is open, by its time-out, or by the end of its
 *     action. `client_tool_settled` follows each `client_tool_called`.
 *  3. After a crash, an open call is still open, and one that was not shown is checked again: nothing has happened yet.
 */
import { redactJson } from '../../bounded/redact-json.ts';
import { TooDeep } from '../../bounded/json-size.ts';
import type { ActionDeclaration, ActionError, ActionKey, ActionOutcome } from '../../domain/action.ts';
import { callIdOf } from '../../domain/call-id.ts';
import { messageOf } from '../../domain/errors.ts';
import type { EventData } from '../../domain/event.ts';
import { limits } from '../../domain/limits.ts';
import { textBytes } from '../../domain/tokens.ts';
import type { SchedulerCommand, SchedulerInput, Settlement } from '../../scheduler/types.ts';
import type { RunInput } from '../run/run-input.ts';
import type { ResolvedCall } from '../run/resolve-names.ts';
import { iterationOf, ordinalOf } from '../run/run-names.ts';
import type { ActionScope } from './action-scope.ts';
import type { Attempts } from './attempts.ts';
import { admitCall } from './call-check.ts';

type Call = Extract<SchedulerCommand, { type: 'call_client' }>;
type SettledStatus = EventData['client_tool_settled']['status'];

export class ClientCalls {
  readonly #scope: ActionScope;
  readonly #attempts: Attempts;
  /** Calls in a replayed record that were not shown. */
  readonly #interrupted = new Map<ActionKey, Call>();
  readonly #checking = new Map<ActionKey, AbortController>();
  /** Ids of the open calls. */
  readonly #open = new Map<ActionKey, string>();
  #bytes = 0;

  constructor(scope: ActionScope, attempts: Attempts) {
    this.#scope = scope;
    this.#attempts = attempts;
  }

  /** Checks the call; the answer arrives in the input queue. */
  start(call: Call): void {
    const { isRecorded, resolved } = this.#attempts.announce(call.key, call.attempt);
    if (isRecorded) this.#interrupted.set(call.key, call);
    else this.#check(call, resolved ?? this.#scope.calls.final(call.key));
  }

  /** Checks the calls that a crash interrupted before they were shown. */
  resume(): void {
    for (const call of this.#interrupted.values()) this.#check(call, this.#scope.calls.final(call.key));
    this.#interrupted.clear();
  }

  #check({ key, attempt }: Call, resolved: ResolvedCall): void {
    const { context, log, inputQueue, actions, calls } = this.#scope;
    const action = actions.declaration(key);
    const isPrepared = calls.isPrepared(key);
    const abort = new AbortController();
    this.#checking.set(key, abort);
    const failed = (error: ActionError): RunInput => ({
      type: 'attempt_ended',
      key,
      attempt,
      outcome: { ok: false, error },
    });
    const checked = async (): Promise<RunInput> => {
      const refusal = this.#unavailable(key) ?? (await admitCall(action, resolved, context, abort.signal, isPrepared));
      if (refusal !== null) return failed(refusal);
      const parameters = redactJson(resolved.parameters, context.redact) as ResolvedCall['parameters'];
      const tooLarge = this.#reserve(action, JSON.stringify(parameters));
      return tooLarge === null ? { type: 'client_called', key, parameters } : failed(tooLarge);
    };
    log.afterSync(() => {
      checked()
        .catch((fault: unknown) => failed(faultOf(fault)))
        .then((input) => inputQueue.put(input));
    });
  }

  /** Why no client could answer the call; null if one can. */
  #unavailable(key: ActionKey): ActionError | null {
    const { record, source } = this.#scope.context;
    const { id, name } = this.#scope.actions.declaration(key);
    const unavailable = (why: string): ActionError => ({
      code: 'client_tool_unavailable',
      message: `Action "${id}" cannot call the client tool "${name}": ${why}`,
      retryable: false,
    });
    if (this.#idOf(key) === null) return unavailable('this session had too many runs for a further id of a call');
    if (record.kind === 'child') {
      return unavailable('no client follows the session of a sub-agent or of a workflow inside a run');
    }
    if (source.type !== 'workflow' || source.trigger === null) return null;
    return unavailable(`a ${source.trigger} started this workflow, so no client follows it`);
  }

  #reserve({ id }: ActionDeclaration, text: string): ActionError | null {
    const bytes = textBytes(text);
    if (bytes > limits.clientCallBytes) {
      const message = `The parameters of action "${id}" have ${bytes} bytes with resolved references (allowed for a client tool: ${limits.clientCallBytes}). Pass less, or a path into the value`;
      return { code: 'call_too_large', message, retryable: false };
    }
    if (this.#bytes + bytes > limits.clientCallBytesPerRun) {
      const message = `The calls of client tools of this run would exceed ${limits.clientCallBytesPerRun} bytes in total`;
      return { code: 'call_too_large', message, retryable: false };
    }
    this.#bytes += bytes;
    return null;
  }

  #idOf(key: ActionKey): string | null {
    const { record, runNumber } = this.#scope.context;
    return callIdOf(record, { run: runNumber, iteration: iterationOf(key), ordinal: ordinalOf(key) });
  }

  /** The call is valid: shows it. @returns the scheduler's input; null if the action has ended since */
  called({
    key,
    parameters,
  }: Extract<RunInput, { type: 'client_called' }>): Omit<
    Extract<SchedulerInput, { type: 'client_called' }>,
    'at'
  > | null {
    const { context, log, actions } = this.#scope;
    const id = this.#idOf(key);
    const isChecked = this.#interrupted.delete(key) || this.#checking.delete(key);
    if (!isChecked || id === null) return null;
    log.record({ type: 'client_called', at: context.clock.now(), key });
    const { name } = actions.declaration(key);
    const { data } = actions.write('client_tool_called', key, { call_id: id, name, parameters });
    if (log.replaying) this.#bytes += textBytes(JSON.stringify(data.parameters));
    this.#open.set(key, id);
    return { type: 'client_called', key };
  }

  isOpen(key: ActionKey): boolean {
    return this.#open.has(key);
  }

  get openCount(): number {
    return this.#open.size;
  }

  /**
   * The client's result. Its output is staged until the action settles.
   *
   * @returns the outcome that counts; null if the call was closed before
   */
  answered({
    key,
    outcome,
    sha256,
    more,
    onDecided,
  }: Extract<RunInput, { type: 'client_answered' }>): ActionOutcome | null {
    const { context, log, results } = this.#scope;
    if (!this.#open.has(key)) {
      onDecided?.(false);
      return null;
    }
    const refusal = outcome.ok ? results.stageOutput(key, outcome.output, log.replaying) : null;
    const counts: ActionOutcome = refusal === null ? outcome : { ok: false, error: refusal };
    const error = counts.ok ? null : counts.error;
    const together = more === undefined ? {} : { more };
    log.record({ type: 'client_answered', at: context.clock.now(), key, error, ...together });
    this.#settle(key, counts.ok ? 'completed' : 'failed', sha256);
    onDecided?.(true);
    return counts;
  }

  /** The action has settled without a result of the client. */
  close(key: ActionKey, settlement: Settlement): void {
    this.#interrupted.delete(key);
    this.#checking.delete(key);
    if (this.#open.has(key)) this.#settle(key, settlement.status === 'failed' ? 'expired' : 'cancelled');
  }

  #settle(key: ActionKey, status: SettledStatus, sha256?: string): void {
    const id = this.#open.get(key) ?? '';
    this.#open.delete(key);
    const digest = sha256 === undefined ? {} : { sha256 };
    this.#scope.actions.append('client_tool_settled', key, { call_id: id, status, ...digest });
  }

  abort(key: ActionKey, reason: string): void {
    this.#interrupted.delete(key);
    this.#checking.get(key)?.abort(new DOMException(reason, 'AbortError'));
    this.#checking.delete(key);
  }

  abortAll(): void {
    for (const [key] of this.#checking) this.abort(key, 'the run ended');
  }
}

function faultOf(fault: unknown): ActionError {
  const code = fault instanceof TooDeep ? 'invalid_parameters' : 'executor_fault';
  return { code, message: messageOf(fault), retryable: false };
}
