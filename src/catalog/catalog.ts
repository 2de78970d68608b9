/**
 * The catalogue: what may be looked up by name. Built from validated plain data, so that the Worker
 * neither parses YAML nor checks schemas when it starts.
 */
import type { JsonObject } from '../domain/json.ts';
import type { AgentDefinition, ManifestBase, ResolvedAgent, ToolDefinition } from '../domain/manifest.ts';
import { nearestNames } from './nearest.ts';

export const CATALOG_KINDS = ['agent', 'tool', 'relic', 'workflow', 'monument'] as const;
export type CatalogKind = (typeof CATALOG_KINDS)[number];

/** A kind whose base fields are checked and whose own fields are kept as written. */
export interface KeptManifest extends ManifestBase {
  readonly kind: 'Relic' | 'Workflow' | 'Monument';
  readonly body: JsonObject;
}

/** All validated manifests, as plain JSON. */
export interface CatalogData {
  readonly agents: readonly AgentDefinition[];
  readonly tools: readonly ToolDefinition[];
  readonly relics: readonly KeptManifest[];
  readonly workflows: readonly KeptManifest[];
  readonly monuments: readonly KeptManifest[];
}

export interface Catalog {
  readonly data: CatalogData;
  /** The agent with the definitions that it imports (X4), or null when there is none of this name. */
  agent(name: string): ResolvedAgent | null;
  tool(name: string): ToolDefinition | null;
  /** What there is of a kind, by name. */
  list(kind: CatalogKind): readonly ManifestBase[];
  /** Up to three names that a wrong one may have been meant to be, best first. */
  nearest(kind: CatalogKind, name: string): readonly string[];
}

export function createCatalog(data: CatalogData): Catalog {
  const byName = <T extends ManifestBase>(items: readonly T[]): ReadonlyMap<string, T> =>
    new Map([...items].sort((a, b) => (a.name < b.name ? -1 : 1)).map((item) => [item.name, item]));
  const kinds = {
    agent: byName(data.agents),
    tool: byName(data.tools),
    relic: byName(data.relics),
    workflow: byName(data.workflows),
    monument: byName(data.monuments),
  };
  const knownNames = {
    agent: [...kinds.agent.keys()],
    tool: [...kinds.tool.keys()],
    relic: [...kinds.relic.keys()],
    workflow: [...kinds.workflow.keys()],
  };

  return {
    data,
    agent(name) {
      const agent = kinds.agent.get(name);
      if (agent === undefined) return null;
      const tools = new Map<string, ToolDefinition>();
      for (const imported of agent.imports.tools) {
        const tool = kinds.tool.get(imported);
        if (tool !== undefined) tools.set(imported, tool);
      }
      return { agent, tools, knownNames };
    },
    tool: (name) => kinds.tool.get(name) ?? null,
    list: (kind) => [...kinds[kind].values()],
    nearest: (kind, name) => nearestNames(name, [...kinds[kind].keys()]),
  };
}
