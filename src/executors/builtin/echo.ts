/** `echo`: returns its parameters; waits and fails on request, to test plans, timing and retries (M3). */
import type { Executor } from '../executor.ts';
import { failure } from '../../domain/failure.ts';
import { failureOf } from '../failure.ts';
import { sleep } from '../../domain/sleep.ts';

export const echo: Executor = {
  async execute({ parameters, attempt }, { clock, signal }) {
    const { delay_ms: delayMs, fail_times: failTimes } = parameters;
    try {
      if (typeof delayMs === 'number' && delayMs > 0) await sleep(delayMs, clock, signal);
    } catch (fault) {
      return failureOf(fault, signal, 'aborted');
    }
    if (typeof failTimes === 'number' && attempt <= failTimes) {
      return failure('echo_failure', `attempt ${attempt} of ${failTimes} requested failures`, { retryable: true });
    }
    return { ok: true, output: parameters };
  },
};
