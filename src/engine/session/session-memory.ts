/**
 * State shared by the runs of one session. Variables and durations are read from the journal on first use.
 *
 * Invariant: the runs of the current branch share the current variables, also those that began before the session came back
 * to this branch. Runs of other branches have the variables of their branch (C4).
 */
import { limits } from '../../domain/limits.ts';
import { LearnedDurations } from '../actions/learned-durations.ts';
import { OutcomeCache } from '../actions/outcome-cache.ts';
import { Feeds } from '../feeds/feeds.ts';
import type { RunContext } from '../run/run-context.ts';
import type { SessionPorts } from './session-ports.ts';
import { RunVariables, SessionVariables } from './session-variables.ts';

export class SessionMemory implements Pick<RunContext, 'learned' | 'outcomeCache' | 'feeds'> {
  readonly outcomeCache: OutcomeCache;
  readonly feeds: Feeds;
  readonly #journal: SessionPorts['journal'];
  #variables: SessionVariables | null = null;
  /** Of the runs in memory. */
  readonly #ofRuns = new Map<number, RunVariables>();
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
   * The variables of a run, until `forgetRun`.
   *
   * @param begins the run begins now; otherwise it was interrupted, and the session may have continued another branch since
   */
  variablesOf(run: number, begins: boolean): RunVariables {
    const { runs, variables } = this.#journal;
    const isCurrent = begins || runs.isAncestor(run, variables.tip());
    const found = new RunVariables(isCurrent ? this.variables : new SessionVariables(this.#journal, variables.at(run)));
    this.#ofRuns.set(run, found);
    return found;
  }

  forgetRun(run: number): void {
    this.#ofRuns.delete(run);
  }

  /**
   * The variables become those at the end of a run (C4). What an action of another branch still changes is journaled, and
   * counts when that branch continues.
   */
  restoreVariables(last: number): void {
    const { runs, variables } = this.#journal;
    variables.restore(last);
    const again = new SessionVariables(this.#journal);
    const ofBranch = [...this.#ofRuns].flatMap(([run, own]) => (runs.isAncestor(run, last) ? [own] : []));
    this.#journal.whenWritten(() => {
      this.#variables?.detach();
      this.#variables = again;
      for (const own of ofBranch) own.store = again;
    });
  }

  get learned(): LearnedDurations {
    this.#learned ??= new LearnedDurations(this.#journal.history.durations());
    return this.#learned;
  }
}
