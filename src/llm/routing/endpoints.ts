/**
 * The remembered state of model endpoints: unsupported fields, circuit breakers, latency. It lives as long as the isolate;
 * losing it costs a rejected request, never a wrong answer.
 *
 * Invariants
 * 1. The state is separate for each namespace: the errors of one never affect another.
 * 2. Endpoints are identified by namespace, URL and the name of the secret. Each model of an endpoint has its own breaker,
 *    rejected fields and latency. The value of a secret is not stored.
 * 3. Each namespace has its own limit, so none can displace the endpoints of another.
 */
import { limits } from '../../domain/limits.ts';
import type { Clock } from '../../domain/ports/clock.ts';
import { Breaker } from './breaker.ts';
import type { BreakerState } from './breaker.ts';

/** Request fields that some models reject; after a rejection they are omitted or sent in another form. */
export type Quirk =
  | 'stream_options'
  | 'max_tokens'
  | 'temperature'
  | 'tool_choice'
  | 'system'
  | 'user_after_tool'
  | 'images'
  | 'files';

/** State of one model of an endpoint, for `/health`. */
export interface EndpointReport {
  /** Scheme and host, never a path or a key. */
  readonly endpoint: string;
  readonly model: string;
  /** Name of the secret; null means the deployment's key, or none. */
  readonly key: string | null;
  readonly state: BreakerState;
  /** Number of consecutive failures. */
  readonly failures: number;
  /** Epoch milliseconds; null while it is closed. */
  readonly next_try_at: number | null;
}

/** Identity of an endpoint. */
export interface EndpointIdentity {
  /** Namespace whose sessions call it; null without keys. */
  readonly owner: string | null;
  /** Its base URL, or the name of a binding. */
  readonly address: string;
  /** Name of the secret, never its value; null means the deployment's key, or none. */
  readonly key: string | null;
  /** Name in messages and reports. */
  readonly name: string;
}

/** Weight of a new sample in the moving average. */
const WEIGHT = 0.3;

interface Model {
  readonly breaker: Breaker;
  readonly refused: Set<Quirk>;
  latency: { readonly ms: number; readonly at: number } | null;
}

export class Endpoint {
  /** Name in messages and reports. */
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

  /** Fields that this model has rejected; callers add to it. */
  refusedBy(model: string): Set<Quirk> {
    return this.#of(model).refused;
  }

  learnLatency(model: string, ms: number): void {
    const before = this.latencyOf(model);
    const learned = before === null ? ms : before + WEIGHT * (ms - before);
    this.#of(model).latency = { ms: learned, at: this.#clock.now() };
  }

  /** Milliseconds to the first token; null without a recent sample. */
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

  /** @param changed called for every change of a breaker, with the owner of the session that caused it */
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

/** Removes the oldest entry if the limit is reached. */
function makeRoom(known: Map<string, unknown>, most: number): void {
  if (known.size < most) return;
  const oldest = known.keys().next();
  if (oldest.done === false) known.delete(oldest.value);
}
