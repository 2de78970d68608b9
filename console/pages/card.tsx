/** An agent or a workflow in the list of all. */
import type { ComponentChildren } from 'preact';
import { href } from '../app/router.ts';
import { ForeignText } from '../parts/foreign-text.tsx';

export function Card({
  place,
  name,
  summary,
  children,
}: {
  readonly place: 'agents' | 'workflows';
  readonly name: string;
  readonly summary: string;
  readonly children: ComponentChildren;
}) {
  return (
    <li class="card">
      <h2>
        <a class="target" href={href([place, name])}>
          {name}
        </a>
      </h2>
      <p>
        <ForeignText text={summary} />
      </p>
      {children}
    </li>
  );
}
