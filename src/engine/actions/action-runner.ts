/**
 * Executes the scheduler's commands about actions. Each duty has a part of its own:
 *
 *  - `conditions`: evaluates `when`
 *  - `lookups`: finds earlier outcomes that stand for an action
 *  - `approvals`: asks people
 *  - `attempts`: runs executors
 *  - `timers`: timeouts, retry delays, expiries
 *
 * Owns what happens when an action is declared and when it settles, where the parts meet. Does not own any decision:
 * nothing is started, repeated or given up here.
 */
import { forgetsResults } from '../../domain/action-types.ts';
import type { ActionDeclaration, ActionKey, ActionPolicy } from '../../domain/action.ts';
import type { ProtocolEvent } from '../../domain/protocol-event.ts';
import { isFireAndForget } from '../../scheduler/step.ts';
import type { SchedulerCommand } from '../../scheduler/types.ts';
import type { OutcomeReader } from '../run/outcome-reader.ts';
import { iterationOf, ordinalOf, RunNames } from '../run/run-names.ts';
import { ActionLog, errorJson } from './action-log.ts';
import { cacheTtlOf, effectsOf, policyOf, toolOf } from './action-policy.ts';
import type { ActionScope } from './action-scope.ts';
import { Approvals } from './approvals.ts';
import { Attempts } from './attempts.ts';
import { Conditions } from './conditions.ts';
import { Lookups } from './lookups.ts';
import { prewarmHint } from './prewarm-hint.ts';
import { RunTimers } from './run-timers.ts';
import { noteOf, Settlements } from './settlements.ts';

export class ActionRunner {
  readonly conditions: Conditions;
  readonly lookups: Lookups;
  readonly approvals: Approvals;
  readonly attempts: Attempts;
  readonly timers: RunTimers;
  /** What the names in the text stand for. */
  readonly names: RunNames;
  readonly settlements: Settlements;
  readonly #scope: ActionScope;
  /** Durations that declared actions are ordered by (S5), until they are written. */
  readonly #estimates = new Map<ActionKey, number>();

  constructor(given: Omit<ActionScope, 'actions' | 'names'> & { readonly outcomes: OutcomeReader }) {
    this.names = new RunNames(given);
    const scope = { ...given, actions: new ActionLog(given.log, given.state), names: this.names };
    this.#scope = scope;
    this.timers = new RunTimers(scope);
    this.conditions = new Conditions(scope);
    this.approvals = new Approvals(scope);
    this.lookups = new Lookups(scope, this.approvals);
    this.attempts = new Attempts(scope, this.approvals, this.lookups);
    this.settlements = new Settlements(scope, this.lookups);
  }

  /** What the scheduler is told about a declared action's target. */
  policy(action: ActionDeclaration): ActionPolicy {
    const { context, log, replay } = this.#scope;
    const policy = policyOf(action, context.resolved, context.learned);
    const key = `${log.iteration}/${action.ordinal}`;
    // Durations are learned all the time; a replayed run must be ordered as it was.
    const estimateMs = (log.replaying ? replay?.estimateOf(key) : null) ?? policy.estimateMs;
    this.#estimates.set(key, estimateMs);
    return { ...policy, estimateMs };
  }

  /** Warms a sandbox for an action that is still being written (R2). */
  prewarm(events: readonly ProtocolEvent[]): void {
    const { runner, resolved, sessionId } = this.#scope.context;
    if (runner === null || this.#scope.log.replaying) return;
    const hint = prewarmHint(events, resolved);
    if (hint !== null) runner.prewarm({ session: sessionId, ...hint });
  }

  queued(key: ActionKey, dependsOn: readonly ActionKey[]): void {
    const { context, log, actions } = this.#scope;
    const action = actions.declaration(key);
    const estimate = this.#estimates.get(key) ?? 0;
    this.#estimates.delete(key);
    const tool = toolOf(action, context.resolved);
    if ((action.cacheTtlMs ?? 0) > 0 && cacheTtlOf(action, effectsOf(action.type, tool), tool) === null) {
      const message = `Action "${action.id}" has a cache_ttl, but ${action.type} "${action.name}" is not pure: it runs every time`;
      log.warn('cache_ignored', message, action);
    }
    actions.append(
      'action_queued',
      key,
      {
        type: action.type,
        mode: action.mode,
        depends_on: dependsOn.map((dependency) => actions.declaration(dependency).id),
        output_key: action.outputKey,
        parameters: action.parameters,
        ...(action.embeddedInThought ? { embedded_in_thought: true } : {}),
        ...(action.repaired ? { repaired: true } : {}),
      },
      { estimate },
    );
  }

  retrying({ key, attempt, delayMs, error }: Extract<SchedulerCommand, { type: 'retry' }>): void {
    this.#scope.actions.append('action_retrying', key, { attempt, delay_ms: delayMs, error: errorJson(error) });
  }

  /** Writes the terminal event (S10) and keeps the result for references and for the model. */
  settled(command: Extract<SchedulerCommand, { type: 'settle' }>): void {
    const { context, results, actions, state } = this.#scope;
    const { key, status } = command;
    const now = context.clock.now();
    this.attempts.forget(key);
    // An action that was cancelled, or whose request expired, cannot be approved any more (J8).
    this.approvals.close(key);
    const seq = this.settlements.append(command, now);
    this.names.forget(key);
    this.lookups.release(key, status === 'completed' ? { seq, output: results.offered(key) } : null);
    const { id, name } = this.settlements.label(key);
    const silent = isFireAndForget(state(), key);
    const result = { id, ordinal: ordinalOf(key), name, silent, status, note: noteOf(command), endedAt: now };
    results.settle(key, result, seq);
    if (status !== 'completed') return;
    const action = actions.declaration(key);
    // Results of the iterations before this action's lose their names (I).
    if (forgetsResults(action)) this.names.clear(iterationOf(key));
  }

  /** The action that an approval id asks about; null also for one that has expired, even if its timer is still to fire. */
  approvalKey(approvalId: string): ActionKey | null {
    const key = this.approvals.keyOf(approvalId);
    const until = this.timers.at(`approval:${key}`) ?? Infinity;
    return until > this.#scope.context.clock.now() ? key : null;
  }

  /** Goes on where a crash broke off: attempts that were at work, look-ups, timers (J2). */
  resume(): void {
    this.attempts.resume();
    this.lookups.resume();
    this.timers.resume();
  }

  /** The run is over: nothing of it is at work or waited for any more. */
  dispose(): void {
    this.attempts.abortAll();
    this.timers.cancelAll();
    this.lookups.releaseAll();
  }
}
