/** The bundled manifests as data. */
import type { AnyDefinition, CatalogData } from '../src/catalog/catalog.ts';
import type { LoadedManifests } from '../src/catalog/load.ts';

export interface Bundle {
  readonly data: CatalogData;
  /** Sources by kind and name. */
  readonly sources: Readonly<Record<string, string>>;
}

export function bundleOf({ catalog, entries }: Pick<LoadedManifests, 'catalog' | 'entries'>): Bundle {
  const { data } = catalog;
  const named = new Set<unknown>(KINDS.flatMap((kind): readonly unknown[] => data[kind]));
  const own = entries.filter(({ definition }) => named.has(definition));
  const sources = own.map(({ definition, source }) => [`${definition.kind.toLowerCase()}/${definition.name}`, source]);
  return { data, sources: Object.fromEntries(sources) as Bundle['sources'] };
}

/** The bundle, and from an earlier one everything whose name it lacks: its manifests may have errors now. */
export function withEarlier({ data, sources }: Bundle, earlier: Bundle): Bundle {
  const merged = <K extends (typeof KINDS)[number]>(kind: K): CatalogData[K] => {
    const names = new Set(data[kind].map(({ name }) => name));
    return [...data[kind], ...earlier.data[kind].filter(({ name }) => !names.has(name))] as unknown as CatalogData[K];
  };
  const all = Object.fromEntries(KINDS.map((kind) => [kind, merged(kind)])) as unknown as CatalogData;
  const lost = new Set(KINDS.flatMap((kind): readonly AnyDefinition[] => all[kind].slice(data[kind].length)).map(idOf));
  const kept = (earlier.data.scoped ?? []).filter(({ importer }) => lost.has(importer));
  return { data: { ...all, scoped: [...(data.scoped ?? []), ...kept] }, sources: { ...earlier.sources, ...sources } };
}

const KINDS = ['agents', 'tools', 'relics', 'workflows', 'monuments'] as const;

function idOf({ kind, name }: AnyDefinition): string {
  return `${kind.toLowerCase()}/${name}`;
}
