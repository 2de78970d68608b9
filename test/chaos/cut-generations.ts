/**
 * Generations during which the Worker is killed: their model has written a part of the text, often of a tag, and waits.
 *
 * Invariant: a generation waits until the connection is lost, at most `MOST_MS`.
 */
import { setTimeout as delay } from 'node:timers/promises';
import type { ServerResponse } from 'node:http';
import { limits } from '../../src/domain/limits.ts';
import { closed } from './loopback.ts';

/** The text is saved by then, so that the next host reads it. */
const SAVED_MS = limits.unsavedTextMs + 300;
const MOST_MS = 15_000;

export class CutGenerations {
  #ready = 0;
  /** How many were cut off by a kill. */
  lost = 0;

  /** Whether one waits for its kill. */
  get areReady(): boolean {
    return this.#ready > 0;
  }

  /** Resolves when the Worker was killed, or after a time. */
  async wait(response: ServerResponse): Promise<void> {
    const isLost = closed(response);
    await Promise.race([delay(SAVED_MS), isLost]);
    if (!response.destroyed) {
      this.#ready += 1;
      await Promise.race([delay(MOST_MS), isLost]);
      this.#ready -= 1;
    }
    if (response.destroyed) this.lost += 1;
  }
}
