/**
 * The events of a run as the AI SDK's UI message stream, version 1 (E1).
 *
 * An iteration is a step, a thought is a reasoning part, a response or bare text is a text part. An action is a dynamic
 * tool that the server has executed; a call of a client tool is one that the client executes. An action is shown when it
 * starts, because its references have values then.
 *
 * Invariants:
 *  1. Only chunk types and members that versions 5 to 7 of the client know are sent: older ones reject others. Steering
 *     messages, which only version 7 knows, are sent to clients that ask for them with `?steering=true`.
 *  2. Every part that was opened is closed before the step, and the step before the message.
 *  3. What follows a wait is in a new step: a client that answers by itself looks at the last step, and would send its
 *     answers again and again.
 *  4. Parts are in the order in which their blocks and actions began, although a replay has the text of a block only at
 *     its end.
 *  5. Events up to `run.after` change the state and give no frames. A continued stream begins with the same message id.
 */
import type { UIMessageChunk } from 'ai';
import type { EventOf, SessionEvent } from '../../domain/event.ts';
import { endsWait, isBlockEnd, isTextPatch, RUN_END_EVENTS } from '../../domain/event.ts';
import { foldOutline } from '../../view/reduce.ts';
import { emptyView } from '../../view/run-view.ts';
import { ShownBlocks } from '../shown-blocks.ts';
import { ShownCalls } from '../shown-calls.ts';
import type { CallEnd, ShownCall } from '../shown-calls.ts';
import { LOST } from '../surface.ts';
import type { Fold, FoldedRun, StreamEnd } from '../surface.ts';

/** As the client's package declares them: what changes there does not compile here. */
export type Chunk = Readonly<UIMessageChunk>;

const DONE = 'data: [DONE]\n\n';

const frame = (chunk: Chunk): string => `data: ${JSON.stringify(chunk)}\n\n`;

/** Ends a stream that the session did not end. */
export const LOST_FRAMES = frame({ type: 'error', errorText: LOST.connection_lost.message }) + DONE;

/** The stream of a run. */
export class AiSdkFold implements Fold {
  readonly #chunks: ChunkFold;

  constructor(run: FoldedRun) {
    this.#chunks = new ChunkFold(run);
  }

  add(event: SessionEvent): string {
    return this.#chunks.add(event).map(frame).join('');
  }

  end(how: StreamEnd): string {
    return this.#chunks.end(how).map(frame).join('') + DONE;
  }
}

/** The same as values. */
export class ChunkFold {
  readonly #run: FoldedRun;
  /** Blocks have short ids, because every piece of text has one. */
  readonly #blocks = new ShownBlocks<Chunk>({
    before: () => this.#resumed(),
    start: ({ part, number }) => [{ type: `${part}-start`, id: String(number) }],
    delta: ({ part, number }, delta) => ({ type: `${part}-delta`, id: String(number), delta }),
    end: ({ part, number }) => [{ type: `${part}-end`, id: String(number) }],
  });
  readonly #calls: ShownCalls;
  /** Actions that a person has denied: their end says nothing more. */
  readonly #denied = new Set<ShownCall>();
  /** Messages that the next generation is shown. */
  readonly #received: EventOf<'message_received'>['data'][] = [];
  #seq = 0;
  #isStarted = false;
  #isInStep = false;
  /** The run has waited, or had ended before the client's answers, and nothing was shown since then. */
  #hasWaited = false;
  #view = emptyView('');

  constructor(run: FoldedRun) {
    this.#run = run;
    this.#calls = new ShownCalls(run.clientTools);
  }

  add(event: SessionEvent): readonly Chunk[] {
    this.#seq = event.seq ?? this.#seq;
    const chunks = this.#chunksOf(event);
    const isKnown =
      this.#run.after > 0 && (event.seq === null ? this.#seq < this.#run.after : event.seq <= this.#run.after);
    if (isKnown) {
      // What was open then was closed by the end of that stream.
      this.#isInStep = false;
      // What was asked after the end of the run has been answered.
      this.#hasWaited ||= RUN_END_EVENTS.has(event.type);
      return [];
    }
    return this.#started(chunks);
  }

  end(how: StreamEnd): readonly Chunk[] {
    const resumed = this.#view.status === 'waiting' ? [] : this.#resumed();
    const chunks = [...resumed, ...this.#closing(), this.#last(how)];
    return this.#started(chunks);
  }

  #started(chunks: readonly Chunk[]): readonly Chunk[] {
    if (chunks.length === 0) return chunks;
    const start: readonly Chunk[] = this.#isStarted ? [] : [{ type: 'start', messageId: this.#run.runId }];
    this.#isStarted = true;
    return [...start, ...chunks];
  }

  #last(how: StreamEnd): Chunk {
    const { status, is_cut: isCut, error } = this.#view;
    switch (how === 'stopped' ? status : 'running') {
      case 'completed':
        return { type: 'finish', finishReason: isCut ? 'length' : 'stop' };
      case 'waiting':
        return { type: 'finish', finishReason: 'tool-calls' };
      case 'cancelled':
        return { type: 'abort' };
      case 'failed': {
        const { code, message } = error ?? LOST.stopped;
        return { type: 'error', errorText: `${message} (${code})` };
      }
      case 'queued':
      case 'running':
        return { type: 'error', errorText: LOST[how].message };
    }
  }

  /** Ends open parts and the step. */
  #closing(): Chunk[] {
    const ends = this.#blocks.closeAll();
    const step: Chunk[] = this.#isInStep ? [{ type: 'finish-step' }] : [];
    this.#isInStep = false;
    return [...ends, ...step];
  }

  /** @param before precedes the step */
  #nextStep(before: readonly Chunk[] = []): Chunk[] {
    const closing = this.#closing();
    this.#isInStep = true;
    this.#hasWaited = false;
    return [...closing, ...before, { type: 'start-step' }];
  }

  /** A message that came during the run, in the form that the client knows (C5). */
  #message({ message_id: id, content }: EventOf<'message_received'>['data']): Chunk {
    if (this.#run.options['steering'] !== true) return { type: 'data-message', id, data: { content } };
    return { type: 'steering-message', id, parts: [{ type: 'text', text: content }] };
  }

  /** Begins a step before the first part after a wait. */
  #resumed(): Chunk[] {
    return this.#hasWaited ? this.#nextStep() : [];
  }

  /** What precedes a new part. */
  #begun(): Chunk[] {
    return [...this.#resumed(), ...this.#blocks.begun()];
  }

  #chunksOf(event: SessionEvent): Chunk[] {
    const hasWaited = this.#view.status === 'waiting';
    this.#view = foldOutline(this.#view, event);
    if (isTextPatch(event)) return this.#blocks.add(event);
    if (isBlockEnd(event)) return this.#blocks.close(event);
    if (event.type === 'agent_waiting' || (endsWait(event) && hasWaited)) this.#hasWaited = true;
    switch (event.type) {
      case 'iteration_started':
        return this.#nextStep(this.#received.splice(0).map((data) => this.#message(data)));
      case 'message_received':
        this.#received.push(event.data);
        return [];
      case 'thought_started':
      case 'text_started':
      case 'response_started': {
        // Before the block is open: a new step closes what is.
        const resumed = this.#resumed();
        this.#blocks.open(event);
        return resumed;
      }
      case 'plan_generated': {
        const { total, waves, edges } = event.data;
        const id = `plan-${event.iteration}`;
        return total === 0 ? [] : [...this.#begun(), { type: 'data-plan', id, data: { total, waves, edges } }];
      }
      case 'context_feed_updated':
        return [{ type: 'data-feed', data: event.data, transient: true }];
      case 'progress':
        return [{ type: 'data-progress', data: { action: event.action_id, ...event.data }, transient: true }];
      default:
        return this.#action(event);
    }
  }

  #action(event: SessionEvent): Chunk[] {
    const change = this.#calls.take(event);
    const chunks: Chunk[] = [];
    if (change?.begins != null) {
      const { call, begins: input } = change;
      const shown = { toolCallId: idOf(call), toolName: call.name, input, dynamic: true, ...executedBy(call) };
      chunks.push(...this.#begun(), { type: 'tool-input-available', ...shown });
    }
    if (event.type === 'approval_requested') chunks.push(...this.#asked(event));
    const call = change?.call ?? this.#calls.of(event);
    if (event.type === 'approval_resolved' && !event.data.approved && call !== undefined) {
      this.#denied.add(call);
      return [{ type: 'tool-output-denied', toolCallId: idOf(call) }];
    }
    if (change?.end == null || this.#denied.has(change.call)) return chunks;
    return [...chunks, resultOf(change.call, change.end)];
  }

  #asked(event: EventOf<'approval_requested'>): Chunk[] {
    const { approval_id: approvalId, question } = event.data;
    const call = this.#calls.of(event);
    const toolCallId = call === undefined ? `${event.iteration}/${event.action_id}` : idOf(call);
    const request: Chunk = { type: 'tool-approval-request', approvalId, toolCallId };
    if (question === undefined) return [request];
    // The request has no place for a text.
    const data = { approvalId, toolCallId, ...question };
    return [...this.#begun(), { type: 'data-question', id: approvalId, data }, request];
  }
}

/** The id of a call; a client tool's call has its own. */
function idOf({ iteration, actionId, rejectedAt, callId }: ShownCall): string {
  const own = rejectedAt === null ? '' : `/${rejectedAt}`;
  return callId ?? `${iteration}/${actionId}${own}`;
}

function executedBy({ callId }: ShownCall): { readonly providerExecuted?: true } {
  return callId === null ? { providerExecuted: true } : {};
}

function resultOf(call: ShownCall, end: CallEnd): Chunk {
  const toolCallId = idOf(call);
  const more = { dynamic: true, ...executedBy(call) };
  switch (end.status) {
    case 'completed':
      return { type: 'tool-output-available', toolCallId, output: end.output, ...more };
    case 'failed':
    case 'rejected':
      return { type: 'tool-output-error', toolCallId, errorText: end.message, ...more };
    case 'skipped':
    case 'cancelled':
      return { type: 'tool-output-error', toolCallId, errorText: `${end.status}: ${end.message}`, ...more };
  }
}
