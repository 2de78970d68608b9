import { describe, expect, test } from 'vitest';
import { describeAction, overhead, summaryOf, targetOf } from '../../../console/run/describe.ts';
import { axisMs, ticks } from '../../../console/run/time-scale.ts';
import { eventsOf, queued, ran, START, started, traceOf } from './events.ts';

describe('[U2] the words of the run view', () => {
  test('an action is read as its id, target, status and duration', () => {
    const trace = traceOf(eventsOf(...started(), queued(0, 'a'), queued(0, 'b'), ...ran(5, 325, 'a')));
    const words = trace.actions.map((action) => describeAction(action, START + 400));
    expect(words).toEqual(['a, tool echo, completed, 320 ms', 'b, tool echo, queued']);
  });

  test.each([
    ['tool', 'web_fetch', 'tool web_fetch'],
    ['python', 'python', 'python'],
    [null, 'x', 'x'],
    [null, null, 'action'],
  ])('%s %s', (type, name, words) => {
    expect(targetOf({ written: { type }, name })).toBe(words);
  });

  test.each([
    [345, 342, '+0.9 %'],
    [100, 100, '+0.0 %'],
    [99, 100, '-1.0 %'],
    [100, 0, null],
    [60, 49, null],
  ])('%i ms above a bound of %i ms is %s', (actual, bound, words) => {
    expect(overhead(actual, bound)).toBe(words);
  });

  test('an event is one line, whatever it contains', () => {
    const output = { text: 'x\n'.repeat(100_000), list: Array.from({ length: 10_000 }, () => 'y') };
    const error = { code: 'timeout', message: 'too late', retryable: true };
    const lines = eventsOf(
      [0, 'action_completed', { output, ms: 5, attempt: 1 }, 'a'],
      [1, 'text_completed', { segment: 1, content: 'a\nb '.repeat(1_000) }],
      [2, 'action_failed', { error, attempt: 1, ms: 5 }, 'b'],
      [3, 'warning', { code: 'repaired', message: 'one comma' }],
      [4, 'thought_started', {}],
    ).map((event) => summaryOf(event));
    for (const line of lines) expect(line).toMatch(/^[^\n]{0,241}$/);
    expect(lines[0]).toMatch(/^\{"output":\{"text":"x\\nx/);
    expect(lines[1]).toMatch(/^a b a b /);
    expect(lines.slice(2)).toEqual(['timeout: too late', 'repaired: one comma', '']);
  });
});

describe('[U3] the axis of the timeline', () => {
  test.each([
    [1_000, 5, ['0 ms', '200 ms', '400 ms', '600 ms', '800 ms', '1 s']],
    [3_100, 7, ['0 ms', '500 ms', '1 s', '1.50 s', '2 s', '2.50 s', '3 s']],
    [200_000, 4, ['0 ms', '1 min', '2 min', '3 min']],
    [4 * 3_600_000, 4, ['0 ms', '1 h', '2 h', '3 h', '4 h']],
    [30 * 86_400_000, 6, ['0 ms', '5 days', '10 days', '15 days', '20 days', '25 days', '30 days']],
  ])('%i ms with at most %i ticks', (lengthMs, most, labels) => {
    expect(ticks(lengthMs, most).map(({ label }) => label)).toEqual(labels);
  });

  test.each([0, 1, 399, 400, 5_000, 1e9, 1e13])('%i ms fit on it, with a bounded number of ticks', (totalMs) => {
    for (const isLive of [true, false]) {
      const length = axisMs(totalMs, isLive);
      expect(length).toBeGreaterThanOrEqual(totalMs);
      expect(length).toBeLessThan(totalMs * 1.8 + 800);
      expect(ticks(length, 8).length).toBeLessThanOrEqual(9);
    }
  });

  test('while a run is live, the axis rarely changes', () => {
    const lengths = new Set(Array.from({ length: 1_000 }, (_, index) => axisMs(index * 10, true)));
    expect(lengths.size).toBeLessThan(20);
  });
});
