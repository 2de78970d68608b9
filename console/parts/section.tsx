/** A part of a page, with its heading. */
import type { ComponentChildren } from 'preact';

export function Section({
  title,
  actions,
  children,
}: {
  readonly title: string;
  readonly actions?: ComponentChildren;
  readonly children: ComponentChildren;
}) {
  return (
    <section>
      <header class="page-head">
        <h2>{title}</h2>
        {actions}
      </header>
      {children}
    </section>
  );
}
