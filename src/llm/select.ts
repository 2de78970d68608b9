/** From configuration to a model provider: the one place that knows which there are. */
import { EngineError } from '../domain/errors.ts';
import type { Clock, ModelDelta, ModelProvider, Random } from '../domain/ports.ts';
import { originOf } from './address.ts';
import { createDemoProvider } from './demo.ts';

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
    originOf(baseUrl);
    const provider = loadedAtFirstUse(async () => {
      const { createOpenAiProvider } = await import('./openai.ts');
      return createOpenAiProvider({
        baseUrl,
        apiKey,
        defaultModel: model ?? ANY_MODEL,
        clock,
        random,
        ...(fetch === undefined ? {} : { fetch }),
      });
    });
    return { provider, description: `${model ?? 'default model (LLM_MODEL is not set)'} at ${new URL(baseUrl).host}` };
  } catch (fault) {
    if (!(fault instanceof EngineError)) throw fault;
    return { provider: unusable(fault), description: `not usable: ${fault.message}` };
  }
}

/** The client library is the heaviest part of the Worker: one that starts does not wait for it. */
function loadedAtFirstUse(load: () => Promise<ModelProvider>): ModelProvider {
  let loaded: Promise<ModelProvider> | null = null;
  return {
    name: 'openai',
    async *stream(request): AsyncGenerator<ModelDelta> {
      loaded ??= load();
      yield* (await loaded).stream(request);
    },
  };
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
