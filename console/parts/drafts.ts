/** What is being written: it stays while other places are shown, and is gone when the key is forgotten (U6). */
import { signal } from '@preact/signals';
import type { Signal } from '@preact/signals';

const drafts = new Map<string, Signal<unknown>>();

/**
 * @param name of the place and what is written there: it decides the type as well
 * @param initial until something is written
 */
export function draft<T>(name: string, initial: T): Signal<T> {
  let written = drafts.get(name);
  if (written === undefined) {
    written = signal<unknown>(initial);
    drafts.set(name, written);
  }
  return written as Signal<T>;
}

export function forgetDrafts(): void {
  drafts.clear();
}
