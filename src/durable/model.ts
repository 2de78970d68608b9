/** Settings and manifest -> the model that an agent speaks with. */
import type { AgentDefinition } from '../domain/manifest.ts';
import type { ModelProvider } from '../domain/ports.ts';
import { createModel } from '../llm/select.ts';
import { platformClock } from './platform.ts';
import type { Settings } from './settings.ts';

function select(settings: Settings): ReturnType<typeof createModel> {
  return createModel(settings.model, { clock: platformClock, random: Math.random });
}

/** An agent may ask for the demo; any other choice goes to the deployment's endpoint. */
export function modelOf(settings: Settings, agent: AgentDefinition): ModelProvider {
  const demo = agent.engine.primary.provider === 'demo';
  return select(demo ? { ...settings, model: {} } : settings).provider;
}

/** For `/health` and the start-up line. */
export function describeModel(settings: Settings): string {
  return select(settings).description;
}
