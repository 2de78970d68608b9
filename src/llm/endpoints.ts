/**
 * What is remembered of model endpoints between calls: which fields they refuse, whether they work,
 * how fast they answer. Lives as long as the isolate; forgetting it costs a refused request, never a
 * wrong answer.
 */
import { limits } from '../domain/limits.ts';
import type { Clock } from '../domain/ports.ts';
import { Breaker } from './breaker.ts';
import type { BreakerState } from './breaker.ts';

/** Request fields that some models refuse; left out, or written in another way, once one has said so. */
export type Quirk = 'stream_options' | 'max_tokens' | 'temperature' | 'tool_choice' | 'system' | 'user_after_tool';

/** How one endpoint is doing, as `/health` shows it. */
export interface EndpointReport {
  /** Scheme and host, never a path or a key. */
  readonly endpoint: string;
  readonly state: BreakerState;
  /** In a row. */
  readonly failures: number;
  /** Epoch milliseconds; null while it is closed. */
  readonly next_try_at: number | null;
}

/** How much a new sample counts against what was learned before. */
const WEIGHT = 0.3;

export class Endpoint {
  /** As messages and reports name it. */
  readonly name: string;
  readonly breaker: Breaker;
  readonly #clock: Pick<Clock, 'now'>;
  readonly #refused = new Map<string, Set<Quirk>>();
  readonly #latencies = new Map<string, { ms: number; at: number }>();

  constructor(name: string, clock: Pick<Clock, 'now'>, changed: (report: EndpointReport) => void = () => {}) {
    this.name = name;
    this.#clock = clock;
    this.breaker = new Breaker(clock, () => changed(this.report()));
  }

  /** What this model has refused so far; callers add to it. */
  refusedBy(model: string): Set<Quirk> {
    const known = this.#refused.get(model);
    if (known !== undefined) return known;
    if (this.#refused.size >= limits.knownEndpoints) this.#refused.clear();
    const refused = new Set<Quirk>();
    this.#refused.set(model, refused);
    return refused;
  }

  learnLatency(model: string, ms: number): void {
    const before = this.latencyOf(model);
    if (this.#latencies.size >= limits.knownEndpoints && before === null) this.#latencies.clear();
    const learned = before === null ? ms : before + WEIGHT * (ms - before);
    this.#latencies.set(model, { ms: learned, at: this.#clock.now() });
  }

  /** Milliseconds to the first token; null when there is no sample, or none that still counts. */
  latencyOf(model: string): number | null {
    const sample = this.#latencies.get(model);
    return sample === undefined || this.#clock.now() - sample.at > limits.latencySampleMs ? null : sample.ms;
  }

  report(): EndpointReport {
    const { state, failures, openUntil } = this.breaker;
    return { endpoint: this.name, state, failures, next_try_at: openUntil };
  }
}

export class Endpoints {
  readonly #clock: Pick<Clock, 'now'>;
  readonly #changed: (report: EndpointReport) => void;
  readonly #known = new Map<string, Endpoint>();

  /** @param changed told of every change of a breaker */
  constructor(clock: Pick<Clock, 'now'>, changed: (report: EndpointReport) => void = () => {}) {
    this.#clock = clock;
    this.#changed = changed;
  }

  /**
   * @param key whatever tells one endpoint from another, such as its base URL
   * @param name how reports name it
   */
  of(key: string, name: string): Endpoint {
    const known = this.#known.get(key);
    if (known !== undefined) return known;
    const oldest = this.#known.size >= limits.knownEndpoints ? this.#known.keys().next() : null;
    if (oldest?.done === false) this.#known.delete(oldest.value);
    const endpoint = new Endpoint(name, this.#clock, (report) => this.#changed(report));
    this.#known.set(key, endpoint);
    return endpoint;
  }
}
