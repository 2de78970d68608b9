/** How many workflows of one catalogue the clock, or one event, may start (M6). */
import { limits } from '../../domain/limits.ts';
import type { WorkflowDefinition } from '../../domain/manifest.ts';
import type { FieldPath } from './problem.ts';

/** Names that a message lists. */
const LISTED = 10;

export class TriggerCount {
  readonly #scheduled: string[] = [];
  readonly #waiting = new Map<string, string[]>();

  /** @param common workflows that come with the system: an event starts them as well, their schedules are apart */
  constructor(common: readonly WorkflowDefinition[]) {
    for (const { name, trigger } of common) if (trigger.type === 'event') this.#waitingFor(trigger.event).push(name);
  }

  /**
   * Counts a workflow, unless it is one too many.
   *
   * @param isKept it was taken before: it counts, and stays
   * @returns what is wrong with it, or null
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
          const message = `"${name}" is one schedule too many: the catalogue has ${others.length} (allowed: ${limits.schedules}): ${listed(others)}`;
          return { path: ['trigger'], message };
        }
        return null;
      }
      case 'event': {
        const others = this.#waitingFor(trigger.event);
        if (isKept || others.length < limits.eventWorkflows) others.push(name);
        else {
          const message = `"${name}" is one workflow too many for the event "${trigger.event}": ${others.length} wait for it (allowed: ${limits.eventWorkflows}): ${listed(others)}`;
          return { path: ['trigger', 'event'], message };
        }
        return null;
      }
      case 'manual':
      case 'webhook':
        return null;
    }
  }

  #waitingFor(event: string): string[] {
    const found = this.#waiting.get(event) ?? [];
    this.#waiting.set(event, found);
    return found;
  }
}

function listed(names: readonly string[]): string {
  const more = names.length - LISTED;
  return names.slice(0, LISTED).join(', ') + (more > 0 ? ` and ${more} more` : '');
}
