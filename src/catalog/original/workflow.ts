/** Workflow manifests of the original system. */
import type { Draft } from '../read/draft.ts';

export function understandWorkflow(draft: Draft): void {
  schedule(draft);
}

/** `trigger.schedule` is the cron expression. */
function schedule(draft: Draft): void {
  if (typeof draft.get(['trigger', 'schedule']) !== 'string' || draft.has(['trigger', 'cron'])) return;
  draft.note(['trigger', 'schedule'], 'understood as trigger.cron');
  draft.move(['trigger', 'schedule'], ['trigger', 'cron']);
}
