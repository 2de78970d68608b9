/** Runners in simulated time, behind the port of their clients: distance, places, a fair queue, loss and sleep (R7). */
import { FairQueue } from '../../container-runner/jobs/fair-queue.ts';
import type { JsonObject } from '../../src/domain/json.ts';
import { limits } from '../../src/domain/limits.ts';
import type { Clock } from '../../src/domain/ports/clock.ts';
import type { JobResult, RunnerJob } from '../../src/domain/ports/runner.ts';
import { pause } from '../../src/domain/sleep.ts';
import type { SingleRunner } from '../../src/executors/runner/client.ts';
import { RunnerError } from '../../src/executors/runner/error.ts';
import type { RunnerReports } from '../../src/executors/runner/record.ts';

export interface SimulatedRunnerOptions {
  readonly url: string;
  readonly clock: Clock;
  /** From a request to its answer. */
  readonly roundTripMs: number;
  readonly places: number;
  readonly queued?: number;
  /** How long a job runs. */
  readonly jobMs: number;
  /** It is a container that starts with the first job, in this time. */
  readonly coldStartMs?: number;
}

interface Accepted {
  readonly id: string;
  readonly tenant: string | null;
  readonly session: string;
  readonly movable: boolean;
  readonly settle: (end: JobResult['end']) => void;
}

export class SimulatedRunner {
  readonly url: string;
  readonly #options: SimulatedRunnerOptions;
  #queue = new FairQueue<Accepted>();
  #running = new Set<Accepted>();
  #awake: boolean;
  isDown = false;
  /** Number of its deaths. */
  #deaths = 0;
  /** Its ledger: a job that is submitted again does not run again. */
  readonly #known = new Map<string, Promise<JobResult['end']>>();
  /** How long its jobs take from now on. */
  jobMs: number;
  /** Requests, by kind. */
  readonly asked = { health: 0, jobs: 0, refused: 0 };
  /** Ids of the programs that it has started, in order, with the time. */
  readonly started: { readonly id: string; readonly at: number }[] = [];

  constructor(options: SimulatedRunnerOptions) {
    this.#options = options;
    this.url = options.url;
    this.jobMs = options.jobMs;
    this.#awake = options.coldStartMs === undefined;
  }

  get counts(): { readonly running: number; readonly queued: number } {
    return { running: this.#running.size, queued: this.#queue.size };
  }

  get isAwake(): boolean {
    return this.#awake;
  }

  /** It dies with its jobs. Their callers notice after a time. */
  kill(): void {
    this.isDown = true;
    this.#deaths += 1;
    const { clock } = this.#options;
    for (const job of [...this.#running, ...this.#queue.clear()]) {
      clock.schedule(job.movable ? limits.runnerMoveMs : limits.runnerLostMs, () => job.settle('lost'));
    }
    this.#running = new Set();
    this.#queue = new FairQueue();
  }

  /** The container stops: it was idle. */
  sleep(): void {
    this.#awake = false;
  }

  restart(): void {
    this.isDown = false;
  }

  client({ alive, jobAnswered }: RunnerReports, tenant: string | null = null): SingleRunner {
    const { clock, roundTripMs, queued = 64 } = this.#options;
    const unavailable = (beforeDispatch = true): RunnerError =>
      new RunnerError('runner_unavailable', 'The runner could not be reached', { beforeDispatch });
    return {
      run: async (job, observe) => {
        this.asked.jobs += 1;
        await pause(roundTripMs / 2, clock);
        if (this.isDown) {
          alive.at = Number.NEGATIVE_INFINITY;
          throw unavailable();
        }
        const deaths = this.#deaths;
        if (!this.#awake) await this.#start();
        if (deaths !== this.#deaths) throw unavailable();
        const isFull =
          !this.#known.has(job.id) && this.#running.size >= this.#options.places && this.#queue.size >= queued;
        const ended = isFull ? null : this.#accept(job, tenant);
        const headers = new Headers({ 'cortex-load': this.#load });
        await pause(roundTripMs / 2, clock);
        if (deaths !== this.#deaths) {
          // The answer is lost: the job may have started.
          alive.at = Number.NEGATIVE_INFINITY;
          throw unavailable(ended === null);
        }
        alive.at = clock.now();
        jobAnswered({ status: isFull ? 429 : 202, headers });
        observe.signal.throwIfAborted();
        if (ended === null) {
          this.asked.refused += 1;
          throw new RunnerError('runner_busy', 'The runner is full', { beforeDispatch: true, retryAfterMs: 1_000 });
        }
        const end = await ended;
        return { end, exitCode: end === 'exited' ? 0 : null, stdout: '', stderr: '', truncated: false };
      },
      health: async () => {
        this.asked.health += 1;
        await pause(roundTripMs, clock);
        alive.at = this.isDown ? Number.NEGATIVE_INFINITY : clock.now();
        if (this.isDown) return null;
        return this.#awake ? this.#health() : { status: 'asleep', executors: ['python'] };
      },
      lastContactAt: () => alive.at,
      record: () => Promise.resolve(null),
      lookup: () => Promise.resolve(null),
      callRelic: () => Promise.reject(unavailable()),
      stopRelics: () => Promise.resolve(),
      forgetWorkspace: () => Promise.resolve(),
      prewarm: () => undefined,
    };
  }

  async #start(): Promise<void> {
    await pause(this.#options.coldStartMs ?? 0, this.#options.clock);
    this.#awake = true;
  }

  #accept({ id, session, movable = false }: RunnerJob, tenant: string | null): Promise<JobResult['end']> {
    const known = this.#known.get(id);
    if (known !== undefined) return known;
    const { promise, resolve } = Promise.withResolvers<JobResult['end']>();
    this.#known.set(id, promise);
    this.#queue.push({ id, tenant, session, movable, settle: resolve });
    this.#startNext();
    return promise;
  }

  #startNext(): void {
    const { clock, places } = this.#options;
    while (this.#running.size < places) {
      const job = this.#queue.take(() => true);
      if (job === undefined) return;
      const queue = this.#queue;
      this.#running.add(job);
      this.started.push({ id: job.id, at: clock.now() });
      clock.schedule(this.jobMs, () => {
        // It was killed in the meantime.
        if (!this.#running.delete(job)) return;
        queue.ended(job);
        job.settle('exited');
        this.#startNext();
      });
    }
  }

  get #load(): string {
    return `running=${this.#running.size}, queued=${this.#queue.size}, max_running=${this.#options.places}`;
  }

  #health(): JsonObject {
    return { status: 'healthy', executors: ['python'], jobs: { ...this.counts, max_running: this.#options.places } };
  }
}
