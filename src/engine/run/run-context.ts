/** The input of a run: its identity, its policy, and the outside world as ports. */
import type { Redaction } from '../../bounded/redaction.ts';
import type { ActionType } from '../../domain/action.ts';
import type { MessageContent } from '../../domain/content.ts';
import type { SessionEvent } from '../../domain/event.ts';
import type { JsonObject } from '../../domain/json.ts';
import type { ResolvedAgent } from '../../domain/manifests/resolved.ts';
import type { WorkflowDefinition } from '../../domain/manifests/workflow.ts';
import type { AutomaticTrigger, ChildSessions } from '../../domain/ports/children.ts';
import type { BlobStore } from '../../domain/ports/storage.ts';
import type { Clock, Random } from '../../domain/ports/clock.ts';
import type { CodeTools } from '../../domain/ports/code-tools.ts';
import type { McpServers } from '../../domain/ports/mcp.ts';
import type { EdgeRelics } from '../../domain/ports/edge-relics.ts';
import type { HtmlReader, OutboundFetch } from '../../domain/ports/outbound.ts';
import type { ModelProvider } from '../../domain/ports/model.ts';
import type { PolicyList } from '../../domain/policy.ts';
import type { UserFacts } from '../../domain/ports/user-facts.ts';
import type { RunnerClient } from '../../domain/ports/runner.ts';
import type { SharedFeeds } from '../../domain/ports/shared-values.ts';
import type { VariableStore } from '../../domain/ports/session-stores.ts';
import type { ThreadShare } from '../../domain/fair-queue.ts';
import type { Pacer } from '../../domain/work.ts';
import type { Executor } from '../../executors/executor.ts';
import type { Journal } from '../../journal/journal.ts';
import type { RunPolicy, SchedulerCommand } from '../../scheduler/types.ts';
import type { ChatTurn, EarlierTurns } from '../../protocol/prompt/chat-turn.ts';
import type { SessionRecord } from '../../domain/session.ts';
import type { RunTrace } from '../../telemetry/run-trace.ts';
import type { OutcomeCache } from '../actions/outcome-cache.ts';
import type { Feeds } from '../feeds/feeds.ts';
import type { SessionWorkspace } from '../session/session-workspace.ts';
import type { LearnedDurations } from '../actions/learned-durations.ts';

/** The source of the text of the run's generations. */
export type RunSource =
  | {
      readonly type: 'model';
      readonly content: MessageContent;
      readonly history: readonly ChatTurn[];
      /** Turns before the history, and summaries; default: there are none (C10). */
      readonly earlier?: EarlierTurns;
      readonly tokens: boolean;
    }
  /**
   * `text`: the whole text if it was posted at once; null while it is arriving. `rerun`: it is one action of an earlier run
   * again; by name, the events with the results that the action refers to (C4).
   */
  | {
      readonly type: 'text';
      readonly chunks: AsyncIterable<string>;
      readonly text: string | null;
      readonly rerun?: {
        readonly action: string;
        readonly names: ReadonlyMap<string, number>;
        readonly at: number | null;
      };
    }
  /** Its actions are declared while the steps run (M6). */
  | {
      readonly type: 'workflow';
      readonly definition: WorkflowDefinition;
      readonly inputs: JsonObject;
      /** Set if no client follows the run (C3). */
      readonly trigger: AutomaticTrigger | null;
    };

/** The session's workspace, as a run uses it. */
export type RunWorkspace = Pick<SessionWorkspace, 'ofAttempt' | 'list'>;

export type RunEnd = Extract<SchedulerCommand, { type: 'end_run' }>;

export interface RunContext {
  readonly sessionId: string;
  /** The session for calls, jobs and relics (T5). */
  readonly sessionKey: string;
  /** Namespace that owns the session; null without keys. */
  readonly owner?: string | null;
  readonly runId: string;
  readonly runNumber: number;
  /** The run that it follows; 0: none (C4). */
  readonly parent: number;
  /** The run that it repeats; null: it is not a retry (C4). */
  readonly retryOf: number | null;
  readonly source: RunSource;
  readonly resolved: ResolvedAgent;
  readonly policy: RunPolicy;
  /** What decides about its actions (C9); absent: nothing does. */
  readonly policies?: readonly PolicyList[];
  readonly journal: Journal;
  readonly publish: (events: readonly SessionEvent[]) => void;
  /**
   * Called when the end of the run is durable, before readers are notified. Called again when a `waiting` run continues
   * and ends.
   */
  readonly ended: (end: RunEnd) => void;
  /**
   * Called in the turn in which the run ends, not when it waits: what is written with it becomes durable with the end.
   *
   * @param cancelReason null: nothing has cancelled it
   */
  readonly ending: (cancelReason: string | null) => void;
  /** Called when an iteration has begun whose generation shows the messages of all earlier ones (C5). */
  readonly shown: (iteration: number) => void;
  readonly clock: Clock;
  /** The session's share of the thread. */
  readonly share: ThreadShare;
  readonly pacer: Pacer;
  readonly random: Random;
  readonly newApprovalId: () => string;
  readonly model: ModelProvider;
  readonly executors: Readonly<Record<ActionType, Executor>>;
  readonly fetch: OutboundFetch;
  readonly readHtml: HtmlReader;
  readonly runner: RunnerClient | null;
  /** Stores that need no runner (R6); null or absent if there are none. */
  readonly edgeRelics?: EdgeRelics | null;
  /** The project's code tools (K2); null or absent if there are none. */
  readonly codeTools?: CodeTools | null;
  readonly mcp?: McpServers | null;
  /** The files of the session's programs (C7); null or absent: it has none. */
  readonly workspace?: RunWorkspace | null;
  /** The bytes of the session's messages; null or absent: there are none. */
  readonly blobs?: BlobStore | null;
  /** Values of feeds that sessions share (F6); null or absent: each session fetches its own. */
  readonly sharedFeeds?: SharedFeeds | null;
  /** Facts about users (C10); null or absent: there are none. */
  readonly userFacts?: UserFacts | null;
  /** Sub-agents and workflows that the run's actions start (M7). */
  readonly children: ChildSessions;
  readonly variables: VariableStore;
  /** Removes secrets of the environment from a text (X3). */
  readonly redact: (text: string) => string;
  /** Redacts patterns in text that leaves (C9); null or absent: there are none. */
  readonly outgoingText?: Redaction | null;
  /** The session's durations by `type/name`; the run adds its own (S5). */
  readonly learned: LearnedDurations;
  readonly outcomeCache: OutcomeCache;
  readonly feeds: Feeds;
  /** The record of the session at its creation. */
  readonly record: SessionRecord;
  /** The identities of its spans (O1); null or absent: it is not traced. */
  readonly trace?: RunTrace | null;
  /** Called when a run that waited for people and clients continues (J8, C3). */
  readonly resumed: () => void;
  /** Called when nothing of a run is running that waits for people and clients: its host is not needed until then. */
  readonly rested: () => void;
  /** The run has begun on this host, and has lost its owner only: the host did not end. Default: false. */
  readonly isSameHost?: boolean;
}
