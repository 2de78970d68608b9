/**
 * The events of a run as pieces of one assistant message of chat completions (E2): thoughts are reasoning, responses and
 * bare text are content, calls of client tools are tool calls. Actions are not shown.
 *
 * Invariants:
 *  1. Blocks are separated by an empty line, in the order in which they began: a response that waits for a value holds back
 *     what follows it. Blank blocks are not shown.
 *  2. A block that a crash has cut off is not shown, because the model writes it again. If a part of it was sent already,
 *     the message cannot be completed: the outcome is `cut`.
 *  3. The message ends where the run first waits for the client. What follows belongs to the next request, with the whole
 *     text of blocks that were open.
 */
import type { EventData, EventType, SessionEvent } from '../../domain/event.ts';
import { cutGeneration, endsWait, isBlockEnd, isTextPatch, RUN_END_EVENTS } from '../../domain/event.ts';
import type { JsonObject } from '../../domain/json.ts';
import { ShownText } from '../shown-text.ts';
import type { FoldedRun } from '../surface.ts';

export type Piece =
  | { readonly type: 'content' | 'reasoning'; readonly text: string }
  | { readonly type: 'call'; readonly id: string; readonly name: string; readonly parameters: JsonObject };

type Call = Extract<Piece, { type: 'call' }>;

export type ChatOutcome =
  | { readonly type: 'completed' | 'unfinished' | 'calls' | 'cancelled' | 'cut' }
  /** `question`: of the action's target; null: the action needs an approval to start. */
  | {
      readonly type: 'approval';
      readonly approvalId: string;
      readonly action: string;
      readonly question: NonNullable<EventData['approval_requested']['question']> | null;
    }
  | { readonly type: 'failed'; readonly code: string; readonly message: string };

export interface ChatUsage {
  readonly prompt: number;
  readonly completion: number;
  readonly cached: number;
}

/** A block of text that was not sent completely. */
interface Block {
  readonly type: 'content' | 'reasoning';
  readonly text: ShownText;
  /** Text that is held back. */
  held: string;
  isSent: boolean;
  isClosed: boolean;
}

export class ChatState {
  /** The journaled events that a message is made of. */
  static readonly EVENTS: readonly EventType[] = [
    'thought_started',
    'thought_completed',
    'text_started',
    'text_completed',
    'response_started',
    'response_completed',
    'client_tool_called',
    'client_tool_settled',
    'approval_requested',
    'approval_resolved',
    'usage',
    'warning',
    'agent_waiting',
    'agent_completed',
    'agent_failed',
    'agent_cancelled',
  ];

  readonly #after: number;
  readonly #blocks = new Map<number, Block>();
  readonly #begun = new Set<Block['type']>();
  readonly #approvals = new Map<string, Pick<Extract<ChatOutcome, { type: 'approval' }>, 'action' | 'question'>>();
  /** Calls without a result, also those of earlier messages. */
  readonly #open = new Map<string, Call>();
  /** Ids of the calls in this message. */
  readonly #called = new Set<string>();
  #seq = 0;
  #outcome: ChatOutcome | null = null;
  /** The last generation whose text ended early. */
  #cutIn: number | null = null;
  #usage: ChatUsage = { prompt: 0, completion: 0, cached: 0 };

  constructor({ after }: Pick<FoldedRun, 'after'>) {
    this.#after = after;
  }

  /** How the message has ended; null if it has not. */
  get outcome(): ChatOutcome | null {
    return this.#outcome;
  }

  get usage(): ChatUsage {
    return this.#usage;
  }

  add(event: SessionEvent): Piece[] {
    this.#seq = event.seq ?? this.#seq;
    const isKnown = event.seq === null ? this.#seq < this.#after : event.seq <= this.#after;
    const isOver = this.#outcome?.type === 'calls' || this.#outcome?.type === 'cut';
    if (isOver) return [];
    this.#cutIn = cutGeneration(event) ?? this.#cutIn;
    this.#count(event);
    if (isKnown) {
      this.#note(event);
      // A background action has asked, and the run had ended.
      if (RUN_END_EVENTS.has(event.type)) this.#take(event);
      return [];
    }
    if (isTextPatch(event)) {
      const { segment, offset, delta } = event.data;
      return this.#text(segment, (text) => text.add(offset, delta));
    }
    if (isBlockEnd(event)) return this.#blockEnd(event.data);
    switch (event.type) {
      case 'thought_started':
      case 'text_started':
      case 'response_started':
        this.#note(event);
        return [];
      case 'client_tool_called':
        // Not the earlier ones: the request may have answered them.
        return this.#asked([event.data.call_id]);
      case 'usage': {
        const { prompt_tokens: prompt, completion_tokens: completion, cached_tokens: cached } = event.data;
        const { usage } = this;
        this.#usage = {
          prompt: usage.prompt + prompt,
          completion: usage.completion + completion,
          cached: usage.cached + cached,
        };
        return [];
      }
      case 'agent_waiting':
        return this.#waits(event.data.reason);
      default:
        this.#take(event);
        return [];
    }
  }

  /** Keeps what is open, whichever message it began in. */
  #count(event: SessionEvent): void {
    switch (event.type) {
      case 'client_tool_called': {
        const { call_id: id, name, parameters } = event.data;
        this.#open.set(id, { type: 'call', id, name, parameters });
        return;
      }
      case 'client_tool_settled':
        this.#open.delete(event.data.call_id);
        return;
      case 'approval_requested':
        this.#approvals.set(event.data.approval_id, {
          action: event.action_name ?? event.action_id,
          question: event.data.question ?? null,
        });
        return;
      case 'approval_resolved':
        this.#approvals.delete(event.data.approval_id);
        return;
      default:
        return;
    }
  }

  /** Those of the calls that are open, and not in the message yet. */
  #asked(ids: Iterable<string>): Piece[] {
    const calls = [...ids].flatMap((id) => (this.#called.has(id) ? [] : (this.#open.get(id) ?? [])));
    for (const { id } of calls) this.#called.add(id);
    return calls;
  }

  #waits(reason: 'approvals' | 'client_tools'): Piece[] {
    if (reason === 'approvals') {
      const [[approvalId, asked] = ['', { action: '', question: null }]] = this.#approvals;
      this.#outcome = { type: 'approval', approvalId, ...asked };
      return [];
    }
    this.#outcome = { type: 'calls' };
    // Also those that the client has left unanswered.
    return this.#asked(this.#open.keys());
  }

  #take(event: SessionEvent): void {
    if (endsWait(event)) this.#outcome = null;
    switch (event.type) {
      case 'agent_completed':
        this.#outcome = { type: event.data.iterations === this.#cutIn ? 'unfinished' : 'completed' };
        return;
      case 'agent_cancelled':
        this.#outcome = { type: 'cancelled' };
        return;
      case 'agent_failed':
        this.#outcome = { type: 'failed', ...event.data.error };
        return;
      default:
        return;
    }
  }

  /** Which blocks are open. */
  #note(event: SessionEvent): void {
    if (isBlockEnd(event)) this.#blocks.delete(event.data.segment);
    if (event.type !== 'thought_started' && event.type !== 'text_started' && event.type !== 'response_started') return;
    const type = event.type === 'thought_started' ? 'reasoning' : 'content';
    this.#blocks.set(event.seq, { type, text: new ShownText(), held: '', isSent: false, isClosed: false });
  }

  #text(segment: number, take: (text: ShownText) => string): Piece[] {
    const block = this.#blocks.get(segment);
    if (block === undefined) return [];
    block.held += take(block.text);
    return this.#released(block.type);
  }

  #blockEnd(end: { readonly segment: number; readonly content: string; readonly cut?: true }): Piece[] {
    const { segment, content, cut } = end;
    const block = this.#blocks.get(segment);
    if (block === undefined) return [];
    if (cut !== true) {
      block.isClosed = true;
      return this.#text(segment, (text) => text.end(content));
    }
    this.#blocks.delete(segment);
    if (block.isSent) this.#outcome = { type: 'cut' };
    return block.isSent ? [] : this.#released(block.type);
  }

  /** What is not held back any more: text of the first open block, and of those before it. */
  #released(type: Block['type']): Piece[] {
    const pieces: Piece[] = [];
    for (const [segment, block] of this.#blocks) {
      if (block.type !== type) continue;
      if (block.held !== '') {
        const separator = !block.isSent && this.#begun.has(type) ? '\n\n' : '';
        this.#begun.add(type);
        block.isSent = true;
        pieces.push({ type, text: separator + block.held });
        block.held = '';
      }
      if (!block.isClosed) break;
      this.#blocks.delete(segment);
    }
    return pieces;
  }
}
