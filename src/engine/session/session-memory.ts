/** State shared by the runs of one session. Variables and durations are read from the journal on first use. */
import { limits } from '../../domain/limits.ts';
import { LearnedDurations } from '../actions/learned-durations.ts';
import { OutcomeCache } from '../actions/outcome-cache.ts';
import { Feeds } from '../feeds/feeds.ts';
import type { RunContext } from '../run/run-context.ts';
import type { SessionPorts } from './session-ports.ts';
import { SessionVariables } from './session-variables.ts';

export class SessionMemory implements Pick<RunContext, 'variables' | 'learned' | 'outcomeCache' | 'feeds'> {
  readonly outcomeCache: OutcomeCache;
  readonly feeds: Feeds;
  readonly #journal: SessionPorts['journal'];
  #variables: SessionVariables | null = null;
  #learned: LearnedDurations | null = null;

  /** @param changed called when the displayed value of a feed changes */
  constructor({ journal, clock, feedMinMs }: SessionPorts, changed: ConstructorParameters<typeof Feeds>[3]) {
    this.#journal = journal;
    this.outcomeCache = new OutcomeCache(journal, clock);
    this.feeds = new Feeds(journal, clock, feedMinMs ?? limits.feedMinMs, changed);
  }

  get variables(): SessionVariables {
    this.#variables ??= new SessionVariables(this.#journal);
    return this.#variables;
  }

  /** They are read again: the session has just been created with them. */
  forgetVariables(): void {
    this.#variables = null;
  }

  /**
   * The variables become those at the end of a run (C4). What an action of another branch still changes is journaled, and
   * counts when that branch continues.
   */
  restoreVariables(last: number): void {
    this.#variables?.detach();
    this.#variables = null;
    this.#journal.variables.restore(last);
  }

  get learned(): LearnedDurations {
    this.#learned ??= new LearnedDurations(this.#journal.history.durations());
    return this.#learned;
  }
}
