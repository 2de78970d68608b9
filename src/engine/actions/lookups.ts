/**
 * Asks the session's outcome cache whether an earlier outcome stands for an action of this run (P6).
 *
 * Owns which actions were looked up and have to be released. Does not own the outcomes, which are in the cache, nor
 * the decision to start.
 *
 * Invariants:
 *  1. Every action that was looked up is released: when it settles, or when the run is over.
 *  2. Names are pinned at the look-up: what was looked up is what runs (P12).
 */
import type { ActionKey } from '../../domain/action.ts';
import { EngineError } from '../../domain/errors.ts';
import type { Json } from '../../domain/json.ts';
import type { SchedulerInput } from '../../scheduler/types.ts';
import type { RunInput } from '../run/run-input.ts';
import type { ResolvedCall } from '../run/resolve-names.ts';
import { cacheTtlOf, effectsOf, toolOf } from './action-policy.ts';
import type { ActionScope } from './action-scope.ts';
import type { Approvals } from './approvals.ts';
import type { Recalled } from './outcome-cache.ts';

export class Lookups {
  readonly #scope: ActionScope;
  readonly #approvals: Approvals;
  readonly #lookedUp = new Set<ActionKey>();
  /** Look-ups of a record that is being replayed whose answer it does not hold yet. */
  readonly #unanswered = new Set<ActionKey>();
  /** Warnings about references, found between two turns; written with the answer. */
  readonly #warnings = new Map<ActionKey, Pick<ResolvedCall, 'warnings'>>();
  /** Actions for which an earlier outcome was found. */
  readonly #reused = new Set<ActionKey>();

  constructor(scope: ActionScope, approvals: Approvals) {
    this.#scope = scope;
    this.#approvals = approvals;
  }

  has(key: ActionKey): boolean {
    return this.#lookedUp.has(key);
  }

  /** Looks an action up; the answer arrives in the inbox. */
  start(key: ActionKey): void {
    const { log, inbox, names } = this.#scope;
    this.#lookedUp.add(key);
    if (!this.#approvals.has(key)) names.pin(key);
    if (log.replaying) this.#unanswered.add(key);
    else this.#ask(key, (found) => inbox.put({ type: 'recalled', key, found }));
  }

  /** Claims the action's outcome again after a crash: the attempt goes on, and equal actions wait for it. */
  reclaim(key: ActionKey): void {
    if (this.#lookedUp.has(key)) this.#ask(key, () => undefined);
  }

  /** Makes the look-ups again whose answers the record does not hold. */
  resume(): void {
    const unanswered = [...this.#unanswered];
    this.#unanswered.clear();
    for (const key of unanswered) this.start(key);
  }

  #ask(key: ActionKey, answer: (found: Recalled) => void): void {
    const { context, actions } = this.#scope;
    const action = actions.declaration(key);
    const tool = toolOf(action, context.resolved);
    const call = (): ResolvedCall => {
      const found = this.#approvals.callOf(key);
      if (found === null) throw new EngineError('internal', `The approved call of action ${key} was not recorded`);
      if (found.warnings.length > 0) this.#warnings.set(key, { warnings: found.warnings });
      return found;
    };
    const cacheTtlMs = cacheTtlOf(action, effectsOf(action.type, tool), tool);
    const resolved = { action, call, version: tool?.version ?? null, cacheTtlMs };
    // An action whose look-up fails runs.
    context.earlier.ask(this.#owner(key), resolved, answer).catch(() => answer({ type: 'nothing' }));
  }

  /** The scheduler's input for an answer. */
  answered(
    { key, found }: Extract<RunInput, { type: 'recalled' }>,
    at: number,
  ): Extract<SchedulerInput, { type: 'recalled' }> {
    const { actions, results } = this.#scope;
    this.#unanswered.delete(key);
    const warned = this.#warnings.get(key);
    this.#warnings.delete(key);
    if (warned !== undefined) actions.warn(key, warned);
    if (found.type === 'refused') return { type: 'recalled', at, key, found: { error: found.error } };
    if (found.type === 'nothing' || results.get(key) !== null) return { type: 'recalled', at, key, found: 'nothing' };
    const refusal = results.stageOutput(key, found.output);
    if (refusal !== null) return { type: 'recalled', at, key, found: { error: refusal } };
    this.#reused.add(key);
    return { type: 'recalled', at, key, found: 'outcome' };
  }

  /** Whether the action's outcome is an earlier one. */
  isReused(key: ActionKey): boolean {
    return this.#reused.has(key);
  }

  /** @param completed where the journal holds the action's output; null when it did not complete */
  release(key: ActionKey, completed: { readonly seq: number; readonly output: Json } | null): void {
    this.#unanswered.delete(key);
    this.#reused.delete(key);
    if (this.#lookedUp.delete(key)) this.#scope.context.earlier.release(this.#owner(key), completed);
  }

  releaseAll(): void {
    for (const key of this.#lookedUp) this.release(key, null);
  }

  #owner(key: ActionKey): string {
    return `${this.#scope.context.runNumber}/${key}`;
  }
}
