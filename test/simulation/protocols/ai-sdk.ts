/** A client of the AI SDK: `Chat` with the default transport (E1). */
import type { Json } from '../../../src/domain/json.ts';
import { aiSdk, readChat, readMessages, readStream } from '../../../src/surfaces/ai-sdk/index.ts';
import type { SurfaceInput } from '../../../src/surfaces/surface.ts';
import { dataOf, tokenIn } from './client-protocol.ts';
import type { Asking, ClientProtocol, Outcome, Reading } from './client-protocol.ts';

type Part = Record<string, unknown> & { readonly type: string };
type Chunk = Record<string, unknown> & { readonly type: string };

interface Message {
  readonly id: string;
  readonly parts: readonly Part[];
}

const inputOf = ({ sessionId }: Asking, body: Json): SurfaceInput => ({
  body,
  params: { name: 'assistant', chat: sessionId },
  query: {},
  key: null,
  session: null,
  isKey: true,
});

const LOST = /the run continues|The session was deleted/;
const FINISHES: Readonly<Record<string, Outcome>> = { stop: 'success', length: 'cut', 'tool-calls': 'waiting' };

export const aiSdkClient: ClientProtocol = {
  surface: aiSdk,
  decides: true,
  tellsLate: false,
  answersTogether: true,
  looksAgain: true,
  continues: ['answer'],
  options: {},
  ask: (asking) => {
    const { index, text, sessionId: id } = asking;
    const messages = [{ id: `message ${index}`, role: 'user', parts: [{ type: 'text', text }] }];
    return readChat(inputOf(asking, { id, messages, trigger: 'submit-message' }));
  },
  follow: (asking) => readStream(inputOf(asking, null)),
  answer: (asking, { results, decisions }) => {
    const { sessionId: id, runId } = asking;
    const tool = { type: 'dynamic-tool', toolName: 'client' };
    const parts = [
      ...results.map(({ callId: toolCallId, result }) =>
        'output' in result
          ? { ...tool, toolCallId, state: 'output-available', output: result.output }
          : { ...tool, toolCallId, state: 'output-error', errorText: result.error.message },
      ),
      ...decisions.map(({ approvalId, approved }) => ({
        ...tool,
        toolCallId: approvalId,
        state: 'approval-responded',
        approval: { id: approvalId, approved },
      })),
    ];
    const messages = [{ id: runId ?? '', role: 'assistant', parts }];
    return readChat(inputOf(asking, { id, messages, trigger: 'submit-message' } as unknown as Json));
  },
  answered: (has, { results, decisions }) => {
    const { id, parts } = has.message as unknown as Message;
    const known = parts.map((part) => {
      const { toolCallId, approval } = part;
      const decided = decisions.find(({ approvalId }) => (approval as { id?: unknown } | undefined)?.id === approvalId);
      if (decided !== undefined) return { ...part, state: 'approval-responded' };
      const { result } = results.find(({ callId }) => callId === toolCallId) ?? {};
      if (result === undefined) return part;
      return 'output' in result
        ? { ...part, state: 'output-available', output: result.output }
        : { ...part, state: 'output-error', errorText: result.error.message };
    });
    return { ...has, message: { id, parts: known } as unknown as Json };
  },
  read,
  beginsAfter: () => 0,
  essence: (message) => {
    const { id, parts } = message as unknown as Message;
    // A step has no parts if the client had them, or if it has answered after the end of the run.
    const whole = parts.filter(({ type }, at) => type !== 'step-start' || (parts[at + 1]?.type ?? type) !== type);
    const known = whole.map(({ approval: _approval, ...part }): Part => {
      const { toolCallId, toolName, input, state } = part;
      // The client has its own results first; those of background actions come after the end.
      if (String(toolCallId).startsWith('call_')) return { type: 'dynamic-tool', toolCallId, toolName, input };
      // A page that was loaded again has the decisions, too.
      return state === 'approval-responded' ? { ...part, state: 'approval-requested' } : part;
    });
    return { id, parts: known } as unknown as Json;
  },
  conversation: {
    ask: (asking) => readMessages(inputOf(asking, null)),
    find: (text, runId) => {
      const messages = JSON.parse(text) as { readonly id: string; readonly parts: Json }[];
      const found = messages.find(({ id }) => id === runId);
      return found === undefined ? null : { id: found.id, parts: found.parts };
    },
  },
};

function read(text: string, before: Reading | null): Reading {
  const had = before === null ? null : (before.message as unknown as Message);
  const reader = new MessageReader(had);
  for (const chunk of dataOf(text)) reader.add(chunk as Chunk | null);
  return reader.reading();
}

class MessageReader {
  #id: string;
  readonly #parts: Part[];
  readonly #open = new Map<string, Part>();
  readonly #mistakes: string[] = [];
  /** Ids of the calls in this stream. */
  readonly #shown = new Set<string>();
  #isStarted = false;
  #isInStep = false;
  #outcome: Outcome | null = null;

  constructor(had: Message | null) {
    this.#id = had?.id ?? '';
    this.#parts = structuredClone(had?.parts ?? []) as Part[];
  }

  add(chunk: Chunk | null): void {
    if (chunk === null) return this.#mistake('a frame is not JSON');
    const { type } = chunk;
    if (this.#outcome !== null) this.#mistake(`${type} follows the end of the message`);
    if (!this.#isStarted && type !== 'start' && type !== 'error') this.#mistake(`${type} comes before start`);
    switch (type) {
      case 'start':
        if (this.#isStarted) this.#mistake('start comes twice');
        if (this.#id !== '' && this.#id !== chunk['messageId']) this.#mistake('a continued message has another id');
        this.#id = String(chunk['messageId']);
        this.#isStarted = true;
        return;
      case 'start-step':
        if (this.#isInStep) this.#mistake('a step begins in another one');
        this.#isInStep = true;
        this.#parts.push({ type: 'step-start' });
        return;
      case 'finish-step':
        if (!this.#isInStep) this.#mistake('a step ends and was not begun');
        if (this.#open.size > 0) this.#mistake(`a step ends before ${[...this.#open.keys()].join(', ')}`);
        this.#isInStep = false;
        return;
      case 'finish':
        return this.#end(FINISHES[String(chunk['finishReason'])] ?? null, type);
      case 'abort':
        return this.#end('cancelled', type);
      case 'error':
        return this.#end(LOST.test(String(chunk['errorText'])) ? 'lost' : 'failed', type);
      default:
        return this.#part(chunk);
    }
  }

  #part({ type, ...rest }: Chunk): void {
    if (type.startsWith('data-')) {
      if (rest['transient'] !== true) this.#parts.push({ type, ...rest });
      return;
    }
    // After a wait, results of earlier calls come first.
    if (!this.#isInStep && !type.startsWith('tool-output-')) this.#mistake(`${type} is in no step`);
    const [kind = ''] = type.split('-');
    const key = `${kind} ${String(rest['id'])}`;
    switch (type) {
      case 'text-start':
      case 'reasoning-start': {
        if (this.#open.has(key)) this.#mistake(`${key} begins twice`);
        const part: Part = { type: kind, text: '', state: 'streaming' };
        // The client keeps the ids of reasoning.
        this.#add(kind === 'reasoning' ? { type: kind, id: rest['id'], text: '', state: 'streaming' } : part, key);
        return;
      }
      case 'text-delta':
      case 'reasoning-delta':
      case 'text-end':
      case 'reasoning-end': {
        const part = this.#open.get(key);
        if (part === undefined) return this.#mistake(`${type} of ${key}, which is not open`);
        if (type.endsWith('-delta')) part['text'] = `${String(part['text'])}${String(rest['delta'])}`;
        else {
          part['state'] = 'done';
          this.#open.delete(key);
        }
        return;
      }
      case 'tool-input-available': {
        const { dynamic, ...call } = rest;
        if (dynamic !== true) this.#mistake('a call is not dynamic');
        const id = String(rest['toolCallId']);
        if (this.#shown.has(id)) this.#mistake(`the call ${id} is shown twice`);
        this.#shown.add(id);
        // An earlier stream may have shown what a background action did while the run waited.
        if (this.#tool(rest) !== undefined) return;
        this.#parts.push({ type: 'dynamic-tool', ...call, state: 'input-available' });
        return;
      }
      case 'tool-approval-request':
        return this.#change(type, rest, { state: 'approval-requested', approval: { id: rest['approvalId'] } });
      case 'tool-output-denied':
        return this.#change(type, rest, { state: 'output-denied' });
      case 'tool-output-available':
        return this.#change(type, rest, { state: 'output-available', output: rest['output'] });
      case 'tool-output-error':
        return this.#change(type, rest, { state: 'output-error', errorText: rest['errorText'] });
      default:
        this.#mistake(`${type} is an unknown type of chunk`);
    }
  }

  reading(): Reading {
    const tools = this.#parts.filter(({ type }) => type === 'dynamic-tool');
    return {
      message: { id: this.#id, parts: this.#parts } as unknown as Json,
      outcome: this.#outcome,
      calls: tools.flatMap(({ toolCallId, state, input }) => {
        const id = String(toolCallId);
        return state === 'input-available' && id.startsWith('call_') ? [{ id, token: tokenIn(input) }] : [];
      }),
      approvals: tools.flatMap(({ state, approval }) =>
        state === 'approval-requested' ? [String((approval as { id: unknown }).id)] : [],
      ),
      open: [...this.#open.keys(), ...(this.#isInStep ? ['a step'] : [])],
      mistakes: this.#mistakes,
    };
  }

  #end(outcome: Outcome | null, type: string): void {
    if (outcome === null) this.#mistake(`the reason of ${type} is unknown`);
    this.#outcome = outcome;
  }

  #add(part: Part, key: string): void {
    this.#parts.push(part);
    this.#open.set(key, part);
  }

  #tool({ toolCallId }: Readonly<Record<string, unknown>>): Part | undefined {
    return this.#parts.findLast((part) => part['toolCallId'] === toolCallId);
  }

  #change(type: string, rest: Readonly<Record<string, unknown>>, change: object): void {
    const part = this.#tool(rest);
    if (part === undefined) return this.#mistake(`${type} of ${String(rest['toolCallId'])}, which was not shown`);
    const { state } = part;
    // The client's own result is replaced by the one that counts. What a background action has done while the run waited, it has done before and after.
    const isSame = Object.entries(change).every(
      ([name, value]) => JSON.stringify(part[name]) === JSON.stringify(value),
    );
    const isOpen = ['input-available', 'approval-requested', 'approval-responded'].includes(String(state));
    if (!isOpen && !isSame && !String(part['toolCallId']).startsWith('call_')) {
      this.#mistake(`${type} of ${String(rest['toolCallId'])}, which is ${String(state)} already`);
    }
    Object.assign(part, change);
  }

  #mistake(what: string): void {
    this.#mistakes.push(what);
  }
}
