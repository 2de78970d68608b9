/**
 * Several runners (R7), which outlive the hosts: the client of each is simulated, and the pool of the Worker is real. A
 * runner that is lost loses its jobs, and knows that when it is back.
 */
import type { JsonObject } from '../../../src/domain/json.ts';
import { limits } from '../../../src/domain/limits.ts';
import type { JobObserver, JobResult, RunnerClient, RunnerJob } from '../../../src/domain/ports/runner.ts';
import type { SingleRunner } from '../../../src/executors/runner/client.ts';
import { RunnerError } from '../../../src/executors/runner/error.ts';
import { createRunnerPool } from '../../../src/executors/runner/pool.ts';
import type { RunnerReports } from '../../../src/executors/runner/record.ts';
import type { Life } from './life.ts';
import type { Stage } from './stage.ts';

/** A program that has started: it ends by itself, or is stopped. */
export interface Program {
  readonly ended: Promise<JobResult>;
  readonly stop: () => void;
}

/** Starts the program of a job. */
export type Begin = (job: RunnerJob) => Program;

export const RUNNERS = 3;
/** Jobs that one of them runs at once; it has no queue. */
const PLACES = 1;
/** There, and back. */
const ONE_WAY_MS = 1;
const LOST: JobResult = { end: 'lost', exitCode: null, stdout: '', stderr: '', truncated: false };

interface Job {
  readonly program: Program;
  /** Its result; `lost` as soon as its caller notices that. */
  readonly ended: Promise<JobResult>;
  readonly lose: () => void;
  isOver: boolean;
}

export class WorldFleet {
  readonly #runners: readonly WorldRunner[];

  constructor(stage: Stage) {
    this.#runners = Array.from({ length: RUNNERS }, (_, at) => new WorldRunner(stage, `http://runner-${at}`));
  }

  /** A runner is lost with its jobs, and starts again after this time. */
  lose(runner: number, forMs: number): void {
    this.#runners[runner]?.lose(forMs);
  }

  /** As a host sees them. */
  client(life: Life, begin: Begin): RunnerClient {
    const pool = createRunnerPool({
      runners: this.#runners.map(({ url }) => ({ url, labels: [] })),
      clock: life.clock,
      random: () => 0.5,
      connect: (url, reports) => {
        const runner = this.#runners.find((one) => one.url === url);
        if (runner === undefined) throw new Error(`There is no runner ${url}`);
        return runner.client(life, reports, begin);
      },
    });
    return { ...pool, prewarm: () => undefined };
  }
}

class WorldRunner {
  readonly url: string;
  readonly #stage: Stage;
  readonly #jobs = new Map<string, Job>();
  #isDown = false;
  #losses = 0;

  constructor(stage: Stage, url: string) {
    this.#stage = stage;
    this.url = url;
  }

  lose(forMs: number): void {
    this.#isDown = true;
    this.#losses += 1;
    const losses = this.#losses;
    const lost = [...this.#jobs.values()].filter(({ isOver }) => !isOver);
    for (const job of lost) job.isOver = true;
    const { time } = this.#stage;
    time.after(forMs, () => {
      if (losses === this.#losses) this.#isDown = false;
    });
    // Callers ask for it when the runner is back, or give up.
    time.after(Math.min(forMs, limits.runnerLostMs), () => {
      for (const job of lost) job.lose();
    });
  }

  client(life: Life, { alive, jobAnswered }: RunnerReports, begin: Begin): SingleRunner {
    const reached = (isAlive: boolean): void => {
      alive.at = isAlive ? life.clock.now() : Number.NEGATIVE_INFINITY;
    };
    /** One way. Nothing happens to the caller after the end of its host. */
    const pass = async (): Promise<void> => {
      try {
        life.enter();
      } catch {
        await new Promise(() => undefined);
      }
      await life.wait(ONE_WAY_MS);
    };
    const unavailable = (beforeDispatch: boolean): RunnerError => {
      reached(false);
      return new RunnerError('runner_unavailable', 'the runner does not answer', { beforeDispatch });
    };
    const observe = async (job: Job, signal: AbortSignal): Promise<JobResult> => {
      const onAbort = (): void => job.program.stop();
      signal.addEventListener('abort', onAbort, { once: true });
      if (signal.aborted) onAbort();
      const result = await job.ended;
      await life.wait(0);
      signal.removeEventListener('abort', onAbort);
      return signal.aborted ? { ...LOST, end: 'killed' } : result;
    };
    /** Undefined: it does not answer; null: it does not know the job. */
    const find = async (id: string): Promise<Job | null | undefined> => {
      await pass();
      const found = this.#isDown ? undefined : (this.#jobs.get(id) ?? null);
      await pass();
      reached(found !== undefined);
      return found;
    };
    return {
      run: async (job: RunnerJob, { signal }: JobObserver) => {
        await pass();
        // An abort ends a request that has not arrived.
        signal.throwIfAborted();
        if (this.#isDown) throw unavailable(true);
        const losses = this.#losses;
        const isFull = !this.#jobs.has(job.id) && this.#running >= PLACES;
        const accepted = isFull ? null : this.#accept(job, begin);
        const headers = new Headers({ 'cortex-load': `running=${this.#running}, queued=0, max_running=${PLACES}` });
        await pass();
        // The answer is lost with the runner.
        if (losses !== this.#losses) throw unavailable(accepted === null);
        reached(true);
        jobAnswered({ status: isFull ? 429 : 202, headers });
        if (accepted !== null) return await observe(accepted, signal);
        throw new RunnerError('runner_busy', 'the runner is full', { beforeDispatch: true, retryAfterMs: 1_000 });
      },
      record: async (id) => {
        const found = await find(id);
        return found == null ? found : { state: found.isOver ? 'ended' : 'running' };
      },
      lookup: async ({ id }, { signal }) => {
        const found = await find(id);
        if (found === undefined) return LOST;
        return found === null ? null : await observe(found, signal);
      },
      health: async () => {
        await pass();
        const jobs = { running: this.#running, queued: 0, max_running: PLACES };
        const answer: JsonObject | null = this.#isDown ? null : { status: 'healthy', executors: ['python'], jobs };
        await pass();
        reached(answer !== null);
        return answer;
      },
      lastContactAt: () => alive.at,
      callRelic: () => Promise.reject(new Error('this world has no relics')),
      stopRelics: () => Promise.resolve(),
      forgetWorkspace: () => Promise.resolve(),
      prewarm: () => undefined,
    };
  }

  get #running(): number {
    return [...this.#jobs.values()].filter(({ isOver }) => !isOver).length;
  }

  /** A job starts once on a runner, also if it is submitted again. */
  #accept(job: RunnerJob, begin: Begin): Job {
    const known = this.#jobs.get(job.id);
    if (known !== undefined) return known;
    const program = begin(job);
    const { promise, resolve } = Promise.withResolvers<JobResult>();
    const accepted: Job = { program, ended: promise, lose: () => resolve(LOST), isOver: false };
    void end(accepted, resolve);
    this.#jobs.set(job.id, accepted);
    return accepted;
  }
}

/** Of a job that was lost, nobody sees the end. */
async function end(job: Job, resolve: (result: JobResult) => void): Promise<void> {
  const result = await job.program.ended;
  if (job.isOver) return;
  job.isOver = true;
  resolve(result);
}
