/** Code that the first view does without: a script of its own, loaded when it is needed for the first time. */
import { signal } from '@preact/signals';
import type { ReadonlySignal } from '@preact/signals';

export interface Later<T> {
  /** Null until it is there. A component that reads it is rendered again then. */
  readonly code: ReadonlySignal<T | null>;
  /** Why it is not there; null: it is there, or still loading. */
  readonly fault: ReadonlySignal<unknown>;
  /** Loads it, if it is neither there nor on its way. */
  readonly load: () => void;
}

export function later<T>(read: () => Promise<T>): Later<T> {
  const code = signal<T | null>(null);
  const fault = signal<unknown>(null);
  let isAsked = false;
  const load = async (): Promise<void> => {
    if (isAsked) return;
    isAsked = true;
    fault.value = null;
    try {
      code.value = await read();
    } catch (error) {
      isAsked = false;
      fault.value = error;
    }
  };
  return { code, fault, load: () => void load() };
}
