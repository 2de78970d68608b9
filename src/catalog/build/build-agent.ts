/** Builds an agent's definition from its manifest, with all defaults (M8). */
import { ACTION_TYPES } from '../../domain/action-types.ts';
import type { ActionType } from '../../domain/action.ts';
import { MEMORY_FEED } from '../../domain/facts.ts';
import { limits } from '../../domain/limits.ts';
import { DEFAULT_PROTOCOL } from '../../domain/manifests/agent.ts';
import type { AgentDefinition } from '../../domain/manifests/agent.ts';
import type { FeedDefinition } from '../../domain/manifests/feed.ts';
import type { ModelChoice, ModelPrice } from '../../domain/manifests/model.ts';
import { policiesOf } from './build-policies.ts';
import { toBase, toNeeds } from './build-base.ts';
import type { BuildContext } from './build-base.ts';
import { toPrompt } from './build-prompt.ts';
import { toRedact } from './build-redact.ts';
import { toFeed } from '../schema/feed.ts';
import type { FeedInput } from '../schema/feed.ts';
import type { FieldPath } from '../check/problem.ts';
import type { AgentInput } from '../schema/schema.ts';
import { toMs } from '../schema/units.ts';
import { toMemory } from './memory.ts';

export function toAgent(
  input: AgentInput,
  imports: AgentDefinition['imports'],
  context: BuildContext,
): AgentDefinition {
  const engine = input.cognitive_engine;
  const loop = input.loop ?? {};
  const protocol = input.protocol ?? {};
  const dialect = protocol.dialect ?? engine?.dialect ?? DEFAULT_PROTOCOL.dialect;
  const budgets = input.budgets ?? {};
  const feeds = toFeeds(input.context_feeds ?? [], context);
  return {
    kind: 'Agent',
    ...toBase(input, context.free),
    persona: toPersona(input, context),
    ...toPrompt(input, { dialect, bareText: protocol.bare_text ?? DEFAULT_PROTOCOL.bareText }, context),
    engine: {
      primary: toModelChoice(engine?.primary),
      fallbacks: [engine?.fallback ?? []].flat().map((choice) => toModelChoice(choice)),
      routing: (typeof engine?.router === 'string' ? engine.router : engine?.router?.policy) ?? 'failover',
      firstTokenMs: engine?.timeouts?.first_token === undefined ? null : toMs(engine.timeouts.first_token),
      betweenTokensMs: engine?.timeouts?.between_tokens === undefined ? null : toMs(engine.timeouts.between_tokens),
      parameters: engine?.parameters ?? {},
      prices: Object.fromEntries(Object.entries(engine?.prices ?? {}).map(([model, price]) => [model, toPrice(price)])),
      ...(engine?.vision === undefined ? {} : { vision: engine.vision }),
    },
    imports,
    ...toServers(input, context),
    capabilities: [...new Set(input.capabilities)],
    ...(input.environment?.runner === undefined ? {} : { runner: toNeeds(input.environment.runner) }),
    ...(input.workspace === 'none' ? { workspace: false } : {}),
    ...toRedact(input.redact, context),
    internalActions: {
      enabled: input.internal_actions?.enabled ?? true,
      allowed: input.internal_actions?.allowed_actions ?? null,
      blocked: input.internal_actions?.blocked_actions ?? [],
    },
    protocol: {
      form: protocol.form ?? DEFAULT_PROTOCOL.form,
      dialect,
      json: protocol.json ?? DEFAULT_PROTOCOL.json,
      bareText: protocol.bare_text ?? DEFAULT_PROTOCOL.bareText,
      responseDefault: protocol.response_default ?? DEFAULT_PROTOCOL.responseDefault,
      onFailedFinal: protocol.on_failed_final ?? DEFAULT_PROTOCOL.onFailedFinal,
      actInReasoning: protocol.act_in_reasoning ?? DEFAULT_PROTOCOL.actInReasoning,
      ...(protocol.tool_tokens === undefined ? {} : { toolTokens: protocol.tool_tokens }),
    },
    clientTools: input.client_tools ?? 'deny',
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
    feeds,
    memory: { ...toMemory(input, context), ...toFacts(input, feeds, context) },
    ...policiesOf(input, context),
    variables: Object.fromEntries(
      Object.entries(input.environment?.variables ?? {}).map(([name, value]) => [name, String(value)]),
    ),
    secrets: [...new Set(input.environment?.secrets)],
  };
}

/** The facts that an agent keeps about its users; their feed has a reserved id (C10). */
function toFacts(
  { memory }: AgentInput,
  feeds: readonly FeedDefinition[],
  { addIssue }: Pick<BuildContext, 'addIssue'>,
): Pick<AgentDefinition['memory'], 'facts'> {
  const facts = memory?.facts ?? false;
  if (facts === false) return {};
  const index = feeds.findIndex(({ id }) => id === MEMORY_FEED);
  if (index >= 0) addIssue(['context_feeds', index, 'id'], `"${MEMORY_FEED}" is the feed of memory.facts`);
  const { max = limits.facts, tokens = limits.factTokens } = facts === true ? {} : facts;
  return { facts: { max, maxTokens: tokens } };
}

function toServers(
  { mcp_servers: servers }: AgentInput,
  { addIssue }: Pick<BuildContext, 'addIssue'>,
): Pick<AgentDefinition, 'mcpServers'> {
  if (servers === undefined || servers.length === 0) return {};
  const seen = new Set<string>();
  for (const [index, { name }] of servers.entries()) {
    if (seen.has(name)) addIssue(['mcp_servers', index, 'name'], `another server is already called "${name}"`);
    seen.add(name);
  }
  return {
    mcpServers: servers.map(({ name, url, auth, tools, prefix, trust, approval, timeout }) => ({
      name,
      url,
      auth: auth ?? null,
      tools: tools ?? null,
      prefix: prefix ?? null,
      trust: trust ?? false,
      approval: approval ?? 'never',
      timeoutMs: timeout === undefined ? null : toMs(timeout),
    })),
  };
}

function toFeeds(written: readonly FeedInput[], context: BuildContext): FeedDefinition[] {
  const seen = new Set<string>();
  let periodic = 0;
  return written.flatMap((feed, index) => {
    const field = ['context_feeds', index];
    if (seen.has(feed.id)) context.addIssue([...field, 'id'], `another feed is already called "${feed.id}"`);
    seen.add(feed.id);
    if (feed.type === 'periodic') periodic += 1;
    if (feed.type === 'periodic' && periodic > limits.periodicFeeds && context.intervals !== null) {
      const message = `"${feed.id}" is periodic feed number ${periodic} (allowed for one agent: ${limits.periodicFeeds})`;
      context.addIssue([...field, 'type'], message);
    }
    return toFeed(feed, context.intervals?.feedMinMs ?? null, {
      addIssue: (path, message) => context.addIssue([...field, ...path], message),
      addWarning: (path, message) => context.warn([...field, ...path], message),
    });
  });
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

/** Text, `{file}`, or a list of these. */
type PersonaPart = string | { readonly file: string };

function toPersona(input: AgentInput, context: BuildContext): AgentDefinition['persona'] {
  const { persona } = input;
  if (typeof persona === 'string') return { agent: persona, user: '', examples: [] };
  const textOf = (written: PersonaPart | undefined, field: FieldPath): string => {
    if (written === undefined) return '';
    return typeof written === 'string' ? written : (context.readFile(written.file, [...field, 'file']) ?? '');
  };
  if (persona.agent === undefined && persona.file === undefined) {
    context.addIssue(['persona'], 'needs "agent": the text that describes the agent to the model');
  }
  const agent = persona.agent ?? (persona.file === undefined ? undefined : { file: persona.file });
  const field = persona.agent === undefined ? ['persona'] : ['persona', 'agent'];
  return {
    agent: Array.isArray(agent)
      ? ofParts(
          agent.map((part, index) => textOf(part, [...field, index])),
          input,
          context,
        )
      : textOf(agent, field),
    user: textOf(persona.user, ['persona', 'user']),
    examples: (persona.examples ?? []).map((example, index) => textOf(example, ['persona', 'examples', index])),
  };
}

/** Joins the parts; without any text, the description is the persona. */
function ofParts(parts: readonly string[], input: AgentInput, context: BuildContext): string {
  const texts = parts.map((part) => part.trim()).filter((part) => part !== '');
  if (texts.length > 0) return [...new Set(texts)].join('\n\n');
  const from = input.description === undefined ? 'summary' : 'description';
  context.warn(['persona'], `none of its parts has text, so the ${from} is the persona`);
  return input.description ?? input.summary;
}

type ChoiceInput = NonNullable<AgentInput['cognitive_engine']>['primary'];

function toModelChoice(choice: ChoiceInput): ModelChoice {
  return {
    provider: choice?.provider ?? null,
    model: choice?.model ?? null,
    endpoint: choice?.endpoint ?? null,
    keySecret: choice?.api_key_secret ?? null,
    ...(choice?.vision === undefined ? {} : { vision: choice.vision }),
  };
}
