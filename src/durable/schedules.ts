/** Which workflows the clock starts (M6). */
import type { WorkflowDefinition } from '../domain/manifest.ts';
import type { Schedule } from './objects/schedule-object.ts';

/** What is due by the clock. */
export function schedulesOf(workflows: readonly WorkflowDefinition[]): Schedule[] {
  return workflows.flatMap(({ name, trigger }): Schedule[] => {
    if (trigger.type !== 'scheduled') return [];
    const { cron, timezone, inputs } = trigger;
    return [{ workflow: name, cron, timezone, inputs }];
  });
}
