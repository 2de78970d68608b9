/** Whether the process that started this one is still there; without it nothing could stop this one. */
import { startLimits } from './start-limits.ts';

/** Set by bootstrap.mjs, with its own number. */
const STARTED_BY = 'CORTEX_STARTED_BY';

/** Resolves when bootstrap.mjs has gone without stopping this process; never for a process that it did not start. */
export function starterGone(): Promise<void> {
  const starter = process.ppid;
  return new Promise((resolve) => {
    if (process.env[STARTED_BY] !== String(starter)) return;
    const timer = setInterval(() => {
      if (process.ppid === starter) return;
      clearInterval(timer);
      resolve();
    }, startLimits.starterPollMs);
    timer.unref();
  });
}
