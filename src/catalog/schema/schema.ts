/**
 * What authors may write (M1, M3, M8): the fields of tools and agents with their types and limits, in the
 * wire's snake_case. `build.ts` turns what these schemas let through into the domain's definitions.
 */
import { z } from 'zod';
import { limits } from '../../domain/limits.ts';
import { CAPABILITIES, INTERNAL_ACTIONS } from '../../domain/action-types.ts';
import { MODEL_PROVIDERS, ROUTING_POLICIES } from '../../domain/manifest.ts';
import { feedSchema } from './feed.ts';
import {
  base,
  count,
  duration,
  imageBuild,
  imports,
  json,
  jsonMap,
  relativePath,
  resources,
  retry,
  runnerNeeds,
  secretName,
  text,
  url,
} from './fields.ts';

const toolUrl = z
  .string()
  .regex(/^(https?:\/\/|\$\{)\S+$/i, { error: 'must be an http:// or https:// URL, or begin with a ${VARIABLE}' });

/** Any kind of implementation may carry its resources; the rest depends on `type`. */
const implementation = z.discriminatedUnion('type', [
  z
    .strictObject({
      type: z.literal('builtin'),
      entrypoint: z.enum(['echo', 'calculator', 'web_fetch', 'web_extract', 'json_query']),
      resources: resources.optional(),
    })
    .describe('Runs in the Worker.'),
  z
    .strictObject({
      type: z.literal('script'),
      runtime: z
        .enum(['python3', 'python', 'node', 'shell'])
        .optional()
        .describe('What runs the script; guessed from the ending of the path.'),
      entrypoint: relativePath.optional().describe('Path of the script, from the manifest.'),
      script: text.min(1).optional().describe('The source itself, instead of entrypoint.'),
      resources: resources.optional(),
    })
    .describe("Runs in the runner's sandbox."),
  z
    .strictObject({
      type: z.literal('http'),
      url: toolUrl.describe('Where it is; ${TOOL_…} secrets and variables are put in when it is called.'),
      method: z.enum(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE']).optional().describe('Default GET.'),
      headers: z.record(z.string(), z.string()).optional().describe('Request headers; may name ${TOOL_…} secrets.'),
      resources: resources.optional(),
    })
    .describe('GET, HEAD and DELETE send the parameters as query, the others as JSON body.'),
  z
    .strictObject({
      type: z.literal('container'),
      image: z.string().min(1).optional().describe("An image of the runner's engine, by name."),
      build: imageBuild.optional().describe('What an image is made of, instead of its name.'),
      resources: resources.optional(),
    })
    .describe("Runs in a container of the runner's engine, by the contract of tools."),
  z
    .strictObject({
      type: z.literal('mcp'),
      url: url.describe('Where the server is.'),
      resources: resources.optional(),
    })
    .describe('A tool of a server that speaks the Model Context Protocol.'),
]);

export const toolSchema = z.strictObject({
  ...base,
  implementation: implementation.describe('How the tool runs.'),
  // list, map or JSON Schema: `parameters.ts` tells them apart with better messages than a union
  parameters: json
    .optional()
    .describe('A list, a map of name to type or spec, or a JSON Schema. Default: none are taken.'),
  parameters_schema: json.optional().describe('The same as parameters.'),
  returns: jsonMap.optional().describe('JSON Schema of the output, for readers.'),
  effects: z
    .enum(['pure', 'idempotent', 'unsafe'])
    .optional()
    .describe('What a second execution would do to the world. Default unsafe.'),
  approval: z.enum(['never', 'always']).optional().describe('Whether a person is asked first. Default never.'),
  dispatch: z
    .enum(['eager', 'after_generation'])
    .optional()
    .describe('At the closing tag, or only when the generation has ended well. Default eager.'),
  concurrency: count.min(1).optional().describe('Simultaneous executions. Default: no limit but the slots.'),
  timeout: duration.optional().describe('Up to 1 h. Default 60 s.'),
  retry: retry.optional().describe('Attempts, or {max_attempts, backoff, delay, max_delay}. Default by effects.'),
  cache_ttl: duration.optional().describe('How long a result may be used again in the same session; pure tools only.'),
  examples: z.array(json).optional().describe('Parameters that make sense; the first one is shown to the model.'),
});

const fileText = z.union([text, z.strictObject({ file: relativePath })], {
  error: 'must be text, or a map {file: path}',
});

const modelChoice = z.strictObject({
  provider: z.enum(MODEL_PROVIDERS).optional().describe('Whose ways the endpoint has; guessed from it when missing.'),
  model: z.string().min(1).optional().describe("The model's name, as the endpoint knows it."),
  endpoint: url.optional().describe("Base URL; default: the provider's, or the deployment's."),
  api_key_secret: secretName.optional().describe('Name of the secret that holds the key, TOOL_….'),
});

const routing = z.enum(ROUTING_POLICIES);

/** Of the model or of the protocol: both places are in use (P17, M8). */
const dialect = z.enum(['auto', 'protocol', 'tool_calls']);

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

const persona = z.strictObject({
  agent: fileText.optional().describe('Who the agent is.'),
  user: fileText.optional().describe('Whom it talks to.'),
  examples: z.array(fileText).optional().describe('Example exchanges.'),
  file: relativePath.optional().describe('Short for agent: {file: path}.'),
});

const engine = z.strictObject({
  primary: modelChoice.optional().describe("The model that is asked first. Default: the deployment's."),
  fallback: z
    .union([modelChoice, z.array(modelChoice).max(limits.modelFallbacks)])
    .optional()
    .describe('One or several that stand in when the first cannot answer.'),
  router: z
    .union([routing, z.strictObject({ policy: routing.optional() })])
    .optional()
    .describe('Which of them is asked first: failover, least_latency or lowest_cost.'),
  timeouts: z
    .strictObject({
      first_token: duration.optional().describe('How long the model may be silent at first.'),
      between_tokens: duration.optional().describe('How long it may pause.'),
    })
    .optional()
    .describe('How long a model may be silent.'),
  parameters: jsonMap.optional().describe('temperature, max_tokens and further request fields.'),
  dialect: dialect.optional().describe('The same as protocol.dialect.'),
  prices: z
    .record(z.string().min(1), price)
    .optional()
    .describe(
      'By model, US dollars per million tokens: {input, output, cached_input}; go before the known list prices.',
    ),
});

const memory = z.strictObject({
  max_turns: count.min(1).max(limits.historyTurns).optional().describe('Turns that are kept to the letter.'),
  summarize_after: count
    .min(2)
    .max(limits.historyTurns)
    .optional()
    .describe('Turns after which the older ones are summarised.'),
});

export const agentSchema = z.strictObject({
  ...base,
  persona: z
    .union([text, persona], { error: 'must be text, or a map of agent, user and examples' })
    .describe('Who the agent is; text alone is persona.agent.'),
  cognitive_engine: engine.optional().describe('The model, see docs/models.md.'),
  import: imports.optional().describe('What the agent may call.'),
  context_feeds: z
    .array(feedSchema)
    .max(limits.feeds)
    .optional()
    .describe(`Values that are kept current in the prompt, at most ${limits.periodicFeeds} of them periodic.`),
  capabilities: z
    .array(z.enum(CAPABILITIES))
    .optional()
    .describe('Code that the agent may run; nothing that is not named here.'),
  internal_actions: z
    .strictObject({
      enabled: z.boolean().optional().describe('False refuses all of them. Default true.'),
      allowed_actions: z.array(z.enum(INTERNAL_ACTIONS)).optional().describe('Only these. Default all.'),
      blocked_actions: z.array(z.enum(INTERNAL_ACTIONS)).optional().describe('Not these; blocked beats allowed.'),
    })
    .optional()
    .describe('What the model may do to its own session.'),
  protocol: z
    .strictObject({
      form: z.enum(['full', 'compact']).optional().describe('Which form of actions the prompt teaches. Default full.'),
      dialect: dialect.optional().describe('How the model declares actions, see docs/models.md. Default auto.'),
      json: z
        .enum(['repair', 'strict'])
        .optional()
        .describe("Whether slips in an action's JSON are mended. Default repair."),
      bare_text: z
        .enum(['answer', 'thought', 'reject'])
        .optional()
        .describe('What text outside every tag is. Default answer.'),
      response_default: z
        .enum(['auto', 'final', 'continue'])
        .optional()
        .describe('A response that does not say whether it is final. Default auto.'),
      on_failed_final: z
        .enum(['continue', 'end'])
        .optional()
        .describe('A final response whose actions failed. Default continue.'),
      act_in_reasoning: z.boolean().optional().describe('Whether actions in reasoning blocks run. Default false.'),
    })
    .optional()
    .describe("How the model's text is read, see docs/protocol.md."),
  loop: z
    .strictObject({
      mode: z
        .enum(['autonomous', 'supervised'])
        .optional()
        .describe('Supervised asks a person before every unsafe action. Default autonomous.'),
      max_iterations: count.min(0).optional().describe('Default 10; 0 = no cap but the budget.'),
      iteration_cap: count.min(0).optional().describe('The same as max_iterations.'),
      max_parallel_actions: count.min(1).max(256).optional().describe('Actions at the same time. Default 5.'),
      max_parallel_by_type: slotsByType
        .optional()
        .describe('At most so many actions of a type at the same time, such as {llm: 2, python: 1}.'),
      allow_parallel_actions: z.boolean().optional().describe('False means one at a time. Default true.'),
      fail_fast: z.boolean().optional().describe('The first failure cancels what has not finished. Default false.'),
      stream_thoughts: z.boolean().optional().describe('Whether clients see thoughts as they come. Default true.'),
      stream_action_results: z.boolean().optional().describe('Whether clients see results as they come. Default true.'),
    })
    .optional()
    .describe('How the agent works, see docs/scheduling.md.'),
  budgets: z
    .strictObject({
      seconds: duration.optional().describe('Wall time of a run. Default 3600.'),
      model_calls: count.min(1).optional().describe('Model calls of a run. Default 100.'),
      tokens: count.min(1).optional().describe('Tokens of a run. Default: no limit.'),
      cost: z
        .number()
        .positive()
        .optional()
        .describe('US dollars of a run, as far as prices are known. Default: no limit.'),
      actions: count.min(1).max(limits.actionsPerRun).optional().describe('Actions of a run. Default 2000.'),
    })
    .optional()
    .describe('What a run may spend.'),
  memory: memory.optional().describe('How much of a conversation goes to the model again.'),
  environment: z
    .strictObject({
      variables: z
        .record(z.string(), z.union([z.string(), z.number(), z.boolean()]))
        .optional()
        .describe('Values for ${NAME} in texts.'),
      secrets: z
        .array(secretName)
        .optional()
        .describe('Secrets that its tools may use, TOOL_…. Default: those that the tools name.'),
      runner: runnerNeeds.optional().describe('What its python and shell ask of the place that they run at.'),
    })
    .optional()
    .describe('Values that the manifest itself does not hold.'),
});

/** A collection: its parts are loaded from their own documents, the kind itself is listed. */
export const monumentSchema = z.looseObject(base);

export type ToolInput = z.infer<typeof toolSchema>;
export type AgentInput = z.infer<typeof agentSchema>;
export type MonumentInput = z.infer<typeof monumentSchema>;
