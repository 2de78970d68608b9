/** Sessions that use several simulated runners through the pool of the Worker (R7). */
import type { JobResult, RunnerClient, RunnerJob } from '../../src/domain/ports/runner.ts';
import { createRunnerPool } from '../../src/executors/runner/pool.ts';
import { RunnerRecord } from '../../src/executors/runner/record.ts';
import type { VirtualClock } from '../../testing/virtual-clock.ts';
import { SimulatedRunner, type SimulatedRunnerOptions } from './simulated-runner.ts';

export interface Submitted {
  readonly id: string;
  readonly at: number;
  /** Why it waited. */
  readonly waits: string[];
  result: JobResult | null;
  fault: unknown;
  endedAt: number;
}

export class SimulatedFleet {
  readonly #clock: VirtualClock;
  /** What the sessions of the thread know. */
  readonly records = new Map<string, RunnerRecord>();
  #jobs = 0;
  #randoms = 0;
  #runners = 0;

  constructor(clock: VirtualClock) {
    this.#clock = clock;
  }

  runner(options: Partial<SimulatedRunnerOptions> = {}): SimulatedRunner {
    this.#runners += 1;
    return new SimulatedRunner({
      clock: this.#clock,
      url: `http://runner-${this.#runners}`,
      roundTripMs: 2,
      places: 8,
      jobMs: 100,
      ...options,
    });
  }

  /** The pool of one session, as its object makes it. */
  poolOf(runners: readonly SimulatedRunner[], tenant: string | null = null): RunnerClient {
    return createRunnerPool({
      runners: runners.map(({ url }) => ({ url, labels: [] })),
      clock: this.#clock,
      random: () => (this.#randoms += 0.618) % 1,
      recordOf: (url) => {
        const record = this.records.get(url) ?? new RunnerRecord();
        this.records.set(url, record);
        return record;
      },
      connect: (url, reports) => {
        const found = runners.find((one) => one.url === url);
        if (found === undefined) throw new Error(url);
        return found.client(reports, tenant);
      },
    });
  }

  submit(pool: RunnerClient, session: string, more: Partial<RunnerJob> = {}): Submitted {
    this.#jobs += 1;
    const waits: string[] = [];
    const id = `${session}/${this.#jobs}`;
    const submitted: Submitted = {
      id,
      at: this.#clock.now(),
      waits,
      result: null,
      fault: null,
      endedAt: Number.NaN,
    };
    const job: RunnerJob = {
      id,
      session,
      kind: 'python',
      code: '',
      runtime: null,
      inputs: {},
      limits: { timeoutMs: 600_000, memoryMb: null },
      ...more,
    };
    const observe = {
      signal: new AbortController().signal,
      output: () => undefined,
      waiting: (reason: string) => waits.push(reason),
    };
    void pool
      .run(job, observe)
      .then(
        (result) => (submitted.result = result),
        (fault: unknown) => (submitted.fault = fault),
      )
      .then(() => (submitted.endedAt = this.#clock.now()));
    return submitted;
  }

  async pass(ms: number, stepMs = 1): Promise<void> {
    for (let passed = 0; passed < ms; passed += stepMs) {
      await new Promise((resolve) => setImmediate(resolve));
      this.#clock.advance(stepMs);
    }
    await new Promise((resolve) => setImmediate(resolve));
  }

  /** @throws if one has not ended after `mostMs` */
  async untilEnded(all: readonly Submitted[], mostMs = 120_000, stepMs = 5): Promise<void> {
    const until = this.#clock.now() + mostMs;
    for (;;) {
      const open = all.filter(({ result, fault }) => result === null && fault === null);
      if (open.length === 0) return;
      if (this.#clock.now() >= until)
        throw new Error(`${open.length} jobs have not ended, such as ${open[0]?.id ?? ''}`);
      await this.pass(stepMs, stepMs);
    }
  }
}
