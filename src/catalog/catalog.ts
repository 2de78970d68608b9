/**
 * The catalogue: what may be looked up by name. Built from validated plain data, so that the Worker
 * neither parses YAML nor checks schemas when it starts.
 */
import type { JsonObject } from '../domain/json.ts';
import type {
  AgentDefinition,
  FeedDefinition,
  ImportedDefinitions,
  ManifestBase,
  RelicDefinition,
  ResolvedAgent,
  ResolvedWorkflow,
  ToolDefinition,
  WorkflowDefinition,
} from '../domain/manifest.ts';
import { nearestNames } from '../domain/nearest.ts';

export const CATALOG_KINDS = ['agent', 'tool', 'relic', 'workflow', 'monument'] as const;
export type CatalogKind = (typeof CATALOG_KINDS)[number];

/** A collection, listed with its own fields as they were written (M1). */
export interface MonumentDefinition extends ManifestBase {
  readonly kind: 'Monument';
  readonly body: JsonObject;
}

export type AnyDefinition =
  | AgentDefinition
  | ToolDefinition
  | RelicDefinition
  | WorkflowDefinition
  | MonumentDefinition;

/** All validated manifests, as plain JSON. */
export interface CatalogData {
  readonly agents: readonly AgentDefinition[];
  readonly tools: readonly ToolDefinition[];
  readonly relics: readonly RelicDefinition[];
  readonly workflows: readonly WorkflowDefinition[];
  readonly monuments: readonly MonumentDefinition[];
  /**
   * Definitions whose name another folder's one has, too: each belongs to the importers that it stands
   * nearest to, `agent/writer`, and goes there before the other one (M2).
   */
  readonly scoped?: readonly { readonly importer: string; readonly definition: AnyDefinition }[];
}

export interface Catalog {
  readonly data: CatalogData;
  /** The agent with the definitions that it imports (X4), or null when there is none of this name. */
  agent(name: string): ResolvedAgent | null;
  /** The workflow with the definitions that its steps use, or null when there is none of this name. */
  workflow(name: string): ResolvedWorkflow | null;
  tool(name: string): ToolDefinition | null;
  relic(name: string): RelicDefinition | null;
  /** What there is of a kind, by name. */
  list(kind: CatalogKind): readonly AnyDefinition[];
  /** Up to three names that a wrong one may have been meant to be, best first. */
  nearest(kind: CatalogKind, name: string): readonly string[];
}

/** @param isBundled tells the definitions that came with the deployment (X3); default: none */
export function createCatalog(
  data: CatalogData,
  isBundled: (definition: AnyDefinition) => boolean = () => false,
): Catalog {
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

  const scoped = new Map(
    data.scoped?.map(({ importer, definition }) => [
      `${importer} ${definition.kind.toLowerCase()}/${definition.name}`,
      definition,
    ]),
  );
  /** What an importer means by a name: its own folder's definition before the common one. */
  const pick = <K extends keyof typeof knownNames>(importer: string, kind: K, names: readonly string[]) => {
    const found = new Map<string, NonNullable<ReturnType<(typeof kinds)[K]['get']>>>();
    for (const name of names) {
      const definition = scoped.get(`${importer} ${kind}/${name}`) ?? kinds[kind].get(name);
      if (definition !== undefined) found.set(name, definition as never);
    }
    return found;
  };
  const imported = (importer: string, { tools, agents, relics, workflows }: AgentDefinition['imports']) =>
    ({
      tools: pick(importer, 'tool', tools),
      relics: pick(importer, 'relic', relics),
      workflows: pick(importer, 'workflow', workflows),
      agents: new Map([...pick(importer, 'agent', agents)].map(([name, agent]) => [name, summaryOf(agent)])),
      knownNames,
    }) satisfies ImportedDefinitions;

  const resolved = (subject: AgentDefinition | WorkflowDefinition) => {
    const definitions = imported(`${subject.kind.toLowerCase()}/${subject.name}`, subject.imports);
    const tools = [...definitions.tools].flatMap(([name, tool]) => (isBundled(tool) ? [name] : []));
    return { ...definitions, bundled: { subject: isBundled(subject), tools } };
  };

  return {
    data,
    agent(name) {
      const agent = kinds.agent.get(name);
      if (agent === undefined) return null;
      const definitions = resolved(agent);
      const feeds = agent.feeds.map((feed) => withEndpoint(feed, definitions.relics));
      return { agent: { ...agent, feeds }, ...definitions };
    },
    workflow(name) {
      const workflow = kinds.workflow.get(name);
      return workflow === undefined ? null : { workflow, ...resolved(workflow) };
    },
    tool: (name) => kinds.tool.get(name) ?? null,
    relic: (name) => kinds.relic.get(name) ?? null,
    list: (kind) => [...kinds[kind].values()],
    nearest: (kind, name) => nearestNames(name, [...kinds[kind].keys()]),
  };
}

function summaryOf({ name, version, summary, description, tags, metadata }: AgentDefinition): ManifestBase {
  return { name, version, summary, description, tags, metadata };
}

/** A feed that names a relic and no endpoint asks its first one. */
function withEndpoint(feed: FeedDefinition, relics: ReadonlyMap<string, RelicDefinition>): FeedDefinition {
  const { source } = feed;
  if (source.type !== 'relic' || source.action !== null) return feed;
  const [first] = Object.keys(relics.get(source.name)?.endpoints ?? {});
  return first === undefined ? feed : { ...feed, source: { ...source, action: first } };
}
