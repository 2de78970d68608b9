/** A message with its author. */
import type { ComponentChildren } from 'preact';
import { access } from '../app/access.ts';

const AUTHORS = { user: 'You', assistant: 'Agent', tool: 'Result of a tool' } as const;

interface MessageFrameProps {
  readonly role: keyof typeof AUTHORS;
  /** More of it is to come. */
  readonly isOpen?: boolean;
  /** Beside the author. */
  readonly head: ComponentChildren;
  readonly children: ComponentChildren;
}

export function MessageFrame({ role, isOpen = false, head, children }: MessageFrameProps) {
  const author = role === 'user' && access.value.mode === 'view' ? 'User' : AUTHORS[role];
  return (
    <article class={`message message-${role}`} aria-label={author} aria-busy={isOpen}>
      <header class="row message-head">
        <b>{author}</b>
        {head}
      </header>
      {children}
    </article>
  );
}
