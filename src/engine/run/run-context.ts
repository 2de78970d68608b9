/** What a run is given: its identity, its policy, and the outside world as ports. */
import type { ActionType } from '../../domain/action.ts';
import type { SessionEvent } from '../../domain/event.ts';
import type { JsonObject } from '../../domain/json.ts';
import type { ResolvedAgent, WorkflowDefinition } from '../../domain/manifest.ts';
import type {
  ChildSessions,
  Clock,
  EdgeRelics,
  HtmlReader,
  ModelProvider,
  OutboundFetch,
  Random,
  RunnerClient,
  VariableStore,
} from '../../domain/ports.ts';
import type { ThreadShare } from '../../domain/fair-queue.ts';
import type { Pacer } from '../../domain/work.ts';
import type { Executor } from '../../executors/executor.ts';
import type { Journal } from '../../journal/journal.ts';
import type { RunPolicy, SchedulerCommand } from '../../scheduler/types.ts';
import type { ChatTurn } from '../../protocol/prompt/chat-turn.ts';
import type { SessionRecord } from '../../domain/session.ts';
import type { OutcomeCache } from '../actions/outcome-cache.ts';
import type { Feeds } from '../feeds/feeds.ts';
import type { LearnedDurations } from '../actions/learned-durations.ts';

/** Where the text of the run's generations comes from. */
export type RunSource =
  | {
      readonly type: 'model';
      readonly content: string;
      readonly history: readonly ChatTurn[];
      readonly tokens: boolean;
    }
  /** `text`: all of it, where it was posted whole; null while it is still arriving. */
  | { readonly type: 'text'; readonly chunks: AsyncIterable<string>; readonly text: string | null }
  /** The text is written as the steps go on (M6). */
  | { readonly type: 'workflow'; readonly definition: WorkflowDefinition; readonly inputs: JsonObject };

export type RunEnd = Extract<SchedulerCommand, { type: 'end_run' }>;

export interface RunContext {
  readonly sessionId: string;
  /** Name of the API key that the session belongs to; null without keys. */
  readonly owner?: string | null;
  readonly runId: string;
  readonly runNumber: number;
  readonly source: RunSource;
  readonly resolved: ResolvedAgent;
  readonly policy: RunPolicy;
  readonly journal: Journal;
  readonly publish: (events: readonly SessionEvent[]) => void;
  /**
   * The run has ended, and that is on disk; readers are told right after. Called again when a run
   * that was `waiting` goes on and ends.
   */
  readonly ended: (end: RunEnd) => void;
  readonly clock: Clock;
  /** What the session uses of the thread. */
  readonly share: ThreadShare;
  readonly pacer: Pacer;
  readonly random: Random;
  readonly newApprovalId: () => string;
  readonly model: ModelProvider;
  readonly executors: Readonly<Record<ActionType, Executor>>;
  readonly fetch: OutboundFetch;
  readonly readHtml: HtmlReader;
  readonly runner: RunnerClient | null;
  /** Stores that need no runner (R6); null or absent where there are none. */
  readonly edgeRelics?: EdgeRelics | null;
  /** Sub-agents and workflows that the run's actions start (M7). */
  readonly children: ChildSessions;
  readonly variables: VariableStore;
  /** Durations of the session by `type/name`; the run adds its own (S5). */
  readonly learned: LearnedDurations;
  readonly earlier: OutcomeCache;
  readonly feeds: Feeds;
  /** The session as it was created. */
  readonly record: SessionRecord;
  /** A run that waited for a person is at work again (J8). */
  readonly resumed: () => void;
}
