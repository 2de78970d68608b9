/** From configuration to a model provider: the one place that knows which there are. */
import type { Clock, ModelProvider, Random } from '../domain/ports.ts';
import { createDemoProvider } from './demo.ts';
import { createOpenAiProvider } from './openai.ts';

/** `LLM_BASE_URL`, `LLM_API_KEY`, `LLM_MODEL`; empty strings count as unset (H8). */
export interface ModelConfig {
  readonly baseUrl?: string | undefined;
  readonly apiKey?: string | undefined;
  readonly model?: string | undefined;
}

export interface ModelDeps {
  readonly clock: Clock;
  readonly random: Random;
  readonly fetch?: typeof globalThis.fetch;
  /** Pacing of the demo provider, see there. */
  readonly demoDeltaMs?: number;
}

const OPENAI_URL = 'https://api.openai.com/v1';
/** Servers with a single model take any name. */
const ANY_MODEL = 'default';

/**
 * The demo provider when nothing is configured, else the endpoint; a key without an address belongs
 * to OpenAI. The description names model and host, never the key.
 *
 * @throws EngineError `model_rejected` where the base URL is not an http or https address
 */
export function createModel(
  config: ModelConfig,
  deps: ModelDeps,
): { readonly provider: ModelProvider; readonly description: string } {
  const baseUrl = config.baseUrl?.trim() || (config.apiKey?.trim() ? OPENAI_URL : '');
  if (baseUrl === '') {
    return {
      provider: createDemoProvider({
        clock: deps.clock,
        ...(deps.demoDeltaMs === undefined ? {} : { deltaMs: deps.demoDeltaMs }),
      }),
      description: 'demo (no language model; set LLM_BASE_URL and LLM_MODEL for one)',
    };
  }
  const model = config.model?.trim() || ANY_MODEL;
  const provider = createOpenAiProvider({
    baseUrl,
    apiKey: config.apiKey?.trim() || null,
    defaultModel: model,
    clock: deps.clock,
    random: deps.random,
    ...(deps.fetch === undefined ? {} : { fetch: deps.fetch }),
  });
  const named = config.model?.trim() ? model : 'default model (LLM_MODEL is not set)';
  return { provider, description: `${named} at ${new URL(baseUrl).host}` };
}
