/** The order of work on a thread that serves all owners (X2). */
import { expect, test } from 'vitest';
import { limits } from '../../src/domain/limits.ts';
import { ThreadShare, FairQueue } from '../../src/domain/fair-queue.ts';
import { Pacer, Slices } from '../../src/domain/work.ts';
import { VirtualClock } from '../../testing/virtual-clock.ts';

const MS = limits.stepsPerPauseMs;
const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

async function pass(clock: VirtualClock, ms: number): Promise<void> {
  for (let at = 0; at < ms; at += 1) {
    clock.advance(1);
    await settled();
  }
}

/** Another owner has just worked, so pauses for it are needed. */
function neighbour(queue: FairQueue): void {
  new ThreadShare(queue, () => 'neighbour').charge(0);
}

/** Starts work of the given steps for each of these shares at once; returns the order in which they run. */
function atWork(shares: readonly (readonly [string, ThreadShare, number])[]): string[] {
  const order: string[] = [];
  for (const [name, share, steps] of shares) {
    const work = async (): Promise<void> => {
      await share.waitTurn();
      order.push(name);
      share.charge(steps);
    };
    void work();
  }
  return order;
}

test('small work of an owner with little usage does not wait', () => {
  const queue = new FairQueue(new VirtualClock());
  const heavy = new ThreadShare(queue, () => 'mallory');
  heavy.charge(10 * limits.ownerSteps);
  const light = new ThreadShare(queue, () => 'alice');
  light.charge(limits.turnSteps);
  expect([heavy.isDue, heavy.fork().isDue, light.isDue, light.fork().isDue]).toEqual([true, true, false, false]);
});

test('the usage of an owner decreases with time, at half its speed', () => {
  const clock = new VirtualClock();
  const queue = new FairQueue(clock);
  new ThreadShare(queue, () => 'mallory').charge(2 * limits.ownerSteps);
  const later = new ThreadShare(queue, () => 'mallory');
  clock.advance(limits.ownerSteps / MS - 1);
  expect(later.isDue).toBe(true);
  clock.advance(1);
  expect(later.isDue).toBe(false);
});

test('work starts one after the other, each after twice the time of the previous one', async () => {
  const clock = new VirtualClock();
  const queue = new FairQueue(clock);
  neighbour(queue);
  const share = (): ThreadShare => new ThreadShare(queue, () => 'mallory');
  const order = atWork([
    ['a', share(), 20 * MS],
    ['b', share(), 10 * MS],
    ['c', share(), 10 * MS],
  ]);
  await settled();
  expect(order).toEqual(['a']);
  await pass(clock, 19);
  expect(order).toEqual(['a']);
  await pass(clock, 1 + limits.turnEstimateMs);
  expect(order).toEqual(['a', 'b']);
  await pass(clock, 10 + limits.turnEstimateMs);
  expect(order).toEqual(['a', 'b', 'c']);
});

test('the owner with the least usage is first, and within one owner small work is first', async () => {
  const clock = new VirtualClock();
  const queue = new FairQueue(clock);
  const share = (owner: string, steps: number): ThreadShare => {
    const made = new ThreadShare(queue, () => owner);
    made.charge(steps);
    return made;
  };
  const large = limits.turnSteps + 1;
  const order = atWork([
    ['m1', share('mallory', large), MS],
    ['m2', share('mallory', large), MS],
    ['m3', share('mallory', 1), MS],
    ['m4', share('mallory', large), MS],
    ['a1', share('alice', large), MS],
    ['a2', share('alice', large), MS],
  ]);
  await pass(clock, 400);
  expect(order.filter((name) => name.startsWith('m'))).toEqual(['m3', 'm1', 'm2', 'm4']);
  expect(order.slice(0, 2)).toEqual(['a1', 'a2']);
});

test('a single owner waits for no pauses', async () => {
  const clock = new VirtualClock();
  const share = new ThreadShare(new FairQueue(clock), () => 'alice');
  share.charge(100 * limits.turnSteps);
  const order = atWork([['next', share, 0]]);
  await settled();
  expect(order).toEqual(['next']);
});

test('work whose host is lost blocks the work behind it only for a short time', async () => {
  const clock = new VirtualClock();
  const gone = { now: () => clock.now(), schedule: () => () => undefined };
  let at: Pick<VirtualClock, 'now' | 'schedule'> = gone;
  const queue = new FairQueue({ now: () => clock.now(), schedule: (ms, callback) => at.schedule(ms, callback) });
  const share = (owner: string): ThreadShare => new ThreadShare(queue, () => owner);
  neighbour(queue);
  share('mallory').charge(20 * MS);
  const lost = atWork([['lost', share('mallory'), MS]]);
  at = clock;
  const order = atWork([
    ['m', share('mallory'), MS],
    ['a', share('alice'), MS],
  ]);
  await pass(clock, limits.turnStaleMs + 500);
  expect(order.toSorted()).toEqual(['a', 'm']);
  expect(lost).toEqual([]);
});

test('[S8] waiting work can be aborted, which frees its place', async () => {
  const clock = new VirtualClock();
  const queue = new FairQueue(clock);
  const share = (): ThreadShare => new ThreadShare(queue, () => 'mallory');
  neighbour(queue);
  share().charge(50 * MS);
  const abort = new AbortController();
  const waiting = share().waitTurn(abort.signal);
  const order = atWork([['next', share(), 0]]);
  abort.abort(new Error('cancelled'));
  await expect(waiting).rejects.toThrow('cancelled');
  await pass(clock, 50 + 4 * limits.turnEstimateMs);
  expect(order).toEqual(['next']);
});

test('a clock that is set back blocks no work', async () => {
  let now = 1_000_000;
  const clock = new VirtualClock();
  const queue = new FairQueue({ now: () => now, schedule: (ms, callback) => clock.schedule(ms, callback) });
  const share = (): ThreadShare => new ThreadShare(queue, () => null);
  share().charge(10 * MS);
  now = 0;
  await share().waitTurn();
  share().charge(10 * MS);
  const order = atWork([['next', share(), 0]]);
  now = 10;
  await pass(clock, 20);
  expect(order).toEqual(['next']);
});

test('cheap evaluations run at once, whatever else runs', async () => {
  const queue = new FairQueue(new VirtualClock());
  new ThreadShare(queue, () => 'mallory').charge(100 * MS);
  const { signal } = new AbortController();
  const pacer = new Pacer(new ThreadShare(queue, () => 'alice'));
  expect(await Promise.all([1, 2].map((value) => pacer.run(1_000_000, () => value, signal)))).toEqual([1, 2]);
});

test('an expensive evaluation restarts in its own turn, and is charged even if it fails', async () => {
  const clock = new VirtualClock();
  const queue = new FairQueue(clock);
  const share = new ThreadShare(queue, () => 'alice');
  const { signal } = new AbortController();
  const pacer = new Pacer(share);
  let begun = 0;
  const steps = 4 * limits.ownerSteps;
  const done = pacer.run(
    steps,
    (meter) => {
      begun += 1;
      meter.charge(steps);
      return 'done';
    },
    signal,
  );
  await pass(clock, 5);
  expect([await done, begun]).toEqual(['done', 2]);
  expect(share.fork().isDue).toBe(true);
  const other = new Pacer(new ThreadShare(queue, () => 'bob')).run(10_000, (meter) => meter.charge(20_000), signal);
  await Promise.all([expect(other).rejects.toThrow('too much work'), pass(clock, limits.pauseMs)]);
});

test('work with effects runs once', async () => {
  const pacer = new Pacer(new ThreadShare(new FairQueue(new VirtualClock()), () => null));
  let done = 0;
  await pacer.once(1_000_000, (meter) => {
    done += 1;
    meter.charge(900_000);
  });
  expect(done).toBe(1);
});

test('readers get their slices one after the other', async () => {
  const clock = new VirtualClock();
  const queue = new FairQueue(clock);
  const order: string[] = [];
  const read = async (name: string): Promise<void> => {
    const slices = new Slices(new ThreadShare(queue, () => 'mallory'));
    for (let slice = 1; slice <= 2; slice += 1) {
      slices.count(limits.sliceChars * 1.01);
      expect(slices.full).toBe(true);
      await slices.pause();
      order.push(`${name}${slice}`);
    }
  };
  const all = Promise.all(['a', 'b', 'c'].map(read));
  await pass(clock, 400);
  await all;
  expect(order.slice(0, 3)).toEqual(['a1', 'b1', 'c1']);
  expect(order.slice(3).toSorted()).toEqual(['a2', 'b2', 'c2']);
});
