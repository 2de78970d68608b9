/**
 * Writes the terminal event of an action (S10).
 *
 * Owns the parser's rejections until they are settled. Does not own the decision that an action has ended.
 */
import { loadsSkill } from '../../domain/internal-actions.ts';
import type { ActionKey, ActionRejection } from '../../domain/action.ts';
import type { JsonObject } from '../../domain/json.ts';
import type { SchedulerCommand, Settlement } from '../../scheduler/types.ts';
import { fileState } from '../generation/result-files.ts';
import type { ActionLabel } from '../run/run-log.ts';
import { errorJson } from './action-log.ts';
import { targetOf } from './action-policy.ts';
import { shownParameters } from './shown-parameters.ts';
import type { ActionScope } from './action-scope.ts';
import type { Lookups } from './lookups.ts';
import { memoryEvent } from './user-memory.ts';

type Settle = Extract<SchedulerCommand, { type: 'settle' }>;

export class Settlements {
  readonly #scope: ActionScope;
  readonly #lookups: Lookups;
  readonly #rejections = new Map<ActionKey, ActionRejection>();

  constructor(scope: ActionScope, lookups: Lookups) {
    this.#scope = scope;
    this.#lookups = lookups;
  }

  /** Stores the parser's rejection for the event that settles it. */
  reject(rejection: ActionRejection): void {
    this.#rejections.set(`${this.#scope.log.iteration}/${rejection.ordinal}`, rejection);
  }

  label(key: ActionKey): ActionLabel {
    return this.#rejections.get(key) ?? this.#scope.actions.declaration(key);
  }

  /** @returns the event's seq */
  append(command: Settle, now: number): number {
    const { actions, results } = this.#scope;
    const { key, attempt } = command;
    switch (command.status) {
      case 'completed':
        return this.#completed(key, attempt, now);
      case 'failed': {
        const started = results.startedAt(key);
        return actions.append('action_failed', key, {
          error: errorJson(command.error),
          attempt,
          ...(started === null ? {} : { ms: Math.max(0, now - started) }),
        });
      }
      case 'skipped':
        return actions.append('action_skipped', key, { reason: command.reason, because: command.because });
      case 'cancelled':
        return actions.append('action_cancelled', key, { reason: command.reason });
      case 'rejected':
        return this.#rejected(key, command.code, command.message);
    }
  }

  #completed(key: ActionKey, attempt: number, now: number): number {
    const { context, log, results, actions } = this.#scope;
    const action = actions.declaration(key);
    const ms = Math.max(0, now - (results.startedAt(key) ?? now));
    const output = results.stagedOutput(key);
    const state: JsonObject = { output_key: action.outputKey };
    const cached = this.#lookups.isReused(key);
    if (!cached) {
      const target = targetOf(action);
      if (!log.replaying) context.learned.learn(target, ms);
      Object.assign(state, { target, ms });
    }
    Object.assign(state, fileState(output), loadsSkill(action) ? { skill: true } : {});
    const seq = actions.append(
      'action_completed',
      key,
      { output, ms, attempt, ...(cached ? { cached: true } : {}) },
      state,
    );
    const changed = cached ? null : memoryEvent(action, output);
    // Behind the output, from which it is made again after a crash.
    if (changed !== null) actions.append('memory_changed', key, changed);
    return seq;
  }

  /** Rejected by the parser, which knows the position in the text, or by the policy. */
  #rejected(key: ActionKey, code: string, message: string): number {
    const rejection = this.#rejections.get(key);
    const { type, mode } = rejection ?? this.#scope.actions.declaration(key);
    const place =
      rejection === undefined ? {} : { line: rejection.line, column: rejection.column, excerpt: rejection.excerpt };
    const declared = rejection === undefined ? shownParameters(this.#scope.actions.declaration(key).parameters) : {};
    const data = { code, message, type, mode, ...place, ...declared };
    return this.#scope.log.append('action_rejected', data, { action: this.label(key), state: { key } });
  }
}

/** One line that explains to a reader or the model why there is no output; null for a completed action. */
export function noteOf(settlement: Settlement): string | null {
  switch (settlement.status) {
    case 'completed':
      return null;
    case 'failed':
      return `${settlement.error.code}: ${settlement.error.message}`;
    case 'skipped':
      return settlement.because === null ? settlement.reason : `${settlement.reason}: ${settlement.because}`;
    case 'cancelled':
      return settlement.reason;
    case 'rejected':
      return `${settlement.code}: ${settlement.message}`;
  }
}
