/** Which seeded histories a new session accepts, and in which form it keeps them (C1). */
import { EngineError } from '../domain/errors.ts';
import { exceededLimit, isJsonObject, parseJson } from '../domain/json.ts';
import { limits } from '../domain/limits.ts';
import type { SeededCall, SeededMessage } from '../domain/seeded.ts';

/** Content as clients send it. */
export type GivenContent = string | readonly { readonly type: string; readonly text?: unknown }[];

/** A message of the request, whose members and types are checked. */
export interface GivenMessage {
  readonly role: 'user' | 'assistant' | 'tool';
  readonly content?: GivenContent | null | undefined;
  readonly name?: string | null | undefined;
  readonly refusal?: string | null | undefined;
  readonly tool_calls?: readonly SeededCall[] | null | undefined;
  readonly tool_call_id?: string | undefined;
}

const encoder = new TextEncoder();

/**
 * Checks a history and reduces it to what is kept.
 *
 * Every call needs exactly one result, directly after its message. Anything else may follow anything: a conversation may
 * begin with a greeting, and several messages of one role may follow each other.
 *
 * @throws EngineError `invalid_history` with the place of the first issue; `unsupported_content` for content that is not
 *   text; `history_too_large`
 */
export function admitHistory(given: readonly GivenMessage[]): SeededMessage[] {
  if (given.length > limits.seededMessages) {
    throw new EngineError(
      'history_too_large',
      `The history has ${given.length} messages (allowed: ${limits.seededMessages})`,
      { limit_messages: limits.seededMessages },
    );
  }
  /** Calls of the last assistant message that have no result yet. */
  let open = new Map<string, number>();
  /** All of its calls. */
  let called: ReadonlySet<string> = new Set();
  const messages: SeededMessage[] = [];
  let bytes = 0;
  for (const [at, message] of given.entries()) {
    const admitted = messageOf(message, at);
    if (admitted.role === 'tool') {
      const { tool_call_id: id } = admitted;
      if (!called.has(id)) throw invalid(at, orphanText(id, called));
      if (!open.delete(id)) throw invalid(at, `the call "${excerpt(id)}" already has a result`);
    } else {
      requireResults(open);
      const calls = admitted.role === 'assistant' ? (admitted.tool_calls ?? []) : [];
      open = new Map(calls.map(({ id }) => [id, at]));
      called = new Set(open.keys());
      if (open.size < calls.length) throw invalid(at, 'two of its tool_calls have the same id');
    }
    bytes += encoder.encode(JSON.stringify(admitted)).length;
    if (bytes > limits.seededBytes) {
      throw new EngineError('history_too_large', `The history has more than ${limits.seededBytes} bytes of JSON`, {
        limit_bytes: limits.seededBytes,
      });
    }
    messages.push(admitted);
  }
  requireResults(open);
  return messages;
}

function messageOf(given: GivenMessage, at: number): SeededMessage {
  const text = textOf(given.content, at);
  const named = given.name == null ? {} : { name: given.name };
  switch (given.role) {
    case 'user':
      if (!/\S/.test(text ?? '')) throw invalid(at, 'a user message must not be empty');
      return { role: 'user', content: text ?? '', ...named };
    case 'assistant': {
      const said = text ?? given.refusal ?? '';
      const calls = given.tool_calls ?? [];
      if (calls.length > 0) {
        for (const call of calls) requireArguments(call, at);
        return { role: 'assistant', content: /\S/.test(said) ? said : null, ...named, tool_calls: calls };
      }
      if (!/\S/.test(said)) throw invalid(at, 'an assistant message must have content or tool_calls');
      return { role: 'assistant', content: said, ...named };
    }
    case 'tool':
      return { role: 'tool', content: text ?? '', ...named, tool_call_id: given.tool_call_id ?? '' };
  }
}

/** Text parts are joined. @throws EngineError `unsupported_content` for parts of another type */
function textOf(content: GivenMessage['content'], at: number): string | null {
  if (content == null || typeof content === 'string') return content ?? null;
  const texts = content.map(({ type, text }) => {
    if (type === 'text' && typeof text === 'string') return text;
    const shown = type === 'text' ? 'without a text' : `of type "${excerpt(type)}"`;
    throw new EngineError(
      'unsupported_content',
      `history[${at}]: a part ${shown} is not supported in a history (supported: {type: "text", text})`,
    );
  });
  return texts.join('\n');
}

function requireArguments({ id, function: { arguments: text } }: SeededCall, at: number): void {
  const { jsonDepth: depth, requestValues: values, requestMembers: members } = limits;
  const isRead =
    text === '' || (exceededLimit(text, { depth, values, members }) === null && isJsonObject(parseJson(text)));
  if (!isRead) throw invalid(at, `the arguments of the call "${excerpt(id)}" must be a JSON object as text`);
}

function requireResults(open: ReadonlyMap<string, number>): void {
  const [missing] = open;
  if (missing === undefined) return;
  const [id, call] = missing;
  throw invalid(
    call,
    `the call "${excerpt(id)}" has no result: a message {role: "tool", tool_call_id: "${excerpt(id)}"} must follow it directly`,
  );
}

function orphanText(id: string, called: ReadonlySet<string>): string {
  const known =
    called.size === 0 ? 'has no tool_calls' : `has only the calls ${[...called].slice(0, 5).map(excerpt).join(', ')}`;
  return `no call has the id "${excerpt(id)}": the assistant message before this tool message ${known}`;
}

function invalid(at: number, message: string): EngineError {
  return new EngineError('invalid_history', `history[${at}]: ${message}`, { index: at });
}

function excerpt(text: string): string {
  return text.slice(0, limits.excerptChars);
}
