/**
 * Evaluates the `when` conditions of one run (S9).
 *
 * Owns the remaining work for all conditions of the run. A result is recorded, so a condition is not evaluated again
 * after a crash.
 */
import type { ActionKey } from '../../domain/action.ts';
import type { Json } from '../../domain/json.ts';
import { limits } from '../../domain/limits.ts';
import { WorkMeter } from '../../domain/work.ts';
import { conditionNames, evaluateCondition } from '../../bounded/conditions/condition.ts';
import type { ConditionResult } from '../../bounded/conditions/condition.ts';
import { bindings } from '../../scheduler/step.ts';
import type { SchedulerInput } from '../../scheduler/types.ts';
import type { ActionScope } from './action-scope.ts';

export class Conditions {
  readonly #scope: ActionScope;
  #stepsLeft: number = limits.conditionStepsPerRun;

  constructor(scope: ActionScope) {
    this.#scope = scope;
  }

  evaluate(key: ActionKey): Pick<Extract<SchedulerInput, { type: 'condition_evaluated' }>, 'key' | 'result'> {
    const { actions, context, log, replay } = this.#scope;
    const { when } = actions.declaration(key);
    if (when === null) return { key, result: { ok: true, value: true } };
    const recorded = log.replaying ? replay?.conditionOf(key) : null;
    if (recorded != null) return { key, result: recorded };
    const result = this.#evaluate(key, when);
    log.record({ type: 'condition_evaluated', at: context.clock.now(), key, result });
    return { key, result };
  }

  #evaluate(key: ActionKey, when: string): ConditionResult {
    const { names, state } = this.#scope;
    if (this.#stepsLeft <= 0) {
      const message = `The conditions of this run exceeded their work limit (${limits.conditionStepsPerRun} steps)`;
      return { ok: false, message };
    }
    const bound = bindings(state(), key);
    const values: Record<string, Json> = {};
    for (const name of conditionNames(when)) {
      const value = names.valueOf(name, bound[name] ?? null);
      if (value.type !== 'unknown') values[name] = value.type === 'value' ? value.value : null;
    }
    const meter = new WorkMeter(Math.min(limits.conditionSteps, this.#stepsLeft));
    const result = evaluateCondition(when, values, meter);
    this.#stepsLeft -= meter.spent;
    return result;
  }
}
