/** Messages of the scheduler. The model reads them, so each says which action, what happened and what is allowed. */
import { describe, expect, test } from 'vitest';
import { limits } from '../../src/domain/limits.ts';
import type { ActionError } from '../../src/domain/action.ts';
import type { RunPolicy } from '../../src/scheduler/types.ts';
import { Driver, TEXT, failure } from '../support/scheduler-kit.ts';

/** Messages of warnings, settled actions and the end of the run, in order. */
function messages(run: Driver): string[] {
  return run.commands.flatMap((command) => {
    if (command.type === 'warn') return [command.message];
    if (command.type === 'end_run') return command.error === null ? [] : [command.error.message];
    if (command.type !== 'settle') return [];
    if (command.status === 'failed') return [command.error.message];
    return command.status === 'rejected' ? [command.message] : [];
  });
}

function errors(run: Driver): ActionError[] {
  return run.commands.flatMap((command) =>
    command.type === 'settle' && command.status === 'failed' ? [command.error] : [],
  );
}

const cases: readonly (readonly [
  title: string,
  policy: Partial<RunPolicy>,
  prepare: (run: Driver) => unknown,
  message: string,
])[] = [
  [
    'P6] an action that is repeated exactly',
    {},
    (run) => [run.declare({ id: 'a' }), run.declare({ id: 'a' })],
    'Action "a" was declared twice with the same content; the second one is ignored',
  ],
  [
    'P6] an id that is in use',
    {},
    (run) => [run.declare({ id: 'a' }), run.declare({ id: 'a', name: 'other' })],
    'The id "a" is already used in this generation; choose another',
  ],
  ['P9] an action that is unreadable', {}, (run) => run.refuse({ id: 'a', message: 'no brace' }), 'no brace'],
  [
    'X4] an action that is not allowed',
    {},
    (run) => run.declare({ id: 'a' }, { refusal: { code: 'not_allowed', message: 'not imported' } }),
    'not imported',
  ],
  [
    'S11] an action of the last generation',
    { maxIterations: 1 },
    (run) => [run.respond(false), run.end(), run.declare({ id: 'a' })],
    'Action "a" was not run: this is the last generation of the run, which may only answer',
  ],
  [
    'S12] an action past the budget',
    { maxActions: 0 },
    (run) => run.declare({ id: 'a' }),
    'Action "a" was not run: a run may declare 0 actions',
  ],
  [
    'S4] fire_and_forget with a dependent',
    {},
    (run) => [run.declare({ id: 'f', mode: 'fire_and_forget' }), run.respond(false, ['f'])],
    'Action "f" is fire_and_forget, but another action or the response needs it: it runs as async',
  ],
  [
    'S3] several unknown ids, with no known ids',
    {},
    (run) => [run.declare({ id: 'a', dependsOn: ['x', 'y'] }), run.end()],
    'Action "a" depends on unknown ids "x", "y" (known: none)',
  ],
  [
    'S9] a condition that cannot be evaluated',
    {},
    (run) => [run.declare({ id: 'a', when: 'x' }), run.condition('a', 'unknown name x')],
    'unknown name x',
  ],
  [
    'J8] an action that is denied',
    {},
    (run) => [run.declare({ id: 'a' }, { needsApproval: true }), run.approve('a', false)],
    'Action "a" was denied',
  ],
  [
    'J8] an action that is not approved in time',
    {},
    (run) => [run.declare({ id: 'a' }, { needsApproval: true }), run.fire('approval:a')],
    'Action "a" was not approved in time',
  ],
  [
    'S8] an action that takes too long',
    {},
    (run) => [run.declare({ id: 'a', timeoutMs: 1_500 }, { effects: 'unsafe' }), run.fire('timeout:a#1')],
    'Action "a" did not finish within 1.5 s',
  ],
  [
    'R8] an overloaded target',
    { maxParallelActions: 4 },
    (run) => {
      for (const id of ['a', 'b', 'c', 'd']) run.declare({ id, name: 'search' });
      run.fail('a', { overloaded: true, retryable: true });
    },
    '"tool/search" is overloaded: at most 2 run at the same time now; the limit rises again as they succeed',
  ],
  [
    'S12] no model call left for an action',
    { modelCalls: 2 },
    (run) => run.declare({ id: 'a', type: 'llm', name: 'llm' }),
    'No model call is left for action "a": the run may make 2, and one is reserved for its answer',
  ],
  [
    'S12] no tokens left for an action',
    { tokens: 1_000 },
    (run) => run.declare({ id: 'a', type: 'llm', name: 'llm' }),
    'No tokens are left for action "a": the run may use 1000, and some are reserved for its answer',
  ],
  [
    'S12] no cost budget left for an action',
    { cost: 0.5 },
    (run) => [run.say({ type: 'usage_recorded', tokens: 1, cost: 0.5 }), run.declare({ id: 'a', type: 'llm' })],
    'No money is left for action "a": the run may spend 0.5 US dollars',
  ],
  [
    'M7] no session left for a child',
    { maxChildren: 1 },
    (run) => [run.declare({ id: 'b', type: 'agent' }), run.declare({ id: 'a', type: 'agent' })],
    'Action "a" was not started: this run may start 1 sessions, including nested ones',
  ],
];

describe('messages about actions', () => {
  test.each(cases)('[%s gets its message', (_title, policy, prepare, message) => {
    const run = new Driver(policy);
    prepare(run);
    expect(messages(run)[0]).toBe(message);
  });

  test('[S7] a failure from the scheduler itself is not retried', () => {
    const run = new Driver({ modelCalls: 2 });
    run.declare({ id: 'a', type: 'llm' });
    run.declare({ id: 'c', when: 'x' });
    run.condition('c', 'no');
    run.declare({ id: 'p' }, { needsApproval: true });
    run.approve('p', false);
    expect(errors(run).map(({ code, retryable }) => [code, retryable])).toEqual([
      ['budget_exceeded', false],
      ['condition_error', false],
      ['approval_denied', false],
    ]);
  });

  test('[S8] a timeout is retryable, with the full backoff if no random number is given', () => {
    const run = new Driver();
    run.declare({ id: 'a' });
    expect(run.fire('timeout:a#1')).toContain('retry a after 500');
  });

  test('[S3] for a long cycle, the first actions and the last one are listed', () => {
    const run = new Driver();
    const last = 20;
    for (let n = 0; n < last; n += 1) run.declare({ id: `a${n}`, dependsOn: [`a${n + 1}`] });
    run.declare({ id: `a${last}`, dependsOn: ['a0'] });
    expect(messages(run)[0]).toBe(
      `Action "a20" closes a dependency cycle: a20 -> ${Array.from({ length: 14 }, (_, n) => `a${n}`).join(' -> ')} -> … -> a19 -> a20`,
    );
  });

  test('[S3] a cycle of seventeen actions is listed completely', () => {
    const run = new Driver();
    for (let n = 0; n < 16; n += 1) run.declare({ id: `a${n}`, dependsOn: [`a${n + 1}`] });
    run.declare({ id: 'a16', dependsOn: ['a0'] });
    expect(messages(run)[0]).toBe(
      `Action "a16" closes a dependency cycle: a16 -> ${Array.from({ length: 16 }, (_, n) => `a${n}`).join(' -> ')} -> a16`,
    );
  });

  test('[S3] twelve unknown names and twelve known ids are listed completely; longer names are cut', () => {
    const run = new Driver();
    for (let n = 0; n < 12; n += 1) run.declare({ id: `k${n}` });
    run.declare({ id: 'a', dependsOn: Array.from({ length: 12 }, (_, n) => `x${n}`) });
    run.end();
    const message = messages(run)[0] ?? '';
    expect(message).not.toContain('more');
    expect(message).toContain('"x0", "x1"');
    expect(message).toContain('(known: k0, k1');
    const long = new Driver();
    long.declare({ id: 'a', dependsOn: ['y'.repeat(200)] });
    long.end();
    expect(messages(long)[0]).toContain(`unknown id "${'y'.repeat(limits.excerptChars)}" (`);
  });

  test('[S3] of thirteen known ids the newest are listed', () => {
    const run = new Driver();
    for (let n = 0; n < 13; n += 1) run.declare({ id: `k${n}` });
    run.declare({ id: 'a', dependsOn: ['x'] });
    run.end();
    expect(messages(run)[0]).toBe(
      'Action "a" depends on unknown id "x" (known: k1, k2, k3, k4, k5, k6, k7, k8, k9, k10, k11, k12 and 1 more)',
    );
  });
});

describe('messages about runs', () => {
  const used = (budget: string): string => `The run used up its budget (${budget}) without an answer`;
  const noAnswer = (run: Driver): void => {
    run.respond(false);
    run.end();
  };
  const ends: readonly (readonly [string, Partial<RunPolicy>, (run: Driver) => unknown, string])[] = [
    [
      'S11] no progress',
      {},
      (run) => [run.end(), run.end()],
      `The model neither answered nor declared a valid action, ${limits.idleIterations} times in a row`,
    ],
    [
      'S11] no answer within the iterations',
      { maxIterations: 2 },
      (run) => [noAnswer(run), noAnswer(run), run.end()],
      'No answer within 2 iterations, nor in the extra last generation',
    ],
    ['S12] no model call', { modelCalls: 0 }, () => null, used('0 model calls')],
    ['S12] model calls', { modelCalls: 2 }, (run) => [noAnswer(run), run.end()], used('2 model calls')],
    [
      'S12] tokens',
      { tokens: 3_000 },
      (run) => [run.say({ type: 'usage_recorded', tokens: 2_900 }), noAnswer(run)],
      used('3000 tokens'),
    ],
    [
      'S12] money',
      { cost: 2 },
      (run) => [run.say({ type: 'usage_recorded', tokens: 1, cost: 2 }), noAnswer(run), run.end()],
      used('2 US dollars'),
    ],
    [
      'S12] actions',
      { maxActions: 1 },
      (run) => [run.declare({ id: 'a' }), run.succeed('a'), run.declare({ id: 'b' }), noAnswer(run), run.end()],
      used('1 actions'),
    ],
    [
      'S12] seconds',
      { ...TEXT, seconds: 60 },
      (run) => {
        run.at += 60_000;
        run.fire('budget');
      },
      used('60 s'),
    ],
    [
      'P15] a generation that broke off without a reason',
      TEXT,
      (run) => run.end({ finish: 'content_filter' }),
      'The generation ended early: content_filter',
    ],
    [
      'P15] a generation that broke off with a reason',
      TEXT,
      (run) => run.end({ finish: 'error', error: { code: 'model_unavailable', message: 'gone' } }),
      'gone',
    ],
    [
      'J2] too many restarts of the host',
      {},
      (run) => {
        const interrupted = { finish: 'error' as const, error: { code: 'interrupted' as const, message: 'restart' } };
        for (let n = 0; n <= limits.cutGenerations; n += 1) run.end(interrupted);
      },
      `The run failed because the host was restarted during ${limits.cutGenerations + 1} of its generations`,
    ],
  ];

  test.each(ends)('[%s: the run reports why it ended', (_title, policy, prepare, message) => {
    const run = new Driver(policy);
    prepare(run);
    expect(messages(run).at(-1)).toBe(message);
    expect(run.commands.some((command) => run.text(command).startsWith('end_run failed'))).toBe(true);
  });

  test('[J2] an interrupted generation is continued, and counts neither as broken nor as no progress', () => {
    const interrupted = { finish: 'error' as const, error: { code: 'interrupted' as const, message: 'restart' } };
    const run = new Driver();
    for (let n = 1; n <= limits.cutGenerations; n += 1) {
      expect(run.end(interrupted)).toEqual([`complete_iteration ${n}`, `start_iteration ${n + 1}`]);
    }
    const gone = { finish: 'error' as const, error: { code: 'model_unavailable' as const, message: 'gone' } };
    expect(run.end(gone)).toContain(`start_iteration ${limits.cutGenerations + 2}`);
    const answered = new Driver();
    answered.respond(true);
    expect(answered.end(interrupted)).toContain('end_run completed');
  });

  test('[S11] a last generation that breaks off without an answer fails the run with its own error', () => {
    const run = new Driver({ maxIterations: 1 });
    noAnswer(run);
    expect(run.end({ finish: 'error', error: { code: 'model_unavailable', message: 'gone' } })).toContain(
      'end_run failed model_unavailable',
    );
    const other = new Driver({ maxIterations: 1 });
    noAnswer(other);
    other.respond(false);
    expect(other.end()).toContain('end_run completed');
  });

  test('[S11] a text stopped at its time limit counts neither as broken nor as no progress', () => {
    const run = new Driver({ seconds: 60 });
    run.end();
    run.at += 60_000;
    run.fire('budget');
    expect(run.end({ finish: 'abort' })).toContain('start_iteration 3 last');
  });

  test('[R8] a warning about an action contains its key', () => {
    const run = new Driver();
    run.declare({ id: 'a' });
    run.declare({ id: 'a' });
    run.declare({ id: 'f', mode: 'fire_and_forget' });
    run.respond(false, ['f']);
    run.fail('a', failure({ overloaded: true, retryable: true }));
    const keys = run.commands.flatMap((command) => (command.type === 'warn' ? [command.key] : []));
    expect(keys).toEqual(['a', 'f', 'a'].map((id) => run.key(id)));
  });
});
