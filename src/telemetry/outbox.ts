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
import { within } from '../domain/sleep.ts';

const CURSOR = 'telemetry';

export const SIGNALS = ['traces', 'metrics'] as const;
export type Signal = (typeof SIGNALS)[number];

/** What one export sends: the bodies of its requests. */
export type Export = Readonly<Record<Signal, readonly string[]>>;

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
  /** Synchronous storage beside the session's tables: a part of `DurableObjectStorage.kv`. */
  readonly storage: {
    readonly get: <T>(key: string) => T | undefined;
    readonly put: (key: string, value: unknown) => void;
  };
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
  /** What ended after one event, up to another one. */
  readonly read: (range: { readonly after: number; readonly until: number; readonly since: number }) => Promise<{
    readonly sent: Export;
    /** Time of the last event, epoch milliseconds. */
    readonly at: number;
  }>;
  readonly send: (signal: Signal, body: string, timeoutMs: number) => Promise<SendResult>;
  readonly log: Logger;
}

export class TelemetryOutbox {
  readonly #ports: TelemetryPorts;
  #isWriting = false;
  #isClosed = false;
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

  /** A run begins: from the first one on, the export has a place in the journal. */
  began(): void {
    const journal = this.#isClosed || this.#cursor !== null ? null : this.#ports.journal();
    if (journal !== null) this.#ports.storage.put(CURSOR, { seq: journal.first, at: 0 } satisfies Cursor);
  }

  /** When `update` has something to do, epoch milliseconds; null: nothing. */
  get dueAt(): number | null {
    if (this.#isClosed) return null;
    // The alarm is for a host that ends meanwhile.
    if (this.#isWriting) return this.#ports.clock.now() + limits.telemetryTimeoutMs;
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
    if (this.#isWriting || dueAt === null || dueAt > this.#ports.clock.now()) return;
    await this.#exportAll(limits.telemetryTimeoutMs);
  }

  /** The session is being deleted: exports what it has not exported, once. Never rejects. */
  async close(): Promise<void> {
    const { clock } = this.#ports;
    const last = this.#isWriting || this.dueAt === null ? null : this.#exportAll(limits.telemetryCloseMs);
    if (last !== null)
      await within(
        last.then(() => true),
        limits.telemetryCloseMs,
        clock,
        false,
      );
    this.#isClosed = true;
  }

  async #exportAll(timeoutMs: number): Promise<void> {
    this.#isWriting = true;
    try {
      while (await this.#exportNext(timeoutMs));
    } catch (fault) {
      if (!this.#isClosed) this.#ports.log('internal_error', { fault });
    } finally {
      this.#isWriting = false;
      this.#due = undefined;
    }
  }

  /** @returns whether more is due at once */
  async #exportNext(timeoutMs: number): Promise<boolean> {
    const journal = this.#isClosed ? null : this.#ports.journal();
    if (journal === null) return false;
    const { seq, at: since, failed } = this.#position(journal);
    const { lastSeq } = journal;
    const until = failed?.until ?? Math.min(lastSeq, seq + limits.telemetryEvents);
    if (until <= seq) return false;
    const { sent, at } = await this.#ports.read({ after: seq, until, since });
    const done: Signal[] = [...(failed?.done ?? [])];
    let why: { readonly text: string; readonly afterMs: number | null } | null = null;
    for (const signal of SIGNALS.filter((one) => !done.includes(one))) {
      const result = await this.#send(signal, sent[signal], timeoutMs);
      if (result.type === 'refused') this.#drop(`${signal}: ${result.why}`, 'refused');
      if (result.type === 'failed') why = { text: `${signal}: ${result.why}`, afterMs: result.afterMs };
      else done.push(signal);
    }
    if (this.#isClosed) return false;
    if (why !== null && (failed?.failures ?? 0) + 1 < limits.telemetryAttempts) {
      this.#repeat({ seq, at: since, until, done, failures: (failed?.failures ?? 0) + 1, afterMs: why.afterMs });
      return false;
    }
    if (why !== null) this.#drop(why.text, 'unavailable');
    this.#ports.storage.put(CURSOR, { seq: until, at } satisfies Cursor);
    return failed === undefined && until < lastSeq;
  }

  async #send(signal: Signal, bodies: readonly string[], timeoutMs: number): Promise<SendResult> {
    for (const body of bodies) {
      const result = await this.#ports.send(signal, body, timeoutMs);
      if (result.type !== 'sent') return result;
    }
    return { type: 'sent' };
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

  #drop(message: string, code: 'refused' | 'unavailable'): void {
    this.#ports.log('telemetry_dropped', { code, message });
  }

  #position(journal: NonNullable<ReturnType<TelemetryPorts['journal']>>): Cursor {
    return this.#cursor ?? { seq: journal.first, at: 0 };
  }

  get #cursor(): Cursor | null {
    return this.#ports.storage.get<Cursor>(CURSOR) ?? null;
  }
}
