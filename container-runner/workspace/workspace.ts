/**
 * The files that a job's program sees at `/workspace`, and what it leaves there (C7): the interface between jobs, which
 * know sessions and the cache of files, and sandboxes, which know programs.
 */
import type { Readable } from 'node:stream';

/** One file at the start of a job. */
export interface GivenFile {
  /** Relative to the workspace; validated. */
  readonly path: string;
  readonly size: number;
  readonly executable: boolean;
  /** Epoch milliseconds. */
  readonly modifiedAt: number;
  /** Where its bytes are on this machine. */
  readonly source: string;
}

/** What an entry of the workspace is, as the sandbox sees it. */
export type EntryKind = 'file' | 'folder' | 'symlink' | 'hardlink' | 'device' | 'fifo' | 'socket' | 'unknown';

/** An entry that a program left. Everything in it is hostile: the program may have written it itself. */
export interface LeftEntry {
  readonly path: string;
  readonly kind: EntryKind;
  readonly executable: boolean;
  /** Bytes of a file, as announced; 0 for other kinds. */
  readonly size: number;
}

/** Takes what a program left, entry by entry, and enforces the limits. */
export interface WorkspaceReceiver {
  /**
   * Takes one entry. The bytes of a file are read to their end, or the receiver destroys the stream.
   *
   * @returns false: a limit is exceeded, nothing of the workspace will be kept, and the sandbox may stop
   */
  entry(entry: LeftEntry, bytes: Readable | null): Promise<boolean>;
  /** All entries have been taken. Without this call, what was taken is incomplete and is not kept. */
  complete(): void;
}

export interface LaunchWorkspace {
  readonly files: readonly GivenFile[];
  /** Called once the program has ended by itself and all its processes are gone. */
  readonly receiver: WorkspaceReceiver;
}
