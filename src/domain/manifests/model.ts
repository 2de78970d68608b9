/** Models of agents after validation. */

/** Provider presets (docs/models.md). `openai` also works for any compatible endpoint. */
export const MODEL_PROVIDERS = [
  'openai',
  'anthropic',
  'gemini',
  'groq',
  'mistral',
  'deepseek',
  'openrouter',
  'xai',
  'workers-ai',
  'ai-gateway',
  'ollama',
  'vllm',
  'llama.cpp',
  'demo',
] as const;

export type ModelProviderName = (typeof MODEL_PROVIDERS)[number];

/** The order in which several models are tried; the next one is used if a model cannot answer (L2). */
export const ROUTING_POLICIES = ['failover', 'least_latency', 'lowest_cost'] as const;

export type RoutingPolicy = (typeof ROUTING_POLICIES)[number];

export interface ModelChoice {
  /** Null means the provider of the endpoint, or the deployment's default. */
  readonly provider: ModelProviderName | null;
  readonly model: string | null;
  readonly endpoint: string | null;
  /** Name of the secret with the endpoint's key, `TOOL_…` (L7, X3). */
  readonly keySecret: string | null;
  /** Whether the model takes images; absent: the engine's setting. */
  readonly vision?: boolean;
}

/** Price of a model, in US dollars per million tokens. */
export interface ModelPrice {
  readonly input: number;
  readonly output: number;
  /** For prompt tokens that the endpoint had cached. */
  readonly cachedInput: number;
}
