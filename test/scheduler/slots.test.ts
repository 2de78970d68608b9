/** Limits in addition to the run's slots: of a type, and of an overloaded target (S5, R8). Cached outcomes (P6). */
import { describe, expect, test } from 'vitest';
import type { ActionError, ActionType } from '../../src/domain/action.ts';
import { commands } from './commands.ts';
import { Driver, withoutTimers } from '../support/scheduler-kit.ts';

const started = (commands: readonly string[]): string[] => commands.filter((command) => command.startsWith('start '));
const running = (run: Driver): string[] =>
  run.state.nodes.filter(({ stage }) => stage === 'running').map(({ id }) => id);
const most = (run: Driver, name: string): number | null => run.state.limits.get(name)?.max ?? null;

describe('limits of a type', () => {
  const cases: readonly (readonly [
    title: string,
    byType: Readonly<Partial<Record<ActionType, number>>>,
    actions: readonly (readonly [id: string, type: ActionType, name: string, concurrency: number | null])[],
    running: readonly string[],
  ])[] = [
    [
      'one type is limited, the others are not',
      { tool: 1 },
      [
        ['a', 'tool', 'x', null],
        ['b', 'tool', 'y', null],
        ['c', 'llm', 'llm', null],
      ],
      ['a', 'c'],
    ],
    [
      'a tool’s own limit and the type’s limit both apply',
      { tool: 2 },
      [
        ['a', 'tool', 'x', 1],
        ['b', 'tool', 'x', 1],
        ['c', 'tool', 'y', null],
        ['d', 'tool', 'y', null],
      ],
      ['a', 'c'],
    ],
    [
      'workflow and agent actions use no slot, but have the limit of their type',
      { agent: 2 },
      [
        ['a', 'agent', 'x', null],
        ['b', 'agent', 'x', null],
        ['c', 'agent', 'y', null],
        ['d', 'tool', 'y', null],
      ],
      ['a', 'b', 'd'],
    ],
    ['a limit below one counts as one', { tool: 0 }, [['a', 'tool', 'x', null]], ['a']],
  ];

  test.each(cases)('[S5] %s', (_title, maxParallelByType, actions, expected) => {
    const run = new Driver({ maxParallelByType });
    for (const [id, type, name, concurrency] of actions) run.declare({ id, type, name }, { concurrency });
    expect(running(run)).toEqual(expected);
  });

  test('[S5] when an action of the type ends, the most urgent one of the type starts', () => {
    const run = new Driver({ maxParallelByType: { tool: 1 } });
    run.declare({ id: 'a', name: 'x' });
    run.declare({ id: 'b', name: 'y' });
    run.declare({ id: 'c', name: 'z', priority: 1 });
    expect(started(run.succeed('a'))).toEqual(['start c']);
  });

  test('[S5] an action with a full target leaves its place in the type to others', () => {
    const run = new Driver({ maxParallelActions: 1, maxParallelByType: { tool: 2 } });
    run.declare({ id: 'a', name: 'x' }, { concurrency: 1 });
    run.declare({ id: 'b', name: 'x', priority: 2 }, { concurrency: 1 });
    run.declare({ id: 'c', name: 'y', priority: 1 });
    expect(started(run.succeed('a'))).toEqual(['start b']);
    expect(started(run.succeed('b'))).toEqual(['start c']);
  });
});

/** `n` actions `a0`, `a1`, … of one target. */
function fanOut(run: Driver, n: number, concurrency: number | null = null): void {
  for (let at = 0; at < n; at += 1) run.declare({ id: `a${at}`, name: 'x' }, { concurrency });
}

describe('an overloaded target', () => {
  const overloads: readonly (readonly [title: string, error: Partial<ActionError>, lowered: boolean])[] = [
    ['reports overload', { overloaded: true }, true],
    ['requests a delay', { retryAfterMs: 1_000 }, true],
    ['is a full runner', { code: 'runner_busy' }, true],
    ['refuses permanently', { retryable: false, retryAfterMs: 1_000 }, false],
    ['fails in another way', { code: 'http_error' }, false],
    ['times out', { code: 'timeout' }, false],
  ];

  test.each(overloads)('[R8] the limit is lowered if it %s: %o -> %s', (_title, error, lowered) => {
    const run = new Driver({ maxParallelActions: 4 });
    fanOut(run, 4);
    run.fail('a0', { retryable: true, ...error });
    expect(most(run, 'tool/x')).toBe(lowered ? 2 : null);
  });

  const widths: readonly (readonly [at: number, width: number])[] = [
    [1, 1],
    [2, 1],
    [3, 1],
    [4, 2],
    [5, 2],
    [8, 4],
  ];
  test.each(widths)('[R8] with %i running, the new limit is %i', (atWork, width) => {
    const run = new Driver({ maxParallelActions: 8 });
    fanOut(run, atWork);
    run.fail('a0', { overloaded: true });
    expect(most(run, 'tool/x')).toBe(width);
  });

  test('[R8] a burst of refusals counts as one overload, the next burst as another', () => {
    const run = new Driver({ maxParallelActions: 8 });
    fanOut(run, 8);
    expect(withoutTimers(run.fail('a0', { overloaded: true }))).toContain('warn overloaded');
    for (const id of ['a1', 'a2', 'a3'])
      expect(withoutTimers(run.fail(id, { overloaded: true }))).not.toContain('warn overloaded');
    expect(most(run, 'tool/x')).toBe(4);
    for (const id of ['a4', 'a5', 'a6', 'a7']) run.succeed(id);
    for (const id of ['b1', 'b2', 'b3', 'b4']) run.declare({ id, name: 'x' });
    run.fail('b1', { overloaded: true });
    expect(most(run, 'tool/x')).toBe(2);
  });

  test('[R8] no action starts until fewer than the limit run, and other targets are not affected', () => {
    const run = new Driver({ maxParallelActions: 4 });
    fanOut(run, 6);
    expect(started(run.fail('a0', { overloaded: true }))).toEqual([]);
    expect(started(run.declare({ id: 'other', name: 'y' }))).toEqual(['start other']);
    expect(started(run.succeed('a1'))).toEqual([]);
    expect(started(run.succeed('a2'))).toEqual(['start a4']);
  });

  test('[R8] as many successes as the limit raise it by one, up to the original limit', () => {
    const run = new Driver({ maxParallelActions: 4 });
    fanOut(run, 4);
    run.fail('a0', { overloaded: true });
    for (const id of ['a1', 'a2', 'a3']) run.succeed(id);
    expect(most(run, 'tool/x')).toBe(2);
    const seen: (number | null)[] = [];
    for (let at = 10; at < 22; at += 1) {
      run.declare({ id: `b${at}`, name: 'x' });
      run.succeed(`b${at}`);
      seen.push(most(run, 'tool/x'));
    }
    expect(seen).toEqual([2, 3, 3, 3, 4, 4, 4, 4, 4, 4, 4, 4]);
  });

  test('[R8] the limit in the manifest stays the maximum', () => {
    const run = new Driver({ maxParallelActions: 8 });
    fanOut(run, 8, 3);
    expect(running(run)).toHaveLength(3);
    run.fail('a0', { overloaded: true });
    expect(most(run, 'tool/x')).toBe(1);
    for (const id of ['a1', 'a2', 'a3', 'a4', 'a5', 'a6', 'a7']) run.succeed(id);
    for (let at = 0; at < 9; at += 1) {
      run.declare({ id: `b${at}`, name: 'x' }, { concurrency: 3 });
      run.succeed(`b${at}`);
    }
    expect(most(run, 'tool/x')).toBe(3);
  });

  test('[R8] an action that waits for a dependency uses no place of its target', () => {
    const run = new Driver({ maxParallelActions: 4 });
    run.declare({ id: 'first', name: 'y' });
    fanOut(run, 3);
    run.declare({ id: 'waits', name: 'x', dependsOn: ['first'] });
    run.fail('a0', { overloaded: true });
    expect(most(run, 'tool/x')).toBe(1);
    run.declare({ id: 'b', name: 'x' });
    expect(started(run.succeed('a1'))).toEqual([]);
    expect(started(run.succeed('a2'))).toEqual(['start b']);
  });

  test('[R8] actions without a target are limited by their type', () => {
    const run = new Driver({ maxParallelActions: 4 });
    for (const id of ['p1', 'p2', 'p3', 'p4']) run.declare({ id, type: 'python', name: id });
    run.fail('p1', { code: 'runner_busy' });
    expect(most(run, 'python')).toBe(2);
    expect(started(run.succeed('p2'))).toEqual([]);
    expect(started(run.declare({ id: 'p5', type: 'python', name: 'p5' }))).toEqual([]);
    expect(started(run.declare({ id: 't', name: 'x' }))).toEqual(['start t']);
    expect(started(run.succeed('p3'))).toEqual(['start p5']);
  });
});

describe('cached outcomes', () => {
  test('[P6] an action with a possible cached outcome is looked up before it takes a slot', () => {
    const run = new Driver({ maxParallelActions: 1 });
    run.declare({ id: 'busy' });
    expect(withoutTimers(run.declare({ id: 'a' }, { reuse: true }))).toEqual(['queue a []', 'lookup a']);
    run.declare({ id: 'b', dependsOn: ['a'] });
    expect(run.recalled('a', 'outcome')).toEqual(['settle a completed']);
    expect(started(run.succeed('busy'))).toEqual(['start b']);
  });

  test('[P6] without a cached outcome the action waits for its slot, and is not looked up again', () => {
    const run = new Driver();
    run.declare({ id: 'a' }, { reuse: true });
    expect(withoutTimers(run.recalled('a', 'nothing'))).toEqual(['start a']);
    expect(withoutTimers(run.fail('a', { retryable: true }))).toEqual(['retry a after 250']);
    expect(withoutTimers(run.fire('retry:a#1'))).toEqual(['start a #2']);
  });

  test('[P6] an action with a key mismatch fails without an attempt, and its dependents are skipped', () => {
    const run = new Driver();
    run.declare({ id: 'a' }, { reuse: true });
    run.declare({ id: 'b', dependsOn: ['a'] });
    const error = { code: 'idempotency_mismatch', message: 'no', retryable: false };
    expect(withoutTimers(run.recalled('a', { error }))).toEqual(
      commands('settle a failed idempotency_mismatch, settle b skipped a'),
    );
  });

  test('[P6] the lookup comes after dependencies, conditions and approvals', () => {
    const run = new Driver();
    run.declare({ id: 'first' });
    run.declare({ id: 'a', dependsOn: ['first'], when: 'true' }, { reuse: true, needsApproval: true });
    expect(withoutTimers(run.succeed('first'))).toEqual(['settle first completed', 'evaluate a']);
    expect(withoutTimers(run.condition('a', true))).toEqual(['ask_approval a']);
    expect(withoutTimers(run.approve('a'))).toEqual(['lookup a']);
  });

  test('[J5] a lookup result after a cancel changes nothing', () => {
    const run = new Driver();
    run.declare({ id: 'a' }, { reuse: true });
    expect(run.cancel()).toContain('settle a cancelled user');
    expect(run.recalled('a', 'outcome')).toEqual([]);
  });

  test('[S11] the iteration waits for the lookup', () => {
    const run = new Driver();
    run.declare({ id: 'a' }, { reuse: true });
    expect(withoutTimers(run.end())).toEqual(['report_plan 1']);
    expect(withoutTimers(run.recalled('a', 'outcome'))).toEqual(
      commands('settle a completed, complete_iteration 1, start_iteration 2'),
    );
  });
});
