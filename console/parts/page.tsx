/** The frame of a page that is not a session: a heading, an introduction, and sections. */
import type { ComponentChildren } from 'preact';

export function Page({
  title,
  about,
  actions,
  children,
}: {
  readonly title: string;
  /** One sentence: what the page shows. */
  readonly about?: ComponentChildren;
  readonly actions?: ComponentChildren;
  readonly children: ComponentChildren;
}) {
  return (
    <main id="main" class="page" tabIndex={-1}>
      <header class="page-head">
        <h1>{title}</h1>
        {actions}
      </header>
      {about !== undefined && <p class="quiet">{about}</p>}
      {children}
    </main>
  );
}
