/** Detects that the process that started this one is gone: then no one could stop this process. */
import { startLimits } from './start-limits.ts';

/** Set by bootstrap.mjs to its process id. */
const STARTED_BY = 'CORTEX_STARTED_BY';

/** Resolves when bootstrap.mjs has died without stopping this process; never if this process was started directly. */
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
