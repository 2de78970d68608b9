/** What a catalogue says about its manifests: to the routes, between objects, and in lists (M4). */

import type { Effects } from './action-types.ts';
import type { JsonObject } from './json.ts';

export const MANIFEST_KINDS = ['agent', 'tool', 'relic', 'workflow', 'skill', 'monument'] as const;
export type ManifestKind = (typeof MANIFEST_KINDS)[number];

export interface ManifestRef {
  readonly kind: ManifestKind;
  readonly name: string;
}

export interface ListedManifest extends ManifestRef {
  readonly version: string;
  /** Counts the changes of one name, from 1; null for bundled manifests. */
  readonly revision: number | null;
  readonly summary: string;
  readonly tags: readonly string[];
  /** Whether it is bundled and cannot be changed. */
  readonly common: boolean;
  /** Epoch milliseconds; null for bundled manifests. */
  readonly updatedAt: number | null;
  /** Why it is quarantined: it cannot be read, or no longer loads. */
  readonly error?: string;
}

/** What clients of the Model Context Protocol may call (E4). */
export interface ExposedManifests {
  readonly agents: readonly ExposedManifest[];
  /** With the agent that calls it: the first of those that import it; `assistant` precedes the others. */
  readonly tools: readonly (ExposedManifest & {
    readonly parameters: JsonObject;
    readonly effects: Effects;
    readonly agent: string;
  })[];
  readonly workflows: readonly (ExposedManifest & { readonly inputs: JsonObject })[];
}

interface ExposedManifest {
  readonly name: string;
  readonly summary: string;
}

export interface ManifestRevision {
  readonly revision: number;
  readonly version: string;
  /** Epoch milliseconds. */
  readonly createdAt: number;
}

export interface StoredManifest extends ListedManifest {
  /** Null if it cannot be read. */
  readonly definition: object | null;
  /** Source YAML; null if unknown. */
  readonly source: string | null;
  readonly file: string | null;
  readonly versions: readonly ManifestRevision[];
}

/** An issue of a manifest. Lines and columns are 1-based; columns count UTF-16 units. */
export interface ManifestProblem {
  /** The file name as given to the loader. */
  readonly file: string;
  readonly line: number;
  readonly column: number;
  /** The field's path, for example `loop.max_iterations` or `parameters[2].type`; empty for the whole document. */
  readonly field: string;
  /** What was found and what is allowed. */
  readonly message: string;
  /** Set if the manifest has the name of a bundled one. */
  readonly code?: 'manifest_read_only';
}

/** Issues of the given files. */
export interface ManifestProblems {
  readonly problems: readonly ManifestProblem[];
  readonly warnings: readonly ManifestProblem[];
  /** YAML in a folder that is no manifest. */
  readonly skipped: readonly ManifestProblem[];
}

/** The effect of a change, or of a validation. */
export interface ChangeReport extends ManifestProblems {
  readonly manifests: readonly ListedManifest[];
}

/** The same, with the manifests that were removed. */
export interface ReplaceReport extends ChangeReport {
  readonly removed: readonly ManifestRef[];
}

/**
 * One file of a manifest folder: a YAML manifest, a Markdown file whose front matter has a `kind`, the `SKILL.md` of a skill
 * (C8), or a file that manifests refer to by path.
 */
export interface ManifestFile {
  /** Relative to the folder's parent, or absolute, with `/`; used in messages. */
  readonly path: string;
  readonly text: string;
  /** Whether the file is not part of a folder: then it must be a manifest. */
  readonly isAlone?: boolean;
}
