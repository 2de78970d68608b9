import { describe, expect, test } from 'vitest';
import * as limits from '../../../console/parts/limits.ts';
import { Replay, play, positionOf } from '../../../console/run/replay.ts';
import { eventsOf, planned, queued, ran, sorted, START, started, traceOf } from './events.ts';

describe('[U3] the trace of a run', () => {
  test('an action has its times, attempts and retries', () => {
    const error = { code: 'timeout', message: 'late', retryable: true };
    const trace = traceOf(
      eventsOf(
        ...started(),
        queued(10, 'a'),
        [20, 'action_started', { attempt: 1, parameters: { message: 'resolved' } }, 'a'],
        [50, 'action_retrying', { attempt: 1, delay_ms: 30, error }, 'a'],
        [85, 'action_started', { attempt: 2 }, 'a'],
        [100, 'action_completed', { output: 1, ms: 80, attempt: 2 }, 'a'],
      ),
    );
    expect(trace.action('1.a')).toMatchObject({
      status: 'completed',
      queuedAt: START + 10,
      endedAt: START + 100,
      written: { parameters: { message: 'a' } },
      executed: { message: 'resolved' },
      output: 1,
      error: null,
      attempts: [
        { attempt: 1, startedAt: START + 20, endedAt: START + 50, error, retryDelayMs: 30 },
        { attempt: 2, startedAt: START + 85, endedAt: START + 100, error: null, retryDelayMs: null },
      ],
    });
  });

  test('[J8] [C3] waits for people and clients are not attempts', () => {
    const events = eventsOf(
      ...started(),
      queued(0, 'a'),
      [5, 'approval_requested', { approval_id: 'x', complete: true }, 'a'],
      [5, 'agent_waiting', { reason: 'approvals', iterations: 1 }],
      [105, 'approval_resolved', { approval_id: 'x', approved: true }, 'a'],
      [106, 'client_tool_called', { call_id: 'c', name: 'echo', parameters: { y: 1 } }, 'a'],
      [206, 'client_tool_settled', { call_id: 'c', status: 'completed' }, 'a'],
      [207, 'action_completed', { output: 1, ms: 101, attempt: 1 }, 'a'],
    );
    const statuses = events.map(({ seq }) => {
      const trace = traceOf(events, seq ?? 0);
      return [trace.status, trace.action('1.a')?.status].join(' ');
    });
    expect(statuses.slice(2)).toEqual([
      'running queued',
      'running waiting',
      'waiting waiting',
      'running queued',
      'running waiting',
      'running queued',
      'running completed',
    ]);
    expect(traceOf(events).action('1.a')?.waits).toEqual([
      { for: 'approval', from: START + 5, to: START + 105 },
      { for: 'client tool', from: START + 106, to: START + 206 },
    ]);
  });

  test('[J8] an attempt that ends with a question has ended; the next one begins after the answer', () => {
    const action = traceOf(
      eventsOf(
        ...started(),
        queued(0, 'a'),
        [1, 'action_started', { attempt: 1 }, 'a'],
        [5, 'approval_requested', { approval_id: 'x', complete: true, question: { from: 'x', message: 'y' } }, 'a'],
        [105, 'approval_resolved', { approval_id: 'x', approved: true }, 'a'],
        [106, 'action_started', { attempt: 2 }, 'a'],
        [110, 'action_completed', { output: 1, ms: 8, attempt: 2 }, 'a'],
      ),
    ).action('1.a');
    expect(action?.attempts.map(({ startedAt, endedAt }) => [startedAt, endedAt])).toEqual([
      [START + 1, START + 5],
      [START + 106, START + 110],
    ]);
    expect(action?.waits).toEqual([{ for: 'approval', from: START + 5, to: START + 105 }]);
  });

  test('a dependency is the action of this iteration, or the newest of the earlier ones', () => {
    const trace = traceOf(
      eventsOf(
        ...started(),
        queued(1, 'a'),
        [5, 'iteration_started', { iteration: 2 }, undefined, 2],
        queued(6, 'b', ['a'], 'async', 2),
        [7, 'iteration_started', { iteration: 3 }, undefined, 3],
        queued(8, 'a', [], 'async', 3),
        queued(9, 'c', ['a', 'b', 'd'], 'async', 3),
        queued(10, 'd', [], 'async', 3),
      ),
    );
    const keys = (actions: readonly { readonly key: string }[] = []): string[] => actions.map(({ key }) => key);
    expect(keys(trace.action('2.b')?.dependencies)).toEqual(['1.a']);
    expect(keys(trace.action('3.c')?.dependencies)).toEqual(['3.a', '2.b', '3.d']);
    expect(keys(trace.action('3.d')?.dependents)).toEqual(['3.c']);
  });

  test('[P6] the id of a rejected action is free again', () => {
    const rejection = { code: 'duplicate_id', message: 'no', type: 'tool', mode: 'async' };
    const trace = traceOf(eventsOf(...started(), [1, 'action_rejected', rejection, 'a'], queued(2, 'a')));
    expect(trace.actions.map(({ key, status }) => `${key} ${status}`)).toEqual(['1.a!3 rejected', '1.a queued']);
    expect(trace.failures).toBe(1);
  });

  test('the generation ends with its plan, or with the iteration if there is none', () => {
    const trace = traceOf(
      eventsOf(
        ...started(),
        queued(10, 'a'),
        planned(40, [['a']]),
        ...ran(11, 90, 'a'),
        [95, 'iteration_completed', { iteration: 1, final: false }],
        [96, 'iteration_started', { iteration: 2 }, undefined, 2],
        [99, 'iteration_completed', { iteration: 2, final: true }, undefined, 2],
      ),
    );
    expect(trace.iterations.map(({ generationEnd }) => generationEnd)).toEqual([START + 40, START + 99]);
  });

  test('tokens and cost are summed up while the run goes on', () => {
    const usage = { prompt_tokens: 10, completion_tokens: 3, cached_tokens: 2 };
    const { totals } = traceOf(eventsOf(...started(), [1, 'usage', { ...usage, cost: 0.5 }], [2, 'usage', usage]));
    expect(totals).toEqual({ prompt: 20, completion: 6, cached: 4, cost: 0.5, isEstimated: false });
  });

  test('live output is bounded', () => {
    const text = 'x'.repeat(10_000);
    const pieces = Array.from({ length: 100 }, () => [2, 'progress', { stream: 'stdout', text }, 'a'] as const);
    const action = traceOf(eventsOf(...started(), queued(1, 'a'), ...pieces)).action('1.a');
    expect(action?.progress.length).toBeGreaterThanOrEqual(limits.progressChars);
    expect(action?.progress.length).toBeLessThan(limits.progressChars * 1.5);
  });

  test('the session of a sub-agent is known from its progress', () => {
    const event = { session_id: 'ses_child', type: 'agent_started' };
    const trace = traceOf(eventsOf(...started(), queued(1, 'a'), [2, 'progress', { event }, 'a']));
    expect(trace.action('1.a')?.childSessionId).toBe('ses_child');
  });
});

const EVENTS = sorted([
  ...started(),
  queued(10, 'a'),
  queued(20, 'b', ['a']),
  ...ran(11, 100, 'a'),
  ...ran(101, 5_000, 'b'),
  [5_001, 'agent_completed', { response: 'done', iterations: 1 }, undefined, 0],
]);

describe('[U3] a replay', () => {
  test.each(EVENTS.map(({ seq }) => seq ?? 0))('shows the run after event %i, from wherever one comes', (seq) => {
    const replay = new Replay(EVENTS);
    for (const from of [0, 3, EVENTS.length, seq]) replay.at(from);
    expect(replay.at(seq)).toEqual(traceOf(EVENTS, seq));
  });

  test.each([
    [0, 0],
    [1, 0],
    [3, 2],
    [99, EVENTS.length - 1],
  ])('event %i is at position %i', (seq, position) => {
    expect(positionOf(EVENTS, seq)).toBe(position);
  });

  test('passes time as it was, but no long gap', () => {
    const at = (id: string, type: string): number =>
      EVENTS.findIndex((event) => event.type === type && event.action_id === id);
    expect(play(EVENTS, 0, 0).position).toBe(1);
    expect(play(EVENTS, 1, 9)).toEqual({ position: 1, restMs: 9 });
    expect(play(EVENTS, 1, 10)).toEqual({ position: at('a', 'action_queued'), restMs: 0 });
    // 4.9 seconds of the real run.
    expect(play(EVENTS, at('b', 'action_started'), limits.replayGapMs).position).toBe(at('b', 'action_completed'));
    expect(play(EVENTS, 0, 1e9)).toEqual({ position: EVENTS.length - 1, restMs: 0 });
  });
});
