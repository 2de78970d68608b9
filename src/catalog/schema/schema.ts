/**
 * Schemas of tool and agent manifests (M1, M3, M8), in snake_case. `build/` converts the validated input to the
 * domain's definitions.
 */
import * as z from 'zod';
import { limits } from '../../domain/limits.ts';
import { ACTION_TYPES, CAPABILITIES } from '../../domain/action-types.ts';
import { INTERNAL_ACTIONS } from '../../domain/internal-actions.ts';
import type { ActionType } from '../../domain/action-types.ts';
import { MODEL_PROVIDERS, ROUTING_POLICIES } from '../../domain/manifests/model.ts';
import { feedSchema } from './feed.ts';
import { policies } from './schema-policy.ts';
import { prompt } from './schema-prompt.ts';
import {
  base,
  count,
  duration,
  expose,
  fileText,
  imageBuild,
  imports,
  json,
  jsonMap,
  name,
  names,
  redact,
  relativePath,
  resources,
  retry,
  runnerNeeds,
  secretName,
  text,
  url,
  workspace,
} from './fields.ts';

const environmentName = z
  .string()
  .regex(/^[A-Za-z_][A-Za-z0-9_]{0,127}$/, { error: 'must be letters, digits and "_"' });

const toolUrl = z
  .string()
  .regex(/^(https?:\/\/|\$\{)\S+$/i, { error: 'must be an http:// or https:// URL, or begin with a ${VARIABLE}' });

/** Every implementation may have resources; the other fields depend on `type`. */
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
        .enum(['python3', 'python', 'node', 'shell', 'bash'])
        .optional()
        .describe('Interpreter; inferred from the file extension by default.'),
      entrypoint: relativePath.optional().describe('Path of the script, relative to the manifest.'),
      script: text.min(1).optional().describe('Source code, instead of entrypoint.'),
      files: z
        .array(relativePath)
        .max(limits.scriptFiles)
        .optional()
        .describe(
          'Further files that the script reads at run time; a path that ends with "/" means all files in a folder. Python modules that it imports are found without it.',
        ),
      argument: z
        .union([z.enum(['json', 'file']), z.strictObject({ parameter: z.string().min(1).max(64) })], {
          error: 'must be json, file, or a map {parameter: name}',
        })
        .optional()
        .describe('First argument: the input as JSON (default), the path of a file with it, or one parameter as text.'),
      environment: z
        .record(environmentName, z.union([z.string().max(4_096), z.number(), z.boolean()]))
        .optional()
        .describe('Environment variables of the script.'),
      resources: resources.optional(),
    })
    .describe("Runs in the runner's sandbox."),
  z
    .strictObject({
      type: z.literal('http'),
      url: toolUrl.describe(
        'URL; may contain {parameter} in path and query, variables, and ${TOOL_…} secrets, replaced at each call.',
      ),
      method: z.enum(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE']).optional().describe('Default GET.'),
      headers: z
        .record(z.string(), z.string())
        .optional()
        .describe('Request headers; may contain {parameter}, variables, and ${TOOL_…} secrets.'),
      resources: resources.optional(),
    })
    .describe(
      'HTTP request; GET, HEAD and DELETE send the other parameters in the query, the other methods as a JSON body.',
    ),
  z
    .strictObject({
      type: z.literal('container'),
      image: z.string().min(1).optional().describe("An image of the runner's engine, by name."),
      build: imageBuild.optional().describe('Builds an image, instead of naming one.'),
      resources: resources.optional(),
    })
    .describe('Runs in a container on the runner, with the interface of script tools.'),
  z
    .strictObject({
      type: z.literal('code'),
      bindings: z
        .array(
          z
            .string()
            .regex(/^[A-Za-z_][A-Za-z0-9_]{0,63}$/, { error: 'must be the name of a binding in wrangler.toml' }),
        )
        .max(limits.manifestImports)
        .optional()
        .describe('Bindings of the Worker that it may use: D1, KV, R2, Queues, Vectorize, services. Default: none.'),
      secrets: z
        .array(secretName)
        .max(limits.manifestImports)
        .optional()
        .describe('Secrets that it may read, TOOL_…. Default: none.'),
      resources: resources.optional(),
    })
    .describe('TypeScript in `tools/<name>.ts` of the project: parameters and effects are there, and the description.'),
  z
    .strictObject({ type: z.literal('client'), resources: resources.optional() })
    .describe('Executed by the client, which posts the result.'),
]);

export const toolSchema = z.strictObject({
  ...base,
  implementation: implementation.describe('How the tool runs.'),
  // list, map or JSON Schema: `parameters.ts` distinguishes them with better messages than a union
  parameters: json
    .optional()
    .describe('A list, a map of name to type or spec, or a JSON Schema. Default: no parameters.'),
  parameters_schema: json.optional().describe('The same as parameters.'),
  returns: jsonMap
    .optional()
    .describe('JSON Schema of the output; the prompt shows its keys and types in one line. Not checked.'),
  effects: z.enum(['pure', 'idempotent', 'unsafe']).optional().describe('Effect of repeating a call. Default unsafe.'),
  approval: z.enum(['never', 'always']).optional().describe("Whether a call needs a person's approval. Default never."),
  dispatch: z
    .enum(['eager', 'after_generation'])
    .optional()
    .describe('Starts at the closing tag, or after the generation has ended normally. Default eager.'),
  concurrency: count.min(1).optional().describe('Maximum concurrent executions. Default: limited by slots only.'),
  timeout: duration.optional().describe('Up to 1 h, default 60 s; for client tools up to 7 days, default 24 h.'),
  retry: retry.optional().describe('Attempts, or {max_attempts, backoff, delay, max_delay}. Default: by effects.'),
  cache_ttl: duration.optional().describe('How long the session reuses a result; pure tools only.'),
  workspace: workspace
    .optional()
    .describe('`none`: its program sees no files of the session. Default session; a pure tool sees none.'),
  expose: expose
    .optional()
    .describe('`mcp`: clients of `/mcp` may call it, see docs/mcp.md; an agent must import it. Default: they may not.'),
  examples: z.array(json).optional().describe('Example parameters; the model sees the first one.'),
});

const modelChoice = z.strictObject({
  provider: z.enum(MODEL_PROVIDERS).optional().describe('Provider preset; inferred from the endpoint by default.'),
  model: z.string().min(1).optional().describe("The model's name at the endpoint."),
  endpoint: url.optional().describe("Base URL; default: the provider's, or the deployment's."),
  api_key_secret: secretName.optional().describe('Name of the secret with the key, TOOL_….'),
  vision: z.boolean().optional().describe("Whether the model takes images. Default: the engine's vision."),
});

const routing = z.enum(ROUTING_POLICIES);

/** Allowed under `cognitive_engine` and under `protocol` (P17, M8). */
const dialect = z.enum(['auto', 'protocol', 'tool_calls']);

const slots = count.min(1).max(256).optional();
const slotsByType = z.strictObject(
  Object.fromEntries(ACTION_TYPES.map((type) => [type, slots])) as Record<ActionType, typeof slots>,
);

/** US dollars per million tokens. */
const price = z.strictObject({
  input: z.number().nonnegative(),
  output: z.number().nonnegative(),
  cached_input: z.number().nonnegative().optional(),
});

const persona = z.strictObject({
  agent: z
    .union([...fileText.options, z.array(fileText).min(1).max(limits.manifestImports)], {
      error: 'must be text, a map {file: path}, or a list of these',
    })
    .optional()
    .describe('Who the agent is; the parts of a list are joined.'),
  user: fileText.optional().describe('The user that the agent talks to.'),
  examples: z.array(fileText).optional().describe('Example exchanges.'),
  file: relativePath.optional().describe('Short for agent: {file: path}.'),
});

const engine = z.strictObject({
  primary: modelChoice.optional().describe("The first model. Default: the deployment's."),
  fallback: z
    .union([modelChoice, z.array(modelChoice).max(limits.modelFallbacks)])
    .optional()
    .describe('One or several models that answer if the first one fails.'),
  router: z
    .union([routing, z.strictObject({ policy: routing.optional() })])
    .optional()
    .describe('Order of the models: failover, least_latency or lowest_cost.'),
  timeouts: z
    .strictObject({
      first_token: duration.optional().describe('Maximum time to the first token.'),
      between_tokens: duration.optional().describe('Maximum time between tokens.'),
    })
    .optional()
    .describe("Timeouts of the model's stream."),
  parameters: jsonMap.optional().describe('temperature, max_tokens and other request fields.'),
  dialect: dialect.optional().describe('The same as protocol.dialect.'),
  vision: z
    .boolean()
    .optional()
    .describe('Whether the models take images. Default: images are sent, and no longer after a refusal.'),
  prices: z
    .record(z.string().min(1), price)
    .optional()
    .describe('By model, US dollars per million tokens: {input, output, cached_input}; override the built-in prices.'),
});

const mcpServer = z.strictObject({
  name: name.describe('Unique in the agent; used in messages, and in names of tools that would clash.'),
  url: url.describe('Address of the server (Streamable HTTP), for example https://example.com/mcp.'),
  auth: secretName.optional().describe('Secret that is sent as a bearer token, TOOL_…. Default: none.'),
  tools: names
    .min(1)
    .optional()
    .describe("The server's names of the tools that the agent may use. Default: all that it lists."),
  prefix: z
    .string()
    .regex(/^[A-Za-z][A-Za-z0-9_-]{0,31}$/, {
      error: 'must be a letter followed by up to 31 letters, digits, "_" or "-"',
    })
    .optional()
    .describe(
      'Begins the names of its tools. Default: nothing; a name that is taken begins with the name of the server.',
    ),
  trust: z
    .boolean()
    .optional()
    .describe('Whether its statements about the effects of its tools count. Default false: every call is unsafe.'),
  approval: z
    .enum(['never', 'always'])
    .optional()
    .describe("Whether calls of its tools need a person's approval. Default never."),
  timeout: duration.optional().describe('Of one call, up to 1 h. Default 60 s.'),
});

const facts = z.union(
  [
    z.boolean(),
    z.strictObject({
      max: count.min(1).max(limits.factsMost).optional().describe(`Number of facts. Default ${limits.facts}.`),
      tokens: count
        .min(50)
        .max(limits.factTokensMost)
        .optional()
        .describe(`Estimated tokens of all facts in the prompt. Default ${limits.factTokens}.`),
    }),
  ],
  { error: 'must be true, false, or a map of max and tokens' },
);
const summary = z.strictObject({
  by: z
    .enum(['model', 'lines'])
    .optional()
    .describe("`model` (default): the agent's model writes a text; `lines`: one line for each message and answer."),
  tokens: count
    .min(limits.summaryLeastTokens)
    .max(limits.summaryMostTokens)
    .optional()
    .describe(`Budget of the text in tokens. Default ${limits.summaryTokens}.`),
  template: fileText
    .optional()
    .describe('The request for the text, with {{previous}}, {{turns}} and {{tokens}}. Default: a general one.'),
});

const memory = z.strictObject({
  max_turns: count.min(1).max(limits.historyTurns).optional().describe('Number of turns that are kept verbatim.'),
  summarize_after: count
    .min(2)
    .max(limits.historyTurns)
    .optional()
    .describe('Number of turns after which older ones are summarised.'),
  facts: facts
    .optional()
    .describe(
      'Facts about the user that all sessions of the user with this agent share (docs/memory.md). Default false.',
    ),
  summary: summary.optional().describe('How they are summarised, see docs/memory.md.'),
});

export const agentSchema = z.strictObject({
  ...base,
  persona: z
    .union([text, persona], { error: 'must be text, or a map of agent, user and examples' })
    .describe('Who the agent is; plain text means persona.agent.'),
  prompt: prompt
    .optional()
    .describe('Parts of the system prompt that are replaced or left out, see docs/prompt.md. Default: none.'),
  cognitive_engine: engine.optional().describe('The model, see docs/models.md.'),
  import: imports
    .extend({
      skills: names
        .max(limits.agentSkills)
        .optional()
        .describe('Skills, by name or path: instructions that the agent loads when it needs them (docs/skills.md).'),
    })
    .optional()
    .describe('What the agent can call, and its skills.'),
  mcp_servers: z
    .array(mcpServer)
    .max(limits.mcpServers)
    .optional()
    .describe('Servers of the Model Context Protocol whose tools the agent can call, see docs/mcp.md.'),
  context_feeds: z
    .array(feedSchema)
    .max(limits.feeds)
    .optional()
    .describe(`Values that are kept up to date in the prompt, at most ${limits.periodicFeeds} of them periodic.`),
  capabilities: z
    .array(z.enum(CAPABILITIES))
    .optional()
    .describe('Types of code that the agent may run. Default: none.'),
  internal_actions: z
    .strictObject({
      enabled: z.boolean().optional().describe('If false, all internal actions are rejected. Default true.'),
      allowed_actions: z
        .array(z.enum(INTERNAL_ACTIONS))
        .optional()
        .describe('The allowed internal actions. Default: all.'),
      blocked_actions: z
        .array(z.enum(INTERNAL_ACTIONS))
        .optional()
        .describe('Internal actions that are not allowed; takes precedence over allowed_actions.'),
    })
    .optional()
    .describe('Internal actions of the model.'),
  protocol: z
    .strictObject({
      form: z.enum(['full', 'compact']).optional().describe('Form of actions in the prompt. Default full.'),
      dialect: dialect.optional().describe('How the model declares actions, see docs/models.md. Default auto.'),
      json: z
        .enum(['repair', 'strict'])
        .optional()
        .describe('Whether invalid JSON in actions is repaired. Default repair.'),
      bare_text: z
        .enum(['answer', 'thought', 'reject'])
        .optional()
        .describe('Meaning of text outside all tags. Default answer.'),
      response_default: z
        .enum(['auto', 'final', 'continue'])
        .optional()
        .describe('Meaning of a response without final. Default auto.'),
      on_failed_final: z
        .enum(['continue', 'end'])
        .optional()
        .describe('After a final response whose actions failed. Default continue.'),
      act_in_reasoning: z.boolean().optional().describe('Whether actions in reasoning blocks run. Default false.'),
      tool_tokens: count
        .min(limits.promptToolLeastTokens)
        .max(limits.promptToolMostTokens)
        .optional()
        .describe(
          `Estimated tokens of tools in the prompt; beyond it, some are listed in short form. Default ${limits.promptToolTokens}.`,
        ),
    })
    .optional()
    .describe("How the model's text is parsed, see docs/protocol.md."),
  workspace: workspace
    .optional()
    .describe('`none`: its python, shell and docker actions see no files of the session. Default session.'),
  redact: redact.optional(),
  client_tools: z
    .enum(['allow', 'deny'])
    .optional()
    .describe('Whether a message may pass tools that the client executes. Default deny.'),
  loop: z
    .strictObject({
      mode: z
        .enum(['autonomous', 'supervised'])
        .optional()
        .describe('Supervised requires an approval for each unsafe action. Default autonomous.'),
      max_iterations: count.min(0).optional().describe('Default 10; 0 means limited by budgets only.'),
      iteration_cap: count.min(0).optional().describe('The same as max_iterations.'),
      max_parallel_actions: count.min(1).max(256).optional().describe('Maximum concurrent actions. Default 5.'),
      max_parallel_by_type: slotsByType
        .optional()
        .describe('Maximum concurrent actions by type, for example {llm: 2, python: 1}.'),
      allow_parallel_actions: z.boolean().optional().describe('False means one at a time. Default true.'),
      fail_fast: z.boolean().optional().describe('The first failure cancels all unfinished actions. Default false.'),
      stream_thoughts: z.boolean().optional().describe('Streams thoughts to clients. Default true.'),
      stream_action_results: z.boolean().optional().describe('Streams action results to clients. Default true.'),
    })
    .optional()
    .describe('The agent loop, see docs/scheduling.md.'),
  budgets: z
    .strictObject({
      seconds: duration.optional().describe('Wall time of a run. Default 3600.'),
      model_calls: count.min(1).optional().describe('Model calls of a run. Default 100.'),
      tokens: count.min(1).optional().describe('Tokens of a run. Default: no limit.'),
      cost: z
        .number()
        .positive()
        .optional()
        .describe('Cost of a run in US dollars, for models with known prices. Default: no limit.'),
      actions: count.min(1).max(limits.actionsPerRun).optional().describe('Actions of a run. Default 2000.'),
    })
    .optional()
    .describe('Limits of a run.'),
  memory: memory.optional().describe('How much of the conversation is sent to the model.'),
  policies: policies
    .optional()
    .describe('Rules that decide about actions; they also bind sub-agents, see docs/policies.md. Default: none.'),
  environment: z
    .strictObject({
      variables: z
        .record(z.string(), z.union([z.string(), z.number(), z.boolean()]))
        .optional()
        .describe('Values for ${NAME} in texts.'),
      secrets: z
        .array(secretName)
        .optional()
        .describe("Secrets that the agent's tools may use, TOOL_…. Default: those that the tools name."),
      runner: runnerNeeds.optional().describe('Requirements of python and shell actions for their runner.'),
    })
    .optional()
    .describe('Variables, secrets and runner requirements.'),
});

/** A collection. Its parts are loaded from their own documents; the monument is only listed. */
export const monumentSchema = z.looseObject(base);

export type ToolInput = z.infer<typeof toolSchema>;
export type AgentInput = z.infer<typeof agentSchema>;
export type MonumentInput = z.infer<typeof monumentSchema>;
