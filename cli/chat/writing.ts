/** When a question may be asked without interrupting a text. */
import type { SessionEvent } from '../../src/domain/event.ts';
import { CLOSES } from './screen.ts';

/** A block of text that waits for an action and does not grow for this time does not delay a question. */
const QUIET_MS = 500;

/** Whether the text of a generation is complete, so that a question does not interrupt it. */
export class Writing {
  #isGenerating = false;
  readonly #open = new Set<number>();
  #changedAt = 0;

  take({ type, data, seq }: SessionEvent): void {
    // `usage` ends each model call
    if (type === 'iteration_started') this.#isGenerating = true;
    else if (type === 'usage' || type === 'iteration_completed') this.#isGenerating = false;
    else if (type in CLOSES) this.#open.delete((data as { segment: number }).segment);
    else if (type === 'response_started' || type === 'thought_started' || type === 'text_started') this.#open.add(seq);
    else if (type !== 'response' && type !== 'thought' && type !== 'text') return;
    this.#changedAt = Date.now();
  }

  /** Milliseconds until a question may be asked; null: after another event. */
  get waitMs(): number | null {
    if (this.#isGenerating) return null;
    return this.#open.size === 0 ? 0 : Math.max(0, this.#changedAt + QUIET_MS - Date.now());
  }
}
