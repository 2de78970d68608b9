/** The outside world of a session, as ports. */
import type { Logger } from '../../domain/log.ts';
import type { ResolvedAgent, ResolvedWorkflow } from '../../domain/manifests/resolved.ts';
import type { PolicyRule } from '../../domain/policy.ts';
import type { ObjectStore } from '../../domain/ports/storage.ts';
import type { SessionRecord } from '../../domain/session.ts';
import type { Journal } from '../../journal/journal.ts';
import type { Sampling } from '../../telemetry/run-trace.ts';
import type { RecoveryQueue } from '../replay/recovery-queue.ts';
import type { RunContext } from '../run/run-context.ts';
import type { Redactor } from './redact.ts';

/** The session itself creates the rest of a run's context. */
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
  | 'codeTools'
  | 'mcp'
  | 'blobs'
  | 'sharedFeeds'
  | 'userFacts'
  | 'children'
> {
  readonly journal: Journal;
  /** For large files of messages (C2). Default: all files are in the session's database. */
  readonly objects?: ObjectStore | null;
  /** Notes about work of an earlier host (J2). */
  readonly recoveryQueue: Pick<RecoveryQueue, 'take' | 'end' | 'forgive'>;
  /**
   * Looks up the current definition of the session's agent or workflow and stores it for runs that start with it (M4).
   *
   * @returns the key for `resolve` and `workflow`; null if nothing has to be stored
   */
  readonly pin: (record: SessionRecord) => Promise<string | null>;
  readonly resolve: (agent: string, pin: string | null) => ResolvedAgent | null;
  readonly workflow: (name: string, pin: string | null) => ResolvedWorkflow | null;
  /** The deployment's policies (C9). Default: none. */
  readonly policies?: readonly PolicyRule[];
  readonly modelFor: (resolved: ResolvedAgent) => RunContext['model'];
  /** Keeps the host alive while the promise is pending (J2). */
  readonly hold: (work: Promise<unknown>) => void;
  /** How long the session is kept after its last activity (H1). Default: `limits.sessionExpiryMs`. */
  readonly expiryMs?: number;
  /** Minimum period of a periodic feed (F3). Default: `limits.feedMinMs`. */
  readonly feedMinMs?: number;
  /** Removes secrets of the environment from a text (X3). */
  readonly redact: Redactor;
  /** Patterns of text that leaves no session of the deployment (C9). Default: none. */
  readonly redactPatterns?: readonly string[];
  /** Which runs are traced (O1). Default: none, and callers' spans are passed on. */
  readonly sampling?: Sampling | null;
  /** The operator's log; it adds the session to each entry. */
  readonly log: Logger;
}

/** The ports, as used by the parts of a session. */
export type SessionScope = SessionPorts & Pick<RunContext, 'pacer' | 'workspace'>;
