/**
 * What the ports of a world do instead of what they promise. The simulation must notice each of these faults
 * (../broken/switches.ts): they reach the real engine in its usual way, and no text of it is changed.
 */
import type { SessionEvent } from '../../../src/domain/event.ts';
import type { ResolvedAgent } from '../../../src/domain/manifests/resolved.ts';
import type { ModelRequest } from '../../../src/domain/ports/model.ts';
import type { SqlValue } from '../../../src/domain/ports/storage.ts';
import type { EventBatch } from '../../../src/engine/session/broadcaster.ts';
import type { CallResult } from '../../../src/engine/session/session-calls.ts';
import type { ActionCall } from '../../../src/executors/executor.ts';
import type { ForkPage } from '../../../src/engine/session/session-fork.ts';
import type { WorkspaceResult } from '../../../src/domain/workspace.ts';

/** Each member is one switch. An absent one means that its port keeps its promise. */
export interface BrokenPorts {
  /** Storage: whether a statement that writes takes place. */
  readonly writes?: (text: string, parameters: readonly SqlValue[]) => boolean;
  /** Storage: a sync is answered before the write is durable, or is never carried out. */
  readonly sync?: 'early' | 'never';
  /** Clock: the time that a host reads. */
  readonly now?: (ms: number) => number;
  /** Clock: a timer that was cancelled counts on. */
  readonly keepsTimers?: boolean;
  /** Platform: the alarm is not set. */
  readonly losesAlarm?: boolean;
  /** Platform: the random part of the ids of a new session. */
  readonly incarnation?: (created: number) => number;
  /** Catalogue: the definition that a session gets. */
  readonly agent?: (agent: ResolvedAgent) => ResolvedAgent;
  /** Executor: the call that arrives. */
  readonly call?: (call: ActionCall) => ActionCall;
  /** Runner: the files that a job has left, as they arrive. */
  readonly left?: (workspace: WorkspaceResult) => WorkspaceResult;
  /** Code tools: a report is lost. */
  readonly losesReports?: boolean;
  /** Model: what it writes. */
  readonly text?: (text: string) => string;
  /** Model: how its generation ends. */
  readonly finish?: <Finish extends string>(finish: Finish) => Finish | 'stop';
  /** Model: the request that arrives. */
  readonly request?: (request: ModelRequest) => ModelRequest;
  /** Clients: the decision that arrives. */
  readonly decision?: (approved: boolean) => boolean;
  /** Clients: the result of a call that arrives. */
  readonly result?: (result: CallResult) => CallResult;
  /** Streams: what arrives of a batch of events; null: nothing. */
  readonly batch?: (batch: EventBatch) => EventBatch | null;
  /** Streams: an event of the journal as it is read. */
  readonly event?: (event: SessionEvent) => SessionEvent;
  /** Streams: the compact frames of a batch. */
  readonly compact?: (frames: readonly string[]) => readonly string[];
  /** Streams of other protocols: how often their nth piece arrives. */
  readonly pieces?: (nth: number) => number;
  /** Directory: a write is answered and lost. */
  readonly losesEntries?: boolean;
  /** Collector: traces are answered and lost. */
  readonly losesSpans?: boolean;
  /** Forks: the events of a page that arrives. */
  readonly page?: (page: ForkPage) => ForkPage;
}
