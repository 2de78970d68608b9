/**
 * Reports runners that stop answering, and those that answer again: once each (R7, X5). A restart, which is shorter than
 * `limits.runnerReportMs`, is not reported.
 */
import { limits } from '../../domain/limits.ts';
import type { Logger } from '../../domain/log.ts';

interface Silence {
  readonly since: number;
  readonly isReported: boolean;
}

export class RunnerWatch {
  readonly #now: () => number;
  readonly #silent = new Map<string, Silence>();

  constructor(now: () => number) {
    this.#now = now;
  }

  /** A request to the runner had an answer, or none. @param runner its URL, one of the settings */
  contact(runner: string, answered: boolean, log: Logger): void {
    const now = this.#now();
    const silence = this.#silent.get(runner) ?? { since: now, isReported: false };
    const seconds = Math.round((now - silence.since) / 1_000);
    if (answered) {
      this.#silent.delete(runner);
      if (silence.isReported) log('runner_reachable', { runner, message: `it answers again, after ${seconds} s` });
      return;
    }
    const report = !silence.isReported && now - silence.since >= limits.runnerReportMs;
    if (report) log('runner_unreachable', { runner, message: `it has not answered for ${seconds} s` });
    this.#silent.set(runner, { ...silence, isReported: silence.isReported || report });
  }
}
