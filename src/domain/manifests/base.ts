/** What manifests of all kinds have. */
import type { JsonObject } from '../json.ts';

export interface ManifestBase {
  readonly name: string;
  readonly version: string;
  readonly summary: string;
  readonly description: string;
  readonly tags: readonly string[];
  readonly metadata: JsonObject;
  /** For agents and workflows that only their importers see: the file that distinguishes them from others with this name. */
  readonly scope?: string;
}
