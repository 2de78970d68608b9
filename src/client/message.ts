/**
 * A run as one message for display: a pure fold over its events.
 *
 * Invariants:
 *  1. `fold` changes nothing: it returns a new message, which shares the unchanged parts with the earlier one; the same
 *     message if the event changes nothing about it.
 *  2. Live or replayed, from whatever patches: the same run gives the same message at its end, except `progress`.
 */
import type { EventOf, SessionEvent } from '../domain/event.ts';
import { foldAction } from './message-actions.ts';
import type { Block, Message } from './message-types.ts';

/** A run without events. */
export function emptyMessage(runId: string): Message {
  return {
    run_id: runId,
    status: 'queued',
    response: null,
    is_cut: false,
    blocks: [],
    actions: [],
    approvals: [],
    calls: [],
    plan: null,
    warnings: [],
    usage: null,
    error: null,
  };
}

/** The text to show while a run answers: its responses and its bare text, without replaced and blank ones. */
export function visibleText({ blocks }: Message): string {
  return blocks
    .filter(({ type, is_replaced, text }) => type !== 'thought' && !is_replaced && text.trim() !== '')
    .map(({ text }) => text)
    .join('\n\n');
}

export function hasEnded({ status }: Message): boolean {
  return /^(completed|failed|cancelled)$/.test(status);
}

/** The message after one more event. Events in order, each once, as `run.events()` gives them. */
export function fold(message: Message, event: SessionEvent): Message {
  const next = foldData(message, event);
  // A run that waited goes on with the next journaled event.
  const isOn = event.seq !== null && event.type !== 'agent_waiting' && next.status === 'waiting';
  return isOn ? { ...next, status: 'running' } : next;
}

function foldData(message: Message, event: SessionEvent): Message {
  switch (event.type) {
    case 'agent_started':
      return { ...message, status: 'running' };
    case 'agent_waiting':
      return { ...message, status: 'waiting' };
    case 'agent_completed':
      return ended(message, { status: 'completed', response: event.data.response, usage: event.data.usage });
    case 'agent_failed':
      return ended(message, { status: 'failed', error: event.data.error, usage: event.data.usage ?? null });
    case 'agent_cancelled':
      return ended(message, { status: 'cancelled', usage: event.data.usage ?? null });
    case 'plan_generated':
      return { ...message, plan: event.data };
    case 'iteration_started':
      return message.is_cut ? { ...message, is_cut: false } : message;
    case 'warning': {
      const isCut = message.is_cut || event.data.code === 'generation_cut';
      return { ...message, is_cut: isCut, warnings: [...message.warnings, event.data] };
    }
    case 'thought_started':
    case 'text_started':
    case 'response_started':
      return { ...message, blocks: opened(message.blocks, event) };
    case 'thought':
    case 'text':
    case 'response':
      return { ...message, blocks: patched(message.blocks, event) };
    case 'thought_completed':
    case 'text_completed':
    case 'response_completed':
      return { ...message, blocks: closed(message.blocks, event) };
    default:
      return foldAction(message, event);
  }
}

function ended(message: Message, end: Partial<Message>): Message {
  return { ...message, ...end, approvals: [], blocks: message.blocks.map((block) => ({ ...block, is_open: false })) };
}

type Opening = EventOf<'thought_started' | 'text_started' | 'response_started'>;

function opened(blocks: Message['blocks'], event: Opening): Message['blocks'] {
  const replaced = event.type === 'response_started' ? event.data.completes : undefined;
  const block: Block = {
    type: event.type.slice(0, -'_started'.length) as Block['type'],
    segment: event.seq,
    iteration: event.iteration,
    text: '',
    is_open: true,
    is_cut: false,
    is_replaced: false,
  };
  const others = blocks.map((other) => (other.segment === replaced ? { ...other, is_replaced: true } : other));
  return [...others, block];
}

function patched(blocks: Message['blocks'], { data }: EventOf<'thought' | 'text' | 'response'>): Message['blocks'] {
  const { segment, offset, delta } = data;
  return blocks.map((block) =>
    block.segment === segment ? { ...block, text: block.text.slice(0, offset) + delta } : block,
  );
}

function closed(
  blocks: Message['blocks'],
  { data }: EventOf<'thought_completed' | 'text_completed' | 'response_completed'>,
): Message['blocks'] {
  const { segment, content, cut } = data;
  return blocks.map((block) =>
    block.segment === segment ? { ...block, text: content, is_open: false, is_cut: cut === true } : block,
  );
}
