/**
 * Fetches the values of feeds (F1, F5, F6): from the session itself, with the executors that also run actions, or from the
 * values that sessions share.
 */
import { withFeedEndpoint } from '../../domain/feed-endpoint.ts';
import type { Json, JsonObject } from '../../domain/json.ts';
import { limits } from '../../domain/limits.ts';
import type { FeedDefinition } from '../../domain/manifests/feed.ts';
import type { ResolvedAgent } from '../../domain/manifests/resolved.ts';
import type { ToolDefinition } from '../../domain/manifests/tool.ts';
import type { SharedFeedRequest } from '../../domain/ports/shared-values.ts';
import { sessionKey } from '../../domain/session.ts';
import type { WorkMeter } from '../../domain/work.ts';
import type { ActionContext } from '../../executors/executor.ts';
import { validateParameters } from '../../executors/validate-parameters.ts';
import { callModel } from '../generation/call-model.ts';
import { policyOf, scopeIn } from '../actions/action-policy.ts';
import { completeCall } from '../actions/calls.ts';
import { parseCall } from '../policy/prepare-call.ts';
import { actionOf, withAction } from './feed-call.ts';
import { policyRefusal } from './feed-policy.ts';
import type { FeedPorts } from './feed-ports.ts';
import type { FeedIssue } from './feed-store.ts';
import { charsOf, freshMs, isMemoryFeed } from './feeds.ts';
import type { Fetched, FetchFeed } from './feeds.ts';
import { fetchFacts } from './memory-feed.ts';

/** One call of a source with its definitions. */
export interface SourceCall extends Pick<SharedFeedRequest, 'source' | 'tool' | 'relic'> {
  /** The feed's id. */
  readonly id: string;
  /** The runtime key. */
  readonly key: string;
}

/**
 * Why an agent may not use a feed's source, or null (X4). A source that needs approval is not allowed; a periodic
 * source with unsafe effects only with `allow_unsafe` (S7).
 */
export function feedRefusal(feed: FeedDefinition, resolved: ResolvedAgent): string | null {
  if (feed.source.type === 'internal') return null;
  const { refusal, needsApproval, effects } = policyOf(actionOf(feed), resolved, new Map<string, number>());
  if (refusal !== null) return refusal.message;
  if (feed.when === 'periodic' && effects === 'unsafe' && feed.allowUnsafe !== true) {
    return `"${feed.source.name}" has unsafe effects, and a periodic feed would repeat them (allow_unsafe: true allows it)`;
  }
  return needsApproval ? `"${feed.source.name}" needs an approval and cannot be a feed` : null;
}

/**
 * The issue with a feed that a model adds: its source, the relic's endpoint, or the parameters; null if there is none.
 */
export async function feedIssue(
  feed: FeedDefinition,
  resolved: ResolvedAgent,
  pacer: FeedPorts['pacer'],
  signal: AbortSignal,
): Promise<FeedIssue | null> {
  const refusal = feedRefusal(feed, resolved);
  if (refusal !== null) return { code: 'forbidden', message: refusal };
  const { type, name, action } = feed.source;
  if (type === 'relic' && action === null) {
    return { code: 'invalid_request', message: `source.action: the relic "${name}" has no endpoint` };
  }
  const schema =
    type === 'tool'
      ? resolved.tools.get(name)?.parameters
      : type === 'relic'
        ? resolved.relics.get(name)?.endpoints[action ?? '']?.parameters
        : undefined;
  if (schema === undefined) return null;
  const tool = type === 'tool' ? (resolved.tools.get(name) ?? null) : null;
  const call = actionOf({ id: feed.id, source: withAction(feed.source, tool) });
  const { parameters: given } = completeCall(call, call, resolved);
  const message = await pacer.run(limits.schemaSteps, (meter) => validateParameters(schema, given, meter), signal);
  const target = type === 'relic' ? `${name}.${action ?? ''}` : name;
  return message === null
    ? null
    : { code: 'invalid_request', message: `source.params do not fit the ${type} "${target}": ${message}` };
}

/** Fetches feeds for a run. @param run its current state, and the receiver of the model usage of its feeds */
export function feedFetcher(
  context: Omit<FeedPorts, 'moment' | 'used'>,
  run: { readonly moment: () => NonNullable<FeedPorts['moment']>; readonly used: FeedPorts['used'] },
): FetchFeed {
  return async (feed, signal) => await fetchFeed(feed, { ...context, moment: run.moment(), used: run.used }, signal);
}

/** @throws Error that explains why there is no value */
export async function fetchFeed(written: FeedDefinition, ports: FeedPorts, signal: AbortSignal): Promise<Fetched> {
  // Earlier versions stored feeds of the model without an endpoint.
  const named = withFeedEndpoint(written, ports.resolved.relics);
  if (isMemoryFeed(named)) return await fetchFacts(named, ports);
  if (named.source.type === 'internal') {
    return { value: internalValue(named.source.name, named.source.params, ports) };
  }
  const feed = await preparedFeed(named, ports, signal);
  const { source } = feed;
  const refusal = feedRefusal(feed, ports.resolved) ?? (await policyRefusal(feed, ports, signal));
  if (refusal !== null) throw new Error(refusal);
  const { resolved, record, sharedFeeds, executors } = ports;
  const tool = source.type === 'tool' ? (resolved.tools.get(source.name) ?? null) : null;
  const relic = source.type === 'relic' ? (resolved.relics.get(source.name) ?? null) : null;
  if (feed.shared === true && sharedFeeds != null && !mayBeRedirected(feed, ports)) {
    const { value, ...shared } = await sharedFeeds.read({
      owner: record.owner,
      source,
      tool,
      relic,
      maxChars: charsOf(feed),
      maxAgeMs: freshMs(feed),
      // Between runs, nothing waits for the value.
      waitMs: ports.moment === null ? limits.feedFetchMs : limits.sharedFeedWaitMs,
    });
    return { value, shared };
  }
  // Each fetch is a separate execution.
  const call = { id: feed.id, source, tool, relic, key: `${sessionKey(record)}/feed/${feed.id}/${ports.clock.now()}` };
  return { value: await callSource(call, executors, contextOf(feed, ports, signal)) };
}

/** The feed with the parameters that are judged and that its source gets (C9). @throws Error if there are none */
async function preparedFeed(feed: FeedDefinition, ports: FeedPorts, signal: AbortSignal): Promise<FeedDefinition> {
  const { source } = feed;
  const { resolved, pacer } = ports;
  const tool = source.type === 'tool' ? (resolved.tools.get(source.name) ?? null) : null;
  const action = actionOf({ id: feed.id, source: withAction(source, tool) });
  let { parameters: params } = completeCall(action, action, resolved);
  if (tool?.implementation.type === 'code') {
    await requireValid(tool, params, pacer, signal);
    const parsed = await parseCall({ name: tool.name, parameters: params }, ports, signal);
    if ('error' in parsed) throw new Error(`${parsed.error.code}: ${parsed.error.message}`);
    params = parsed.parameters;
  }
  return { ...feed, source: { ...source, params } };
}

/** @throws Error that says what is wrong */
async function requireValid(
  { parameters: schema }: ToolDefinition,
  parameters: JsonObject,
  pacer: FeedPorts['pacer'],
  signal: AbortSignal,
): Promise<void> {
  const check = (meter: WorkMeter): string | null => validateParameters(schema, parameters, meter);
  const issue = await pacer.run(limits.schemaSteps, check, signal);
  if (issue !== null) throw new Error(issue);
}

/** Whether policies decide about the redirects of the fetch, which they do only in the session itself (C9). */
function mayBeRedirected({ source }: FeedDefinition, { policies = [] }: FeedPorts): boolean {
  return policies.length > 0 && typeof source.params['url'] === 'string';
}

function contextOf(feed: FeedDefinition, ports: FeedPorts, signal: AbortSignal): ActionContext {
  const { resolved, record } = ports;
  const redirectRefusal = async (url: string): Promise<string | null> => await policyRefusal(feed, ports, signal, url);
  return {
    signal,
    clock: ports.clock,
    pacer: ports.pacer,
    session: sessionKey(record),
    owner: record.owner,
    progress: () => undefined,
    variables: ports.variables,
    internalActions: resolved.agent.internalActions,
    runnerNeeds: resolved.agent.runner ?? {},
    runner: ports.runner,
    edgeRelics: ports.edgeRelics ?? null,
    codeTools: ports.codeTools ?? null,
    mcp: ports.mcp ?? null,
    children: ports.children,
    scopeOf: (type, name) => scopeIn(resolved, type, name),
    fetch: async (url, init) =>
      await ports.fetch(url, url === feed.source.params['url'] ? { ...init, redirectRefusal } : init),
    readHtml: ports.readHtml,
    feeds: null,
    callModel: (request) => callModel(ports, request, signal, ports.used),
  };
}

/**
 * Calls a source once, with parameters that its definition accepts. Those of a code tool are parsed.
 *
 * @throws Error that explains why there is no value
 */
export async function callSource(
  { id, source, tool, relic, key }: SourceCall,
  executors: FeedPorts['executors'],
  context: ActionContext,
): Promise<Json> {
  const action = actionOf({ id, source: withAction(source, tool) });
  const isCode = tool?.implementation.type === 'code';
  if (tool !== null && !isCode) await requireValid(tool, action.parameters, context.pacer, context.signal);
  const outcome = await executors[action.type].execute(
    {
      action,
      runtimeKey: key,
      attempt: 1,
      parameters: action.parameters,
      ...(isCode ? { parsed: true as const } : {}),
      inputs: {},
      tool,
      relic,
      timeoutMs: limits.feedFetchMs,
      budget: null,
    },
    context,
  );
  if (outcome.ok) return outcome.output;
  throw new Error(`${outcome.error.code}: ${outcome.error.message}`);
}

/** Values of internal sources (F5). */
function internalValue(name: string, params: JsonObject, ports: FeedPorts): Json {
  const { clock, record, resolved, journal, moment } = ports;
  switch (name) {
    case 'system_clock':
      return clockValue(clock.now(), params);
    case 'random': {
      const { min = 0, max = 1, integer } = params as { min?: number; max?: number; integer?: boolean };
      const value = Number(min) + ports.random() * (Number(max) - Number(min));
      return integer === true ? Math.floor(value) : value;
    }
    case 'session_info':
      return {
        session_id: record.session_id,
        user_id: record.user_id,
        kind: record.kind,
        created_at: new Date(record.created_at).toISOString(),
        runs: journal.runs.list().length,
      };
    case 'agent_metadata': {
      const { name: agent, version, summary, tags } = resolved.agent;
      return { name: agent, version, summary, tags: [...tags] };
    }
    case 'iteration':
      return moment?.iteration ?? null;
    case 'usage':
      return moment?.usage ?? null;
    case 'recent_actions':
      return journal.history
        .recentActions(limits.recentActions, ports.runNumber ?? journal.runs.head)
        .map(({ type, action_id: id, action_name: action, timestamp }) => ({
          id: id ?? null,
          name: action ?? null,
          status: type.slice('action_'.length),
          at: new Date(timestamp).toISOString(),
        }));
    case 'variables':
      return Object.fromEntries(ports.variables.entries());
    default:
      throw new Error(`"${name}" is not an internal source`);
  }
}

/** `format`: ISO8601 (default), unix (seconds) or human; `timezone`: IANA, default UTC. */
function clockValue(now: number, { format = 'ISO8601', timezone = 'UTC' }: JsonObject): Json {
  if (format === 'unix') return Math.floor(now / 1_000);
  const timeZone = String(timezone);
  if (format === 'human') {
    return new Intl.DateTimeFormat('en-GB', { timeZone, dateStyle: 'full', timeStyle: 'long' }).format(now);
  }
  const parts = new Intl.DateTimeFormat('en-US', {
    timeZone,
    hourCycle: 'h23',
    year: 'numeric',
    month: '2-digit',
    day: '2-digit',
    hour: '2-digit',
    minute: '2-digit',
    second: '2-digit',
    timeZoneName: 'longOffset',
  }).formatToParts(now);
  const part = (type: Intl.DateTimeFormatPartTypes): string => parts.find((one) => one.type === type)?.value ?? '';
  const offset = part('timeZoneName').replace('GMT', '') || 'Z';
  return `${part('year')}-${part('month')}-${part('day')}T${part('hour')}:${part('minute')}:${part('second')}${offset}`;
}
