/** The problems or warnings of a text. */
import type { ComponentChildren } from 'preact';
import { List } from '../parts/bounded.tsx';

export function Issues<T>({
  title,
  isWarning = false,
  issues,
  children,
}: {
  readonly title: string;
  readonly isWarning?: boolean;
  readonly issues: readonly T[];
  readonly children: (issue: T) => ComponentChildren;
}) {
  if (issues.length === 0) return null;
  return (
    <>
      <h3>{title}</h3>
      <List items={issues}>
        {(issue, at) => (
          <li key={at} class={isWarning ? 'fault note' : 'fault'}>
            {children(issue)}
          </li>
        )}
      </List>
    </>
  );
}
