import { expect, test } from 'vitest';
import { steady } from '../../../console/chat/steady-approvals.ts';
import type { SteadyApproval } from '../../../console/chat/steady-approvals.ts';
import * as limits from '../../../console/parts/limits.ts';
import type { OpenApproval } from '../../../src/client/index.ts';

function open(...ids: string[]): OpenApproval[] {
  return ids.map((id) => ({ approval_id: id }) as OpenApproval);
}

/** `a` is open, `(a)` is over. */
function words(shown: readonly SteadyApproval[]): string {
  return shown.map(({ approval: { approval_id: id }, isOver }) => (isOver ? `(${id})` : id)).join(' ');
}

test('[U4] a request keeps its place while others are decided, and a new one is the last one', () => {
  let shown = steady([], open('a', 'b', 'c'));
  expect(words(shown)).toBe('a b c');
  shown = steady(shown, open('b', 'c'));
  expect(words(shown)).toBe('(a) b c');
  shown = steady(shown, open('new', 'c'));
  expect(words(shown)).toBe('(a) (b) c new');
  expect(words(steady(shown, []))).toBe('');
});

test('[U4] a list that is shown for long is bounded', () => {
  let shown: readonly SteadyApproval[] = [];
  for (let n = 0; n < limits.approvalsShown + 50; n += 1) shown = steady(shown, open(`a${n}`));
  expect(shown).toHaveLength(limits.approvalsShown);
  expect(shown.at(-1)?.isOver).toBe(false);
});
