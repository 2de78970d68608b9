/** Settings and manifest -> the model that an agent speaks with. */
import type { AgentDefinition } from '../domain/manifest.ts';
import type { ModelProvider } from '../domain/ports.ts';
import { judgeUrl } from '../executors/address.ts';
import { Endpoints } from '../llm/endpoints.ts';
import type { EndpointReport } from '../llm/endpoints.ts';
import { createModel } from '../llm/select.ts';
import type { ModelDeps } from '../llm/select.ts';
import { endpointStatus } from './endpoint-status-object.ts';
import { platformClock } from './platform.ts';
import type { Env, Settings } from './settings.ts';

/** What is known of endpoints: of all sessions in this isolate together, for as long as it lives. */
const endpoints = new Endpoints(platformClock, (report) => tellHealth(report));

/** Where news of breakers go, once there is an environment. */
let tellHealth: (report: EndpointReport) => void = () => {};

function deps(env: Env, settings: Settings): ModelDeps {
  return {
    clock: platformClock,
    random: Math.random,
    endpoints,
    ai: env.AI ?? null,
    secret: (name) => secretOf(env, name),
    refuse: (url) => {
      const judged = judgeUrl(url, { allowHosts: settings.allowHosts });
      return judged.ok ? null : judged.reason;
    },
  };
}

/** Only secrets that a manifest may name, and only what the environment itself holds (X3). */
function secretOf(env: Env, name: string): string | null {
  if (!name.startsWith('TOOL_') || !Object.hasOwn(env, name)) return null;
  const value: unknown = Reflect.get(env, name);
  return typeof value === 'string' && value !== '' ? value : null;
}

/** An agent's models: its manifest's choice, where it makes one, else the deployment's. */
export function modelOf(env: Env, settings: Settings, agent: AgentDefinition): ModelProvider {
  tellHealth = (report) => {
    // Said in the turn of the session whose call it was, which is alive until its run ends; nobody waits for it.
    endpointStatus(env)
      .tell(report)
      .catch(() => undefined);
  };
  return createModel(settings.model, deps(env, settings), agent.engine).provider;
}

/** For `/health` and the start-up line. */
export function describeModel(env: Env, settings: Settings): string {
  return createModel(settings.model, deps(env, settings)).description;
}
