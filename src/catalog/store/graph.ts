/** The dependency graph of a catalogue, as data and as text (M4). */
import { MANIFEST_KINDS } from '../../domain/catalog.ts';
import type { ManifestKind } from '../../domain/catalog.ts';
import { limits } from '../../domain/limits.ts';
import type { AgentDefinition } from '../../domain/manifests/agent.ts';
import { createCatalog } from '../catalog.ts';
import type { CatalogData } from '../catalog.ts';

export interface ManifestGraph {
  /** Ids are `kind/name`. */
  readonly nodes: readonly {
    readonly id: string;
    readonly kind: ManifestKind;
    readonly name: string;
    readonly version: string;
  }[];
  /** `how`: through an import, or as the source of a feed. */
  readonly edges: readonly { readonly from: string; readonly to: string; readonly how: 'import' | 'feed' }[];
}

const KINDS = { tools: 'tool', relics: 'relic', workflows: 'workflow', agents: 'agent', skills: 'skill' } as const;

export function graphOf(data: CatalogData): ManifestGraph {
  const catalog = createCatalog(data);
  const nodes = MANIFEST_KINDS.flatMap((kind) =>
    catalog.list(kind).map(({ name, version }) => ({ id: `${kind}/${name}`, kind, name, version })),
  );
  const known = new Set(nodes.map(({ id }) => id));
  const edges: { from: string; to: string; how: 'import' | 'feed' }[] = [];
  const added = new Set<string>();
  const add = (from: string, to: string, how: 'import' | 'feed'): void => {
    const edge = `${from} ${to} ${how}`;
    if (!known.has(to) || added.has(edge)) return;
    added.add(edge);
    edges.push({ from, to, how });
  };
  const imports = (from: string, imported: AgentDefinition['imports']): void => {
    for (const [field, kind] of Object.entries(KINDS) as [keyof typeof KINDS, ManifestKind][]) {
      for (const name of imported[field] ?? []) add(from, `${kind}/${name}`, 'import');
    }
  };
  for (const agent of data.agents) {
    imports(`agent/${agent.name}`, agent.imports);
    for (const { source } of agent.feeds) add(`agent/${agent.name}`, `${source.type}/${source.name}`, 'feed');
  }
  for (const workflow of data.workflows) imports(`workflow/${workflow.name}`, workflow.imports);
  return { nodes, edges };
}

/**
 * Draws the graph as trees: unused definitions are roots, with their dependencies below them. A node is expanded only
 * once, so that cycles end, and only up to depth `limits.graphDepth`.
 */
export function renderGraph({ nodes, edges }: ManifestGraph): string {
  const uses = new Map<string, Map<string, { feed: boolean }>>();
  for (const { from, to, how } of edges) {
    const used = uses.get(from) ?? new Map<string, { feed: boolean }>();
    used.set(to, { feed: how === 'feed' || used.get(to)?.feed === true });
    uses.set(from, used);
  }
  const used = new Set(edges.filter(({ from, to }) => from !== to).map(({ to }) => to));
  const lines: string[] = [];
  let left = 0;
  const write = (line: string): void => {
    if (lines.length < limits.graphLines) lines.push(line);
    else left += 1;
  };
  const shown = new Set<string>();
  const below = (id: string, indent: string, depth: number): void => {
    const children = uses.get(id) ?? new Map<string, { feed: boolean }>();
    let place = 0;
    for (const [to, { feed }] of children) {
      place += 1;
      const last = place === children.size;
      const folded = (shown.has(to) || depth === limits.graphDepth) && (uses.get(to)?.size ?? 0) > 0;
      write(`${indent}${last ? '└─' : '├─'} ${to}${feed ? ' (feed)' : ''}${folded ? ' …' : ''}`);
      if (shown.has(to) || depth === limits.graphDepth) continue;
      shown.add(to);
      below(to, `${indent}${last ? '   ' : '│  '}`, depth + 1);
    }
  };
  const root = (id: string, version: string): void => {
    shown.add(id);
    write(`${id} ${version}`);
    below(id, '', 1);
  };
  for (const { id, version } of nodes) if (!used.has(id)) root(id, version);
  // the rest are cycles that nothing else uses
  for (const { id, version } of nodes) if (!shown.has(id)) root(id, version);
  if (left > 0) lines.push(`… and ${left} more lines`);
  return `${lines.join('\n')}\n`;
}
