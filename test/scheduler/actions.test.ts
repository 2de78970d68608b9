import { describe, expect, test } from 'vitest';
import { limits } from '../../src/domain/limits.ts';
import { action, counts, statusOf } from '../../src/scheduler/step.ts';
import { commands } from './commands.ts';
import { Driver, withoutTimers, failure } from '../support/scheduler-kit.ts';

describe('S5 slots', () => {
  test('[S5] running actions never exceed the slots, and a free slot is used in the same step', () => {
    const run = new Driver({ maxParallelActions: 2 });
    for (const id of ['a', 'b', 'c', 'd']) run.declare({ id });
    expect(counts(run.state)).toMatchObject({ running: 2, ready: 2 });
    expect(withoutTimers(run.succeed('b'))).toEqual(['settle b completed', 'start c']);
  });

  test('[S5] actions start in the order of priority, longest remaining path, document order', () => {
    const run = new Driver({ maxParallelActions: 1 });
    run.declare({ id: 'first' });
    run.declare({ id: 'plain' });
    run.declare({ id: 'head' });
    run.declare({ id: 'tail', dependsOn: ['head'] }, { estimateMs: 9_000 });
    run.declare({ id: 'later' });
    run.declare({ id: 'urgent', priority: 5 });
    const order: string[] = [];
    for (let at = 'first'; at !== '';) {
      const started = run.succeed(at).find((command) => command.startsWith('start '));
      at = started?.slice('start '.length) ?? '';
      order.push(at);
    }
    expect(order).toEqual(['urgent', 'head', 'tail', 'plain', 'later', '']);
  });

  test('[S5] a path that becomes longer after an action is ready moves the action forward', () => {
    const run = new Driver({ maxParallelActions: 1 });
    run.declare({ id: 'first' });
    run.declare({ id: 'a' }, { estimateMs: 2_000 });
    run.declare({ id: 'b' }, { estimateMs: 1_000 });
    run.declare({ id: 'c', dependsOn: ['b'] }, { estimateMs: 3_000 });
    run.declare({ id: 'd', dependsOn: ['c'] }, { estimateMs: 3_000 });
    expect(withoutTimers(run.succeed('first'))).toContain('start b');
  });

  test('[S5] a rejected or cancelled action does not count for a path', () => {
    const run = new Driver({ maxParallelActions: 1 });
    run.declare({ id: 'plug' });
    run.declare({ id: 'a' }, { estimateMs: 1_000 });
    run.declare({ id: 'b' }, { estimateMs: 2_000 });
    run.declare({ id: 'r', dependsOn: ['a', 'nowhere'] }, { estimateMs: 9_000 });
    run.end();
    expect(withoutTimers(run.succeed('plug'))).toEqual(['settle plug completed', 'start b']);
  });

  test('[S5] a skipped action does not count for a path', () => {
    const run = new Driver({ maxParallelActions: 2 });
    run.declare({ id: 'plug' });
    run.declare({ id: 'f' });
    run.declare({ id: 'a' }, { estimateMs: 1_000 });
    run.declare({ id: 'b' }, { estimateMs: 2_000 });
    run.declare({ id: 'x', dependsOn: ['f', 'a'] }, { estimateMs: 9_000 });
    run.declare({ id: 'y', dependsOn: ['x', 'plug'], waitForAll: false }, { estimateMs: 9_000 });
    expect(withoutTimers(run.fail('f'))).toEqual(['settle f failed boom', 'settle x skipped f', 'start b']);
  });

  test('[S5] a waiting fire_and_forget action that becomes awaited starts once', () => {
    const run = new Driver({ maxParallelActions: 2 });
    run.declare({ id: 'a' });
    run.declare({ id: 'b' });
    run.declare({ id: 'f', mode: 'fire_and_forget' });
    run.declare({ id: 'c', dependsOn: ['f'] });
    expect(withoutTimers(run.succeed('a'))).toEqual(['settle a completed', 'start f']);
    expect(withoutTimers(run.succeed('b'))).toEqual(['settle b completed']);
    expect(withoutTimers(run.succeed('f'))).toEqual(['settle f completed', 'start c']);
  });

  test('[S5] a target never exceeds its own limit, and does not block other targets', () => {
    const run = new Driver();
    run.declare({ id: 'a', name: 'slow' }, { concurrency: 1 });
    expect(withoutTimers(run.declare({ id: 'b', name: 'slow' }, { concurrency: 1 }))).toEqual(['queue b []']);
    expect(withoutTimers(run.declare({ id: 'c', name: 'slow', type: 'relic' }, { concurrency: 1 }))).toContain(
      'start c',
    );
    expect(withoutTimers(run.declare({ id: 'd', name: 'other' }))).toContain('start d');
    expect(withoutTimers(run.succeed('a'))).toEqual(['settle a completed', 'start b']);
  });

  test('[S5] when a target is free again, its most urgent waiting action starts', () => {
    const run = new Driver();
    run.declare({ id: 'a', name: 'slow' }, { concurrency: 1 });
    run.declare({ id: 'b', name: 'slow' }, { concurrency: 1 });
    run.declare({ id: 'c', name: 'slow', priority: 1 }, { concurrency: 1 });
    expect(withoutTimers(run.fail('a'))).toEqual(['settle a failed boom', 'start c']);
    expect(withoutTimers(run.succeed('c'))).toEqual(['settle c completed', 'start b']);
  });

  test('[S5] a cancelled action in front of a full lane frees its place for the next one of its target', () => {
    const run = new Driver({ maxParallelActions: 1 });
    run.declare({ id: 'x', name: 'other' });
    run.declare({ id: 'a', name: 'slow' }, { concurrency: 1 });
    run.declare({ id: 'b', name: 'slow' }, { concurrency: 1 });
    expect(withoutTimers(run.succeed('x'))).toEqual(['settle x completed', 'start a']);
    expect(withoutTimers(run.succeed('a'))).toEqual(['settle a completed', 'start b']);
  });

  test('[S5] a fire_and_forget action that cannot take the last slot does not block its target', () => {
    const run = new Driver({ maxParallelActions: 2 });
    run.declare({ id: 'a', name: 'slow', dependsOn: [] }, { concurrency: 1 });
    run.declare({ id: 'f', name: 'slow', dependsOn: [], mode: 'fire_and_forget' }, { concurrency: 1 });
    run.declare({ id: 'b', name: 'slow', dependsOn: [] }, { concurrency: 1 });
    run.declare({ id: 'x' });
    expect(withoutTimers(run.succeed('a'))).toEqual(['settle a completed', 'start b']);
  });

  test('[S5] an action cancelled in the lane is replaced by the next one of its target', () => {
    const run = new Driver({ maxParallelActions: 2 });
    run.declare({ id: 'f1', name: 'slow', mode: 'fire_and_forget' }, { concurrency: 1 });
    run.declare({ id: 'f2', name: 'slow', mode: 'fire_and_forget' }, { concurrency: 1 });
    run.respond(false);
    run.end();
    run.declare({ id: 'x' });
    run.declare({ id: 'f3', name: 'slow', mode: 'fire_and_forget', priority: 5 }, { concurrency: 1 });
    expect(withoutTimers(run.succeed('f1'))).toEqual(['settle f1 completed']);
    expect(withoutTimers(run.end({ finish: 'error' }))).toContain('settle f3 cancelled generation_error');
    expect(withoutTimers(run.succeed('x'))).toContain('start f2');
  });

  test('[S5] workflow and agent actions use no slot', () => {
    const run = new Driver({ maxParallelActions: 1 });
    run.declare({ id: 'a' });
    expect(withoutTimers(run.declare({ id: 'w', type: 'workflow' }))).toContain('start w');
    expect(withoutTimers(run.declare({ id: 'g', type: 'agent' }))).toContain('start g');
    expect(withoutTimers(run.declare({ id: 'b' }))).toEqual(['queue b []']);
  });

  test('[S5] fire_and_forget actions leave the last free slot to awaited actions', () => {
    const run = new Driver({ maxParallelActions: 2 });
    expect(withoutTimers(run.declare({ id: 'f1', mode: 'fire_and_forget' }))).toContain('start f1');
    expect(withoutTimers(run.declare({ id: 'f2', mode: 'fire_and_forget' }))).toEqual(['queue f2 []']);
    expect(withoutTimers(run.declare({ id: 'a' }))).toContain('start a');
    expect(withoutTimers(run.succeed('a'))).toEqual(['settle a completed']);
    expect(withoutTimers(run.succeed('f1'))).toEqual(['settle f1 completed', 'start f2']);
  });

  test('[S5] a fire_and_forget action takes the slot if there is only one', () => {
    const run = new Driver({ maxParallelActions: 1 });
    expect(withoutTimers(run.declare({ id: 'f', mode: 'fire_and_forget' }))).toContain('start f');
  });

  test('[S5] a waiting fire_and_forget action that becomes awaited can take the last slot', () => {
    const run = new Driver({ maxParallelActions: 2 });
    run.declare({ id: 'a' });
    run.declare({ id: 'f', mode: 'fire_and_forget' });
    expect(withoutTimers(run.declare({ id: 'b', dependsOn: ['f'] }))).toEqual(
      commands('warn fire_and_forget_awaited, queue b [f], start f'),
    );
  });

  test('[S5] an action in its backoff uses no slot', () => {
    const run = new Driver({ maxParallelActions: 1 });
    run.declare({ id: 'a' });
    run.declare({ id: 'b' });
    expect(withoutTimers(run.fail('a', { retryable: true }))).toEqual(['retry a after 250', 'start b']);
    expect(run.fire('retry:a#1')).toEqual([]);
    expect(withoutTimers(run.succeed('b'))).toEqual(['settle b completed', 'start a #2']);
  });
});

describe('S6 failure', () => {
  test('[S6] direct and indirect dependents of a failed action are skipped, and its siblings continue', () => {
    const run = new Driver();
    run.declare({ id: 'a' });
    run.declare({ id: 'b', dependsOn: ['a'] });
    run.declare({ id: 'c', references: ['b'] });
    run.declare({ id: 'd' });
    expect(withoutTimers(run.fail('a'))).toEqual(['settle a failed boom', 'settle b skipped a', 'settle c skipped b']);
    expect(statusOf(run.state, run.key('d'))).toBe('running');
  });

  test('[S6] a cascade of 5,000 actions neither overflows the stack nor repeats itself', () => {
    const run = new Driver({ maxActions: 10_000 });
    run.declare({ id: 'a0' });
    for (let n = 1; n < 5_000; n += 1) run.declare({ id: `a${n}`, dependsOn: [`a${n - 1}`] });
    const settled = run.fail('a0').filter((command) => command.startsWith('settle'));
    expect(new Set(settled).size).toBe(5_000);
    expect(settled).toHaveLength(5_000);
  });

  test('[S6] on_error: skip still fails the action, but its dependents run with null', () => {
    const run = new Driver();
    run.declare({ id: 'a', onError: 'skip' });
    run.declare({ id: 'b', dependsOn: ['a'] });
    expect(withoutTimers(run.fail('a'))).toEqual(['settle a failed boom', 'start b']);
  });

  test('[S6] fail_fast cancels unfinished actions and those declared later', () => {
    const run = new Driver({ failFast: true, maxParallelActions: 2 });
    run.declare({ id: 'done' });
    run.succeed('done');
    run.declare({ id: 'a' });
    run.declare({ id: 'b' });
    run.declare({ id: 'c' });
    expect(run.fail('a')).toEqual(
      commands(
        'clear_timer timeout:a#1, settle a failed boom, abort b fail_fast, clear_timer timeout:b#1, settle b cancelled fail_fast, settle c cancelled fail_fast',
      ),
    );
    expect(withoutTimers(run.declare({ id: 'd' }))).toEqual(['queue d []', 'settle d cancelled fail_fast']);
    expect(statusOf(run.state, run.key('done'))).toBe('completed');
  });

  test('[S6] fail_fast ignores failures declared as harmless', () => {
    const run = new Driver({ failFast: true });
    run.declare({ id: 'a', onError: 'skip' });
    run.declare({ id: 'f', mode: 'fire_and_forget' });
    run.declare({ id: 'b' });
    run.fail('a');
    run.fail('f');
    expect(statusOf(run.state, run.key('b'))).toBe('running');
  });
});

describe('S7 retries', () => {
  test('[S7] a retryable error of a pure action is tried three times, with full jitter and doubled delays', () => {
    const run = new Driver();
    run.declare({ id: 'a' });
    expect(run.fail('a', { retryable: true }, 1, 0.99)).toEqual(
      commands('clear_timer timeout:a#1, retry a after 495, set_timer retry:a#1 495'),
    );
    expect(run.fire('retry:a#1')).toEqual(['start a #2', 'set_timer timeout:a#2 60000']);
    expect(withoutTimers(run.fail('a', { retryable: true }, 2, 0.99))).toEqual(['retry a after 990']);
    run.fire('retry:a#2');
    expect(withoutTimers(run.fail('a', { retryable: true }, 3))).toEqual(['settle a failed boom']);
  });

  test('[S7] an error that is not retryable ends the action at once', () => {
    const run = new Driver();
    run.declare({ id: 'a', retry: { maxAttempts: 5, backoff: 'none', delayMs: 0, maxDelayMs: 0 } });
    expect(withoutTimers(run.fail('a', { retryable: false }))).toEqual(['settle a failed boom']);
  });

  test('[S7] an unsafe action is tried once, whatever its retry field says', () => {
    const run = new Driver();
    run.declare(
      { id: 'a', retry: { maxAttempts: 5, backoff: 'none', delayMs: 0, maxDelayMs: 0 } },
      { effects: 'unsafe' },
    );
    expect(withoutTimers(run.fail('a', { retryable: true }))).toEqual(['settle a failed boom']);
  });

  test('[S7] an unsafe action is retried after an error that is known to precede the dispatch', () => {
    const unsafe = {
      effects: 'unsafe',
      retry: { maxAttempts: 1, backoff: 'none', delayMs: 10, maxDelayMs: 10 },
    } as const;
    const run = new Driver();
    run.declare({ id: 'a' }, unsafe);
    expect(withoutTimers(run.fail('a', { retryable: true, beforeDispatch: true }))).toEqual(['retry a after 10']);
    run.fire('retry:a#1');
    expect(withoutTimers(run.fail('a', { retryable: true }, 2))).toEqual(['settle a failed boom']);
  });

  test('[S7] on_error: retry means three attempts, then failure; an explicit retry field overrides it', () => {
    const once = { retry: { maxAttempts: 1, backoff: 'none', delayMs: 0, maxDelayMs: 0 } } as const;
    const run = new Driver();
    run.declare({ id: 'a', onError: 'retry' }, once);
    for (const attempt of [1, 2]) {
      expect(withoutTimers(run.fail('a', { retryable: true }, attempt))).toEqual(['retry a after 0']);
      run.fire(`retry:a#${attempt}`);
    }
    expect(withoutTimers(run.fail('a', { retryable: true }, 3))).toEqual(['settle a failed boom']);
    run.declare({ id: 'b', onError: 'retry', retry: { maxAttempts: 1, backoff: 'none', delayMs: 0, maxDelayMs: 0 } });
    expect(withoutTimers(run.fail('b', { retryable: true }))).toEqual(['settle b failed boom']);
  });

  test.each([
    ['none', 3, 100],
    ['linear', 3, 300],
    ['linear', 9, 500],
  ] as const)('[S7] backoff %s after attempt %i waits %i ms', (backoff, attempts, expected) => {
    const run = new Driver();
    run.declare({ id: 'a', retry: { maxAttempts: 10, backoff, delayMs: 100, maxDelayMs: 500 } });
    for (let attempt = 1; attempt < attempts; attempt += 1) {
      run.fail('a', { retryable: true }, attempt);
      run.fire(`retry:a#${attempt}`);
    }
    expect(withoutTimers(run.fail('a', { retryable: true }, attempts))).toEqual([`retry a after ${expected}`]);
  });

  test('[S7] the number of attempts and the delay that a target requests have maximums', () => {
    const run = new Driver();
    run.declare({ id: 'a', retry: { maxAttempts: 1_000, backoff: 'none', delayMs: 0, maxDelayMs: 0 } });
    expect(withoutTimers(run.fail('a', { retryable: true, retryAfterMs: 1e12 }))).toEqual(
      commands(`warn overloaded, retry a after ${limits.maxActionTimeoutMs}`),
    );
    for (let attempt = 1; attempt < limits.maxRetryAttempts; attempt += 1) {
      run.fire(`retry:a#${attempt}`);
      run.fail('a', { retryable: true }, attempt + 1);
    }
    expect(statusOf(run.state, run.key('a'))).toBe('failed');
  });

  test('[R8] the delay that the target requests is used', () => {
    const run = new Driver();
    run.declare({ id: 'a' });
    expect(withoutTimers(run.fail('a', { retryable: true, retryAfterMs: 7_000 }))).toEqual(
      commands('warn overloaded, retry a after 7000'),
    );
  });

  test('[S7] a late result of an older attempt changes nothing', () => {
    const run = new Driver();
    run.declare({ id: 'a' });
    run.fail('a', { retryable: true });
    expect(run.succeed('a', 1)).toEqual([]);
    run.fire('retry:a#1');
    expect(run.succeed('a', 1)).toEqual([]);
    expect(run.fail('a', {}, 1)).toEqual([]);
    expect(run.fire('timeout:a#1')).toEqual([]);
    expect(run.fire('retry:a#1')).toEqual([]);
    expect(withoutTimers(run.succeed('a', 2))).toEqual(['settle a completed']);
    expect(run.succeed('a', 2)).toEqual([]);
  });
});

describe('S8 timeouts', () => {
  test('[S8] a start sets its timer; the outcome clears it', () => {
    const run = new Driver();
    expect(run.declare({ id: 'a', timeoutMs: 1_234 })).toContain('set_timer timeout:a#1 1234');
    expect(run.succeed('a')).toEqual(['clear_timer timeout:a#1', 'settle a completed']);
  });

  test('[S8] a timeout above the maximum is reduced to it', () => {
    const run = new Driver();
    expect(run.declare({ id: 'a', timeoutMs: 1e12 })).toContain(`set_timer timeout:a#1 ${limits.maxActionTimeoutMs}`);
  });

  test('[S8] a timeout aborts and counts as a retryable error', () => {
    const run = new Driver();
    run.declare({ id: 'a' });
    expect(withoutTimers(run.fire('timeout:a#1', 0.5))).toEqual(['abort a timeout', 'retry a after 250']);
    expect(run.succeed('a', 1)).toEqual([]);
  });

  test('[S8] an unsafe action that times out is settled, even if its executor never answers', () => {
    const run = new Driver();
    run.declare({ id: 'a' }, { effects: 'unsafe' });
    expect(withoutTimers(run.fire('timeout:a#1'))).toEqual(['abort a timeout', 'settle a failed timeout']);
  });
});

describe('S9 conditions', () => {
  test('[S9] a condition is evaluated when the dependencies have settled, before the action starts', () => {
    const run = new Driver();
    run.declare({ id: 'a' });
    expect(run.declare({ id: 'b', when: 'a > 1', references: ['a'] })).toEqual(['queue b [a]']);
    expect(withoutTimers(run.succeed('a'))).toEqual(['settle a completed', 'evaluate b']);
    expect(withoutTimers(run.condition('b', true))).toEqual(['start b']);
  });

  test('[S9] a false condition skips the action, which counts as null for its dependents', () => {
    const run = new Driver();
    run.declare({ id: 'b', when: 'false' });
    run.declare({ id: 'c', dependsOn: ['b'] });
    expect(withoutTimers(run.condition('b', false))).toEqual(['settle b skipped condition', 'start c']);
  });

  test('[S9] an evaluation error fails the action', () => {
    const run = new Driver();
    run.declare({ id: 'b', when: '1 +' });
    run.declare({ id: 'c', dependsOn: ['b'] });
    expect(withoutTimers(run.condition('b', 'unexpected end'))).toEqual(
      commands('settle b failed condition_error, settle c skipped b'),
    );
  });

  test('[S9] a result of an evaluation that is no longer needed is ignored', () => {
    const run = new Driver();
    run.declare({ id: 'b', when: 'true' });
    run.condition('b', true);
    expect(run.condition('b', false)).toEqual([]);
  });
});

describe('S14 dispatch after the generation, P15 bad finish', () => {
  const later = { dispatch: 'after_generation' } as const;

  test('[S14] the action is held until its generation has ended successfully', () => {
    const run = new Driver();
    expect(run.declare({ id: 'a' }, later)).toEqual(['queue a []']);
    expect(withoutTimers(run.end())).toEqual(['report_plan 1', 'start a']);
  });

  test('[S14] its dependents wait too, and a dependency can settle after the end', () => {
    const run = new Driver();
    run.declare({ id: 'x' });
    run.declare({ id: 'a', dependsOn: ['x'] }, later);
    run.declare({ id: 'b', dependsOn: ['a'] });
    expect(withoutTimers(run.end())).toEqual(['report_plan 1']);
    expect(withoutTimers(run.succeed('x'))).toEqual(['settle x completed', 'start a']);
    expect(withoutTimers(run.succeed('a'))).toEqual(['settle a completed', 'start b']);
  });

  test('[P15] length: declared actions run, held actions are cancelled', () => {
    const run = new Driver({ maxParallelActions: 1 });
    run.declare({ id: 'a' });
    run.declare({ id: 'b' });
    run.declare({ id: 'h' }, later);
    expect(withoutTimers(run.end({ finish: 'length' }))).toEqual(
      commands('report_plan 1, settle h cancelled generation_length'),
    );
    expect(withoutTimers(run.succeed('a'))).toEqual(['settle a completed', 'start b']);
  });

  test.each(['content_filter', 'error', 'abort'] as const)(
    '[P15] %s: actions that have not started are cancelled, started ones continue',
    (finish) => {
      const run = new Driver({ maxParallelActions: 2 });
      run.declare({ id: 'a' });
      run.declare({ id: 'retried' });
      run.fail('retried', { retryable: true });
      run.declare({ id: 'c' });
      run.declare({ id: 'd', dependsOn: ['a'] });
      run.declare({ id: 'e', when: 'true' });
      run.declare({ id: 'g', dependsOn: ['later'] });
      run.declare({ id: 'f' }, { needsApproval: true });
      run.declare({ id: 'h' }, later);
      const because = `cancelled generation_${finish}`;
      expect(withoutTimers(run.end({ finish }))).toEqual(
        commands(
          `settle d ${because}, settle e ${because}, queue g [], settle g ${because}, settle f ${because}, settle h ${because}, report_plan 1`,
        ),
      );
      expect(withoutTimers(run.fire('retry:retried#1'))).toEqual([]);
      expect(withoutTimers(run.succeed('c'))).toEqual(['settle c completed', 'start retried #2']);
      expect(withoutTimers(run.succeed('a'))).toEqual(['settle a completed']);
    },
  );

  test('[P15] cancelling such a sync action starts none of the actions that it held: they are cancelled too', () => {
    const run = new Driver();
    run.declare({ id: 's', mode: 'sync' }, later);
    run.declare({ id: 'a' });
    expect(withoutTimers(run.end({ finish: 'error' }))).toEqual(
      commands(
        'settle s cancelled generation_error, settle a cancelled generation_error, report_plan 1, complete_iteration 1, start_iteration 2',
      ),
    );
  });
});

describe('J8 approvals', () => {
  const asks = { needsApproval: true } as const;

  test('[J8] an action asks for approval when it is ready, and uses no slot and no timeout', () => {
    const run = new Driver({ maxParallelActions: 1 });
    expect(run.declare({ id: 'a' }, asks)).toEqual(
      commands(`queue a [], ask_approval a, set_timer approval:a ${7 * 24 * 3_600_000}`),
    );
    expect(statusOf(run.state, run.key('a'))).toBe('awaiting_approval');
    expect(withoutTimers(run.declare({ id: 'b' }))).toContain('start b');
    run.succeed('b');
    expect(run.approve('a')).toEqual(['clear_timer approval:a', 'start a', 'set_timer timeout:a#1 60000']);
  });

  test('[J8] conditions and holds precede the approval', () => {
    const run = new Driver();
    expect(withoutTimers(run.declare({ id: 'a', when: 'x' }, { ...asks, dispatch: 'after_generation' }))).toEqual(
      commands('queue a [], evaluate a'),
    );
    expect(run.condition('a', true)).toEqual([]);
    expect(withoutTimers(run.end())).toEqual(['report_plan 1', 'ask_approval a', 'end_run waiting']);
  });

  test('[J8] a denied action fails with the note, and its dependents are skipped', () => {
    const run = new Driver();
    run.declare({ id: 'a' }, asks);
    run.declare({ id: 'b', dependsOn: ['a'] });
    expect(withoutTimers(run.approve('a', false, 'not today'))).toEqual(
      commands('settle a failed approval_denied, settle b skipped a'),
    );
    expect(run.commands.find((command) => command.type === 'settle')).toMatchObject({
      error: { message: 'Action "a" was denied: not today' },
    });
    expect(run.approve('a')).toEqual([]);
  });

  test('[J8] an approval that cannot be asked for fails the action; meanwhile the run does not wait', () => {
    const run = new Driver();
    run.asks = false;
    run.declare({ id: 'a' }, asks);
    expect(statusOf(run.state, run.key('a'))).toBe('waiting');
    expect(withoutTimers(run.end())).toEqual(['report_plan 1']);
    expect(run.approve('a')).toEqual([]);
    expect(run.asked('a', failure({ code: 'too_large' }))).toEqual(
      commands('clear_timer approval:a, settle a failed too_large, complete_iteration 1, start_iteration 2'),
    );
    expect(run.asked('a')).toEqual([]);
  });

  test('[J8] an approval without an answer in time counts as denied', () => {
    const run = new Driver();
    run.declare({ id: 'a' }, asks);
    expect(withoutTimers(run.fire('approval:a'))).toEqual(['settle a failed approval_denied']);
  });

  test('[J8] a run with only approvals open waits, and continues after the answer', () => {
    const run = new Driver();
    run.declare({ id: 'a' }, asks);
    run.declare({ id: 'b', dependsOn: ['a'] });
    run.declare({ id: 'c' });
    run.end();
    expect(run.succeed('c')).toEqual(
      commands('clear_timer timeout:c#1, settle c completed, clear_timer budget, end_run waiting'),
    );
    run.at += 3 * 24 * 3_600_000;
    expect(run.approve('a')).toEqual(
      commands('set_timer budget 3600000, clear_timer approval:a, start a, set_timer timeout:a#1 60000'),
    );
    expect(withoutTimers(run.succeed('a'))).toEqual(['settle a completed', 'start b']);
    expect(withoutTimers(run.succeed('b'))).toEqual(
      commands('settle b completed, complete_iteration 1, start_iteration 2'),
    );
  });

  test('[J8] with two approvals open, the run waits again after the first answer', () => {
    const run = new Driver();
    run.declare({ id: 'a' }, asks);
    run.declare({ id: 'b' }, asks);
    expect(withoutTimers(run.end())).toEqual(['report_plan 1', 'end_run waiting']);
    expect(withoutTimers(run.approve('a', false))).toEqual(['settle a failed approval_denied', 'end_run waiting']);
    expect(withoutTimers(run.approve('b', false))).toEqual(
      commands('settle b failed approval_denied, complete_iteration 1, start_iteration 2'),
    );
  });

  test('[J8] the run can wait while a fire_and_forget action runs, whose end changes nothing', () => {
    const run = new Driver();
    run.declare({ id: 'f', mode: 'fire_and_forget' });
    run.declare({ id: 'a' }, asks);
    expect(withoutTimers(run.end())).toEqual(['report_plan 1', 'end_run waiting']);
    expect(withoutTimers(run.succeed('f'))).toEqual(['settle f completed']);
    expect(withoutTimers(run.cancel())).toEqual(
      commands('settle a cancelled user, complete_iteration 1, end_run cancelled, drained'),
    );
  });
});

describe('P6 a second declaration after one without parameters', () => {
  const full = { n: 1 };

  test('[P6] [S10] it takes the place of one that has not started', () => {
    const run = new Driver();
    run.declare({ id: 'first', mode: 'sync' });
    expect(withoutTimers(run.declare({ id: 'a' }))).toEqual(['queue a []']);
    expect(withoutTimers(run.declare({ id: 'a', parameters: full }))).toEqual(['warn duplicate_action', 'queue a []']);
    expect(action(run.state, '1/1')).toMatchObject({ id: 'a', parameters: full });
    expect(withoutTimers(run.succeed('first'))).toEqual(['settle first completed', 'start a']);
    expect(counts(run.state)).toMatchObject({ running: 1, completed: 1 });
  });

  test('[S5] one that waits for a slot is replaced, too', () => {
    const run = new Driver({ maxParallelActions: 1 });
    run.declare({ id: 'plug' });
    run.declare({ id: 'a' });
    run.declare({ id: 'a', parameters: full });
    expect(withoutTimers(run.succeed('plug'))).toEqual(['settle plug completed', 'start a']);
  });

  test('[S14] one that is held is replaced, too', () => {
    const run = new Driver();
    run.declare({ id: 'a' }, { dispatch: 'after_generation' });
    run.declare({ id: 'a', parameters: full }, { dispatch: 'after_generation' });
    expect(withoutTimers(run.end())).toContain('start a');
  });

  test('[P12] [S4] references of the second one are dependencies, and later actions wait for it', () => {
    const run = new Driver();
    run.declare({ id: 'plug', mode: 'sync' });
    run.declare({ id: 'data', dependsOn: [] });
    run.declare({ id: 'a', mode: 'sync' });
    expect(
      withoutTimers(run.declare({ id: 'a', mode: 'sync', parameters: { of: '$data' }, references: ['data'] })),
    ).toEqual(['warn duplicate_action', 'queue a [data]']);
    run.declare({ id: 'b', dependsOn: ['a'] });
    expect(withoutTimers(run.succeed('plug'))).toEqual(['settle plug completed']);
    expect(withoutTimers(run.succeed('data'))).toEqual(['settle data completed', 'start a']);
  });

  const plugged = (run: Driver): void => {
    run.declare({ id: 'plug', mode: 'sync' });
  };
  test.each<[what: string, prepare: (run: Driver) => void, second: Parameters<Driver['declare']>[0]]>([
    ['has started', (run) => run.declare({ id: 'a' }), { id: 'a', parameters: full }],
    [
      'has parameters',
      (run) => {
        plugged(run);
        run.declare({ id: 'a', parameters: { n: 0 } });
      },
      { id: 'a', parameters: full },
    ],
    [
      'differs in another field',
      (run) => {
        plugged(run);
        run.declare({ id: 'a', priority: 1 });
      },
      { id: 'a', parameters: full },
    ],
    [
      'is awaited by another action',
      (run) => {
        plugged(run);
        run.declare({ id: 'a' });
        run.declare({ id: 'b', dependsOn: ['a'] });
      },
      { id: 'a', parameters: full },
    ],
    [
      'was declared before what the second one needs',
      (run) => {
        plugged(run);
        run.declare({ id: 'a' });
        run.declare({ id: 'b' });
      },
      { id: 'a', parameters: full, references: ['b'] },
    ],
    [
      'waits for an approval',
      (run) => run.declare({ id: 'a' }, { needsApproval: true }),
      { id: 'a', parameters: full },
    ],
    [
      'is ready, and the second one needs more',
      (run) => {
        for (let slot = 0; slot < 5; slot += 1) run.declare({ id: `plug${slot}` });
        run.declare({ id: 'a' });
      },
      { id: 'a', parameters: full, references: ['plug0'] },
    ],
  ])('[P6] it is rejected if the first one %s', (_what, prepare, second) => {
    const run = new Driver();
    prepare(run);
    expect(withoutTimers(run.declare(second))).toEqual(["settle a' rejected duplicate_id"]);
  });

  test('[X4] it is rejected if its target must not be called with these parameters', () => {
    const run = new Driver();
    plugged(run);
    run.declare({ id: 'a' });
    const refusal = { code: 'not_allowed', message: 'no' } as const;
    expect(withoutTimers(run.declare({ id: 'a', parameters: full }, { refusal }))).toEqual(
      commands("settle a' rejected duplicate_id"),
    );
  });
});

describe('[J8] questions of targets', () => {
  test('an attempt that ends with a question gives its slot back, and uses no timeout', () => {
    const run = new Driver({ maxParallelActions: 1 });
    run.declare({ id: 'a' });
    run.declare({ id: 'b' });
    expect(run.ask('a')).toEqual(
      commands(
        `clear_timer timeout:a#1, ask_approval a, set_timer approval:a ${7 * 24 * 3_600_000}, start b, set_timer timeout:b#1 60000`,
      ),
    );
    expect(statusOf(run.state, run.key('a'))).toBe('awaiting_approval');
    expect(run.commands.find(({ type }) => type === 'ask_approval')).toMatchObject({ attempt: 1 });
    // The answer waits for the slot.
    expect(run.approve('a')).toEqual(['clear_timer approval:a']);
    expect(statusOf(run.state, run.key('a'))).toBe('ready');
    expect(withoutTimers(run.succeed('b'))).toEqual(['settle b completed', 'start a #2']);
    expect(withoutTimers(run.succeed('a', 2))).toEqual(['settle a completed']);
  });

  test('[S7] an attempt with an answer is no retry: an unsafe action gets one, and no more', () => {
    const run = new Driver();
    run.declare({ id: 'a' }, { effects: 'unsafe' });
    run.ask('a');
    expect(withoutTimers(run.approve('a'))).toEqual(['start a #2']);
    expect(withoutTimers(run.fail('a', { retryable: true }, 2))).toEqual(['settle a failed boom']);
  });

  test('[S7] a safe action keeps all its retries, with their usual delays', () => {
    const run = new Driver();
    run.declare({ id: 'a' });
    run.ask('a');
    run.approve('a');
    expect(withoutTimers(run.fail('a', { retryable: true }, 2))).toEqual(['retry a after 250']);
    run.fire('retry:a#2');
    expect(withoutTimers(run.ask('a', 3))).toEqual(['ask_approval a']);
    run.approve('a');
    expect(withoutTimers(run.fail('a', { retryable: true }, 4))).toEqual(['retry a after 500']);
    run.fire('retry:a#4');
    expect(withoutTimers(run.fail('a', { retryable: true }, 5))).toEqual(['settle a failed boom']);
  });

  test('[S7] only the running attempt can ask', () => {
    const run = new Driver();
    run.declare({ id: 'a' });
    expect(run.ask('a', 2)).toEqual([]);
    run.ask('a');
    expect(run.ask('a')).toEqual([]);
    run.approve('a');
    expect(run.ask('a')).toEqual([]);
    run.succeed('a', 2);
    expect(run.ask('a', 2)).toEqual([]);
  });

  test('an action may have an approval, and then questions', () => {
    const run = new Driver();
    expect(withoutTimers(run.declare({ id: 'a' }, { needsApproval: true }))).toEqual(['queue a []', 'ask_approval a']);
    run.approve('a');
    expect(withoutTimers(run.ask('a'))).toEqual(['ask_approval a']);
    expect(withoutTimers(run.approve('a'))).toEqual(['start a #2']);
    const attempts = run.commands.flatMap((command) => (command.type === 'ask_approval' ? [command.attempt] : []));
    expect(attempts).toEqual([0, 1]);
  });

  test('the number of questions is limited', () => {
    const run = new Driver();
    run.declare({ id: 'a' });
    for (let asked = 1; asked <= limits.questionsPerAction; asked += 1) {
      expect(withoutTimers(run.ask('a', asked))).toEqual(['ask_approval a']);
      run.approve('a');
    }
    expect(withoutTimers(run.ask('a', limits.questionsPerAction + 1))).toEqual(['settle a failed too_many_questions']);
  });

  test('[P6] an equal action that has completed in the meantime answers it', () => {
    const run = new Driver();
    run.declare({ id: 'a' }, { reuse: true });
    run.recalled('a', 'nothing');
    run.ask('a');
    expect(withoutTimers(run.approve('a'))).toEqual(['lookup a']);
    expect(withoutTimers(run.recalled('a', 'outcome'))).toEqual(['settle a completed']);
  });

  test('[P6] an action that has asked is not replaced by a second declaration', () => {
    const run = new Driver({ maxParallelActions: 1 });
    run.declare({ id: 'a' });
    run.declare({ id: 'b' });
    run.ask('a');
    run.approve('a');
    expect(withoutTimers(run.declare({ id: 'a', parameters: { x: 1 } }))).toEqual(["settle a' rejected duplicate_id"]);
  });

  test('a cancel ends it without an abort', () => {
    const run = new Driver();
    run.declare({ id: 'a' });
    run.ask('a');
    expect(withoutTimers(run.cancel())).toEqual(
      commands('stop_generation, settle a cancelled user, complete_iteration 1, end_run cancelled, drained'),
    );
  });
});
