/**
 * A runner as a Cloudflare Container, in the environment `containers` only (wrangler.toml). It uses the same image as
 * other hosts, starts with the first job and sleeps when idle.
 *
 * Owns: the platform's container. Does not own: when it starts (container-front.ts).
 */
import { DurableObject } from 'cloudflare:workers';
import { ContainerFront } from '../executors/runner/container-front.ts';
import { SentJobs } from '../executors/runner/sent-jobs.ts';
import type { Env } from './env.ts';
import { platformClock } from './platform.ts';
import { durableSql } from './sql-storage.ts';

const PORT = 8790;

export class RunnerContainer extends DurableObject<Env> {
  readonly #front: ContainerFront | null;

  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env);
    const { container, storage } = ctx;
    if (container === undefined) this.#front = null;
    else this.#front = new ContainerFront(portOf(container, env), platformClock, new SentJobs(durableSql(storage)));
  }

  override async fetch(request: Request): Promise<Response> {
    if (this.#front !== null) return await this.#front.fetch(request);
    return new Response('This object has no container (wrangler.toml, [env.containers])', { status: 503 });
  }
}

function portOf(container: Container, { RUNNER_SECRET: secret = '' }: Env) {
  return {
    get running() {
      return container.running;
    },
    start: () =>
      container.start({
        // Code that runs in it has no network access.
        enableInternet: false,
        env: { RUNNER_SECRET: secret, RUNNER_HOST: '0.0.0.0', RUNNER_PORT: String(PORT), RUNNER_DOCKER: 'off' },
      }),
    stopWhenIdle: (ms: number) => container.setInactivityTimeout(ms),
    fetch: (url: string, init: RequestInit) => container.getTcpPort(PORT).fetch(url, init),
  };
}
