/** A clock without waiting. */
import type { Clock } from '../src/domain/ports/clock.ts';

/** A clock whose timers fire at once. */
export function instantClock(): Clock {
  let now = 1_000_000;
  return {
    now: () => now,
    schedule(delayMs, callback) {
      let due = true;
      queueMicrotask(() => {
        if (!due) return;
        now += delayMs;
        callback();
      });
      return () => {
        due = false;
      };
    },
  };
}
