/** Texts that are being written: they stay while other places are shown, and are gone when the key is forgotten (U6). */
import { signal } from '@preact/signals';
import type { Signal } from '@preact/signals';

const drafts = new Map<string, Signal<string>>();

/** @param name of the place and what is written there @param initial its text until something is written */
export function draft(name: string, initial = ''): Signal<string> {
  let text = drafts.get(name);
  if (text === undefined) {
    text = signal(initial);
    drafts.set(name, text);
  }
  return text;
}

export function forgetDrafts(): void {
  drafts.clear();
}
