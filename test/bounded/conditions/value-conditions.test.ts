/** Conditions see values (D4): the same table in conditions of actions, in policies and in metrics. */
import { describe, expect, test } from 'vitest';
import { score } from '../../../cli/eval/scorers.ts';
import { conditionIssue, evaluateCondition } from '../../../src/bounded/conditions/condition.ts';
import { evaluatePolicyCondition, policyConditionIssue } from '../../../src/bounded/conditions/policy-condition.ts';
import { WorkMeter } from '../../../src/domain/work.ts';
import { policySubject } from '../../support/policy-subject.ts';
import { CONDITION_VALUES, policyConditions, valueConditions } from '../../support/value-conditions.ts';

test.each(valueConditions('v'))('[D4] in a condition, %s is %s', (condition, value) => {
  expect(conditionIssue(condition)).toBeNull();
  expect(evaluateCondition(condition, { v: CONDITION_VALUES })).toEqual({ ok: true, value });
});

test.each(policyConditions('parameters'))('[D4] [C9] in a policy, %s is %s', (condition, value) => {
  expect(policyConditionIssue(condition)).toBeNull();
  const subject = policySubject({ parameters: CONDITION_VALUES });
  const result = evaluatePolicyCondition(condition, subject);
  if (value === null) expect(result.ok).toBe(false);
  else expect(result).toEqual({ ok: true, value });
});

test.each([
  'parameters.price * parameters.quantity > 1000',
  'parameters.amount > 1000',
  '-parameters.amount < 0',
  'parameters.command.contains("rm")',
  'host(parameters.url) == "evil.example"',
  'parameters.items.exists(item, item.amount > 100)',
  'now.getHours(session.metadata.timezone) >= 18',
])('[C9] a policy denies what it cannot judge, because a value is absent: %s', (condition) => {
  const subject = policySubject({ parameters: { price: 50_000, items: [{}] } });
  expect(evaluatePolicyCondition(condition, subject).ok).toBe(false);
});

test.each(['type == "tool"', 'parameters.t.matches("^(a+)+$") && int'])(
  '[C9] the name of a type is no value in a policy, and hides no function: %s',
  (condition) => {
    expect(policyConditionIssue(condition)).toContain('unknown name');
  },
);

test.each(valueConditions('outputs'))('[D4] in a metric, %s is %s', (cel, value) => {
  const run = { response: '', document: { outputs: CONDITION_VALUES } };
  expect(score({ cel }, run)).toBe(value ? null : `the condition is false: ${cel}`);
});

describe('[D4] a condition reads only what it names', () => {
  test('the other members of its values cost nothing', () => {
    const meter = new WorkMeter(100);
    expect(evaluateCondition('v.a.n == 1', { v: { a: { n: 1, rows: CONDITION_VALUES } } }, meter).ok).toBe(true);
    expect(meter.spent).toBeLessThan(50);
  });

  test('a name that is used as a whole has all its members', () => {
    const values = { v: { a: 1, b: { c: 2 } } };
    expect(evaluateCondition('v.b.c == 2 && v.size() == 2 && "a" in v', values)).toEqual({ ok: true, value: true });
    expect(evaluateCondition('v.b.c == 2 && v["a"] == 1 && v.b == {"c": 2}', values)).toEqual({
      ok: true,
      value: true,
    });
  });

  test('a variable of a comprehension hides a name, whose members are not read', () => {
    expect(
      evaluateCondition('v.rows.all(x, x.n > x.m) && x.k', { v: { rows: [{ n: 2, m: 1 }] }, x: { k: true } }),
    ).toEqual({
      ok: true,
      value: true,
    });
  });
});

test.each([
  ['a text and a number', 'v.text > 1'],
  ['a text and true', 'v.text && true'],
  ['a number', 'v.one'],
  ['a name without a value', 'w.x == null'],
  ['a member of a text', 'v.text.x == 1'],
  ['a division by zero', 'v.one / 0 == 1'],
])('[D4] %s is still an error: %s', (_what, condition) => {
  expect(evaluateCondition(condition, { v: { text: 'a', one: 1 } }).ok).toBe(false);
});
