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

  test('the quota error names the limit; replaced and failed outputs are not counted', () => {
    const results = new Results(() => null);
    const half = 'z'.repeat(limits.runOutcomeBytes / 4 - 2);
    for (const n of [0, 1, 2, 3]) expect(results.stageOutput(`1/${n}`, half)).toBeNull();
    expect(results.stageOutput('1/4', 1)).toEqual({
      code: 'outcome_quota',
      message: `The outputs of this run would exceed ${limits.runOutcomeBytes} bytes in total`,
      retryable: false,
    });
    // The output of another attempt takes the place of the one before.
    expect(results.stageOutput('1/0', half)).toBeNull();
    results.settle('1/0', { ...SETTLED, status: 'failed', note: 'no' }, 1);
    expect(results.get('1/0')).toMatchObject({ status: 'failed', output: null, note: 'no' });
    expect(results.stageOutput('1/4', half)).toBeNull();
    expect(results.stageOutput('1/5', 1)).toMatchObject({ code: 'outcome_quota' });
  });

  test.each([
    ['a text', (chars: number): string => 'y'.repeat(chars - 2), 'y'],
    ['another value', (chars: number): { t: string } => ({ t: 'y'.repeat(chars - 8) }), '{"t":"y'],
    ['a text of several bytes a character', (chars: number): string => 'é'.repeat((chars - 2) / 2), 'é'],
  ])('an output past its limit is cut and marked: %s', (_what, ofBytes, head) => {
    const results = new Results(() => null);
    const fits = ofBytes(limits.outcomeBytes);
    results.stageOutput('1/0', fits);
    expect(results.stagedOutput('1/0')).toBe(fits);
    results.stageOutput('1/0', ofBytes(limits.outcomeBytes + 2));
    const kept = String(results.stagedOutput('1/0'));
    const [text = '', marker] = kept.split('\n');
    expect(text.startsWith(head)).toBe(true);
    expect(text).toHaveLength(limits.outcomeBytes / 4);
    expect(marker).toBe(
      `[cut: the output had ${limits.outcomeBytes + 2} bytes; the first ${limits.outcomeBytes / 4} characters are kept]`,
    );
  });

  test('an action without a staged output has the output null', () => {
    const results = new Results(() => 'loaded');
    expect([results.stagedOutput('1/0'), results.get('1/0'), results.has('1/0')]).toEqual([null, null, false]);
    results.settle('1/0', SETTLED, 1);
    expect(results.get('1/0')).toEqual({ ...SETTLED, startedAt: null, output: null, seq: 1 });
    expect(results.has('1/0')).toBe(true);
  });

  test('the oldest outputs leave memory until the rest fits', () => {
    const loaded: number[] = [];
    const results = new Results((seq) => {
      loaded.push(seq);
      return `from ${seq}`;
    });
    const settle = (n: number, bytes: number): void => {
      results.stageOutput(`1/${n}`, 'x'.repeat(bytes - 2));
      results.settle(`1/${n}`, { ...SETTLED, id: `a${n}` }, n);
    };
    settle(1, limits.outcomesInMemoryBytes / 2);
    settle(2, limits.outcomesInMemoryBytes / 2);
    for (const n of [1, 2]) expect(results.get(`1/${n}`)?.output).toHaveLength(limits.outcomesInMemoryBytes / 2 - 2);
    settle(3, 100);
    expect(results.get('1/1')?.output).toBe('from 1');
    expect(results.get('1/2')?.output).toHaveLength(limits.outcomesInMemoryBytes / 2 - 2);
    settle(4, limits.outcomesInMemoryBytes - 100);
    expect(results.get('1/2')?.output).toBe('from 2');
    expect(results.get('1/3')?.output).toHaveLength(98);
    expect(results.get('1/4')?.output).toHaveLength(limits.outcomesInMemoryBytes - 102);
    expect(loaded).toEqual([1, 2]);
  });

  test('a result has the start of the first attempt and belongs to one iteration', () => {
    const results = new Results(() => null);
    results.started('1/0', 5);
    results.started('1/0', 9);
    expect([results.startedAt('1/0'), results.startedAt('1/1')]).toEqual([5, null]);
    for (const key of ['1/1', '1/0', '10/0', '2/1'] as const) results.settle(key, { ...SETTLED, id: key }, 1);
    expect(results.ofIteration(1).map(({ id, startedAt }) => [id, startedAt])).toEqual([
      ['1/1', null],
      ['1/0', 5],
    ]);
  });

  test('[M6] waiting for an id resolves with its result, also if the action is declared later', async () => {
    const results = new Results(() => null);
    const waiting = [results.settled('a'), results.settled('a')];
    results.stageOutput('1/0', 'out');
    results.settle('1/0', SETTLED, 1);
    for (const told of [...waiting, results.settled('a')]) {
      expect(await told).toMatchObject({ id: 'a', status: 'completed', output: 'out' });
    }
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
});
