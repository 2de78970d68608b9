import { describe, expect, test } from 'vitest';
import { bindings, dependenciesOf, lookup, statusOf } from '../../src/scheduler/step.ts';
import type { SchedulerCommand } from '../../src/scheduler/types.ts';
import { commands } from './commands.ts';
import { Driver, withoutTimers } from '../support/scheduler-kit.ts';

function rejection(run: Driver): Extract<SchedulerCommand, { type: 'settle'; status: 'rejected' }> {
  const found = run.commands.find((command) => command.type === 'settle' && command.status === 'rejected');
  if (found?.type !== 'settle' || found.status !== 'rejected') throw new Error('nothing was rejected');
  return found;
}

describe('S2 a ready action starts', () => {
  test('[S2] an action without dependencies starts when it is declared, while the text still streams', () => {
    const run = new Driver();
    expect(run.declare({ id: 'a' })).toEqual(['queue a []', 'start a', 'set_timer timeout:a#1 60000']);
  });

  test('[S2] an action starts in the step in which its last dependency settles, not after a whole wave', () => {
    const run = new Driver();
    run.declare({ id: 'fast' });
    run.declare({ id: 'slow' });
    expect(withoutTimers(run.declare({ id: 'next', dependsOn: ['fast'] }))).toEqual(['queue next [fast]']);
    expect(withoutTimers(run.succeed('fast'))).toEqual(['settle fast completed', 'start next']);
  });
});

describe('S3 dependencies', () => {
  test('[S3] dependencies by id, by unique name and by reference are each listed once', () => {
    const run = new Driver();
    run.declare({ id: 'a', outputKey: 'news' });
    run.declare({ id: 'b', name: 'search' });
    const said = run.declare({ id: 'c', dependsOn: ['a', 'search', 'b'], references: ['news', 'b', 'city'] });
    expect(withoutTimers(said)).toEqual(['queue c [a b]']);
    expect(dependenciesOf(run.state, run.key('c'))).toEqual([run.key('a'), run.key('b')]);
  });

  test('[S3] an id has precedence over a name', () => {
    const run = new Driver();
    run.declare({ id: 'a', name: 'b' });
    run.declare({ id: 'b', name: 'x' });
    expect(withoutTimers(run.declare({ id: 'c', dependsOn: ['b'] }))).toEqual(['queue c [b]']);
  });

  test('[S3] an id declared later in the generation is bound at its declaration', () => {
    const run = new Driver();
    expect(run.declare({ id: 'b', dependsOn: ['a'] })).toEqual([]);
    expect(withoutTimers(run.declare({ id: 'a' }))).toEqual(['queue a []', 'queue b [a]', 'start a']);
    expect(withoutTimers(run.succeed('a'))).toEqual(['settle a completed', 'start b']);
  });

  test('[S3] a name declared later is bound at the end of the generation, when it is known to be unique', () => {
    const run = new Driver();
    run.declare({ id: 'b', dependsOn: ['search'] });
    run.declare({ id: 'a', name: 'search' });
    run.succeed('a');
    expect(withoutTimers(run.end())).toEqual(['queue b [a]', 'report_plan 1', 'start b']);
  });

  test('[S3] a name shared by several actions is rejected as a dependency', () => {
    const run = new Driver();
    run.declare({ id: 'a', name: 'search' });
    run.declare({ id: 'b', name: 'search' });
    expect(run.declare({ id: 'c', dependsOn: ['search'] })).toEqual([]);
    expect(withoutTimers(run.end())).toContain('settle c rejected unknown_dependency');
    expect(rejection(run).message).toBe(
      'Action "c" depends on "search", which is the name of several actions: use an id (known: a, b)',
    );
  });

  test('[S3] an id that is never declared is rejected at the end of the generation, with the known ids', () => {
    const run = new Driver();
    run.declare({ id: 'fetch1' });
    run.declare({ id: 'fetch2' });
    run.declare({ id: 'sum', dependsOn: ['fetch1', 'fetch3'] });
    run.declare({ id: 'report', dependsOn: ['sum'] });
    expect(withoutTimers(run.end())).toEqual(
      commands('settle sum rejected unknown_dependency, report_plan 1, settle report skipped sum'),
    );
    expect(rejection(run).message).toBe('Action "sum" depends on unknown id "fetch3" (known: fetch1, fetch2, report)');
  });

  test('[S3] hundreds of thousands of unknown ids take linear time, and the message lists a few of them', () => {
    const run = new Driver();
    run.declare({ id: 'a', dependsOn: Array.from({ length: 300_000 }, (_, at) => `x${at}`) });
    run.end();
    expect(rejection(run).message).toMatch(
      /^Action "a" depends on unknown ids "x0", .*, "x11" and 299988 more \(known: none\)$/,
    );
  });

  test('[S3] the action that closes a cycle is rejected with the path, and the actions that wait for it are skipped', () => {
    const run = new Driver();
    run.declare({ id: 'a', dependsOn: ['c'] });
    run.declare({ id: 'b', dependsOn: ['a'] });
    expect(withoutTimers(run.declare({ id: 'c', dependsOn: ['b'] }))).toEqual(
      commands('settle c rejected dependency_cycle, queue a [c], settle a skipped c, settle b skipped a'),
    );
    expect(rejection(run).message).toBe('Action "c" closes a dependency cycle: c -> b -> a -> c');
  });

  test('[S3] an action that depends on itself is a cycle of one', () => {
    const run = new Driver();
    expect(run.declare({ id: 'a', dependsOn: ['a'] })).toEqual(['settle a rejected dependency_cycle']);
    expect(rejection(run).message).toBe('Action "a" closes a dependency cycle: a -> a');
  });

  test('[S3] a cycle through a name bound at the end of the generation is found too', () => {
    const run = new Driver();
    run.declare({ id: 'a', name: 'one', dependsOn: ['two'] });
    run.declare({ id: 'b', name: 'two', dependsOn: ['a'] });
    expect(withoutTimers(run.end())).toEqual(
      commands(
        'settle a rejected dependency_cycle, report_plan 1, settle b skipped a, complete_iteration 1, start_iteration 2',
      ),
    );
  });

  test('[S3] two independent cycles in one generation are both found, and other actions run', () => {
    const run = new Driver();
    run.declare({ id: 'a', dependsOn: ['b'] });
    run.declare({ id: 'b', dependsOn: ['a'] });
    run.declare({ id: 'c', dependsOn: ['d'] });
    run.declare({ id: 'd', dependsOn: ['c'] });
    expect(withoutTimers(run.declare({ id: 'e' }))).toEqual(['queue e []', 'start e']);
    expect(['a', 'b', 'c', 'd'].map((id) => statusOf(run.state, run.key(id)))).toEqual(
      commands('skipped, rejected, skipped, rejected'),
    );
  });

  test('[S3] a settled action closes no cycle: actions that wait for it are skipped', () => {
    const run = new Driver();
    run.declare({ id: 'f' });
    run.declare({ id: 'busy' });
    run.declare({ id: 'x', dependsOn: ['f', 'late'] });
    run.declare({ id: 'y', dependsOn: ['x', 'busy'], waitForAll: false });
    run.fail('f');
    expect(withoutTimers(run.declare({ id: 'late', dependsOn: ['y'] }))).toEqual(['queue late [y]']);
    expect(withoutTimers(run.succeed('busy'))).toEqual(['settle busy completed', 'start y']);

    const direct = new Driver();
    direct.declare({ id: 'f' });
    direct.declare({ id: 'x', dependsOn: ['f', 'late'] });
    direct.fail('f');
    expect(withoutTimers(direct.declare({ id: 'late', dependsOn: ['x'] }))).toEqual(
      commands('queue late [x], settle late skipped x'),
    );
  });

  test('[S3] wait_for_all: false starts at the first success, whatever the results of the others', () => {
    const run = new Driver();
    run.declare({ id: 'a' });
    run.declare({ id: 'b' });
    run.declare({ id: 'any', dependsOn: ['a', 'b'], waitForAll: false });
    expect(withoutTimers(run.fail('a'))).toEqual(['settle a failed boom']);
    expect(withoutTimers(run.succeed('b'))).toEqual(['settle b completed', 'start any']);
  });

  test('[S3] wait_for_all: false starts after the first success without waiting, even if the success came earlier', () => {
    const run = new Driver();
    run.declare({ id: 'a' });
    run.declare({ id: 'b' });
    run.declare({ id: 'any', dependsOn: ['a', 'b'], waitForAll: false });
    expect(withoutTimers(run.succeed('a'))).toEqual(['settle a completed', 'start any']);
    expect(withoutTimers(run.declare({ id: 'late', dependsOn: ['a', 'b'], waitForAll: false }))).toEqual(
      commands('queue late [a b], start late'),
    );
  });

  test('[S3] wait_for_all: false is skipped if no dependency succeeded, and starts if one of them counts as null', () => {
    const run = new Driver();
    run.declare({ id: 'a' });
    run.declare({ id: 'b' });
    run.declare({ id: 'any', dependsOn: ['a', 'b'], waitForAll: false });
    run.fail('b');
    expect(withoutTimers(run.fail('a'))).toEqual(['settle a failed boom', 'settle any skipped b']);

    const other = new Driver();
    other.declare({ id: 'a', onError: 'skip' });
    other.declare({ id: 'b' });
    other.declare({ id: 'any', dependsOn: ['a', 'b'], waitForAll: false });
    expect(withoutTimers(other.fail('a'))).toEqual(['settle a failed boom']);
    expect(withoutTimers(other.fail('b'))).toEqual(['settle b failed boom', 'start any']);
  });

  test('[S3] wait_for_all: false is not skipped while one of its names is undeclared', () => {
    const run = new Driver();
    run.declare({ id: 'a' });
    run.declare({ id: 'any', dependsOn: ['a', 'b'], waitForAll: false });
    expect(withoutTimers(run.fail('a'))).toEqual(['settle a failed boom']);
    expect(withoutTimers(run.declare({ id: 'b' }))).toEqual(['queue b []', 'queue any [a b]', 'start b']);
    expect(withoutTimers(run.succeed('b'))).toEqual(['settle b completed', 'start any']);
  });

  test('[S3] an action of an earlier iteration can be depended on', () => {
    const run = new Driver();
    run.declare({ id: 'a' });
    run.succeed('a');
    run.end();
    expect(withoutTimers(run.declare({ id: 'b', dependsOn: ['a'] }))).toEqual(['queue b [a]', 'start b']);
  });

  test('[S3] an id that failed in an earlier iteration waits for a new declaration', () => {
    const run = new Driver();
    run.declare({ id: 'a' });
    run.fail('a');
    run.end();
    expect(run.declare({ id: 'b', dependsOn: ['a'] })).toEqual([]);
    run.declare({ id: 'a' });
    expect(dependenciesOf(run.state, run.key('b'))).toEqual(['2/1']);
    run.declare({ id: 'c', dependsOn: ['a'] });

    const other = new Driver();
    other.declare({ id: 'a' });
    other.fail('a');
    other.end();
    other.declare({ id: 'b', dependsOn: ['a'] });
    expect(withoutTimers(other.end())).toEqual(
      commands('queue b [a], settle b skipped a, report_plan 2, complete_iteration 2, start_iteration 3'),
    );
  });

  test('[S3] a name in this generation has precedence over the same name in an earlier one', () => {
    const run = new Driver();
    run.declare({ id: 'old', name: 'search' });
    run.succeed('old');
    run.end();
    run.declare({ id: 'new', name: 'search' });
    expect(withoutTimers(run.declare({ id: 'c', dependsOn: ['search'] }))).toEqual(['queue c [new]']);
    expect(withoutTimers(run.succeed('new'))).toEqual(['settle new completed', 'start c']);
  });

  test('[S3] a name with one earlier action is bound at once, a name with several is undecided', () => {
    const run = new Driver();
    run.declare({ id: 'old', name: 'search' });
    run.declare({ id: 'x', name: 'fetch' });
    run.declare({ id: 'y', name: 'fetch' });
    for (const id of ['old', 'x', 'y']) run.succeed(id);
    run.end();
    expect(withoutTimers(run.declare({ id: 'c', dependsOn: ['search'] }))).toEqual(['queue c [old]', 'start c']);
    expect(run.declare({ id: 'd', dependsOn: ['fetch'] })).toEqual([]);
    expect(withoutTimers(run.end())).toEqual(['settle d rejected unknown_dependency', 'report_plan 2']);
  });

  test('[S3] the name of a failed earlier action is undecided until the end, then its dependents are skipped', () => {
    const run = new Driver();
    run.declare({ id: 'old', name: 'search' });
    run.fail('old');
    run.end();
    expect(run.declare({ id: 'c', dependsOn: ['search'] })).toEqual([]);
    expect(withoutTimers(run.end())).toContain('settle c skipped old');
  });

  test('[S3] a name with two actions in this generation is undecided, whatever happened earlier', () => {
    const run = new Driver();
    run.declare({ id: 'x', name: 'fetch' });
    run.declare({ id: 'y', name: 'fetch' });
    expect(run.declare({ id: 'd', dependsOn: ['fetch'] })).toEqual([]);
    expect(withoutTimers(run.end())).toContain('settle d rejected unknown_dependency');
  });

  test('[S3] an action rejected by the parser causes its dependents to be skipped', () => {
    const run = new Driver();
    expect(run.refuse({ id: 'a' })).toEqual(['settle a rejected invalid_json']);
    expect(run.declare({ id: 'b', dependsOn: ['a'] })).toEqual(['queue b [a]', 'settle b skipped a']);
    expect(run.declare({ id: 'c', references: ['b'] })).toEqual(['queue c [b]', 'settle c skipped b']);
  });
});

describe('P6 and P12 names', () => {
  test('[P6] an id repeated in one generation is rejected, and the first action keeps it', () => {
    const run = new Driver();
    run.declare({ id: 'a' });
    expect(run.declare({ id: 'a', parameters: { q: 1 } })).toEqual(["settle a' rejected duplicate_id"]);
    expect(lookup(run.state, 'a')).toEqual({ key: '1/0', status: 'running' });
  });

  test('[P6] an identical repeated action is ignored with a warning', () => {
    const run = new Driver();
    run.declare({ id: 'a', span: { start: 0, end: 9 } });
    expect(run.declare({ id: 'a', span: { start: 10, end: 19 }, embeddedInThought: true })).toEqual(
      commands('warn duplicate_action'),
    );
    expect(statusOf(run.state, '1/1')).toBeNull();
  });

  test('[P6] an id whose first declaration was unreadable can be declared again', () => {
    const run = new Driver();
    run.refuse({ id: 'a' });
    expect(withoutTimers(run.declare({ id: 'a' }))).toEqual(["queue a' []", "start a'"]);
    expect(lookup(run.state, 'a')?.key).toBe('1/1');
  });

  test('[P6] an id repeated in a later generation shadows the earlier one', () => {
    const run = new Driver();
    run.declare({ id: 'a' });
    run.succeed('a');
    run.end();
    expect(lookup(run.state, 'a')).toEqual({ key: '1/0', status: 'completed' });
    run.declare({ id: 'a', references: ['a'] });
    expect(lookup(run.state, 'a')).toEqual({ key: '2/0', status: 'running' });
    expect(bindings(run.state, '2/0')['a']).toBe('1/0');
  });

  test('[P12] a name refers to the latest output key, otherwise to an action id, otherwise to nothing', () => {
    const run = new Driver();
    run.declare({ id: 'a', outputKey: 'x' });
    run.declare({ id: 'x', outputKey: 'y' });
    run.declare({ id: 'b', outputKey: 'x' });
    expect(lookup(run.state, 'x')?.key).toBe(run.key('b'));
    expect(lookup(run.state, 'a')?.key).toBe(run.key('a'));
    expect(lookup(run.state, 'constructor')).toBeNull();
  });

  test('[P12] references bind backwards: a later declaration is unknown', () => {
    const run = new Driver();
    run.declare({ id: 'user', references: ['data', '__proto__'] });
    run.declare({ id: 'data' });
    expect(dependenciesOf(run.state, run.key('user'))).toEqual([]);
    expect(bindings(run.state, run.key('user'))['data']).toBeUndefined();
    expect(bindings(run.state, run.key('user'))['__proto__']).toBeUndefined();
  });

  test('[P12] a later declaration is known to its dependents, by id and by output key', () => {
    const run = new Driver();
    run.declare({ id: 'user', references: ['a', 'text'], dependsOn: ['a', 'b'] });
    run.declare({ id: 'a' });
    run.declare({ id: 'b', outputKey: 'text' });
    const bound = bindings(run.state, run.key('user'));
    expect(bound['a']).toBe(run.key('a'));
    expect(bound['text']).toBe(run.key('b'));
  });

  test('[P12] a name that will be declared again does not refer to its earlier, failed action', () => {
    const run = new Driver();
    run.declare({ id: 'a' });
    run.fail('a');
    run.end();
    expect(run.declare({ id: 'c', dependsOn: ['a'], references: ['a'] })).toEqual([]);
    expect(withoutTimers(run.declare({ id: 'a' }))).toEqual(['queue a []', 'queue c [a]', 'start a']);
    expect(withoutTimers(run.succeed('a'))).toEqual(['settle a completed', 'start c']);
  });

  test('[P6] a rejected action does not take over the id of an accepted one', () => {
    const run = new Driver();
    run.declare({ id: 'a' });
    run.refuse({ id: 'a' });
    expect(withoutTimers(run.declare({ id: 'c', dependsOn: ['a'] }))).toEqual(['queue c [a]']);
    expect(withoutTimers(run.succeed('a'))).toEqual(['settle a completed', 'start c']);
  });

  test('[P12] a binding stays when a newer action takes the name', () => {
    const run = new Driver();
    run.declare({ id: 'a', outputKey: 'x' });
    run.declare({ id: 'user', references: ['x'] });
    run.declare({ id: 'b', outputKey: 'x' });
    expect(bindings(run.state, run.key('user'))['x']).toBe(run.key('a'));
  });
});

describe('S4 sync, async, fire_and_forget', () => {
  test('[S4] a sync action holds later actions without a depends_on field until it has settled', () => {
    const run = new Driver();
    run.declare({ id: 's', mode: 'sync' });
    expect(run.declare({ id: 'held' })).toEqual(['queue held []']);
    expect(withoutTimers(run.declare({ id: 'free', dependsOn: [] }))).toEqual(['queue free []', 'start free']);
    expect(withoutTimers(run.succeed('s'))).toEqual(['settle s completed', 'start held']);
  });

  test('[S4] a barrier only orders: a failed sync action skips nothing', () => {
    const run = new Driver();
    run.declare({ id: 's', mode: 'sync' });
    run.declare({ id: 'held' });
    expect(withoutTimers(run.fail('s'))).toEqual(['settle s failed boom', 'start held']);
  });

  test('[S4] sync actions follow one another, and earlier actions are not held', () => {
    const run = new Driver();
    run.declare({ id: 'before' });
    run.declare({ id: 's1', mode: 'sync' });
    run.declare({ id: 's2', mode: 'sync' });
    run.declare({ id: 'after' });
    expect(withoutTimers(run.succeed('s1'))).toEqual(['settle s1 completed', 'start s2']);
    expect(withoutTimers(run.succeed('before'))).toEqual(['settle before completed']);
    expect(withoutTimers(run.succeed('s2'))).toEqual(['settle s2 completed', 'start after']);
  });

  test('[S4] every earlier sync action holds, including one that did not wait for the others', () => {
    const run = new Driver();
    run.declare({ id: 's1', mode: 'sync' });
    run.declare({ id: 's2', mode: 'sync', dependsOn: [] });
    run.declare({ id: 'after' });
    expect(withoutTimers(run.succeed('s2'))).toEqual(['settle s2 completed']);
    expect(withoutTimers(run.succeed('s1'))).toEqual(['settle s1 completed', 'start after']);
  });

  test('[S4] a sync action never holds its own dependencies', () => {
    const run = new Driver();
    run.declare({ id: 's', mode: 'sync', dependsOn: ['a'] });
    expect(withoutTimers(run.declare({ id: 'a' }))).toEqual(['queue a []', 'queue s [a]', 'start a']);
  });

  test('[S4] a sync action does not hold its indirect dependencies that are declared later', () => {
    const run = new Driver();
    run.declare({ id: 's', mode: 'sync', dependsOn: ['c'] });
    run.declare({ id: 'a' });
    run.declare({ id: 'other' });
    run.declare({ id: 'b', references: ['a'] });
    expect(withoutTimers(run.declare({ id: 'c', dependsOn: ['b'] }))).toEqual(
      commands('queue c [b], queue s [c], start a'),
    );
    expect(withoutTimers(run.succeed('a'))).toEqual(['settle a completed', 'start b']);
    expect(withoutTimers(run.succeed('b'))).toEqual(['settle b completed', 'start c']);
    expect(withoutTimers(run.succeed('c'))).toEqual(['settle c completed', 'start s']);
    expect(withoutTimers(run.succeed('s'))).toEqual(['settle s completed', 'start other']);
  });

  test('[S4] a sync action after the barrier does not hold the dependencies of the barrier', () => {
    const run = new Driver();
    run.declare({ id: 's1', mode: 'sync', dependsOn: ['c'] });
    run.declare({ id: 's2', mode: 'sync' });
    run.declare({ id: 'd' });
    run.declare({ id: 'c', dependsOn: ['d'] });
    run.declare({ id: 'last' });
    expect(withoutTimers(run.succeed('d'))).toEqual(['settle d completed', 'start c']);
    expect(withoutTimers(run.succeed('c'))).toEqual(['settle c completed', 'start s1']);
    expect(withoutTimers(run.succeed('s1'))).toEqual(['settle s1 completed', 'start s2']);
    expect(withoutTimers(run.succeed('s2'))).toEqual(['settle s2 completed', 'start last']);
  });

  test('[S4] a dependency of one barrier is still held by other sync actions', () => {
    const run = new Driver();
    run.declare({ id: 's1', mode: 'sync', dependsOn: ['c'] });
    run.declare({ id: 's2', mode: 'sync', dependsOn: [] });
    run.declare({ id: 'd' });
    expect(withoutTimers(run.declare({ id: 'c', dependsOn: ['d'] }))).toEqual(['queue c [d]', 'queue s1 [c]']);
    expect(withoutTimers(run.succeed('s2'))).toEqual(['settle s2 completed', 'start d']);
  });

  test('[S4] a dependency of one barrier is still held by an earlier sync action', () => {
    const run = new Driver();
    run.declare({ id: 's1', mode: 'sync' });
    run.declare({ id: 'd' });
    run.declare({ id: 's2', mode: 'sync', dependsOn: ['c'] });
    expect(withoutTimers(run.declare({ id: 'c', dependsOn: ['d'] }))).toEqual(['queue c [d]', 'queue s2 [c]']);
    expect(withoutTimers(run.succeed('s1'))).toEqual(['settle s1 completed', 'start d']);
  });

  test('[S4] a sync action without dependencies still holds what another barrier releases', () => {
    const run = new Driver();
    run.declare({ id: 's1', mode: 'sync' });
    run.declare({ id: 's2', mode: 'sync' });
    run.declare({ id: 's3', mode: 'sync', dependsOn: ['c'] });
    run.declare({ id: 'x' });
    run.declare({ id: 'c', dependsOn: ['x'] });
    expect(withoutTimers(run.succeed('s1'))).toEqual(['settle s1 completed', 'start s2']);
    expect(withoutTimers(run.succeed('s2'))).toEqual(['settle s2 completed', 'start x']);
    expect(withoutTimers(run.succeed('x'))).toEqual(['settle x completed', 'start c']);
    expect(withoutTimers(run.succeed('c'))).toEqual(['settle c completed', 'start s3']);
  });

  test('[S4] a barrier is released only once', () => {
    const run = new Driver();
    run.declare({ id: 's0', mode: 'sync' });
    run.declare({ id: 's1', mode: 'sync', dependsOn: ['c', 'd'] });
    run.declare({ id: 'x' });
    run.declare({ id: 'c', dependsOn: ['x'] });
    expect(withoutTimers(run.declare({ id: 'd', dependsOn: ['x'] }))).toEqual(['queue d [x]', 'queue s1 [c d]']);
    expect(withoutTimers(run.succeed('s0'))).toEqual(['settle s0 completed', 'start x']);
    expect(withoutTimers(run.succeed('x'))).toEqual(['settle x completed', 'start c', 'start d']);
    run.succeed('c');
    expect(withoutTimers(run.succeed('d'))).toEqual(['settle d completed', 'start s1']);
  });

  test('[S6] fail_fast also cancels actions that a barrier holds', () => {
    const run = new Driver({ failFast: true });
    run.declare({ id: 's', mode: 'sync' });
    run.declare({ id: 'a', dependsOn: [] });
    run.declare({ id: 'held' });
    expect(withoutTimers(run.fail('a'))).toEqual(
      commands(
        'settle a failed boom, abort s fail_fast, settle s cancelled fail_fast, settle held cancelled fail_fast',
      ),
    );
  });

  test('[S4] barriers release the same actions for a name bound at the end of the generation', () => {
    const run = new Driver();
    run.declare({ id: 's', mode: 'sync', dependsOn: ['search'] });
    run.declare({ id: 'a', name: 'search' });
    expect(withoutTimers(run.end())).toEqual(['queue s [a]', 'report_plan 1', 'start a']);
  });

  test('[S4] a fire_and_forget action with a dependent is async, with one warning', () => {
    const run = new Driver();
    run.declare({ id: 'log', mode: 'fire_and_forget' });
    expect(withoutTimers(run.declare({ id: 'b', references: ['log'] }))).toEqual(
      commands('warn fire_and_forget_awaited, queue b [log]'),
    );
    expect(withoutTimers(run.declare({ id: 'c', dependsOn: ['log'] }))).toEqual(['queue c [log]']);
  });

  test('[S4] a fire_and_forget action that ends before its dependent is declared no longer holds the run', () => {
    const run = new Driver();
    run.declare({ id: 'f', mode: 'fire_and_forget' });
    run.succeed('f');
    run.declare({ id: 'b', dependsOn: ['f'] });
    run.respond(true);
    run.end();
    expect(withoutTimers(run.succeed('b'))).toEqual(
      commands('settle b completed, complete_iteration 1 final, end_run completed, drained'),
    );
  });

  test('[S4] a fire_and_forget action that a response refers to is async: the iteration waits for it', () => {
    const run = new Driver();
    run.declare({ id: 'log', mode: 'fire_and_forget' });
    expect(run.respond(true, ['log'])).toEqual(['warn fire_and_forget_awaited']);
    expect(run.end()).toEqual(['report_plan 1']);
    expect(withoutTimers(run.succeed('log'))).toEqual(
      commands('settle log completed, complete_iteration 1 final, end_run completed, drained'),
    );
  });
});
