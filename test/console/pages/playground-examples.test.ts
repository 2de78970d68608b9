/** The examples of the playground show what they say (U5). */
import { expect, test } from 'vitest';
import { EXAMPLES } from '../../../console/pages/playground-examples.ts';
import { bundled } from '../../support/bundled.ts';
import { planText } from '../../../src/dry-run/dry-run.ts';

const plans = new Map(EXAMPLES.map(({ title, text }) => [title, planText(text, bundled.agent('assistant'))]));

test('[U5] all but one are without a mistake', () => {
  expect(plans.size).toBeGreaterThan(2);
  for (const [title, { rejected, warnings }] of plans) {
    if (title !== 'Rejected') expect([title, rejected, warnings]).toEqual([title, [], []]);
  }
});

test.each([
  ['Dependency', [['hotel', 'train'], ['sum'], ['report']]],
  ['Retry', [['shaky', 'steady']]],
])('[U5] the waves of "%s"', (title, waves) => {
  expect(plans.get(title)?.waves).toEqual(waves);
});

test('[U5] one has rejected actions of several kinds, and a warning', () => {
  expect(plans.get('Rejected')).toMatchObject({
    rejected: [{ code: 'duplicate_id' }, { code: 'unknown_dependency' }],
    warnings: [{ code: 'unknown_name' }],
  });
});
