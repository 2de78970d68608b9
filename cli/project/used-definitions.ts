/** Leaves out shipped definitions that a project does not use, so that its Worker offers only what its author chose. */
import { createCatalog } from '../../src/catalog/catalog.ts';
import type { AnyDefinition } from '../../src/catalog/catalog.ts';
import type { LoadedManifests } from '../../src/catalog/load.ts';

type Name = `${string}/${string}`;

/** @param isShipped whether a file belongs to Cortex Edge and not to the project */
export function withoutUnused(loaded: LoadedManifests, isShipped: (file: string) => boolean): LoadedManifests {
  const { data } = loaded.catalog;
  const byName = new Map<Name, AnyDefinition>(
    [...data.agents, ...data.tools, ...data.relics, ...data.workflows, ...data.skills].map((one) => [nameOf(one), one]),
  );
  const own = loaded.entries.filter(({ file }) => !isShipped(file)).map(({ definition }) => definition);
  const used = new Set<AnyDefinition>();
  const waiting: AnyDefinition[] = [...own, ...(data.scoped ?? []).map(({ definition }) => definition)];
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    if (used.has(next)) continue;
    used.add(next);
    for (const name of usedBy(next)) {
      const found = byName.get(name);
      if (found !== undefined) waiting.push(found);
    }
  }
  const isUsed = (definition: AnyDefinition): boolean => used.has(definition);
  const catalog = createCatalog({
    ...data,
    agents: data.agents.filter(isUsed),
    tools: data.tools.filter(isUsed),
    relics: data.relics.filter(isUsed),
    workflows: data.workflows.filter(isUsed),
    skills: data.skills.filter(isUsed),
  });
  return { ...loaded, catalog, entries: loaded.entries.filter(({ definition }) => isUsed(definition)) };
}

function usedBy(definition: AnyDefinition): Name[] {
  if (definition.kind !== 'Agent' && definition.kind !== 'Workflow') return [];
  const { tools, agents, relics, workflows, skills = [] } = definition.imports;
  const named = (kind: string, names: readonly string[]): Name[] => names.map((name) => `${kind}/${name}` as const);
  const feeds =
    definition.kind === 'Agent' ? definition.feeds.map(({ source }): Name => `${source.type}/${source.name}`) : [];
  return [
    ...named('tool', tools),
    ...named('agent', agents),
    ...named('relic', relics),
    ...named('workflow', workflows),
    ...named('skill', skills),
    ...feeds,
  ];
}

function nameOf({ kind, name }: AnyDefinition): Name {
  return `${kind.toLowerCase()}/${name}`;
}
