/** The operator's log: a closed set of events with their fields (X5, docs/observability.md). */

export type LogLevel = 'info' | 'warn' | 'error';

interface LogRow {
  readonly level: LogLevel;
  /**
   * Repeats are limited: one entry per `limits.logRepeatMs` for equal values of these fields, with the number of
   * repeats. Absent: every event is an entry.
   */
  readonly once?: readonly (keyof LogFields)[];
}

/** Level and repeats of each event. */
export const LOG_EVENTS = {
  /** A run ended as `failed`. */
  run_failed: { level: 'error' },
  /** A workflow that is due could not be started. */
  schedule_failed: { level: 'error', once: ['namespace', 'workflow', 'code'] },
  /** A webhook request was not accepted. */
  webhook_refused: { level: 'warn', once: ['namespace', 'workflow', 'code'] },
  /** A setting has a value without an effect; the system serves without it. */
  setting_invalid: { level: 'warn', once: ['message'] },
  /** A runner has not answered for `limits.runnerReportMs`. */
  runner_unreachable: { level: 'error' },
  /** A runner that was reported as unreachable answers again. */
  runner_reachable: { level: 'info' },
  /** A model could not write the summary of a conversation; prompts have a line for each turn instead. */
  summary_failed: { level: 'warn', once: ['namespace', 'agent', 'code'] },
  /** The collector has refused traces or metrics, or was unreachable for too long: they are dropped. */
  telemetry_dropped: { level: 'warn', once: ['code'] },
  /** Work is not continued, because the host froze or ended repeatedly while it recovered it. */
  work_quarantined: { level: 'error' },
  /** A request was answered with a status of 500 or above that has a code. */
  request_failed: { level: 'error', once: ['path', 'code'] },
  /** An unexpected error. */
  internal_error: { level: 'error' },
} as const satisfies Record<string, LogRow>;

export type LogEvent = keyof typeof LOG_EVENTS;

/** Fields of an entry, none of them with text of prompts, messages or results. */
export interface LogFields {
  readonly message?: string;
  readonly code?: string;
  readonly session_id?: string;
  readonly run_id?: string;
  readonly agent?: string;
  readonly workflow?: string;
  /** What created the session: `chat`, `execution` or `child`. */
  readonly kind?: string;
  /** The namespace that it belongs to; absent if it was made without keys. */
  readonly namespace?: string;
  /** The URL of a runner. */
  readonly runner?: string;
  readonly method?: string;
  readonly path?: string;
  /** The error behind an `internal_error`: gives the message and the stack. */
  readonly fault?: unknown;
}

/** Writes an entry. Secrets are removed, and long fields are cut. */
export type Logger = (event: LogEvent, fields: LogFields) => void;
