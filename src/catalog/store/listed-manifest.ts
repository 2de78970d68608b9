/** Entries of the catalogue's list of manifests (M4). */
import type { ManifestKind, ManifestRef, ListedManifest } from '../../domain/catalog.ts';
import type { AnyDefinition } from '../catalog.ts';
import type { DamagedRow } from './store-tables.ts';

export function kindOf(definition: AnyDefinition): ManifestKind {
  return definition.kind.toLowerCase() as ManifestKind;
}

export function isSame(a: ManifestRef, b: ManifestRef): boolean {
  return a.kind === b.kind && a.name === b.name;
}

export function listed(
  kind: ManifestKind,
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
export function listedDamaged(
  { kind, name, error }: DamagedRow,
  row: { readonly revision: number; readonly version: string; readonly updatedAt: number } | null,
): ListedManifest {
  const { revision = null, version = '', updatedAt = null } = row ?? {};
  return { kind, name, version, revision, summary: '', tags: [], common: false, updatedAt, error };
}
