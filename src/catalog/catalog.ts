/**
 * The catalogue: looks definitions up by name. It is built from validated plain data, so the Worker neither parses YAML
 * nor validates schemas when it starts.
 */
import type { ManifestKind } from '../domain/catalog.ts';
import type { JsonObject } from '../domain/json.ts';
import type { AgentDefinition } from '../domain/manifests/agent.ts';
import type { ImportedDefinitions, ResolvedAgent, ResolvedWorkflow } from '../domain/manifests/resolved.ts';
import type { ManifestBase } from '../domain/manifests/base.ts';
import type { RelicDefinition } from '../domain/manifests/relic.ts';
import type { SkillDefinition } from '../domain/manifests/skill.ts';
import type { ToolDefinition } from '../domain/manifests/tool.ts';
import type { WorkflowDefinition } from '../domain/manifests/workflow.ts';
import { derived } from '../domain/derived.ts';
import { withFeedEndpoint } from '../domain/feed-endpoint.ts';
import { nearestNames } from '../domain/nearest.ts';

/** A collection, listed with its own fields (M1). */
export interface MonumentDefinition extends ManifestBase {
  readonly kind: 'Monument';
  readonly body: JsonObject;
}

export type AnyDefinition =
  | AgentDefinition
  | ToolDefinition
  | RelicDefinition
  | WorkflowDefinition
  | SkillDefinition
  | MonumentDefinition;

/** All validated manifests, as plain JSON. */
export interface CatalogData {
  readonly agents: readonly AgentDefinition[];
  readonly tools: readonly ToolDefinition[];
  readonly relics: readonly RelicDefinition[];
  readonly workflows: readonly WorkflowDefinition[];
  readonly skills: readonly SkillDefinition[];
  readonly monuments: readonly MonumentDefinition[];
  /**
   * Definitions whose name is also used in another folder. Each is visible only to the importers nearest to it
   * (`agent/writer`, or `agent/writer@path` for an importer that is scoped itself) and takes precedence for them (M2).
   */
  readonly scoped?: readonly { readonly importer: string; readonly definition: AnyDefinition }[];
}

export interface Catalog {
  readonly data: CatalogData;
  /**
   * The agent with the definitions that it imports (X4), or null.
   *
   * @param scope of an agent that only its importers see
   */
  agent(name: string, scope?: string): ResolvedAgent | null;
  /** The workflow with the definitions that its steps use, or null. */
  workflow(name: string, scope?: string): ResolvedWorkflow | null;
  tool(name: string): ToolDefinition | null;
  relic(name: string): RelicDefinition | null;
  /** All definitions of a kind, sorted by name. */
  list(kind: ManifestKind): readonly AnyDefinition[];
  /** Up to three similar names, best first. */
  nearest(kind: ManifestKind, name: string): readonly string[];
}

/** Identifies an importer among all definitions, including scoped ones. */
export function importerId({ kind, name, scope }: AnyDefinition): string {
  return `${kind.toLowerCase()}/${name}${scope === undefined ? '' : `@${scope}`}`;
}

/** @param isBundled recognises bundled definitions (X3); default: none */
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
    skill: byName(data.skills),
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
  const children = new Map(
    data.scoped?.flatMap(({ definition }) =>
      definition.scope === undefined ? [] : [[importerId(definition), definition]],
    ),
  );
  /** Resolves a name for an importer: the definition of its own folder takes precedence. */
  const pick = <K extends keyof typeof knownNames | 'skill'>(importer: string, kind: K, names: readonly string[]) => {
    const found = new Map<string, NonNullable<ReturnType<(typeof kinds)[K]['get']>>>();
    for (const name of names) {
      const definition = scoped.get(`${importer} ${kind}/${name}`) ?? kinds[kind].get(name);
      if (definition !== undefined) found.set(name, definition as never);
    }
    return found;
  };
  const imported = (importer: string, { tools, agents, relics, workflows, skills = [] }: AgentDefinition['imports']) =>
    ({
      tools: pick(importer, 'tool', tools),
      relics: pick(importer, 'relic', relics),
      workflows: pick(importer, 'workflow', workflows),
      skills: pick(importer, 'skill', skills),
      agents: new Map([...pick(importer, 'agent', agents)].map(([name, agent]) => [name, summaryOf(agent)])),
      knownNames,
    }) satisfies ImportedDefinitions;

  const resolved = (subject: AgentDefinition | WorkflowDefinition) => {
    const definitions = imported(importerId(subject), subject.imports);
    const tools = [...definitions.tools].flatMap(([name, tool]) => (isBundled(tool) ? [name] : []));
    return { ...definitions, bundled: { subject: isBundled(subject), tools } };
  };

  /** Made once for each definition: what others derive from the result is kept with it. */
  const resolvedAgent = derived((agent: AgentDefinition): ResolvedAgent => {
    const definitions = resolved(agent);
    const feeds = agent.feeds.map((feed) => withFeedEndpoint(feed, definitions.relics));
    return { agent: { ...agent, feeds }, ...definitions };
  });
  const resolvedWorkflow = derived((workflow: WorkflowDefinition): ResolvedWorkflow => ({
    workflow,
    ...resolved(workflow),
  }));

  return {
    data,
    agent(name, scope) {
      const agent = scope === undefined ? kinds.agent.get(name) : children.get(`agent/${name}@${scope}`);
      return agent?.kind === 'Agent' ? resolvedAgent(agent) : null;
    },
    workflow(name, scope) {
      const workflow = scope === undefined ? kinds.workflow.get(name) : children.get(`workflow/${name}@${scope}`);
      return workflow?.kind === 'Workflow' ? resolvedWorkflow(workflow) : null;
    },
    tool: (name) => kinds.tool.get(name) ?? null,
    relic: (name) => kinds.relic.get(name) ?? null,
    list: (kind) => [...kinds[kind].values()],
    nearest: (kind, name) => nearestNames(name, [...kinds[kind].keys()]),
  };
}

function summaryOf({ name, version, summary, description, tags, metadata, scope }: AgentDefinition): ManifestBase {
  return { name, version, summary, description, tags, metadata, ...(scope === undefined ? {} : { scope }) };
}
