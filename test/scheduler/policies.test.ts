/** Actions that policies decide about, from met dependencies to their start (C9). */
import { describe, expect, test } from 'vitest';
import { callsBefore, statusOf, usedBy } from '../../src/scheduler/step.ts';
import { Driver, failure, withoutTimers } from '../support/scheduler-kit.ts';

const JUDGED = { judged: 'tool/echo' } as const;
const DENIED = { error: failure({ code: 'policy_denied', message: 'no' }) };

describe('[C9] a judged action', () => {
  test('is judged when its dependencies have settled, before anything else', () => {
    const run = new Driver();
    run.declare({ id: 'first' });
    expect(run.declare({ id: 'a', dependsOn: ['first'] }, { ...JUDGED, needsApproval: true, reuse: true })).toEqual([
      'queue a [first]',
    ]);
    expect(withoutTimers(run.succeed('first'))).toEqual(['settle first completed', 'judge a']);
    expect(statusOf(run.state, run.key('a'))).toBe('waiting');
    expect(withoutTimers(run.judged('a', 'ask'))).toEqual(['ask_approval a']);
    expect(withoutTimers(run.approve('a'))).toEqual(['lookup a']);
    expect(withoutTimers(run.recalled('a', 'nothing'))).toEqual(['start a']);
  });

  test('is not judged if its condition is false, nor while it is held', () => {
    const run = new Driver();
    run.declare({ id: 'a', when: 'false' }, JUDGED);
    expect(run.condition('a', false)).toEqual(['settle a skipped condition']);
    expect(run.declare({ id: 'b' }, { ...JUDGED, dispatch: 'after_generation' })).toEqual(['queue b []']);
    expect(run.end()).toContain('judge b');
  });

  test('fails when it is denied, and its dependents are skipped', () => {
    const run = new Driver();
    run.declare({ id: 'a' }, JUDGED);
    run.declare({ id: 'b', dependsOn: ['a'] }, JUDGED);
    expect(withoutTimers(run.judged('a', DENIED))).toEqual(['settle a failed policy_denied', 'settle b skipped a']);
    expect(run.judged('a', 'start')).toEqual([]);
  });

  test('starts when nothing objects; its retries are not judged again', () => {
    const run = new Driver();
    run.declare({ id: 'a' }, JUDGED);
    expect(withoutTimers(run.judged('a', 'start'))).toEqual(['start a']);
    expect(withoutTimers(run.fail('a', { retryable: true }))).toEqual(['retry a after 250']);
    expect(withoutTimers(run.fire('retry:a#1'))).toEqual(['start a #2']);
  });

  test('does not start if it was cancelled while it was judged', () => {
    const run = new Driver();
    run.declare({ id: 'a' }, JUDGED);
    expect(run.cancel()).toContain('settle a cancelled user');
    expect(run.judged('a', 'start')).toEqual([]);
  });

  test('[P6] keeps its parameters: a second declaration that would add some does not count', () => {
    const run = new Driver({ maxParallelActions: 1 });
    run.declare({ id: 'busy' });
    run.declare({ id: 'a' }, JUDGED);
    run.judged('a', 'start');
    expect(run.declare({ id: 'a', parameters: { to: 'Eve' } }, JUDGED)).toContain("settle a' rejected duplicate_id");
    expect(withoutTimers(run.succeed('busy'))).toEqual(['settle busy completed', 'start a']);
    expect(run.state.byKey.get(run.key('a'))?.declaration.parameters).toEqual({});
  });

  test('[P6] may get parameters while it is held, which are the ones that are judged', () => {
    const run = new Driver();
    run.declare({ id: 'a' }, { ...JUDGED, dispatch: 'after_generation' });
    run.declare({ id: 'a', parameters: { to: 'Ann' } }, { ...JUDGED, dispatch: 'after_generation' });
    expect(run.end()).toContain('judge a');
    expect(run.state.byKey.get(run.key('a'))?.declaration.parameters).toEqual({ to: 'Ann' });
  });
});

describe('[C9] the number of calls before an action', () => {
  const calls = (run: Driver, id: string): number => callsBefore(run.state, run.key(id));

  test('counts calls of its target that may have started, and those whose judgement began earlier', () => {
    const run = new Driver();
    for (const id of ['a', 'b', 'c']) run.declare({ id }, JUDGED);
    run.declare({ id: 'other' }, { judged: 'tool/other' });
    expect(['a', 'b', 'c', 'other'].map((id) => calls(run, id))).toEqual([0, 1, 2, 0]);
  });

  test('a later one that was allowed first counts, and a denied one does not', () => {
    const run = new Driver();
    for (const id of ['a', 'b', 'c']) run.declare({ id }, JUDGED);
    run.judged('c', 'start');
    expect(calls(run, 'a')).toBe(1);
    run.judged('a', DENIED);
    expect(calls(run, 'b')).toBe(1);
    run.succeed('c');
    expect(calls(run, 'b')).toBe(1);
  });

  test('one that is earlier in the text and ready later counts the one before it', () => {
    const run = new Driver();
    run.declare({ id: 'first' });
    run.declare({ id: 'a', dependsOn: ['first'] }, JUDGED);
    run.declare({ id: 'b' }, JUDGED);
    run.succeed('first');
    expect([calls(run, 'b'), calls(run, 'a')]).toEqual([0, 1]);
  });
});

test('[C9] what a run has used counts its time only while it is live', () => {
  const run = new Driver();
  const started = run.at;
  run.declare({ id: 'a' });
  run.send({ type: 'usage_recorded', tokens: 70, cost: 0.25 });
  expect(usedBy(run.state, started + 1_500)).toEqual({
    actions: 1,
    modelCalls: 1,
    tokens: 70,
    cost: 0.25,
    seconds: 1.5,
  });
});
