/**
 * What authors may write (M1, M3, M8): the fields of each kind with their types and limits, in the
 * wire's snake_case. `build.ts` turns what these schemas let through into the domain's definitions.
 */
import { z } from 'zod';
import { limits } from '../domain/limits.ts';
import { INTERNAL_ACTIONS, MODEL_PROVIDERS, ROUTING_POLICIES } from '../domain/manifest.ts';

/** Names stand in URLs, prompts and sandboxes: no white space, no punctuation but `_` and `-`. */
const NAME = /^[A-Za-z][A-Za-z0-9_-]{0,63}$/;
const name = z
  .string()
  .regex(NAME, { error: 'must be a letter followed by up to 63 letters, digits, "_" or "-"' })
  .describe('Unique within its kind; what the model calls it by.');

const text = z.string().max(limits.manifestBytes);

/** `30`, `"30s"`, `"5m"`, `"500ms"`, `"1h"`: seconds unless a unit says otherwise. */
const durationError = { error: 'must be a number of seconds, or text with a unit such as "30s", "5m" or "500ms"' };
const duration = z.union(
  [z.number().nonnegative(), z.string().regex(/^\s*\d+(\.\d+)?\s*(ms|s|m|h)\s*$/, durationError)],
  durationError,
);

/** `256`, `"256Mi"`, `"256MB"`, `"1G"`: mebibytes unless a unit says otherwise. */
const memoryError = { error: 'must be a number of MiB, or text with a unit such as "256Mi" or "1G"' };
const memory = z.union(
  [z.number().positive(), z.string().regex(/^\s*\d+(\.\d+)?\s*([KMG]i?B?)\s*$/i, memoryError)],
  memoryError,
);

const count = z.number().int();

const base = {
  kind: z.string(),
  version: z.string().min(1).max(64),
  name,
  summary: z.string().min(1).max(500).describe('One sentence; the model reads it when it chooses.'),
  description: text.optional(),
  author: z.string().optional(),
  state: z.string().optional(),
  tags: z.array(z.string()).optional(),
  metadata: z.record(z.string(), z.json()).optional(),
};

const retry = z.union(
  [
    z.number().int().min(1).max(limits.maxRetryAttempts),
    z.strictObject({
      max_attempts: z.number().int().min(1).max(limits.maxRetryAttempts).optional(),
      backoff: z.enum(['none', 'linear', 'exponential']).optional(),
      delay: duration.optional(),
      max_delay: duration.optional(),
    }),
  ],
  {
    error: `must be a number of attempts from 1 to ${limits.maxRetryAttempts}, or a map of max_attempts, backoff (none, linear, exponential), delay and max_delay`,
  },
);

const resources = z.strictObject({ memory: memory.optional(), timeout: duration.optional() }).optional();
const url = z.string().regex(/^https?:\/\/\S+$/i, { error: 'must be an http:// or https:// URL' });

/** Any kind of implementation may carry its resources; the rest depends on `type`. */
const implementation = z.discriminatedUnion('type', [
  z.strictObject({
    type: z.literal('builtin'),
    entrypoint: z.enum(['echo', 'calculator', 'web_fetch', 'web_extract', 'json_query']),
    resources,
  }),
  z.strictObject({
    type: z.literal('script'),
    runtime: z.enum(['python3', 'python', 'node', 'shell']).optional(),
    entrypoint: z.string().min(1).optional(),
    script: text.min(1).optional(),
    resources,
  }),
  z.strictObject({
    type: z.literal('http'),
    url,
    method: z.enum(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE']).optional(),
    headers: z.record(z.string(), z.string()).optional(),
    resources,
  }),
  z.strictObject({ type: z.literal('container'), image: z.string().min(1), resources }),
  z.strictObject({ type: z.literal('mcp'), url, resources }),
]);

export const toolSchema = z.strictObject({
  ...base,
  implementation,
  // list, map or JSON Schema: `parameters.ts` tells them apart with better messages than a union
  parameters: z.json().optional(),
  parameters_schema: z.json().optional(),
  returns: z.record(z.string(), z.json()).optional(),
  effects: z.enum(['pure', 'idempotent', 'unsafe']).optional(),
  approval: z.enum(['never', 'always']).optional(),
  dispatch: z.enum(['eager', 'after_generation']).optional(),
  concurrency: count.min(1).optional(),
  timeout: duration.optional(),
  retry: retry.optional(),
  cache_ttl: duration.optional(),
  examples: z.array(z.json()).optional(),
});

const fileText = z.union([text, z.strictObject({ file: z.string().min(1) })], {
  error: 'must be text, or a map {file: path}',
});

const modelChoice = z.strictObject({
  provider: z.enum(MODEL_PROVIDERS).optional(),
  model: z.string().min(1).optional(),
  endpoint: url.optional(),
  api_key_secret: z
    .string()
    .regex(/^TOOL_[A-Z0-9_]{1,64}$/, { error: 'must be the name of a secret that begins with TOOL_' })
    .optional(),
});

const routing = z.enum(ROUTING_POLICIES);

/** Of the model or of the protocol: both places are in use (P17, M8). */
const dialect = z.enum(['auto', 'protocol', 'tool_calls']);

const names = z.array(z.string().min(1)).optional();

const slots = count.min(1).max(256).optional();
const slotsByType = z.strictObject({
  tool: slots,
  agent: slots,
  relic: slots,
  workflow: slots,
  llm: slots,
  internal: slots,
  python: slots,
  shell: slots,
  docker: slots,
});

/** US dollars per million tokens. */
const price = z.strictObject({
  input: z.number().nonnegative(),
  output: z.number().nonnegative(),
  cached_input: z.number().nonnegative().optional(),
});

export const agentSchema = z.strictObject({
  ...base,
  persona: z.union(
    [
      text,
      z.strictObject({
        agent: fileText.optional(),
        user: fileText.optional(),
        examples: z.array(fileText).optional(),
        file: z.string().min(1).optional(),
      }),
    ],
    { error: 'must be text, or a map of agent, user and examples' },
  ),
  cognitive_engine: z
    .strictObject({
      primary: modelChoice.optional(),
      fallback: z.union([modelChoice, z.array(modelChoice).max(limits.modelFallbacks)]).optional(),
      router: z.union([routing, z.strictObject({ policy: routing.optional() })]).optional(),
      timeouts: z.strictObject({ first_token: duration.optional(), between_tokens: duration.optional() }).optional(),
      parameters: z.record(z.string(), z.json()).optional(),
      dialect: dialect.optional(),
      prices: z.record(z.string().min(1), price).optional(),
    })
    .optional(),
  import: z.strictObject({ agents: names, tools: names, relics: names, workflows: names }).optional(),
  capabilities: z.array(z.enum(['python', 'shell', 'docker'])).optional(),
  internal_actions: z
    .strictObject({
      enabled: z.boolean().optional(),
      allowed_actions: z.array(z.enum(INTERNAL_ACTIONS)).optional(),
      blocked_actions: z.array(z.enum(INTERNAL_ACTIONS)).optional(),
    })
    .optional(),
  protocol: z
    .strictObject({
      form: z.enum(['full', 'compact']).optional(),
      dialect: dialect.optional(),
      json: z.enum(['repair', 'strict']).optional(),
      bare_text: z.enum(['answer', 'thought', 'reject']).optional(),
      response_default: z.enum(['auto', 'final', 'continue']).optional(),
      on_failed_final: z.enum(['continue', 'end']).optional(),
      act_in_reasoning: z.boolean().optional(),
    })
    .optional(),
  loop: z
    .strictObject({
      mode: z.enum(['autonomous', 'supervised']).optional(),
      max_iterations: count.min(0).optional(),
      iteration_cap: count.min(0).optional(),
      max_parallel_actions: count.min(1).max(256).optional(),
      max_parallel_by_type: slotsByType.optional(),
      allow_parallel_actions: z.boolean().optional(),
      fail_fast: z.boolean().optional(),
      stream_thoughts: z.boolean().optional(),
      stream_action_results: z.boolean().optional(),
    })
    .optional(),
  budgets: z
    .strictObject({
      seconds: duration.optional(),
      model_calls: count.min(1).optional(),
      tokens: count.min(1).optional(),
      cost: z.number().positive().optional(),
      actions: count.min(1).max(limits.actionsPerRun).optional(),
    })
    .optional(),
  environment: z
    .strictObject({
      variables: z.record(z.string(), z.union([z.string(), z.number(), z.boolean()])).optional(),
    })
    .optional(),
});

/** Relics and workflows: base fields checked, everything else kept as written. */
export const keptSchema = z.looseObject(base);

export type ToolInput = z.infer<typeof toolSchema>;
export type AgentInput = z.infer<typeof agentSchema>;
export type KeptInput = z.infer<typeof keptSchema>;
