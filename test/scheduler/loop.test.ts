import { describe, expect, test } from 'vitest';
import { limits } from '../../src/domain/limits.ts';
import { generationTokens, initialState, step } from '../../src/scheduler/step.ts';
import type { RunPolicy } from '../../src/scheduler/types.ts';
import { commands } from './commands.ts';
import { Driver, MODEL, TEXT, declaration, withoutTimers, policy } from '../support/scheduler-kit.ts';

function started(policy: Partial<RunPolicy> = {}): string[] {
  const run = new Driver(policy);
  return run.commands.map((command) => run.text(command));
}

describe('S11 the loop', () => {
  test('[S11] a run starts its first iteration and the timer of its budget', () => {
    expect(started()).toEqual(['set_timer budget 3600000', 'start_iteration 1']);
  });

  test('[S11] an iteration ends when its stream has ended and its awaited actions have settled', () => {
    const run = new Driver();
    run.declare({ id: 'a' });
    run.declare({ id: 's', mode: 'sync' });
    run.declare({ id: 'f', mode: 'fire_and_forget', dependsOn: [] });
    expect(run.end()).toEqual(['report_plan 1']);
    expect(withoutTimers(run.succeed('s'))).toEqual(['settle s completed']);
    expect(withoutTimers(run.succeed('a'))).toEqual(
      commands('settle a completed, complete_iteration 1, start_iteration 2'),
    );
  });

  test('[S11] a generation without actions reports no plan; a rejected action does not count', () => {
    const run = new Driver();
    run.refuse({ id: 'a' });
    run.respond(false);
    expect(run.end()).toEqual(['complete_iteration 1', 'start_iteration 2']);
  });

  test('[S11] two generations in a row without a response or an accepted action are no progress', () => {
    const run = new Driver();
    run.refuse({ id: 'a' });
    expect(run.end()).toEqual(['complete_iteration 1', 'start_iteration 2']);
    expect(withoutTimers(run.end())).toEqual(['complete_iteration 2', 'end_run failed no_progress', 'drained']);
  });

  test('[S11] an accepted action or a response in between counts as progress', () => {
    const run = new Driver();
    run.end();
    run.declare({ id: 'a' });
    run.succeed('a');
    run.end();
    run.end();
    run.respond(false);
    run.end();
    expect(run.end()).toEqual(['complete_iteration 5', 'start_iteration 6']);
    expect(withoutTimers(run.end())).toContain('end_run failed no_progress');
  });

  test('[S11] after max_iterations there is one last generation, which can only answer', () => {
    const run = new Driver({ maxIterations: 1 });
    run.declare({ id: 'a' });
    run.succeed('a');
    expect(run.end()).toEqual(
      commands('report_plan 1, complete_iteration 1, budget_exceeded iterations 1/1, start_iteration 2 last'),
    );
    expect(run.declare({ id: 'b' })).toEqual(['settle b rejected not_allowed']);
    run.respond(null);
    expect(withoutTimers(run.end())).toEqual(['complete_iteration 2 final', 'end_run completed', 'drained']);
  });

  test('[S11] without an answer in the last generation the run fails', () => {
    const run = new Driver({ maxIterations: 1 });
    run.respond(false);
    run.end();
    expect(withoutTimers(run.end())).toEqual(['complete_iteration 2', 'end_run failed max_iterations', 'drained']);
  });

  test('[S11] max_iterations 0 sets no limit', () => {
    const run = new Driver({ maxIterations: 0 });
    for (let n = 1; n <= 50; n += 1) {
      run.respond(false);
      expect(run.end()).toContain(`start_iteration ${n + 1}`);
    }
  });

  test('[P11] bare text that counts as the answer ends the run', () => {
    const run = new Driver();
    expect(withoutTimers(run.end({ answered: true }))).toEqual(
      commands('complete_iteration 1 final, end_run completed, drained'),
    );
  });
});

describe('P10 finality', () => {
  test('[P10] a final response ends the run once its work is settled', () => {
    const run = new Driver();
    run.declare({ id: 'a' });
    run.respond(true);
    expect(run.end()).toEqual(['report_plan 1']);
    expect(withoutTimers(run.succeed('a'))).toEqual(
      commands('settle a completed, complete_iteration 1 final, end_run completed, drained'),
    );
  });

  test('[P10] actions declared after a final response still run before the run ends', () => {
    const run = new Driver();
    run.respond(true);
    expect(withoutTimers(run.declare({ id: 'a' }))).toContain('start a');
    run.end();
    expect(withoutTimers(run.succeed('a'))).toContain('end_run completed');
  });

  test('[P10] final="false" never ends the run', () => {
    const run = new Driver();
    run.respond(false);
    expect(run.end()).toContain('start_iteration 2');
  });

  test.each([
    ['no action', [], [], true],
    ['an action that the response refers to', ['a'], ['a'], true],
    ['the dependencies of an action that it refers to', ['a', 'b:a'], ['b'], true],
    ['an action that it does not refer to', ['a', 'b'], ['a'], false],
    ['an action that depends on what it refers to', ['a', 'b:a'], ['a'], false],
    ['a fire_and_forget action', ['f!'], [], true],
  ] as const)('[P10] auto: %s', (_, actions, refers, final) => {
    const run = new Driver();
    for (const action of actions) {
      const [id = '', dependency] = action.replace('!', '').split(':');
      const mode = action.endsWith('!') ? ('fire_and_forget' as const) : ('async' as const);
      run.declare({ id, mode, dependsOn: dependency === undefined ? [] : [dependency] });
    }
    run.respond(null, refers);
    run.end();
    for (const action of actions) run.succeed(action.replace('!', '').split(':')[0] ?? '');
    const texts = new Set(run.commands.map((command) => run.text(command)));
    expect(texts.has('end_run completed')).toBe(final);
    expect(texts.has('start_iteration 2')).toBe(!final);
  });

  test('[P10] auto: an unreadable action counts as one that the model should see', () => {
    const run = new Driver();
    run.refuse({ id: 'a', type: null, mode: null });
    run.respond(null);
    expect(run.end()).toContain('start_iteration 2');
  });

  test.each([
    ['final', true],
    ['continue', false],
  ] as const)('[P10] response_default %s applies to a response without final', (responseDefault, final) => {
    const run = new Driver({ responseDefault });
    run.declare({ id: 'a' });
    run.succeed('a');
    run.respond(null);
    expect(run.end().includes('end_run completed')).toBe(final);
  });

  test('[P10] one final response among several is enough', () => {
    const run = new Driver();
    run.respond(false);
    run.respond(true);
    run.respond(false);
    expect(run.end()).toContain('end_run completed');
  });

  test.each([
    ['failed', (run: Driver): unknown => run.fail('a')],
    ['timed out', (run: Driver): unknown => run.fire('timeout:a#1')],
  ])('[P10] a final response does not end the run when an action of its generation %s', (_, break_) => {
    const run = new Driver();
    run.declare({ id: 'a' }, { effects: 'unsafe' });
    run.respond(true, ['a']);
    run.end();
    break_(run);
    expect(run.commands.map((command) => run.text(command))).toContain('start_iteration 2');
  });

  test('[P10] a final response does not end the run after a rejection or a skip: the model must see it', () => {
    const run = new Driver();
    run.declare({ id: 'a', dependsOn: ['nowhere'] });
    run.respond(true);
    expect(run.end()).toContain('start_iteration 2');
  });

  test('[P10] a final response ends the run after a harmless failure, or if on_failed_final allows it', () => {
    const harmless = new Driver();
    harmless.declare({ id: 'a', onError: 'skip' });
    harmless.declare({ id: 'f', mode: 'fire_and_forget' });
    harmless.declare({ id: 'c', when: 'false' });
    harmless.fail('a');
    harmless.fail('f');
    harmless.condition('c', false);
    harmless.respond(true);
    expect(harmless.end()).toContain('end_run completed');

    const end = new Driver({ onFailedFinal: 'end' });
    end.declare({ id: 'a' });
    end.fail('a');
    end.respond(true);
    expect(end.end()).toContain('end_run completed');
  });

  test('[P10] posted text has no model that could continue, so its final response ends the run', () => {
    const run = new Driver(TEXT);
    run.declare({ id: 'a' });
    run.fail('a');
    run.respond(true);
    expect(withoutTimers(run.end())).toEqual(
      commands('report_plan 1, complete_iteration 1 final, end_run completed, drained'),
    );
  });
});

describe('H7 posted text', () => {
  test('[H7] posted text completes when its actions have settled, with or without a response', () => {
    const run = new Driver(TEXT);
    run.declare({ id: 'a' });
    run.respond(false);
    run.end();
    expect(withoutTimers(run.succeed('a'))).toEqual(
      commands('settle a completed, complete_iteration 1 final, end_run completed, drained'),
    );
  });

  test('[P15] posted text that breaks off fails after its started actions have ended', () => {
    const run = new Driver(TEXT);
    run.declare({ id: 'a' });
    run.end({ finish: 'error', error: { code: 'input_cut', message: 'gone' } });
    expect(withoutTimers(run.succeed('a'))).toEqual(
      commands('settle a completed, complete_iteration 1, end_run failed input_cut, drained'),
    );
  });
});

describe('P15 broken generations', () => {
  const gone = { finish: 'error' as const, error: { code: 'model_unavailable' as const, message: 'gone' } };

  test('[P15] after an error the run continues with a new generation, once its actions have settled', () => {
    const run = new Driver();
    run.declare({ id: 'a' });
    expect(run.end(gone)).toEqual(['report_plan 1']);
    expect(withoutTimers(run.succeed('a'))).toEqual(
      commands('settle a completed, complete_iteration 1, start_iteration 2'),
    );
  });

  test('[P15] two broken generations in a row fail the run with the error', () => {
    const run = new Driver();
    run.end(gone);
    expect(withoutTimers(run.end(gone))).toEqual(
      commands('complete_iteration 2, end_run failed model_unavailable, drained'),
    );
  });

  test('[P15] a good generation in between resets the count', () => {
    const run = new Driver();
    run.end(gone);
    run.respond(false);
    run.end();
    expect(run.end(gone)).toContain('start_iteration 4');
  });

  test('[P15] an error that a repetition cannot fix fails the run at once', () => {
    const run = new Driver();
    expect(run.end({ finish: 'error', error: { code: 'model_rejected', message: 'bad key' } })).toContain(
      'end_run failed model_rejected',
    );
  });

  test('[P15] a final response that was complete before the error still ends the run', () => {
    const run = new Driver();
    run.respond(true);
    expect(run.end(gone)).toContain('end_run completed');
  });

  test('[P15] a broken generation without an error text is reported with its finish reason', () => {
    const run = new Driver();
    run.end({ finish: 'content_filter' });
    expect(run.end({ finish: 'content_filter' })).toContain('end_run failed generation_content_filter');
  });

  test('[P15] broken generations do not count as no progress', () => {
    const run = new Driver();
    run.end();
    run.end(gone);
    expect(run.end({ finish: 'length' })).toContain('end_run failed no_progress');
    const other = new Driver();
    other.end(gone);
    expect(other.end()).toContain('start_iteration 3');
  });
});

describe('S12 budgets', () => {
  test('[S12] actions past the budget are rejected, and the next generation is the last', () => {
    const run = new Driver({ maxActions: 1 });
    run.declare({ id: 'a' });
    expect(run.declare({ id: 'b' })).toEqual(['budget_exceeded actions 2/1', 'settle b rejected budget_exceeded']);
    expect(run.declare({ id: 'c' })).toEqual(['settle c rejected budget_exceeded']);
    run.end();
    expect(withoutTimers(run.succeed('a'))).toEqual(
      commands('settle a completed, complete_iteration 1, start_iteration 2 last'),
    );
    expect(withoutTimers(run.end())).toContain('end_run failed budget_exceeded');
  });

  test('[S12] one model call is reserved for the last generation', () => {
    const run = new Driver({ modelCalls: 3 });
    run.respond(false);
    expect(run.end()).toEqual(['complete_iteration 1', 'start_iteration 2']);
    run.respond(false);
    expect(run.end()).toEqual(['complete_iteration 2', 'budget_exceeded model_calls 2/3', 'start_iteration 3 last']);
  });

  test('[S12] without the reserved call the run fails', () => {
    const run = new Driver({ modelCalls: 1 });
    run.respond(false);
    expect(withoutTimers(run.end())).toEqual(
      commands('complete_iteration 1, budget_exceeded model_calls 1/1, end_run failed budget_exceeded, drained'),
    );
    expect(withoutTimers(started({ modelCalls: 0 }))).toEqual(
      commands('budget_exceeded model_calls 1/0, end_run failed budget_exceeded, drained'),
    );
  });

  test('[S12] llm actions spend model calls, except the last one', () => {
    const run = new Driver({ modelCalls: 3 });
    expect(withoutTimers(run.declare({ id: 'a', type: 'llm', name: 'llm' }))).toContain('start a');
    expect(withoutTimers(run.declare({ id: 'b', type: 'llm', name: 'llm' }))).toEqual(
      commands('queue b [], budget_exceeded model_calls 2/3, settle b failed budget_exceeded'),
    );
    expect(withoutTimers(run.declare({ id: 'c' }))).toContain('start c');
    run.succeed('a');
    run.end();
    expect(withoutTimers(run.succeed('c'))).toContain('start_iteration 2 last');
  });

  test('[S12] some tokens are reserved for the last generation', () => {
    const run = new Driver({ tokens: 10_000 });
    expect(generationTokens(run.state)).toBe(10_000 - limits.lastGenerationTokens);
    run.say({ type: 'usage_recorded', tokens: 8_000 });
    run.respond(false);
    expect(run.end()).toContain('start_iteration 2');
    run.say({ type: 'usage_recorded', tokens: 976 });
    run.respond(false);
    expect(run.end()).toEqual(['complete_iteration 2', 'budget_exceeded tokens 8976/10000', 'start_iteration 3 last']);
    expect(generationTokens(run.state)).toBe(1_024);
  });

  test('[S12] the run fails when the reserved tokens are spent too', () => {
    const run = new Driver({ tokens: 10_000 });
    run.say({ type: 'usage_recorded', tokens: 9_500 });
    run.respond(false);
    expect(withoutTimers(run.end())).toContain('end_run failed budget_exceeded');
  });

  test('[S12] agents cannot start without tokens, tools can', () => {
    const run = new Driver({ tokens: 2_000 });
    run.say({ type: 'usage_recorded', tokens: 1_000 });
    expect(withoutTimers(run.declare({ id: 'a', type: 'agent', name: 'x' }))).toContain(
      'settle a failed budget_exceeded',
    );
    expect(withoutTimers(run.declare({ id: 'b' }))).toContain('start b');
  });

  test('[S12] at the end of the seconds, awaited actions are cancelled and the model gets a last generation', () => {
    const run = new Driver({ seconds: 60, maxParallelActions: 2 });
    run.declare({ id: 'f', mode: 'fire_and_forget' });
    run.declare({ id: 'a' });
    run.declare({ id: 'b', dependsOn: ['a'] });
    run.declare({ id: 'f2', mode: 'fire_and_forget' });
    run.at += 60_000;
    expect(run.fire('budget')).toEqual([
      'budget_exceeded seconds 60/60',
      'stop_generation',
      'abort a budget_exceeded',
      'clear_timer timeout:a#1',
      'settle a cancelled budget_exceeded',
      'settle b cancelled budget_exceeded',
      'settle f2 cancelled budget_exceeded',
      `set_timer budget ${limits.lastGenerationMs}`,
    ]);
    expect(withoutTimers(run.declare({ id: 'c' }))).toEqual(['queue c []', 'settle c cancelled budget_exceeded']);
    expect(run.end({ finish: 'abort' })).toEqual(['report_plan 1', 'complete_iteration 1', 'start_iteration 2 last']);
    run.respond(true);
    expect(run.end()).toEqual(['complete_iteration 2 final', 'clear_timer budget', 'end_run completed']);
    expect(withoutTimers(run.succeed('f'))).toEqual(['settle f completed', 'drained']);
  });

  test('[S12] a last generation that exceeds its time is aborted', () => {
    const run = new Driver({ seconds: 60 });
    run.at += 60_000;
    run.fire('budget');
    run.end({ finish: 'abort' });
    run.at += limits.lastGenerationMs;
    expect(run.fire('budget')).toEqual(
      commands('stop_generation, complete_iteration 2, end_run failed budget_exceeded, drained'),
    );
    expect(run.end({ finish: 'abort' })).toEqual([]);
  });

  test('[S12] posted text has no last generation: the run ends', () => {
    const run = new Driver({ ...TEXT, seconds: 60 });
    run.declare({ id: 'a' });
    run.at += 60_000;
    expect(withoutTimers(run.fire('budget'))).toEqual([
      'budget_exceeded seconds 60/60',
      'stop_generation',
      'abort a budget_exceeded',
      'settle a cancelled budget_exceeded',
      'complete_iteration 1',
      'end_run failed budget_exceeded',
      'drained',
    ]);
  });

  const costs: readonly (readonly [
    title: string,
    spent: readonly (number | undefined)[],
    commands: readonly string[],
  ])[] = [
    ['below the limit the run continues', [0.2, 0.2], ['start_iteration 2']],
    [
      'at the limit, the next generation is the last',
      [0.3, 0.2],
      ['budget_exceeded cost 0.5/0.5', 'start_iteration 2 last'],
    ],
    ['a call without a price does not count', [undefined, undefined], ['start_iteration 2']],
  ];
  test.each(costs)('[S12] cost: %s', (_title, spent, commands) => {
    const run = new Driver({ cost: 0.5 });
    for (const cost of spent) run.say({ type: 'usage_recorded', tokens: 1, ...(cost === undefined ? {} : { cost }) });
    run.respond(false);
    expect(withoutTimers(run.end())).toEqual(['complete_iteration 1', ...commands]);
  });

  test('[S12] past the cost limit, actions that call a model are not dispatched, and others are', () => {
    const run = new Driver({ cost: 0.5 });
    run.say({ type: 'usage_recorded', tokens: 1, cost: 0.6 });
    expect(withoutTimers(run.declare({ id: 'a', type: 'llm', name: 'llm' }))).toEqual(
      commands('queue a [], budget_exceeded cost 0.6/0.5, settle a failed budget_exceeded'),
    );
    expect(withoutTimers(run.declare({ id: 'b' }))).toContain('start b');
  });

  test('[S12] a budget longer than the maximum timer is waited for in parts', () => {
    const run = new Driver({ seconds: 10_000_000 });
    run.at += 2_147_483_647;
    expect(run.fire('budget')).toEqual(['set_timer budget 2147483647']);
  });

  test('[J8] waiting for approvals does not use up the seconds', () => {
    const run = new Driver({ seconds: 60 });
    run.declare({ id: 'a' }, { needsApproval: true });
    run.at += 10_000;
    run.end();
    run.at += 1_000_000;
    expect(run.fire('budget')).toEqual([]);
    expect(run.approve('a')).toContain('set_timer budget 50000');
  });

  test('[J8] text whose writer waits for an approval counts as ended, until it continues', () => {
    const run = new Driver({ source: 'text', seconds: 60 });
    run.declare({ id: 'a' }, { needsApproval: true });
    run.declare({ id: 'b' });
    expect(run.say({ type: 'generation_idle' })).toEqual([]);
    run.succeed('b');
    run.at += 10_000;
    expect(run.say({ type: 'generation_idle' })).toEqual(['clear_timer budget', 'end_run waiting']);
    expect(run.say({ type: 'generation_idle' })).toEqual([]);
    run.at += 1_000_000;
    expect(run.declare({ id: 'c' })).toContain('set_timer budget 50000');
    run.succeed('c');
    expect(run.say({ type: 'generation_idle' })).toContain('end_run waiting');
    run.approve('a');
    run.succeed('a');
    expect(withoutTimers(run.end())).toContain('end_run completed');
  });
});

describe('the end of a run', () => {
  test('[S4] the run ends without waiting for fire_and_forget actions, which continue until they settle', () => {
    const run = new Driver({ maxParallelActions: 2 });
    for (const id of ['f1', 'f2', 'f3']) run.declare({ id, mode: 'fire_and_forget' });
    run.respond(true);
    expect(withoutTimers(run.end())).toEqual(
      commands('report_plan 1, complete_iteration 1 final, end_run completed, start f2'),
    );
    expect(withoutTimers(run.fail('f1'))).toEqual(['settle f1 failed boom', 'start f3']);
    run.succeed('f2');
    expect(withoutTimers(run.succeed('f3'))).toEqual(['settle f3 completed', 'drained']);
  });

  test('[J5] a cancel aborts running actions and settles all; nothing starts after it', () => {
    const run = new Driver({ maxParallelActions: 2 });
    run.declare({ id: 'a' });
    run.declare({ id: 'r' });
    run.fail('r', { retryable: true });
    run.declare({ id: 'p' }, { needsApproval: true });
    run.declare({ id: 'f', mode: 'fire_and_forget', dependsOn: ['a'] });
    run.declare({ id: 'u', dependsOn: ['later'] });
    expect(run.cancel('user')).toEqual([
      'stop_generation',
      'abort a user',
      'clear_timer timeout:a#1',
      'settle a cancelled user',
      'clear_timer retry:r#1',
      'settle r cancelled user',
      'clear_timer approval:p',
      'settle p cancelled user',
      'settle f cancelled user',
      'queue u []',
      'settle u cancelled user',
      'complete_iteration 1',
      'clear_timer budget',
      'end_run cancelled',
      'drained',
    ]);
    expect(run.succeed('a')).toEqual([]);
    expect(run.declare({ id: 'late' })).toEqual([]);
    expect(run.respond(true)).toEqual([]);
    expect(run.end({ finish: 'abort' })).toEqual([]);
    expect(run.cancel()).toEqual([]);
  });

  test('[J5] a cancel after the answer reaches the fire_and_forget actions', () => {
    const run = new Driver();
    run.declare({ id: 'f', mode: 'fire_and_forget' });
    run.respond(true);
    run.end();
    expect(withoutTimers(run.cancel('shutdown'))).toEqual(
      commands('abort f shutdown, settle f cancelled shutdown, drained'),
    );
  });

  test('[S1] protocol text outside a generation is an internal error, not the model’s', () => {
    expect(() =>
      step(initialState(), { type: 'action_declared', at: 0, action: declaration({ id: 'a' }), policy: policy() }),
    ).toThrow('outside a generation');
    const { state } = step(initialState(), { type: 'run_started', at: 0, policy: MODEL });
    expect(() => step(state, { type: 'run_started', at: 0, policy: MODEL })).toThrow('twice');
  });
});
