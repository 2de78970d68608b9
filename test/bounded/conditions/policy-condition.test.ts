/** The conditions of policies: names, functions, errors and their cost (C9). */
import { describe, expect, test } from 'vitest';
import { evaluatePolicyCondition, policyConditionIssue } from '../../../src/bounded/conditions/policy-condition.ts';
import type { JsonObject } from '../../../src/domain/json.ts';
import { limits } from '../../../src/domain/limits.ts';
import { WorkMeter } from '../../../src/domain/work.ts';
import { policySubject } from '../../support/policy-subject.ts';

const holds = (when: string, parameters: JsonObject = {}): unknown => {
  const result = evaluatePolicyCondition(when, policySubject({ parameters }));
  return result.ok ? result.value : 'error';
};

describe('[C9] a condition', () => {
  test.each([
    ['action.type == "tool" && action.name == "pay"', true],
    ['action.effects == "unsafe" && action.implementation == "http"', true],
    ['session.user_id == "" || session.depth > 0', true],
    ['session.metadata.team == "red"', true],
    ['run.cost > 0.4 && run.calls == 0 && run.iteration >= 1', true],
    ['now.getHours("Europe/Berlin") < 6', true],
    ['now.getDayOfWeek("Europe/Berlin") in [0, 6]', true],
    ['parameters.amount > 4.5', true],
    ['action.name == "other" && parameters.nothing > 1', false],
    ['host(parameters.url) in ["a.example", "b.example"]', true],
    ['text(parameters).matches("[a-z]+@[a-z.]+")', true],
    ['text(parameters.who).matches("^ada@")', false],
    ['"x.matches(" == "x.matches("', true],
    [String.raw`text(parameters).matches("\\b\\d{16}\\b")`, true],
    ['type(parameters.amount) == int', true],
  ])('%s is %s', (when, value) => {
    const parameters = {
      amount: 5,
      url: 'https://user:pw@A.example:8443/x',
      who: { mail: 'ada@example.com' },
      card: 4_111_111_111_111_111,
    };
    expect(policyConditionIssue(when)).toBeNull();
    expect(holds(when, parameters)).toBe(value);
  });

  test.each([
    ['a wrong type', 'parameters.a > 1', { a: 'x' }],
    ['not a URL', 'host(parameters.a) == "x"', { a: 'example.com' }],
    ['another scheme', 'host(parameters.a) == "x"', { a: 'file:///etc/passwd' }],
    ['not true or false', 'action.name', {}],
  ])('%s is an error', (_what, when, parameters) => {
    expect(holds(when, parameters)).toBe('error');
  });

  test.each([
    ['acton.name == "x"', 'unknown name "acton" (did you mean action?)'],
    ['action.nam == "x"', '"action" has no member "nam" (did you mean name?)'],
    ['now.hour > 1', '"now" has no member "hour" (known: none)'],
    ['1 + 1', 'is of the type int, not true or false'],
    ['text(parameters).matches(action.name)', 'matches() needs one pattern, as text in quotes'],
    ['text(parameters).matches("(?=a)")', 'cannot be matched in linear time'],
    ['text(parameters).matches("a{2000}")', 'is too large'],
    ['action.name ==', 'cannot be evaluated'],
  ])('%s is refused when it is loaded', (when, message) => {
    expect(policyConditionIssue(when)).toContain(message);
    expect(holds(when)).toBe('error');
  });

  test("the library's own matches() is never reached, however the text is quoted", () => {
    const when = String.raw`r"\" == "x" || parameters.a.matches("(a+)+$")`;
    expect(holds(when, { a: 'a'.repeat(40) + '!' })).toBe('error');
  });

  test('text() has the names, strings and numbers of all levels, one per line', () => {
    const parameters = { list: [1, { 'a@b.c': true }, null], 'x y': 'two\nlines' };
    expect(holds(String.raw`text(parameters) == "list\n1\na@b.c\ntrue\nx y\ntwo\nlines"`, parameters)).toBe(true);
  });

  test('is charged: a search over much text ends at the limit, and a repeated evaluation is charged again', () => {
    const when = 'text(parameters).matches("(x|y)+z")';
    const subject = policySubject({ parameters: { text: 'x'.repeat(100_000) } });
    const once = new WorkMeter(limits.policySteps);
    expect(evaluatePolicyCondition(when, subject, once)).toEqual({ ok: true, value: false });
    expect(once.spent).toBeGreaterThan(100_000);
    const again = new WorkMeter(limits.policySteps);
    evaluatePolicyCondition(when, subject, again);
    expect(again.spent).toBeGreaterThan(0.9 * once.spent - 10_000);
    const little = new WorkMeter(1_000);
    expect(evaluatePolicyCondition(when, subject, little)).toMatchObject({
      ok: false,
      message: expect.stringContaining('too much work'),
    });
    expect(little.exceeded).toBe(true);
  });
});
