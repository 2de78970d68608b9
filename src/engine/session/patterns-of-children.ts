/** The patterns of a session also bind the sessions that its actions and feeds start (C9). */
import type { Redaction } from '../../bounded/redaction.ts';
import type { ChildSessions } from '../../domain/ports/children.ts';

/** @param outgoingText null without patterns */
export function redactedChildren(children: ChildSessions, outgoingText: Redaction | null): ChildSessions {
  if (outgoingText === null) return children;
  const redact = outgoingText.sources;
  return { run: (child, observer) => children.run({ ...child, redact }, observer) };
}
