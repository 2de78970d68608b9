/**
 * The events of a run, or of a part of it, as frames of one response and as its document (E2). Thoughts are reasoning,
 * bare text and responses are messages, actions are calls of an MCP server, calls of client tools are function calls.
 *
 * Invariants:
 *  1. The frames and their numbers follow from the journal alone, not from how live text was cut, and numbers increase.
 *     So one block at a time is shown: what follows its beginning waits for its end.
 *  2. A response is over when the run first waits after its beginning, or ends. Later events give nothing.
 *  3. A block that a crash has cut off ends as an incomplete item without content, because the model writes it again.
 *     Blank blocks are not shown.
 *  4. A response that ends because the run waits has all that it waits for, also what an earlier response had already. Of
 *     other events up to `run.after` only the parameters of actions are kept, whose calls may follow.
 */
import type { EventOf, EventType, SessionEvent } from '../../../domain/event.ts';
import { isBlockEnd, isTextPatch } from '../../../domain/event.ts';
import type { BlockEnd } from '../../../domain/event.ts';
import type { Json, JsonObject } from '../../../domain/json.ts';
import type { RunStatus } from '../../../domain/session.ts';
import { foldOutline } from '../../../view/reduce.ts';
import { emptyView, tokensOf } from '../../../view/run-view.ts';
import type { FoldedRun } from '../../surface.ts';
import { approvalItemId, itemIdOf, responseIdOf } from './ids.ts';
import { approvalRequest, functionCall, mcpCall, MESSAGE, REASONING } from './items.ts';
import type { ItemStatus, McpCall, McpEnd, TextForm } from './items.ts';
import { endOfPiece, FrameNumbers } from './numbering.ts';

/** A frame of the stream, with its number. */
export type Frame = { readonly type: string; readonly sequence_number: number } & JsonObject;

type Start = EventOf<'thought_started' | 'text_started' | 'response_started'>;
type End = EventOf<'agent_completed' | 'agent_failed' | 'agent_cancelled' | 'agent_waiting'>;

type Asked = EventOf<'client_tool_called' | 'approval_requested'>;

/** The block that is shown. */
interface Block {
  readonly segment: number;
  readonly form: TextForm;
  /** Its item; null while it is blank. */
  item: { readonly id: string; readonly index: number } | null;
  /** UTF-16 code units of its text that were seen. */
  seen: number;
  /** Text without a frame yet. */
  rest: string;
}

type Settlement = Exclude<McpEnd, { status: 'incomplete' }>;

interface Over {
  readonly status: 'completed' | 'incomplete' | 'failed' | 'cancelled';
  readonly error: JsonObject | null;
  readonly at: number;
}

export class ResponseState {
  /** The journaled events that a response is made of. */
  static readonly EVENTS: readonly EventType[] = [
    'agent_started',
    'iteration_started',
    'thought_started',
    'thought_completed',
    'text_started',
    'text_completed',
    'response_started',
    'response_completed',
    'action_queued',
    'action_started',
    'action_completed',
    'action_failed',
    'action_skipped',
    'action_cancelled',
    'action_rejected',
    'approval_requested',
    'approval_resolved',
    'client_tool_called',
    'client_tool_settled',
    'usage',
    'warning',
    'agent_waiting',
    'agent_completed',
    'agent_failed',
    'agent_cancelled',
  ];

  readonly #run: Pick<FoldedRun, 'runId' | 'agent' | 'after' | 'clientTools'>;
  readonly #hasPieces: boolean;
  #view = emptyView('');
  /** Number of model calls of earlier responses. */
  #counted = 0;
  readonly #numbers = new FrameNumbers();
  readonly #output: JsonObject[] = [];
  /** Frames of the event that is processed. */
  #frames: Frame[] = [];
  #createdAt: number | null = null;
  #front: Block | null = null;
  /** What follows the beginning of the block in front, without the ends of blocks. */
  #waiting: SessionEvent[] = [];
  readonly #ends = new Map<number, BlockEnd>();
  /** Text of blocks that wait. */
  readonly #early = new Map<number, string>();
  /** Parameters of what was queued and has not started, by iteration and id. */
  readonly #queued = new Map<string, JsonObject>();
  /** Actions that a client executes. */
  readonly #ofClient = new Set<string>();
  /** What the run waits for, by iteration and id. */
  readonly #asked = new Map<string, Asked>();
  /** Items of the requests for approval. */
  readonly #approvals = new Map<string, string>();
  readonly #calls = new Map<string, { readonly index: number; readonly call: McpCall }>();
  #over: Over | null = null;

  /** @param hasPieces whether text has frames of its own; a document needs none */
  constructor(run: Pick<FoldedRun, 'runId' | 'agent' | 'after' | 'clientTools'>, hasPieces: boolean) {
    this.#run = run;
    this.#hasPieces = hasPieces;
  }

  get isOver(): boolean {
    return this.#over !== null;
  }

  add(event: SessionEvent): Frame[] {
    this.#frames = [];
    this.#view = foldOutline(this.#view, event);
    if (event.seq === null) this.#live(event);
    else if (event.seq <= this.#run.after && !isLastOf(event)) {
      this.#counted = this.#view.model_calls.length;
      this.#remember(event);
    } else if (this.#over === null) this.#journaled(event);
    return this.#frames;
  }

  /** @param status of the run, for a response that is not over */
  response(status: RunStatus = 'running'): JsonObject {
    const { runId, agent } = this.#run;
    const over = this.#over;
    const unfinished = status === 'queued' && this.#createdAt === null ? 'queued' : 'in_progress';
    return {
      id: responseIdOf(this.#run),
      object: 'response',
      created_at: this.#createdAt ?? 0,
      status: over?.status ?? unfinished,
      completed_at: over?.status === 'completed' ? over.at : null,
      error: over?.error ?? null,
      incomplete_details: over?.status === 'incomplete' ? { reason: 'max_output_tokens' } : null,
      instructions: null,
      max_output_tokens: null,
      metadata: { run_id: runId },
      model: agent,
      output: [...this.#output],
      parallel_tool_calls: true,
      previous_response_id: null,
      reasoning: { effort: null, summary: null },
      temperature: null,
      text: { format: { type: 'text' } },
      tool_choice: 'auto',
      tools: [],
      top_p: null,
      truncation: 'disabled',
      usage: over === null ? null : this.#totals(),
    };
  }

  #totals(): JsonObject {
    const { prompt, completion, cached } = tokensOf(this.#view.model_calls.slice(this.#counted));
    return {
      input_tokens: prompt,
      input_tokens_details: { cached_tokens: cached },
      output_tokens: completion,
      output_tokens_details: { reasoning_tokens: 0 },
      total_tokens: prompt + completion,
    };
  }

  #emit(type: string, members: JsonObject, size = 1): void {
    this.#frames.push({ type, sequence_number: this.#numbers.next(size), ...members });
  }

  // --- order ---

  #live(event: SessionEvent): void {
    if (!isTextPatch(event) || this.#over !== null) return;
    const { segment, offset, delta } = event.data;
    if (segment === this.#front?.segment) return this.#text(this.#front, offset, delta);
    const early = this.#early.get(segment);
    if (early !== undefined) this.#early.set(segment, early + delta.slice(Math.max(0, early.length - offset)));
  }

  #journaled(event: SessionEvent): void {
    this.#create(event);
    if (isEnd(event)) return this.#end(event);
    if (isBlockEnd(event)) {
      if (event.data.segment !== this.#front?.segment) return void this.#ends.set(event.data.segment, event);
      this.#close(this.#front, event);
    } else if (this.#front === null) this.#show(event);
    else {
      this.#waiting.push(event);
      if (isStart(event)) this.#early.set(event.seq, '');
    }
    this.#continue();
  }

  /** Shows what has waited, until another block is open. */
  #continue(): void {
    if (this.#front !== null) return;
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const [index, event] of waiting.entries()) {
      this.#show(event);
      if (this.#front === null) continue;
      this.#waiting = waiting.slice(index + 1);
      return;
    }
  }

  #show(event: SessionEvent): void {
    this.#numbers.at(event.seq ?? 0);
    if (isStart(event)) this.#open(event);
    else this.#other(event);
  }

  #create({ seq, timestamp }: SessionEvent): void {
    if (this.#createdAt !== null) return;
    this.#createdAt = seconds(timestamp);
    this.#numbers.at(seq ?? 0);
    for (const type of ['response.created', 'response.in_progress']) this.#emit(type, { response: this.response() });
  }

  #end(event: End): void {
    // A block without its end has lost it in a crash.
    while (this.#front !== null) {
      this.#abandon(this.#front, event.seq);
      this.#continue();
    }
    this.#numbers.at(event.seq);
    if (event.type === 'agent_waiting') {
      for (const asked of this.#asked.values()) if (asked.seq <= this.#run.after) this.#ask(asked);
    }
    for (const { index, call } of this.#calls.values()) {
      this.#done(index, mcpCall(call, { status: 'incomplete' }));
    }
    this.#calls.clear();
    this.#over = overBy(event, this.#view.is_cut);
    const { status } = this.#over;
    this.#emit(`response.${status === 'cancelled' ? 'failed' : status}`, { response: this.response() });
  }

  // --- text ---

  #open({ seq, type }: Start): void {
    const form = type === 'thought_started' ? REASONING : MESSAGE;
    const front: Block = { segment: seq, form, item: null, seen: 0, rest: '' };
    this.#front = front;
    this.#text(front, 0, this.#early.get(seq) ?? '');
    this.#early.delete(seq);
    const end = this.#ends.get(seq);
    if (end === undefined) return;
    this.#ends.delete(seq);
    this.#close(front, end);
  }

  #text(block: Block, offset: number, delta: string): void {
    block.rest += delta.slice(Math.max(0, block.seen - offset));
    block.seen = Math.max(block.seen, offset + delta.length);
    if (!this.#hasPieces || (block.item === null && !/\S/.test(block.rest))) return;
    const item = (block.item ??= this.#begin(block));
    let from = 0;
    for (let end = endOfPiece(block.rest, 0); end !== null; end = endOfPiece(block.rest, from)) {
      this.#piece(block, item, block.rest.slice(from, end));
      from = end;
    }
    block.rest = block.rest.slice(from);
  }

  #begin({ form, segment }: Block): NonNullable<Block['item']> {
    const id = itemIdOf(form.prefix, this.#run.runId, segment);
    const index = this.#added(form.item(id, 'in_progress', []));
    this.#emit(form.frames.begin, { item_id: id, output_index: index, ...form.place, part: form.part('') });
    return { id, index };
  }

  #piece({ form }: Block, { id, index }: NonNullable<Block['item']>, delta: string): void {
    const { place, extra, frames } = form;
    this.#emit(frames.delta, { item_id: id, output_index: index, ...place, delta, ...extra }, delta.length);
  }

  #close(block: Block, { seq, data: { content, cut } }: BlockEnd): void {
    this.#text(block, block.seen, content.slice(block.seen));
    if (cut === true) return this.#abandon(block, seq);
    this.#front = null;
    if (!/\S/.test(content)) return;
    const { form } = block;
    const item = block.item ?? this.#begin(block);
    if (this.#hasPieces && block.rest !== '') this.#piece(block, item, block.rest);
    this.#numbers.at(seq);
    const place = { item_id: item.id, output_index: item.index, ...form.place };
    const part = form.part(content);
    this.#emit(form.frames.text, { ...place, text: content, ...form.extra });
    this.#emit(form.frames.end, { ...place, part });
    this.#done(item.index, form.item(item.id, 'completed', [part]));
  }

  /** Ends a block whose text was cut off. It has an item even if it is blank: some of its text may have been sent. */
  #abandon(block: Block, seq: number): void {
    this.#front = null;
    const { id, index } = block.item ?? this.#begin(block);
    this.#numbers.at(seq);
    this.#done(index, block.form.item(id, 'incomplete', []));
  }

  // --- items ---

  /** @returns its index */
  #added(item: JsonObject): number {
    const index = this.#output.push(item) - 1;
    this.#emit('response.output_item.added', { output_index: index, item });
    return index;
  }

  #done(index: number, item: JsonObject): void {
    this.#output[index] = item;
    this.#emit('response.output_item.done', { output_index: index, item });
  }

  /** What later events need of one that the client has. */
  #remember(event: SessionEvent): void {
    const key = keyOf(event);
    switch (event.type) {
      case 'action_queued':
        this.#queued.set(key, event.data.parameters);
        return;
      case 'client_tool_called':
        this.#ofClient.add(key);
        this.#asked.set(key, event);
        return;
      case 'approval_requested':
        this.#approvals.set(key, approvalItemId(this.#run.runId, event.data.approval_id));
        this.#asked.set(key, event);
        // Its action has started, and has another item in the next response.
        if (event.data.question !== undefined) this.#queued.set(key, event.data.parameters ?? {});
        return;
      case 'approval_resolved':
      case 'client_tool_settled':
        this.#asked.delete(key);
        return;
      case 'action_started':
        this.#queued.delete(key);
        return;
      case 'action_completed':
      case 'action_failed':
      case 'action_skipped':
      case 'action_cancelled':
        this.#queued.delete(key);
        this.#asked.delete(key);
        return;
      default:
        return;
    }
  }

  #other(event: SessionEvent): void {
    const name = event.action_name ?? event.action_id ?? '';
    switch (event.type) {
      case 'action_queued':
      case 'approval_resolved':
      case 'client_tool_settled':
        return this.#remember(event);
      case 'action_started':
        if (event.data.attempt === 1 && !this.#run.clientTools.includes(name)) this.#call(event, event.data.parameters);
        return;
      case 'approval_requested':
      case 'client_tool_called':
        this.#remember(event);
        return this.#ask(event);
      default:
        return this.#settle(event);
    }
  }

  #ask(event: Asked): void {
    if (event.type === 'client_tool_called') return this.#function(event);
    const { approval_id: approvalId, question } = event.data;
    const name = event.action_name ?? event.action_id;
    const id = approvalItemId(this.#run.runId, approvalId);
    const parameters = event.data.parameters ?? this.#queued.get(keyOf(event)) ?? {};
    const item = approvalRequest(id, name, question === undefined ? parameters : { question, parameters });
    this.#done(this.#added(item), item);
  }

  #function({ seq, data: { call_id: callId, name, parameters } }: EventOf<'client_tool_called'>): void {
    const id = itemIdOf('fc', this.#run.runId, seq);
    const text = JSON.stringify(parameters);
    const itemOf = (status: ItemStatus, written: string): JsonObject =>
      functionCall({ id, callId, name }, status, written);
    const index = this.#added(itemOf('in_progress', ''));
    const place = { item_id: id, output_index: index };
    this.#emit('response.function_call_arguments.delta', { ...place, delta: text });
    this.#emit('response.function_call_arguments.done', { ...place, name, arguments: text });
    this.#done(index, itemOf('completed', text));
  }

  #settle(event: SessionEvent): void {
    switch (event.type) {
      case 'action_completed':
        return this.#settled(event, { status: 'completed', output: event.data.output });
      case 'action_failed':
        return this.#settled(event, { status: 'failed', error: event.data.error.message });
      case 'action_skipped':
        return this.#settled(event, { status: 'failed', error: `skipped: ${event.data.because ?? event.data.reason}` });
      case 'action_cancelled':
        return this.#settled(event, { status: 'failed', error: `cancelled: ${event.data.reason}` });
      case 'action_rejected': {
        // An action that was accepted may have the same id.
        const { parameters = {}, message } = event.data;
        const { index, call } = this.#began(event, parameters, null);
        return this.#ended(index, call, { status: 'failed', error: message });
      }
      default:
        return;
    }
  }

  #settled(event: SessionEvent, end: Settlement): void {
    const key = keyOf(event);
    this.#asked.delete(key);
    if (this.#ofClient.has(key)) return;
    const { index, call } = this.#call(event, undefined);
    this.#calls.delete(key);
    this.#ended(index, call, end);
  }

  /** The item of an action, which begins now if there is none. */
  #call(event: SessionEvent, resolved: JsonObject | undefined): { readonly index: number; readonly call: McpCall } {
    const key = keyOf(event);
    const known = this.#calls.get(key);
    if (known !== undefined) return known;
    const parameters = resolved ?? this.#queued.get(key) ?? {};
    this.#queued.delete(key);
    const begun = this.#began(event, parameters, this.#approvals.get(key) ?? null);
    this.#calls.set(key, begun);
    return begun;
  }

  #began(
    { seq, action_name: name, action_id: actionId }: SessionEvent,
    parameters: JsonObject,
    approvalRequestId: string | null,
  ): { readonly index: number; readonly call: McpCall } {
    const id = itemIdOf('mcp', this.#run.runId, seq ?? 0);
    const call = { id, name: name ?? actionId ?? '', arguments: JSON.stringify(parameters), approvalRequestId };
    const index = this.#added(mcpCall({ ...call, arguments: '' }, null));
    const place = { item_id: id, output_index: index };
    this.#emit('response.mcp_call.in_progress', place);
    this.#emit('response.mcp_call_arguments.delta', { ...place, delta: call.arguments });
    this.#emit('response.mcp_call_arguments.done', { ...place, arguments: call.arguments });
    this.#output[index] = mcpCall(call, null);
    return { index, call };
  }

  #ended(index: number, call: McpCall, end: Settlement): void {
    this.#emit(`response.mcp_call.${end.status}`, { item_id: call.id, output_index: index });
    this.#done(index, mcpCall(call, end));
  }
}

const seconds = (milliseconds: number): number => Math.floor(milliseconds / 1_000);

const keyOf = ({ iteration, action_id: id }: SessionEvent): string => `${iteration}/${id ?? ''}`;

/** After the end of a run, only its background actions go on; a client that answers them has an empty response. */
function isLastOf(event: SessionEvent): boolean {
  return isEnd(event) && event.type !== 'agent_waiting';
}

function isStart(event: SessionEvent): event is Start {
  return event.type === 'thought_started' || event.type === 'text_started' || event.type === 'response_started';
}

function isEnd(event: SessionEvent): event is End {
  const { type } = event;
  return (
    type === 'agent_completed' || type === 'agent_failed' || type === 'agent_cancelled' || type === 'agent_waiting'
  );
}

/** The AI SDK requires a `type`; without an error it takes any response for a success. */
function errorOf(code: string, message: string): { readonly [member: string]: Json } {
  return { code, message, type: 'server_error' };
}

/** @param isCut whether the text of the last generation ended early */
function overBy(event: End, isCut: boolean): Over {
  const at = seconds(event.timestamp);
  switch (event.type) {
    case 'agent_completed':
      return { status: isCut ? 'incomplete' : 'completed', error: null, at };
    case 'agent_waiting':
      return { status: 'completed', error: null, at };
    case 'agent_failed':
      return { status: 'failed', error: errorOf(event.data.error.code, event.data.error.message), at };
    case 'agent_cancelled':
      return { status: 'cancelled', error: errorOf('cancelled', 'The run was cancelled'), at };
  }
}
