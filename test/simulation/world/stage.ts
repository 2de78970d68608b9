/** What all parts of a world share: its time, its disk, and the record of what happened. */
import type { Fact } from '../observation.ts';
import { sessionKey } from '../../../src/domain/session.ts';
import type { SessionIdentity } from '../../../src/domain/session.ts';
import type { History } from '../history.ts';
import { Disk } from './disk.ts';
import { storedFiles } from './files.ts';
import { TimeQueue } from './queue.ts';

type FactWithoutTime = Fact extends infer F ? (F extends Fact ? Omit<F, 'at'> : never) : never;

/** The session's id in every history. */
export const SESSION_ID = `ses_${'a'.repeat(32)}`;

/** Epoch milliseconds at the beginning. */
export const EPOCH_MS = 1_000_000_000_000;

export class Stage {
  readonly history: History;
  readonly time: TimeQueue;
  readonly disk = new Disk();
  readonly facts: Fact[] = [];
  /** How far the hosts' clocks are wrong, in milliseconds. */
  clockErrorMs = 0;
  /** How long a sync takes. */
  syncMs = 0;
  isDiskFull = false;
  /** The disk has failed: runs may have been ended from outside, and have no complete record. */
  hasDiskFailed = false;
  /** Ids of runs that are not recovered any more: they were ended from outside, so their record has no end. */
  readonly abandoned = new Set<string>();
  /** The history is over: no fault happens any more. */
  isCalm = false;
  nextApproval = 1;
  /** Ids of the files in results that clients have seen. */
  readonly artifacts: string[] = [];
  #incarnations = 0;
  /** Called when the alarm was set or lost. */
  alarmChanged = (): void => undefined;
  /** Called when a client sees a call. */
  callShown: (call: string, token: string) => void = () => undefined;

  /** Whether messages have files. */
  readonly hasFiles: boolean;

  constructor(history: History) {
    this.history = history;
    this.hasFiles = history.messages.some(({ files }) => files.length > 0);
    this.time = new TimeQueue(history.order);
  }

  /** A session is made: its incarnation. */
  nextIncarnation(): string {
    this.#incarnations += 1;
    return this.#incarnations.toString(16).padStart(12, '0');
  }

  /** The session that was made last. */
  get identity(): SessionIdentity {
    return { session_id: SESSION_ID, incarnation: this.#incarnations.toString(16).padStart(12, '0') };
  }

  /**
   * Whether this call is for the current session. Every history begins after a session with the same id was deleted, so
   * targets have its answers, under the keys that it had: they give them at once, and do no work.
   */
  isOwnKey(key: string): boolean {
    if (key.startsWith(`${sessionKey(this.identity)}/`)) return true;
    this.note({ type: 'earlier_answer', key });
    return false;
  }

  note(fact: FactWithoutTime): void {
    this.facts.push({ at: this.time.now, ...fact } as Fact);
  }

  /** Notes whether the session is on disk, and how much of the history that it begins with. */
  noteStored(): void {
    if (this.history.seeded.length === 0) return;
    const rows = (table: string): number => {
      const isThere = this.disk.exec(`SELECT 1 FROM sqlite_master WHERE name = ?`, [table], false).length > 0;
      return isThere ? Number(this.disk.exec(`SELECT COUNT(*) AS count FROM ${table}`, [], false)[0]?.['count']) : 0;
    };
    this.note({ type: 'stored', exists: rows('session') > 0, messages: rows('seeded') });
  }

  noteFiles(): void {
    if (this.hasFiles) this.note({ type: 'files_stored', ...storedFiles(this.disk) });
  }

  /** The time that hosts see, epoch milliseconds. */
  get hostNow(): number {
    return EPOCH_MS + this.time.now + this.clockErrorMs;
  }

  /** From now until the hosts' clock shows this time. */
  untilHostTime(at: number): number {
    return at - this.hostNow;
  }

  /** @param at epoch milliseconds on the hosts' clock */
  setAlarm(at: number | null): void {
    this.disk.alarm = at;
    this.alarmChanged();
  }
}
