/** Artifacts: results that are downloaded rather than shown (J6). */

/** One artifact in the list for clients. */
export interface ArtifactEntry {
  /** `art_<seq>` for a whole output, `art_<seq>_<n>` for its nth file, 1-based. */
  readonly id: string;
  readonly run_id: string;
  readonly action_id: string | null;
  readonly action_name: string | null;
  readonly name: string;
  readonly content_type: string;
  readonly size_bytes: number;
  readonly created_at: number;
}

export interface Artifact extends ArtifactEntry {
  readonly bytes: Uint8Array;
}

/** What a download needs: of an artifact, or of a file of a message (C2). */
export type Download = Pick<Artifact, 'id' | 'name' | 'content_type' | 'bytes'>;
