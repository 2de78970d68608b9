/**
 * A runner as a Cloudflare Container, in the environment `containers` only (wrangler.toml). It uses the same image as
 * other hosts, starts with the first request and sleeps when idle.
 *
 * Owns: the container's start. Does not own: jobs; the container's state is lost when it stops.
 */
import { DurableObject } from 'cloudflare:workers';
import { limits } from '../domain/limits.ts';
import { pause } from '../domain/sleep.ts';
import type { Env } from './env.ts';
import { platformClock } from './platform.ts';

const PORT = 8790;

export class RunnerContainer extends DurableObject<Env> {
  override async fetch(request: Request): Promise<Response> {
    const { container } = this.ctx;
    if (container === undefined) return unavailable('This object has no container (wrangler.toml, [env.containers])');
    // The request is repeated while the container starts, so its body must be kept.
    const again = { method: request.method, headers: request.headers, body: await bodyOf(request) };
    const until = Date.now() + limits.containerStartMs;
    for (;;) {
      if (!container.running) {
        const { RUNNER_SECRET: secret = '' } = this.env;
        container.start({
          // Code that runs in it has no network access.
          enableInternet: false,
          env: { RUNNER_SECRET: secret, RUNNER_HOST: '0.0.0.0', RUNNER_PORT: String(PORT), RUNNER_DOCKER: 'off' },
        });
        await container.setInactivityTimeout(limits.containerIdleMs);
      }
      try {
        return await container.getTcpPort(PORT).fetch(request.url, again);
      } catch (fault) {
        if (Date.now() >= until) return unavailable(fault instanceof Error ? fault.message : String(fault));
        await pause(limits.containerPollMs, platformClock);
      }
    }
  }
}

async function bodyOf(request: Request): Promise<ArrayBuffer | null> {
  return request.body === null ? null : await request.arrayBuffer();
}

/** An answer in the runner's format, sent before anything has happened. */
function unavailable(detail: string): Response {
  const problem = { type: 'about:blank', title: 'The runner does not start', status: 503, code: 'stopping', detail };
  return new Response(JSON.stringify(problem), {
    status: 503,
    headers: { 'content-type': 'application/problem+json', 'retry-after': '5' },
  });
}
