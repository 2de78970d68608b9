/**
 * Conditions of actions: CEL over reference names, written without the `$` (S9).
 *
 * @see expression.ts for the limits of the language
 */
import type { Json } from '../../domain/json.ts';
import { limits } from '../../domain/limits.ts';
import { WorkMeter } from '../../domain/work.ts';
import { partToCel } from './condition-work.ts';
import type { Use } from './condition-work.ts';
import { baseEnvironment, COMMON, evaluate, readExpression } from './expression.ts';
import type { ConditionResult, Dialect } from './expression.ts';

export type { ConditionResult } from './expression.ts';

const CONDITION: Dialect = {
  ...COMMON,
  environment: baseEnvironment(),
  refused: new Map([...COMMON.refused, ['matches', '; use contains, startsWith or endsWith']]),
  prepare: withoutDollars,
};

/**
 * The names that a condition uses, each once, in order of appearance. `[]` for an invalid expression; its evaluation
 * reports the error.
 */
export function conditionNames(expression: string): string[] {
  const read = readExpression(expression, CONDITION);
  return read.ok ? [...read.uses.keys()] : [];
}

/** Why no values can make the expression true or false; null if some can. */
export function conditionIssue(expression: string): string | null {
  const read = readExpression(expression, CONDITION);
  return read.ok ? read.typeIssue() : read.message;
}

/**
 * @param values the values of the names. A name without a value is an error, as is a result that is neither true nor
 *   false.
 */
export function evaluateCondition(
  expression: string,
  values: Readonly<Record<string, Json>>,
  meter: WorkMeter = new WorkMeter(limits.conditionSteps),
): ConditionResult {
  // Own properties only: a name such as `constructor` must not find the prototype's property.
  const valueOf = (name: string, use: Use): unknown =>
    Object.hasOwn(values, name) ? partToCel(values[name] ?? null, use, meter) : undefined;
  return evaluate(expression, readExpression(expression, CONDITION, meter), valueOf, meter);
}

/** Removes the `$` from `$name` and `${name}` outside of quotes. An unclosed quote extends to the end. */
function withoutDollars(expression: string): string {
  if (!expression.includes('$')) return expression;
  return expression.replace(
    /("(?:[^"\\]|\\.)*(?:"|\\?$)|'(?:[^'\\]|\\.)*(?:'|\\?$))|\$(?:\{([\w.[\]]+)\}|(?=[A-Za-z_]))/g,
    (_all, quoted: string | undefined, braced: string | undefined) => quoted ?? braced ?? '',
  );
}
