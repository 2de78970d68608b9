import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Clock } from '../../src/domain/ports/clock.ts';
import { Deadlines } from '../../src/domain/deadlines.ts';
import { VirtualClock } from '../../testing/virtual-clock.ts';

/** Counts the timers of the platform. */
class CountingClock extends VirtualClock {
  asked = 0;
  override schedule(delayMs: number, callback: () => void): () => void {
    this.asked += 1;
    return super.schedule(delayMs, callback);
  }
}

type Act = { readonly wait: number } | { readonly set: number } | { readonly cancel: number };

const acts = fc.array(
  fc.oneof(
    fc.record({ wait: fc.nat(30) }),
    fc.record({ set: fc.integer({ min: -3, max: 40 }) }),
    fc.record({ cancel: fc.nat(60) }),
  ),
  { maxLength: 120 },
);

/** The callbacks and their times, with deadlines or with separate timers. */
function play(script: readonly Act[], timersOf: (clock: VirtualClock) => Pick<Clock, 'schedule'>): string[] {
  const clock = new VirtualClock(0);
  const timers = timersOf(clock);
  const fired: string[] = [];
  const cancels: (() => void)[] = [];
  for (const act of script) {
    if ('wait' in act) clock.advance(act.wait);
    else if ('cancel' in act) cancels[act.cancel]?.();
    else {
      const name = cancels.length;
      cancels.push(timers.schedule(act.set, () => fired.push(`${name}@${clock.now()}`)));
    }
  }
  clock.advance(100);
  expect(clock.next).toBeNull();
  return fired;
}

describe('[S8] deadlines on one timer', () => {
  test('fire at the same times and in the same order as separate timers', () => {
    fc.assert(
      fc.property(acts, (script) => {
        expect(play(script, (clock) => new Deadlines(clock))).toEqual(play(script, (clock) => clock));
      }),
      { numRuns: 500 },
    );
  });

  test('a platform timer is set only while a deadline is pending, and fires at the next deadline or earlier', () => {
    fc.assert(
      fc.property(acts, (script) => {
        const own = new VirtualClock(50);
        const shared = new VirtualClock(50);
        const deadlines = new Deadlines(shared);
        const cancels: (() => void)[] = [];
        for (const act of script) {
          if ('wait' in act) for (const clock of [own, shared]) clock.advance(act.wait);
          else if ('cancel' in act) cancels[act.cancel]?.();
          else {
            const each = [own, deadlines].map((timers) => timers.schedule(act.set, () => undefined));
            cancels.push(() => {
              for (const cancel of each) cancel();
            });
          }
          expect(shared.next === null).toBe(own.next === null);
          expect(shared.next ?? 0).toBeLessThanOrEqual(own.next ?? 0);
        }
      }),
      { numRuns: 300 },
    );
  });

  test('deadlines at the same time share one timer, and a cancelled deadline has none', () => {
    const clock = new CountingClock(0);
    const deadlines = new Deadlines(clock);
    const fired: string[] = [];
    for (const name of ['a', 'b']) deadlines.schedule(10, () => fired.push(name));
    const cancel = deadlines.schedule(20, () => fired.push('cancelled'));
    deadlines.schedule(30, () => fired.push('c'));
    cancel();
    expect(clock.asked).toBe(1);
    clock.advance(10);
    expect([fired, clock.asked, clock.next]).toEqual([['a', 'b'], 2, 30]);
    clock.advance(20);
    expect([fired, clock.asked, clock.next]).toEqual([['a', 'b', 'c'], 2, null]);
  });

  test('the order is correct after most of very many deadlines were cancelled', () => {
    const clock = new VirtualClock(0);
    const deadlines = new Deadlines(clock);
    const fired: number[] = [];
    const times = Array.from({ length: 500 }, (_, at) => (at * 7_919) % 1_009);
    const cancels = times.map((at) => deadlines.schedule(at, () => fired.push(at)));
    const isKept = (index: number): boolean => index % 9 === 0;
    for (const [index, cancel] of cancels.entries()) if (!isKept(index)) cancel();
    deadlines.schedule(500, () => fired.push(500));
    clock.advance(2_000);
    expect(fired).toEqual([...times.filter((_, index) => isKept(index)), 500].toSorted((a, b) => a - b));
    expect(clock.next).toBeNull();
  });

  test('a callback can set and cancel other deadlines', () => {
    const clock = new VirtualClock(0);
    const deadlines = new Deadlines(clock);
    const fired: string[] = [];
    let cancel = (): void => undefined;
    deadlines.schedule(5, () => {
      fired.push('first');
      cancel();
      deadlines.schedule(0, () => fired.push('at once'));
      deadlines.schedule(2, () => fired.push('later'));
    });
    cancel = deadlines.schedule(5, () => fired.push('cancelled'));
    clock.advance(6);
    expect(fired).toEqual(['first', 'at once']);
    clock.advance(1);
    expect(fired).toEqual(['first', 'at once', 'later']);
    expect(clock.next).toBeNull();
  });

  test('a thousand short actions use one timer of the platform, and leave none', () => {
    const clock = new CountingClock(0);
    const deadlines = new Deadlines(clock);
    const budget = deadlines.schedule(3_600_000, () => undefined);
    for (let n = 0; n < 1_000; n += 1) {
      const cancel = deadlines.schedule(60_000, () => undefined);
      clock.advance(1);
      cancel();
    }
    expect(clock.asked).toBeLessThanOrEqual(3);
    budget();
    expect(clock.next).toBeNull();
  });

  test('a clock that is set back delays no deadline', () => {
    const clock = new VirtualClock(0);
    let putBack = 0;
    const deadlines = new Deadlines({
      now: () => clock.now() - putBack,
      schedule: (ms, callback) => clock.schedule(ms, callback),
    });
    const fired: string[] = [];
    const note = (name: string) => (): void => void fired.push(`${name}@${clock.now()}`);
    deadlines.schedule(60, note('before'));
    deadlines.schedule(80, note('later'));
    clock.advance(10);
    deadlines.schedule(100, note('just before'));
    putBack = 3_600_000;
    deadlines.schedule(20, note('after'));
    clock.advance(200);
    expect(fired).toEqual(['after@30', 'before@60', 'later@80', 'just before@110']);
    expect(clock.next).toBeNull();
  });
});
