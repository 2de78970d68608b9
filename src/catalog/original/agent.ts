/** Agent manifests of the original system. */
import type { Draft } from '../read/draft.ts';

export function understandAgent(draft: Draft): void {
  iterationCap(draft);
}

/** The original has `iteration_cap` at the top level. */
function iterationCap(draft: Draft): void {
  if (!draft.has(['iteration_cap']) || draft.has(['loop', 'max_iterations'])) return;
  draft.note(['iteration_cap'], 'understood as loop.max_iterations');
  draft.move(['iteration_cap'], ['loop', 'max_iterations']);
}
