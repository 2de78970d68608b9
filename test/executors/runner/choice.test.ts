/** Which of several runners gets a job: distance, wait, files, loss, sleep, back-pressure (R7, R8), in simulated time. */
import { beforeEach, describe, expect, test } from 'vitest';

import { limits } from '../../../src/domain/limits.ts';
import type { RunnerClient, RunnerJob } from '../../../src/domain/ports/runner.ts';
import { type Candidate, chooseRunner, moveMsOf, rankOf } from '../../../src/executors/runner/choice.ts';
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
    startMs: 0,
    moveMs: 0,
    load: 0,
    rank: 0,
    isLast: false,
    ...more,
  });
  test.each([
    ['the earliest start', [{ startMs: 100 }, { startMs: 30 }, { startMs: 70 }], 1],
    [
      'among equal starts, the least loaded',
      [
        { startMs: 1, load: 0.5 },
        { startMs: 15, load: 0.1 },
      ],
      1,
    ],
    ['among equally loaded ones, the first by rank', [{ rank: 1 }, { rank: 3 }, { rank: 2 }], 1],
    ['a transfer of files counts', [{ startMs: 0, moveMs: 500 }, { startMs: 200 }], 1],
    ['the last runner, if another one is a little earlier', [{ startMs: 50, isLast: true }, {}], 0],
    [
      'the last runner, if another one is earlier by less than a quarter',
      [{ startMs: 4_000, isLast: true }, { startMs: 3_100 }],
      0,
    ],
    ['another one, if it is much earlier', [{ startMs: 4_000, isLast: true }, { startMs: 2_900 }], 1],
  ])('%s', (_name, given, expected) => {
    const candidates = given.map((some) => candidate(some));
    expect(chooseRunner(candidates)?.chosen).toBe(candidates[expected]);
  });

  test('without candidates there is no choice', () => expect(chooseRunner([])).toBeNull());

  test('only files that changed after the last use are moved', () => {
    const file = (size: number, modifiedAt: number) => ({ path: 'a', sha256: '', size, executable: false, modifiedAt });
    const files = [file(1_000_000, 5), file(3_000_000, 20)];
    expect([moveMsOf(files, null), moveMsOf(files, 10), moveMsOf(files, 30)]).toEqual([400, 300, 0]);
  });

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

describe('[R7] distance', () => {
  test('the near runner gets all jobs while it is idle, and the far one is rarely asked', async () => {
    const near = runner({ roundTripMs: 10 });
    const far = runner({ roundTripMs: 150 });
    for (let at = 0; at < 40; at += 1) {
      submit(poolOf([near, far]), `ses_${at}`);
      await pass(1_000, 5);
    }
    expect(startsOf([near, far])).toEqual([40, 0]);
    // one question in 30 seconds, however many sessions begin
    expect(far.asked.health).toBeLessThanOrEqual(2);
  });

  test('the first job does not wait for the answer of a far runner', async () => {
    const near = runner({ roundTripMs: 10 });
    const far = runner({ roundTripMs: 250 });
    const first = submit(poolOf([far, near]), 'ses_1');
    await pass(60);
    expect(near.started.map(({ at }) => at - first.at)).toEqual([expect.toSatisfy((ms: number) => ms <= 30)]);
  });

  test('the far runner gets jobs once the wait at the near one is longer than the difference, and loses them again', async () => {
    const near = runner({ roundTripMs: 10, places: 4, jobMs: 400 });
    const far = runner({ roundTripMs: 150, places: 16, jobMs: 400 });
    const one = poolOf([near, far]);
    const warm = submit(one, 'ses_0');
    await untilEnded([warm]);
    const burst = Array.from({ length: 30 }, (_, at) => submit(poolOf([near, far]), `ses_${at}`));
    await untilEnded(burst);
    const [atNear = 0, atFar = 0] = startsOf([near, far]);
    expect(atFar).toBeGreaterThan(10);
    expect(atNear).toBeGreaterThan(4);
    // the burst is over
    await pass(limits.runnerLoadMs, 10);
    await untilEnded([submit(poolOf([near, far]), 'ses_new'), submit(one, 'ses_0')]);
    expect(startsOf([near, far])).toEqual([atNear + 2, atFar]);
  });

  test('a session that moved to the far runner returns when the near one is free', async () => {
    const near = runner({ roundTripMs: 10, places: 1, jobMs: 800 });
    const far = runner({ roundTripMs: 150, places: 8, jobMs: 10 });
    const pool = poolOf([near, far]);
    const others = Array.from({ length: 4 }, (_, at) => submit(poolOf([near]), `ses_other_${at}`));
    await pass(100);
    await untilEnded([submit(pool, 'ses_1')]);
    expect(far.started).toHaveLength(1);
    await untilEnded(others);
    near.jobMs = 10;
    await pass(limits.runnerLoadMs, 10);
    await untilEnded([submit(pool, 'ses_1'), submit(pool, 'ses_1')]);
    expect(far.started).toHaveLength(1);
  });

  test('a session does not move for small differences', async () => {
    const pair = [runner({ places: 2, jobMs: 40 }), runner({ places: 2, jobMs: 40 })];
    const pool = poolOf(pair);
    // the second job tells how long the first one took
    for (let turn = 0; turn < 2; turn += 1) await untilEnded([submit(pool, 'ses_1')]);
    const home = startsOf(pair).indexOf(2);
    for (let round = 0; round < 30; round += 1) {
      const noise = submit(poolOf(pair.slice(home, home + 1)), `ses_noise_${round}`);
      await untilEnded([noise, submit(pool, 'ses_1'), submit(pool, 'ses_1')]);
    }
    expect(startsOf(pair)[1 - home]).toBe(0);
  });
});

describe('[R7] [C7] files', () => {
  const files = [{ path: 'a', sha256: '', size: 40_000_000, executable: false, modifiedAt: 0 }];
  const workspace = { files, maxBytes: 60_000_000, read: () => Promise.resolve(new Uint8Array()) };
  /** A session with files, whose runner then has a queue of this length. */
  async function homeWithQueue(length: number): Promise<[pair: SimulatedRunner[], pool: RunnerClient, home: number]> {
    const pair = [runner({ places: 1, jobMs: 500 }), runner({ places: 1, jobMs: 500 })];
    const pool = poolOf(pair);
    await untilEnded([submit(pool, 'ses_1', { workspace })]);
    const home = startsOf(pair).indexOf(1);
    const one = pair[home];
    if (one === undefined) throw new Error('no runner');
    for (let at = 0; at < length; at += 1) submit(poolOf([one]), `ses_other_${at}`);
    await pass(limits.runnerAliveMs, 10);
    return [pair, pool, home];
  }

  test('a session stays with its files while the wait is shorter than their transfer', async () => {
    const [pair, pool, home] = await homeWithQueue(4);
    await untilEnded([submit(pool, 'ses_1', { workspace })]);
    expect(startsOf(pair)[1 - home]).toBe(0);
  });

  test('it moves if its runner is overloaded', async () => {
    const [pair, pool, home] = await homeWithQueue(30);
    await untilEnded([submit(pool, 'ses_1', { workspace })]);
    expect(startsOf(pair)[1 - home]).toBe(1);
  });

  test('an object that was evicted finds the runner of its session again', async () => {
    const all = Array.from({ length: 6 }, () => runner());
    for (const session of ['ses_a', 'ses_b', 'ses_c']) {
      for (let turn = 0; turn < 3; turn += 1) await untilEnded([submit(poolOf(all), session, { workspace })]);
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
    expect(Math.min(...startsOf(runners))).toBeGreaterThan(250);
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

  test('another one starts when the wait is longer than a start', async () => {
    const all = containers();
    await untilEnded([submit(poolOf(all), 'ses_0')]);
    await untilEnded(Array.from({ length: 60 }, (_, at) => submit(poolOf(all), `ses_${at}`)));
    expect(all.filter(({ isAwake }) => isAwake).length).toBeGreaterThan(1);
  });

  test('health does not start them, and a start does not count as distance or failure', async () => {
    const all = containers();
    expect(await healthOf(poolOf(all))).toMatchObject({ status: 'asleep', executors: ['python'] });
    expect(all.some(({ isAwake }) => isAwake)).toBe(false);
    await untilEnded([submit(poolOf(all), 'ses_0')]);
    const roundTrips = [...fleet.records.values()].map(({ roundTripMs }) => roundTripMs ?? 0);
    expect(Math.max(...roundTrips)).toBeLessThan(10);
    expect([...fleet.records.values()].every(({ downUntil }) => downUntil === 0)).toBe(true);
  });

  test('one that went to sleep again is started by the next job', async () => {
    const [only] = containers();
    if (only === undefined) throw new Error('no runner');
    await untilEnded([submit(poolOf([only]), 'ses_0')]);
    only.sleep();
    await pass(limits.runnerExploreMs, 500);
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
