import type { Invariant } from './invariant.ts';

export const exportedSpans: Invariant = {
  name: 'exported spans',
  holds: 'At the end, the collector has each span of the session at least once, and every copy of a span is the same.',
  *check({ exported }) {
    if (exported === null) return;
    const { expected, received } = exported;
    const copies = new Map<string, string>();
    for (const { spanId, text } of received) {
      const before = copies.get(spanId) ?? text;
      if (before !== text) yield `the span ${spanId} was ${before}, and then ${text}`;
      copies.set(spanId, text);
    }
    for (const { spanId, text } of expected) {
      const copy = copies.get(spanId);
      if (copy === undefined) yield `not exported: ${text}`;
      else if (copy !== text) yield `exported as ${copy} (expected: ${text})`;
    }
  },
};
