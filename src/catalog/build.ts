/** From what the author wrote, already checked, to the domain's definitions with every default filled in (M3, M8). */
import { ACTION_TYPES } from '../domain/action.ts';
import type { ActionType, RetryPolicy } from '../domain/action.ts';
import type { Json, JsonObject } from '../domain/json.ts';
import { limits } from '../domain/limits.ts';
import { DEFAULT_PROTOCOL } from '../domain/manifest.ts';
import type {
  AgentDefinition,
  ManifestBase,
  ModelChoice,
  ModelPrice,
  ScriptRuntime,
  ToolDefinition,
  ToolImplementation,
} from '../domain/manifest.ts';
import type { KeptManifest } from './catalog.ts';
import { toParameterSchema } from './parameters.ts';
import type { FieldPath } from './problem.ts';
import type { AgentInput, KeptInput, ToolInput } from './schema.ts';

/** What building a definition may ask of the loader. */
export interface BuildContext {
  complain(path: FieldPath, message: string): void;
  /** The text of a file named in a manifest, by its path relative to it; complains and gives null when there is none. */
  readFile(path: string, field: FieldPath): string | null;
  /** Unknown fields by path, kept under `metadata`. */
  readonly unknown: JsonObject;
}

type BaseInput = Pick<
  ToolInput,
  'name' | 'version' | 'summary' | 'description' | 'author' | 'state' | 'tags' | 'metadata'
>;

function toBase(input: BaseInput, unknown: JsonObject): ManifestBase {
  return {
    name: input.name,
    version: input.version,
    summary: input.summary,
    description: input.description ?? '',
    tags: input.tags ?? [],
    metadata: {
      ...input.metadata,
      ...(input.author === undefined ? {} : { author: input.author }),
      ...(input.state === undefined ? {} : { state: input.state }),
      ...unknown,
    },
  };
}

export function toTool(input: ToolInput, context: BuildContext): ToolDefinition {
  if (input.parameters !== undefined && input.parameters_schema !== undefined) {
    context.complain(['parameters_schema'], 'stands beside "parameters"; write one of the two');
  }
  const field = input.parameters === undefined ? 'parameters_schema' : 'parameters';
  const timeout = input.timeout ?? input.implementation.resources?.timeout;
  const timeoutField = input.timeout === undefined ? ['implementation', 'resources', 'timeout'] : ['timeout'];
  return {
    kind: 'Tool',
    ...toBase(input, context.unknown),
    implementation: toImplementation(input, context),
    parameters: toParameterSchema(input.parameters ?? input.parameters_schema ?? null, (fault) =>
      context.complain([field, ...fault.path], fault.message),
    ),
    returns: input.returns ?? null,
    effects: input.effects ?? 'unsafe',
    approval: input.approval ?? 'never',
    dispatch: input.dispatch ?? 'eager',
    concurrency: input.concurrency ?? null,
    timeoutMs: timeout === undefined ? null : toTimeoutMs(timeout, timeoutField, context),
    retry: input.retry === undefined ? null : toRetry(input.retry),
    cacheTtlMs: input.cache_ttl === undefined ? null : toMs(input.cache_ttl),
    examples: input.examples ?? [],
  };
}

function toImplementation(input: ToolInput, context: BuildContext): ToolImplementation {
  const written = input.implementation;
  const memoryMb = written.resources?.memory === undefined ? null : toMebibytes(written.resources.memory);
  switch (written.type) {
    case 'builtin':
      return { type: 'builtin', entrypoint: written.entrypoint };
    case 'http':
      return { type: 'http', url: written.url, method: written.method ?? 'GET', headers: written.headers ?? {} };
    case 'container':
      return { type: 'container', image: written.image, memoryMb };
    case 'mcp':
      return { type: 'mcp', url: written.url };
    case 'script':
      return { type: 'script', ...toScript(written, context), memoryMb };
  }
}

const RUNTIME_BY_SUFFIX: readonly (readonly [RegExp, ScriptRuntime])[] = [
  [/\.py$/, 'python3'],
  [/\.[cm]?[jt]s$/, 'node'],
  [/\.(sh|bash)$/, 'shell'],
];

function toScript(
  written: Extract<ToolInput['implementation'], { type: 'script' }>,
  context: BuildContext,
): { readonly runtime: ScriptRuntime; readonly source: string } {
  const { script, entrypoint } = written;
  if ((script === undefined) === (entrypoint === undefined)) {
    context.complain(['implementation'], 'needs exactly one of "entrypoint" (a path) and "script" (the source itself)');
  }
  const guessed = RUNTIME_BY_SUFFIX.find(([suffix]) => suffix.test(entrypoint ?? ''))?.[1];
  const runtime = written.runtime === 'python' ? 'python3' : (written.runtime ?? guessed);
  if (runtime === undefined) {
    context.complain(['implementation', 'runtime'], 'is missing (allowed: python3, node, shell)');
  }
  const source =
    script ?? (entrypoint === undefined ? null : context.readFile(entrypoint, ['implementation', 'entrypoint']));
  return { runtime: runtime ?? 'python3', source: source ?? '' };
}

export function toAgent(
  input: AgentInput,
  imports: AgentDefinition['imports'],
  context: BuildContext,
): AgentDefinition {
  const engine = input.cognitive_engine;
  const loop = input.loop ?? {};
  const protocol = input.protocol ?? {};
  const budgets = input.budgets ?? {};
  return {
    kind: 'Agent',
    ...toBase(input, context.unknown),
    persona: toPersona(input.persona, context),
    engine: {
      primary: toModelChoice(engine?.primary),
      fallbacks: [engine?.fallback ?? []].flat().map((choice) => toModelChoice(choice)),
      routing: (typeof engine?.router === 'string' ? engine.router : engine?.router?.policy) ?? 'failover',
      firstTokenMs: engine?.timeouts?.first_token === undefined ? null : toMs(engine.timeouts.first_token),
      betweenTokensMs: engine?.timeouts?.between_tokens === undefined ? null : toMs(engine.timeouts.between_tokens),
      parameters: engine?.parameters ?? {},
      prices: Object.fromEntries(Object.entries(engine?.prices ?? {}).map(([model, price]) => [model, toPrice(price)])),
    },
    imports,
    capabilities: [...new Set(input.capabilities)],
    internalActions: {
      enabled: input.internal_actions?.enabled ?? true,
      allowed: input.internal_actions?.allowed_actions ?? null,
      blocked: input.internal_actions?.blocked_actions ?? [],
    },
    protocol: {
      form: protocol.form ?? DEFAULT_PROTOCOL.form,
      dialect: protocol.dialect ?? engine?.dialect ?? DEFAULT_PROTOCOL.dialect,
      json: protocol.json ?? DEFAULT_PROTOCOL.json,
      bareText: protocol.bare_text ?? DEFAULT_PROTOCOL.bareText,
      responseDefault: protocol.response_default ?? DEFAULT_PROTOCOL.responseDefault,
      onFailedFinal: protocol.on_failed_final ?? DEFAULT_PROTOCOL.onFailedFinal,
      actInReasoning: protocol.act_in_reasoning ?? DEFAULT_PROTOCOL.actInReasoning,
    },
    loop: {
      mode: loop.mode ?? 'autonomous',
      maxIterations: loop.max_iterations ?? loop.iteration_cap ?? limits.maxIterations,
      maxParallelActions:
        loop.allow_parallel_actions === false ? 1 : (loop.max_parallel_actions ?? limits.maxParallelActions),
      maxParallelByType: toSlots(loop.max_parallel_by_type),
      failFast: loop.fail_fast ?? false,
      streamThoughts: loop.stream_thoughts ?? true,
      streamActionResults: loop.stream_action_results ?? true,
    },
    budgets: {
      seconds: budgets.seconds === undefined ? limits.runSeconds : toMs(budgets.seconds) / 1_000,
      modelCalls: budgets.model_calls ?? limits.modelCallsPerRun,
      tokens: budgets.tokens ?? null,
      cost: budgets.cost ?? null,
      actions: budgets.actions ?? limits.actionsPerRun,
    },
    variables: Object.fromEntries(
      Object.entries(input.environment?.variables ?? {}).map(([name, value]) => [name, String(value)]),
    ),
  };
}

type PriceInput = NonNullable<NonNullable<AgentInput['cognitive_engine']>['prices']>[string];

function toPrice({ input, output, cached_input: cachedInput = input }: PriceInput): ModelPrice {
  return { input, output, cachedInput };
}

function toSlots(
  written: NonNullable<AgentInput['loop']>['max_parallel_by_type'],
): AgentDefinition['loop']['maxParallelByType'] {
  const slots: Partial<Record<ActionType, number>> = {};
  for (const type of ACTION_TYPES) {
    const most = written?.[type];
    if (most !== undefined) slots[type] = most;
  }
  return slots;
}

type PersonaInput = AgentInput['persona'];

function toPersona(persona: PersonaInput, context: BuildContext): AgentDefinition['persona'] {
  if (typeof persona === 'string') return { agent: persona, user: '', examples: [] };
  const textOf = (written: string | { file: string } | undefined, field: FieldPath): string => {
    if (written === undefined) return '';
    return typeof written === 'string' ? written : (context.readFile(written.file, [...field, 'file']) ?? '');
  };
  if (persona.agent === undefined && persona.file === undefined) {
    context.complain(['persona'], 'needs "agent": the text that tells the model who it is');
  }
  const agent = persona.agent ?? (persona.file === undefined ? undefined : { file: persona.file });
  return {
    agent: textOf(agent, persona.agent === undefined ? ['persona'] : ['persona', 'agent']),
    user: textOf(persona.user, ['persona', 'user']),
    examples: (persona.examples ?? []).map((example, index) => textOf(example, ['persona', 'examples', index])),
  };
}

type ChoiceInput = NonNullable<AgentInput['cognitive_engine']>['primary'];

function toModelChoice(choice: ChoiceInput): ModelChoice {
  return {
    provider: choice?.provider ?? null,
    model: choice?.model ?? null,
    endpoint: choice?.endpoint ?? null,
    keySecret: choice?.api_key_secret ?? null,
  };
}

const BASE_FIELDS = new Set([
  'kind',
  'version',
  'name',
  'summary',
  'description',
  'author',
  'state',
  'tags',
  'metadata',
]);

export function toKept(input: KeptInput, kind: KeptManifest['kind']): KeptManifest {
  const body: JsonObject = {};
  for (const [field, value] of Object.entries(input)) {
    if (!BASE_FIELDS.has(field)) body[field] = value as Json;
  }
  return { kind, ...toBase(input, {}), body };
}

function toRetry(retry: NonNullable<ToolInput['retry']>): RetryPolicy {
  const policy = typeof retry === 'number' ? { max_attempts: retry } : retry;
  return {
    maxAttempts: policy.max_attempts ?? limits.retryAttempts,
    backoff: policy.backoff ?? 'exponential',
    delayMs: policy.delay === undefined ? limits.retryDelayMs : toMs(policy.delay),
    maxDelayMs: policy.max_delay === undefined ? limits.retryMaxDelayMs : toMs(policy.max_delay),
  };
}

function toTimeoutMs(timeout: number | string, field: FieldPath, context: BuildContext): number {
  const ms = toMs(timeout);
  if (ms < 1 || ms > limits.maxActionTimeoutMs) {
    context.complain(field, `must be between 1 ms and ${limits.maxActionTimeoutMs / 1_000} s, found ${timeout}`);
  }
  return ms;
}

const UNIT_MS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 };

/** Seconds, or text with a unit, as whole milliseconds. */
function toMs(duration: number | string): number {
  if (typeof duration === 'number') return Math.round(duration * 1_000);
  const [, amount, unit] = /([\d.]+)\s*(ms|s|m|h)/.exec(duration) ?? [];
  return Math.round(Number(amount) * (UNIT_MS[unit ?? 's'] ?? 1_000));
}

const UNIT_MB: Readonly<Record<string, number>> = { k: 1 / 1_024, m: 1, g: 1_024 };

/** MiB, or text with a unit, as whole MiB, at least 1. */
function toMebibytes(memory: number | string): number {
  if (typeof memory === 'number') return Math.max(1, Math.round(memory));
  const [, amount, unit] = /([\d.]+)\s*([kmg])/i.exec(memory) ?? [];
  return Math.max(1, Math.round(Number(amount) * (UNIT_MB[unit?.toLowerCase() ?? 'm'] ?? 1)));
}
