/** Ended runs as messages of the AI SDK, for a page that is loaded again (E1). */
import type { EventOf, EventType, SessionEvent } from '../../domain/event.ts';
import type { Json, JsonObject } from '../../domain/json.ts';
import type { Turn, TurnFold } from '../surface.ts';
import { ChunkFold } from './fold.ts';
import type { Chunk } from './fold.ts';
import { userMessageId } from './message-id.ts';

/** The events that parts of a message are made of. */
export const MESSAGE_EVENTS: readonly EventType[] = [
  'iteration_started',
  'message_received',
  'thought_started',
  'thought_completed',
  'text_started',
  'text_completed',
  'response_started',
  'response_completed',
  'plan_generated',
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
  'agent_waiting',
  'agent_completed',
  'agent_failed',
  'agent_cancelled',
];

type Part = Record<string, unknown> & { readonly type: string };

/** Folds the chunks of a stream into the message that the client makes of them. */
export class MessageFold implements TurnFold {
  readonly #turn: Turn;
  readonly #chunks: ChunkFold;
  readonly #parts: Part[] = [];
  /** Open parts with text, by type and id. */
  readonly #open = new Map<string, Part>();

  constructor(turn: Turn) {
    this.#turn = turn;
    this.#chunks = new ChunkFold(turn.run);
  }

  add(event: SessionEvent): void {
    for (const chunk of this.#chunks.add(event)) this.#apply(chunk);
    if (event.type === 'approval_resolved') this.#decided(event.data);
  }

  /** The client keeps its decision with the part. */
  #decided({ approval_id: id, approved, note }: EventOf<'approval_resolved'>['data']): void {
    const part = this.#parts.find(({ approval }) => (approval as { id?: unknown } | undefined)?.id === id);
    if (part === undefined) return;
    part['approval'] = { id, approved, ...(note === undefined ? {} : { reason: note }) };
    if (approved) part['state'] = 'approval-responded';
  }

  end(): Json[] {
    for (const chunk of this.#chunks.end('stopped')) this.#apply(chunk);
    const { run, key, hasEnded } = this.#turn;
    const id = key?.startsWith('ai:') === true ? key.slice(3) : userMessageId(run.runId);
    const user = { id, role: 'user', parts: this.#userParts() };
    // A run that is open is streamed from its beginning.
    return hasEnded ? [user, { id: run.runId, role: 'assistant', parts: this.#parts as JsonObject[] }] : [user];
  }

  #userParts(): JsonObject[] {
    const { content, run } = this.#turn;
    if (typeof content === 'string') return [{ type: 'text', text: content }];
    return content.map((part): JsonObject => {
      if (part.type === 'text') return { type: 'text', text: part.text };
      const { name: filename, media_type: mediaType, sha256 } = part;
      return { type: 'file', filename, mediaType, url: `/agent/session/${run.sessionId}/content/${sha256}` };
    });
  }

  #apply(chunk: Chunk): void {
    switch (chunk.type) {
      case 'start-step':
        this.#parts.push({ type: 'step-start' });
        return;
      case 'text-start':
        this.#open.set(`text/${chunk.id}`, this.#added({ type: 'text', text: '', state: 'streaming' }));
        return;
      case 'reasoning-start': {
        const part = { type: 'reasoning', id: chunk.id, text: '', state: 'streaming' };
        this.#open.set(`reasoning/${chunk.id}`, this.#added(part));
        return;
      }
      case 'text-delta':
      case 'reasoning-delta': {
        const part = this.#open.get(chunk.type.replace('-delta', `/${chunk.id}`));
        if (part !== undefined) part['text'] = `${String(part['text'])}${chunk.delta}`;
        return;
      }
      case 'text-end':
      case 'reasoning-end':
        Object.assign(this.#open.get(chunk.type.replace('-end', `/${chunk.id}`)) ?? {}, { state: 'done' });
        return;
      case 'tool-input-available': {
        const { type: _type, dynamic: _dynamic, ...call } = chunk;
        this.#added({ type: 'dynamic-tool', ...call, state: 'input-available' });
        return;
      }
      case 'tool-approval-request':
        Object.assign(this.#tool(chunk), { state: 'approval-requested', approval: { id: chunk.approvalId } });
        return;
      case 'tool-output-denied':
        Object.assign(this.#tool(chunk), { state: 'output-denied' });
        return;
      case 'tool-output-available':
        Object.assign(this.#tool(chunk), { state: 'output-available', output: chunk.output });
        return;
      case 'tool-output-error':
        Object.assign(this.#tool(chunk), { state: 'output-error', errorText: chunk.errorText });
        return;
      case 'steering-message':
        this.#added({ ...chunk });
        return;
      default:
        if ('data' in chunk && chunk.transient !== true) this.#parts.push({ ...chunk });
    }
  }

  #added(part: Part): Part {
    this.#parts.push(part);
    return part;
  }

  /** The part of a call; an empty one if there is none. */
  #tool({ toolCallId }: { readonly toolCallId: string }): Partial<Part> {
    return this.#parts.findLast((part) => part['toolCallId'] === toolCallId) ?? {};
  }
}
