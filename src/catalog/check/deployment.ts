/** Warns about manifests that load but cannot work in the deployment that they are uploaded to (X2, X3). */
import type { ModelChoice } from '../../domain/manifests/model.ts';
import type { AnyDefinition } from '../catalog.ts';
import { resolveVariables } from '../build/variables.ts';
import { secretsNamedBy } from './secrets.ts';
import type { FieldPath } from './problem.ts';

/** What is known about a deployment. Each answer is a sentence that names the setting, or null if nothing is wrong. */
export interface Deployment {
  /** Why tools cannot reach the host of this URL. */
  readonly unreachable: (url: string) => string | null;
  /** The same for an endpoint of a model. */
  readonly unreachableModel: (url: string) => string | null;
  /** Why the demo model answers for this model. */
  readonly modelIssue: (choice: ModelChoice) => string | null;
  /** Why a manifest of this namespace gets no such secret. */
  readonly missingSecret: (name: string) => string | null;
  /** Why scripts, images and containers cannot run. */
  readonly missingRunner: string | null;
}

interface Warning {
  readonly path: FieldPath;
  readonly message: string;
}

/** Built-in tools that fetch the URL in their parameter `url`. */
const FETCHING: ReadonlySet<string> = new Set(['web_fetch', 'web_extract']);

/** The warnings about one definition. */
export function deploymentWarnings(definition: AnyDefinition, deployment: Deployment): Warning[] {
  const secrets = secretsNamedBy(definition).map(({ name, path }) => ({
    path,
    message: deployment.missingSecret(name),
  }));
  return [...secrets, ...ofRequests(definition, deployment)].flatMap(({ path, message }) =>
    message === null ? [] : [{ path, message }],
  );
}

function ofRequests(
  definition: AnyDefinition,
  { unreachable, unreachableModel, modelIssue, missingRunner }: Deployment,
): { readonly path: FieldPath; readonly message: string | null }[] {
  switch (definition.kind) {
    case 'Tool': {
      const { implementation } = definition;
      if (implementation.type === 'http') {
        return [{ path: ['implementation', 'url'], message: ofHost(implementation.url, unreachable) }];
      }
      const needsRunner = implementation.type === 'script' || implementation.type === 'container';
      return needsRunner ? [{ path: ['implementation', 'type'], message: missingRunner }] : [];
    }
    case 'Relic': {
      const needsRunner = definition.implementation.type === 'container';
      return needsRunner ? [{ path: ['implementation', 'type'], message: missingRunner }] : [];
    }
    case 'Agent': {
      const { engine, feeds, mcpServers = [] } = definition;
      const models = [engine.primary, ...engine.fallbacks].map(({ endpoint }, at) => ({
        path: ['cognitive_engine', at === 0 ? 'primary' : 'fallback', 'endpoint'],
        message: endpoint === null ? null : unreachableModel(endpoint),
      }));
      const providers = [engine.primary, ...engine.fallbacks].map((choice, at) => ({
        path: ['cognitive_engine', at === 0 ? 'primary' : 'fallback', 'provider'],
        message: modelIssue(choice),
      }));
      const sources = feeds.map(({ source }, at) => {
        const url = source.type === 'tool' && FETCHING.has(source.name) ? source.params['url'] : null;
        const path: FieldPath = ['context_feeds', at, 'source', 'params', 'url'];
        return { path, message: typeof url === 'string' ? ofHost(url, unreachable) : null };
      });
      const servers = mcpServers.map(({ url }, at) => ({
        path: ['mcp_servers', at, 'url'],
        message: unreachable(url),
      }));
      return [...models, ...providers, ...sources, ...servers];
    }
    case 'Workflow':
    case 'Skill':
    case 'Monument':
      return [];
  }
}

/** A host that a variable without a default determines is known only in a session. */
function ofHost(written: string, check: (url: string) => string | null): string | null {
  const [origin] = /^https?:\/\/[^/?#\\\s]+/i.exec(resolveVariables(written, {})) ?? [];
  return origin === undefined || origin.includes('${') ? null : check(origin);
}
