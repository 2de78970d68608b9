/**
 * One generation, from its source to the run:
 *
 *   provider -> deltas -> text -> parser -> protocol events -> input queue -> the loop in run/run.ts
 *
 * A generation comes from a model, from a posted text, or from a workflow, which declares actions. Exactly one `generation_ended`
 * follows, whatever happens to the source.
 */
import { EngineError, messageOf } from '../../domain/errors.ts';
import { limits } from '../../domain/limits.ts';
import type { FinishReason, ModelRequest } from '../../domain/ports/model.ts';
import type { ProtocolEvent } from '../../domain/protocol-event.ts';
import { reasoningAsText } from '../../llm/providers/reasoning-text.ts';
import type { ReferredFeeds } from '../feeds/referred-feeds.ts';
import type { InputQueue } from '../run/input-queue.ts';
import type { RunContext, RunSource } from '../run/run-context.ts';
import type { DeclaredPiece, RunInput, StreamPiece } from '../run/run-input.ts';
import { StepFailed } from '../workflow/step-failed.ts';
import type { GenerationReader } from './generation-reader.ts';
import type { RunUsage } from './run-usage.ts';

interface Stream {
  readonly context: RunContext;
  readonly inputQueue: InputQueue;
  readonly reader: GenerationReader;
  readonly usage: RunUsage;
  /** Resolves when the start of the generation is durable: the model is not asked before. */
  readonly durable: Promise<void>;
  /** Creates the model request, after the feeds have answered. */
  readonly request: (source: ModelSource, signal: AbortSignal) => Promise<ModelRequest>;
  /** Fetches the feeds that the text refers to. */
  readonly referred: Pick<ReferredFeeds, 'read' | 'mayRefer'>;
  /** Declares the actions of a workflow. */
  readonly declare: (source: WorkflowSource) => AsyncIterable<DeclaredPiece>;
}

/** Receives the pieces and events of one generation. */
interface Sink {
  /**
   * Reads a piece and passes on the events that it completes: at once, or when the feeds that they refer to have
   * answered. The next piece must not be read before.
   *
   * @returns null if there was nothing to wait for
   */
  feed(piece: StreamPiece): Promise<void> | null;
  /** Passes on events with the pieces that they were read from. */
  put(events: readonly ProtocolEvent[]): void;
  /** Passes on the usage that was reported. */
  putUsage(): void;
}

type ModelSource = Extract<RunSource, { type: 'model' }>;
type WorkflowSource = Extract<RunSource, { type: 'workflow' }>;
type Ended = Extract<RunInput, { type: 'generation_ended' }>;

/** The error code of a source that has none of its own. A posted text that ends early is the client's error. */
const FAULTS = { text: 'input_cut', workflow: 'step_failed', model: 'model_unavailable' } as const;

/** Before the tags of blocks. */
const BLOCK_START = /(?=<(?:action|response|thought)\b)/i;

/** Warning, sent once, if the manifest disables native calls (P17). */
const IGNORED_CALL: ProtocolEvent = {
  type: 'warning',
  code: 'tool_call_ignored',
  message: 'The model called functions natively, which the manifest disables (protocol.dialect: protocol)',
  offset: 0,
};

/** @param skip number of characters of posted text that were read before a crash */
export async function streamGeneration(stream: Stream, signal: AbortSignal, skip: number): Promise<void> {
  const { inputQueue, reader, usage, referred } = stream;
  const { source } = stream.context;
  /** Pieces that have not completed an event yet. */
  let pieces: StreamPiece[] = [];
  const put = (events: readonly ProtocolEvent[]): void => {
    if (events.length === 0) return;
    inputQueue.put({ type: 'protocol', pieces, events });
    pieces = [];
  };
  const feed = (piece: StreamPiece): Promise<void> | null => {
    pieces.push(piece);
    const events = reader.feed(piece);
    const waiting = events.length === 0 ? null : referred.read(events, signal);
    if (waiting !== null) return waiting.then((warnings) => put([...warnings, ...events]));
    put(events);
    return null;
  };
  // With the end of the generation, if it follows: one turn writes both (J6).
  const putUsage = (): void => {
    const reported = usage.takeReported();
    if (reported !== null) inputQueue.put({ type: 'usage', usage: reported });
  };
  let finish: FinishReason = 'stop';
  let error: Ended['error'] = null;
  try {
    switch (source.type) {
      case 'model':
        finish = await readModel(stream, source, { feed, put, putUsage }, signal);
        break;
      case 'text':
        await readPosted(stream, inPieces(source.chunks, skip), { feed }, signal);
        break;
      case 'workflow':
        for await (const piece of untilAborted(stream.declare(source), signal)) await feed(piece);
    }
  } catch (fault) {
    finish = 'error';
    const code = fault instanceof EngineError || fault instanceof StepFailed ? fault.code : FAULTS[source.type];
    error = { code, message: messageOf(fault) };
  }
  if (signal.aborted) {
    finish = 'abort';
    const open = usage.takeOpenCall();
    if (open !== null) inputQueue.put({ type: 'usage', usage: open });
  }
  const { events, ...written } = reader.end(finish);
  const ended = { type: 'generation_ended', finish, pieces, ...written, error } as const;
  try {
    const warnings = (await referred.read(events, signal)) ?? [];
    putUsage();
    inputQueue.put({ ...ended, events: [...warnings, ...events] });
  } catch (fault) {
    putUsage();
    const failed = { code: 'internal', message: messageOf(fault) } as const;
    inputQueue.put({ ...ended, events, finish: 'error', error: error ?? failed });
  }
  usage.closeCall();
}

async function readModel(
  { context, inputQueue, usage, request, durable }: Stream,
  source: ModelSource,
  { feed, put, putUsage }: Sink,
  signal: AbortSignal,
): Promise<FinishReason> {
  const { dialect, actInReasoning } = context.resolved.agent.protocol;
  let finish: FinishReason = 'stop';
  let ignored = false;
  const { share } = context;
  if (share.isDue) await share.waitTurn();
  const asked = await request(source, signal);
  await durable;
  // What was read and written for it: a long conversation takes as long in every generation.
  for (const { content } of asked.messages) share.charge(content.length * limits.promptCharSteps);
  if (!signal.aborted) {
    usage.openCall(asked.messages);
    inputQueue.put({ type: 'prompt', request: asked });
  }
  const deltas = context.model.stream(asked);
  for await (const delta of actInReasoning ? reasoningAsText(deltas) : deltas) {
    if (signal.aborted && delta.type !== 'usage') break;
    usage.received(delta);
    if (delta.type !== 'finish') putUsage();
    let waiting: Promise<void> | null = null;
    switch (delta.type) {
      case 'text':
        if (source.tokens) inputQueue.put({ type: 'token', text: delta.text });
        waiting = feed({ text: delta.text });
        break;
      case 'reasoning':
        inputQueue.put({ type: 'reasoning', text: delta.text });
        break;
      case 'tool_call':
        if (dialect !== 'protocol') waiting = feed({ delta });
        else if (!ignored) put([IGNORED_CALL]);
        ignored = true;
        break;
      case 'usage':
        usage.report(delta.usage);
        break;
      case 'notice':
        put([{ type: 'warning', code: delta.code, message: delta.message, offset: 0 }]);
        break;
      case 'finish':
        finish = delta.reason;
    }
    if (waiting !== null) await waiting;
  }
  return finish;
}

/** A posted text is read in several turns, so that other sessions of the thread can run in between. */
async function readPosted(
  { context, inputQueue, referred }: Stream,
  pieces: AsyncIterable<string>,
  { feed }: Pick<Sink, 'feed'>,
  signal: AbortSignal,
): Promise<void> {
  const { share } = context;
  if (share.isDue) await share.waitTurn();
  for await (const text of pieces) {
    if (signal.aborted) return;
    // An action does not wait for a feed that only later text refers to.
    for (const part of referred.mayRefer(text) ? text.split(BLOCK_START) : [text]) {
      const waiting = feed({ text: part });
      if (waiting !== null) await waiting;
    }
    share.charge(text.length * limits.textCharSteps);
    if (text.length === limits.programSliceChars) await inputQueue.turnEnd(signal);
  }
}

/** The text after its first `skip` characters, in pieces of at most `limits.programSliceChars`. */
async function* inPieces(chunks: AsyncIterable<string>, skip: number): AsyncGenerator<string> {
  let left = skip;
  for await (const chunk of chunks) {
    const begin = Math.min(left, chunk.length);
    left -= begin;
    for (let at = begin; at < chunk.length; at += limits.programSliceChars)
      yield chunk.slice(at, at + limits.programSliceChars);
  }
}

/** Ends with the signal, even if the source yields nothing more. */
async function* untilAborted<T>(items: AsyncIterable<T>, signal: AbortSignal): AsyncGenerator<T> {
  const iterator = items[Symbol.asyncIterator]();
  const aborted = new Promise<IteratorResult<T>>((resolve) => {
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
