/** Tells screen readers what happened, in one sentence each: never the text as it streams. */
import { signal } from '@preact/signals';

const said = signal('');

export function announce(sentence: string): void {
  // The same sentence again is a change as well.
  said.value = said.peek() === sentence ? `${sentence}\u00a0` : sentence;
}

export function Announcer() {
  return (
    <p class="visually-hidden" role="status">
      {said}
    </p>
  );
}
