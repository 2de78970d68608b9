/** Something that the reader decides or does for a run: what it is, all that belongs to it, and two answers. */
import type { ComponentChildren } from 'preact';
import { useId, useLayoutEffect, useRef } from 'preact/hooks';
import { showInvisible } from '../parts/safe-text.ts';
import { useTask } from '../parts/task.tsx';

interface AskCardProps {
  /** What is needed. */
  readonly title: string;
  readonly name: string;
  /** The second one refuses. @throws CortexError, which the card shows */
  readonly answers: readonly [Answer, Answer];
  /** What was answered: the buttons are gone, and their place stays. Null: nothing yet. */
  readonly answered?: string | null;
  readonly children: ComponentChildren;
}

type Answer = readonly [label: string, give: () => Promise<void>];

export function AskCard({ title, name, answers, answered = null, children }: AskCardProps) {
  const id = useId();
  const { isBusy, fault, run } = useTask();
  const card = useRef<HTMLElement>(null);
  const hasFocus = (): boolean => card.current?.contains(document.activeElement) === true;
  const hadFocus = hasFocus();
  // The button that was used is gone.
  useLayoutEffect(() => {
    if (hadFocus && !hasFocus()) card.current?.focus({ preventScroll: true });
  }, [answered]);
  useLayoutEffect(
    () => () => {
      const around = card.current?.parentElement?.closest<HTMLElement>('[tabindex]');
      if (hasFocus()) around?.focus({ preventScroll: true });
    },
    [],
  );
  return (
    <article class="card ask" aria-labelledby={id} ref={card} tabIndex={-1}>
      <h3 id={id}>
        {title}: <bdi>{showInvisible(name)}</bdi>
      </h3>
      {children}
      {fault}
      <div class="row answers">
        {answered ??
          answers.map(([label, give], index) => (
            <button
              key={label}
              type="button"
              class={index === 0 ? 'primary' : 'danger'}
              // A button that is disabled would lose the focus.
              aria-disabled={isBusy}
              onClick={() => void run(give)}
            >
              {label}
            </button>
          ))}
      </div>
    </article>
  );
}
