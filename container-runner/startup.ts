/** What a runner says while it starts: which images it makes, and that it takes no jobs yet. */
import { Refusal } from './problem.ts';
import { limits } from './limits.ts';
import { SERVICE, VERSION } from './version.ts';

export type ImageState = 'waiting' | 'building' | 'ready' | 'failed';

/** A base image on its way; told by whoever makes it. */
export type ImageListener = (name: string, state: ImageState) => void;

export interface ImageReport {
  readonly name: string;
  readonly state: ImageState;
  /** Since the build began; of a finished one, how long it took. */
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

  /** Answers every request until the runner is ready: 503 is said before anything happens. */
  readonly fetch = (request: Request): Response => {
    const { pathname } = new URL(request.url);
    if (request.method === 'GET' && pathname === '/health') return Response.json(this.#health());
    const retry = { 'retry-after': String(limits.startingRetrySeconds) };
    return new Refusal('starting', 'The runner is starting and takes no jobs yet', retry).toResponse();
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
