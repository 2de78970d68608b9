/** What a session needs of the outside world. */
import type { ResolvedAgent, ResolvedWorkflow } from '../../domain/manifest.ts';
import type { RunRecord, SessionRecord } from '../../domain/session.ts';
import type { Journal } from '../../journal/journal.ts';
import type { RecoveryQueue } from '../replay/recovery-queue.ts';
import type { RunContext } from '../run/run-context.ts';
import type { Redactor } from './redact.ts';

/** The rest of a run's context is made by the session itself. */
export interface SessionPorts extends Pick<
  RunContext,
  | 'clock'
  | 'share'
  | 'random'
  | 'newApprovalId'
  | 'executors'
  | 'fetch'
  | 'readHtml'
  | 'runner'
  | 'edgeRelics'
  | 'children'
> {
  readonly journal: Journal;
  /** Notes about work that an earlier host left (J2). */
  readonly recoveryQueue: Pick<RecoveryQueue, 'take' | 'end' | 'forgive'>;
  /**
   * Looks up what the session's agent or workflow means now and keeps it for runs that start with it (M4).
   *
   * @returns what `resolve` and `workflow` find it by; null when nothing has to be kept
   */
  readonly pin: (record: SessionRecord) => Promise<string | null>;
  readonly resolve: (agent: string, pin: string | null) => ResolvedAgent | null;
  readonly workflow: (name: string, pin: string | null) => ResolvedWorkflow | null;
  readonly modelFor: (resolved: ResolvedAgent) => RunContext['model'];
  /** Keeps the host alive while the promise is pending (J2). */
  readonly hold: (work: Promise<unknown>) => void;
  /** How long the session is kept after its last activity (H1). Default: `limits.sessionExpiryMs`. */
  readonly expiryMs?: number;
  /** Least period of a periodic feed (F3). Default: `limits.feedMinMs`. */
  readonly feedMinMs?: number;
  /** Takes secrets of the environment out of a text (X3). */
  readonly redact: Redactor;
  /** Told of faults that are ours. */
  readonly log: (fault: unknown) => void;
  /** Told when a run has ended. */
  readonly runEnded: (run: RunRecord) => void;
}

/** The ports as the parts of a session use them. */
export type SessionScope = SessionPorts & Pick<RunContext, 'pacer'>;
