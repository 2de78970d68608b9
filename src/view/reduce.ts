/**
 * The fold of a run's events into its view. It knows every event: one without a case does not compile.
 *
 * Invariants:
 *  1. It changes nothing: it returns a new view, which shares the unchanged parts with the earlier one; the same view if the
 *     event changes nothing about it.
 *  2. Live or replayed, from whatever patches: the same run gives the same view at its end, except what only live events
 *     tell: `progress` and `child_session_id` of actions.
 */
import type { EventOf, SessionEvent } from '../domain/event.ts';
import { reduceAction } from './reduce-action.ts';
import type { Block, Extent, RunView } from './run-view.ts';

/**
 * The view after one more event.
 *
 * ```ts
 * const message = events.reduce(fold, emptyMessage(runId));
 * ```
 *
 * @param event in order, each once, as `run.events()` gives them; one of an unknown type changes nothing
 */
export function fold(view: RunView, event: SessionEvent): RunView {
  return reduce(view, event, 'whole');
}

/** The same of an outline: it has no texts, parameters and outputs. */
export function foldOutline(view: RunView, event: SessionEvent): RunView {
  return reduce(view, event, 'outline');
}

function reduce(view: RunView, event: SessionEvent, extent: Extent): RunView {
  const next = reduceData(view, event, extent);
  const iteration = Math.max(next.iteration, event.iteration);
  // Background actions may write events while the run still waits.
  const goesOn = next.status === 'waiting' && endsWait(view, event);
  if (goesOn) return { ...next, iteration, status: 'running' };
  return iteration === next.iteration ? next : { ...next, iteration };
}

/** Whether someone has answered, or an action has ended that a person was asked about: nobody has answered in time. */
function endsWait({ approvals }: RunView, { type, action_id: id }: SessionEvent): boolean {
  if (type === 'approval_resolved' || type === 'client_tool_settled') return true;
  return type.startsWith('action_') && approvals.some(({ action_id }) => action_id === id);
}

function reduceData(view: RunView, event: SessionEvent, extent: Extent): RunView {
  switch (event.type) {
    case 'agent_started':
      return { ...view, status: 'running', source: event.data.source, started_at: event.timestamp };
    case 'agent_waiting':
      return { ...view, status: 'waiting' };
    case 'agent_completed': {
      const { response, outputs = null, usage } = event.data;
      return ended(view, event, { status: 'completed', response, outputs, usage });
    }
    case 'agent_failed':
      return ended(view, event, { status: 'failed', error: event.data.error, usage: event.data.usage ?? null });
    case 'agent_cancelled': {
      const { usage = null, reason = null } = event.data;
      return ended(view, event, { status: 'cancelled', usage, reason });
    }
    case 'iteration_started': {
      const begun = { iteration: event.iteration, started_at: event.timestamp, written_at: null };
      return { ...view, is_cut: false, iterations: [...view.iterations, begun] };
    }
    case 'plan_generated':
      // Comes when the generation has ended, if it has accepted an action.
      return { ...written(view, event.timestamp), plan: event.data };
    case 'iteration_completed':
      return written(view, event.timestamp);
    case 'usage':
      return { ...view, model_calls: [...view.model_calls, event.data] };
    case 'warning': {
      const isCut = view.is_cut || event.data.code === 'generation_cut';
      return { ...view, is_cut: isCut, warnings: [...view.warnings, event.data] };
    }
    case 'thought_started':
      return { ...view, blocks: [...view.blocks, blockOf('thought', event)] };
    case 'text_started':
      return { ...view, blocks: [...view.blocks, blockOf('text', event)] };
    case 'response_started': {
      const { completes } = event.data;
      const others = replaced(view.blocks, completes);
      return { ...view, blocks: [...others, blockOf('response', event)] };
    }
    case 'thought':
    case 'text':
    case 'response':
      return extent === 'whole' ? { ...view, blocks: patched(view.blocks, event) } : view;
    case 'thought_completed':
    case 'text_completed':
      return { ...view, blocks: closed(view.blocks, event, extent) };
    case 'response_completed':
      return { ...view, blocks: closed(view.blocks, event, extent), responses: responded(view.responses, event) };
    case 'action_queued':
    case 'action_started':
    case 'action_retrying':
    case 'action_completed':
    case 'action_failed':
    case 'action_skipped':
    case 'action_cancelled':
    case 'action_rejected':
    case 'approval_requested':
    case 'approval_resolved':
    case 'client_tool_called':
    case 'client_tool_settled':
    case 'progress':
      return reduceAction(view, event, extent);
    // They are about the session, or repeat what other events tell.
    case 'run_branched':
    case 'message_received':
    case 'budget_exceeded':
    case 'policy_applied':
    case 'context_feed_updated':
    case 'file_changed':
    case 'skill_loaded':
    case 'memory_changed':
    case 'variable_changed':
    case 'llm_token':
      return view;
    default:
      return withUnknown(view, event);
  }
}

/** A newer system may send events that this version does not know. */
function withUnknown(view: RunView, _event: never): RunView {
  return view;
}

function ended(view: RunView, { timestamp }: SessionEvent, end: Partial<RunView>): RunView {
  const { blocks, ...rest } = written(view, timestamp);
  return {
    ...rest,
    ...end,
    ended_at: timestamp,
    approvals: [],
    blocks: blocks.map((block) => (block.is_open ? { ...block, is_open: false } : block)),
  };
}

/** The text of the latest generation has ended. */
function written(view: RunView, at: number): RunView {
  const last = view.iterations.at(-1);
  const isOpen = last !== undefined && last.written_at === null;
  const iterations = isOpen ? [...view.iterations.slice(0, -1), { ...last, written_at: at }] : view.iterations;
  const blocks = view.blocks.some(({ written_at: end }) => end === null)
    ? view.blocks.map((block) => (block.written_at === null ? { ...block, written_at: at } : block))
    : view.blocks;
  return iterations === view.iterations && blocks === view.blocks ? view : { ...view, iterations, blocks };
}

function blockOf(type: Block['type'], { seq, iteration, timestamp }: SessionEvent & { readonly seq: number }): Block {
  return {
    type,
    segment: seq,
    iteration,
    text: '',
    is_open: true,
    is_cut: false,
    is_replaced: false,
    started_at: timestamp,
    written_at: null,
  };
}

function replaced(blocks: RunView['blocks'], completes: number | undefined): RunView['blocks'] {
  return completes === undefined ? blocks : changed(blocks, completes, () => ({ is_replaced: true }));
}

function patched(blocks: RunView['blocks'], { data }: EventOf<'thought' | 'text' | 'response'>): RunView['blocks'] {
  const { segment, offset, delta } = data;
  return changed(blocks, segment, ({ text }) => ({ text: text.slice(0, offset) + delta }));
}

function closed(
  blocks: RunView['blocks'],
  { data, timestamp }: EventOf<'thought_completed' | 'text_completed' | 'response_completed'>,
  extent: Extent,
): RunView['blocks'] {
  const { segment, content, cut } = data;
  return changed(blocks, segment, ({ written_at: at }) => ({
    text: extent === 'whole' ? content : '',
    is_open: false,
    is_cut: cut === true,
    written_at: at ?? timestamp,
  }));
}

function changed(
  blocks: RunView['blocks'],
  segment: number,
  change: (block: Block) => Partial<Block>,
): RunView['blocks'] {
  const place = blocks.findLastIndex((block) => block.segment === segment);
  const block = blocks[place];
  return block === undefined ? blocks : blocks.with(place, { ...block, ...change(block) });
}

function responded(
  responses: RunView['responses'],
  { seq, data: { segment, final, completes } }: EventOf<'response_completed'>,
): RunView['responses'] {
  const response = { seq, segment, final };
  const place = completes === undefined ? -1 : responses.findIndex((other) => other.segment === completes);
  return place < 0 ? [...responses, response] : responses.with(place, response);
}
