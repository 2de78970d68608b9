/** The catalogues of all namespaces, as the routes use them (M4). */
export const MANIFEST_KINDS = ['agent', 'tool', 'relic', 'workflow', 'monument'] as const;
export type ManifestKind = (typeof MANIFEST_KINDS)[number];

export interface ManifestRef {
  readonly kind: ManifestKind;
  readonly name: string;
}

export interface ListedManifest extends ManifestRef {
  readonly version: string;
  /** Counts the changes under this name, from 1; null for bundled manifests. */
  readonly revision: number | null;
  readonly summary: string;
  readonly tags: readonly string[];
  /** Whether it is bundled and cannot be changed. */
  readonly common: boolean;
  /** Epoch milliseconds; null for bundled manifests. */
  readonly updatedAt: number | null;
  /** Why it cannot be used. */
  readonly error?: string;
}

export interface StoredManifest extends ListedManifest {
  /** Null if it cannot be read. */
  readonly definition: object | null;
  /** YAML; null if unknown. */
  readonly source: string | null;
  readonly file: string | null;
  readonly versions: readonly { readonly revision: number; readonly version: string; readonly createdAt: number }[];
}

export interface ManifestIssue {
  readonly file: string;
  readonly line: number;
  readonly column: number;
  readonly field: string;
  readonly message: string;
}

/** The effect of a change, or of a validation. */
export interface ChangeReport {
  readonly manifests: readonly ListedManifest[];
  readonly problems: readonly ManifestIssue[];
  readonly warnings: readonly ManifestIssue[];
}

export interface PostedFile {
  readonly path: string;
  readonly text: string;
}

/** `owner` is the API key whose namespace it is. @throws EngineError what the catalogue refuses with */
export interface ManifestHost {
  list(owner: string | null, kind: ManifestKind | null): Promise<readonly ListedManifest[]>;
  get(
    owner: string | null,
    ref: ManifestRef,
    wanted: { readonly version?: string; readonly revision?: number },
  ): Promise<StoredManifest>;
  put(owner: string | null, ref: ManifestRef, text: string): Promise<ChangeReport>;
  remove(owner: string | null, ref: ManifestRef): Promise<void>;
  upload(owner: string | null, files: readonly PostedFile[]): Promise<ChangeReport>;
  replace(
    owner: string | null,
    files: readonly PostedFile[],
  ): Promise<ChangeReport & { readonly removed: readonly ManifestRef[] }>;
  validate(owner: string | null, files: readonly PostedFile[]): Promise<ChangeReport>;
  /** As data and as text. */
  graph(owner: string | null): Promise<{ readonly graph: object; readonly text: string }>;
}
