/** A client of AG-UI: `HttpAgent`, which sends all messages that it has each time (E3). */
import type { Json, JsonObject } from '../../../src/domain/json.ts';
import { agUi, readRun } from '../../../src/surfaces/ag-ui/index.ts';
import type { SurfaceRequest } from '../../../src/surfaces/surface.ts';
import { dataOf, tokenIn } from './client-protocol.ts';
import type { Asking, ClientAnswers, ClientProtocol, Outcome, Reading } from './client-protocol.ts';

interface Call {
  readonly id: string;
  readonly type: 'function';
  readonly function: { readonly name: string; arguments: string };
}

interface Message {
  readonly id: string;
  readonly role: string;
  content?: unknown;
  toolCalls?: Call[];
  readonly toolCallId?: string;
}

interface Has {
  readonly messages: readonly Message[];
  readonly state: JsonObject;
}

interface Finished {
  readonly type: string;
  readonly interrupts?: readonly { readonly id: string }[];
  readonly pendingToolCallIds?: readonly string[];
}

type Delta = readonly { readonly op: string; readonly path: string; readonly value?: Json }[];

type Frame = Record<string, unknown> & { readonly type: string };

const NOTHING: Has = { messages: [], state: {} };

const hasOf = (reading: Reading | null): Has => (reading?.message ?? NOTHING) as unknown as Has;

function request(asking: Asking, runId: string, { decisions }: Partial<ClientAnswers> = {}): SurfaceRequest {
  const { index, text, sessionId: threadId, has } = asking;
  const { messages, state } = hasOf(has);
  const asked = { id: `user ${index}`, role: 'user', content: text };
  const body = {
    threadId,
    runId,
    protocolVersion: '1.0',
    messages: [asked, ...messages],
    tools: [],
    context: [],
    state,
    ...(decisions === undefined
      ? {}
      : {
          resume: decisions.map(({ approvalId: interruptId, approved }) => ({
            interruptId,
            status: 'resolved',
            payload: { approved },
          })),
        }),
  };
  return readRun({
    body: structuredClone(body) as unknown as Json,
    params: { name: 'assistant' },
    query: {},
    key: null,
    session: null,
    isKey: true,
  });
}

export const agUiClient: ClientProtocol = {
  surface: agUi,
  decides: true,
  tellsLate: false,
  answersTogether: false,
  looksAgain: true,
  continues: ['ask', 'follow', 'answer'],
  options: { threadId: 'thread', runId: 'run', answered: [], hasState: true, knowsCancelled: true, messages: null },
  ask: (asking) => request(asking, `run ${asking.index}`),
  follow: null,
  answer: (asking, answers) => request(asking, `run ${asking.index}, answers ${answers.round}`, answers),
  answered: (has, { results }) => {
    const { messages, state } = hasOf(has);
    const added = results.map(({ callId, result }) => ({
      id: `result of ${callId}`,
      role: 'tool',
      toolCallId: callId,
      ...('output' in result
        ? { content: JSON.stringify(result.output) }
        : { content: '', error: result.error.message }),
    }));
    return { ...has, message: { messages: [...messages, ...added], state } as unknown as Json };
  },
  read,
  beginsAfter: () => 0,
  essence: (message, runId) => {
    const { messages, state } = message as unknown as Has;
    const prefix = `${runId.replace(/^run_[0-9a-f]{32}_/, 'run_')}-`;
    const own = messages.filter(({ id, content, toolCalls = [], toolCallId = '' }) => {
      // Who answered a call of the client is told by its result.
      const isShown = content !== '' || toolCalls.length > 0;
      return id.startsWith(prefix) && isShown && !toolCallId.startsWith('call_');
    });
    // The members of a message come back in another order from a snapshot.
    const ordered = own.map((one) => Object.fromEntries(Object.entries(one).toSorted(([a], [b]) => (a < b ? -1 : 1))));
    return { messages: ordered, state } as unknown as Json;
  },
};

function read(text: string, before: Reading | null): Reading {
  const reader = new RunReader(hasOf(before));
  for (const frame of dataOf(text)) reader.add(frame as Frame | null);
  return reader.reading();
}

const LOST: ReadonlySet<string> = new Set(['connection_lost', 'session_deleted', 'token_expired']);

class RunReader {
  #messages: Message[];
  readonly #state: Record<string, Json>;
  readonly #open = new Set<string>();
  readonly #mistakes: string[] = [];
  readonly #begun = new Set<string>();
  #interrupts: readonly string[] = [];
  #count = 0;
  #outcome: Outcome | null = null;

  constructor({ messages, state }: Has) {
    this.#messages = structuredClone(messages) as Message[];
    this.#state = { ...state };
  }

  add(frame: Frame | null): void {
    if (frame === null) return this.#mistake('a frame is not JSON');
    const { type } = frame;
    if (this.#outcome !== null) this.#mistake(`${type} follows the end of the run`);
    const isFirst = this.#count === 0;
    if ((type === 'RUN_STARTED') !== isFirst && !(isFirst && type === 'RUN_ERROR')) {
      this.#mistake(`${type} is frame ${this.#count}`);
    }
    this.#count += 1;
    const text = (name: string): string => String(frame[name]);
    switch (type) {
      case 'RUN_STARTED':
      case 'CUSTOM':
        return;
      case 'RUN_FINISHED':
        return this.#finish(frame['outcome'] as Finished);
      case 'RUN_ERROR': {
        const code = text('code');
        this.#outcome = LOST.has(code) ? 'lost' : code === 'generation_cut' ? 'cut' : 'failed';
        return;
      }
      case 'STEP_STARTED':
        return this.#begin(`step ${text('stepName')}`);
      case 'STEP_FINISHED':
        return this.#end(`step ${text('stepName')}`);
      case 'SUBAGENT_STARTED':
        return this.#begin(`sub-agent ${text('subagentRunId')}`);
      case 'SUBAGENT_FINISHED':
      case 'SUBAGENT_ERROR':
        return this.#end(`sub-agent ${text('subagentRunId')}`);
      case 'MESSAGES_SNAPSHOT':
        return this.#snapshot(frame['messages'] as readonly Message[]);
      case 'STATE_SNAPSHOT':
        return;
      case 'STATE_DELTA':
        return this.#patch(frame['delta'] as Delta);
      case 'ACTIVITY_SNAPSHOT': {
        const { messageId: id, activityType, content } = frame;
        const message = { id: String(id), role: 'activity', activityType, content };
        const known = this.#messages.findIndex((other) => other.id === id);
        if (known === -1) this.#messages.push(message);
        else this.#messages[known] = message;
        return;
      }
      default:
        return type.startsWith('TOOL_CALL_') ? this.#call(frame) : this.#text(frame);
    }
  }

  reading(): Reading {
    const answered = new Set(this.#messages.map(({ toolCallId }) => toolCallId));
    const calls = this.#messages.flatMap(({ toolCalls = [] }) => toolCalls);
    return {
      message: { messages: this.#messages, state: this.#state } as unknown as Json,
      outcome: this.#outcome,
      calls:
        this.#outcome === 'waiting'
          ? calls.flatMap(({ id, function: { arguments: parameters } }) =>
              id.startsWith('call_') && !answered.has(id) ? [{ id, token: tokenIn(parameters) }] : [],
            )
          : [],
      approvals: this.#interrupts,
      open: [...this.#open],
      mistakes: this.#mistakes,
    };
  }

  #finish(outcome: Finished): void {
    this.#interrupts = outcome.interrupts?.map(({ id }) => id) ?? [];
    const waits = outcome.type === 'interrupt' || (outcome.pendingToolCallIds ?? []).length > 0;
    this.#outcome = waits ? 'waiting' : outcome.type === 'success' ? 'success' : 'cancelled';
  }

  #snapshot(given: readonly Message[]): void {
    const ids = new Map(given.map((message) => [message.id, structuredClone(message)]));
    const isKept = ({ id, role }: Message): boolean => ids.has(id) || role === 'activity' || role === 'reasoning';
    const kept = this.#messages.filter(isKept).map((message) => ids.get(message.id) ?? message);
    const known = new Set(kept.map(({ id }) => id));
    this.#messages = [...kept, ...[...ids.values()].filter(({ id, role }) => !known.has(id) && role !== 'user')];
  }

  #patch(delta: Delta): void {
    for (const { op, path, value = null } of delta) {
      const key = path.slice(1).replaceAll('~1', '/').replaceAll('~0', '~');
      if (op === 'add') this.#state[key] = value;
      else if (!Object.hasOwn(this.#state, key)) this.#mistake(`${op} of ${path}, which is not in the state`);
      else delete this.#state[key];
    }
  }

  #text({ type, messageId, delta }: Frame): void {
    const id = String(messageId);
    const [, kind = '', what = ''] =
      /^(TEXT_MESSAGE|REASONING_MESSAGE|REASONING)_(START|CONTENT|END)$/.exec(type) ?? [];
    if (kind === '') return this.#mistake(`${type} is an unknown type of event`);
    if (what === 'END') return this.#end(`${kind} ${id}`);
    if (what === 'START') {
      this.#begin(`${kind} ${id}`);
      if (kind === 'REASONING' || this.#messages.some((message) => message.id === id)) return;
      this.#messages.push({ id, role: kind === 'TEXT_MESSAGE' ? 'assistant' : 'reasoning', content: '' });
      return;
    }
    if (!this.#open.has(`${kind} ${id}`)) return this.#mistake(`${type} of ${id}, which is not open`);
    if (delta === '') this.#mistake(`${type} of ${id} is empty`);
    const message = this.#messages.find((one) => one.id === id);
    if (message !== undefined) message.content = `${String(message.content ?? '')}${String(delta)}`;
  }

  #call({ type, toolCallId, toolCallName, parentMessageId, messageId, delta, content }: Frame): void {
    const id = String(toolCallId);
    const found = this.#messages.flatMap(({ toolCalls = [] }) => toolCalls).find((call) => call.id === id);
    switch (type) {
      case 'TOOL_CALL_START': {
        this.#begin(`call ${id}`);
        if (found !== undefined) return this.#mistake(`the call ${id} is shown twice`);
        const called: Call = { id, type: 'function', function: { name: String(toolCallName), arguments: '' } };
        const parent = this.#messages.find((message) => message.id === parentMessageId);
        if (parent === undefined)
          this.#messages.push({ id: String(parentMessageId), role: 'assistant', toolCalls: [called] });
        else parent.toolCalls = [...(parent.toolCalls ?? []), called];
        return;
      }
      case 'TOOL_CALL_ARGS':
        if (!this.#open.has(`call ${id}`)) return this.#mistake(`arguments of ${id}, which is not open`);
        if (found !== undefined) found.function.arguments += String(delta);
        return;
      case 'TOOL_CALL_END':
        return this.#end(`call ${id}`);
      case 'TOOL_CALL_RESULT': {
        if (found === undefined) this.#mistake(`a result of the call ${id}, which was not shown`);
        if (this.#messages.some((message) => message.toolCallId === id))
          this.#mistake(`a second result of the call ${id}`);
        const message = { id: String(messageId), toolCallId: id, role: 'tool', content };
        const at = this.#messages.findIndex(({ toolCalls = [] }) => toolCalls.some((call) => call.id === id)) + 1;
        this.#messages.splice(at === 0 ? this.#messages.length : at, 0, message);
        return;
      }
      default:
        this.#mistake(`${type} is an unknown type of event`);
    }
  }

  #begin(what: string): void {
    if (this.#begun.has(what)) this.#mistake(`${what} begins twice`);
    this.#begun.add(what);
    this.#open.add(what);
  }

  #end(what: string): void {
    if (!this.#open.delete(what)) this.#mistake(`${what} ends and is not open`);
  }

  #mistake(what: string): void {
    this.#mistakes.push(what);
  }
}
