/** The strictest rule of all lists (C9). */
import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { POLICY_DECISIONS } from '../../../src/domain/policy.ts';
import type { PolicyList } from '../../../src/domain/policy.ts';
import { WorkMeter } from '../../../src/domain/work.ts';
import { judge } from '../../../src/engine/policy/judge.ts';
import { policySubject } from '../../support/policy-subject.ts';

const conditions = {
  always: null,
  holds: 'action.name == "pay"',
  fails: 'action.name == "no"',
  errs: 'action.name > 1',
};

test('[C9] an error is a denial; otherwise the strictest of the rules that apply counts, in any order', () => {
  const rule = fc.record({
    when: fc.constantFrom(...(Object.keys(conditions) as (keyof typeof conditions)[])),
    do: fc.constantFrom(...POLICY_DECISIONS),
  });
  fc.assert(
    fc.property(fc.array(fc.array(rule, { maxLength: 4 }), { maxLength: 4 }), (lists) => {
      const written: PolicyList[] = lists.map((rules, at) => ({
        source: `list ${at}`,
        rules: rules.map(({ when, do: decision }) => ({ when: conditions[when], do: decision, message: null })),
      }));
      const applying = lists.flat().filter(({ when }) => when !== 'fails');
      const decisions = new Set(applying.map(({ when, do: decision }) => (when === 'errs' ? 'deny' : decision)));
      const expected = [...POLICY_DECISIONS].reverse().find((decision) => decisions.has(decision)) ?? null;
      expect(judge(written, policySubject(), new WorkMeter(1_000_000))?.decision ?? null).toBe(expected);
    }),
  );
});

test('[C9] the verdict names the first of the strictest rules', () => {
  const lists: PolicyList[] = [
    { source: 'deployment', rules: [{ when: null, do: 'allow', message: 'one' }] },
    {
      source: 'agent a',
      rules: [
        { when: null, do: 'ask', message: 'two' },
        { when: null, do: 'ask', message: 'three' },
      ],
    },
  ];
  expect(judge(lists, policySubject(), new WorkMeter(1_000_000))).toEqual({
    decision: 'ask',
    source: 'agent a',
    rule: 1,
    message: 'two',
  });
});
