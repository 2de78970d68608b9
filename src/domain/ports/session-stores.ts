/** What the actions of a session read and change. */
import type { ActionError } from '../action.ts';
import type { Json, JsonObject } from '../json.ts';
import type { WorkspaceFile } from '../workspace.ts';
import type { JobResult, JobWorkspace } from './runner.ts';

/** A session's feeds, for internal actions (I). Throws `EngineError` for the model's mistakes. */
export interface FeedStore {
  list(): JsonObject[];
  add(written: JsonObject): Promise<JsonObject>;
  update(id: string, changes: JsonObject): Promise<JsonObject>;
  remove(id: string): boolean;
}

/** A session's workspace, for its programs, its skills and people (C7, C8). */
export interface WorkspaceStore {
  /** In the order of their paths. */
  list(): readonly WorkspaceFile[];
  file(path: string): WorkspaceFile | null;
  /** Bytes that all files may have together. */
  readonly maxBytes: number;
  /** The bytes of a file by their hash; null if no file of the workspace has them. @throws EngineError `storage_unavailable` */
  read(sha256: string): Promise<Uint8Array | null>;
  /**
   * Writes files: all of them, or none. A file at a path that is a folder replaces the folder, and the other way round.
   *
   * @param check called in the same turn as the change, directly before it; what it throws refuses the change
   * @throws EngineError `invalid_request` for a path that is not allowed, `workspace_full`, `storage_unavailable`
   */
  write(
    files: readonly { readonly path: string; readonly bytes: Uint8Array; readonly executable?: boolean }[],
    check?: () => void,
  ): Promise<readonly WorkspaceFile[]>;
  /** Removes a file, or all files of a folder. @param check as in `write` @returns what was removed */
  remove(path: string, check?: () => void): Promise<readonly WorkspaceFile[]>;
}

/** The workspace as one attempt of an action sees it (C7). */
export interface ActionWorkspace extends Pick<WorkspaceStore, 'write'> {
  /** Runs a job with the files of this moment. Their bytes stay readable until it has ended. */
  use<T>(job: (workspace: JobWorkspace) => Promise<T>): Promise<T>;
  /**
   * Commits what the attempt's program changed, with an event and its warnings. A second call for the same attempt changes
   * nothing: a recovered job reports its files again (J2).
   *
   * @returns why nothing was committed, or null
   */
  commit(changed: NonNullable<JobResult['workspace']>): Promise<ActionError | null>;
}

/** A session's variables, for internal actions and references. */
export interface VariableStore {
  get(key: string): Json | undefined;
  set(key: string, value: Json): void;
  delete(key: string): boolean;
  entries(): readonly (readonly [string, Json])[];
}
