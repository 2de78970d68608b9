/**
 * The alarm of a session's host: when it is set, what it does, and what follows when nothing is running any more.
 *
 * Owns the decisions: supervision, expiry, pauses of a namespace without keys, writes of the lists of all sessions and
 * their repeats, deletion of relics that nothing can call, deletion of objects of earlier sessions. Does not own the work
 * itself (session.ts) or the platform's alarm and storage (durable/), which are ports.
 *
 * Invariants:
 *  1. An alarm is set before work starts, or in the same turn: a host that ends during the work is woken again (J2).
 *  2. A session whose namespace has no key does no work, but expires (H5).
 *  3. The session of the port is replaced by its deletion, so it is read again after every wait.
 *  4. An alarm that is set is not moved to a slightly later time: it is one write less, and fires a little too early.
 */
import { journaledWhere } from '../../domain/event-table.ts';
import { RUN_TERMINAL_EVENTS } from '../../domain/event.ts';
import type { EventType } from '../../domain/event.ts';
import { limits } from '../../domain/limits.ts';
import type { Logger } from '../../domain/log.ts';
import type { Clock } from '../../domain/ports/clock.ts';
import type { EventBatch } from './broadcaster.ts';
import type { Session } from './session.ts';

/** Events after which other approvals may be open (J8). */
const CHANGES_APPROVALS: ReadonlySet<EventType> = new Set<EventType>([
  'approval_requested',
  'approval_resolved',
  'action_failed',
  'action_cancelled',
  ...RUN_TERMINAL_EVENTS,
]);

/** Events after which the directory may list something else (C6). */
const CHANGES_LISTING: ReadonlySet<EventType> = new Set<EventType>([
  'agent_started',
  'approval_resolved',
  'client_tool_settled',
  ...RUN_TERMINAL_EVENTS,
]);

/** Events after which something may be exported (O1). */
const ENDS: ReadonlySet<EventType> = new Set<EventType>(journaledWhere(({ ends }) => ends !== null));

type AlarmSession = Pick<
  Session,
  | 'exists'
  | 'record'
  | 'expiresAt'
  | 'busy'
  | 'isRecovering'
  | 'nextWake'
  | 'wake'
  | 'close'
  | 'dispose'
  | 'runs'
  | 'hasEnded'
  | 'read'
>;

/** Objects of deleted sessions that are not deleted yet (C2). */
interface DeletedObjects {
  /** When `collect` must be called, epoch milliseconds; null if there are none. */
  readonly dueAt: number | null;
  /** Never rejects. */
  readonly collect: () => Promise<void>;
}

/** Writes the session's open approvals to the list of all sessions (J8). */
interface ApprovalsList {
  /** Whether the list does not have the current requests yet. */
  readonly isBehind: boolean;
  /** Rejects if the list could not be written; it is then still behind. */
  readonly sync: () => Promise<void>;
}

/** Writes the session to the directory of all sessions (C6). */
interface Directory {
  /** When `update` has something to do, epoch milliseconds; null if the directory has everything. */
  readonly dueAt: number | null;
  /** Null if nothing is due. Rejects if the directory could not be written; `dueAt` is then later. */
  readonly update: () => Promise<void> | null;
}

/** Exports traces and metrics to a collector (O1). */
interface Telemetry {
  /** When `update` has something to do, epoch milliseconds; null: nothing. */
  readonly dueAt: number | null;
  /** Never rejects. */
  readonly update: () => Promise<void>;
  readonly wrote: (seq: number) => void;
  readonly ended: () => void;
}

export interface AlarmPorts {
  /** The current session; null if newer code has written its storage (J9). */
  readonly session: () => AlarmSession | null;
  readonly clock: Pick<Clock, 'now'>;
  /** Sets the host's only alarm, epoch milliseconds; replaces the one that was set. */
  readonly setAlarm: (at: number) => Promise<void>;
  /** Keeps the host alive while the promise is pending. */
  readonly keepAlive: (work: Promise<unknown>) => void;
  /** Whether any caller has access to the things of this owner (H5). */
  readonly isServed: (owner: string | null) => boolean;
  readonly approvals: () => ApprovalsList;
  /** Default: there is none. */
  readonly directory?: () => Directory;
  /** Default: nothing is exported. */
  readonly telemetry?: () => Telemetry | null;
  /** Stops and deletes the session's own relics (R5, R6). */
  readonly forgetRelics: () => Promise<void>;
  /** Default: there are none. */
  readonly deletedObjects?: () => DeletedObjects;
  /** Deletes this session with all its data; `session` then returns an empty one. */
  readonly destroy: (session: AlarmSession) => Promise<void>;
  /** The operator's log; it adds the session to each entry. */
  readonly log: Logger;
}

/** A single write may fail while its host lives on. */
const ALARM_ATTEMPTS = 3;

export class SessionAlarm {
  readonly #ports: AlarmPorts;
  /** When the alarm of a session is due, epoch milliseconds; null: unknown, or none is set. A deletion also deletes the alarm. */
  #setFor: { readonly session: AlarmSession | null; readonly at: number } | null = null;

  constructor(ports: AlarmPorts) {
    this.#ports = ports;
  }

  /**
   * Sets the alarm for the next due time of the session and of deleted objects; without both, leaves it as it is. Calls `setAlarm`
   * synchronously, so that what was written in the same turn becomes durable with it.
   */
  async arm(): Promise<void> {
    await this.#arm(0);
  }

  /**
   * Before a session is written: without an alarm, it would not be listed, and would not expire (C6, H1). Its first entry in
   * the directory is due at the same time, so `arm` need not set it again.
   */
  async precede(): Promise<void> {
    await this.#set(this.#ports.clock.now() + limits.watchdogMs);
  }

  /** @param dueMs when to be woken again for something that is due already: 0 means at once */
  async #arm(dueMs: number): Promise<void> {
    const { session: current, clock, approvals } = this.#ports;
    const session = current();
    // Newer code must find the alarm still set when it is deployed again (J9).
    if (session === null) return await this.#set(clock.now() + limits.watchdogMs);
    const isServed = this.#isServed(session);
    const next = isServed ? session.nextWake() : session.expiresAt;
    const deletedAt = this.#ports.deletedObjects?.().dueAt ?? null;
    const listedAt = this.#ports.directory?.().dueAt ?? null;
    const exportedAt = this.#telemetry?.dueAt ?? null;
    // After them: what was due when they were read is due.
    const now = clock.now();
    const times = [next, deletedAt, exportedAt].flatMap((at) => at ?? []);
    if (times.length === 0 && listedAt === null) return;
    const first = Math.min(Infinity, ...times);
    // What a list lacks is being written; the alarm is for a host that ends meanwhile.
    const isBehind = isServed && approvals().isBehind;
    const lists = [isBehind ? now : null, listedAt].flatMap((at) => (at === null ? [] : at));
    const written = lists.map((at) => (at <= now ? now + limits.watchdogMs : at));
    await this.#set(Math.min(first <= now ? now + dueMs : first, ...written));
  }

  async #set(at: number): Promise<void> {
    const { clock, setAlarm, session: current } = this.#ports;
    const { watchdogMs, alarmSlackMs } = limits;
    const session = current();
    const known = this.#setFor?.session === session ? this.#setFor.at : null;
    // Only about the near future: what is due much later is not worth a wake-up of its own.
    const isNear = at <= clock.now() + watchdogMs;
    if (known !== null && isNear && known > clock.now() && known <= at && known >= at - alarmSlackMs) return;
    this.#setFor = { session, at };
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await setAlarm(at);
      } catch (fault) {
        // Work without an alarm would wait for the next client if its host is lost.
        if (attempt < ALARM_ATTEMPTS) continue;
        this.#setFor = null;
        throw fault;
      }
    }
  }

  /**
   * Handles the alarm: for runs without a live host, expiring approvals, periodic feeds, and the session's expiry
   * (J2, J8, F3, H1). Resolves when the next alarm is set; the work goes to `keepAlive`. Rejects only if `setAlarm` does.
   */
  async fire(): Promise<void> {
    this.#setFor = null;
    // What is due is handled now; the alarm is for a host that ends meanwhile.
    await this.#arm(limits.watchdogMs);
    const session = this.#ports.session();
    if (session !== null) this.#ports.keepAlive(this.#wake(session));
  }

  /** Keeps the host alive for a session's work and supervises it (J2): the `hold` port of the session. */
  hold(work: Promise<unknown>): void {
    this.#ports.keepAlive(work.finally(() => this.#idle()));
    this.#ports.keepAlive(this.arm());
  }

  /** Listens to the session's events. */
  published(batch: EventBatch | null): void {
    if (batch !== null) this.#observe(batch);
    if (batch?.some(({ type }) => CHANGES_APPROVALS.has(type)) === true) this.#listApprovals();
    if (batch?.some(({ type }) => CHANGES_LISTING.has(type)) === true) this.#listSession();
  }

  #observe(batch: EventBatch): void {
    const telemetry = this.#telemetry;
    if (telemetry === null) return;
    const first = batch.find(({ seq }) => seq !== null)?.seq ?? null;
    if (first !== null) telemetry.wrote(first);
    if (batch.some(({ type }) => ENDS.has(type))) telemetry.ended();
  }

  get #telemetry(): Telemetry | null {
    return this.#ports.telemetry?.() ?? null;
  }

  /** Writes what the lists of all sessions lack. Called when the session may have changed without an event. */
  updateLists(): void {
    this.#listApprovals();
    this.#listSession();
  }

  #listSession(): void {
    try {
      const update = this.#ports.directory?.().update() ?? null;
      if (update !== null) this.#ports.keepAlive(this.#listed(update));
    } catch (fault) {
      // Readers get their events anyway; the alarm repeats it.
      this.#ports.log('internal_error', { fault });
    }
  }

  async #listed(update: Promise<void>): Promise<void> {
    try {
      await update.catch((fault: unknown) => this.#ports.log('internal_error', { fault }));
      await this.arm();
    } catch (fault) {
      this.#ports.log('internal_error', { fault });
    }
  }

  /** Writes the open approvals to the list of all sessions, if they have changed and are known (J8). */
  #listApprovals(): void {
    const session = this.#ports.session();
    if (session?.exists !== true || session.isRecovering) return;
    const approvals = this.#ports.approvals();
    if (!approvals.isBehind) return;
    const listed = approvals.sync().then(
      () => this.arm(),
      (fault: unknown) => this.#ports.log('internal_error', { fault }),
    );
    this.#ports.keepAlive(listed);
  }

  /** Never rejects: a failure is logged, and the alarm is already set. */
  async #wake(session: AlarmSession): Promise<void> {
    const { clock, destroy, log } = this.#ports;
    try {
      await this.#ports.deletedObjects?.().collect();
      if (session.exists && session.expiresAt <= clock.now() && !session.busy) {
        await session.dispose('the session has expired');
        return await destroy(session);
      }
      const exported = this.#telemetry?.update();
      if (this.#isServed(session)) await session.wake();
      this.updateLists();
      await this.arm();
      if (exported === undefined) return;
      await exported;
      await this.arm();
    } catch (fault) {
      log('internal_error', { fault });
    }
  }

  /** Called at the end of each piece of work. */
  async #idle(): Promise<void> {
    try {
      this.#listSession();
      await this.arm();
      await this.#cleanUp();
    } catch (fault) {
      this.#ports.log('internal_error', { fault });
    }
  }

  /** Deletes the relics of an execution or a child after its only run: nothing can call them any more (R5, R6). */
  async #cleanUp(): Promise<void> {
    const session = this.#ports.session();
    if (session?.exists !== true || session.record.kind === 'chat') return;
    const [run] = session.runs(1);
    if (run === undefined || !session.hasEnded(run.runId)) return;
    if (await session.read().calledRelic(run)) await this.#ports.forgetRelics();
  }

  /** Background work pauses while its namespace has no API key (H5). */
  #isServed(session: AlarmSession): boolean {
    return !session.exists || this.#ports.isServed(session.record.owner);
  }
}
