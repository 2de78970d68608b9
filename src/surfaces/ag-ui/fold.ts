/**
 * The events of a run as AG-UI events, protocol 1.0 (E3).
 *
 * An iteration is a step, a thought is reasoning, a response or bare text is a message of the assistant, and the plan is an
 * activity. Session variables are members of the client's state. An action is a tool call with a result. It is shown when
 * it starts, because its references have values then. A sub-agent is an action too; what it does is shown in `progress`.
 * A call of a client tool has no result of ours: the run finishes, and the next request brings the result.
 *
 * The client's run is one request, and ours may be several of them: it continues after an interrupt. So the client's own
 * ids are in the frames, and ours are in the metadata of the first frame.
 *
 * Invariants:
 *  1. The first frame is RUN_STARTED, and the last is RUN_FINISHED or RUN_ERROR: the client takes a bare end for a
 *     success. Everything that was opened is closed before it.
 *  2. An id of a message or a call is used once in a conversation, and is the same live and replayed.
 *  3. A client that has a part of the frames already gets an empty copy of these messages first: it would append the same
 *     text again, and after a crash it may have text that the journal does not have.
 *  4. Each call has one result, ours or the client's. The client executes calls without one.
 *  5. Events up to `run.after` change the state and give no frames.
 */
import type { AGUIEvent, Interrupt, Message, TokenUsage } from '@ag-ui/core';
import type { EventOf, SessionEvent } from '../../domain/event.ts';
import { isBlockEnd, isTextPatch } from '../../domain/event.ts';
import type { JsonObject } from '../../domain/json.ts';
import { limits } from '../../domain/limits.ts';
import { foldOutline } from '../../view/reduce.ts';
import { emptyView, tokensOf } from '../../view/run-view.ts';
import type { RunView } from '../../view/run-view.ts';
import { ShownBlocks } from '../shown-blocks.ts';
import type { ShownBlock } from '../shown-blocks.ts';
import { ShownCalls } from '../shown-calls.ts';
import type { CallChange, CallEnd, ShownCall } from '../shown-calls.ts';
import { LOST } from '../surface.ts';
import type { Fold, FoldedRun, StreamEnd } from '../surface.ts';

/** As the client's package declares them, with the names of its enumeration as texts: what changes there does not compile here. */
type Frame = AsText<AGUIEvent>;
type AsText<E extends AGUIEvent> = E extends AGUIEvent ? Omit<E, 'type'> & { readonly type: `${E['type']}` } : never;

/** What the fold knows of the request. */
export interface ClientRun {
  readonly threadId: string;
  readonly runId: string;
  /** As the request gave it. */
  readonly parentRunId?: string;
  /** Calls of which the request brings the result. */
  readonly answered: readonly string[];
  /** Whether the client's state is an object, which can have members. */
  readonly hasState: boolean;
  /** Whether the client knows that a run can be cancelled. Others would read it as a success. */
  readonly knowsCancelled: boolean;
  /** The client's messages, if some after the last user message may be of this run; null: none are. */
  readonly messages: readonly ClientMessage[] | null;
}

export type ClientMessage = JsonObject & { readonly id: string; readonly role: string };

/** What answers an approval, or a question that asks for values. Anything else denies it. */
function decisionOf(schema: JsonObject | undefined): JsonObject {
  const content = schema === undefined ? {} : { content: schema };
  return {
    type: 'object',
    properties: { approved: { type: 'boolean' }, note: { type: 'string' }, ...content },
    required: ['approved'],
  };
}

const PROTOCOL_VERSION = '1.0';

const encode = (frame: Frame): string => `data: ${JSON.stringify(frame)}\n\n`;

/** Ends a stream that the session did not end. */
export const LOST_FRAMES = encode({ type: 'RUN_ERROR', ...LOST.connection_lost });

/**
 * The beginning of the ids of all messages and calls of a run: its id without that of the session, because every piece of
 * text has it. Model providers accept ids of letters, digits, `_` and `-`.
 */
const prefixOf = (runId: string): string => `${runId.replace(/^run_[0-9a-f]{32}_/, 'run_')}-`;

/** The end of the id of the run that a message may be of, after the session's; null for a message of the client. */
export const runPartOf = (id: string): string | null => /^run_(\w+)-/.exec(id)?.[1] ?? null;

/** Whether a message may be of a run of ours. */
export const isOurMessage = (id: string): boolean => runPartOf(id) !== null;

export class AgUiFold implements Fold {
  readonly #run: Omit<FoldedRun, 'options'>;
  readonly #prefix: string;
  readonly #client: Omit<ClientRun, 'messages'>;
  /** The client's messages, until the stream has begun: they may be large. */
  #messages: ClientRun['messages'];
  readonly #blocks = new ShownBlocks<Frame>({
    before: () => [],
    start: (block) => this.#opened(block),
    delta: (block, text) => this.#content(block, text),
    end: (block) => this.#ended(block),
  });
  readonly #calls: ShownCalls;
  /** Calls that run as a sub-agent now. */
  readonly #subagents = new Set<ShownCall>();
  /** Calls with a result, ours or the client's. */
  readonly #answered = new Set<ShownCall>();
  /** Messages that an earlier stream has shown completely. */
  readonly #known = new Set<string>();
  #view = emptyView('');
  /** Number of model calls that earlier streams have counted. */
  #counted = 0;
  #hasState: boolean;
  #seq = 0;
  #isStarted = false;
  #step: string | null = null;

  constructor({ options, ...run }: FoldedRun) {
    // `readRun` has made the options.
    const { messages, ...client } = options as unknown as ClientRun;
    this.#run = run;
    this.#prefix = prefixOf(run.runId);
    this.#calls = new ShownCalls(run.clientTools);
    this.#client = client;
    this.#messages = messages;
    this.#hasState = client.hasState;
  }

  add(event: SessionEvent): string {
    this.#seq = event.seq ?? this.#seq;
    const { after } = this.#run;
    if (after > 0 && (event.seq === null ? this.#seq < after : event.seq <= after)) {
      this.#note(this.#framesOf(event));
      return '';
    }
    return [...this.#started(), ...this.#framesOf(event)].map(encode).join('');
  }

  end(how: StreamEnd): string {
    const started = this.#started();
    return [...started, ...this.#closing(), ...this.#last(how)].map(encode).join('');
  }

  /** Frames that an earlier stream has sent. What was open then was closed by its end. */
  #note(frames: readonly Frame[]): void {
    for (const frame of frames) {
      if ('messageId' in frame && frame.messageId !== undefined) this.#known.add(frame.messageId);
      if ('parentMessageId' in frame && frame.parentMessageId !== undefined) this.#known.add(frame.parentMessageId);
    }
    this.#counted = this.#view.model_calls.length;
    this.#step = null;
    this.#hasState = this.#client.hasState;
  }

  #started(): Frame[] {
    if (this.#isStarted) return [];
    this.#isStarted = true;
    const { threadId, runId, parentRunId } = this.#client;
    const { sessionId, runId: ownRunId } = this.#run;
    const metadata = { 'cortex-edge': { session_id: sessionId, run_id: ownRunId } };
    const subagents = [...this.#subagents].map((call) => this.#subagentStarted(call));
    return [
      {
        type: 'RUN_STARTED',
        threadId,
        runId,
        ...(parentRunId === undefined ? {} : { parentRunId }),
        protocolVersion: PROTOCOL_VERSION,
        metadata,
      },
      ...this.#emptied(),
      ...subagents,
    ];
  }

  /** Empties the messages that this stream gives again. A snapshot has all messages: the client drops others. */
  #emptied(): Frame[] {
    const { answered } = this.#client;
    const messages = this.#messages;
    this.#messages = null;
    const kept = new Set(answered.map((id) => this.#ofCall(id)));
    const isGivenAgain = ({ id }: ClientMessage): boolean =>
      id.startsWith(this.#prefix) && !this.#known.has(id) && !kept.has(id);
    if (messages?.some(isGivenAgain) !== true) return [];
    const snapshot = messages.flatMap((message): ClientMessage[] => {
      if (!isGivenAgain(message)) return [message];
      if (message.role === 'tool') return [];
      const content = typeof message['content'] === 'string' ? { content: '' } : {};
      const calls = message['toolCalls'] === undefined ? {} : { toolCalls: [] };
      return [{ ...message, ...content, ...calls }];
    });
    // They are the client's own.
    return [{ type: 'MESSAGES_SNAPSHOT', messages: snapshot as unknown as Message[] }];
  }

  /** Ends what is open. */
  #closing(): Frame[] {
    const blocks = this.#blocks.closeAll();
    // The sub-agents continue; this stream has no more of them.
    const subagents = [...this.#subagents].map((call): Frame => {
      return { type: 'SUBAGENT_FINISHED', subagentRunId: this.#idOf(call), outcome: { type: 'suspended' } };
    });
    this.#subagents.clear();
    return [...blocks, ...subagents, ...this.#stepEnd()];
  }

  #last(how: StreamEnd): Frame[] {
    const { status, is_cut: isCut, error, outputs, response, approvals, calls } = this.#view;
    const { threadId, runId, knowsCancelled } = this.#client;
    const models = usageByModel(this.#view.model_calls.slice(this.#counted));
    const usage = models.length === 0 ? {} : { usage: models };
    const finished = { type: 'RUN_FINISHED' as const, threadId, runId, ...usage };
    const pendingToolCallIds = calls.map(({ call_id: id }) => id);
    const success = { type: 'success' as const, ...(calls.length === 0 ? {} : { pendingToolCallIds }) };
    switch (how === 'stopped' ? status : 'running') {
      case 'completed': {
        if (isCut) {
          const message = 'The answer is not whole: the output of the model ended early';
          return [...this.#background(), { type: 'RUN_ERROR', code: 'generation_cut', message, ...usage }];
        }
        return [...this.#background(), { ...finished, outcome: success, result: outputs ?? response }];
      }
      case 'waiting': {
        if (approvals.length + calls.length === 0) return [{ type: 'RUN_ERROR', ...LOST.stopped }];
        const interrupts = approvals.map((asked) => this.#interrupt(asked));
        return [{ ...finished, outcome: interrupts.length === 0 ? success : { type: 'interrupt', interrupts } }];
      }
      case 'cancelled': {
        const cancelled: Frame = knowsCancelled
          ? { ...finished, outcome: { type: 'cancelled' } }
          : { type: 'RUN_ERROR', code: 'cancelled', message: 'The run was cancelled', ...usage };
        return [...this.#background(), cancelled];
      }
      case 'failed': {
        const { code, message } = error ?? LOST.stopped;
        return [...this.#background(), { type: 'RUN_ERROR', code, message, ...usage }];
      }
      case 'queued':
      case 'running':
        return [{ type: 'RUN_ERROR', ...LOST[how] }];
    }
  }

  /** Actions that continue after the end of the run (S4). */
  #background(): Frame[] {
    return [...this.#calls.all()].flatMap((call) =>
      call.isBackground && !this.#answered.has(call) ? this.#result(call, 'started') : [],
    );
  }

  #framesOf(event: SessionEvent): Frame[] {
    this.#view = foldOutline(this.#view, event);
    if (isTextPatch(event)) return this.#blocks.add(event);
    if (isBlockEnd(event)) return this.#blocks.close(event);
    switch (event.type) {
      case 'iteration_started': {
        const ended = this.#stepEnd();
        this.#step = `iteration ${event.data.iteration}`;
        return [...ended, { type: 'STEP_STARTED', stepName: this.#step }];
      }
      case 'iteration_completed':
        return this.#stepEnd();
      case 'thought_started':
      case 'text_started':
      case 'response_started':
        this.#blocks.open(event);
        return [];
      case 'plan_generated': {
        const { total, waves, edges } = event.data;
        if (total === 0) return [];
        const messageId = this.#messageId(`plan-${event.iteration}`);
        const content = { total, waves, edges };
        return [...this.#blocks.begun(), { type: 'ACTIVITY_SNAPSHOT', messageId, activityType: 'PLAN', content }];
      }
      case 'context_feed_updated':
        return [{ type: 'CUSTOM', name: event.type, value: event.data }];
      case 'variable_changed':
        return this.#variable(event.data);
      case 'progress': {
        const call = this.#calls.of(event);
        const isSubagent = call !== undefined && this.#subagents.has(call);
        const by = isSubagent ? { subagentRunId: this.#idOf(call) } : {};
        return [{ type: 'CUSTOM', name: 'progress', value: { action: event.action_id, ...event.data }, ...by }];
      }
      case 'approval_requested':
        // A call of a client tool is shown when it is made: the client executes what it sees.
        return this.#run.clientTools.includes(event.action_name ?? '') ? [] : this.#action(event);
      default:
        return this.#action(event);
    }
  }

  #stepEnd(): Frame[] {
    const stepName = this.#step;
    this.#step = null;
    return stepName === null ? [] : [{ type: 'STEP_FINISHED', stepName }];
  }

  /** A member is added, or replaced if there is one. A patch that removes a member which does not exist fails. */
  #variable({ key, value, deleted }: EventOf<'variable_changed'>['data']): Frame[] {
    if (value === undefined && deleted !== true) return [];
    const path = `/${key.replaceAll('~', '~0').replaceAll('/', '~1')}`;
    const add = { op: 'add' as const, path, value: value ?? null };
    const delta = deleted === true ? [add, { op: 'remove' as const, path }] : [add];
    const snapshot: Frame[] = this.#hasState ? [] : [{ type: 'STATE_SNAPSHOT', snapshot: {} }];
    this.#hasState = true;
    return [...snapshot, { type: 'STATE_DELTA', delta }];
  }

  // --- text ---

  #opened({ segment, part }: ShownBlock): Frame[] {
    const messageId = this.#messageId(segment);
    if (part === 'text') return [{ type: 'TEXT_MESSAGE_START', messageId, role: 'assistant' }];
    return [
      { type: 'REASONING_START', messageId },
      { type: 'REASONING_MESSAGE_START', messageId, role: 'reasoning' },
    ];
  }

  #content({ segment, part }: ShownBlock, delta: string): Frame {
    const type = part === 'text' ? 'TEXT_MESSAGE_CONTENT' : 'REASONING_MESSAGE_CONTENT';
    return { type, messageId: this.#messageId(segment), delta };
  }

  #ended({ segment, part }: ShownBlock): Frame[] {
    const messageId = this.#messageId(segment);
    if (part === 'text') return [{ type: 'TEXT_MESSAGE_END', messageId }];
    return [
      { type: 'REASONING_MESSAGE_END', messageId },
      { type: 'REASONING_END', messageId },
    ];
  }

  #messageId(of: number | string): string {
    return `${this.#prefix}${of}`;
  }

  // --- actions ---

  #action(event: SessionEvent): Frame[] {
    const change = this.#calls.take(event);
    if (change === null) return [];
    const { call, begins, end } = change;
    if (call.callId !== null && this.#client.answered.includes(call.callId)) this.#answered.add(call);
    // The client has a call with a result.
    const called = begins === null || this.#answered.has(call) ? [] : this.#called(call, begins);
    if (end !== null) return [...called, ...this.#settled(call, end)];
    if (event.type !== 'action_started' || !call.isAgent || call.isBackground) return called;
    this.#subagents.add(call);
    return [...called, this.#subagentStarted(call)];
  }

  #called(call: ShownCall, parameters: NonNullable<CallChange['begins']>): Frame[] {
    const toolCallId = this.#idOf(call);
    const parentMessageId = this.#ofCall(toolCallId);
    return [
      ...this.#blocks.begun(),
      { type: 'TOOL_CALL_START', toolCallId, toolCallName: call.name, parentMessageId },
      { type: 'TOOL_CALL_ARGS', toolCallId, delta: JSON.stringify(parameters) },
      { type: 'TOOL_CALL_END', toolCallId },
    ];
  }

  #interrupt(asked: RunView['approvals'][number]): Interrupt {
    const { approval_id: id, type, sha256, bytes, complete, parameters, inputs, question } = asked;
    const { action_id: actionId, iteration, asked_at: at } = asked;
    const name = asked.name ?? actionId;
    const call = this.#calls.at(iteration, actionId);
    return {
      id,
      reason: question === undefined ? 'tool_call' : 'input_required',
      message: question === undefined ? `May ${name} be called?` : `${question.from} asks: ${question.message}`,
      ...(call === undefined ? {} : { toolCallId: this.#idOf(call) }),
      responseSchema: decisionOf(question?.schema),
      expiresAt: new Date(at + limits.approvalExpiryMs).toISOString(),
      metadata: {
        name,
        type,
        sha256,
        bytes,
        complete,
        ...(parameters === undefined ? {} : { parameters }),
        ...(inputs === undefined ? {} : { inputs }),
        ...(question === undefined ? {} : { question }),
      },
    };
  }

  #settled(call: ShownCall, end: CallEnd): Frame[] {
    if (this.#answered.has(call)) return [];
    const content = contentOf(end);
    const result = this.#result(call, content);
    if (!this.#subagents.delete(call)) return result;
    const subagentRunId = this.#idOf(call);
    const ended: Frame =
      end.status === 'completed'
        ? { type: 'SUBAGENT_FINISHED', subagentRunId }
        : { type: 'SUBAGENT_ERROR', subagentRunId, message: content };
    return [...result, ended];
  }

  #subagentStarted(call: ShownCall): Frame {
    const id = this.#idOf(call);
    return { type: 'SUBAGENT_STARTED', subagentRunId: id, name: call.name, parentToolCallId: id };
  }

  #result(call: ShownCall, content: string): Frame[] {
    this.#answered.add(call);
    const toolCallId = this.#idOf(call);
    const messageId = `${this.#ofCall(toolCallId)}-result`;
    return [{ type: 'TOOL_CALL_RESULT', messageId, toolCallId, content, role: 'tool' }];
  }

  /** The id of a call, the client's own if it has one. */
  #idOf({ iteration, actionId, rejectedAt, callId }: ShownCall): string {
    const own = rejectedAt === null ? '' : `-${rejectedAt}`;
    return callId ?? this.#messageId(`call-${iteration}-${actionId}${own}`);
  }

  /** The message of a call. */
  #ofCall(id: string): string {
    return id.startsWith(this.#prefix) ? id : this.#messageId(id);
  }
}

/** What a call has returned, as the text that the client shows. */
function contentOf(end: CallEnd): string {
  switch (end.status) {
    case 'completed':
      return typeof end.output === 'string' ? end.output : JSON.stringify(end.output);
    case 'failed':
    case 'rejected':
      return `Error: ${end.message} (${end.code})`;
    case 'skipped':
      return `Skipped: ${end.message}`;
    case 'cancelled':
      return `Cancelled: ${end.message}`;
  }
}

function usageByModel(calls: RunView['model_calls']): TokenUsage[] {
  return [...Map.groupBy(calls, ({ model = '' }) => model)].map(([model, of]) => {
    const { prompt: inputTokens, completion: outputTokens, cached: cachedInputTokens } = tokensOf(of);
    const totalTokens = inputTokens + outputTokens;
    return { ...(model === '' ? {} : { model }), inputTokens, outputTokens, cachedInputTokens, totalTokens };
  });
}
