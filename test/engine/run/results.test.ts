import { describe, expect, test } from 'vitest';
import { limits } from '../../../src/domain/limits.ts';
import { OutcomeReader } from '../../../src/engine/run/outcome-reader.ts';
import { Results } from '../../../src/engine/run/results.ts';
import { runText, sessionKit } from '../../support/session-kit.ts';

const SETTLED = {
  id: 'a',
  ordinal: 0,
  name: 'echo',
  silent: false,
  status: 'completed',
  note: null,
  endedAt: 1,
} as const;

describe('[J6] outcomes', () => {
  test('that do not fit in memory are read from the journal', () => {
    const big = 'x'.repeat(limits.outcomesInMemoryBytes / 2);
    const loaded: number[] = [];
    const results = new Results((seq) => {
      loaded.push(seq);
      return `from ${seq}`;
    });
    for (const n of [0, 1, 2]) {
      expect(results.stageOutput(`1/${n}`, big)).toBeNull();
      results.settle(`1/${n}`, SETTLED, n + 10);
    }
    expect([0, 1, 2].map((n) => results.get(`1/${n}`)?.output)).toEqual(['from 10', 'from 11', big]);
    expect(loaded).toEqual([10, 11]);
  });

  test('evicted from memory are read once per turn, for any number of names in any order', () => {
    const big = ['x'.repeat(limits.outcomesInMemoryBytes / 2)];
    const loaded: number[] = [];
    const outcomes = new OutcomeReader((seq) => {
      loaded.push(seq);
      return big;
    });
    const results = new Results((seq) => outcomes.at(seq));
    for (const n of [0, 1, 2]) {
      expect(results.stageOutput(`1/${n}`, big)).toBeNull();
      results.settle(`1/${n}`, SETTLED, n + 10);
    }
    for (let time = 0; time < 1_000; time += 1) for (const n of [0, 1, 2]) results.get(`1/${n}`);
    expect(loaded).toEqual([10, 11]);
  });

  test('past the quota of a run are refused', () => {
    const results = new Results(() => null);
    const output = 'z'.repeat(limits.outcomeBytes / 2 - 2);
    const refused = Array.from({ length: 6 }, (_, at) => results.stageOutput(`1/${at}`, output)?.code ?? null);
    expect(refused).toEqual([null, null, null, null, 'outcome_quota', 'outcome_quota']);
  });

  test('an output past its limit is cut and marked', () => {
    const results = new Results(() => null);
    results.stageOutput('1/0', { text: 'y'.repeat(limits.outcomeBytes) });
    const kept = String(results.stagedOutput('1/0'));
    expect(kept.length).toBeLessThan(limits.outcomeBytes);
    expect(kept).toMatch(/\[cut: the output had \d+ bytes/);
  });

  test('that repeat results stop at the quota of the run', async () => {
    const kit = await sessionKit();
    const echo = (id: string, parameters: object): string =>
      `<action type="tool" id="${id}">${JSON.stringify({ name: 'echo', parameters })}</action>`;
    const value = Array.from({ length: 8 }, () => '$a0.v').join('');
    const running = { done: false };
    const ended = runText(
      kit,
      echo('a0', { v: 'z'.repeat(900_000) }),
      ...Array.from({ length: 20 }, (_, n) => echo(`b${n}`, { v: value })),
      '<response final="true">$b19</response>',
    ).finally(() => (running.done = true));
    // Large parameters are resolved in several turns, with pauses.
    while (!running.done) {
      await new Promise(setImmediate);
      kit.clock.advance(limits.pauseMs);
    }
    const result = await ended;
    const codes = result.actions.flatMap(({ error }) => (error as { code?: string } | null)?.code ?? []);
    expect(codes.length).toBeGreaterThan(10);
    // Past the quota of references nothing is rendered.
    expect([...new Set(codes)]).toEqual(['reference_quota']);
    expect(result.response).toBe('[b19: failed]');
  });

  test('[P13] responses that repeat a large result are cut, and the run ends', async () => {
    const kit = await sessionKit();
    const large = { name: 'echo', parameters: { v: 'z'.repeat(900_000) } };
    const result = await runText(
      kit,
      `<action type="tool" id="a">${JSON.stringify(large)}</action>`,
      ...Array.from({ length: 40 }, () => '<response final="true">$a.v</response>'),
    );
    const chars = result.responses.reduce((sum, { content }) => sum + content.length, 0);
    expect(chars).toBeLessThan(limits.runResponseChars + limits.responseBytes + 10_000);
    expect(result.responses.at(-1)?.content).toContain('[response cut: the references of this run');
    expect(result.warnings).toContainEqual(expect.objectContaining({ code: 'truncated' }));
  });
});
