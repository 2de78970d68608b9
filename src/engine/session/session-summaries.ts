/**
 * Summaries of older turns, which the agent's model writes after an answer (C10).
 *
 * Owns when a summary is due, its call, and its event. Does not own what prompts make of it (protocol/prompt/compaction.ts), the
 * text of the request (memory/summary-request.ts), or the table (journal/summary-table.ts).
 *
 * Invariants:
 *  1. A run that ends and the note that its summary is due become durable together. A crash cannot lose the note.
 *  2. The event and the removal of the note become durable together, so the same turns are summarised once.
 *  3. At most one call at a time, `limits.summaryAttempts` without progress, interrupted ones included, and
 *     `limits.summaryCallsPerRun` after a run: more turns than fit into one call are summarised in several.
 *  4. Nothing waits for a call, and nothing is written after `close`.
 */
import { EngineError } from '../../domain/errors.ts';
import type { EventData } from '../../domain/event.ts';
import { limits } from '../../domain/limits.ts';
import type { AgentDefinition } from '../../domain/manifests/agent.ts';
import { DEMO_MODEL } from '../../domain/ports/model.ts';
import type { ModelProvider, Usage } from '../../domain/ports/model.ts';
import { unlessAborted } from '../../domain/sleep.ts';
import { estimateTokens } from '../../domain/tokens.ts';
import { runIdOf } from '../../journal/run-id.ts';
import type { SummaryWork } from '../../journal/summary-table.ts';
import { costOf } from '../../llm/routing/prices.ts';
import type { ChatTurn, ConversationSummary } from '../../protocol/prompt/chat-turn.ts';
import { borderOf } from '../../protocol/prompt/compaction.ts';
import { callModel } from '../generation/call-model.ts';
import { HistoryRoom } from '../generation/history-room.ts';
import { summaryOf, turnAt } from '../memory/earlier-turns.ts';
import { runOfTurn, turnCount } from '../memory/turn-values.ts';
import { summaryRequest } from '../memory/summary-request.ts';
import { outgoingEntry } from '../run/outgoing-events.ts';
import type { Broadcaster } from './broadcaster.ts';
import { redactionOfRun } from './outgoing-text.ts';
import { agentOfRun, recordOf } from './run-setup.ts';
import type { SessionScope } from './session-ports.ts';

/** The turns that a summary is for: the first `border` ones of the branch of a run. */
interface Due {
  readonly border: number;
  /** The last run of them; 0: they are all of the seeded history. */
  readonly untilRun: number;
  readonly previous: ConversationSummary | null;
}

interface Written {
  readonly text: string;
  readonly usages: readonly Usage[];
}

export class SessionSummaries {
  readonly #scope: SessionScope;
  readonly #readers: Pick<Broadcaster, 'publish'>;
  #calls: Promise<void> | null = null;
  #abort: AbortController | null = null;
  #isClosed = false;
  /** A call could not be made, or its end not be written: the alarm tries again later. */
  #hasFaulted = false;

  constructor(scope: SessionScope, readers: Pick<Broadcaster, 'publish'>) {
    this.#scope = scope;
    this.#readers = readers;
  }

  /** Called in the turn in which a run ends: notes that the next prompt lacks a summary. */
  ended(run: number, agent: AgentDefinition): void {
    const { summaries } = this.#scope.journal;
    const due = this.#due(run, agent);
    if (due === null) return;
    const last = summaries.work;
    const attempts = last?.untilRun === due.untilRun ? last.attempts : 0;
    if (attempts >= limits.summaryAttempts) return;
    summaries.setWork({ run, untilRun: due.untilRun, attempts, isPending: true });
  }

  /** Begins the call that is due. Called once the end of a run is durable, and when the host was woken. */
  begin(): void {
    if (this.#calls !== null || this.#pending() === null) return;
    this.#calls = this.#workAll().finally(() => (this.#calls = null));
    this.#scope.hold(this.#calls);
  }

  /** When the host must be woken for a call, epoch milliseconds: at once for one that no host makes; null: none is due. */
  get wakeAt(): number | null {
    const { clock } = this.#scope;
    if (this.#calls !== null) return clock.now() + limits.watchdogMs;
    if (this.#pending() === null) return null;
    return this.#hasFaulted ? clock.now() + limits.watchdogMs : clock.now();
  }

  /** Ends the call; nothing is written from here on. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#abort?.abort(new Error('the session was closed'));
    await this.#calls;
  }

  /** Null if the prompts after this run lack no summary. */
  #due(run: number, { memory }: AgentDefinition): Due | null {
    const { journal } = this.#scope;
    const { kind, workflow, ephemeral } = recordOf(this.#scope);
    if (memory.summary?.by !== 'model' || kind !== 'chat' || workflow !== undefined || ephemeral === true) return null;
    const border = borderOf(turnCount(journal, run), memory);
    if (border === 0) return null;
    const previous = summaryOf(journal, run, { most: border });
    if (previous?.turns === border) return null;
    return { border, untilRun: runOfTurn(journal, run, border), previous };
  }

  /** Null also once the session is closed. */
  #pending(): SummaryWork | null {
    const { journal } = this.#scope;
    const work = this.#isClosed || journal.record === null ? null : journal.summaries.work;
    return work?.isPending === true ? work : null;
  }

  /** Never rejects. Another run may end during a call, and need another one. */
  async #workAll(): Promise<void> {
    try {
      const calls = new Map<number, number>();
      for (let work = this.#pending(); work !== null; work = this.#pending()) {
        const call = (calls.get(work.run) ?? 0) + 1;
        calls.set(work.run, call);
        await this.#work(work, call < limits.summaryCallsPerRun);
      }
    } catch (fault) {
      this.#hasFaulted = true;
      this.#scope.log('internal_error', { fault });
    }
  }

  /** @param mayGoOn another call may follow if this one has not summarised all turns */
  async #work(work: SummaryWork, mayGoOn: boolean): Promise<void> {
    const { journal } = this.#scope;
    const resolved = agentOfRun(this.#scope, journal.runs.require(work.run));
    const due = resolved === null ? null : this.#due(work.run, resolved.agent);
    const model = resolved === null ? null : this.#scope.modelFor(resolved);
    // The demo model is not a language model: the lines are better.
    const isOver = resolved === null || due === null || model === null || model.name === DEMO_MODEL;
    if (isOver || work.attempts >= limits.summaryAttempts) {
      journal.summaries.setWork({ ...work, isPending: false });
      return await journal.sync();
    }
    const begun = { ...work, attempts: work.attempts + 1 };
    journal.summaries.setWork(begun);
    // A call that ends its host is counted.
    await journal.sync();
    if (this.#isClosed) return;
    const usages: Usage[] = [];
    try {
      const { text, count } = await this.#write(model, resolved.agent, work.run, due, usages);
      await this.#keep(begun, due, { text, usages }, { count, mayGoOn, agent: resolved.agent });
    } catch (fault) {
      if (!this.#isClosed) await this.#failed(begun, resolved.agent, usages, fault);
    }
  }

  /** @throws EngineError if there is no text within the budget in time */
  async #write(
    model: ModelProvider,
    { memory }: AgentDefinition,
    run: number,
    { border, previous }: Due,
    usages: Usage[],
  ): Promise<{ readonly text: string; readonly count: number }> {
    const { journal, clock, share } = this.#scope;
    const { summary } = memory;
    if (summary === undefined) throw new EngineError('internal', 'The agent has no policy for summaries');
    const { prompt, count } = summaryRequest(summary, previous, turnsOf(journal, run, previous?.turns ?? 0, border));
    share.charge(prompt.length);
    const most = Math.ceil(summary.tokens * limits.summaryTolerance);
    let isCut = false;
    const abort = new AbortController();
    this.#abort = abort;
    const late = (): void =>
      abort.abort(new EngineError('model_timeout', `The summary was not written within ${limits.summaryCallMs} ms`));
    const cancelTimer = clock.schedule(limits.summaryCallMs, late);
    try {
      const request = {
        prompt,
        system: null,
        model: null,
        maxTokens: most + limits.summaryReasoningTokens,
        onCut: () => (isCut = true),
        onText: () => undefined,
      };
      const call = callModel({ model }, request, abort.signal, (usage) => usages.push(usage));
      const text = (await unlessAborted(call, abort.signal)).trim();
      if (usages.some((usage) => usage.model === DEMO_MODEL)) throw rejected('was written by the demo model');
      if (text === '') throw rejected('is empty');
      const tokens = estimateTokens(text);
      if (isCut || tokens > most || text.length > limits.summaryTextChars) {
        throw rejected(`is longer than its budget (about ${tokens} tokens, allowed: ${most})`);
      }
      return { text, count };
    } finally {
      cancelTimer();
      this.#abort = null;
    }
  }

  async #keep(
    work: SummaryWork,
    due: Due,
    written: Written,
    { count, mayGoOn, agent }: { readonly count: number; readonly mayGoOn: boolean; readonly agent: AgentDefinition },
  ): Promise<void> {
    const { journal, clock, redact } = this.#scope;
    if (this.#isClosed) return;
    const { text, usages } = written;
    const turns = Math.min(due.border, (due.previous?.turns ?? 0) + count);
    const untilRun = runOfTurn(journal, work.run, turns);
    const record = recordOf(this.#scope);
    const { totals, cost } = sumOf(usages, agent);
    const data = {
      change: 'summarised' as const,
      summary: redact(text),
      ...(untilRun === 0 ? {} : { until_run: runIdOf(record, untilRun) }),
      turns,
      usage: totals,
    };
    const outgoing = redactionOfRun(this.#scope, agent.redact, journal.runs.require(work.run));
    const entry = outgoingEntry(outgoing, 'memory_changed', { data });
    const runId = runIdOf(record, work.run);
    const event = journal.atomically(() => {
      const added = journal.append({ type: 'memory_changed', runId, iteration: 0, at: clock.now(), ...entry });
      journal.summaries.add({ seq: added.seq ?? 0, untilRun, turns });
      this.#end({ ...work, attempts: 0 }, cost, mayGoOn && turns < due.border);
      return added;
    });
    await journal.sync();
    if (!this.#isClosed) this.#readers.publish([event]);
  }

  async #failed(work: SummaryWork, agent: AgentDefinition, usages: readonly Usage[], fault: unknown): Promise<void> {
    const { journal, log } = this.#scope;
    if (!(fault instanceof EngineError)) log('internal_error', { fault });
    else if (work.attempts === 1) {
      const { code, message } = fault;
      log('summary_failed', { run_id: runIdOf(recordOf(this.#scope), work.run), code, message });
    }
    journal.atomically(() => this.#end(work, sumOf(usages, agent).cost));
    await journal.sync();
  }

  /** The call has ended, unless a later run needs another one already. */
  #end(work: SummaryWork, cost: number | null, isPending = false): void {
    const { summaries } = this.#scope.journal;
    const now = summaries.work;
    if (now === null || now.run === work.run) summaries.setWork({ ...work, isPending });
    else if (now.untilRun === work.untilRun) summaries.setWork({ ...now, attempts: work.attempts });
    if (cost !== null) summaries.addCost(cost);
  }
}

function* turnsOf(
  journal: SessionScope['journal'],
  run: number,
  after: number,
  until: number,
): Generator<ChatTurn | null> {
  const room = new HistoryRoom();
  for (let turn = after + 1; turn <= until; turn += 1) {
    const found = turnAt(journal, run, turn, room);
    // The others are for the next summary. The first one is passed over, or it would be in the way of all others.
    if (found === null && turn > after + 1) return;
    yield found;
  }
}

function rejected(why: string): EngineError {
  return new EngineError('model_rejected', `The summary ${why}`);
}

/** The usage of a call as in events, and its US dollars; null if no price is known. */
function sumOf(
  usages: readonly Usage[],
  { engine }: AgentDefinition,
): { readonly totals: NonNullable<EventData['memory_changed']['usage']>; readonly cost: number | null } {
  const costs = usages.flatMap((usage) => costOf(usage, engine.prices) ?? []);
  const cost = costs.length === 0 ? null : Math.round(costs.reduce((sum, one) => sum + one, 0) * 1e9) / 1e9;
  const sum = (of: (usage: Usage) => number): number => usages.reduce((total, usage) => total + of(usage), 0);
  const totals = {
    prompt_tokens: sum(({ promptTokens }) => promptTokens),
    completion_tokens: sum(({ completionTokens }) => completionTokens),
    cached_tokens: sum(({ cachedTokens }) => cachedTokens),
    model_calls: 1,
    estimated: usages.length === 0 || usages.some(({ estimated }) => estimated),
    ...(cost === null ? {} : { cost }),
  };
  return { totals, cost };
}
