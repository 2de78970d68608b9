/** A client of OpenAI's chat completions, with a kept session and an idempotency key (E2). */
import type { Json } from '../../../src/domain/json.ts';
import { openai, readChatCompletion } from '../../../src/surfaces/openai/index.ts';
import type { SurfaceRequest } from '../../../src/surfaces/surface.ts';
import { dataOf, errorAsOutput, tokenIn } from './client-protocol.ts';
import type { Asking, ClientProtocol, Outcome, Reading } from './client-protocol.ts';

interface Call {
  readonly id: string;
  readonly function: { readonly name: string; readonly arguments: string };
}

interface Message {
  readonly id: string;
  readonly content: string;
  readonly reasoning: string;
  readonly calls: readonly Call[];
}

interface Chunk {
  readonly id?: string;
  readonly error?: { readonly code: string };
  readonly choices?: readonly {
    readonly delta: Record<string, unknown>;
    readonly finish_reason: string | null;
  }[];
}

const LOST: ReadonlySet<string> = new Set(['connection_lost', 'session_deleted', 'token_expired', 'interrupted']);
const FINISHES: Readonly<Record<string, Outcome>> = { stop: 'success', length: 'cut', tool_calls: 'waiting' };

function request({ index, sessionId }: Asking, messages: readonly object[], key: string): SurfaceRequest {
  return readChatCompletion({
    body: { model: 'assistant', messages, stream: true } as unknown as Json,
    params: {},
    query: {},
    key: `${key} ${index}`,
    session: sessionId,
    isKey: true,
  });
}

export const chatClient: ClientProtocol = {
  surface: openai,
  decides: false,
  tellsLate: true,
  answersTogether: true,
  looksAgain: false,
  continues: [],
  options: { api: 'chat' },
  ask: (asking) => request(asking, [{ role: 'user', content: asking.text }], 'message'),
  follow: null,
  answer: (asking, { results }) => {
    const { calls } = (asking.has?.message ?? { calls: [] }) as unknown as Message;
    const messages = [
      { role: 'user', content: asking.text },
      {
        role: 'assistant',
        content: null,
        tool_calls: calls.map(({ id, function: called }) => ({ id, type: 'function', function: called })),
      },
      ...results.map(({ callId, result }) => ({
        role: 'tool',
        tool_call_id: callId,
        content: JSON.stringify('output' in result ? result.output : null),
      })),
    ];
    return request(asking, messages, 'answers');
  },
  resultOf: errorAsOutput,
  read,
  beginsAfter: ({ message }) => {
    // An error may be all that there is.
    const { id } = message as unknown as Message;
    return id === '' ? null : Number(/_\d+-(\d+)$/.exec(id)?.[1] ?? 0);
  },
  essence: (message) => message,
};

function read(text: string): Reading {
  const mistakes: string[] = [];
  const calls: Call[] = [];
  let [id, content, reasoning, chunks] = ['', '', '', 0];
  let outcome: Outcome | null = null;
  for (const chunk of dataOf(text) as (Chunk | null)[]) {
    if (chunk === null) {
      mistakes.push('a frame is not JSON');
      continue;
    }
    // The usage comes last, without a choice.
    if (outcome !== null && chunk.choices?.length !== 0) mistakes.push('a frame follows the end of the message');
    if (chunk.error !== undefined) {
      const { code } = chunk.error;
      outcome = LOST.has(code)
        ? 'lost'
        : code === 'approval_required'
          ? 'waiting'
          : code === 'cancelled'
            ? 'cancelled'
            : 'failed';
      continue;
    }
    const [choice] = chunk.choices ?? [];
    if (id !== '' && id !== chunk.id) mistakes.push('the id of the message changes');
    id = chunk.id ?? '';
    if (choice === undefined) continue;
    const { role, content: added = '', reasoning_content: thought = '', tool_calls: called = [] } = choice.delta;
    if ((role === 'assistant') !== (chunks === 0)) mistakes.push('the role is not in the first chunk only');
    chunks += 1;
    content += String(added);
    reasoning += String(thought);
    for (const call of called as (Call & { readonly index: number })[]) {
      if (call.index !== calls.length) mistakes.push(`a call has the index ${call.index}, after ${calls.length}`);
      calls.push({ id: call.id, function: call.function });
    }
    if (choice.finish_reason === null) continue;
    outcome = FINISHES[choice.finish_reason] ?? null;
    if (outcome === null) mistakes.push(`the reason ${choice.finish_reason} is unknown`);
    if (outcome === 'waiting' && calls.length === 0) mistakes.push('the reason is tool_calls, without a call');
  }
  const message: Message = { id, content, reasoning, calls };
  return {
    message: message as unknown as Json,
    outcome,
    calls: calls.map((call) => ({ id: call.id, token: tokenIn(call.function.arguments) })),
    approvals: [],
    open: [],
    mistakes,
  };
}
