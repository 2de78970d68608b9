/** Checks that the sources of an agent's feeds are imported, and switches off periodic ones that are unsafe to repeat (F1, S7, X4). */
import { isImported } from '../../domain/action-types.ts';
import { feedEndpoint } from '../../domain/feed-endpoint.ts';
import type { Effects } from '../../domain/action.ts';
import { actionParameter } from '../../domain/feed-action.ts';
import { isJsonObject } from '../../domain/json.ts';
import { limits } from '../../domain/limits.ts';
import type { FeedDefinition, FeedSource } from '../../domain/manifests/feed.ts';
import type { ResolvedAgent } from '../../domain/manifests/resolved.ts';
import type { Catalog } from '../catalog.ts';
import { nearestNames } from '../../domain/nearest.ts';
import { sessionVariableIn } from '../build/variables.ts';
import { inRequest } from './secrets.ts';
import type { FieldPath } from './problem.ts';

interface FeedIssues {
  /** The agent's feeds: some are switched off, or fetched less often. */
  readonly feeds: readonly FeedDefinition[];
  readonly errors: readonly { readonly path: FieldPath; readonly message: string }[];
  readonly warnings: readonly { readonly path: FieldPath; readonly message: string }[];
}

/** @param bundled bundled definitions that the agent may import */
export function checkFeeds(resolved: ResolvedAgent, bundled: Catalog | null): FeedIssues {
  const errors: { path: FieldPath; message: string }[] = [];
  const warnings: { path: FieldPath; message: string }[] = [];
  const feeds = resolved.agent.feeds.map((feed) => withPollingInterval(feed, resolved));
  for (const [index, feed] of feeds.entries()) {
    const { source, when, allowUnsafe, shared } = feed;
    const { type, name } = source;
    if (!isImported(type)) continue;
    const dependence = shared === true ? sessionDependence(source, resolved, bundled) : null;
    if (dependence !== null) {
      errors.push({ path: ['context_feeds', index, 'shared'], message: `is not allowed, because ${dependence}` });
    }
    const path = ['context_feeds', index, 'source', 'name'];
    if (type === 'tool' && implementationOf(name, resolved, bundled) === 'client') {
      errors.push({ path, message: `"${name}" is a client tool: a feed has no client that executes it` });
    }
    const imported = resolved.agent.imports[`${type}s`];
    if (!imported.includes(name)) {
      const near = nearestNames(name, imported);
      const hint = near.length > 0 ? `did you mean ${near[0]}?` : `it imports: ${imported.join(', ') || 'none'}`;
      warnings.push({
        path,
        message: `the agent does not import the ${type} "${name}", so the feed will have no value (${hint})`,
      });
    } else if (when === 'periodic' && allowUnsafe !== true && effectsOf(source, resolved, bundled) === 'unsafe') {
      const message = `the ${type} "${name}" has unsafe effects, and a periodic feed would repeat them, so the feed is switched off; correct its declared effects, or set allow_unsafe: true in the feed`;
      warnings.push({ path, message });
      // the text of a variable must not switch it on again
      const { enabledBy: _, ...rest } = feed;
      feeds[index] = { ...rest, enabled: false };
    }
    const ignored = type === 'tool' && source.action !== null ? issueOfAction(source, resolved, bundled) : null;
    if (ignored !== null) warnings.push({ path: ['context_feeds', index, 'source', 'action'], message: ignored });
  }
  return { feeds, errors, warnings };
}

function implementationOf(name: string, { tools }: ResolvedAgent, bundled: Catalog | null): string | null {
  return (tools.get(name) ?? bundled?.tool(name) ?? null)?.implementation.type ?? null;
}

/** The action of a tool is its parameter `action` or `operation`. */
function issueOfAction({ name, action }: FeedSource, { tools }: ResolvedAgent, bundled: Catalog | null): string | null {
  const tool = tools.get(name) ?? bundled?.tool(name) ?? null;
  if (tool === null) return null;
  return actionParameter(tool.parameters) === null
    ? `has no effect, because the tool "${name}" has no parameter "action" or "operation"; write params`
    : `"${action}", understood as its parameter ${actionParameter(tool.parameters)}`;
}

/** A tool that was written as a feed names the time between two fetches in its metadata. */
function withPollingInterval(feed: FeedDefinition, { tools }: ResolvedAgent): FeedDefinition {
  const { source, when, cacheTtlMs } = feed;
  const polled = source.type === 'tool' ? tools.get(source.name)?.metadata['feed'] : undefined;
  if (!isJsonObject(polled) || when !== 'on_demand' || cacheTtlMs > 0) return feed;
  const { interval } = polled;
  const seconds = typeof interval === 'number' && interval > 0 ? interval : limits.feedIntervalMs / 1_000;
  return { ...feed, cacheTtlMs: Math.round(seconds * 1_000) };
}

/** Why the value of the source differs between sessions, or null (F6). */
function sessionDependence(
  { type, name }: FeedSource,
  { tools, relics }: ResolvedAgent,
  bundled: Catalog | null,
): string | null {
  if (type === 'relic') {
    const scope = (relics.get(name) ?? bundled?.relic(name))?.scope;
    return scope === 'session' ? `the relic "${name}" has the scope session: each session has its own` : null;
  }
  const tool = type === 'tool' ? (tools.get(name) ?? bundled?.tool(name)) : null;
  if (tool == null) return null;
  const found: string[] = [];
  inRequest(tool, (text) => {
    const variable = sessionVariableIn(text);
    if (variable !== null) found.push(variable);
    return text;
  });
  return found.length === 0
    ? null
    : `the request of the tool "${name}" contains \${${found[0]}}, whose value differs between sessions`;
}

/** Null for a missing source, which is reported elsewhere. */
function effectsOf(source: FeedSource, { tools, relics }: ResolvedAgent, bundled: Catalog | null): Effects | null {
  const { type, name, action } = source;
  if (type === 'tool') return (tools.get(name) ?? bundled?.tool(name))?.effects ?? null;
  if (type !== 'relic') return 'unsafe';
  const relic = relics.get(name) ?? bundled?.relic(name) ?? null;
  const endpoint = action ?? (relic === null ? null : feedEndpoint(relic, source.params)) ?? '';
  const endpoints = relic?.endpoints ?? {};
  return Object.hasOwn(endpoints, endpoint) ? (endpoints[endpoint]?.effects ?? null) : null;
}
