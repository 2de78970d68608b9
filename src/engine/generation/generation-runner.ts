/**
 * One generation after the other: asks the model (or reads the posted text), feeds the readers, and
 * keeps what the conversation and the end of the run need.
 *
 * Owns the readers and the abort of the current generation, the run's usage and its texts. Does not
 * own when a generation starts or whether it was the last: the scheduler says so.
 */
import type { ActionKey, ActionType } from '../../domain/action.ts';
import { EngineError, messageOf } from '../../domain/errors.ts';
import type { JsonObject } from '../../domain/json.ts';
import { limits } from '../../domain/limits.ts';
import type { ChatMessage, FinishReason, ModelDelta, Usage } from '../../domain/ports.ts';
import type { Finality, ProtocolEvent, Reference } from '../../domain/protocol-event.ts';
import { estimateTokens, textBytes, tokensOf } from '../../domain/tokens.ts';
import { costOf } from '../../llm/routing/prices.ts';
import { reasoningAsText } from '../../llm/providers/reasoning-text.ts';
import { buildMessages } from '../../protocol/prompt/feedback.ts';
import type { Cut, FeedReport, Turn } from '../../protocol/prompt/feedback.ts';
import { nativeTools, nativeType } from '../../protocol/native/native-tools.ts';
import { createParser } from '../../protocol/parser/parser.ts';
import type { ProtocolParser } from '../../protocol/parser/parser.ts';
import { buildSystemPrompt } from '../../protocol/prompt/prompt.ts';
import { createToolCallReader } from '../../protocol/native/tool-calls.ts';
import type { NativeCall, ToolCallReader } from '../../protocol/native/tool-calls.ts';
import { planOf } from '../../scheduler/plan.ts';
import { generationTokens, lookup } from '../../scheduler/step.ts';
import type { RunState } from '../../scheduler/step.ts';
import type { SchedulerCommand } from '../../scheduler/types.ts';
import { agentSummary } from './agent-summary.ts';
import { effectsOf } from '../actions/action-policy.ts';
import { withoutCleared } from './conversation.ts';
import { fetchFeed } from '../feeds/feed-sources.ts';
import type { Inbox } from '../run/inbox.ts';
import type { RunInput, StreamPiece } from '../run/run-input.ts';
import type { Results } from '../run/results.ts';
import type { RunContext } from '../run/run-context.ts';
import type { RunLog } from '../run/run-log.ts';
import type { RunNames } from '../run/run-names.ts';
import type { Segments } from './segments.ts';
import { planJson } from './plan-json.ts';
import { StepFailed, workflowText } from '../workflow/workflow.ts';

interface Totals {
  prompt_tokens: number;
  completion_tokens: number;
  cached_tokens: number;
  model_calls: number;
  estimated: boolean;
  /** US dollars; absent as long as no call had a known price. */
  cost?: number;
}

/** What a reader is told once when the manifest wants no native calls (P17). */
const IGNORED_CALL: ProtocolEvent = {
  type: 'warning',
  code: 'tool_call_ignored',
  message: 'The model called functions natively, which the manifest turns off (protocol.dialect: protocol)',
  offset: 0,
};

/** The error code of a generation that a crash cut; the scheduler counts these apart (J2). */
export const INTERRUPTED = 'interrupted';

type Ended = Extract<RunInput, { type: 'generation_ended' }>;

type TextEvent = Extract<
  ProtocolEvent,
  { type: `${'thought' | 'text' | 'response'}${'' | '_started' | '_completed'}` }
>;

/** The readers of one generation; they count its actions together. */
interface Readers {
  readonly text: ProtocolParser;
  readonly calls: ToolCallReader;
}

export class GenerationRunner {
  readonly #context: RunContext;
  readonly #log: RunLog;
  readonly #results: Results;
  readonly #segments: Segments;
  readonly #inbox: Inbox;
  readonly #state: () => RunState;
  readonly #totals: Totals = {
    prompt_tokens: 0,
    completion_tokens: 0,
    cached_tokens: 0,
    model_calls: 0,
    estimated: false,
  };
  #readers: Readers | null = null;
  #abort: AbortController | null = null;
  /** The model call that has not yet told what it used. */
  #call: { readonly messages: readonly ChatMessage[]; bytes: number } | null = null;
  #nextAutoId = 1;
  #last = false;
  #unpriced = false;
  #reasoning = false;
  /** The generation's text so far, to the letter. */
  #said: string[] = [];
  #saidChars = 0;
  /** The generation had begun before a crash, and nobody reads it. */
  #orphaned = false;
  #generationText = '';
  /** How the current generation broke off; null when it did not (P15). */
  #cut: Cut | null = null;
  #calls: readonly NativeCall[] = [];
  /** What the current generation has shown so far: decides whether bare text is the answer (P11). */
  #saw = { action: false, response: false, text: false };
  #response: { final: Finality; refers: Set<ActionKey> } = { final: null, refers: new Set() };
  #turn: { readonly user: string; readonly generations: Turn['generations'][number][] };

  constructor(options: {
    readonly context: RunContext;
    readonly log: RunLog;
    readonly results: Results;
    readonly segments: Segments;
    readonly inbox: Inbox;
    readonly state: () => RunState;
  }) {
    this.#context = options.context;
    this.#log = options.log;
    this.#results = options.results;
    this.#segments = options.segments;
    this.#inbox = options.inbox;
    this.#state = options.state;
    const { source } = options.context;
    this.#turn = { user: source.type === 'model' ? source.content : '', generations: [] };
  }

  announceStart(): void {
    const { resolved, source, model } = this.#context;
    this.#log.append('agent_started', {
      agent: resolved.agent.name,
      version: resolved.agent.version,
      source: source.type,
      ...(source.type === 'model' ? { model: model.name } : {}),
    });
  }

  start(iteration: number, last: boolean): void {
    this.#log.enterIteration(iteration);
    const seq = this.#log.append('iteration_started', last ? { iteration, last: true } : { iteration });
    const { protocol } = this.#context.resolved.agent;
    const { resolved } = this.#context;
    const shared = {
      json: protocol.json,
      numbering: { ordinal: 0, autoId: this.#nextAutoId },
      unsafe: (type: ActionType, name: string) => effectsOf(type, resolved.tools.get(name) ?? null) === 'unsafe',
    };
    const readers: Readers = {
      text: createParser({
        ...shared,
        actInReasoning: protocol.actInReasoning,
        // What a workflow writes is one generation, however long it takes.
        ...(this.#context.source.type === 'workflow' ? { maxActions: limits.actionsPerRun } : {}),
      }),
      calls: createToolCallReader({ ...shared, typeOf: (name) => nativeType(resolved, name) }),
    };
    this.#readers = readers;
    this.#saw = { action: false, response: false, text: false };
    this.#said = [];
    this.#saidChars = 0;
    this.#orphaned = this.#log.wasRecorded(seq);
    this.#generationText = '';
    this.#calls = [];
    this.#last = last;
    if (!this.#orphaned) this.#read(readers, 0);
  }

  #read(readers: Readers, skip: number): void {
    const abort = new AbortController();
    this.#abort = abort;
    this.#log.afterSync(() => void this.#pump(readers, abort.signal, skip));
  }

  /** A piece of a record: what the readers made of it then, they make of it again (P3). */
  reread(said: StreamPiece): readonly ProtocolEvent[] {
    if (this.#readers === null) return [];
    if ('delta' in said) return this.#readers.calls.feed(said.delta);
    this.#say(said.text);
    return this.#readers.text.feed(said.text);
  }

  #say(text: string): void {
    this.#said.push(text);
    this.#saidChars += text.length;
  }

  /** The record's next piece of the text that was posted whole. */
  rereadPosted(chars: number): StreamPiece {
    const { source } = this.#context;
    const from = this.#saidChars;
    return { text: source.type === 'text' ? (source.text ?? '').slice(from, from + chars) : '' };
  }

  /** What the end of the text adds, and the generation as it was. */
  rereadEnd(finish: FinishReason): Pick<Ended, 'said' | 'events' | 'text' | 'calls'> {
    return { said: [], ...this.#endOf(this.#readers, finish) };
  }

  /**
   * Goes on with the generation that a crash cut: posted text is read on; a model's stream is gone, and
   * the generation ends here (J2).
   */
  resume(): void {
    const readers = this.#readers;
    if (readers === null || !this.#orphaned) return;
    const { source } = this.#context;
    // A workflow leaves out itself what it has written already.
    if (source.type !== 'model') return this.#read(readers, source.type === 'text' ? this.#saidChars : 0);
    const error = { code: INTERRUPTED, message: 'The host was restarted while the model was speaking' };
    this.#inbox.put({ type: 'generation_ended', finish: 'error', said: [], ...this.#endOf(readers, 'error'), error });
  }

  #endOf(readers: Readers | null, finish: FinishReason): Pick<Ended, 'events' | 'text' | 'calls'> {
    if (readers === null) return { events: [], text: '', calls: [] };
    // Text before calls: what it left open was said first.
    const events = [...readers.text.end(), ...readers.calls.end(finish === 'stop' || finish === 'tool_calls')];
    return { events, text: this.#said.join(''), calls: readers.calls.calls };
  }

  stop(): void {
    this.#abort?.abort();
  }

  sawAction(): void {
    this.#saw.action = true;
  }

  text(event: TextEvent, interrupted = false): void {
    switch (event.type) {
      case 'thought_started':
        return this.#segments.open('thought', null, event.reasoning ? { reasoning: true } : {});
      case 'text_started':
        this.#saw.text = true;
        return this.#segments.open('text');
      case 'response_started':
        this.#saw.response = true;
        this.#response = { final: event.final, refers: new Set() };
        return this.#segments.open('response', event.final);
      case 'thought':
      case 'text':
      case 'response':
        return this.#segments.write(event.delta);
      case 'thought_completed':
      case 'response_completed':
        return this.#segments.close(event.unclosed, interrupted && event.unclosed);
      case 'text_completed':
        return this.#segments.close(false, interrupted);
    }
  }

  /** A reference in the open response is bound here, to what is known at its place (P12). */
  refer(reference: Reference, producerOf: (name: string) => ActionKey | null, names: RunNames): void {
    const producer = producerOf(reference.name);
    if (producer !== null) this.#response.refers.add(producer);
    this.#segments.refer(reference, () => names.valueOf(reference.name, producer));
  }

  /** @param interrupted a crash took the rest of it: then it cannot be the answer (J2) */
  closeResponse(unclosed: boolean, interrupted: boolean): { final: Finality; refers: readonly ActionKey[] } {
    this.#segments.close(unclosed, interrupted);
    return { final: interrupted ? false : this.#response.final, refers: [...this.#response.refers] };
  }

  /** Reasoning that the provider sends beside the text becomes thoughts; nothing in it runs (P9). */
  reasoning(text: string): void {
    if (!this.#reasoning) {
      this.#reasoning = true;
      this.#segments.open('thought', null, { reasoning: true });
    }
    this.#segments.write(text);
  }

  endReasoning(): void {
    if (!this.#reasoning) return;
    this.#reasoning = false;
    this.#segments.close(false);
  }

  /** What the model call in progress has used so far, by estimate; whoever asks takes it, it is told once (L6). */
  spent(): Usage | null {
    const call = this.#call;
    if (call === null) return null;
    this.#call = null;
    const promptTokens = call.messages.reduce((sum, { content }) => sum + estimateTokens(content), 0);
    return { promptTokens, completionTokens: tokensOf(call.bytes), cachedTokens: 0, estimated: true };
  }

  /** Writes and sums up what a model call used; `cost` is there when the model's price is known (S12). */
  recordUsage(usage: Usage): { readonly tokens: number; readonly cost?: number } {
    this.#totals.prompt_tokens += usage.promptTokens;
    this.#totals.completion_tokens += usage.completionTokens;
    this.#totals.cached_tokens += usage.cachedTokens;
    this.#totals.model_calls += 1;
    this.#totals.estimated ||= usage.estimated;
    const cost = costOf(usage, this.#context.resolved.agent.engine.prices);
    if (cost !== null) this.#totals.cost = dollars((this.#totals.cost ?? 0) + cost);
    else this.#warnUnpriced(usage);
    this.#log.append('usage', {
      prompt_tokens: usage.promptTokens,
      completion_tokens: usage.completionTokens,
      cached_tokens: usage.cachedTokens,
      ...(usage.estimated ? { estimated: true } : {}),
      ...(usage.model === undefined ? {} : { model: usage.model }),
      ...(cost === null ? {} : { cost: dollars(cost) }),
    });
    return { tokens: usage.promptTokens + usage.completionTokens, ...(cost === null ? {} : { cost }) };
  }

  /** A budget that cannot see a call should say so, once. */
  #warnUnpriced({ model }: Usage): void {
    if (this.#context.policy.cost == null || this.#unpriced) return;
    this.#unpriced = true;
    const which = model === undefined ? 'a model that is not named' : `the model "${model}"`;
    this.#log.warn(
      'unknown_price',
      `The price of ${which} is not known: its calls do not count for the cost budget (add it under cognitive_engine.prices)`,
    );
  }

  end(input: Extract<RunInput, { type: 'generation_ended' }>): {
    finish: FinishReason;
    answered: boolean;
    error: { code: string; message: string } | null;
  } {
    this.endReasoning();
    this.#nextAutoId = this.#readers?.text.nextAutoId ?? this.#nextAutoId;
    this.#generationText = input.text;
    this.#calls = input.calls;
    this.#cut = input.finish === 'stop' || input.finish === 'tool_calls' ? null : input.finish;
    if (this.#cut !== null) {
      const why = input.error === null ? '' : `: ${input.error.message}`;
      this.#log.warn('generation_cut', `The generation ended early (${input.finish})${why}`);
    }
    const { bareText } = this.#context.resolved.agent.protocol;
    const bare = this.#saw.text && !this.#saw.action && !this.#saw.response;
    return { finish: input.finish, answered: bare && bareText === 'answer', error: input.error };
  }

  reportPlan(iteration: number): void {
    const report = planOf(this.#state(), iteration);
    this.#log.append('plan_generated', planJson(report));
  }

  complete(final: boolean): void {
    const text = this.#generationText;
    const calls = this.#calls;
    const cut = this.#cut === null ? {} : { cut: this.#cut };
    this.#turn.generations.push({ text, calls, results: this.#iterationResults(), ...cut });
    const state: JsonObject = {
      text,
      ...(calls.length === 0 ? {} : { calls: calls.map((call) => ({ ...call })) }),
      ...cut,
    };
    this.#log.append(
      'iteration_completed',
      { iteration: this.#log.iteration, final },
      this.#context.source.type === 'model' ? { state } : {},
    );
  }

  /** @returns the seq of the event that ends the run */
  announceEnd(end: Extract<SchedulerCommand, { type: 'end_run' }>): number {
    const iterations = this.#log.iteration;
    const usage = { ...this.#totals };
    switch (end.status) {
      case 'completed':
        return this.#log.append('agent_completed', { response: this.answer(), iterations, usage });
      case 'failed': {
        const error = end.error === null ? { code: 'internal', message: 'The run failed' } : { ...end.error };
        return this.#log.append('agent_failed', { error, iterations, usage });
      }
      case 'cancelled':
        return this.#log.append('agent_cancelled', { iterations, usage });
      case 'waiting':
        return this.#log.append('agent_waiting', { reason: 'approvals', iterations });
    }
  }

  /** The last final response, else the last response, else the bare text (H7). */
  answer(): string {
    const { responses } = this.#segments;
    const final = responses.findLast((response) => response.final === true);
    return (final ?? responses.at(-1))?.content ?? this.#segments.bareText;
  }

  #iterationResults(): Turn['generations'][number]['results'] {
    return this.#results
      .ofIteration(this.#log.iteration)
      .filter((result) => !result.silent)
      .map(({ id, ordinal, name, status, output, note, startedAt, endedAt }) => ({
        id,
        ordinal,
        name,
        status,
        ms: startedAt === null ? null : endedAt - startedAt,
        ...(status === 'completed' ? { output } : { note }),
      }));
  }

  /** Reads one generation to its end; whatever happens, exactly one `generation_ended` follows. */
  async #pump(readers: Readers, signal: AbortSignal, skip: number): Promise<void> {
    const { source } = this.#context;
    const { dialect, actInReasoning } = this.#context.resolved.agent.protocol;
    let said: StreamPiece[] = [];
    let toSkip = skip;
    let finish: FinishReason = 'stop';
    let error: { code: string; message: string } | null = null;
    let ignoring = false;
    const put = (events: readonly ProtocolEvent[]): void => {
      if (events.length === 0) return;
      this.#inbox.put({ type: 'protocol', said, events });
      said = [];
    };
    const feed = (chunk: string): void => {
      const text = toSkip === 0 ? chunk : chunk.slice(toSkip);
      toSkip -= chunk.length - text.length;
      this.#say(text);
      said.push({ text });
      put(readers.text.feed(text));
    };
    try {
      if (source.type === 'workflow') {
        for await (const piece of untilAborted(this.#write(source), signal)) feed(piece);
      } else if (source.type === 'text') {
        if (this.#context.share.isDue) await this.#context.share.turn();
        for await (const piece of inPieces(source.chunks)) {
          if (signal.aborted) break;
          feed(piece);
          this.#context.share.charge(piece.length * limits.textCharSteps);
          // A text that was posted whole takes many turns, so that others of the thread have theirs in between.
          if (piece.length === limits.turnChars) await this.#inbox.turnOver(signal);
        }
      } else {
        const feeds = await this.#feeds(signal);
        const request = this.#request(source, feeds, signal);
        const call = { messages: request.messages, bytes: 0 };
        this.#call = signal.aborted ? null : call;
        const stream = this.#context.model.stream(request);
        for await (const delta of actInReasoning ? reasoningAsText(stream) : stream) {
          if (signal.aborted && delta.type !== 'usage') break;
          call.bytes += deltaBytes(delta);
          switch (delta.type) {
            case 'text':
              if (source.tokens) this.#inbox.put({ type: 'token', text: delta.text });
              feed(delta.text);
              break;
            case 'reasoning':
              this.#inbox.put({ type: 'reasoning', text: delta.text });
              break;
            case 'usage':
              // Unless the run was cancelled in the meantime: then it is counted already.
              if (this.#call === call) this.#inbox.put({ type: 'usage', usage: delta.usage });
              this.#call = null;
              break;
            case 'notice':
              put([{ type: 'warning', code: delta.code, message: delta.message, offset: 0 }]);
              break;
            case 'finish':
              finish = delta.reason;
              break;
            case 'tool_call':
              if (dialect !== 'protocol') {
                said.push({ delta });
                put(readers.calls.feed(delta));
              } else if (!ignoring) put([IGNORED_CALL]);
              ignoring = true;
              break;
          }
        }
      }
    } catch (fault) {
      finish = 'error';
      // Posted text that broke off is the client's doing, not a model's.
      const code = { text: 'input_cut', workflow: 'step_failed', model: 'model_unavailable' }[source.type];
      const known = fault instanceof EngineError || fault instanceof StepFailed;
      error = { code: known ? fault.code : code, message: messageOf(fault) };
    }
    if (signal.aborted) {
      finish = 'abort';
      const usage = this.spent();
      if (usage !== null) this.#inbox.put({ type: 'usage', usage });
    }
    this.#call = null;
    this.#inbox.put({ type: 'generation_ended', finish, said, ...this.#endOf(readers, finish), error });
  }

  #write({ definition, inputs }: Extract<RunContext['source'], { type: 'workflow' }>): AsyncIterable<string> {
    return workflowText(definition, inputs, {
      declared: (id) => lookup(this.#state(), id) !== null,
      settled: (id) => this.#results.settled(id),
    });
  }

  /** What the generation may write, so that the tokens of the last one stay set aside (S12). */
  #maxTokens(messages: readonly ChatMessage[], wished: number | null): number | null {
    if (this.#last) return limits.lastGenerationTokens;
    const left = generationTokens(this.#state());
    if (left === null) return wished;
    const prompt = messages.reduce((sum, { content }) => sum + estimateTokens(content), 0);
    return Math.min(wished ?? Infinity, Math.max(limits.leastGenerationTokens, left - prompt));
  }

  /** What the feeds show now; the model's call waits for them, up to their deadline (F2). */
  async #feeds(signal: AbortSignal): Promise<readonly FeedReport[]> {
    const { feeds, resolved } = this.#context;
    const moment = { iteration: this.#log.iteration, usage: { ...this.#totals } };
    const used = (usage: Usage): void => this.#inbox.put({ type: 'usage', usage });
    const ports = { ...this.#context, moment, used };
    return await feeds.gather(resolved, (feed, aborted) => fetchFeed(feed, ports, aborted), signal);
  }

  #request(
    source: Extract<RunContext['source'], { type: 'model' }>,
    feeds: readonly FeedReport[],
    signal: AbortSignal,
  ): Parameters<RunContext['model']['stream']>[0] {
    const { resolved } = this.#context;
    const { agent } = resolved;
    const parameters: JsonObject = { ...agent.engine.parameters };
    const { temperature, max_tokens: maxTokens, ...extra } = parameters;
    const turns = withoutCleared([...source.history.slice(-limits.historyTurns), this.#turn]);
    const messages = buildMessages({
      system: buildSystemPrompt(resolved),
      history: turns.slice(0, -1),
      memory: agent.memory,
      current: { ...(turns.at(-1) ?? this.#turn), last: this.#last, feeds },
    });
    // Declaring functions costs tokens, so it is done where the manifest asks for it; and where the
    // conversation holds calls already: endpoints refuse those without the functions.
    const native = agent.protocol.dialect === 'tool_calls' || messages.some(({ toolCalls }) => toolCalls !== undefined);
    return {
      messages,
      // Which of the agent's models answers is the router's business.
      model: null,
      temperature: typeof temperature === 'number' ? temperature : null,
      maxTokens: this.#maxTokens(messages, typeof maxTokens === 'number' ? maxTokens : null),
      extra,
      agent: agentSummary(resolved),
      ...(native ? { tools: nativeTools(resolved), answerOnly: this.#last } : {}),
      signal,
    };
  }
}

/** Ends with the signal, even where nothing comes any more. */
async function* untilAborted(chunks: AsyncIterable<string>, signal: AbortSignal): AsyncGenerator<string> {
  const iterator = chunks[Symbol.asyncIterator]();
  const aborted = new Promise<IteratorResult<string>>((resolve) => {
    const stop = (): void => resolve({ done: true, value: undefined });
    if (signal.aborted) stop();
    else signal.addEventListener('abort', stop, { once: true });
  });
  for (;;) {
    const next = await Promise.race([iterator.next(), aborted]);
    if (next.done === true || signal.aborted) return;
    yield next.value;
  }
}

/** The same text in pieces of at most `limits.turnChars`. */
async function* inPieces(chunks: AsyncIterable<string>): AsyncGenerator<string> {
  for await (const chunk of chunks) {
    for (let at = 0; at < chunk.length; at += limits.turnChars) yield chunk.slice(at, at + limits.turnChars);
  }
}

function deltaBytes(delta: ModelDelta): number {
  if (delta.type === 'tool_call') return textBytes(delta.name ?? '') + textBytes(delta.argumentsDelta);
  return delta.type === 'text' || delta.type === 'reasoning' ? textBytes(delta.text) : 0;
}

/** Without the noise of binary fractions: a billionth is far below any price. */
function dollars(cost: number): number {
  return Math.round(cost * 1e9) / 1e9;
}
