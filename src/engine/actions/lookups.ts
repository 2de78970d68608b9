/**
 * Looks up reusable outcomes for actions of this run in the session's outcome cache (P6).
 *
 * Owns which actions were looked up and must be released. Does not own the outcomes, which are in the cache, or the
 * decision to start.
 *
 * Invariants:
 *  1. Every action that was looked up is released: when it settles, or when the run ends.
 *  2. Names are pinned at the lookup, so the call that was looked up is the call that runs (P12).
 */
import type { ActionKey } from '../../domain/action.ts';
import type { Json } from '../../domain/json.ts';
import type { SchedulerInput } from '../../scheduler/types.ts';
import type { RunInput } from '../run/run-input.ts';
import type { ResolvedCall } from '../run/resolve-names.ts';
import { cacheTtlOf, effectsOf, toolOf } from './action-policy.ts';
import type { ActionScope } from './action-scope.ts';
import type { LookupResult, OutcomeCache } from './outcome-cache.ts';

type Recalled = Extract<RunInput, { type: 'recalled' }>;

export class Lookups {
  readonly #scope: ActionScope;
  readonly #lookedUp = new Set<ActionKey>();
  /** Lookups in a replayed record without a recorded answer. */
  readonly #unanswered = new Set<ActionKey>();
  /** Reference warnings found between two turns; written with the answer. */
  readonly #warnings = new Map<ActionKey, Pick<ResolvedCall, 'warnings'>>();
  /** Actions for which an earlier outcome was found. */
  readonly #reused = new Set<ActionKey>();

  constructor(scope: ActionScope) {
    this.#scope = scope;
  }

  has(key: ActionKey): boolean {
    return this.#lookedUp.has(key);
  }

  /** Looks up an action; the answer arrives in the input queue. */
  start(key: ActionKey): void {
    const { log, inputQueue, names, calls } = this.#scope;
    this.#lookedUp.add(key);
    if (calls.requestOf(key) === undefined) names.pin(key);
    if (log.replaying) this.#unanswered.add(key);
    else this.#ask(key, (found) => inputQueue.put({ type: 'recalled', key, found }));
  }

  /**
   * After a crash: claims the outcomes of looked-up actions again, whether they run or still wait for a slot, and repeats
   * the lookups that have no recorded answer.
   */
  resume(): void {
    const unanswered = [...this.#unanswered];
    this.#unanswered.clear();
    for (const key of this.#lookedUp) {
      if (unanswered.includes(key)) continue;
      try {
        this.#scope.context.outcomeCache.reclaim(this.#owner(key), this.#resolved(key));
      } catch {
        // Its call was not recorded: it fails when it starts.
      }
    }
    for (const key of unanswered) this.start(key);
  }

  #ask(key: ActionKey, answer: (found: LookupResult) => void): void {
    // If the lookup fails, the action runs.
    this.#scope.context.outcomeCache
      .lookup(this.#owner(key), this.#resolved(key), answer)
      .catch(() => answer({ type: 'nothing' }));
  }

  #resolved(key: ActionKey): Parameters<OutcomeCache['reclaim']>[1] {
    const { context, actions, calls } = this.#scope;
    const action = actions.declaration(key);
    const tool = toolOf(action, context.resolved);
    const call = (): ResolvedCall => {
      const found = calls.asked(key);
      if (found.warnings.length > 0) this.#warnings.set(key, found);
      return found;
    };
    const cacheTtlMs = cacheTtlOf(action, effectsOf(action.type, tool), tool);
    return { action, call, version: tool?.version ?? null, cacheTtlMs };
  }

  /**
   * Stages the output of an earlier outcome until its action settles.
   *
   * @returns the answer that counts and is recorded
   */
  stage(input: Recalled): Recalled {
    const { log, results } = this.#scope;
    const { key, found } = input;
    if (found.type !== 'outcome' || results.has(key)) return input;
    const error = results.stageOutput(key, found.output, log.replaying);
    return error === null ? input : { ...input, found: { type: 'refused', error } };
  }

  /** The scheduler's input for an answer, whose output is staged. */
  answered({ key, found }: Recalled, at: number): Extract<SchedulerInput, { type: 'recalled' }> {
    const { actions, results } = this.#scope;
    this.#unanswered.delete(key);
    const warned = this.#warnings.get(key);
    this.#warnings.delete(key);
    if (warned !== undefined) actions.warn(key, warned);
    if (found.type === 'refused') return { type: 'recalled', at, key, found: { error: found.error } };
    if (found.type === 'nothing' || results.has(key)) return { type: 'recalled', at, key, found: 'nothing' };
    this.#reused.add(key);
    return { type: 'recalled', at, key, found: 'outcome' };
  }

  /** Whether the action's outcome is an earlier one. */
  isReused(key: ActionKey): boolean {
    return this.#reused.has(key);
  }

  /** The action has completed: keeps its output for later ones. @param completed the output and its position in the journal */
  keep(key: ActionKey, completed: { readonly seq: number; readonly output: Json }): void {
    if (this.#lookedUp.has(key)) this.#scope.context.outcomeCache.keep(this.#owner(key), completed);
  }

  release(key: ActionKey): void {
    this.#unanswered.delete(key);
    this.#reused.delete(key);
    if (this.#lookedUp.delete(key)) this.#scope.context.outcomeCache.release(this.#owner(key));
  }

  releaseAll(): void {
    for (const key of this.#lookedUp) this.release(key);
  }

  #owner(key: ActionKey): string {
    return `${this.#scope.context.runNumber}/${key}`;
  }
}
