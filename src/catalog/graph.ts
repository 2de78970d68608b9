/** Who uses what: the dependency graph of a catalogue, for programs and for people (M4). */
import type { AgentDefinition } from '../domain/manifest.ts';
import { CATALOG_KINDS, createCatalog } from './catalog.ts';
import type { CatalogData, CatalogKind } from './catalog.ts';

export interface ManifestGraph {
  /** Ids are `kind/name`. */
  readonly nodes: readonly {
    readonly id: string;
    readonly kind: CatalogKind;
    readonly name: string;
    readonly version: string;
  }[];
  /** `how`: as an import, or as the source of a feed. */
  readonly edges: readonly { readonly from: string; readonly to: string; readonly how: 'import' | 'feed' }[];
}

const KINDS = { tools: 'tool', relics: 'relic', workflows: 'workflow', agents: 'agent' } as const;

export function graphOf(data: CatalogData): ManifestGraph {
  const catalog = createCatalog(data);
  const nodes = CATALOG_KINDS.flatMap((kind) =>
    catalog.list(kind).map(({ name, version }) => ({ id: `${kind}/${name}`, kind, name, version })),
  );
  const known = new Set(nodes.map(({ id }) => id));
  const edges: { from: string; to: string; how: 'import' | 'feed' }[] = [];
  const add = (from: string, to: string, how: 'import' | 'feed'): void => {
    if (known.has(to) && !edges.some((edge) => edge.from === from && edge.to === to && edge.how === how)) {
      edges.push({ from, to, how });
    }
  };
  const imports = (from: string, imported: AgentDefinition['imports']): void => {
    for (const [field, kind] of Object.entries(KINDS) as [keyof typeof KINDS, CatalogKind][]) {
      for (const name of imported[field]) add(from, `${kind}/${name}`, 'import');
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
 * The graph as trees for a terminal: what nobody uses stands at the left, below it what it uses. What has been
 * shown before is not unfolded again, so that circles end.
 */
export function renderGraph({ nodes, edges }: ManifestGraph): string {
  const uses = new Map<string, { to: string; feed: boolean }[]>();
  for (const { from, to, how } of edges) {
    const list = uses.get(from) ?? [];
    const same = list.find((one) => one.to === to);
    if (same === undefined) list.push({ to, feed: how === 'feed' });
    else same.feed ||= how === 'feed';
    uses.set(from, list);
  }
  const used = new Set(edges.filter(({ from, to }) => from !== to).map(({ to }) => to));
  const lines: string[] = [];
  const shown = new Set<string>();
  const below = (id: string, indent: string): void => {
    const children = uses.get(id) ?? [];
    for (const [index, { to, feed }] of children.entries()) {
      const last = index === children.length - 1;
      const again = shown.has(to) && (uses.get(to)?.length ?? 0) > 0;
      lines.push(`${indent}${last ? '└─' : '├─'} ${to}${feed ? ' (feed)' : ''}${again ? ' …' : ''}`);
      if (shown.has(to)) continue;
      shown.add(to);
      below(to, `${indent}${last ? '   ' : '│  '}`);
    }
  };
  const root = (id: string, version: string): void => {
    shown.add(id);
    lines.push(`${id} ${version}`);
    below(id, '');
  };
  for (const { id, version } of nodes) if (!used.has(id)) root(id, version);
  // what is left stands in circles that nobody outside uses
  for (const { id, version } of nodes) if (!shown.has(id)) root(id, version);
  return `${lines.join('\n')}\n`;
}
