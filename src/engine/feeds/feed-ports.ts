/** What fetching a feed needs. */
import type { JsonObject } from '../../domain/json.ts';
import type { ResolvedAgent } from '../../domain/manifests/resolved.ts';
import type { Usage } from '../../domain/ports/model.ts';
import type { SessionRecord } from '../../domain/session.ts';
import type { Journal } from '../../journal/journal.ts';
import type { RunContext } from '../run/run-context.ts';

/** The dependencies of a fetch. */
export interface FeedPorts extends Pick<
  RunContext,
  | 'clock'
  | 'pacer'
  | 'random'
  | 'executors'
  | 'fetch'
  | 'readHtml'
  | 'runner'
  | 'edgeRelics'
  | 'codeTools'
  | 'mcp'
  | 'sharedFeeds'
  | 'userFacts'
  | 'children'
  | 'model'
  | 'policies'
  | 'variables'
> {
  readonly journal: Journal;
  /** The current run; absent between runs. */
  readonly runNumber?: number;
  readonly record: SessionRecord;
  readonly resolved: ResolvedAgent;
  /** Called with the model usage of a feed. */
  readonly used: (usage: Usage) => void;
  /** The current run's state; null between runs. */
  readonly moment: { readonly iteration: number; readonly usage: JsonObject } | null;
}
