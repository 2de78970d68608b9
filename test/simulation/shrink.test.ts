import { describe, expect, test } from 'vitest';
import { historyOf } from './arbitrary.ts';
import type { History } from './history.ts';
import { shrink } from './shrink.ts';
import { USUAL_ACTION, USUAL_AGENT, USUAL_GENERATION } from './usual.ts';

const EMPTY: History = {
  order: 0,
  agent: USUAL_AGENT,
  messages: [{ type: 'message', at: 0, ifBusy: 'queue', repeats: false, generations: [USUAL_GENERATION] }],
  decisions: [],
  requests: [],
  faults: [],
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

  test('a bound on the runs ends the search with the smallest history so far', async () => {
    const { runs, isMinimal } = await shrink(historyOf(1), () => Promise.resolve(true), { mostRuns: 3 });
    expect({ runs, isMinimal }).toEqual({ runs: 3, isMinimal: false });
  });
});
