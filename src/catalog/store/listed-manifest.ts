/** How the catalogue lists a manifest (M4). */
import type { AnyDefinition, CatalogKind } from '../catalog.ts';
import type { DamagedRow, ManifestRef, RevisionRow } from './store-tables.ts';

/** A listed manifest. `revision` counts the changes of one name, from 1; null for bundled ones. */
export interface ListedManifest {
  readonly kind: CatalogKind;
  readonly name: string;
  readonly version: string;
  readonly revision: number | null;
  readonly summary: string;
  readonly tags: readonly string[];
  /** Whether it is bundled and cannot be changed. */
  readonly common: boolean;
  /** Epoch milliseconds; null for bundled ones. */
  readonly updatedAt: number | null;
  /** Why it is quarantined: it cannot be read, or no longer loads. */
  readonly error?: string;
}

export interface StoredManifest extends ListedManifest {
  /** Null if it cannot be read. */
  readonly definition: AnyDefinition | null;
  /** Source YAML; null if unknown. */
  readonly source: string | null;
  readonly file: string | null;
  readonly versions: readonly RevisionRow[];
}

export function kindOf(definition: AnyDefinition): CatalogKind {
  return definition.kind.toLowerCase() as CatalogKind;
}

export function isSame(a: ManifestRef, b: ManifestRef): boolean {
  return a.kind === b.kind && a.name === b.name;
}

export function listed(
  kind: CatalogKind,
  { name, version, summary, tags }: AnyDefinition,
  own: { readonly revision: number; readonly updatedAt: number } | null,
  error?: string,
): ListedManifest {
  return {
    kind,
    name,
    version,
    revision: own?.revision ?? null,
    summary,
    tags,
    common: own === null,
    updatedAt: own?.updatedAt ?? null,
    ...(error === undefined ? {} : { error }),
  };
}

/** A listed manifest whose definition cannot be read. */
export function setAside(
  { kind, name, error }: DamagedRow,
  row: { readonly revision: number; readonly version: string; readonly updatedAt: number } | null,
): ListedManifest {
  const { revision = null, version = '', updatedAt = null } = row ?? {};
  return { kind, name, version, revision, summary: '', tags: [], common: false, updatedAt, error };
}
