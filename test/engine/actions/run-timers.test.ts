/** The timers of a run: live, suspended and after a crash (S7, S8, J2, J8). */
import { describe, expect, test } from 'vitest';
import { RunTimers } from '../../../src/engine/actions/run-timers.ts';
import type { RunInput } from '../../../src/engine/run/run-input.ts';
import { logKit } from '../../support/run-log.ts';
import type { LogKit } from '../../support/run-log.ts';

/** Timers of a run, and the names of the fired ones, with the time since the start. */
function timersOf(kit: LogKit): { readonly timers: RunTimers; readonly fired: string[] } {
  const fired: string[] = [];
  const start = kit.clock.now();
  const put = (input: RunInput): void => {
    if (input.type === 'timer_fired') fired.push(`${input.timer}@${kit.clock.now() - start}`);
  };
  return { timers: new RunTimers({ context: { clock: kit.clock }, log: kit.log, inputQueue: { put } }), fired };
}

describe('[S8] timers', () => {
  test('fire once at their time; a timer that is set again has only its new time', () => {
    const kit = logKit();
    const { timers, fired } = timersOf(kit);
    timers.set('a', 10);
    timers.set('b', 20);
    timers.set('a', 30);
    expect(timers.at('a')).toBe(kit.clock.now() + 30);
    kit.clock.advance(29);
    expect(fired).toEqual(['b@20']);
    expect(timers.at('b')).toBeNull();
    kit.clock.advance(100);
    expect(fired).toEqual(['b@20', 'a@30']);
    expect(timers.at('a')).toBeNull();
  });

  test('do not fire after they are cleared, one by one or all together', () => {
    const kit = logKit();
    const { timers, fired } = timersOf(kit);
    for (const name of ['a', 'b', 'c']) timers.set(name, 10);
    timers.clear('a');
    timers.clear('a');
    timers.clear('never set');
    expect(timers.at('a')).toBeNull();
    timers.cancelAll();
    expect([timers.at('b'), timers.at('c'), kit.clock.next]).toEqual([null, null, null]);
    kit.clock.advance(100);
    expect(fired).toEqual([]);
  });

  test('[J8] a suspended timer keeps its time and uses no platform timer; an overdue one fires at once', () => {
    const kit = logKit();
    const { timers, fired } = timersOf(kit);
    timers.set('late', 10);
    timers.set('due', 50);
    const at = timers.at('due');
    timers.suspend();
    timers.suspend();
    expect([kit.clock.next, timers.at('due')]).toEqual([null, at]);
    kit.clock.advance(30);
    expect(fired).toEqual([]);
    timers.restart();
    expect(timers.at('due')).toBe(at);
    kit.clock.advance(0);
    expect(fired).toEqual(['late@30']);
    // Running timers are not affected.
    timers.restart();
    kit.clock.advance(100);
    expect(fired).toEqual(['late@30', 'due@50']);
    timers.set('never', 10);
    timers.suspend();
    timers.cancelAll();
    timers.restart();
    expect([kit.clock.next, timers.at('never')]).toEqual([null, null]);
  });

  test('[J8] the next expiry is that of the earliest approval; other timers do not count', () => {
    const { timers } = timersOf(logKit());
    timers.set('timeout:1/0#1', 5);
    expect(timers.nextExpiry()).toBeNull();
    timers.set('approval:1/1', 700);
    timers.set('approval:1/2', 300);
    timers.set('approval:1/3', 900);
    expect(timers.nextExpiry()).toBe(timers.at('approval:1/2'));
    timers.suspend();
    expect(timers.nextExpiry()).toBe(timers.at('approval:1/2'));
    timers.clear('approval:1/2');
    expect(timers.nextExpiry()).toBe(timers.at('approval:1/1'));
  });
});

describe('[J2] timers of a recorded run', () => {
  test('do not run during the replay; afterwards the pending ones have their remaining time', () => {
    const kit = logKit({ recorded: true });
    const { timers, fired } = timersOf(kit);
    timers.set('cleared', 100);
    timers.set('fired', 100);
    timers.set('over', 100);
    timers.set('left', 900);
    timers.set('timeout:1/0#1', 600);
    timers.clear('cleared');
    timers.fired('fired');
    expect([kit.clock.next, timers.at('left')]).toEqual([null, null]);
    kit.clock.advance(500);
    kit.replay?.finish();
    timers.resume();
    expect([timers.at('cleared'), timers.at('fired')]).toEqual([null, null]);
    kit.clock.advance(10_000);
    // A recovered attempt has its full timeout again.
    expect(fired).toEqual(['over@500', 'left@900', 'timeout:1/0#1@1100']);
    timers.resume();
    expect(kit.clock.next).toBeNull();
  });

  test('are not delayed by a clock that was set back', () => {
    const kit = logKit({ recorded: true });
    const { timers } = timersOf(kit);
    timers.set('retry:1/0#1', 100);
    const { now } = kit.clock;
    kit.clock.now = () => now.call(kit.clock) - 50;
    kit.replay?.finish();
    timers.resume();
    expect(timers.at('retry:1/0#1')).toBe(kit.clock.now() + 100);
  });
});
