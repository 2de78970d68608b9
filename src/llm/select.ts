/** From configuration to a model provider: the one place that knows which there are. */
import { EngineError } from '../domain/errors.ts';
import type { Clock, ModelDelta, ModelProvider, Random } from '../domain/ports.ts';
import { createDemoProvider } from './demo.ts';
import { createOpenAiProvider } from './openai.ts';

/** `LLM_BASE_URL`, `LLM_API_KEY`, `LLM_MODEL`; null and empty count as unset (H8). */
export interface ModelConfig {
  readonly baseUrl?: string | null | undefined;
  readonly apiKey?: string | null | undefined;
  readonly model?: string | null | undefined;
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
 * to OpenAI. The description names model and host, never the key. A base URL that is none does not
 * stop the system: the description says so, and every call fails with `model_rejected`.
 */
export function createModel(
  config: ModelConfig,
  deps: ModelDeps,
): { readonly provider: ModelProvider; readonly description: string } {
  const { clock, random, fetch, demoDeltaMs } = deps;
  const apiKey = config.apiKey?.trim() || null;
  const baseUrl = config.baseUrl?.trim() || (apiKey === null ? null : OPENAI_URL);
  if (baseUrl === null) {
    return {
      provider: createDemoProvider({ clock, ...(demoDeltaMs === undefined ? {} : { deltaMs: demoDeltaMs }) }),
      description: 'demo (no language model; set LLM_BASE_URL and LLM_MODEL for one)',
    };
  }
  const model = config.model?.trim() || null;
  try {
    const defaultModel = model ?? ANY_MODEL;
    const provider = createOpenAiProvider({
      baseUrl,
      apiKey,
      defaultModel,
      clock,
      random,
      ...(fetch === undefined ? {} : { fetch }),
    });
    return { provider, description: `${model ?? 'default model (LLM_MODEL is not set)'} at ${new URL(baseUrl).host}` };
  } catch (fault) {
    if (!(fault instanceof EngineError)) throw fault;
    return { provider: unusable(fault), description: `not usable: ${fault.message}` };
  }
}

function unusable(fault: EngineError): ModelProvider {
  return {
    name: 'openai',
    // oxlint-disable-next-line require-yield -- it never gets to a delta
    async *stream(): AsyncGenerator<ModelDelta> {
      throw fault;
    },
  };
}
