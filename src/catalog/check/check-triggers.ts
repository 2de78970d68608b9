/** Limits the number of schedules, and of workflows per event, in a catalogue (M6). */
import { limits } from '../../domain/limits.ts';
import type { WorkflowDefinition } from '../../domain/manifests/workflow.ts';
import type { FieldPath } from './problem.ts';

/** Maximum number of names in a message. */
const LISTED = 10;

export class TriggerCount {
  readonly #scheduled: string[] = [];
  readonly #byEvent = new Map<string, string[]>();

  /** @param bundled bundled workflows: they count for events, but their schedules are counted separately */
  constructor(bundled: readonly WorkflowDefinition[]) {
    for (const { name, trigger } of bundled) if (trigger.type === 'event') this.#workflowsFor(trigger.event).push(name);
  }

  /**
   * Counts a workflow, unless it exceeds a limit.
   *
   * @param isKept whether it is already stored: then it is counted and kept
   * @returns the issue, or null
   */
  admit(
    { name, trigger }: WorkflowDefinition,
    isKept: boolean,
  ): { readonly path: FieldPath; readonly message: string } | null {
    switch (trigger.type) {
      case 'scheduled': {
        const others = this.#scheduled;
        if (isKept || others.length < limits.schedules) others.push(name);
        else {
          const message = `"${name}" exceeds the maximum of ${limits.schedules} schedules in the catalogue: ${listed(others)}`;
          return { path: ['trigger'], message };
        }
        return null;
      }
      case 'event': {
        const others = this.#workflowsFor(trigger.event);
        if (isKept || others.length < limits.eventWorkflows) others.push(name);
        else {
          const message = `"${name}" exceeds the maximum of ${limits.eventWorkflows} workflows for the event "${trigger.event}": ${listed(others)}`;
          return { path: ['trigger', 'event'], message };
        }
        return null;
      }
      case 'manual':
      case 'webhook':
        return null;
    }
  }

  #workflowsFor(event: string): string[] {
    const found = this.#byEvent.get(event) ?? [];
    this.#byEvent.set(event, found);
    return found;
  }
}

function listed(names: readonly string[]): string {
  const more = names.length - LISTED;
  return names.slice(0, LISTED).join(', ') + (more > 0 ? ` and ${more} more` : '');
}
