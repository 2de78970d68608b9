/** Answers requests while the runner starts: reports the progress of base images, and rejects jobs. */
import { RunnerError } from './problem.ts';
import { limits } from './limits.ts';
import { SERVICE, VERSION } from './version.ts';

export type ImageState = 'waiting' | 'building' | 'ready' | 'failed';

/** Called by the builder with the progress of a base image. */
export type ImageListener = (name: string, state: ImageState) => void;

export interface ImageReport {
  readonly name: string;
  readonly state: ImageState;
  /** Time since the start of the build, or the duration of a finished one. */
  readonly elapsed_ms: number;
}

export class Startup {
  readonly #now: () => number;
  readonly #startedAt: number;
  readonly #images = new Map<string, { state: ImageState; since: number; endedAt: number | null }>();

  constructor(now: () => number) {
    this.#now = now;
    this.#startedAt = now();
  }

  readonly image: ImageListener = (name, state) => {
    const now = this.#now();
    const known = this.#images.get(name);
    const ended = state === 'ready' || state === 'failed';
    const since = known === undefined || state === 'building' ? now : known.since;
    this.#images.set(name, { state, since, endedAt: ended ? now : null });
  };

  /** Answers every request until the runner is ready. */
  readonly fetch = (request: Request): Response => {
    const { pathname } = new URL(request.url);
    if (request.method === 'GET' && pathname === '/health') return Response.json(this.#health());
    const retry = { 'retry-after': String(limits.startingRetrySeconds) };
    return new RunnerError('starting', 'The runner is starting and does not accept jobs yet', retry).toResponse();
  };

  #health(): Record<string, unknown> {
    const now = this.#now();
    const images = [...this.#images].map(([name, { state, since, endedAt }]): ImageReport => {
      return { name, state, elapsed_ms: (endedAt ?? now) - since };
    });
    return {
      status: 'starting',
      service: SERVICE,
      version: VERSION,
      executors: [],
      starting: { elapsed_ms: now - this.#startedAt, images },
    };
  }
}
