/**
 * What is remembered of model endpoints between calls: which fields they refuse, whether they work,
 * how fast they answer. Lives as long as the isolate; forgetting it costs a refused request, never a
 * wrong answer.
 *
 * Invariants
 * 1. What one API key has seen of an endpoint never counts for another, whatever it makes the endpoint answer.
 * 2. Endpoints are told apart by API key, address and the name of the secret whose value is sent; within one, each
 *    model has its own breaker, refusals and latency. The value of a secret is not kept here.
 * 3. Each API key has its own bound, so that none makes another one's endpoints forgotten.
 */
import { limits } from '../../domain/limits.ts';
import type { Clock } from '../../domain/ports.ts';
import { Breaker } from './breaker.ts';
import type { BreakerState } from './breaker.ts';

/** Request fields that some models refuse; left out, or written in another way, once one has said so. */
export type Quirk = 'stream_options' | 'max_tokens' | 'temperature' | 'tool_choice' | 'system' | 'user_after_tool';

/** How one model of an endpoint is doing, as `/health` shows it. */
export interface EndpointReport {
  /** Scheme and host, never a path or a key. */
  readonly endpoint: string;
  readonly model: string;
  /** Name of the secret whose value is sent; null = the deployment's key, or none. */
  readonly key: string | null;
  readonly state: BreakerState;
  /** In a row. */
  readonly failures: number;
  /** Epoch milliseconds; null while it is closed. */
  readonly next_try_at: number | null;
}

/** What tells one endpoint from another. */
export interface EndpointIdentity {
  /** Name of the API key whose sessions call it; null without keys. */
  readonly owner: string | null;
  /** Its base URL, or how a binding is called. */
  readonly address: string;
  /** Name of the secret whose value is sent, never the value; null = the deployment's key, or none. */
  readonly key: string | null;
  /** How messages and reports name it. */
  readonly name: string;
}

/** How much a new sample counts against what was learned before. */
const WEIGHT = 0.3;

interface Model {
  readonly breaker: Breaker;
  readonly refused: Set<Quirk>;
  latency: { readonly ms: number; readonly at: number } | null;
}

export class Endpoint {
  /** As messages and reports name it. */
  readonly name: string;
  readonly #key: string | null;
  readonly #clock: Pick<Clock, 'now'>;
  readonly #changed: (report: EndpointReport) => void;
  readonly #models = new Map<string, Model>();

  constructor(
    { name, key }: Pick<EndpointIdentity, 'name' | 'key'>,
    clock: Pick<Clock, 'now'>,
    changed: (report: EndpointReport) => void = () => {},
  ) {
    this.name = name;
    this.#key = key;
    this.#clock = clock;
    this.#changed = changed;
  }

  breakerOf(model: string): Breaker {
    return this.#of(model).breaker;
  }

  /** What this model has refused so far; callers add to it. */
  refusedBy(model: string): Set<Quirk> {
    return this.#of(model).refused;
  }

  learnLatency(model: string, ms: number): void {
    const before = this.latencyOf(model);
    const learned = before === null ? ms : before + WEIGHT * (ms - before);
    this.#of(model).latency = { ms: learned, at: this.#clock.now() };
  }

  /** Milliseconds to the first token; null when there is no sample, or none that still counts. */
  latencyOf(model: string): number | null {
    const sample = this.#models.get(model)?.latency ?? null;
    return sample === null || this.#clock.now() - sample.at > limits.latencySampleMs ? null : sample.ms;
  }

  #of(model: string): Model {
    const known = this.#models.get(model);
    if (known !== undefined) return known;
    makeRoom(this.#models, limits.knownModels);
    const breaker: Breaker = new Breaker(this.#clock, () => {
      const { state, failures, openUntil } = breaker;
      this.#changed({ endpoint: this.name, model, key: this.#key, state, failures, next_try_at: openUntil });
    });
    const made: Model = { breaker, refused: new Set(), latency: null };
    this.#models.set(model, made);
    return made;
  }
}

export class Endpoints {
  readonly #clock: Pick<Clock, 'now'>;
  readonly #changed: (report: EndpointReport, owner: string | null) => void;
  readonly #known = new Map<string | null, Map<string, Endpoint>>();

  /** @param changed told of every change of a breaker, and whose sessions caused it */
  constructor(clock: Pick<Clock, 'now'>, changed: (report: EndpointReport, owner: string | null) => void = () => {}) {
    this.#clock = clock;
    this.#changed = changed;
  }

  of(identity: EndpointIdentity): Endpoint {
    const { owner, address, key } = identity;
    let own = this.#known.get(owner);
    if (own === undefined) {
      own = new Map();
      this.#known.set(owner, own);
    }
    const place = JSON.stringify([address, key]);
    const known = own.get(place);
    if (known !== undefined) return known;
    makeRoom(own, limits.knownEndpoints);
    const endpoint = new Endpoint(identity, this.#clock, (report) => this.#changed(report, owner));
    own.set(place, endpoint);
    return endpoint;
  }
}

/** The oldest goes where another one would be too many. */
function makeRoom(known: Map<string, unknown>, most: number): void {
  if (known.size < most) return;
  const oldest = known.keys().next();
  if (oldest.done === false) known.delete(oldest.value);
}
