/** What uses what in the catalogue. */
import type { ManifestEntry, ManifestGraph } from '../../src/client/index.ts';

type Links = ReadonlyMap<string, ReadonlySet<string>>;

export interface ManifestLinks {
  /** Ids (`kind/name`) of what each manifest imports or has as a feed. */
  readonly uses: Links;
  readonly usedBy: Links;
}

export function linksOf({ edges }: Pick<ManifestGraph, 'edges'>): ManifestLinks {
  return {
    uses: linksFrom(edges.map(({ from, to }) => [from, to])),
    usedBy: linksFrom(edges.map(({ from, to }) => [to, from])),
  };
}

function linksFrom(pairs: readonly (readonly [string, string])[]): Links {
  const links = new Map<string, Set<string>>();
  for (const [from, to] of pairs) links.set(from, (links.get(from) ?? new Set()).add(to));
  return links;
}

/** Whether each word of a filter is in the manifest's kind, name, summary or tags. */
export function isMeant(
  { kind, name, summary, tags }: Pick<ManifestEntry, 'kind' | 'name' | 'summary' | 'tags'>,
  filter: string,
): boolean {
  const text = [kind, name, summary, ...tags].join('\n').toLowerCase();
  return filter
    .toLowerCase()
    .split(/\s+/)
    .every((word) => text.includes(word));
}
