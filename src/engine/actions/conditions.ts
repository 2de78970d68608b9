/**
 * Evaluates the `when` conditions of one run (S9).
 *
 * Owns the remaining work for all conditions of the run. A result is recorded, so a condition is not evaluated again
 * after a crash.
 */
import type { ActionDeclaration, ActionKey, BoundName } from '../../domain/action.ts';
import type { Json, JsonObject } from '../../domain/json.ts';
import { limits } from '../../domain/limits.ts';
import { WorkMeter } from '../../domain/work.ts';
import { conditionNames, evaluateCondition } from '../../bounded/conditions/condition.ts';
import type { ConditionResult } from '../../bounded/conditions/condition.ts';
import { follow } from '../../protocol/references/substitution.ts';
import { bindings, lookup } from '../../scheduler/step.ts';
import type { SchedulerInput } from '../../scheduler/types.ts';
import { completeInputs } from '../workflow/workflow-inputs.ts';
import type { ActionScope } from './action-scope.ts';

export class Conditions {
  readonly #scope: ActionScope;
  #stepsLeft: number = limits.conditionStepsPerRun;
  /** The inputs of the workflow, with its defaults. */
  #inputs: JsonObject | null = null;
  /** The latest bound result: conditions on the items of a list read the same one for each item. */
  #latest: { readonly key: ActionKey; readonly output: Json } | null = null;

  constructor(scope: ActionScope) {
    this.#scope = scope;
  }

  evaluate(key: ActionKey): Pick<Extract<SchedulerInput, { type: 'condition_evaluated' }>, 'key' | 'result'> {
    const { actions, context, log, replay } = this.#scope;
    const action = actions.declaration(key);
    const { when } = action;
    if (when === null) return { key, result: { ok: true, value: true } };
    const recorded = log.replaying ? replay?.conditionOf(key) : null;
    if (recorded != null) return { key, result: recorded };
    const result = this.#evaluate(key, when, action);
    log.record({ type: 'condition_evaluated', at: context.clock.now(), key, result });
    return { key, result };
  }

  #evaluate(key: ActionKey, when: string, { bound }: ActionDeclaration): ConditionResult {
    if (this.#stepsLeft <= 0) {
      const message = `The conditions of this run exceeded their work limit (${limits.conditionStepsPerRun} steps)`;
      return { ok: false, message };
    }
    const values: Record<string, Json> = {};
    for (const name of conditionNames(when)) {
      const one = bound !== undefined && Object.hasOwn(bound.names, name) ? bound.names[name] : undefined;
      const value = one === undefined ? this.#named(key, name) : (this.#bound(one) ?? null);
      if (value !== undefined) values[name] = value;
    }
    const meter = new WorkMeter(Math.min(limits.conditionSteps, this.#stepsLeft));
    const result = evaluateCondition(when, values, meter);
    this.#stepsLeft -= meter.spent;
    this.#scope.context.share.charge(meter.spent);
    return result;
  }

  /** The value of a name in the model's text; undefined if it is unknown. */
  #named(key: ActionKey, name: string): Json | undefined {
    const { names, state } = this.#scope;
    const value = names.valueOf(name, bindings(state(), key)[name] ?? null);
    return value.type === 'unknown' ? undefined : value.type === 'value' ? value.value : null;
  }

  /** A bound value; undefined if it is absent: the path does not exist, or the action has no result. */
  #bound(name: BoundName): Json | undefined {
    if ('value' in name) return name.value;
    if ('input' in name) return this.#workflowInputs;
    if ('result' in name) {
      const producer = lookup(this.#scope.state(), name.result);
      return producer === null ? undefined : this.#result(producer.key, name.path);
    }
    const members = Object.entries(name.members).flatMap(([member, one]): [string, Json][] => {
      const value = this.#bound(one);
      return value === undefined ? [] : [[member, value]];
    });
    return Object.fromEntries(members);
  }

  #result(key: ActionKey, path: readonly string[]): Json | undefined {
    if (this.#latest?.key !== key) {
      const result = this.#scope.results.get(key);
      if (result?.status !== 'completed') return undefined;
      this.#latest = { key, output: result.output };
    }
    return at(this.#latest.output, path);
  }

  get #workflowInputs(): JsonObject {
    const { source } = this.#scope.context;
    this.#inputs ??= source.type === 'workflow' ? completeInputs(source.definition, source.inputs) : {};
    return this.#inputs;
  }
}

function at(value: Json, path: readonly string[]): Json | undefined {
  const { found, value: member } = follow(value, path);
  return found ? member : undefined;
}
