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
import { isBlockEnd, isTextPatch, RUN_END_EVENTS } from '../../domain/event.ts';
import type { JsonObject } from '../../domain/json.ts';
import { foldOutline } from '../../view/reduce.ts';
import { emptyView, tokensOf } from '../../view/run-view.ts';
import type { RunView, Tokens } from '../../view/run-view.ts';
import { ShownText } from '../shown-text.ts';
import type { FoldedRun } from '../surface.ts';

export type Piece =
  | { readonly type: 'content' | 'reasoning'; readonly text: string }
  | { readonly type: 'call'; readonly id: string; readonly name: string; readonly parameters: JsonObject };

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
    'iteration_started',
    'thought_started',
    'thought_completed',
    'text_started',
    'text_completed',
    'response_started',
    'response_completed',
    // An action that ends closes what was asked about it.
    'action_completed',
    'action_failed',
    'action_skipped',
    'action_cancelled',
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
  /** Ids of the calls in this message. */
  readonly #called = new Set<string>();
  #seq = 0;
  #outcome: ChatOutcome | null = null;
  #view = emptyView('');
  /** Number of model calls of earlier messages. */
  #counted = 0;

  constructor({ after }: Pick<FoldedRun, 'after'>) {
    this.#after = after;
  }

  /** How the message has ended; null if it has not. */
  get outcome(): ChatOutcome | null {
    return this.#outcome;
  }

  get usage(): Tokens {
    return tokensOf(this.#view.model_calls.slice(this.#counted));
  }

  add(event: SessionEvent): Piece[] {
    this.#seq = event.seq ?? this.#seq;
    const isKnown = event.seq === null ? this.#seq < this.#after : event.seq <= this.#after;
    const isOver = this.#outcome?.type === 'calls' || this.#outcome?.type === 'cut';
    if (isOver) return [];
    this.#view = foldOutline(this.#view, event);
    if (isKnown) {
      this.#counted = this.#view.model_calls.length;
      this.#note(event);
      // A background action has asked, and the run had ended.
      if (RUN_END_EVENTS.has(event.type)) this.#take();
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
        return this.#asked(this.#view.calls.filter(({ call_id: id }) => id === event.data.call_id));
      case 'agent_waiting':
        return this.#waits(event.data.reason);
      default:
        this.#take();
        return [];
    }
  }

  /** Open calls that are not in the message yet. */
  #asked(calls: RunView['calls']): Piece[] {
    const added = calls.filter(({ call_id: id }) => !this.#called.has(id));
    for (const { call_id: id } of added) this.#called.add(id);
    return added.map(({ call_id: id, name, parameters }) => ({ type: 'call', id, name, parameters }));
  }

  #waits(reason: 'approvals' | 'client_tools'): Piece[] {
    const { approvals, calls } = this.#view;
    if (reason === 'approvals') {
      const [asked] = approvals;
      this.#outcome = {
        type: 'approval',
        approvalId: asked?.approval_id ?? '',
        action: asked?.name ?? asked?.action_id ?? '',
        question: asked?.question ?? null,
      };
      return [];
    }
    this.#outcome = { type: 'calls' };
    // Also those that the client has left unanswered.
    return this.#asked(calls);
  }

  #take(): void {
    if (this.#view.status !== 'waiting') this.#outcome = outcomeOf(this.#view);
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

/** How a run has ended; null if it has not. */
function outcomeOf({ status, is_cut: isCut, error }: RunView): ChatOutcome | null {
  switch (status) {
    case 'completed':
      return { type: isCut ? 'unfinished' : 'completed' };
    case 'cancelled':
      return { type: 'cancelled' };
    case 'failed':
      return { type: 'failed', ...(error ?? { code: 'failed', message: 'The run has failed' }) };
    case 'queued':
    case 'running':
    case 'waiting':
      return null;
  }
}
