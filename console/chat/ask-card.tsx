/** Something that the reader decides or does for a run: what it is, all that belongs to it, and two answers. */
import type { ComponentChildren } from 'preact';
import { useId } from 'preact/hooks';
import { TextView } from '../parts/json-view.tsx';
import { showInvisible } from '../parts/safe-text.ts';
import { useTask } from '../parts/task.tsx';

interface AskCardProps {
  /** What is needed. */
  readonly title: string;
  readonly name: string;
  /** The second one refuses. @throws CortexError, which the card shows */
  readonly answers: readonly [Answer, Answer];
  readonly children: ComponentChildren;
}

type Answer = readonly [label: string, give: () => Promise<void>];

export function AskCard({ title, name, answers, children }: AskCardProps) {
  const id = useId();
  const { isBusy, fault, run } = useTask();
  return (
    <article class="card ask" aria-labelledby={id}>
      <h3 id={id}>
        {title}: <bdi>{showInvisible(name)}</bdi>
      </h3>
      {children}
      {fault}
      <div class="row">
        {answers.map(([label, give], index) => (
          <button
            key={label}
            type="button"
            class={index === 0 ? 'primary' : 'danger'}
            disabled={isBusy}
            onClick={() => void run(give)}
          >
            {label}
          </button>
        ))}
      </div>
    </article>
  );
}

interface ValuesProps {
  readonly title: string;
  readonly values: Readonly<Record<string, unknown>>;
}

/** Values for a person who decides about them: all of them, with nothing hidden. Text has its line breaks. */
export function Values({ title, values }: ValuesProps) {
  const entries = Object.entries(values);
  return (
    <>
      <h4>{title}</h4>
      {entries.length === 0 && <p class="quiet">None</p>}
      {entries.map(([key, value]) => {
        const name = showInvisible(key);
        const text = typeof value === 'string' ? value : JSON.stringify(value, null, 2);
        return (
          <div key={key}>
            <code class="quiet">{name}</code>
            <TextView text={showInvisible(text)} label={name} />
          </div>
        );
      })}
    </>
  );
}
