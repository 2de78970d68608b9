/**
 * One relic: starts on demand, is kept alive while it is used, and stops when idle (R5).
 *
 * Owns its service: start, health checks, restarts and stop. Does not own the container (the host) and the set of relics
 * (relics.ts).
 *
 * Invariants:
 * 1. At most one service of a relic runs: the next one starts after the last one is gone.
 * 2. A call that did not reach the service is retried until its timeout. A call that may have reached it is never retried.
 * 3. A service that dies is restarted with backoff. After several deaths in a row it pauses, and calls report that.
 * 4. A stopped relic stays stopped.
 */
import type { Logger } from 'pino';

import { limits } from '../limits.ts';
import { RunnerError } from '../problem.ts';
import type { RelicCall, RelicSpec } from './definition.ts';
import type { RelicAnswer, RelicHost, RelicId, RelicService } from './relic-service.ts';

/** Clock of relics. `after` calls back once and returns a cancel function. */
export interface RelicClock {
  now(): number;
  after(ms: number, callback: () => void): () => void;
}

export type RelicState = 'starting' | 'running' | 'restarting' | 'resting' | 'stopped';

export interface RelicReport {
  readonly state: RelicState;
  readonly restarts: number;
  readonly calls: number;
  readonly startedAt: number | null;
  readonly usedAt: number;
  /** Output before its last death. */
  readonly lastOutput: string | null;
}

export interface RelicOptions {
  readonly id: RelicId;
  readonly spec: RelicSpec;
  /** Null if there is only one. */
  readonly tenant: string | null;
  readonly host: RelicHost;
  readonly clock: RelicClock;
  readonly log: Logger;
  /** Called once, when it has stopped because it was idle. */
  readonly onIdle: () => void;
}

/** The relic is unavailable now; nothing was sent to it. */
export class RelicUnavailable extends Error {
  override readonly name = 'RelicUnavailable';
}

export class Relic {
  readonly #options: RelicOptions;
  /** The service, or the one that is starting; null during a pause. */
  #ready: Promise<RelicService> | null = null;
  #service: RelicService | null = null;
  #startedAt: number | null = null;
  #usedAt: number;
  #deaths = 0;
  #restarts = 0;
  #restUntil = 0;
  #lastOutput: string | null = null;
  #atWork = 0;
  #waiting: (() => void)[] = [];
  #stopping: Promise<void> | null = null;
  readonly #stop = new AbortController();
  #cancelHealth: () => void = () => undefined;
  #cancelIdle: () => void = () => undefined;

  constructor(options: RelicOptions) {
    this.#options = options;
    this.#usedAt = options.clock.now();
    this.#armIdle(options.spec.idle_ms);
  }

  report(): RelicReport {
    const state = this.#stop.signal.aborted
      ? 'stopped'
      : this.#service !== null
        ? 'running'
        : this.#ready === null
          ? 'resting'
          : this.#deaths > 0
            ? 'restarting'
            : 'starting';
    return {
      state,
      restarts: this.#restarts,
      calls: this.#atWork + this.#waiting.length,
      startedAt: this.#startedAt,
      usedAt: this.#usedAt,
      lastOutput: this.#lastOutput,
    };
  }

  /** Resolves when it is ready. @throws RelicUnavailable */
  async start(): Promise<void> {
    this.#usedAt = this.#options.clock.now();
    await this.#running();
  }

  /**
   * Makes one call.
   *
   * @throws RelicUnavailable if nothing was sent within the timeout
   * @throws RunnerError `busy` if too many calls are queued
   */
  async call(call: RelicCall, timeoutMs: number): Promise<RelicAnswer> {
    const { clock } = this.#options;
    const until = clock.now() + timeoutMs;
    await this.#enter(timeoutMs);
    try {
      for (;;) {
        const service = await this.#within(until - clock.now(), this.#running());
        const left = until - clock.now();
        if (left <= 0) throw new RelicUnavailable(this.#late(timeoutMs));
        const answer = await service.ask(call, left);
        if (answer.end !== 'refused') return answer;
        // the service died or closed its port: wait for the restart
        if (clock.now() >= until) throw new RelicUnavailable(this.#late(timeoutMs));
        await this.#pause(limits.relicStartPollMs);
      }
    } finally {
      this.#leave();
    }
  }

  /** Resolves when only its state remains. */
  stop(): Promise<void> {
    return (this.#stopping ??= this.#end());
  }

  async #end(): Promise<void> {
    this.#stop.abort();
    this.#cancelHealth();
    this.#cancelIdle();
    const service = await this.#ready?.catch(() => null);
    await (service ?? this.#service)?.stop();
  }

  #running(): Promise<RelicService> {
    const { clock, id } = this.#options;
    if (this.#stop.signal.aborted) {
      return Promise.reject(new RelicUnavailable(`The relic ${id.name} is being stopped`));
    }
    if (this.#ready === null && clock.now() < this.#restUntil) {
      const seconds = Math.ceil((this.#restUntil - clock.now()) / 1_000);
      const detail = this.#lastOutput === null ? '' : `: ${this.#lastOutput}`;
      return Promise.reject(
        new RelicUnavailable(
          `The relic ${id.name} died ${limits.relicDeaths} times in a row and restarts in ${seconds} s${detail}`,
        ),
      );
    }
    if (this.#ready === null) {
      this.#deaths = 0;
      this.#bringUp();
    }
    return this.#ready ?? Promise.reject(new RelicUnavailable(`The relic ${id.name} does not start`));
  }

  #bringUp(): void {
    const ready = this.#start();
    this.#ready = ready;
    ready.catch(() => {
      if (this.#ready === ready) this.#ready = null;
    });
  }

  async #start(): Promise<RelicService> {
    const { host, id, spec, tenant, clock, log } = this.#options;
    for (;;) {
      if (this.#deaths > 0) {
        await this.#pause(Math.min(limits.relicBackoffMs * 2 ** (this.#deaths - 1), limits.relicBackoffMaxMs));
      }
      if (this.#stop.signal.aborted) throw new RelicUnavailable(`The relic ${id.name} is being stopped`);
      try {
        const service = await host.start(id, spec, tenant);
        const issue = await this.#greet(service);
        if (issue === null) {
          this.#adopt(service);
          return service;
        }
        await service.stop();
        this.#lastOutput = issue;
      } catch (fault) {
        this.#lastOutput = fault instanceof Error ? fault.message : String(fault);
      }
      this.#deaths += 1;
      log.warn(
        { relic: id.name, scope: id.scope, deaths: this.#deaths, reason: this.#lastOutput },
        'relic did not start',
      );
      if (this.#deaths >= limits.relicDeaths) {
        this.#restUntil = clock.now() + limits.relicRestMs;
        throw new RelicUnavailable(`The relic ${id.name} does not start: ${this.#lastOutput}`);
      }
    }
  }

  /** Waits for the first successful health check; returns the reason if there is none. */
  async #greet(service: RelicService): Promise<string | null> {
    const { spec, clock } = this.#options;
    const until = clock.now() + spec.health.start_ms;
    let words: string | null = null;
    void service.ended.then((reason) => (words = reason));
    for (;;) {
      const answer = await service.ask(
        { method: 'GET', path: spec.health.path, body: null },
        limits.relicHealthTimeoutMs,
      );
      if (isHealthy(answer)) return null;
      if (words !== null) return words === '' ? 'it ended at once without output' : words;
      if (this.#stop.signal.aborted) return 'it was stopped';
      if (clock.now() >= until) {
        const found = answer.end === 'answered' ? `status ${answer.status}` : `no answer (${answer.end})`;
        return `after ${spec.health.start_ms / 1_000} s GET ${spec.health.path} at port ${spec.port}: ${found}`;
      }
      await this.#pause(limits.relicStartPollMs);
    }
  }

  #adopt(service: RelicService): void {
    const { clock, log, id } = this.#options;
    this.#service = service;
    this.#startedAt = clock.now();
    this.#checkHealth(service, 0);
    log.info({ relic: id.name, scope: id.scope, restarts: this.#restarts }, 'relic runs');
    void service.ended.then((words) => this.#died(service, words));
  }

  #died(service: RelicService, words: string): void {
    if (this.#service !== service) return;
    const { clock, log, id } = this.#options;
    this.#service = null;
    this.#ready = null;
    this.#cancelHealth();
    if (this.#stop.signal.aborted) return;
    if (clock.now() - (this.#startedAt ?? 0) >= limits.relicStableMs) this.#deaths = 0;
    this.#deaths += 1;
    this.#restarts += 1;
    this.#lastOutput = words;
    log.warn({ relic: id.name, scope: id.scope, deaths: this.#deaths, reason: words }, 'relic died');
    if (this.#deaths >= limits.relicDeaths) this.#restUntil = clock.now() + limits.relicRestMs;
    else this.#bringUp();
  }

  #checkHealth(service: RelicService, misses: number): void {
    const { clock, spec, log, id } = this.#options;
    const timeoutMs = Math.min(
      limits.relicHealthTimeoutMs,
      Math.max(spec.health.interval_ms, limits.relicHealthLeastMs),
    );
    this.#cancelHealth = clock.after(spec.health.interval_ms, () => {
      const check = { method: 'GET', path: spec.health.path, body: null } as const;
      void service.ask(check, timeoutMs).then((answer) => {
        if (this.#service !== service) return undefined;
        const missed = isHealthy(answer) ? 0 : misses + 1;
        if (missed < limits.relicHealthMisses) return this.#checkHealth(service, missed);
        log.warn({ relic: id.name, scope: id.scope, answer: answer.end }, 'relic is unhealthy');
        return service.stop();
      });
    });
  }

  #armIdle(ms: number): void {
    const { clock, spec, onIdle } = this.#options;
    this.#cancelIdle = clock.after(ms, () => {
      const idleMs = clock.now() - this.#usedAt;
      if (this.#atWork > 0 || idleMs < spec.idle_ms) this.#armIdle(Math.max(1, spec.idle_ms - idleMs));
      else onIdle();
    });
  }

  async #enter(timeoutMs: number): Promise<void> {
    this.#usedAt = this.#options.clock.now();
    if (this.#atWork < limits.relicCalls) {
      this.#atWork += 1;
      return;
    }
    if (this.#waiting.length >= limits.relicCallsWaiting) {
      throw new RunnerError(
        'busy',
        `${this.#atWork} calls of the relic ${this.#options.id.name} are running and ${this.#waiting.length} are queued`,
        { 'retry-after': String(limits.retryAfterSeconds) },
      );
    }
    let enter: () => void = () => undefined;
    const turn = new Promise<void>((resolve) => {
      enter = resolve;
      this.#waiting.push(enter);
    });
    try {
      await this.#within(timeoutMs, turn);
    } catch (fault) {
      const at = this.#waiting.indexOf(enter);
      // it was granted a place at the same time
      if (at < 0) this.#leave();
      else this.#waiting.splice(at, 1);
      throw fault;
    }
  }

  /** Passes the place to the next waiting call. */
  #leave(): void {
    this.#usedAt = this.#options.clock.now();
    const next = this.#waiting.shift();
    if (next === undefined) this.#atWork -= 1;
    else next();
  }

  #within<T>(ms: number, promise: Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      const cancel = this.#options.clock.after(Math.max(0, ms), () => reject(new RelicUnavailable(this.#late(ms))));
      promise.then(resolve, reject).finally(cancel);
    });
  }

  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const cancel = this.#options.clock.after(ms, done);
      const { signal } = this.#stop;
      function done(): void {
        cancel();
        signal.removeEventListener('abort', done);
        resolve();
      }
      signal.addEventListener('abort', done, { once: true });
      if (signal.aborted) done();
    });
  }

  #late(ms: number): string {
    const detail = this.#lastOutput === null ? '' : ` (${this.#lastOutput})`;
    return `The relic ${this.#options.id.name} was not ready within ${Math.round(ms) / 1_000} s${detail}`;
  }
}

function isHealthy(answer: RelicAnswer): boolean {
  return answer.end === 'answered' && answer.status >= 200 && answer.status < 300;
}
