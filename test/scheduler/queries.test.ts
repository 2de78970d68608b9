/** Queries of the engine on a run's state: statuses, names, dependencies, remaining tokens. */
import { describe, expect, test } from 'vitest';
import { limits } from '../../src/domain/limits.ts';
import {
  action,
  bindings,
  counts,
  dependenciesOf,
  generationTokens,
  isBlockedByOthers,
  isFireAndForget,
  lookup,
  statusOf,
} from '../../src/scheduler/step.ts';
import type { ActionStatus } from '../../src/domain/action.ts';
import { Driver, TEXT } from '../support/scheduler-kit.ts';

const none: Record<ActionStatus, number> = {
  waiting: 0,
  ready: 0,
  running: 0,
  retrying: 0,
  awaiting_approval: 0,
  awaiting_client: 0,
  completed: 0,
  failed: 0,
  skipped: 0,
  cancelled: 0,
  rejected: 0,
};

describe('the status of an action', () => {
  const cases: readonly (readonly [title: string, status: ActionStatus, prepare: (run: Driver) => unknown])[] = [
    ['waits for a dependency', 'waiting', (run) => run.declare({ id: 'a', dependsOn: ['busy'] })],
    ['has a condition that is being evaluated', 'waiting', (run) => run.declare({ id: 'a', when: 'true' })],
    [
      'is held until the end of the text',
      'waiting',
      (run) => run.declare({ id: 'a' }, { dispatch: 'after_generation' }),
    ],
    ['is looked up', 'waiting', (run) => run.declare({ id: 'a' }, { reuse: true })],
    [
      'has an approval that was not asked for yet',
      'waiting',
      (run) => {
        run.asks = false;
        run.declare({ id: 'a' }, { needsApproval: true });
      },
    ],
    ['has an open approval', 'awaiting_approval', (run) => run.declare({ id: 'a' }, { needsApproval: true })],
    ['waits for a slot', 'ready', (run) => run.declare({ id: 'a' })],
    [
      'runs',
      'running',
      (run) => {
        run.succeed('busy');
        run.declare({ id: 'a' });
      },
    ],
    [
      'waits for its next attempt',
      'retrying',
      (run) => {
        run.succeed('busy');
        run.declare({ id: 'a' });
        run.fail('a', { retryable: true });
      },
    ],
    ['was cancelled', 'cancelled', (run) => [run.declare({ id: 'a' }), run.cancel()]],
    ['was skipped', 'skipped', (run) => [run.declare({ id: 'a', when: 'x' }), run.condition('a', false)]],
    ['failed', 'failed', (run) => [run.declare({ id: 'a', when: 'x' }), run.condition('a', 'no such name')]],
    ['was rejected', 'rejected', (run) => run.refuse({ id: 'a' })],
  ];

  test.each(cases)('[S10] an action that %s is %s', (_title, status, prepare) => {
    const run = new Driver({ maxParallelActions: 1 });
    run.declare({ id: 'busy' });
    prepare(run);
    expect(statusOf(run.state, run.key('a'))).toBe(status);
    expect(lookup(run.state, 'a')).toEqual({ key: run.key('a'), status });
    const busy = statusOf(run.state, run.key('busy')) ?? 'waiting';
    const expected = { ...none };
    expected[status] += 1;
    expected[busy] += 1;
    expect(counts(run.state)).toEqual(expected);
  });

  test('[S10] an undeclared action has no status', () => {
    const run = new Driver();
    expect(statusOf(run.state, '1/0')).toBeNull();
    expect(lookup(run.state, 'a')).toBeNull();
    expect(action(run.state, '1/0')).toBeNull();
    expect(dependenciesOf(run.state, '1/0')).toEqual([]);
    expect(bindings(run.state, '1/0')).toEqual({});
    expect(isFireAndForget(run.state, '1/0')).toBe(false);
    expect(counts(run.state)).toEqual(none);
  });
});

describe('names', () => {
  test('[S3] dependencies are listed by key, each once, without barriers', () => {
    const run = new Driver();
    run.declare({ id: 'a', mode: 'sync' });
    run.declare({ id: 'b' });
    run.declare({ id: 'c', dependsOn: ['b'], references: ['b', 'a'] });
    expect(dependenciesOf(run.state, run.key('b'))).toEqual([]);
    expect(dependenciesOf(run.state, run.key('c'))).toEqual([run.key('b'), run.key('a')]);
  });

  test('[P6] the declaration of an unreadable action contains the readable fields', () => {
    const run = new Driver();
    run.refuse({ id: 'a', type: 'agent', mode: 'sync', name: 'scout' });
    expect(action(run.state, run.key('a'))).toMatchObject({ id: 'a', type: 'agent', mode: 'sync', name: 'scout' });
    run.refuse({ id: 'b', type: null, mode: null, name: null });
    expect(action(run.state, run.key('b'))).toMatchObject({
      id: 'b',
      ordinal: 1,
      type: 'tool',
      mode: 'async',
      name: '',
      dependsOn: [],
    });
  });

  test('[S4] an action is fire_and_forget until another one waits for it', () => {
    const run = new Driver();
    run.declare({ id: 'f', mode: 'fire_and_forget' });
    run.declare({ id: 'a' });
    expect(['f', 'a'].map((id) => isFireAndForget(run.state, run.key(id)))).toEqual([true, false]);
    run.declare({ id: 'b', dependsOn: ['f'] });
    expect(isFireAndForget(run.state, run.key('f'))).toBe(false);
  });
});

describe('queries of a writer of text', () => {
  test('[J8] blocked on an approval means: text still arrives, an approval is open, and nothing else runs', () => {
    const run = new Driver(TEXT);
    expect(isBlockedByOthers(run.state)).toBe(false);
    run.declare({ id: 'a' });
    run.declare({ id: 'q' }, { needsApproval: true });
    expect(isBlockedByOthers(run.state)).toBe(false);
    run.succeed('a');
    expect(isBlockedByOthers(run.state)).toBe(true);
    run.say({ type: 'generation_idle' });
    expect(isBlockedByOthers(run.state)).toBe(false);
    run.approve('q');
    expect(isBlockedByOthers(run.state)).toBe(false);
    const ended = new Driver(TEXT);
    ended.declare({ id: 'q' }, { needsApproval: true });
    ended.end();
    expect(isBlockedByOthers(ended.state)).toBe(false);
  });

  test('[S12] a generation gets all tokens but the reserve; the last one gets the reserve; the number is never negative', () => {
    expect(generationTokens(new Driver().state)).toBeNull();
    const run = new Driver({ tokens: 5_000, maxIterations: 1 });
    run.say({ type: 'usage_recorded', tokens: 1_000 });
    expect(generationTokens(run.state)).toBe(4_000 - limits.lastGenerationTokens);
    run.say({ type: 'usage_recorded', tokens: 3_500 });
    expect(generationTokens(run.state)).toBe(0);
    const last = new Driver({ tokens: 5_000, maxIterations: 1 });
    last.respond(false);
    last.end();
    expect(generationTokens(last.state)).toBe(5_000);
  });
});
