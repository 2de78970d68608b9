/** Tool manifests of the original system. */
import type { Draft } from '../read/draft.ts';

export function understandTool(draft: Draft): void {
  describedReturns(draft);
}

/** `returns` as text describes the result. */
function describedReturns(draft: Draft): void {
  const returns = draft.get(['returns']);
  if (typeof returns !== 'string') return;
  draft.note(['returns'], 'text, understood as the description of the result');
  draft.set(['returns'], { description: returns });
}
