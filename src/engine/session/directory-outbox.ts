/**
 * Brings the lists of all sessions and their runs up to date with one session, and with those that were deleted in its
 * object (C6, H1). One write has what both lists lack.
 *
 * Owns the notes about what the index has, what it must forget, and the next attempt after a failure. Does not own the
 * alarm (session-alarm.ts), the session's entry (session-listing.ts) or the index: they are ports.
 *
 * Invariants:
 *  1. What the index is known to have is stored after its answer, and unknown from before a write is sent until then. So a
 *     lost host or answer repeats the write, also if the session returns to the entry that was known before.
 *  2. Each write has a number that was stored before it was sent, so the index ignores what arrives late: from an earlier
 *     host, or after the write has failed because it had no answer in time.
 *  3. One write at a time, with the newest state. Deleted sessions first: no id is listed twice.
 *  4. No timer is held while nothing is running or written: a running or new session waits for `limits.directoryDelayMs`
 *     before it is written, a write for `limits.directoryTimeoutMs`, and a failed write for the alarm.
 *  5. Nothing is stored after `close`, which precedes the deletion of the session. The notes that it returns survive it.
 */
import { backoffMs } from '../../domain/backoff.ts';
import type { DirectoryEntry, DirectoryIndex } from '../../domain/directory.ts';
import type { ListedRuns, UnlistedRuns } from '../../domain/execution.ts';
import { EngineError } from '../../domain/errors.ts';
import { limits } from '../../domain/limits.ts';
import type { Clock } from '../../domain/ports/clock.ts';
import type { NoteStorage } from '../../domain/ports/storage.ts';
import { within } from '../../domain/sleep.ts';

/** Keys of the notes: about the current session, about the next attempt, and about each deleted session. */
const LISTED = 'directory';
const RETRY = 'directory:retry';
const UNLISTED = 'directory:unlisted:';

/** Identifies a session in the index. */
interface Whose {
  readonly owner: string | null;
  readonly session_id: string;
  /** Empty for a session without one. */
  readonly incarnation: string;
}

interface Listed extends Whose {
  /** Of the last write that was sent. */
  readonly number: number;
  /** The entry that the index has, as JSON; null: unknown, or the session has none. */
  readonly entry: string | null;
  /** The runs that it has. */
  readonly runs: ListedRuns;
}

interface Retry {
  readonly failures: number;
  readonly dueAt: number;
}

/** A note, as it is stored. */
export type DirectoryNote = readonly [key: string, value: unknown];

export interface ListedSession {
  readonly whose: Whose;
  /** Null: the directory does not list it. */
  readonly entry: DirectoryEntry | null;
  /** It has no run yet. */
  readonly isNew: boolean;
  /** @param known see run-listing.ts */
  readonly runs: (known: ListedRuns | null) => UnlistedRuns;
}

export interface DirectoryOutboxPorts {
  readonly storage: NoteStorage;
  /** The session; null if there is none, nothing of it is listed, or its state is not known yet. */
  readonly current: () => ListedSession | null;
  /** The index that lists this session. */
  readonly index: (owner: string | null, sessionId: string) => DirectoryIndex;
  readonly clock: Clock;
}

export class DirectoryOutbox {
  readonly #ports: DirectoryOutboxPorts;
  #isWriting = false;
  /** Ends the delay before a write. */
  #hurry: (() => void) | null = null;
  /** The number of the first write, which was stored with the session; null: the write was sent, or another host stored it. */
  #reserved: number | null = null;
  #isClosed = false;

  constructor(ports: DirectoryOutboxPorts) {
    this.#ports = ports;
  }

  /** Whether the index does not have the current state yet. */
  get isBehind(): boolean {
    if (this.#isClosed) return false;
    if (this.hasUnlisted) return true;
    const current = this.#ports.current();
    if (current === null) return false;
    const listed = this.#listed;
    if (current.entry !== null && JSON.stringify(current.entry) !== (listed?.entry ?? null)) return true;
    const known = listed?.runs ?? null;
    return lacks(current.runs(known), known);
  }

  /** Whether the index must still forget a deleted session. */
  get hasUnlisted(): boolean {
    const [note] = this.#ports.storage.list({ prefix: UNLISTED });
    return note !== undefined;
  }

  /** When `update` has something to do, epoch milliseconds; null if the index has everything. */
  get dueAt(): number | null {
    return this.isBehind ? (this.#retry?.dueAt ?? this.#ports.clock.now()) : null;
  }

  /**
   * Writes the current state, if it is due. Called after anything that may have changed it.
   *
   * @returns resolves when the index has everything; rejects if a write has failed, which is repeated from `dueAt` on.
   *   Null if nothing is due, or an earlier call does it.
   */
  update(): Promise<void> | null {
    if (this.#isWriting) {
      if (!this.#mayWait()) this.#hurry?.();
      return null;
    }
    const { dueAt } = this;
    return dueAt === null || dueAt > this.#ports.clock.now() ? null : this.#write();
  }

  /** @returns the notes that must be kept when the session and everything else in the storage is deleted */
  close(): DirectoryNote[] {
    const { storage } = this.#ports;
    const notes: DirectoryNote[] = [...storage.list({ prefix: UNLISTED })];
    // While the number is only reserved, the index has seen nothing of the session.
    const listed = this.#isClosed || this.#reserved !== null ? null : this.#listed;
    this.#isClosed = true;
    this.#hurry?.();
    if (listed !== null) {
      const { owner, session_id, incarnation } = listed;
      notes.push([`${UNLISTED}${incarnation}`, { owner, session_id, incarnation } satisfies Whose]);
    }
    const retry = this.#retry;
    return notes.length === 0 || retry === null ? notes : [...notes, [RETRY, retry]];
  }

  async #write(): Promise<void> {
    this.#isWriting = true;
    try {
      while (this.isBehind) {
        if (this.#mayWait()) {
          this.#reserve();
          await this.#delay();
        }
        if (!this.isBehind) return;
        await this.#writeNext();
        if (!this.#isClosed && this.#retry !== null) this.#ports.storage.delete(RETRY);
      }
    } catch (fault) {
      if (this.#isClosed) return;
      this.#failed();
      throw fault;
    } finally {
      this.#isWriting = false;
    }
  }

  #failed(): void {
    const failures = (this.#retry?.failures ?? 0) + 1;
    const waits = { delayMs: limits.directoryRetryMs, maxDelayMs: limits.directoryRetryMostMs };
    const dueAt = this.#ports.clock.now() + backoffMs(waits, failures);
    this.#ports.storage.put(RETRY, { failures, dueAt } satisfies Retry);
  }

  async #writeNext(): Promise<void> {
    const { storage, index, current } = this.#ports;
    const [unlisted] = storage.list<Whose>({ prefix: UNLISTED });
    if (unlisted !== undefined) {
      const [key, { owner, session_id: id, incarnation }] = unlisted;
      await this.#answered(index(owner, id).forget(id, incarnation));
      if (!this.#isClosed) storage.delete(key);
      return;
    }
    const found = current();
    if (found === null) return;
    const { whose, entry } = found;
    const { owner, session_id, incarnation } = whose;
    const known = this.#listed;
    const { entries: runs, listed } = found.runs(known?.runs ?? null);
    const reserved = this.#reserved;
    this.#reserved = null;
    const number = reserved ?? (known?.number ?? 0) + 1;
    // Runs have no numbers: their ends replace what they were before, in any order.
    if (known === null) storage.put(LISTED, { ...whose, number, entry: null, runs: NO_RUNS } satisfies Listed);
    else if (entry !== null && reserved === null)
      storage.put(LISTED, { ...known, ...whose, number, entry: null } satisfies Listed);
    await this.#answered(index(owner, session_id).write({ session_id, incarnation, number, entry, runs }));
    if (this.#isClosed) return;
    const text = entry === null ? null : JSON.stringify(entry);
    storage.put(LISTED, { ...whose, number, entry: text, runs: listed } satisfies Listed);
  }

  /** @throws EngineError `directory_unavailable` if the index does not answer in time */
  async #answered(write: Promise<void>): Promise<void> {
    const answer = write.then(() => true);
    if (await within(answer, limits.directoryTimeoutMs, this.#ports.clock, false)) return;
    const message = `The directory of sessions did not answer a write within ${limits.directoryTimeoutMs} ms`;
    throw new EngineError('directory_unavailable', message);
  }

  /** A running session keeps its host anyway, and may change again soon. A new one usually gets its first message at once. */
  #mayWait(): boolean {
    if (this.#isClosed || this.hasUnlisted) return false;
    const current = this.#ports.current();
    return current?.entry != null && (current.entry.status === 'running' || current.isNew);
  }

  /** Stores the number of the first write, usually in the turn in which the session is created: then it costs no commit of its own. */
  #reserve(): void {
    const found = this.#ports.current();
    if (found?.isNew !== true || this.#listed !== null) return;
    this.#reserved = 1;
    this.#ports.storage.put(LISTED, { ...found.whose, number: 1, entry: null, runs: NO_RUNS } satisfies Listed);
  }

  async #delay(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const cancel = this.#ports.clock.schedule(limits.directoryDelayMs, resolve);
    this.#hurry = () => {
      cancel();
      resolve();
    };
    await promise;
    this.#hurry = null;
  }

  get #listed(): Listed | null {
    return this.#ports.storage.get<Listed>(LISTED) ?? null;
  }

  get #retry(): Retry | null {
    return this.#ports.storage.get<Retry>(RETRY) ?? null;
  }
}

const NO_RUNS: ListedRuns = { through: 0, open: [] };

/** Whether a write is due; a run that has only begun is noted with the next one. */
function lacks({ entries, listed }: UnlistedRuns, known: ListedRuns | null): boolean {
  if (entries.length > 0) return true;
  // Further runs may follow those that were read.
  return listed.through >= (known?.through ?? 0) + limits.listedRuns;
}
