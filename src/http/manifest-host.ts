/** The catalogues of all namespaces, as used by the routes (M4). */
import type {
  ManifestKind,
  ManifestRef,
  ListedManifest,
  StoredManifest,
  ChangeReport,
  ReplaceReport,
  ManifestFile,
  ExposedManifests,
} from '../domain/catalog.ts';

/** `owner` is the namespace, or null for what was made without keys. @throws EngineError the catalogue's error */
export interface ManifestHost {
  list(owner: string | null, kind: ManifestKind | null): Promise<readonly ListedManifest[]>;
  get(
    owner: string | null,
    ref: ManifestRef,
    wanted: { readonly version?: string; readonly revision?: number },
  ): Promise<StoredManifest>;
  put(owner: string | null, ref: ManifestRef, text: string): Promise<ChangeReport>;
  remove(owner: string | null, ref: ManifestRef): Promise<void>;
  upload(owner: string | null, files: readonly ManifestFile[]): Promise<ChangeReport>;
  replace(owner: string | null, files: readonly ManifestFile[]): Promise<ReplaceReport>;
  validate(owner: string | null, files: readonly ManifestFile[]): Promise<ChangeReport>;
  /** What clients of the Model Context Protocol may call (E4). */
  exposed(owner: string | null): Promise<ExposedManifests>;
  /** As data and as text. */
  graph(owner: string | null): Promise<{ readonly graph: Graph; readonly text: string }>;
}

/** What the Worker knows of changes of catalogues (Z1). */
export interface CatalogRevisions {
  /** The latest change that is known; 0: none is. */
  readonly of: (owner: string | null) => number;
  /** From here on, the namespace's manifests are those of this change, or of a later one. */
  readonly require: (owner: string | null, revision: number) => void;
}

/** Where nothing is copied. */
export const NO_REVISIONS: CatalogRevisions = { of: () => 0, require: () => undefined };

interface Graph {
  readonly nodes: readonly (ManifestRef & { readonly id: string; readonly version: string })[];
  readonly edges: readonly { readonly from: string; readonly to: string; readonly how: 'import' | 'feed' }[];
}
