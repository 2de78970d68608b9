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
import type { EventOf, SessionEvent } from '../../domain/event.ts';
import { cutGeneration, endsWait, isBlockEnd, isTextPatch, RUN_END_EVENTS } from '../../domain/event.ts';
import type { Json, JsonObject } from '../../domain/json.ts';
import { ShownText } from '../shown-text.ts';
import type { Fold, FoldedRun, StreamEnd } from '../surface.ts';

export type Chunk = { readonly type: string } & Readonly<Record<string, unknown>>;

/** An open block of text. */
interface Block {
  /** Its number in the message: short, because every piece of text has it. */
  readonly id: string;
  readonly part: 'text' | 'reasoning';
  readonly text: ShownText;
}

interface Tool {
  readonly id: string;
  readonly isClient: boolean;
}

/** How the run has ended, or that it waits. */
type Outcome = EventOf<'agent_completed' | 'agent_failed' | 'agent_cancelled' | 'agent_waiting'>;

const LOST: Readonly<Record<StreamEnd, string>> = {
  stopped: 'The connection to the session was lost; the run continues',
  token_expired: 'The token has expired; the run continues',
  session_deleted: 'The session was deleted',
  connection_lost: 'The connection to the session was lost; the run continues',
};

const DONE = 'data: [DONE]\n\n';

const frame = (chunk: Chunk): string => `data: ${JSON.stringify(chunk)}\n\n`;

/** Ends a stream that the session did not end. */
export const LOST_FRAMES = frame({ type: 'error', errorText: LOST.connection_lost }) + DONE;

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
  readonly #blocks = new Map<number, Block>();
  #blockCount = 0;
  /** What was queued and has not started, by iteration and id. */
  readonly #queued = new Map<string, JsonObject>();
  readonly #tools = new Map<string, Tool>();
  /** Actions that a person has denied: their end says nothing more. */
  readonly #denied = new Set<string>();
  /** Messages that the next generation is shown. */
  readonly #received: EventOf<'message_received'>['data'][] = [];
  #seq = 0;
  #isStarted = false;
  #isInStep = false;
  /** The run has waited, or had ended before the client's answers, and nothing was shown since then. */
  #hasWaited = false;
  #outcome: Outcome | null = null;
  /** The last generation whose text ended early. */
  #cutIn: number | null = null;

  constructor(run: FoldedRun) {
    this.#run = run;
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
    const resumed = this.#outcome?.type === 'agent_waiting' ? [] : this.#resumed();
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
    const outcome = how === 'stopped' ? this.#outcome : null;
    switch (outcome?.type) {
      case 'agent_completed':
        return { type: 'finish', finishReason: outcome.data.iterations === this.#cutIn ? 'length' : 'stop' };
      case 'agent_waiting':
        return { type: 'finish', finishReason: 'tool-calls' };
      case 'agent_cancelled':
        return { type: 'abort' };
      case 'agent_failed':
        return { type: 'error', errorText: `${outcome.data.error.message} (${outcome.data.error.code})` };
      default:
        return { type: 'error', errorText: LOST[how] };
    }
  }

  /** Ends open parts and the step. */
  #closing(): Chunk[] {
    const ends = [...this.#blocks.values()].flatMap(({ part, id, text }) =>
      text.isShown ? [{ type: `${part}-end`, id }] : [],
    );
    this.#blocks.clear();
    const step = this.#isInStep ? [{ type: 'finish-step' }] : [];
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

  /** What precedes a new part: the parts of open blocks that have no text yet. @param segment only blocks before it */
  #begun(segment = Infinity): Chunk[] {
    const chunks = this.#resumed();
    for (const [opened, { id, part, text }] of this.#blocks) {
      if (text.isShown || opened >= segment) continue;
      const blank = text.show();
      chunks.push({ type: `${part}-start`, id });
      if (blank !== '') chunks.push({ type: `${part}-delta`, id, delta: blank });
    }
    return chunks;
  }

  #chunksOf(event: SessionEvent): Chunk[] {
    if (isTextPatch(event)) {
      const { segment, offset, delta } = event.data;
      return this.#text(segment, (text) => text.add(offset, delta));
    }
    if (isBlockEnd(event)) return this.#blockEnd(event.data.segment, event.data.content);
    this.#cutIn = cutGeneration(event) ?? this.#cutIn;
    if (event.type === 'agent_waiting' || (endsWait(event) && this.#outcome?.type === 'agent_waiting')) {
      this.#hasWaited = true;
    }
    if (endsWait(event)) this.#outcome = null;
    switch (event.type) {
      case 'iteration_started':
        return this.#nextStep(this.#received.splice(0).map((data) => this.#message(data)));
      case 'message_received':
        this.#received.push(event.data);
        return [];
      case 'thought_started':
      case 'text_started':
      case 'response_started': {
        const part = event.type === 'thought_started' ? 'reasoning' : 'text';
        const id = String((this.#blockCount += 1));
        // Before the block is open: a new step closes what is.
        const resumed = this.#resumed();
        this.#blocks.set(event.seq, { id, part, text: new ShownText() });
        return resumed;
      }
      case 'plan_generated': {
        const { total, waves, edges } = event.data;
        const id = `plan-${event.iteration}`;
        return total === 0 ? [] : [...this.#begun(), { type: 'data-plan', id, data: { total, waves, edges } }];
      }
      case 'context_feed_updated':
        return [{ type: 'data-feed', data: event.data, transient: true }];
      case 'agent_waiting':
      case 'agent_completed':
      case 'agent_failed':
      case 'agent_cancelled':
        this.#outcome = event;
        return [];
      default:
        return this.#action(event);
    }
  }

  #text(segment: number, take: (text: ShownText) => string): Chunk[] {
    const block = this.#blocks.get(segment);
    if (block === undefined) return [];
    const { id, part, text } = block;
    const { isShown } = text;
    const delta = take(text);
    if (delta === '') return [];
    const start = isShown ? [] : [...this.#begun(segment), { type: `${part}-start`, id }];
    return [...start, { type: `${part}-delta`, id, delta }];
  }

  #blockEnd(segment: number, content: string): Chunk[] {
    const rest = this.#text(segment, (text) => text.end(content));
    const block = this.#blocks.get(segment);
    this.#blocks.delete(segment);
    return block?.text.isShown === true ? [...rest, { type: `${block.part}-end`, id: block.id }] : rest;
  }

  #action(event: SessionEvent): Chunk[] {
    if (event.action_id === undefined) return [];
    const key = `${event.iteration}/${event.action_id}`;
    const name = event.action_name ?? event.action_id;
    switch (event.type) {
      case 'action_queued':
        this.#queued.set(key, event.data.parameters);
        return [];
      case 'action_started':
        if (event.data.attempt > 1 || this.#run.clientTools.includes(name)) return [];
        return this.#shown(key, name, event.data.parameters);
      case 'client_tool_called': {
        const { call_id: id, parameters: input } = event.data;
        this.#queued.delete(key);
        this.#tools.set(key, { id, isClient: true });
        return [
          ...this.#begun(),
          { type: 'tool-input-available', toolCallId: id, toolName: name, input, dynamic: true },
        ];
      }
      case 'approval_requested': {
        const { approval_id: approvalId, parameters, question } = event.data;
        const shown = this.#shown(key, name, parameters);
        const toolCallId = this.#tools.get(key)?.id ?? key;
        // The request has no place for a text.
        if (question !== undefined) {
          const data = { approvalId, toolCallId, ...question };
          shown.push(...this.#begun(), { type: 'data-question', id: approvalId, data });
        }
        return [...shown, { type: 'tool-approval-request', approvalId, toolCallId }];
      }
      case 'approval_resolved': {
        const toolCallId = this.#tools.get(key)?.id ?? key;
        if (event.data.approved) return [];
        this.#denied.add(key);
        return [{ type: 'tool-output-denied', toolCallId }];
      }
      case 'progress':
        return [{ type: 'data-progress', data: { action: event.action_id, ...event.data }, transient: true }];
      case 'action_completed':
        return this.#settled(key, name, { output: event.data.output });
      case 'action_failed':
        return this.#settled(key, name, { errorText: event.data.error.message });
      case 'action_rejected': {
        // Its id may be that of another action.
        const own = `${key}/${event.seq}`;
        this.#queued.set(own, event.data.parameters ?? {});
        return this.#settled(own, name, { errorText: event.data.message });
      }
      case 'action_skipped':
        return this.#settled(key, name, { errorText: `skipped: ${event.data.because ?? event.data.reason}` });
      case 'action_cancelled':
        return this.#settled(key, name, { errorText: `cancelled: ${event.data.reason}` });
      default:
        return [];
    }
  }

  /** The tool with its input, unless it was shown already. */
  #shown(key: string, toolName: string, resolved: JsonObject | undefined): Chunk[] {
    if (this.#tools.has(key)) return [];
    const input = resolved ?? this.#queued.get(key) ?? {};
    this.#queued.delete(key);
    this.#tools.set(key, { id: key, isClient: false });
    return [
      ...this.#begun(),
      { type: 'tool-input-available', toolCallId: key, toolName, input, dynamic: true, providerExecuted: true },
    ];
  }

  #settled(key: string, name: string, result: { readonly output: Json } | { readonly errorText: string }): Chunk[] {
    if (this.#denied.has(key)) return [];
    const shown = this.#shown(key, name, undefined);
    const { id = key, isClient = false } = this.#tools.get(key) ?? {};
    const type = 'output' in result ? 'tool-output-available' : 'tool-output-error';
    const executed = isClient ? {} : { providerExecuted: true };
    return [...shown, { type, toolCallId: id, ...result, dynamic: true, ...executed }];
  }
}
