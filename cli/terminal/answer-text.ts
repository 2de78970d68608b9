/** Writes the text of an answer while it grows. What the model thinks is left out; failed actions are told. */
import type { SessionEvent } from '../../src/domain/event.ts';
import { harmless, visible } from './visible.ts';

export class AnswerText {
  readonly #write: (text: string) => void;
  readonly #tell: (line: string) => void;
  /** Length of the written text of each block. */
  readonly #written = new Map<number, number>();
  /** The block at the end of the output. */
  #segment = -1;

  /** @param tell receives a line about an action that has failed */
  constructor(write: (text: string) => void, tell: (line: string) => void) {
    this.#write = write;
    this.#tell = tell;
  }

  take(event: SessionEvent): void {
    switch (event.type) {
      case 'response':
      case 'text':
        return this.#add(event.data.segment, event.data.offset, event.data.delta);
      case 'response_completed':
      case 'text_completed':
        // A block that was read from the journal had no patches.
        this.#add(event.data.segment, 0, event.data.content);
        return this.#endLine();
      case 'action_failed':
        this.#endLine();
        return this.#tell(visible(`${event.action_id} failed: ${event.data.error.code}: ${event.data.error.message}`));
      case 'action_rejected':
        this.#endLine();
        return this.#tell(visible(`${event.action_id} was rejected: ${event.data.code}: ${event.data.message}`));
    }
  }

  #add(segment: number, offset: number, delta: string): void {
    const written = this.#written.get(segment) ?? 0;
    const fresh = delta.slice(Math.max(0, written - offset));
    // A bare line break between two tags is no text.
    if (fresh === '' || (written === 0 && fresh.trim() === '')) return;
    if (segment !== this.#segment) this.#endLine();
    this.#segment = segment;
    this.#written.set(segment, Math.max(written, offset) + fresh.length);
    this.#write(harmless(fresh));
  }

  #endLine(): void {
    if (this.#segment !== -1) this.#write('\n');
    this.#segment = -1;
  }
}
