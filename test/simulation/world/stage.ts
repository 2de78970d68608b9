/** What all parts of a world share: its time, its disk, and the record of what happened. */
import type { Fact } from '../observation.ts';
import { sessionKey } from '../../../src/domain/session.ts';
import type { SessionIdentity } from '../../../src/domain/session.ts';
import type { History } from '../history.ts';
import { actionsOf } from '../script.ts';
import type { BrokenPorts } from './broken-ports.ts';
import { CREATE_NOTES, Disk } from './disk.ts';
import { storedFiles } from './files.ts';
import { TimeQueue } from './queue.ts';
import { FailingStatements } from './statements.ts';

export type FactWithoutTime = Fact extends infer F ? (F extends Fact ? Omit<F, 'at'> : never) : never;

/** The session's id in every history. */
export const SESSION_ID = `ses_${'a'.repeat(32)}`;

interface SeenIds {
  readonly runs: Set<string>;
  readonly approvals: Set<string>;
  readonly artifacts: Set<string>;
  readonly calls: Set<string>;
  /** Numbers of the runs of accepted messages, in the order of their answers. */
  readonly accepted: Set<number>;
}

/** Epoch milliseconds at the beginning. */
export const EPOCH_MS = 1_000_000_000_000;

export class Stage {
  readonly history: History;
  readonly time: TimeQueue;
  readonly disk = new Disk();
  /** How often the session was deleted: the number of the current one, from 0. */
  incarnation = 0;
  readonly #facts: Fact[][] = [[]];
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
  /** What clients have seen of each session, by number: ids of runs, approvals, and files in results. */
  readonly #seen: SeenIds[] = [];
  #created = 0;
  /** The random part of each session's ids, by number. */
  readonly #incarnations: string[] = [];
  /** Called when the alarm was set or lost. */
  alarmChanged = (): void => undefined;
  /** Called when a client sees a call. */
  callShown: (call: string, token: string) => void = () => undefined;

  /** Whether there is an index of all sessions. */
  readonly hasIndex: boolean;
  /** Whether traces are exported. */
  readonly hasCollector: boolean;
  /** Whether there are several runners. */
  readonly hasFleet: boolean;
  /** Whether messages have files. */
  readonly hasFiles: boolean;
  /** Whether a script calls a tool of the client. */
  readonly hasClientCalls: boolean;

  readonly statements: FailingStatements;
  /** Ports that do not keep their promises. */
  readonly broken: BrokenPorts;

  constructor(history: History, broken: BrokenPorts) {
    this.history = history;
    this.broken = broken;
    this.statements = new FailingStatements(history.faults, () => this.isCalm);
    this.hasIndex = history.faults.some(({ type }) => type === 'index');
    this.hasCollector = history.faults.some(({ type }) => type === 'collector');
    this.hasFleet = history.faults.some(({ type }) => type === 'runner');
    this.hasFiles = history.messages.some(({ files }) => files.length > 0);
    this.hasClientCalls = history.messages.some(({ generations }) =>
      generations.some((script) => actionsOf(script).some(({ target }) => target === 'client')),
    );
    this.time = new TimeQueue(history.order);
  }

  /** A session is made: its incarnation. Ids of calls contain the beginning only. */
  nextIncarnation(): string {
    this.#created += 1;
    const created = this.broken.incarnation?.(this.#created) ?? this.#created;
    const random = created.toString(16).padStart(6, '0').repeat(2);
    this.#incarnations[this.incarnation] = random;
    return random;
  }

  /** The session with this number, as it was made last. */
  identity(incarnation: number): SessionIdentity {
    return { session_id: SESSION_ID, incarnation: this.#incarnations[incarnation] ?? '' };
  }

  /**
   * The session was deleted; the next one may get its id.
   *
   * @param notes what is kept instead, and the alarm for it, on the hosts' clock
   */
  sessionDeleted(
    isAsked: boolean,
    notes: readonly (readonly [string, unknown])[] = [],
    alarm: number | null = null,
  ): void {
    this.note({ type: 'deleted', isAsked });
    this.disk.clear();
    if (notes.length > 0) {
      this.disk.exec(CREATE_NOTES, [], true);
      for (const [key, value] of notes) {
        this.disk.exec(`INSERT INTO notes (key, value) VALUES (?, ?)`, [key, JSON.stringify(value)], true);
      }
      this.disk.alarm = alarm;
      this.disk.commit();
    }
    this.incarnation += 1;
    this.alarmChanged();
  }

  /**
   * Whether this call is for the session that makes it. Every history begins after a session with the same id was deleted,
   * so targets have its answers, under the keys that it had: they give them at once, and do no work.
   */
  isOwnKey(key: string, incarnation: number): boolean {
    if (key.startsWith(`${sessionKey(this.identity(incarnation))}/`)) return true;
    this.note({ type: 'earlier_answer', key }, incarnation);
    return false;
  }

  /** @param incarnation the session that the fact is about; default: the current one */
  note(fact: FactWithoutTime, incarnation: number = this.incarnation): void {
    this.factsOf(incarnation).push({ at: this.time.now, ...fact } as Fact);
  }

  factsOf(incarnation: number): Fact[] {
    return (this.#facts[incarnation] ??= []);
  }

  seenOf(incarnation: number): SeenIds {
    return (this.#seen[incarnation] ??= {
      runs: new Set(),
      approvals: new Set(),
      artifacts: new Set(),
      calls: new Set(),
      accepted: new Set(),
    });
  }

  /** Notes whether the session is on disk, and how much of the history that it begins with. */
  noteStored(): void {
    if (this.history.seeded.length === 0) return;
    const rows = (table: string): number =>
      this.disk.has(table)
        ? Number(this.disk.exec(`SELECT COUNT(*) AS count FROM ${table}`, [], false)[0]?.['count'])
        : 0;
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
    this.disk.alarm = this.broken.losesAlarm === true ? null : at;
    this.alarmChanged();
  }
}
