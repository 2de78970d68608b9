/** Actions that the client executes: stages, slots, parking, time-outs, cancels (C3). */
import { describe, expect, test } from 'vitest';
import { limits } from '../../src/domain/limits.ts';
import { isAtRest, statusOf } from '../../src/scheduler/step.ts';
import { commands } from './commands.ts';
import { Driver, TEXT } from '../support/scheduler-kit.ts';

const CLIENT = { byClient: true as const, effects: 'unsafe' as const, timeoutMs: limits.clientToolMs };
const DAY = limits.clientToolMs;

/** A program whose text has ended. */
function parked(...ids: string[]): Driver {
  const run = new Driver(TEXT);
  for (const id of ids) run.declare({ id }, CLIENT);
  run.end();
  for (const id of ids) run.called(id);
  return run;
}

describe('[C3] a call of a client', () => {
  test('begins when the dependencies have settled, with its own time-out', () => {
    const run = new Driver(TEXT);
    run.declare({ id: 'first' });
    expect(run.declare({ id: 'a', dependsOn: ['first'], timeoutMs: 5 }, CLIENT)).toEqual(['queue a [first]']);
    expect(run.succeed('first')).toEqual(
      commands(`clear_timer timeout:first#1, settle first completed, call_client a, set_timer client:a ${DAY}`),
    );
    expect(statusOf(run.state, run.key('a'))).toBe('waiting');
    expect(run.called('a')).toEqual([]);
    expect(statusOf(run.state, run.key('a'))).toBe('awaiting_client');
  });

  test('begins after its approval', () => {
    const run = new Driver(TEXT);
    run.declare({ id: 'a' }, { ...CLIENT, needsApproval: true });
    expect(run.approve('a')).toEqual(['clear_timer approval:a', 'call_client a', `set_timer client:a ${DAY}`]);
  });

  test('uses no slot, however many there are, and ignores the concurrency of its target', () => {
    const run = new Driver({ ...TEXT, maxParallelActions: 1 });
    const called = ['a', 'b', 'c'].flatMap((id) => run.declare({ id }, { ...CLIENT, concurrency: 1 }));
    expect(called.filter((command) => command.startsWith('call_client'))).toHaveLength(3);
    expect(run.declare({ id: 'other' })).toContain('start other');
  });

  test('parks the run once it is shown, without a timer of the run; the result continues it', () => {
    const run = new Driver(TEXT);
    run.declare({ id: 'a' }, CLIENT);
    expect(run.end()).toEqual(['report_plan 1']);
    expect(run.called('a')).toEqual(['clear_timer budget', 'end_run waiting']);
    expect(isAtRest(run.state)).toBe(true);
    expect(run.succeed('a')).toEqual(
      commands(
        'set_timer budget 3600000, clear_timer client:a, settle a completed, complete_iteration 1 final, clear_timer budget, end_run completed, drained',
      ),
    );
  });

  test('[P6] what waits for a call with its idempotency key does not keep the run from parking', () => {
    const shared = { ...CLIENT, reuse: true as const };
    for (const mode of ['async', 'fire_and_forget'] as const) {
      const run = new Driver(TEXT);
      run.declare({ id: 'a', idempotencyKey: 'k' }, shared);
      run.declare({ id: 'b', idempotencyKey: 'k', mode }, shared);
      run.recalled('a', 'nothing');
      run.end();
      expect(run.called('a')).toEqual(['clear_timer budget', 'end_run waiting']);
      expect(isAtRest(run.state)).toBe(true);
      expect(statusOf(run.state, run.key('b'))).toBe('waiting');
      const isAwaited = mode === 'async';
      expect(run.succeed('a').includes('end_run completed')).toBe(!isAwaited);
      expect(isAtRest(run.state)).toBe(false);
      expect(run.recalled('b', 'outcome')).toContain('settle b completed');
    }
  });

  test('[P6] one that is declared, or judged, later waits as well; another answer continues the run', () => {
    const shared = { ...CLIENT, reuse: true as const };
    const run = new Driver(TEXT);
    run.declare({ id: 'a', idempotencyKey: 'k' }, shared);
    run.recalled('a', 'nothing');
    run.called('a');
    run.declare({ id: 'b', idempotencyKey: 'k' }, shared);
    run.declare({ id: 'other', idempotencyKey: 'other' });
    run.end();
    expect(run.succeed('other')).toContain('end_run waiting');
    expect(run.recalled('b', 'outcome')).toEqual(
      commands('set_timer budget 3600000, settle b completed, clear_timer budget, end_run waiting'),
    );
  });

  test('the time of the wait does not count for the budget', () => {
    const run = parked('a');
    run.at += 10 * DAY;
    expect(run.succeed('a')[0]).toBe('set_timer budget 3600000');
  });

  test('parks again while others are open', () => {
    const run = parked('a', 'b');
    expect(run.succeed('a')).toEqual(
      commands(
        'set_timer budget 3600000, clear_timer client:a, settle a completed, clear_timer budget, end_run waiting',
      ),
    );
  });

  test('is settled once: a second result, another attempt and a late timer change nothing', () => {
    const run = parked('a', 'b');
    expect(run.succeed('a', 2)).toEqual([]);
    run.succeed('a');
    expect([run.succeed('a'), run.fail('a'), run.fire('client:a'), run.called('a')]).toEqual([[], [], [], []]);
  });

  test('a failure is never retried, whatever it says', () => {
    const run = new Driver(TEXT);
    run.declare({ id: 'a', onError: 'retry' }, { ...CLIENT, effects: 'pure' });
    run.declare({ id: 'b', dependsOn: ['a'] });
    run.called('a');
    expect(run.fail('a', { retryable: true })).toEqual(
      commands('clear_timer client:a, settle a failed boom, settle b skipped a'),
    );
  });

  test.each([
    ['before it was shown', false, ['abort a timeout']],
    ['while it is open', true, []],
  ])('expires %s as a failure', (_when, isShown, first) => {
    const run = new Driver(TEXT);
    run.declare({ id: 'a' }, CLIENT);
    if (isShown) run.called('a');
    expect(run.fire('client:a')).toEqual([...first, 'clear_timer client:a', 'settle a failed timeout']);
  });

  test('expires in a parked run, which continues', () => {
    const run = parked('a');
    expect(run.fire('client:a')).toContain('end_run completed');
  });

  test('is cancelled with the run, and a call that is being checked is aborted', () => {
    const run = new Driver(TEXT);
    run.declare({ id: 'a' }, CLIENT);
    run.declare({ id: 'b' }, CLIENT);
    run.called('b');
    expect(run.cancel()).toEqual([
      'stop_generation',
      'abort a user',
      'clear_timer client:a',
      'settle a cancelled user',
      'clear_timer client:b',
      'settle b cancelled user',
      'complete_iteration 1',
      'clear_timer budget',
      'end_run cancelled',
      'drained',
    ]);
  });

  test('an approval and a call keep the run parked together', () => {
    const run = new Driver(TEXT);
    run.declare({ id: 'a' }, CLIENT);
    run.declare({ id: 'b' }, { needsApproval: true });
    run.called('a');
    expect(run.end()).toEqual(['report_plan 1', 'clear_timer budget', 'end_run waiting']);
    expect(run.approve('b', false)).toContain('end_run waiting');
    expect(run.succeed('a')).toContain('end_run completed');
  });

  test('a workflow that writes no more until a result arrives is parked', () => {
    const run = new Driver(TEXT);
    run.declare({ id: 'a' }, CLIENT);
    run.called('a');
    expect(run.say({ type: 'generation_idle' })).toEqual(['clear_timer budget', 'end_run waiting']);
  });

  test('as a sync action it is a barrier', () => {
    const run = new Driver(TEXT);
    run.declare({ id: 'a', mode: 'sync' }, CLIENT);
    run.called('a');
    expect(run.declare({ id: 'b' })).toEqual(['queue b []']);
    expect(run.succeed('a')).toContain('start b');
  });
});

describe('[C3] a fire_and_forget call', () => {
  const ended = (): Driver => {
    const run = new Driver(TEXT);
    run.declare({ id: 'a', mode: 'fire_and_forget' }, CLIENT);
    run.called('a');
    run.end();
    return run;
  };

  test('does not keep the run from ending, and is settled afterwards', () => {
    const run = ended();
    expect(run.commands.map((command) => run.text(command))).toContain('end_run completed');
    expect(isAtRest(run.state)).toBe(true);
    expect(run.succeed('a')).toEqual(['clear_timer client:a', 'settle a completed', 'drained']);
  });

  test('a run that ended is not at rest while another background action runs', () => {
    const run = new Driver(TEXT);
    run.declare({ id: 'a', mode: 'fire_and_forget' }, CLIENT);
    run.called('a');
    run.declare({ id: 'b', mode: 'fire_and_forget' });
    run.end();
    expect(isAtRest(run.state)).toBe(false);
    run.succeed('b');
    expect(isAtRest(run.state)).toBe(true);
  });

  test('an action that needs it makes it async, and the counters follow', () => {
    const run = new Driver(TEXT);
    run.declare({ id: 'a', mode: 'fire_and_forget' }, CLIENT);
    run.declare({ id: 'b', dependsOn: ['a'] });
    run.called('a');
    expect(run.end()).toContain('end_run waiting');
    expect(run.succeed('a')).toContain('start b');
    expect(isAtRest(run.state)).toBe(false);
  });

  test('a cancel of what waits leaves what runs', () => {
    const run = new Driver(TEXT);
    run.declare({ id: 'a', mode: 'fire_and_forget' }, CLIENT);
    run.called('a');
    run.declare({ id: 'b', mode: 'fire_and_forget' });
    run.end();
    expect(run.say({ type: 'cancel_requested', reason: 'next', only: 'waiting' })).toEqual(
      commands('clear_timer client:a, settle a cancelled next'),
    );
    expect(run.succeed('b')).toContain('drained');
  });

  test('a cancel of what waits ends a parked run', () => {
    expect(parked('a').say({ type: 'cancel_requested', reason: 'next', only: 'waiting' })).toContain(
      'end_run cancelled',
    );
  });
});
