/**
 * The workspace of a session (C7): which file is at which path, and how actions, skills and people change it.
 *
 * Owns the changes of the table of paths, their limits, and their conflicts. Does not own the bytes (session-files.ts) or
 * the programs.
 *
 * Invariants:
 *  1. The files of one commit, and of one call of `write`, change together or not at all, after their bytes are stored.
 *  2. An attempt commits once: its files, the mark of its commit and the event are one transaction. So are the files that an
 *     action writes, and their event.
 *  3. No path is a file and a folder: the last writer replaces what is in the way.
 *  4. The workspace never grows beyond its limits. A change that would exceed them is refused as a whole.
 *  5. Bytes that an action reads, or that a commit is about to have, are kept until then.
 */
import type { ActionError } from '../../domain/action.ts';
import { EngineError, messageOf, unknownSession } from '../../domain/errors.ts';
import type { EventData } from '../../domain/event.ts';
import { limits } from '../../domain/limits.ts';
import type { ActionWorkspace, WorkspaceStore } from '../../domain/ports/session-stores.ts';
import type { Clock } from '../../domain/ports/clock.ts';
import type { JobResult, JobWorkspace } from '../../domain/ports/runner.ts';
import { pathIssue } from '../../domain/workspace.ts';
import type { WorkspaceChange, WorkspaceFile } from '../../domain/workspace.ts';
import type { Journal } from '../../journal/journal.ts';
import { sha256Hex } from '../../domain/sha256.ts';
import type { SessionFiles } from './session-files.ts';
import { freePath } from './upload-path.ts';
import { changedFiles, conflictNote, quoted, skippedNote } from './workspace-notes.ts';
import { planChanges } from './workspace-plan.ts';
import type { WorkspacePlan } from './workspace-plan.ts';

/** An attempt of an action, as its commit needs it. */
export interface CommittingAttempt {
  /** Unique in the session: the runtime key with the attempt. */
  readonly key: string;
  readonly run: number;
  /** Aborted: the attempt no longer counts, and nothing of it is committed. */
  readonly signal: AbortSignal;
  /** Runs `body` atomically, with the events that it appends. */
  readonly atomically: <T>(body: () => T) => T;
  readonly append: (data: EventData['file_changed']) => void;
  readonly warn: (code: 'workspace_conflict' | 'workspace_skipped', message: string) => void;
}

interface WorkspacePorts {
  readonly journal: Journal;
  readonly clock: Clock;
  readonly files: SessionFiles;
  /** Whether large files are objects: then the workspace may be larger. */
  readonly hasObjects: boolean;
  /** Accounts for work of the thread, in steps. */
  readonly charge: (steps: number) => void;
  readonly isGone: () => boolean;
}

export class SessionWorkspace implements WorkspaceStore {
  readonly #ports: WorkspacePorts;
  readonly #journal: Journal;

  constructor(ports: WorkspacePorts) {
    this.#ports = ports;
    this.#journal = ports.journal;
  }

  get maxBytes(): number {
    return this.#ports.hasObjects ? limits.workspaceObjectBytes : limits.workspaceBytes;
  }

  list(): readonly WorkspaceFile[] {
    return this.#journal.workspace.list();
  }

  file(path: string): WorkspaceFile | null {
    return this.#journal.workspace.get(path);
  }

  async read(sha256: string): Promise<Uint8Array | null> {
    this.#requireOpen();
    return this.#journal.workspace.uses(sha256) ? await this.#ports.files.read(sha256) : null;
  }

  async write(
    files: readonly { readonly path: string; readonly bytes: Uint8Array; readonly executable?: boolean }[],
    check: () => void = () => undefined,
    attempt: Pick<CommittingAttempt, 'atomically' | 'append'> | null = null,
  ): Promise<readonly WorkspaceFile[]> {
    for (const { path, bytes } of files) {
      const issue = pathIssue(path);
      if (issue !== null) throw new EngineError('invalid_request', `${quoted(path)} cannot be a path: ${issue}`);
      if (bytes.length > limits.workspaceFileBytes) throw tooLarge(path, bytes.length);
    }
    const hashed = await Promise.all(files.map(async (file) => ({ ...file, sha256: await sha256Hex(file.bytes) })));
    const changes = hashed.map(({ path, sha256, bytes, executable = false }) => ({
      path,
      base: null,
      sha256,
      size: bytes.length,
      executable,
    }));
    this.#requireOpen();
    this.#requireFit(changes);
    const release = this.#ports.files.hold(new Set(hashed.map(({ sha256 }) => sha256)));
    let written: readonly WorkspaceFile[];
    try {
      for (const { sha256, bytes } of hashed) await this.#store(sha256, bytes);
      this.#requireOpen();
      check();
      const write = (): readonly WorkspaceFile[] => {
        this.#apply(changes);
        const now = changes.flatMap(({ path }) => this.file(path) ?? []);
        if (now.length > 0) attempt?.append(changedFiles({ written: now, deleted: [] }));
        return now;
      };
      written = attempt === null ? this.#journal.atomically(write) : attempt.atomically(write);
    } finally {
      release();
    }
    await this.#journal.sync();
    return written;
  }

  async remove(path: string, check: () => void = () => undefined): Promise<readonly WorkspaceFile[]> {
    this.#requireOpen();
    check();
    const one = this.file(path);
    const gone = one === null ? this.#journal.workspace.below(path) : [one];
    this.#journal.atomically(() => this.#apply(gone.map((file) => ({ path: file.path, base: null, deleted: true }))));
    await this.#journal.sync();
    return gone;
  }

  /** Refers to the files of messages, in the transaction with their message. Files that do not fit are left out. */
  addUploads(files: readonly { readonly name: string; readonly sha256: string; readonly size: number }[]): void {
    for (const { name, sha256, size } of files) {
      const known = this.list();
      const path = freePath(name, sha256, known);
      const change = { path, base: null, sha256, size, executable: false };
      if (this.#fitIssue(planChanges(known, [change], 0)) === null) this.#apply([change]);
    }
  }

  ofAttempt(attempt: CommittingAttempt): ActionWorkspace {
    return {
      use: (body) => this.#use(body),
      commit: (changed) => this.#commit(attempt, changed),
      write: (files) => this.write(files, () => attempt.signal.throwIfAborted(), attempt),
    };
  }

  async #use<T>(body: (workspace: JobWorkspace) => Promise<T>): Promise<T> {
    const files = this.list();
    const release = this.#ports.files.hold(new Set(files.map(({ sha256 }) => sha256)));
    try {
      return await body({
        files,
        maxBytes: this.maxBytes,
        read: async (sha256) => {
          const bytes = await this.#ports.files.read(sha256);
          this.#ports.charge((bytes?.length ?? 0) * limits.bodyByteSteps);
          if (bytes !== null) return bytes;
          throw new EngineError('storage_unavailable', `The bytes of ${nameOf(files, sha256)} are no longer stored`);
        },
      });
    } finally {
      release();
    }
  }

  async #commit(attempt: CommittingAttempt, changed: NonNullable<JobResult['workspace']>): Promise<ActionError | null> {
    const { changes, skippedCount, error } = changed;
    if (this.#journal.workspace.isCommitted(attempt.key)) return null;
    if (error !== null) return { ...error, retryable: false };
    const written = changes.filter((change) => 'sha256' in change);
    const release = this.#ports.files.hold(new Set(written.map(({ sha256 }) => sha256)));
    try {
      await this.#fetch(changed, new Set(written.map(({ sha256 }) => sha256)), attempt.signal);
      attempt.signal.throwIfAborted();
      this.#requireOpen();
      this.#requireSizes(written);
      attempt.atomically(() => {
        if (this.#journal.workspace.isCommitted(attempt.key)) return;
        const plan = this.#apply(changes);
        const isEmpty = plan.written.length + plan.deleted.length === 0;
        if (changes.length + skippedCount === 0) return;
        // Also if the files are there already: found again after a crash, they would replace those of later writers.
        this.#journal.workspace.committed(attempt.key, attempt.run);
        if (!isEmpty) attempt.append(changedFiles(plan));
        if (plan.conflicts.length > 0) attempt.warn('workspace_conflict', conflictNote(plan.conflicts));
        if (skippedCount > 0) attempt.warn('workspace_skipped', skippedNote(changed));
      });
      return null;
    } catch (fault) {
      if (attempt.signal.aborted)
        return { code: 'aborted', message: messageOf(attempt.signal.reason), retryable: false };
      const code = fault instanceof EngineError && fault.code === 'workspace_full' ? fault.code : 'workspace_lost';
      return { code, message: `Its files could not be kept: ${messageOf(fault)}`, retryable: false };
    } finally {
      release();
    }
  }

  /** @throws EngineError `unknown_session`, `session_full`, `storage_unavailable` */
  async #store(sha256: string, bytes: Uint8Array): Promise<void> {
    this.#requireOpen();
    this.#ports.charge(bytes.length * limits.bodyByteSteps);
    await this.#ports.files.store(sha256, bytes);
  }

  /** Stores the bytes without a holder. */
  async #fetch(
    { read }: NonNullable<JobResult['workspace']>,
    hashes: ReadonlySet<string>,
    signal: AbortSignal,
  ): Promise<void> {
    const missing = new Set([...hashes].filter((sha256) => !this.#journal.blobs.has(sha256)));
    if (missing.size === 0) return;
    let storing: Promise<void>[] = [];
    try {
      for await (const [sha256, bytes] of read([...missing], signal)) {
        if (!missing.has(sha256) || (await sha256Hex(bytes)) !== sha256) continue;
        missing.delete(sha256);
        const stored = this.#store(sha256, bytes);
        // It may fail before it is awaited.
        stored.catch(() => undefined);
        storing.push(stored);
        if (storing.length < limits.objectsAtOnce) continue;
        await Promise.all(storing);
        storing = [];
      }
      await Promise.all(storing);
    } finally {
      await Promise.allSettled(storing);
    }
    if (missing.size > 0) throw new Error(`the runner did not send the bytes of ${missing.size} files`);
  }

  /** A wrong size would evade the limits, and would be in the way of every later job. */
  #requireSizes(files: readonly { readonly path: string; readonly sha256: string; readonly size: number }[]): void {
    const wrong = files.find(({ sha256, size }) => this.#journal.blobs.sizeOf(sha256) !== size);
    if (wrong !== undefined) throw new Error(`the runner reported a wrong size of ${quoted(wrong.path)}`);
  }

  /** Changes the table. In a transaction; the bytes are stored. @throws EngineError `workspace_full` */
  #apply(changes: readonly WorkspaceChange[]): WorkspacePlan {
    const { workspace, blobs } = this.#journal;
    const plan = this.#requireFit(changes);
    this.#ports.charge((plan.files + changes.length) * limits.workspaceFileSteps);
    for (const path of plan.deleted) workspace.delete(path);
    for (const file of plan.written) {
      blobs.refer(file.sha256, 'workspace');
      workspace.set(file);
    }
    this.#ports.files.released(plan.released);
    return plan;
  }

  #requireFit(changes: readonly WorkspaceChange[]): WorkspacePlan {
    const plan = planChanges(this.list(), changes, this.#ports.clock.now());
    const issue = this.#fitIssue(plan);
    if (issue !== null) throw new EngineError('workspace_full', issue);
    return plan;
  }

  /** Why the workspace would be too large; null if it would not, or if it was and shrinks. */
  #fitIssue({ files, bytes }: WorkspacePlan): string | null {
    const { files: filesBefore, bytes: bytesBefore } = this.#journal.workspace.totals;
    const hint = 'delete files that are no longer needed';
    if (files > Math.max(limits.workspaceFiles, filesBefore)) {
      return `The workspace would have ${files} files (allowed: ${limits.workspaceFiles}); ${hint}`;
    }
    if (bytes <= Math.max(this.maxBytes, bytesBefore)) return null;
    return `The workspace would have ${bytes} bytes (allowed: ${this.maxBytes}); ${hint}`;
  }

  #requireOpen(): void {
    if (this.#ports.isGone()) throw unknownSession();
  }
}

function tooLarge(path: string, size: number): EngineError {
  const message = `The file ${quoted(path)} has ${size} bytes (allowed: ${limits.workspaceFileBytes})`;
  return new EngineError('workspace_full', message);
}

function nameOf(files: readonly WorkspaceFile[], sha256: string): string {
  return quoted(files.find((file) => file.sha256 === sha256)?.path ?? sha256.slice(0, 12));
}
