/**
 * Exports the spans and metrics of one session to the collector (O1, O2).
 *
 * Owns the cursor in the journal, the repeats after failures, and when the next export is due. Does not own the alarm
 * (engine/session/session-alarm.ts), the requests (send.ts), or what is read: they are ports.
 *
 * Invariants:
 *  1. The cursor moves after the collector's answer, so a lost host or answer repeats the export: at least once, with the same
 *     ids.
 *  2. One export at a time. A repeat is about the same events, and sends only the signals that the collector does not have.
 *  3. Repeats are bounded. What was dropped is reported in the operator's log.
 *  4. Nothing is stored before the first run begins, and nothing after `close`.
 */
import { backoffMs } from '../domain/backoff.ts';
import { limits } from '../domain/limits.ts';
import type { Logger } from '../domain/log.ts';
import type { Clock } from '../domain/ports/clock.ts';
import type { NoteStorage } from '../domain/ports/storage.ts';
import { within } from '../domain/sleep.ts';

const CURSOR = 'telemetry';

export const SIGNALS = ['traces', 'metrics'] as const;
export type Signal = (typeof SIGNALS)[number];

/** The body of one request. */
export interface Part {
  readonly signal: Signal;
  readonly body: string;
}

/** The parts of an export as they are read; at the end, the time of the last event, epoch milliseconds. */
export type Parts = AsyncGenerator<Part, number>;

export type SendResult =
  | { readonly type: 'sent' }
  /** The collector does not take it, now or later. */
  | { readonly type: 'refused'; readonly why: string }
  /** @param afterMs the collector's own wish; null: none */
  | { readonly type: 'failed'; readonly why: string; readonly afterMs: number | null };

interface Cursor {
  /** The last exported event. */
  readonly seq: number;
  /** Its time, epoch milliseconds. */
  readonly at: number;
  /** An export that has failed. */
  readonly failed?: {
    readonly until: number;
    readonly done: readonly Signal[];
    readonly failures: number;
    readonly dueAt: number;
  };
}

export interface TelemetryPorts {
  readonly storage: Pick<NoteStorage, 'get' | 'put'>;
  readonly clock: Clock;
  /** The journal; null: there is no session, or newer code has written it. */
  readonly journal: () => {
    /** The last durable event. */
    readonly lastSeq: number;
    /** Where the export of a session begins that has exported nothing: before the runs that are open, and the newest one. */
    readonly first: number;
    /** Whether a run is open. */
    readonly hasOpen: boolean;
    /** Time of the first end after this event, epoch milliseconds; null: nothing has ended. */
    readonly endAfter: (seq: number) => number | null;
  } | null;
  /** What ended after one event, up to another one. `since`: the time of the first one. */
  readonly read: (range: { readonly after: number; readonly until: number; readonly since: number }) => Parts;
  readonly send: (signal: Signal, body: string, timeoutMs: number) => Promise<SendResult>;
  readonly log: Logger;
}

export class TelemetryOutbox {
  readonly #ports: TelemetryPorts;
  /** Pending while an export is under way. */
  #export: Promise<void> | null = null;
  #isClosed = false;
  /** Whether the cursor is known to be stored. */
  #isPlaced = false;
  /** When the next export is due; undefined: not known, because something has ended. */
  #due: number | null | undefined;

  constructor(ports: TelemetryPorts) {
    this.#ports = ports;
    // A host that ended before it has stored where the export begins: later runs must not hide what is open now.
    const journal = this.#cursor === null ? ports.journal() : null;
    if (journal?.hasOpen === true) ports.storage.put(CURSOR, { seq: journal.first, at: 0 } satisfies Cursor);
  }

  /** Something has ended: it is exported soon. */
  ended(): void {
    this.#due = undefined;
  }

  /** Events were written: from the first ones on, the export has a place in the journal. @param seq the first of them */
  wrote(seq: number): void {
    if (this.#isPlaced || this.#isClosed) return;
    const journal = this.#cursor === null ? this.#ports.journal() : null;
    const place = journal === null ? null : Math.min(seq - 1, journal.first);
    if (place !== null) this.#ports.storage.put(CURSOR, { seq: place, at: 0 } satisfies Cursor);
    this.#isPlaced = true;
  }

  /** When `update` has something to do, epoch milliseconds; null: nothing. */
  get dueAt(): number | null {
    if (this.#isClosed) return null;
    // The alarm is for a host that ends meanwhile.
    if (this.#export !== null) return this.#ports.clock.now() + limits.telemetryTimeoutMs;
    if (this.#due === undefined) this.#due = this.#nextDue();
    return this.#due;
  }

  #nextDue(): number | null {
    const journal = this.#ports.journal();
    if (journal === null) return null;
    const { seq, failed } = this.#position(journal);
    if (failed !== undefined) return failed.dueAt;
    const end = journal.lastSeq <= seq ? null : journal.endAfter(seq);
    return end === null ? null : end + limits.telemetryDelayMs;
  }

  /** Exports what is due. Never rejects. */
  async update(): Promise<void> {
    const { dueAt } = this;
    if (this.#export !== null || dueAt === null || dueAt > this.#ports.clock.now()) return;
    await this.#exportAll(limits.telemetryTimeoutMs, false);
  }

  /** The session is being deleted: exports what it has not exported, once. Never rejects. */
  async close(): Promise<void> {
    const last = async (): Promise<boolean> => {
      await this.#export;
      if (this.dueAt !== null) await this.#exportAll(limits.telemetryCloseMs, true);
      return this.dueAt === null;
    };
    const isWhole = await within(last(), limits.telemetryCloseMs, this.#ports.clock, false);
    this.#isClosed = true;
    if (!isWhole) this.#drop('the session was deleted before the collector had everything', 'deleted');
  }

  /** @param isLast the session is being deleted: also what is not due, and what is still to be repeated */
  async #exportAll(timeoutMs: number, isLast: boolean): Promise<void> {
    const exporting = async (): Promise<void> => {
      try {
        while (await this.#exportNext(timeoutMs, isLast));
      } catch (fault) {
        if (!this.#isClosed) this.#ports.log('internal_error', { fault });
      } finally {
        this.#export = null;
        this.#due = undefined;
      }
    };
    this.#export = exporting();
    await this.#export;
  }

  /** @returns whether more is due at once */
  async #exportNext(timeoutMs: number, isLast: boolean): Promise<boolean> {
    const journal = this.#isClosed ? null : this.#ports.journal();
    if (journal === null) return false;
    const { seq, at: since, failed } = this.#position(journal);
    const { lastSeq } = journal;
    const until = failed?.until ?? Math.min(lastSeq, seq + limits.telemetryEvents);
    if (until <= seq) return false;
    const sent = await this.#send({ after: seq, until, since }, failed?.done ?? [], timeoutMs);
    if (this.#isClosed) return false;
    const { done, why } = sent;
    const failures = (failed?.failures ?? 0) + 1;
    if (why !== null && failures < limits.telemetryAttempts) {
      this.#repeat({ seq, at: since, until, done, failures, afterMs: why.afterMs });
      return false;
    }
    if (why !== null) this.#drop(why.text, 'unavailable');
    this.#ports.storage.put(CURSOR, { seq: until, at: sent.at ?? since } satisfies Cursor);
    return until < lastSeq && (isLast || failed === undefined);
  }

  /** @param done signals that the collector has already */
  async #send(
    range: { readonly after: number; readonly until: number; readonly since: number },
    done: readonly Signal[],
    timeoutMs: number,
  ): Promise<{
    readonly done: readonly Signal[];
    readonly why: { readonly text: string; readonly afterMs: number | null } | null;
    readonly at: number | null;
  }> {
    const failed = new Map<Signal, { readonly text: string; readonly afterMs: number | null }>();
    const refused = new Map<Signal, string>();
    let at: number | null = null;
    try {
      const parts = this.#ports.read(range);
      for (let next = await parts.next(); ; next = await parts.next()) {
        if (next.done === true) {
          at = next.value;
          break;
        }
        const { signal, body } = next.value;
        // A later part can be taken even if an earlier one was refused, but not if the collector is away.
        if (done.includes(signal) || failed.has(signal) || this.#isClosed) continue;
        const result = await this.#ports.send(signal, body, timeoutMs);
        if (result.type === 'refused') refused.set(signal, result.why);
        if (result.type === 'failed') failed.set(signal, { text: `${signal}: ${result.why}`, afterMs: result.afterMs });
      }
    } catch (fault) {
      this.#ports.log('internal_error', { fault });
      return { done, why: { text: 'the events could not be read', afterMs: null }, at: null };
    }
    for (const [signal, why] of refused) this.#drop(`${signal}: ${why}`, 'refused');
    const [why = null] = failed.values();
    return { done: SIGNALS.filter((signal) => !failed.has(signal)), why, at };
  }

  #repeat(given: {
    readonly seq: number;
    readonly at: number;
    readonly until: number;
    readonly done: readonly Signal[];
    readonly failures: number;
    readonly afterMs: number | null;
  }): void {
    const { seq, at, until, done, failures, afterMs } = given;
    const waits = { delayMs: limits.telemetryRetryMs, maxDelayMs: limits.telemetryRetryMostMs };
    const delayMs = Math.max(backoffMs(waits, failures), Math.min(afterMs ?? 0, limits.telemetryRetryMostMs));
    const dueAt = this.#ports.clock.now() + delayMs;
    this.#ports.storage.put(CURSOR, { seq, at, failed: { until, done, failures, dueAt } } satisfies Cursor);
  }

  #drop(message: string, code: 'refused' | 'unavailable' | 'deleted'): void {
    this.#ports.log('telemetry_dropped', { code, message });
  }

  #position(journal: NonNullable<ReturnType<TelemetryPorts['journal']>>): Cursor {
    return this.#cursor ?? { seq: journal.first, at: 0 };
  }

  get #cursor(): Cursor | null {
    return this.#ports.storage.get<Cursor>(CURSOR) ?? null;
  }
}
