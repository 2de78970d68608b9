/** Tool manifests of the original system. */
import type { Draft } from '../read/draft.ts';
import { isFeedDocument, understandFeedDocument } from './feed-document.ts';
import { understandProgram } from './program.ts';

export function understandTool(draft: Draft): void {
  if (isFeedDocument(draft.value)) understandFeedDocument(draft);
  understandProgram(draft);
  describedReturns(draft);
}

/** `returns` as text describes the result. */
function describedReturns(draft: Draft): void {
  const returns = draft.get(['returns']);
  if (typeof returns !== 'string') return;
  draft.note(['returns'], 'text, understood as the description of the result');
  draft.set(['returns'], { description: returns });
}
