/** Derives the scheduler's policy for an action from the agent and its catalogue (X4, S7, S8). */
import { actionSpec, isCapability, isImported } from '../../domain/action-types.ts';
import type { ImportedType } from '../../domain/action-types.ts';
import type { ActionDeclaration, ActionPolicy, ActionType, Effects, RetryPolicy } from '../../domain/action.ts';
import { needsApproval } from '../../domain/approval.ts';
import { limits } from '../../domain/limits.ts';
import type { RelicDefinition, RelicEndpoint } from '../../domain/manifests/relic.ts';
import { limitsTurns } from '../../domain/manifests/agent.ts';
import type { ResolvedAgent } from '../../domain/manifests/resolved.ts';
import type { ToolDefinition } from '../../domain/manifests/tool.ts';
import { nearestNames } from '../../domain/nearest.ts';
import { internalPolicy } from '../../executors/internal.ts';
import { relicTarget } from '../../executors/relic.ts';
import { hasShortTools } from '../../protocol/prompt/shown-tools.ts';
import type { Estimates } from './learned-durations.ts';

type Refusal = NonNullable<ActionPolicy['refusal']>;

/** The members of an action that its policy depends on. */
type PolicyAction = Pick<
  ActionDeclaration,
  'type' | 'name' | 'parameters' | 'timeoutMs' | 'cacheTtlMs' | 'idempotencyKey'
>;

/** @param resolved null means that nothing is looked up and nothing is rejected */
export function policyOf(action: PolicyAction, resolved: ResolvedAgent | null, learned: Estimates): ActionPolicy {
  const tool = resolved === null ? null : toolOf(action, resolved);
  const endpoint = action.type === 'relic' ? endpointOf(action, resolved) : null;
  const effects = endpoint?.effects ?? effectsOf(action.type, tool);
  const byClient = tool?.implementation.type === 'client';
  const statedMs = tool?.timeoutMs ?? endpoint?.timeoutMs ?? actionSpec(action.type).timeoutMs;
  const timeoutMs = byClient
    ? Math.min(tool.timeoutMs ?? limits.clientToolMs, limits.clientToolMostMs)
    : Math.min(statedMs, limits.maxActionTimeoutMs);
  return {
    effects,
    timeoutMs,
    retry: retryOf(effects, tool),
    concurrency: tool?.concurrency ?? null,
    dispatch: tool?.dispatch ?? 'eager',
    needsApproval: resolved === null ? tool?.approval === 'always' : needsApproval(resolved.agent, tool, effects),
    reuse: action.idempotencyKey !== null || cacheTtlOf(action, effects, tool) !== null,
    estimateMs: learned.get(targetOf(action)) ?? action.timeoutMs ?? timeoutMs,
    ...(byClient ? { byClient: true as const } : {}),
    ...providedFeed(action, resolved),
    refusal: resolved === null ? null : refusalOf(action, resolved),
  };
}

/**
 * The feed that an internal action adds, or switches on. It depends on the manifest only, never on the session's feeds, so
 * that a replay gives the same. A feed that the manifest has and enables does not need the action.
 */
function providedFeed(
  { type, name, parameters }: Pick<ActionDeclaration, 'type' | 'name' | 'parameters'>,
  resolved: ResolvedAgent | null,
): Pick<ActionPolicy, 'provides'> {
  if (type !== 'internal' || (name !== 'add_context_feed' && name !== 'update_context_feed')) return {};
  const { id } = parameters;
  if (typeof id !== 'string') return {};
  const own = resolved?.agent.feeds.find((feed) => feed.id === id);
  return own?.enabled === true ? {} : { provides: id };
}

/** The tool that the action calls; null for other types and for a tool that the agent does not have. */
export function toolOf(
  action: Pick<ActionDeclaration, 'type' | 'name'>,
  resolved: Pick<ResolvedAgent, 'tools'>,
): ToolDefinition | null {
  return action.type === 'tool' ? (resolved.tools.get(action.name) ?? null) : null;
}

/** The scope of an imported agent or workflow that only its importers see (M2). */
export function scopeIn(
  { agents, workflows }: Pick<ResolvedAgent, 'agents' | 'workflows'>,
  type: 'agent' | 'workflow',
  name: string,
): string | undefined {
  return (type === 'agent' ? agents : workflows).get(name)?.scope;
}

/** The relic that the action calls; null for other types and for a relic that the agent does not have. */
export function relicOf(
  action: Pick<ActionDeclaration, 'type' | 'name'>,
  resolved: Pick<ResolvedAgent, 'relics'>,
): RelicDefinition | null {
  return action.type === 'relic'
    ? (resolved.relics.get(relicTarget({ name: action.name, parameters: {} }, null).relic) ?? null)
    : null;
}

/** The endpoint that an action calls; null if there is no such relic or endpoint. */
function endpointOf(
  action: Pick<ActionDeclaration, 'name' | 'parameters'>,
  resolved: ResolvedAgent | null,
): RelicEndpoint | null {
  const { relic, endpoint } = relicTarget(action, resolved?.relics ?? null);
  const endpoints = resolved?.relics.get(relic)?.endpoints ?? {};
  return endpoint !== null && Object.hasOwn(endpoints, endpoint) ? (endpoints[endpoint] ?? null) : null;
}

/** How an action's target was understood, if it is not in its own form; null otherwise (P6). */
export function targetNote(
  action: Pick<ActionDeclaration, 'id' | 'type' | 'name' | 'parameters'>,
  resolved: ResolvedAgent,
): string | null {
  if (action.type !== 'relic') return null;
  const { note } = relicTarget(action, resolved.relics);
  return note === null ? null : `relic "${action.id}": ${note}`;
}

/** `type/name`: the key for learned durations and concurrency. */
export function targetOf(action: Pick<ActionDeclaration, 'type' | 'name'>): string {
  return `${action.type}/${action.name}`;
}

/** The effects in a tool's manifest (S7), otherwise the type's default. */
export function effectsOf(type: ActionType, tool: ToolDefinition | null): Effects {
  return tool?.effects ?? actionSpec(type).effects;
}

/** Maximum age of an equal action's result that may be reused; null means never (P6). Pure targets only. */
export function cacheTtlOf(
  action: Pick<ActionDeclaration, 'cacheTtlMs'>,
  effects: Effects,
  tool: ToolDefinition | null,
): number | null {
  const ttlMs = action.cacheTtlMs ?? tool?.cacheTtlMs ?? null;
  return effects === 'pure' && ttlMs !== null && ttlMs > 0 ? ttlMs : null;
}

function retryOf(effects: Effects, tool: ToolDefinition | null): RetryPolicy {
  if (tool?.retry != null) return tool.retry;
  return {
    maxAttempts: effects === 'unsafe' ? 1 : limits.retryAttempts,
    backoff: 'exponential',
    delayMs: limits.retryDelayMs,
    maxDelayMs: limits.retryMaxDelayMs,
  };
}

/** Default deny: an action must not run unless the manifest imports or allows its target (X4). */
function refusalOf(
  action: Pick<ActionDeclaration, 'type' | 'name' | 'parameters'>,
  resolved: ResolvedAgent,
): Refusal | null {
  const { agent } = resolved;
  const { type } = action;
  if (isImported(type)) return notImported(action, type, resolved);
  if (isCapability(type)) {
    if (agent.capabilities.includes(type)) return null;
    return {
      code: 'not_allowed',
      message: `Agent "${agent.name}" is not allowed to run ${type} (its capabilities: ${listed(agent.capabilities)})`,
    };
  }
  if (actionSpec(type).allowedBy === 'always') return null;
  // A disallowed internal action is not rejected here: it fails in its executor.
  const why = internalPolicy(agent.internalActions, action.name, {
    skills: (resolved.skills?.size ?? 0) > 0,
    short_tools: hasShortTools(resolved),
    facts: agent.memory.facts !== undefined,
    withoutFacts: resolved.withoutFacts ?? null,
    earlier_turns: limitsTurns(agent.memory),
  });
  return why?.code === 'unknown_name' ? { code: 'unknown_name', message: why.message } : null;
}

function notImported(
  action: Pick<ActionDeclaration, 'name' | 'parameters'>,
  type: ImportedType,
  resolved: ResolvedAgent,
): Refusal | null {
  const { agent, tools, knownNames } = resolved;
  const imported = type === 'tool' ? [...tools.keys()] : agent.imports[`${type}s`];
  const name = type === 'relic' ? relicTarget(action, null).relic : action.name;
  if (imported.includes(name)) return type === 'relic' ? unknownEndpoint(action, resolved) : null;
  return unknownName(type, name, agent.name, imported, knownNames[type]);
}

/** A relic is imported with its endpoints; an unknown endpoint is treated as an unknown name. */
function unknownEndpoint(
  action: Pick<ActionDeclaration, 'name' | 'parameters'>,
  resolved: ResolvedAgent,
): Refusal | null {
  const { relic: name, endpoint } = relicTarget(action, resolved.relics);
  const relic = resolved.relics.get(name);
  if (relic === undefined || endpoint === null || Object.hasOwn(relic.endpoints, endpoint)) return null;
  const known = Object.keys(relic.endpoints);
  const near = nearestNames(endpoint, known);
  const hint = near.length > 0 ? `did you mean ${near.map((n) => `"${n}"`).join(' or ')}?` : `it has: ${listed(known)}`;
  const asked = endpoint.slice(0, limits.excerptChars);
  return { code: 'unknown_name', message: `The relic "${name}" has no endpoint "${asked}" (${hint})` };
}

function unknownName(
  kind: ImportedType,
  name: string,
  agentName: string,
  imported: readonly string[],
  known: readonly string[],
): Refusal {
  if (known.includes(name)) {
    return {
      code: 'unknown_name',
      message: `Agent "${agentName}" does not import the ${kind} "${name}" (it may use: ${listed(imported)})`,
    };
  }
  const near = nearestNames(name, imported);
  const hint =
    near.length > 0 ? `did you mean ${near.map((n) => `"${n}"`).join(' or ')}?` : `known: ${listed(imported)}`;
  return { code: 'unknown_name', message: `No ${kind} is called "${name.slice(0, limits.excerptChars)}" (${hint})` };
}

function listed(names: readonly string[]): string {
  return names.length === 0 ? 'none' : names.slice(0, 20).join(', ');
}
