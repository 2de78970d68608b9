import { describe, expect, test } from 'vitest';
import { limits } from '../../src/domain/limits.ts';
import { Results } from '../../src/engine/results.ts';
import { runText, sessionKit } from '../support/session-kit.ts';

const SETTLED = { id: 'a', name: 'echo', silent: false, status: 'completed', note: null, endedAt: 1 } as const;

describe('[J6] outcomes', () => {
  test('what does not fit in memory is read from the journal', () => {
    const big = 'x'.repeat(limits.outcomesInMemoryBytes / 2);
    const loaded: number[] = [];
    const results = new Results((seq) => {
      loaded.push(seq);
      return `from ${seq}`;
    });
    for (const n of [0, 1, 2]) {
      expect(results.offer(`1/${n}`, big)).toBeNull();
      results.settle(`1/${n}`, SETTLED, n + 10);
    }
    expect([0, 1, 2].map((n) => results.get(`1/${n}`)?.output)).toEqual(['from 10', 'from 11', big]);
    expect(loaded).toEqual([10, 11]);
  });

  test('an output past its limit is cut, with a marker', () => {
    const results = new Results(() => null);
    results.offer('1/0', { text: 'y'.repeat(limits.outcomeBytes) });
    const kept = String(results.offered('1/0'));
    expect(kept.length).toBeLessThan(limits.outcomeBytes);
    expect(kept).toMatch(/\[cut: the output had \d+ bytes/);
  });

  test('results that repeat results cannot grow without end: the run has a quota', async () => {
    const kit = await sessionKit();
    const echo = (id: string, parameters: object): string =>
      `<action type="tool" id="${id}">${JSON.stringify({ name: 'echo', parameters })}</action>`;
    const value = Array.from({ length: 8 }, () => '$a0.v').join('');
    const result = await runText(
      kit,
      echo('a0', { v: 'z'.repeat(900_000) }),
      ...Array.from({ length: 20 }, (_, n) => echo(`b${n}`, { v: value })),
      '<response final="true">$b19</response>',
    );
    const failed = result.actions.filter(({ status }) => status === 'failed');
    expect(failed.length).toBeGreaterThan(10);
    expect(failed[0]?.error).toMatchObject({ code: 'outcome_quota' });
    expect(result.response).toBe('[b19: failed]');
  });
});
