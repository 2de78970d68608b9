/** Which of several runners gets a job: free places, sessions, loss, sleep, back-pressure (R7, R8), in simulated time. */
import { beforeEach, describe, expect, test } from 'vitest';

import { limits } from '../../../src/domain/limits.ts';
import type { RunnerClient, RunnerJob } from '../../../src/domain/ports/runner.ts';
import { type Candidate, chooseRunner, rankOf } from '../../../src/executors/runner/choice.ts';
import { VirtualClock } from '../../../testing/virtual-clock.ts';
import { SimulatedFleet, type Submitted } from '../../support/simulated-fleet.ts';
import type { SimulatedRunner, SimulatedRunnerOptions } from '../../support/simulated-runner.ts';

let clock: VirtualClock;
let fleet: SimulatedFleet;
beforeEach(() => {
  clock = new VirtualClock();
  fleet = new SimulatedFleet(clock);
});

const runner = (options: Partial<SimulatedRunnerOptions> = {}): SimulatedRunner => fleet.runner(options);
const poolOf = (runners: readonly SimulatedRunner[], tenant: string | null = null): RunnerClient =>
  fleet.poolOf(runners, tenant);
const submit = (pool: RunnerClient, session: string, more: Partial<RunnerJob> = {}): Submitted =>
  fleet.submit(pool, session, more);
const pass = (ms: number, stepMs?: number): Promise<void> => fleet.pass(ms, stepMs);
const untilEnded = (all: readonly Submitted[]): Promise<void> => fleet.untilEnded(all);
const startsOf = (runners: readonly SimulatedRunner[]): number[] => runners.map(({ started }) => started.length);

describe('[R7] the rule', () => {
  const candidate = (more: Partial<Candidate>): Candidate => ({
    isDown: false,
    isAsleep: false,
    hasPlace: true,
    isLast: false,
    rank: 0,
    ...more,
  });
  test.each([
    ["the session's own, if it has a free place", [{ rank: 9 }, { isLast: true }], 1],
    ['another one with a free place, if its own has none', [{ isLast: true, hasPlace: false }, {}], 1],
    ['the first by rank, if the session has none', [{ rank: 1 }, { rank: 3 }, { rank: 2 }], 1],
    ['one that is awake before one that sleeps, also if it is its own', [{ isLast: true, isAsleep: true }, {}], 1],
    ['one that sleeps, if no other one has a free place', [{ isLast: true, hasPlace: false }, { isAsleep: true }], 1],
    [
      'its own, if no place is free',
      [
        { hasPlace: false, rank: 9 },
        { hasPlace: false, isLast: true },
      ],
      1,
    ],
    ['a full one before one that is down', [{ isDown: true, isLast: true }, { hasPlace: false }], 1],
  ])('%s', (_name, given, expected) => {
    const candidates = given.map((some) => candidate(some));
    expect(chooseRunner(candidates)).toBe(candidates[expected]);
  });

  test('without candidates there is no choice', () => expect(chooseRunner([])).toBeUndefined());

  test('a removed runner moves only its own sessions', () => {
    const urls = ['http://a', 'http://b', 'http://c', 'http://d'];
    const first = (among: readonly string[], session: string): string | undefined =>
      among.toSorted((a, b) => rankOf(b, session) - rankOf(a, session))[0];
    for (let at = 0; at < 200; at += 1) {
      const before = first(urls, `ses_${at}`);
      if (before !== 'http://d') expect(first(urls.slice(0, 3), `ses_${at}`)).toBe(before);
    }
  });
});

describe('[R7] sessions and places', () => {
  const pair = (): SimulatedRunner[] => [runner({ places: 2, jobMs: 500 }), runner({ places: 2, jobMs: 500 })];

  test('a session stays on its runner while that has a free place, and asks no other one', async () => {
    const both = pair();
    const pool = poolOf(both);
    for (let turn = 0; turn < 10; turn += 1) {
      await untilEnded([submit(pool, 'ses_1')]);
      await pass(5_000, 100);
    }
    expect(startsOf(both).toSorted()).toEqual([0, 10]);
    const other = both.find(({ started }) => started.length === 0);
    expect(other?.asked).toEqual({ health: 0, jobs: 0, refused: 0 });
  });

  test('a session stays although its jobs have filled its runner, once they have ended', async () => {
    const both = pair();
    const pool = poolOf(both);
    for (let turn = 0; turn < 4; turn += 1) await untilEnded([submit(pool, 'ses_1'), submit(pool, 'ses_1')]);
    expect(startsOf(both).toSorted()).toEqual([0, 8]);
  });

  test('jobs at the same time take the free places of all runners, and then wait at their own one', async () => {
    const both = pair();
    const pool = poolOf(both);
    await untilEnded([submit(pool, 'ses_1')]);
    const home = startsOf(both).indexOf(1);
    const jobs = Array.from({ length: 6 }, () => submit(pool, 'ses_1'));
    await pass(100);
    expect(startsOf(both).map((count, at) => count - (at === home ? 1 : 0))).toEqual([2, 2]);
    await untilEnded(jobs);
    await untilEnded([submit(pool, 'ses_1')]);
  });

  test('a job does not stay in a queue for minutes while another runner is free', async () => {
    const both = pair();
    const pool = poolOf(both);
    await untilEnded([submit(pool, 'ses_1')]);
    const home = both.find(({ started }) => started.length === 1);
    if (home === undefined) throw new Error('no runner');
    home.jobMs = 300_000;
    for (const session of ['ses_a', 'ses_b']) submit(poolOf([home]), session);
    // The report that it is full gets old.
    await pass(2 * limits.runnerLoadMs, 10);
    const mine = submit(pool, 'ses_1');
    await untilEnded([mine]);
    expect(mine.result?.end).toBe('exited');
  });

  test('new sessions are spread over the runners', async () => {
    const runners = Array.from({ length: 3 }, () => runner());
    await untilEnded(Array.from({ length: 60 }, (_, at) => submit(poolOf(runners), `ses_${at}`)));
    expect(Math.min(...startsOf(runners))).toBeGreaterThan(8);
  });

  test('[C7] an object that was evicted finds the runner of its session again, which has its files', async () => {
    const all = Array.from({ length: 6 }, () => runner());
    for (const session of ['ses_a', 'ses_b', 'ses_c']) {
      for (let turn = 0; turn < 3; turn += 1) await untilEnded([submit(poolOf(all), session)]);
      const homes = all.filter(({ started }) => started.some(({ id }) => id.startsWith(session)));
      expect(homes).toHaveLength(1);
    }
  });
});

describe('[R7] many jobs', () => {
  /** Jobs of 3 namespaces; "a" has most of them. */
  function crowd(runners: readonly SimulatedRunner[], count: number, more: (at: number) => Partial<RunnerJob>) {
    const pools = Array.from({ length: 40 }, (_, at) => poolOf(runners, at < 36 ? 'a' : at < 38 ? 'b' : 'c'));
    return Array.from({ length: count }, (_, at) => {
      const which = at % pools.length;
      const pool = pools[which];
      if (pool === undefined) throw new Error('no pool');
      return submit(pool, `ses_${which}`, more(at));
    });
  }

  test('a lone job of another namespace waits for one job of each other one, whatever they have queued', async () => {
    const runners = Array.from({ length: 3 }, () => runner({ places: 4, queued: 1_000 }));
    const many = crowd(runners, 1_000, () => ({}));
    await pass(300, 5);
    const lone = submit(poolOf(runners, 'd'), 'ses_d');
    await untilEnded([lone]);
    // its own time, the requests, and less than two ends of jobs
    expect(lone.endedAt - lone.at).toBeLessThanOrEqual(100 + 2 * 100 + 40);
    expect(many.filter(({ result }) => result === null).length).toBeGreaterThan(300);
    await untilEnded(many);
    expect(Math.min(...startsOf(runners))).toBeGreaterThan(200);
  });

  test('[S7] [R7] after the loss of a runner all jobs settle; unsafe ones run once, others again elsewhere once', async () => {
    const runners = Array.from({ length: 3 }, () => runner({ places: 8, queued: 400 }));
    const isMovable = (at: number): boolean => at % 2 === 0;
    const many = crowd(runners, 1_000, (at) => ({ movable: isMovable(at) }));
    await pass(600, 5);
    const [lost, ...others] = runners;
    if (lost === undefined) throw new Error('no runner');
    lost.kill();
    const startsBefore = startsOf(others);
    await pass(500, 5);
    expect(startsOf(others).every((count, at) => count > (startsBefore[at] ?? 0) + 20)).toBe(true);
    await untilEnded(many);
    const starts = runners.flatMap(({ started }) => started.map(({ id }) => id));
    const timesOf = Map.groupBy(starts, (id) => id);
    for (const [at, { id, result }] of many.entries()) {
      const times = timesOf.get(id)?.length ?? 0;
      expect(result?.end, id).toMatch(isMovable(at) ? /^exited$/ : /^(exited|lost)$/);
      expect(times, id).toBeLessThanOrEqual(isMovable(at) ? 2 : 1);
    }
    // it gets work again
    lost.restart();
    const startedBefore = lost.started.length;
    await pass(limits.runnerDownMs, 50);
    for (let at = 0; at < 12; at += 1) await untilEnded([submit(poolOf(runners), `ses_again_${at}`)]);
    expect(lost.started.length).toBeGreaterThan(startedBefore);
  });

  test('[S7] [R8] an idempotent job whose runner is lost waits for a place if the others are full', async () => {
    const runners = [runner({ places: 1, jobMs: 60_000 }), runner({ places: 1, queued: 0, jobMs: 20_000 })];
    const [lost, other] = runners;
    if (lost === undefined || other === undefined) throw new Error('no runner');
    const moved = submit(poolOf([lost]), 'ses_0');
    await pass(20);
    const both = poolOf(runners);
    submit(poolOf([other]), 'ses_1');
    await pass(20);
    const mine = submit(both, 'ses_2', { movable: true });
    await pass(20);
    expect(lost.counts).toEqual({ running: 1, queued: 1 });
    lost.kill();
    await untilEnded([mine]);
    expect(mine.result?.end).toBe('exited');
    expect(other.started.map(({ id }) => id)).toContain(mine.id);
    expect(moved.result?.end ?? 'lost').toBe('lost');
  });

  test.each([1, 2])('[S7] [R8] %i full runners that die make jobs wait, and do not fail them', async (count) => {
    const runners = Array.from({ length: count }, () => runner({ places: 1, queued: 0, jobMs: 60_000 }));
    const busy = runners.map((one, at) => submit(poolOf([one]), `ses_busy_${at}`));
    await pass(20);
    const mine = poolOf(runners);
    const refused = submit(mine, 'ses_mine');
    await pass(20);
    expect(refused.waits).toEqual(['all runners are at capacity']);
    for (const one of runners) one.kill();
    // Another session notices first.
    submit(poolOf(runners), 'ses_other');
    await pass(20);
    const late = submit(mine, 'ses_mine');
    await pass(100);
    expect([late.fault, late.waits]).toEqual([null, [expect.stringContaining('not be reached')]]);
    for (const one of runners) {
      one.restart();
      one.jobMs = 20;
    }
    await untilEnded([refused, late]);
    expect([refused.result?.end, late.result?.end]).toEqual(['exited', 'exited']);
    expect(busy).toHaveLength(count);
  });

  test('[R8] while all runners are full, jobs wait with pauses, and all of them run', async () => {
    const runners = [runner({ queued: 16 }), runner({ queued: 16 })];
    const many = crowd(runners, 1_000, () => ({}));
    await untilEnded(many);
    expect(many.every(({ result }) => result?.end === 'exited')).toBe(true);
    expect(startsOf(runners).reduce((sum, count) => sum + count, 0)).toBe(1_000);
    expect(many.some(({ waits }) => waits.includes('all runners are at capacity'))).toBe(true);
    const seconds = (Math.max(...many.map(({ endedAt }) => endedAt)) - (many[0]?.at ?? 0)) / 1_000;
    // 1,000 jobs of 0.1 s in 16 places take 6.25 s
    expect(seconds).toBeLessThan(15);
    // a job asks less than once a second, in the mean
    const refused = runners.reduce((sum, { asked }) => sum + asked.refused, 0);
    expect(refused / many.length / seconds).toBeLessThan(1);
  });
});

describe('[R7] containers that sleep', () => {
  const containers = (): SimulatedRunner[] =>
    Array.from({ length: 3 }, () => runner({ places: 2, jobMs: 200, coldStartMs: 2_000 }));

  test('the first job starts one of them, and tells why it waits; further ones use it while it has room', async () => {
    const all = containers();
    const first = submit(poolOf(all), 'ses_0');
    await untilEnded([first]);
    expect(first.waits).toEqual(['its container starts']);
    for (let at = 1; at < 20; at += 1) await untilEnded([submit(poolOf(all), `ses_${at}`)]);
    expect(all.filter(({ isAwake }) => isAwake)).toHaveLength(1);
  });

  test('another one starts when those that are awake have no free place', async () => {
    const all = containers();
    await untilEnded([submit(poolOf(all), 'ses_0')]);
    await untilEnded(Array.from({ length: 60 }, (_, at) => submit(poolOf(all), `ses_${at}`)));
    expect(all.filter(({ isAwake }) => isAwake).length).toBeGreaterThan(1);
  });

  test('health does not start them, and a start does not count as failure', async () => {
    const all = containers();
    expect(await healthOf(poolOf(all))).toMatchObject({ status: 'asleep', executors: ['python'] });
    expect(all.some(({ isAwake }) => isAwake)).toBe(false);
    await untilEnded([submit(poolOf(all), 'ses_0')]);
    expect([...fleet.records.values()].every(({ downUntil }) => downUntil === 0)).toBe(true);
  });

  test('one that went to sleep again is started by the next job', async () => {
    const [only] = containers();
    if (only === undefined) throw new Error('no runner');
    await untilEnded([submit(poolOf([only]), 'ses_0')]);
    only.sleep();
    await pass(30_000, 500);
    const next = submit(poolOf([only]), 'ses_0');
    await untilEnded([next]);
    expect(next.result?.end).toBe('exited');
  });

  async function healthOf(pool: RunnerClient): Promise<unknown> {
    let health: unknown = null;
    void pool.health().then((answer) => (health = answer));
    await pass(20);
    return health;
  }
});
