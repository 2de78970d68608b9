/** The values in an answer are checked before it ends the run (P10, P13). */
import { describe, expect, test } from 'vitest';
import { commands } from './commands.ts';
import { Driver, TEXT, withoutTimers } from '../support/scheduler-kit.ts';
import type { RunPolicy } from '../../src/scheduler/types.ts';

/** A run whose first generation has one response with references. */
function answered(policy: Partial<RunPolicy> = {}, final: boolean | null = true): Driver {
  const run = new Driver(policy);
  run.respond(final, [], true);
  return run;
}

const ANSWERED = ['complete_iteration 1 final', 'end_run completed', 'drained'];

describe('[P10] an answer with references', () => {
  test.each([true, null])('with final=%s is checked when its generation has settled, once', (final) => {
    const run = new Driver();
    run.declare({ id: 'a' });
    run.declare({ id: 'b' });
    run.respond(final, ['a', 'b'], true);
    run.end();
    expect(withoutTimers(run.succeed('a'))).toEqual(['settle a completed']);
    expect(withoutTimers(run.succeed('b'))).toEqual(['settle b completed', 'check_answer 1']);
    expect(run.say({ type: 'usage_recorded', tokens: 1 })).toEqual([]);
    expect(withoutTimers(run.checked())).toEqual(ANSWERED);
  });

  test('without references is checked if an action of its generation has some', () => {
    const run = new Driver();
    run.declare({ id: 'a' });
    run.succeed('a');
    run.declare({ id: 'b', references: ['a'] });
    run.succeed('b');
    run.respond(true);
    expect(withoutTimers(run.end())).toEqual(['report_plan 1', 'check_answer 1']);
    expect(run.checked({ missing: true })).toEqual(['complete_iteration 1', 'start_iteration 2']);
  });

  test('without references is not checked', () => {
    const run = new Driver();
    run.respond(true);
    expect(withoutTimers(run.end())).toEqual(ANSWERED);
  });

  test.each([
    ['that is not final', (run: Driver) => run.respond(false, [], true)],
    [
      'of a generation with a failed action',
      (run: Driver) => {
        run.declare({ id: 'a' });
        run.fail('a');
        run.respond(true, [], true);
      },
    ],
  ])('%s is not checked', (_name, write) => {
    const run = new Driver();
    write(run);
    expect(withoutTimers(run.end())).toEqual(expect.arrayContaining(['complete_iteration 1', 'start_iteration 2']));
  });

  test('without a value continues the run, once in a run', () => {
    const run = answered();
    expect(run.end()).toEqual(['check_answer 1']);
    expect(run.checked({ missing: true })).toEqual(['complete_iteration 1', 'start_iteration 2']);
    run.respond(true, [], true);
    expect(run.end()).toEqual(['check_answer 2']);
    expect(withoutTimers(run.checked({ missing: true }))).toEqual(
      commands('complete_iteration 2 final, end_run completed, drained'),
    );
  });

  test.each<[string, Partial<RunPolicy>]>([
    ['of a posted text', TEXT],
    ['with `on_failed_final: end`', { onFailedFinal: 'end' }],
    ['when no model call is left', { modelCalls: 1 }],
    ['when no tokens are left', { tokens: 1 }],
  ])('without a value ends the run %s', (_name, policy) => {
    const run = answered(policy);
    run.end();
    expect(withoutTimers(run.checked({ missing: true }))).toEqual(ANSWERED);
  });

  test('without a value ends the run in its last generation', () => {
    const run = new Driver({ maxIterations: 1 });
    run.declare({ id: 'a' });
    run.succeed('a');
    run.end();
    run.respond(true, [], true);
    expect(run.end()).toEqual(['check_answer 2']);
    expect(withoutTimers(run.checked({ missing: true }))).toEqual(
      commands('complete_iteration 2 final, end_run completed, drained'),
    );
  });

  test('an answer that was not asked for changes nothing', () => {
    const run = answered();
    expect(run.checked({ missing: true, pending: true })).toEqual([]);
    run.end();
    expect(withoutTimers(run.checked())).toEqual(ANSWERED);
    expect(run.checked({ missing: true })).toEqual([]);
  });
});

describe('[P13] an answer with pending values', () => {
  test('is written again before the run ends', () => {
    const run = answered();
    run.end();
    expect(withoutTimers(run.checked({ pending: true }))).toEqual(['complete_responses', ...ANSWERED]);
  });

  test('is not written again if the model answers again', () => {
    const run = answered();
    run.end();
    expect(run.checked({ missing: true, pending: true })).toEqual(['complete_iteration 1', 'start_iteration 2']);
  });

  test('of a posted text is written again', () => {
    const run = answered(TEXT);
    run.end();
    expect(withoutTimers(run.checked({ missing: true, pending: true }))).toEqual(['complete_responses', ...ANSWERED]);
  });
});
