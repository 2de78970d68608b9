import { seededOf } from '../seeded.ts';
import { factsOf } from './invariant.ts';
import type { Invariant } from './invariant.ts';

export const historyFirst: Invariant = {
  name: 'history first',
  holds:
    'A session exists with its whole seeded history, or not at all, and every request to the model shows it first.',
  *check(seen) {
    const { seeded } = seen.history;
    const expected = seeded.map((_, index) => `s${index}`).join(' ');
    for (const { at, message, call, marks } of factsOf(seen, 'model_called')) {
      if (marks === undefined) continue;
      const shown = marks.filter((mark) => mark.startsWith('s')).join(' ');
      if (shown !== expected) {
        yield `at ${at} ms, the request of message ${message}, generation ${call}, shows the history [${shown}] (expected: [${expected}])`;
      }
      const firstMessage = marks.findIndex((mark) => mark.startsWith('m'));
      const lastSeeded = marks.findLastIndex((mark) => mark.startsWith('s'));
      if (firstMessage >= 0 && lastSeeded > firstMessage) {
        yield `at ${at} ms, the request of message ${message}, generation ${call}, shows ${marks.join(' ')}`;
      }
    }
    const rows = seededOf(seeded).length;
    for (const { at, exists, messages } of factsOf(seen, 'stored')) {
      const needed = exists ? rows : 0;
      if (messages !== needed) {
        yield `at ${at} ms, ${exists ? 'the session' : 'no session'} is stored with ${messages} messages of its history (expected: ${needed})`;
      }
    }
  },
};
