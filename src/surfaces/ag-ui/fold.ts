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
import type { EventOf, SessionEvent } from '../../domain/event.ts';
import { cutGeneration, endsWait, isBlockEnd, isTextPatch } from '../../domain/event.ts';
import type { Json, JsonObject } from '../../domain/json.ts';
import { limits } from '../../domain/limits.ts';
import { ShownText } from '../shown-text.ts';
import type { Fold, FoldedRun, StreamEnd } from '../surface.ts';

type Frame = { readonly type: string } & Readonly<Record<string, unknown>>;

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

/** An open block of text. */
interface Block {
  readonly part: 'text' | 'reasoning';
  readonly text: ShownText;
}

interface Queued {
  readonly parameters: JsonObject;
  readonly isAgent: boolean;
  readonly isBackground: boolean;
}

/** A call that was shown. */
interface Call {
  readonly id: string;
  readonly name: string;
  readonly isAgent: boolean;
  readonly isBackground: boolean;
  /** Whether it runs as a sub-agent now. */
  isSubagent: boolean;
  hasResult: boolean;
}

/** How the run has ended, or that it waits. */
type Outcome = EventOf<'agent_completed' | 'agent_failed' | 'agent_cancelled' | 'agent_waiting'>;

interface Usage {
  inputTokens: number;
  outputTokens: number;
  cachedInputTokens: number;
}

const LOST: Readonly<Record<StreamEnd, { readonly code: string; readonly message: string }>> = {
  stopped: { code: 'connection_lost', message: 'The connection to the session was lost; the run continues' },
  token_expired: { code: 'token_expired', message: 'The token has expired; the run continues' },
  session_deleted: { code: 'session_deleted', message: 'The session was deleted' },
  connection_lost: { code: 'connection_lost', message: 'The connection to the session was lost; the run continues' },
};

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
  readonly #blocks = new Map<number, Block>();
  /** What was queued and has not started, by iteration and id. */
  readonly #queued = new Map<string, Queued>();
  readonly #calls = new Map<string, Call>();
  /** Open calls of client tools, by iteration and id of their actions. */
  readonly #pending = new Map<string, string>();
  /** Open approvals, in the same way. */
  readonly #interrupts = new Map<string, JsonObject>();
  /** Messages that an earlier stream has shown completely. */
  readonly #known = new Set<string>();
  readonly #usage = new Map<string, Usage>();
  #hasState: boolean;
  #seq = 0;
  #isStarted = false;
  #step: string | null = null;
  #outcome: Outcome | null = null;
  /** The last generation whose text ended early. */
  #cutIn: number | null = null;

  constructor({ options, ...run }: FoldedRun) {
    // `readRun` has made the options.
    const { messages, ...client } = options as unknown as ClientRun;
    this.#run = run;
    this.#prefix = prefixOf(run.runId);
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
    for (const { messageId, parentMessageId } of frames) {
      if (typeof messageId === 'string') this.#known.add(messageId);
      if (typeof parentMessageId === 'string') this.#known.add(parentMessageId);
    }
    this.#usage.clear();
    this.#step = null;
    this.#hasState = this.#client.hasState;
  }

  #started(): Frame[] {
    if (this.#isStarted) return [];
    this.#isStarted = true;
    const { threadId, runId, parentRunId } = this.#client;
    const { sessionId, runId: ownRunId } = this.#run;
    const metadata = { 'cortex-edge': { session_id: sessionId, run_id: ownRunId } };
    const subagents = [...this.#calls.values()].filter(({ isSubagent }) => isSubagent).map(subagentStarted);
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
    return [{ type: 'MESSAGES_SNAPSHOT', messages: snapshot }];
  }

  /** Ends what is open. */
  #closing(): Frame[] {
    const blocks = [...this.#blocks].flatMap(([segment, block]) =>
      block.text.isShown ? this.#ended(segment, block) : [],
    );
    this.#blocks.clear();
    const subagents = [...this.#calls.values()].flatMap((call): Frame[] => {
      if (!call.isSubagent) return [];
      call.isSubagent = false;
      // The sub-agent continues; this stream has no more of it.
      return [{ type: 'SUBAGENT_FINISHED', subagentRunId: call.id, outcome: { type: 'suspended' } }];
    });
    return [...blocks, ...subagents, ...this.#stepEnd()];
  }

  #last(how: StreamEnd): Frame[] {
    const outcome = how === 'stopped' ? this.#outcome : null;
    const { threadId, runId, knowsCancelled } = this.#client;
    const usage = this.#usage.size === 0 ? {} : { usage: [...this.#usage].map(usageOf) };
    const finished = { type: 'RUN_FINISHED', threadId, runId, ...usage };
    const pendingToolCallIds = [...this.#pending.values()];
    const success = { type: 'success', ...(pendingToolCallIds.length === 0 ? {} : { pendingToolCallIds }) };
    switch (outcome?.type) {
      case 'agent_completed': {
        const { outputs, response, iterations } = outcome.data;
        if (iterations === this.#cutIn) {
          const message = 'The answer is not whole: the output of the model ended early';
          return [...this.#background(), { type: 'RUN_ERROR', code: 'generation_cut', message, ...usage }];
        }
        return [...this.#background(), { ...finished, outcome: success, result: outputs ?? response }];
      }
      case 'agent_waiting': {
        const interrupts = [...this.#interrupts.values()];
        if (interrupts.length + pendingToolCallIds.length === 0) return [{ type: 'RUN_ERROR', ...LOST.stopped }];
        return [{ ...finished, outcome: interrupts.length === 0 ? success : { type: 'interrupt', interrupts } }];
      }
      case 'agent_cancelled': {
        const cancelled = knowsCancelled
          ? { ...finished, outcome: { type: 'cancelled' } }
          : { type: 'RUN_ERROR', code: 'cancelled', message: 'The run was cancelled', ...usage };
        return [...this.#background(), cancelled];
      }
      case 'agent_failed': {
        const { code, message } = outcome.data.error;
        return [...this.#background(), { type: 'RUN_ERROR', code, message, ...usage }];
      }
      default:
        return [{ type: 'RUN_ERROR', ...LOST[how] }];
    }
  }

  /** Actions that continue after the end of the run (S4). */
  #background(): Frame[] {
    return [...this.#calls.values()].flatMap((call) =>
      call.isBackground && !call.hasResult ? this.#result(call, 'started') : [],
    );
  }

  #framesOf(event: SessionEvent): Frame[] {
    if (isTextPatch(event)) {
      const { segment, offset, delta } = event.data;
      return this.#text(segment, (text) => text.add(offset, delta));
    }
    if (isBlockEnd(event)) return this.#blockEnd(event.data.segment, event.data.content);
    this.#cutIn = cutGeneration(event) ?? this.#cutIn;
    if (endsWait(event)) this.#outcome = null;
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
      case 'response_started': {
        const part = event.type === 'thought_started' ? 'reasoning' : 'text';
        this.#blocks.set(event.seq, { part, text: new ShownText() });
        return [];
      }
      case 'plan_generated': {
        const { total, waves, edges } = event.data;
        if (total === 0) return [];
        const messageId = this.#messageId(`plan-${event.iteration}`);
        const content = { total, waves, edges };
        return [...this.#begun(), { type: 'ACTIVITY_SNAPSHOT', messageId, activityType: 'PLAN', content }];
      }
      case 'context_feed_updated':
        return [{ type: 'CUSTOM', name: event.type, value: event.data }];
      case 'variable_changed':
        return this.#variable(event.data);
      case 'usage':
        this.#count(event.data);
        return [];
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

  #stepEnd(): Frame[] {
    const stepName = this.#step;
    this.#step = null;
    return stepName === null ? [] : [{ type: 'STEP_FINISHED', stepName }];
  }

  /** A member is added, or replaced if there is one. A patch that removes a member which does not exist fails. */
  #variable({ key, value, deleted }: EventOf<'variable_changed'>['data']): Frame[] {
    if (value === undefined && deleted !== true) return [];
    const path = `/${key.replaceAll('~', '~0').replaceAll('/', '~1')}`;
    const add = { op: 'add', path, value: value ?? null };
    const delta = deleted === true ? [add, { op: 'remove', path }] : [add];
    const snapshot = this.#hasState ? [] : [{ type: 'STATE_SNAPSHOT', snapshot: {} }];
    this.#hasState = true;
    return [...snapshot, { type: 'STATE_DELTA', delta }];
  }

  #count({ model = '', prompt_tokens, completion_tokens, cached_tokens }: EventOf<'usage'>['data']): void {
    const usage = this.#usage.get(model) ?? { inputTokens: 0, outputTokens: 0, cachedInputTokens: 0 };
    usage.inputTokens += prompt_tokens;
    usage.outputTokens += completion_tokens;
    usage.cachedInputTokens += cached_tokens;
    this.#usage.set(model, usage);
  }

  // --- text ---

  #text(segment: number, take: (text: ShownText) => string): Frame[] {
    const block = this.#blocks.get(segment);
    if (block === undefined) return [];
    const { isShown } = block.text;
    const delta = take(block.text);
    if (delta === '') return [];
    const opened = isShown ? [] : [...this.#begun(segment), ...this.#opened(segment, block)];
    return [...opened, this.#content(segment, block, delta)];
  }

  #blockEnd(segment: number, content: string): Frame[] {
    const rest = this.#text(segment, (text) => text.end(content));
    const block = this.#blocks.get(segment);
    this.#blocks.delete(segment);
    return block?.text.isShown === true ? [...rest, ...this.#ended(segment, block)] : rest;
  }

  /** What precedes another message: open blocks that have no text yet. @param segment only blocks before it */
  #begun(segment = Infinity): Frame[] {
    return [...this.#blocks].flatMap(([id, block]) => {
      if (block.text.isShown || id >= segment) return [];
      const blank = block.text.show();
      const opened = this.#opened(id, block);
      return blank === '' ? opened : [...opened, this.#content(id, block, blank)];
    });
  }

  #opened(segment: number, { part }: Block): Frame[] {
    const messageId = this.#messageId(segment);
    if (part === 'text') return [{ type: 'TEXT_MESSAGE_START', messageId, role: 'assistant' }];
    return [
      { type: 'REASONING_START', messageId },
      { type: 'REASONING_MESSAGE_START', messageId, role: 'reasoning' },
    ];
  }

  #content(segment: number, { part }: Block, delta: string): Frame {
    const type = part === 'text' ? 'TEXT_MESSAGE_CONTENT' : 'REASONING_MESSAGE_CONTENT';
    return { type, messageId: this.#messageId(segment), delta };
  }

  #ended(segment: number, { part }: Block): Frame[] {
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
    if (event.action_id === undefined) return [];
    const key = `${event.iteration}-${event.action_id}`;
    const name = event.action_name ?? event.action_id;
    switch (event.type) {
      case 'action_queued': {
        const { type, mode, parameters } = event.data;
        this.#queued.set(key, { parameters, isAgent: type === 'agent', isBackground: mode === 'fire_and_forget' });
        return [];
      }
      case 'action_started': {
        if (event.data.attempt > 1 || this.#run.clientTools.includes(name)) return [];
        const shown = this.#shown(key, name, event.data.parameters);
        const call = this.#calls.get(key);
        if (call?.isAgent !== true || call.isBackground) return shown;
        call.isSubagent = true;
        return [...shown, subagentStarted(call)];
      }
      case 'client_tool_called': {
        const { call_id: id, parameters } = event.data;
        this.#queued.delete(key);
        this.#pending.set(key, id);
        const hasResult = this.#client.answered.includes(id);
        const call = { id, name, isAgent: false, isBackground: false, isSubagent: false, hasResult };
        this.#calls.set(key, call);
        // The client has the call and its result.
        return hasResult ? [] : this.#called(call, parameters);
      }
      case 'client_tool_settled':
        this.#pending.delete(key);
        return [];
      case 'approval_requested':
        return this.#interrupted(key, name, event);
      case 'approval_resolved':
        this.#interrupts.delete(key);
        return [];
      case 'progress': {
        const call = this.#calls.get(key);
        const by = call?.isSubagent === true ? { subagentRunId: call.id } : {};
        return [{ type: 'CUSTOM', name: 'progress', value: { action: event.action_id, ...event.data }, ...by }];
      }
      case 'action_completed':
        return this.#settled(key, name, textOf(event.data.output));
      case 'action_failed':
        return this.#settled(key, name, failed(event.data.error), true);
      case 'action_rejected': {
        // The action that has the id already is another one.
        const own = event.data.code === 'duplicate_id' ? `${key}-${event.seq}` : key;
        const parameters = event.data.parameters ?? {};
        this.#queued.set(own, { parameters, isAgent: false, isBackground: false });
        return this.#settled(own, name, failed(event.data), true);
      }
      case 'action_skipped':
        return this.#settled(key, name, `Skipped: ${event.data.because ?? event.data.reason}`, true);
      case 'action_cancelled':
        return this.#settled(key, name, `Cancelled: ${event.data.reason}`, true);
      default:
        return [];
    }
  }

  #called({ id, name }: Call, parameters: JsonObject): Frame[] {
    return [
      ...this.#begun(),
      { type: 'TOOL_CALL_START', toolCallId: id, toolCallName: name, parentMessageId: this.#ofCall(id) },
      { type: 'TOOL_CALL_ARGS', toolCallId: id, delta: JSON.stringify(parameters) },
      { type: 'TOOL_CALL_END', toolCallId: id },
    ];
  }

  /** The call, unless it was shown already. */
  #shown(key: string, name: string, resolved: JsonObject | undefined): Frame[] {
    if (this.#calls.has(key)) return [];
    const queued = this.#queued.get(key);
    this.#queued.delete(key);
    const { isAgent = false, isBackground = false } = queued ?? {};
    const call = {
      id: this.#messageId(`call-${key}`),
      name,
      isAgent,
      isBackground,
      isSubagent: false,
      hasResult: false,
    };
    this.#calls.set(key, call);
    return this.#called(call, resolved ?? queued?.parameters ?? {});
  }

  #interrupted(key: string, name: string, event: EventOf<'approval_requested'>): Frame[] {
    const { approval_id: id, type, sha256, bytes, complete, parameters, inputs, question } = event.data;
    // A call of a client tool is shown when it is made: the client executes what it sees.
    const isClient = this.#run.clientTools.includes(name);
    const shown = isClient ? [] : this.#shown(key, name, parameters);
    const call = this.#calls.get(key);
    this.#interrupts.set(key, {
      id,
      reason: question === undefined ? 'tool_call' : 'input_required',
      message: question === undefined ? `May ${name} be called?` : `${question.from} asks: ${question.message}`,
      ...(call === undefined ? {} : { toolCallId: call.id }),
      responseSchema: decisionOf(question?.schema),
      expiresAt: new Date(event.timestamp + limits.approvalExpiryMs).toISOString(),
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
    });
    return shown;
  }

  #settled(key: string, name: string, content: string, hasFailed = false): Frame[] {
    this.#interrupts.delete(key);
    this.#pending.delete(key);
    const shown = this.#shown(key, name, undefined);
    const call = this.#calls.get(key);
    if (call === undefined || call.hasResult) return shown;
    const subagent = call.isSubagent ? [subagentEnded(call, hasFailed ? content : null)] : [];
    call.isSubagent = false;
    return [...shown, ...this.#result(call, content), ...subagent];
  }

  #result(call: Call, content: string): Frame[] {
    call.hasResult = true;
    const { id: toolCallId } = call;
    const messageId = `${this.#ofCall(toolCallId)}-result`;
    return [{ type: 'TOOL_CALL_RESULT', messageId, toolCallId, content, role: 'tool' }];
  }

  /** The message of a call. */
  #ofCall(id: string): string {
    return id.startsWith(this.#prefix) ? id : this.#messageId(id);
  }
}

const textOf = (output: Json): string => (typeof output === 'string' ? output : JSON.stringify(output));

const failed = ({ code, message }: { readonly code: string; readonly message: string }): string =>
  `Error: ${message} (${code})`;

const subagentStarted = ({ id, name }: Call): Frame => ({
  type: 'SUBAGENT_STARTED',
  subagentRunId: id,
  name,
  parentToolCallId: id,
});

/** @param failure null: it has succeeded */
const subagentEnded = ({ id }: Call, failure: string | null): Frame =>
  failure === null
    ? { type: 'SUBAGENT_FINISHED', subagentRunId: id }
    : { type: 'SUBAGENT_ERROR', subagentRunId: id, message: failure };

const usageOf = ([model, usage]: readonly [string, Usage]): JsonObject => ({
  ...(model === '' ? {} : { model }),
  ...usage,
  totalTokens: usage.inputTokens + usage.outputTokens,
});
