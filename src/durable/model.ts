/** Creates an agent's model from settings and manifest. */
import type { ResolvedAgent } from '../domain/manifests/resolved.ts';
import type { ModelProvider } from '../domain/ports/model.ts';
import type { SecretRead } from '../domain/secrets.ts';
import { EngineError } from '../domain/errors.ts';
import { limits } from '../domain/limits.ts';
import { checkUrl } from '../executors/outbound/address.ts';
import type { Egress } from '../executors/outbound/egress.ts';
import { OutboundError } from '../domain/outbound-error.ts';
import { fetchOnce } from '../executors/outbound/outbound.ts';
import { Endpoints } from '../llm/routing/endpoints.ts';
import type { EndpointReport } from '../llm/routing/endpoints.ts';
import { createModel } from '../llm/routing/select.ts';
import type { ModelDeps } from '../llm/routing/select.ts';
import type { Network } from './network.ts';
import { platformClock } from './platform.ts';
import { secretFor } from '../settings/secrets.ts';
import type { Settings } from '../settings/settings.ts';
import { objectName } from '../domain/owner.ts';
import type { Env } from './env.ts';
import { statusOf } from './status.ts';

/** Endpoint state shared by all sessions in this isolate, for its lifetime. */
const endpoints = new Endpoints(platformClock, (report, owner) => reportHealth(report, owner));

/** Receives circuit breaker reports once there is an environment. */
let reportHealth: (report: EndpointReport, owner: string | null) => void = () => {};

function deps(env: Env, settings: Settings, owner: string | null, secret: (name: string) => SecretRead): ModelDeps {
  return {
    owner,
    clock: platformClock,
    random: Math.random,
    endpoints,
    ai: env.AI ?? null,
    secret,
    refuse: (url) => {
      const checked = checkUrl(url, { allowHosts: settings.allowHosts });
      return checked.ok ? null : checked.reason;
    },
  };
}

/** An agent's models: those of its manifest, else the deployment's. */
export function modelOf(
  env: Env,
  settings: Settings,
  { agent, bundled }: Pick<ResolvedAgent, 'agent' | 'bundled'>,
  owner: string | null,
  { services }: Network,
  egress: Egress | undefined,
): ModelProvider {
  reportHealth = (report, whose) => {
    // Sent in the turn of the calling session, which stays alive until its run ends; not awaited.
    statusOf(env, 'endpoints', objectName(whose))
      .recordEndpoint(report)
      .catch(() => undefined);
  };
  return createModel(
    settings.model,
    {
      ...deps(env, settings, owner, secretFor(env, owner, bundled?.subject === true)),
      fetch: async (input, init) => await services(urlOf(input), init),
      ...(egress === undefined ? {} : { fetchExternal: externalFetch(settings, services, egress) }),
    },
    agent.engine,
  ).provider;
}

/** Endpoints that a manifest names are called like the URLs of tools: after a check of their address (X2). */
function externalFetch(
  { allowHosts }: Settings,
  services: Network['services'],
  egress: Egress,
): typeof globalThis.fetch {
  return async (input, init) => {
    const { method = 'GET', headers, body, signal } = init ?? {};
    if (body != null && typeof body !== 'string') throw new TypeError('The body of a model request must be a string');
    const request = {
      method,
      headers: new Headers(headers),
      body: body ?? null,
      signal: signal ?? new AbortController().signal,
    };
    try {
      const { response } = await fetchOnce(urlOf(input), request, {
        fetch: services,
        allowHosts,
        egress,
        timeoutMs: limits.maxActionTimeoutMs,
        maxBytes: limits.egressModelBytes,
      });
      return response;
    } catch (fault) {
      if (!(fault instanceof OutboundError)) throw fault;
      throw new EngineError(
        fault.code === 'address_refused' ? 'model_rejected' : 'model_unavailable',
        `The model endpoint could not be called: ${fault.message}`,
        {},
        fault,
      );
    }
  };
}

/** The client of models passes the request's members in `init`. */
function urlOf(input: RequestInfo | URL): string {
  return input instanceof Request ? input.url : String(input);
}

/** For `/health` and the start-up line. */
export function describeModel(env: Env, settings: Settings): string {
  // The deployment's own model does not use a manifest's secret.
  return createModel(settings.model, deps(env, settings, null, secretFor(env, null, false))).description;
}
