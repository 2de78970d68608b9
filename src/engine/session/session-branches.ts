/**
 * The session as a tree of runs (C4): its head, its branches, and runs that repeat a message or an action of another run.
 *
 * Owns where a new run is in the tree. Does not own the tree's storage (journal/run-table.ts) or the checks of a message
 * (session-admission.ts).
 */
import type { MessageContent } from '../../domain/content.ts';
import { EngineError, unknownSession } from '../../domain/errors.ts';
import type { Json } from '../../domain/json.ts';
import { limits } from '../../domain/limits.ts';
import type { RunPlace, RunRecord } from '../../domain/session.ts';
import { runIdOf } from '../../journal/run-id.ts';
import { messageIdOf } from '../run/message-id.ts';
import { rerunInput } from './rerun.ts';
import { recordOf } from './run-setup.ts';
import type { MessageRequest, SessionAdmission } from './session-admission.ts';
import type { Accepted } from './session-steering.ts';
import type { SessionMemory } from './session-memory.ts';
import { requireForkable } from './session-fork.ts';
import type { SessionRuns } from './session-runs.ts';
import type { SessionScope } from './session-ports.ts';

/** `at`: epoch milliseconds. */
interface ReceivedMessage {
  readonly message_id: string;
  readonly content: MessageContent;
  readonly metadata: Json | undefined;
  readonly at: number;
}

interface BranchesParts {
  readonly scope: SessionScope;
  readonly runs: SessionRuns;
  readonly memory: SessionMemory;
  readonly admission: SessionAdmission;
  /** What an earlier host left unfinished comes first (J3): its runs have the variables of their own branch. */
  readonly recover: () => Promise<void>;
  /** A run as it is now. */
  readonly current: (record: RunRecord) => RunRecord;
}

export class SessionBranches {
  readonly #scope: SessionScope;
  readonly #parts: BranchesParts;

  constructor(parts: BranchesParts) {
    this.#scope = parts.scope;
    this.#parts = parts;
  }

  /** The run that the next message follows; null if there is none. */
  get head(): RunRecord | null {
    const { runs } = this.#scope.journal;
    const found = runs.get(runs.head);
    return found === null ? null : this.#parts.current(found);
  }

  /**
   * The next message follows this run. Resolves when that is durable. The variables become those of the branch; if a run is
   * active or waits, when the next one begins: it continues with those that it has.
   *
   * @throws EngineError `unknown_session` if the session was closed meanwhile
   */
  async moveHead({ run }: RunRecord): Promise<void> {
    await this.#parts.recover();
    // Its tables may be gone.
    if (this.#parts.admission.isClosed) throw unknownSession();
    const { journal } = this.#scope;
    if (journal.runs.head !== run) {
      journal.atomically(() => {
        journal.runs.setHead(run);
        if (!this.#parts.runs.busy && journal.runs.open().length === 0) this.#parts.memory.restoreVariables(run);
      });
    }
    await journal.sync();
  }

  /** The runs of a branch in order: the newest `limit` of those up to this run. */
  upTo(last: RunRecord, limit: number = limits.pageRows): readonly RunRecord[] {
    return this.#scope.journal.runs.branch(last.run, limit).map((record) => this.#parts.current(record));
  }

  /** Messages that came during a run, and that the run has shown or will show (C5). */
  receivedBy({ run, runId }: RunRecord): readonly ReceivedMessage[] {
    const { history, steered } = this.#scope.journal;
    return steered.of(run).map(({ number, seq, input }) => ({
      message_id: messageIdOf(runId, number),
      content: input['content'] as MessageContent,
      metadata: input['metadata'],
      at: history.timesOf([seq]).get(seq) ?? 0,
    }));
  }

  /** @throws EngineError `invalid_request`, `run_in_progress` if the session cannot be forked at the end of this run */
  requireForkable(run: RunRecord | null): void {
    requireForkable(this.#scope, run);
  }

  /** Where a run is in the tree, by the ids of runs, for documents. */
  placeOf({ parent, retryOf }: RunPlace): { readonly parent_run: string | null; readonly retry_of?: string } {
    const record = recordOf(this.#scope);
    return {
      parent_run: parent === 0 ? null : runIdOf(record, parent),
      ...(retryOf === null ? {} : { retry_of: runIdOf(record, retryOf) }),
    };
  }

  /** Number of runs of the branch that ends with this one. */
  lengthOf({ run }: RunRecord): number {
    return this.#scope.journal.runs.branchNumbers(run).length;
  }

  /** The run that a run follows; null if it begins the conversation. */
  parentOf({ parent }: Pick<RunRecord, 'parent'>): RunRecord | null {
    return this.#scope.journal.runs.get(parent);
  }

  /** The runs that follow the same run as this one, oldest first: the newest ones and itself, at most `limits.pageRows`. */
  versionsOf(record: RunRecord): readonly RunRecord[] {
    const { runs } = this.#scope.journal;
    const newest = runs.versions(record);
    const all = newest.includes(record.run) ? newest : [record.run, ...newest.slice(1)];
    return all.map((run) => runs.require(run));
  }

  /** The newest run that sends the message of a run again, changed or not; the run itself, if there is none. */
  newestVersion(first: RunRecord): RunRecord {
    const { runs } = this.#scope.journal;
    const isVersion = this.#versionsFrom(first);
    const near = runs.versions(first);
    const found = near.findLast(isVersion);
    if (found !== undefined) return this.#parts.current(runs.require(found));
    // A page of newer messages follows the same run.
    for (let page = runs.list(limits.pageRows, near[0]); page.length > 0;) {
      const version = page.findLast(({ run, parent }) => parent === first.parent && isVersion(run));
      if (version !== undefined) return this.#parts.current(version);
      page = runs.list(limits.pageRows, page[0]?.run);
    }
    return first;
  }

  /** The same on the branch of the head: the version that its readers see; null if there is none. */
  versionOnBranch(first: RunRecord): RunRecord | null {
    const { runs } = this.#scope.journal;
    const branch = [0, ...runs.branchNumbers(runs.head)];
    const run = branch[branch.indexOf(first.parent) + 1];
    const isOn = branch.includes(first.parent) && run !== undefined && this.#versionsFrom(first)(run);
    return isOn ? this.#parts.current(runs.require(run)) : null;
  }

  /** Whether a run sends the message of another one again, or is that run. */
  isVersion({ run }: RunRecord, first: RunRecord): boolean {
    return this.#versionsFrom(first)(run);
  }

  /** The same for the numbers of several runs: each row is read once. A retry has a higher number than what it repeats. */
  #versionsFrom({ run: first }: RunRecord): (run: number) => boolean {
    const { runs } = this.#scope.journal;
    const others = new Set<number>();
    return (run) => {
      const passed: number[] = [];
      let at: number | null = run;
      while (at !== null && at > first && !others.has(at)) {
        passed.push(at);
        at = runs.get(at)?.retryOf ?? null;
      }
      if (at === first) return true;
      for (const one of passed) others.add(one);
      return false;
    };
  }

  /** Whether a run is on the branch of the head. */
  isOnBranch({ run }: RunRecord): boolean {
    const { runs } = this.#scope.journal;
    return runs.isAncestor(run, runs.head);
  }

  /** The place of a message that follows this run; null: it begins the conversation. */
  after(run: RunRecord | null): RunPlace {
    return { parent: run?.run ?? 0, retryOf: null };
  }

  /**
   * The message of a run, as the request that sends it again. It has the same instructions, tools and metadata.
   *
   * @throws EngineError `invalid_request` if the run has no message
   */
  messageOf(record: RunRecord): Pick<MessageRequest, 'content' | 'tools' | 'instructions' | 'metadata' | 'place'> {
    const { run, runId, input, parent } = record;
    const { type, content, tools, instructions, metadata } = input;
    if (type !== 'message' || content === undefined) {
      const message = `Run ${runId} was not started by a message; only a message can be sent again`;
      throw new EngineError('invalid_request', message, { run_id: runId });
    }
    return {
      content: content as MessageRequest['content'],
      ...(Array.isArray(tools) ? { tools: tools as unknown as MessageRequest['tools'] & object } : {}),
      ...(typeof instructions === 'string' ? { instructions } : {}),
      ...(metadata === undefined ? {} : { metadata: metadata as MessageRequest['metadata'] }),
      place: { parent, retryOf: run },
    };
  }

  /**
   * Runs one action of a run again. The new run follows the head, or that run, if it is on another branch.
   *
   * @throws EngineError `unknown_action`, and like a message
   */
  async rerun(
    { run }: RunRecord,
    action: string,
    request: Pick<MessageRequest, 'ifBusy' | 'idempotencyKey' | 'trace'>,
  ): Promise<Accepted> {
    const { journal } = this.#scope;
    const { runs } = journal;
    const input = rerunInput(journal, runs.require(run), action);
    const place = (): RunPlace => {
      // The same request again has the place that it had, wherever the head is now.
      const earlier = request.idempotencyKey === null ? null : runs.byIdempotencyKey(request.idempotencyKey);
      if (earlier?.retryOf === run) return { parent: earlier.parent, retryOf: run };
      return { parent: runs.isAncestor(run, runs.head) ? runs.head : run, retryOf: run };
    };
    return await this.#parts.admission.rerun(input, request, place);
  }
}
