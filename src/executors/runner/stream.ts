/**
 * The events of a session's jobs on one runner: one event stream, resumed after disconnects, and the jobs that are
 * awaited (R1).
 *
 * Owns: the connection, and the output of each observed job so far. Does not own: submitting jobs.
 * Invariants:
 * 1. Output is reported in order and once, regardless of disconnects, because events are numbered.
 * 2. A stream is open only while its session has jobs, plus a short time for the next one.
 * 3. A job settles once: with its end, or as `lost` if its runner does not know it or is unreachable for too long.
 */
import { createParser } from 'eventsource-parser';

import { isJsonObject, parseObject, type Json, type JsonObject } from '../../domain/json.ts';
import { backoffMs } from '../../domain/backoff.ts';
import { limits } from '../../domain/limits.ts';
import { pause } from '../../domain/sleep.ts';
import type { Clock } from '../../domain/ports/clock.ts';
import type { JobEnd, JobObserver, JobResult } from '../../domain/ports/runner.ts';
import type { WorkspaceResult } from '../../domain/workspace.ts';
import { workspaceResultOf } from './file-transfer.ts';

/** The end of a job, with what it left but without access to the bytes. */
export type WatchedEnd = Omit<JobResult, 'workspace'> & { readonly workspace?: WorkspaceResult };

/** An awaited job. */
export interface Watched {
  readonly id: string;
  readonly observe: JobObserver;
  stdout: string;
  stderr: string;
  /** Whether the runner has accepted it. */
  accepted: boolean;
  /** Events up to this number are included in its record. */
  after: number;
  /** How long its runner may be unreachable. */
  readonly maxSilenceMs: number;
  /** Events that arrived before the record; null once they need not be held. */
  held: JobEvent[] | null;
  settle(result: WatchedEnd): void;
}

interface JobEvent {
  readonly seq: number;
  readonly type: string | undefined;
  readonly payload: JsonObject;
}

const ENDS: ReadonlySet<string> = new Set<JobEnd>([
  'exited',
  'timeout',
  'killed',
  'oom',
  'output_limit',
  'lost',
  'build_failed',
]);
/** Delay before a runner is called again. @param attempt the failed attempt, 1-based */
export function runnerRetryMs(attempt: number): number {
  return backoffMs({ delayMs: limits.runnerRetryMs, maxDelayMs: limits.runnerRetryMaxMs }, attempt);
}

/** The connection to the runner. */
export interface Transport {
  open(target: string, signal: AbortSignal): Promise<Response>;
  lookUp(id: string): Promise<JsonObject | null | undefined>;
  /** Reports contact with the runner, or a failed connection. */
  contact(alive: boolean): void;
  readonly clock: Clock;
}

/** The event stream of one session: opened with its first job, resumed where it was cut, closed after the last. */
export class SessionStream {
  readonly #session: string;
  readonly #transport: Transport;
  readonly #onClose: () => void;
  readonly #jobs = new Map<string, Watched>();
  /** Number of the last received event. */
  #cursor: number | null = null;
  #open: AbortController | null = null;
  #cancelLinger: (() => void) | null = null;
  /** Time of the last contact with the runner. */
  #lastContactAt: number;

  constructor(session: string, transport: Transport, onClose: () => void) {
    this.#session = session;
    this.#transport = transport;
    this.#onClose = onClose;
    this.#lastContactAt = transport.clock.now();
  }

  add(watched: Watched): void {
    this.#jobs.set(watched.id, watched);
    this.#cancelLinger?.();
    this.#cancelLinger = null;
    if (this.#open !== null) return;
    this.#open = new AbortController();
    this.#lastContactAt = this.#transport.clock.now();
    void this.#follow(this.#open.signal);
  }

  remove(id: string): void {
    this.#jobs.delete(id);
    if (this.#jobs.size > 0 || this.#open === null || this.#cancelLinger !== null) return;
    this.#cancelLinger = this.#transport.clock.schedule(limits.runnerLingerMs, () => this.#close());
  }

  #close(): void {
    this.#cancelLinger = null;
    this.#open?.abort();
    this.#open = null;
    this.#onClose();
  }

  /** Reads, and reconnects after every disconnect, until closed. */
  async #follow(closed: AbortSignal): Promise<void> {
    for (let cuts = 0; !closed.aborted; cuts += 1) {
      const received = await this.#read(closed);
      if (closed.aborted) return;
      this.#transport.contact(false);
      if (received) cuts = 0;
      if (this.#jobs.size === 0) {
        // No jobs to wait for: the next one opens a new stream.
        this.#cancelLinger?.();
        this.#close();
        return;
      }
      await this.#catchUp();
      await pause(runnerRetryMs(cuts + 1), this.#transport.clock, closed);
    }
  }

  /** One connection, from open to disconnect. @returns whether anything was received */
  async #read(closed: AbortSignal): Promise<boolean> {
    const { clock } = this.#transport;
    const connection = new AbortController();
    const onClosed = (): void => connection.abort();
    closed.addEventListener('abort', onClosed, { once: true });
    let cancelSilence = clock.schedule(limits.runnerSilenceMs, () => connection.abort());
    let received = false;
    try {
      const after = this.#cursor === null ? '' : `&after=${this.#cursor}`;
      const response = await this.#transport.open(
        `/events?session=${encodeURIComponent(this.#session)}${after}`,
        connection.signal,
      );
      if (!response.ok || response.body === null) {
        await response.body?.cancel();
        return false;
      }
      const parser = createParser({ onEvent: (event) => this.#receive(event.event, event.id, event.data) });
      const decoder = new TextDecoder();
      const reader = response.body.getReader();
      // Aborting the fetch does not necessarily end a body that is being read.
      connection.signal.addEventListener('abort', () => void reader.cancel().catch(() => undefined), { once: true });
      for (;;) {
        const { done, value } = await reader.read();
        if (done || connection.signal.aborted) return received;
        received = true;
        this.#lastContactAt = clock.now();
        this.#transport.contact(true);
        cancelSilence();
        cancelSilence = clock.schedule(limits.runnerSilenceMs, () => connection.abort());
        parser.feed(decoder.decode(value, { stream: true }));
      }
    } catch {
      // A disconnect is not an error: the caller queries its jobs and reconnects.
      return received;
    } finally {
      cancelSilence();
      closed.removeEventListener('abort', onClosed);
      connection.abort();
    }
  }

  #receive(type: string | undefined, id: string | undefined, data: string): void {
    const seq = Number(id);
    if (!Number.isSafeInteger(seq) || (this.#cursor !== null && seq <= this.#cursor)) return;
    this.#cursor = seq;
    const event = parseObject(data);
    const payload = event?.['data'];
    const watched = typeof event?.['job'] === 'string' ? this.#jobs.get(event['job']) : undefined;
    if (watched === undefined || !isJsonObject(payload)) return;
    if (watched.held === null) applyEvent(watched, { seq, type, payload });
    else watched.held.push({ seq, type, payload });
  }

  /** After a disconnect: settles jobs that have ended; they are lost if the runner is unreachable for too long. */
  async #catchUp(): Promise<void> {
    const { clock } = this.#transport;
    for (const watched of this.#jobs.values()) {
      if (!watched.accepted) continue;
      const record = await this.#transport.lookUp(watched.id);
      if (record === undefined) {
        if (clock.now() - this.#lastContactAt > watched.maxSilenceMs) watched.settle(lost(watched));
        continue;
      }
      this.#lastContactAt = clock.now();
      if (record === null) {
        // A restarted runner numbers its events from the beginning.
        this.#cursor = null;
        watched.settle(lost(watched));
      } else if (record['state'] === 'ended') {
        const stdout = remainingOutput(watched, 'stdout', record['stdout']);
        const stderr = remainingOutput(watched, 'stderr', record['stderr']);
        watched.settle(resultOf(record, stdout, stderr));
      }
    }
  }
}

export function watch(
  id: string,
  observe: JobObserver,
  settle: Watched['settle'],
  maxSilenceMs: number = limits.runnerLostMs,
): Watched {
  return { id, observe, maxSilenceMs, stdout: '', stderr: '', accepted: false, after: 0, held: null, settle };
}

function applyEvent(watched: Watched, { seq, type, payload }: JobEvent): void {
  if (seq <= watched.after) return;
  if (type === 'stdout' || type === 'stderr' || type === 'build') {
    const text = payload['text'];
    if (typeof text !== 'string') return;
    if (type !== 'build') watched[type] += text;
    watched.observe.output(type, text);
  } else if (type === 'exited') {
    watched.settle(resultOf(payload, watched.stdout, watched.stderr));
  }
}

/** Merges the runner's record with the stream's events since the record was requested. */
export function mergeRecord(watched: Watched, record: JsonObject | null | undefined, unknown: () => void): void {
  if (record === null) return unknown();
  if (record === undefined) return watched.settle(lost(watched));
  const stdout = remainingOutput(watched, 'stdout', record['stdout']);
  const stderr = remainingOutput(watched, 'stderr', record['stderr']);
  if (record['state'] === 'ended') return watched.settle(resultOf(record, stdout, stderr));
  watched.accepted = true;
  watched.after = typeof record['last_seq'] === 'number' ? record['last_seq'] : 0;
  const held = watched.held ?? [];
  watched.held = null;
  for (const event of held) applyEvent(watched, event);
}

/** The whole output. Reports the part that the stream did not deliver. */
function remainingOutput(watched: Watched, stream: 'stdout' | 'stderr', whole: Json | undefined): string {
  if (typeof whole !== 'string' || whole.length <= watched[stream].length) return watched[stream];
  watched.observe.output(stream, whole.slice(watched[stream].length));
  watched[stream] = whole;
  return whole;
}

export function killed({ stdout, stderr }: Watched): JobResult {
  return { end: 'killed', exitCode: null, stdout, stderr, truncated: false };
}

function lost(watched: Watched): JobResult {
  return { end: 'lost', exitCode: null, stdout: watched.stdout, stderr: watched.stderr, truncated: false };
}

function resultOf(payload: JsonObject, stdout: string, stderr: string): WatchedEnd {
  const end = payload['end'];
  const exitCode = payload['exit_code'];
  return {
    end: typeof end === 'string' && ENDS.has(end) ? (end as JobEnd) : 'lost',
    exitCode: typeof exitCode === 'number' ? exitCode : null,
    stdout,
    stderr,
    truncated: payload['truncated'] === true,
    ...(isJsonObject(payload['workspace']) ? { workspace: leftBy(payload['workspace']) } : {}),
  };
}

function leftBy(report: JsonObject): WorkspaceResult {
  const message = 'The report of the runner about its files is not valid';
  const unreadable = { changes: [], skipped: [], skippedCount: 0, error: { code: 'workspace_lost', message } } as const;
  return workspaceResultOf(report) ?? unreadable;
}
