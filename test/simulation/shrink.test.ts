import { describe, expect, test } from 'vitest';
import { historyOf } from './arbitrary.ts';
import type { History, MessageScript } from './history.ts';
import { shrink } from './shrink.ts';
import { USUAL_ACTION, USUAL_AGENT, USUAL_GENERATION } from './usual.ts';

const USUAL_MESSAGE: MessageScript = {
  type: 'message',
  at: 0,
  ifBusy: 'queue',
  branch: null,
  repeats: false,
  via: null,
  files: [],
  generations: [USUAL_GENERATION],
};
const EMPTY: History = {
  order: 0,
  agent: USUAL_AGENT,
  messages: [USUAL_MESSAGE],
  decisions: [],
  requests: [],
  faults: [],
  seeded: [],
};

function actionsOf({ messages }: History) {
  return messages.flatMap(({ generations }) =>
    generations.flatMap(({ items }) => items.flatMap((item) => (item.type === 'action' ? [item.action] : []))),
  );
}

/** The first seed whose history has the failure. */
function failingHistory(fails: (history: History) => boolean): History {
  for (let seed = 1; ; seed += 1) {
    const history = historyOf(seed);
    if (fails(history)) return history;
  }
}

describe('shrink', () => {
  test('a history that always fails becomes the empty one', async () => {
    const shrunk = await shrink(historyOf(1), () => Promise.resolve(true));
    expect(shrunk).toMatchObject({ history: EMPTY, isMinimal: true });
  });

  test('a history whose simpler ones all pass is returned unchanged', async () => {
    const history = historyOf(1);
    const shrunk = await shrink(history, () => Promise.resolve(false));
    expect(shrunk).toMatchObject({ history, isMinimal: true });
  });

  test('what the failure needs is kept, with its smallest numbers; everything else goes', async () => {
    const fails = (history: History): boolean =>
      actionsOf(history).filter(({ target }) => target === 'unsafe').length >= 2 &&
      history.faults.some((fault) => fault.type === 'crash' && fault.call >= 17);
    const { history } = await shrink(failingHistory(fails), (candidate) => Promise.resolve(fails(candidate)));
    const unsafe = { type: 'action', action: { ...USUAL_ACTION, target: 'unsafe' } };
    expect(history.faults).toEqual([{ type: 'crash', life: 1, call: 17, keeps: 0 }]);
    expect(history.messages.flatMap(({ generations }) => generations.flatMap(({ items }) => items))).toEqual([
      unsafe,
      unsafe,
    ]);
    expect({ ...history, faults: [], messages: [] }).toEqual({ ...EMPTY, messages: [] });
  });

  test('two elements go together if each of them is needed by the other', async () => {
    const isEven = (history: History): boolean => actionsOf(history).length > 0 && actionsOf(history).length % 2 === 0;
    const items = Array.from({ length: 3 }, () => ({ type: 'action' as const, action: USUAL_ACTION }));
    const message = { ...USUAL_MESSAGE, generations: [{ ...USUAL_GENERATION, items }] };
    const start = { ...EMPTY, messages: [message, message] };
    const { history } = await shrink(start, (candidate) => Promise.resolve(isEven(candidate)));
    expect(actionsOf(history)).toHaveLength(2);
  });

  test('an element goes together with the calls that it makes before a crash', async () => {
    const fails = (history: History): boolean =>
      history.faults.some((fault) => fault.type === 'crash' && fault.call === 7 * actionsOf(history).length + 3);
    const items = Array.from({ length: 3 }, () => ({ type: 'action' as const, action: USUAL_ACTION }));
    const start: History = {
      ...EMPTY,
      messages: [{ ...USUAL_MESSAGE, generations: [{ ...USUAL_GENERATION, items }] }],
      faults: [{ type: 'crash', life: 1, call: 24, keeps: 0 }],
    };
    const { history } = await shrink(start, (candidate) => Promise.resolve(fails(candidate)));
    expect(history).toEqual({ ...EMPTY, faults: [{ type: 'crash', life: 1, call: 3, keeps: 0 }] });
  });

  test('a bound on the runs ends the search with the smallest history so far', async () => {
    const { runs, isMinimal } = await shrink(historyOf(1), () => Promise.resolve(true), { mostRuns: 3 });
    expect({ runs, isMinimal }).toEqual({ runs: 3, isMinimal: false });
  });
});
