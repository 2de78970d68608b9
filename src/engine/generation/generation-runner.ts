/**
 * Executes the scheduler's commands about generations, and stores what the conversation needs.
 *
 * model-stream.ts reads the model's stream. Parts: `blocks` shows the text, `usage` counts model calls.
 *
 * Owns the reader and the abort controller of the current generation, and the generations of this run's turn. Does not
 * own when a generation starts or whether it is the last one: the scheduler decides that.
 */
import type { ErrorCode, RunError } from '../../domain/errors.ts';
import type { EventData } from '../../domain/event.ts';
import { readContent, textOfContent } from '../../domain/content.ts';
import { isJsonObject } from '../../domain/json.ts';
import type { Json, JsonObject } from '../../domain/json.ts';
import { limits } from '../../domain/limits.ts';
import { renderShape, shapeOfValue } from '../../domain/shape.ts';
import type { FinishReason } from '../../domain/ports/model.ts';
import type { ProtocolEvent } from '../../domain/protocol-event.ts';
import { isWorkflowHelper, OUTPUTS } from '../../domain/workflow-actions.ts';
import { runIdOf } from '../../journal/run-id.ts';
import type { ShownFiles } from '../../protocol/prompt/attached-files.ts';
import type { Cut, ChatTurn, EarlierTurns, FeedReport, MissingValue } from '../../protocol/prompt/chat-turn.ts';
import { planOf } from '../../scheduler/plan.ts';
import { generationTokens, lookup } from '../../scheduler/step.ts';
import type { RunState } from '../../scheduler/step.ts';
import type { SchedulerCommand } from '../../scheduler/types.ts';
import { headerOf } from '../../telemetry/run-trace.ts';
import { isMemoryFeed } from '../feeds/feeds.ts';
import type { FetchFeed } from '../feeds/feeds.ts';
import { ReferredFeeds } from '../feeds/referred-feeds.ts';
import type { InputQueue } from '../run/input-queue.ts';
import type { RunInput, StreamPiece } from '../run/run-input.ts';
import type { OpenReference } from '../run/resolve-names.ts';
import type { Results } from '../run/results.ts';
import type { RunContext } from '../run/run-context.ts';
import type { RunLog } from '../run/run-log.ts';
import { runValues } from '../workflow/run-values.ts';
import { workflowActions } from '../workflow/workflow.ts';
import { GenerationBlocks } from './generation-blocks.ts';
import { GenerationReader } from './generation-reader.ts';
import type { ReadEnd } from './generation-reader.ts';
import { messageIdOf } from '../run/message-id.ts';
import { userTurn } from './message-files.ts';
import { withWorkspace } from './workspace-report.ts';
import { modelRequest, promptTurns } from './model-request.ts';
import { streamGeneration } from './model-stream.ts';
import { planJson } from './plan-json.ts';
import { shownResult } from './result-files.ts';
import { chooseFiles, hasFiles, lostNotice } from './shown-files.ts';
import { RunUsage } from './run-usage.ts';
import type { Segments } from './segments.ts';

/** The error code of a generation interrupted by a crash; the scheduler counts these separately (J2). */
const INTERRUPTED = 'interrupted' satisfies ErrorCode;

type Ended = Extract<RunInput, { type: 'generation_ended' }>;

export class GenerationRunner {
  readonly blocks: GenerationBlocks;
  readonly usage: RunUsage;
  readonly #context: RunContext;
  readonly #log: RunLog;
  readonly #results: Results;
  readonly #segments: Segments;
  readonly #inputQueue: InputQueue;
  readonly #state: () => RunState;
  readonly #fetchFeed: FetchFeed;
  readonly #isTaken: (name: string) => boolean;
  #reader: GenerationReader | null = null;
  #abort: AbortController | null = null;
  #nextAutoId = 1;
  #last = false;
  /** The generation began before a crash, and its stream is lost. */
  #isOrphaned = false;
  /** How the current generation ended early; null if it did not (P15). `abort` until it has ended. */
  #cut: Cut | null = null;
  /** When the generation began, epoch milliseconds; why it failed, and after how long. */
  #startedAt = 0;
  #failure: NonNullable<EventData['iteration_completed']['failure']> | null = null;
  /** Why the last generation ended early; null if an event has reported it. */
  #unreportedCut: string | null = null;
  /** A warning has said that the prompts lack the facts about the user. */
  #isWithoutFacts = false;
  /** The run has ended; its background actions may still be running. */
  #isOver = false;
  /** The generation that ended the run had nothing but bare text (P11). */
  #isAnswerBareText = false;
  readonly #turn: Omit<ChatTurn, 'generations' | 'received'> & {
    readonly generations: ChatTurn['generations'][number][];
    readonly received: NonNullable<ChatTurn['received']>[number][];
  };

  constructor(given: {
    readonly context: RunContext;
    readonly log: RunLog;
    readonly results: Results;
    readonly segments: Segments;
    readonly inputQueue: InputQueue;
    readonly state: () => RunState;
    readonly fetchFeed: FetchFeed;
    /** Whether a name means something other than a feed. */
    readonly isTaken: (name: string) => boolean;
  }) {
    this.#context = given.context;
    this.#log = given.log;
    this.#results = given.results;
    this.#segments = given.segments;
    this.#inputQueue = given.inputQueue;
    this.#state = given.state;
    this.#fetchFeed = given.fetchFeed;
    this.#isTaken = given.isTaken;
    this.blocks = new GenerationBlocks(given.segments);
    this.usage = new RunUsage(given.context, given.log);
    const { source, blobs = null } = given.context;
    this.#turn = { ...userTurn(source.type === 'model' ? source.content : '', blobs), generations: [], received: [] };
  }

  announceStart(): void {
    const { resolved, source, model } = this.#context;
    this.#log.append('agent_started', {
      agent: resolved.agent.name,
      version: resolved.agent.version,
      source: source.type,
      ...(source.type === 'model' ? { model: model.name } : {}),
    });
    this.#announceBranch();
    if (source.type === 'model' && model.notice !== undefined) this.#log.warn('model_not_configured', model.notice);
    for (const problem of resolved.mcpProblems ?? []) this.#log.warn('mcp_unavailable', problem);
  }

  /** Most runs follow the run before them, and repeat none (C4). */
  #announceBranch(): void {
    const { source, runNumber, parent, retryOf, record } = this.#context;
    if (parent === runNumber - 1 && retryOf === null) return;
    const rerun = source.type === 'text' ? source.rerun : undefined;
    this.#log.append('run_branched', {
      parent_run: parent === 0 ? null : runIdOf(record, parent),
      ...(retryOf === null ? {} : { retry_of: runIdOf(record, retryOf) }),
      ...(rerun === undefined ? {} : { action_id: rerun.action }),
    });
  }

  start(iteration: number, last: boolean): void {
    this.#reportUnreportedCut();
    this.#log.enterIteration(iteration);
    const seq = this.#log.append('iteration_started', last ? { iteration, last: true } : { iteration });
    const reader = new GenerationReader(this.#context.resolved, this.#nextAutoId);
    this.#reader = reader;
    this.blocks.reset();
    this.#isOrphaned = this.#log.wasRecorded(seq);
    this.#cut = 'abort';
    this.#startedAt = this.#context.clock.now();
    this.#failure = null;
    this.#last = last;
    if (!this.#isOrphaned) this.#stream(reader, 0);
    if (this.#turn.received.length > 0 && !this.#isOrphaned) this.#log.afterSync(() => this.#context.shown(iteration));
  }

  /** A message for the next generation (C5). */
  receive({ content = '', store, onReceived }: Extract<RunInput, { type: 'message_received' }>): void {
    const { iteration } = this.#log;
    const number = this.#turn.received.length + 1;
    const { seq, data } = this.#log.write('message_received', {
      message_id: messageIdOf(this.#context.runId, number),
      content: textOfContent(content),
      ...(typeof content === 'string' ? {} : { parts: content as unknown as Json[] }),
    });
    const written = readContent((data.parts as Json | undefined) ?? data.content) ?? '';
    this.#turn.received.push({ before: iteration, ...userTurn(written, this.#context.blobs ?? null) });
    store?.(seq, number, iteration);
    if (onReceived !== undefined) this.#log.afterSync(onReceived);
  }

  /**
   * Continues the generation that a crash interrupted: posted text is read further; a model's stream is lost, so the
   * generation ends here (J2).
   */
  resume(): void {
    const reader = this.#reader;
    if (reader === null || !this.#isOrphaned) return;
    const { source } = this.#context;
    // A workflow skips what it has already declared.
    if (source.type !== 'model') return this.#stream(reader, source.type === 'text' ? reader.chars : 0);
    const error: RunError = { code: INTERRUPTED, message: 'The host was restarted while the model was answering' };
    this.#inputQueue.put({ type: 'generation_ended', finish: 'error', pieces: [], ...reader.end('error'), error });
  }

  stop(): void {
    this.#abort?.abort();
  }

  #stream(reader: GenerationReader, skip: number): void {
    const abort = new AbortController();
    this.#abort = abort;
    const { journal, runNumber } = this.#context;
    const stream: Omit<Parameters<typeof streamGeneration>[0], 'durable'> = {
      context: this.#context,
      inputQueue: this.#inputQueue,
      reader,
      usage: this.usage,
      request: async ({ history, earlier }, signal) => {
        const { feeds: known, resolved } = this.#context;
        const own = await known.current(resolved, this.#fetchFeed, signal);
        if (!signal.aborted) this.#warnWithoutFacts(own);
        const feeds = withWorkspace(own, resolved, this.#context.workspace);
        const turns = promptTurns(history, this.#turn);
        const files = hasFiles(turns) ? await this.#files(turns, earlier) : null;
        return modelRequest({
          resolved,
          history,
          ...(earlier === undefined ? {} : { earlier }),
          turn: this.#turn,
          feeds,
          ...(files === null ? {} : { files }),
          last: this.#last,
          tokensLeft: generationTokens(this.#state()),
          ...headerOf(this.#context.trace?.generation(this.#log.iteration)),
          signal,
        });
      },
      referred: new ReferredFeeds({
        context: this.#context,
        fetch: this.#fetchFeed,
        since: journal.runs.require(runNumber).startedAt,
        isTaken: this.#isTaken,
      }),
      declare: ({ definition, inputs }) =>
        workflowActions(
          definition,
          inputs,
          {
            declared: (id) => lookup(this.#state(), id) !== null,
            settled: (id) => this.#results.settled(id),
          },
          runValues(this.#context.record, this.#context.runId),
        ),
    };
    const begin = (durable: Promise<void>): void => void streamGeneration({ ...stream, durable }, abort.signal, skip);
    const { source, feeds, resolved } = this.#context;
    // The prompt is built during the sync, unless a feed must be asked for it: its time would begin too early.
    if (source.type === 'model' && feeds.areFresh(resolved)) this.#log.afterWrite(begin);
    else this.#log.afterSync(() => begin(Promise.resolve()));
  }

  /** Once per run: its facts could not be read in time, and the prompt shows none (C10). */
  #warnWithoutFacts(shown: readonly FeedReport[]): void {
    const { feeds, resolved } = this.#context;
    const feed = resolved.agent.feeds.find(isMemoryFeed);
    if (feed === undefined || this.#isWithoutFacts || shown.some(({ id }) => id === feed.id)) return;
    this.#isWithoutFacts = true;
    const why = feeds.find(resolved, feed.id)?.error ?? `no answer within ${limits.feedDeadlineMs / 1_000} s`;
    const message = `The facts about the user could not be read, and the run goes on without them: ${why}`;
    const warning = { type: 'warning', code: 'memory_unavailable', message, offset: 0 } as const;
    this.#inputQueue.put({ type: 'protocol', pieces: [], events: [warning] });
  }

  /** The images and files that the request shows, with a warning about the others of this turn (C2). */
  async #files(turns: readonly ChatTurn[], earlier: EarlierTurns | undefined): Promise<ShownFiles> {
    const { resolved, share } = this.#context;
    const warn = (message: string): void => {
      const warning = { type: 'warning', code: 'attachments_not_shown', message, offset: 0 } as const;
      this.#inputQueue.put({ type: 'protocol', pieces: [], events: [warning] });
    };
    const { files, notice } = await chooseFiles(turns, resolved.agent.memory, earlier, (file) =>
      warn(lostNotice(file)),
    );
    // Encoding and sending them takes time of the thread.
    for (const { size } of files.attached.keys()) share.charge(size * limits.attachmentByteSteps);
    if (notice !== null) warn(notice);
    return files;
  }

  /** Reads a recorded piece again; it gives the same events (P3). */
  reread(piece: StreamPiece): readonly ProtocolEvent[] {
    return this.#reader?.feed(piece) ?? [];
  }

  /** The next recorded piece of the posted text. */
  rereadPosted(chars: number): StreamPiece {
    const { source } = this.#context;
    const from = this.#reader?.chars ?? 0;
    return { text: source.type === 'text' ? (source.text ?? '').slice(from, from + chars) : '' };
  }

  rereadEnd(finish: FinishReason): ReadEnd & Pick<Ended, 'pieces'> {
    return { pieces: [], ...(this.#reader?.end(finish) ?? { events: [], text: '', calls: [] }) };
  }

  /** The scheduler's input for the end of the generation, without its time. */
  /** @param at epoch milliseconds */
  ended(input: Ended, at: number): Pick<Ended, 'finish' | 'error'> & { readonly answered: boolean } {
    this.#nextAutoId = this.#reader?.nextAutoId ?? this.#nextAutoId;
    this.#cut = cutOf(input.finish);
    this.#failure = input.error === null ? null : { code: input.error.code, ms: Math.max(0, at - this.#startedAt) };
    if (this.#cut !== null) this.#reportCut(input);
    const { bareText } = this.#context.resolved.agent.protocol;
    const answered = this.blocks.onlyBareText && bareText === 'answer';
    return { finish: input.finish, answered, error: input.error };
  }

  reportPlan(iteration: number): void {
    const isShown = ({ name }: { readonly name: string }): boolean => !isWorkflowHelper(name);
    this.#log.append('plan_generated', planJson(planOf(this.#state(), iteration, isShown)));
  }

  /** @param final whether the run has answered; a cancelled run completes its generation while it is written */
  /** @param blanks references in the text of its actions whose path does not exist */
  complete(final: boolean, blanks: readonly OpenReference[]): void {
    const { text, calls } = this.#reader?.written ?? { text: '', calls: [] };
    const cut = this.#cut === null ? {} : { cut: this.#cut };
    const missing = final
      ? []
      : [...missingValues(this.#segments.missing), ...missingValues(blanks, { inAction: true })];
    const lacks = missing.length === 0 ? {} : { missing };
    // The user has read an answer that does not count.
    const rejected = !final && missing.length === 0 && this.blocks.offersAnswer ? { rejected: true as const } : {};
    if (!final) this.#segments.continueAfter();
    else this.#isAnswerBareText = this.blocks.onlyBareText;
    this.#turn.generations.push({ text, calls, results: this.#iterationResults(), ...cut, ...lacks, ...rejected });
    const state: JsonObject = {
      text,
      ...(calls.length === 0 ? {} : { calls: calls.map((call) => ({ ...call })) }),
      ...cut,
      ...(missing.length === 0 ? {} : { missing: missing.map((value) => ({ ...value })) }),
      ...rejected,
    };
    this.#log.append(
      'iteration_completed',
      { iteration: this.#log.iteration, final, ...(this.#failure === null ? {} : { failure: this.#failure }) },
      this.#isConversation ? { state } : {},
    );
  }

  /** Whether later prompts show the run. */
  get #isConversation(): boolean {
    const { source } = this.#context;
    return source.type === 'model' || (source.type === 'text' && source.rerun !== undefined);
  }

  #iterationResults(): ChatTurn['generations'][number]['results'] {
    return this.#results
      .ofIteration(this.#log.iteration)
      .filter((result) => !result.silent)
      .map(({ id, ordinal, name, status, output, note, isSkill, startedAt, endedAt, seq }) => ({
        id,
        ordinal,
        name,
        status,
        ms: startedAt === null ? null : endedAt - startedAt,
        ...(isSkill === undefined ? {} : { isSkill }),
        ...(status === 'completed' ? shownResult(this.#context.journal, seq, output) : { note }),
      }));
  }

  /**
   * Reports that the generation ended early (P15). Where nothing was cut off, the reason is reported only if no other
   * event does it: the end of the run, an exceeded budget, or the recovery after a crash.
   */
  #reportCut({ finish, error, events }: Ended): void {
    if (this.#isOver) return;
    const message = `The generation ended early (${finish})${error === null ? '' : `: ${error.message}`}`;
    if (finish === 'length' || this.blocks.endedInReasoning || events.some(isUnclosed)) {
      this.#log.warn('generation_cut', message);
    } else if (error?.code !== INTERRUPTED && this.#abort?.signal.aborted !== true) this.#unreportedCut = message;
  }

  #reportUnreportedCut(): void {
    if (this.#unreportedCut !== null) this.#log.warn('generation_cut', this.#unreportedCut);
    this.#unreportedCut = null;
  }

  /** @returns the seq of the event that ends the run */
  announceEnd(
    end: Extract<SchedulerCommand, { type: 'end_run' }>,
    waitsFor: EventData['agent_waiting']['reason'],
  ): number {
    const iterations = this.#log.iteration;
    const usage = { ...this.usage.totals };
    if (end.status === 'completed') this.#reportUnreportedCut();
    this.#isOver = end.status !== 'waiting';
    switch (end.status) {
      case 'completed': {
        const { failed } = this.#results;
        return this.#log.append('agent_completed', {
          response: this.#answer(),
          ...this.#outputs(),
          iterations,
          usage,
          ...(failed === 0 ? {} : { failed_actions: failed }),
        });
      }
      case 'failed': {
        const error = end.error === null ? { code: 'internal', message: 'The run failed' } : { ...end.error };
        return this.#log.append('agent_failed', { error, iterations, usage });
      }
      case 'cancelled':
        return this.#log.append('agent_cancelled', { iterations, usage });
      case 'waiting':
        return this.#log.append('agent_waiting', { reason: waitsFor, iterations });
    }
  }

  /** The outputs of a workflow, for clients that read events. Large ones are only in the document of the run. */
  #outputs(): { outputs?: JsonObject } {
    if (this.#context.source.type !== 'workflow') return {};
    const key = lookup(this.#state(), OUTPUTS)?.key;
    const outputs = key === undefined ? null : (this.#results.get(key)?.output ?? null);
    const isSmall = JSON.stringify(outputs).length <= limits.workflowOutputsEventChars;
    return isJsonObject(outputs) && isSmall ? { outputs } : {};
  }

  /** The bare text of the generation that ended the run, or the last final response, else the last one (H7). */
  #answer(): string {
    const { responses, bareText } = this.#segments;
    if (this.#isAnswerBareText) return bareText;
    const final = responses.findLast((response) => response.final === true);
    return (final ?? responses.at(-1))?.content ?? bareText;
  }
}

/** How a generation ended early; null for a normal end. */
export function cutOf(finish: FinishReason): Cut | null {
  return finish === 'stop' || finish === 'tool_calls' ? null : finish;
}

/** Whether an event at the end of a generation shows that a block was cut off. */
function isUnclosed(event: ProtocolEvent): boolean {
  switch (event.type) {
    case 'thought_completed':
    case 'response_completed':
      return event.unclosed;
    case 'text_completed':
    case 'action_rejected':
      return true;
    default:
      return false;
  }
}

/** The references without a value, as the model is shown them (P10). */
function missingValues(
  references: readonly OpenReference[],
  place: Pick<MissingValue, 'inAction'> = {},
): readonly MissingValue[] {
  const once = new Map(references.map((open) => [open.reference.raw, open]));
  return [...once.values()].slice(0, limits.missingShown).map(({ reference, resolve }) => {
    const value = resolve();
    const shape = value.type === 'value' && value.value !== null ? renderShape(shapeOfValue(value.value)) : '';
    return { reference: reference.raw, name: reference.name, shape, ...place };
  });
}
