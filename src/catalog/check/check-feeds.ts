/** Checks that the sources of an agent's feeds are imported, and that periodic ones are safe to repeat (F1, S7, X4). */
import { isImported } from '../../domain/action-types.ts';
import type { Effects } from '../../domain/action.ts';
import type { FeedSource, ResolvedAgent } from '../../domain/manifest.ts';
import type { Catalog } from '../catalog.ts';
import { nearestNames } from '../../domain/nearest.ts';
import { sessionVariableIn } from '../build/variables.ts';
import { inRequest } from './secrets.ts';
import type { FieldPath } from './problem.ts';

interface FeedIssues {
  readonly errors: readonly { readonly path: FieldPath; readonly message: string }[];
  readonly warnings: readonly { readonly path: FieldPath; readonly message: string }[];
}

/** @param bundled bundled definitions that the agent may import */
export function checkFeeds(resolved: ResolvedAgent, bundled: Catalog | null): FeedIssues {
  const errors: { path: FieldPath; message: string }[] = [];
  const warnings: { path: FieldPath; message: string }[] = [];
  for (const [index, { source, when, allowUnsafe, shared }] of resolved.agent.feeds.entries()) {
    const { type, name } = source;
    if (!isImported(type)) continue;
    const dependence = shared === true ? sessionDependence(source, resolved, bundled) : null;
    if (dependence !== null) {
      errors.push({ path: ['context_feeds', index, 'shared'], message: `is not allowed, because ${dependence}` });
    }
    const path = ['context_feeds', index, 'source', 'name'];
    const imported = resolved.agent.imports[`${type}s`];
    if (!imported.includes(name)) {
      const near = nearestNames(name, imported);
      const hint = near.length > 0 ? `did you mean ${near[0]}?` : `it imports: ${imported.join(', ') || 'none'}`;
      warnings.push({
        path,
        message: `the agent does not import the ${type} "${name}", so the feed will have no value (${hint})`,
      });
    } else if (when === 'periodic' && allowUnsafe !== true && effectsOf(source, resolved, bundled) === 'unsafe') {
      const message = `the ${type} "${name}" has unsafe effects, and a periodic feed would repeat them; correct its declared effects, or set allow_unsafe: true in the feed`;
      errors.push({ path, message });
    }
  }
  return { errors, warnings };
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
  const endpoints = (relics.get(name) ?? bundled?.relic(name))?.endpoints ?? {};
  const endpoint = action ?? Object.keys(endpoints)[0] ?? '';
  return Object.hasOwn(endpoints, endpoint) ? (endpoints[endpoint]?.effects ?? null) : null;
}
