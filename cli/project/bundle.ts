/** The bundled manifests as data. */
import type { AnyDefinition, CatalogData } from '../../src/catalog/catalog.ts';
import type { LoadedManifests } from '../../src/catalog/load.ts';

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

/**
 * The bundle, and from an earlier one what it lacks although its manifest is still there: the manifest has errors now.
 *
 * @param isWritten whether the folders contain a manifest with this name
 */
export function withEarlier({ data, sources }: Bundle, earlier: Bundle, isWritten: WrittenNames): Bundle {
  const merged = <K extends (typeof KINDS)[number]>(kind: K): CatalogData[K] => {
    const names = new Set(data[kind].map(({ name }) => name));
    const kept = ((earlier.data[kind] ?? []) as readonly AnyDefinition[]).filter(
      (one) => !names.has(one.name) && isWritten(idOf(one)),
    );
    return [...data[kind], ...kept] as unknown as CatalogData[K];
  };
  const all = Object.fromEntries(KINDS.map((kind) => [kind, merged(kind)])) as unknown as CatalogData;
  const lost = new Set(KINDS.flatMap((kind): readonly AnyDefinition[] => all[kind].slice(data[kind].length)).map(idOf));
  const kept = (earlier.data.scoped ?? []).filter(({ importer }) => lost.has(importer));
  const named = new Set(KINDS.flatMap((kind): readonly AnyDefinition[] => all[kind]).map(idOf));
  const left = Object.entries(earlier.sources).filter(([id]) => named.has(id));
  return {
    data: { ...all, scoped: [...(data.scoped ?? []), ...kept] },
    sources: { ...Object.fromEntries(left), ...sources },
  };
}

/** Whether the folders contain a manifest with this kind and name (`tool/echo`). */
type WrittenNames = (id: string) => boolean;

/** In a file that cannot be parsed, any name may be that of its manifest. */
export function writtenNames({ read }: Pick<LoadedManifests, 'read'>): WrittenNames {
  const files = [...read.values()];
  const ids = new Set(files.flatMap(({ documents }) => documents.map(({ kind, name }) => `${kind}/${name}`)));
  const broken = files.filter(({ problems }) => problems.length > 0);
  const names = new Set(broken.flatMap(({ text }) => [...text.matchAll(NAME)].map(([, name = '']) => name)));
  return (id) => ids.has(id) || names.has(id.slice(id.indexOf('/') + 1));
}

const NAME = /^["']?name["']?[ \t]*:[ \t]*["']?([\w.-]+)/gm;

const KINDS = ['agents', 'tools', 'relics', 'workflows', 'skills', 'monuments'] as const;

function idOf({ kind, name }: AnyDefinition): string {
  return `${kind.toLowerCase()}/${name}`;
}
