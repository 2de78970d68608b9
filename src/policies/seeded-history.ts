/**
 * Which seeded histories a new session accepts, and in which form it keeps them (C1).
 *
 * Invariant: it writes nothing. A history with an invalid message leaves no trace.
 */
import { filesOfContent } from '../domain/content.ts';
import type { ContentPart, MessageContent } from '../domain/content.ts';
import { EngineError } from '../domain/errors.ts';
import { exceededLimit, isJsonObject, parseJson } from '../domain/json.ts';
import type { JsonObject } from '../domain/json.ts';
import { limits } from '../domain/limits.ts';
import type { SeededCall, SeededHistory, SeededMessage } from '../domain/seeded.ts';
import { admitContent } from './message-content.ts';
import type { GivenFile, GivenPart } from './message-content.ts';
import { partOf } from './openai-parts.ts';
import type { ClientPart } from './openai-parts.ts';

/** A message of the request, whose members and types are checked. */
export interface GivenMessage {
  readonly role: 'user' | 'assistant' | 'tool';
  readonly content?: string | readonly ClientPart[] | null | undefined;
  readonly name?: string | null | undefined;
  readonly refusal?: string | null | undefined;
  readonly tool_calls?: readonly SeededCall[] | null | undefined;
  readonly tool_call_id?: string | undefined;
}

/** Content without files, or parts with them. */
type Content = string | readonly GivenPart[];

const encoder = new TextEncoder();

/**
 * Checks a history and reduces it to what is kept.
 *
 * Every call needs exactly one result, directly after its message. Anything else may follow anything: a conversation may
 * begin with a greeting, and several messages of one role may follow each other.
 *
 * @throws EngineError `invalid_history`, `unsupported_content`, and those of `admitContent`, with the place of the first
 *   issue; `history_too_large`
 */
export async function admitHistory(given: readonly GivenMessage[]): Promise<SeededHistory> {
  requireSeededCount(given.length);
  /** Calls of the last assistant message that have no result yet. */
  let open = new Map<string, number>();
  /** All of its calls. */
  let called: ReadonlySet<string> = new Set();
  const found: { readonly content: Content; readonly message: SeededMessage }[] = [];
  for (const [at, message] of given.entries()) {
    const content = contentOf(message.content, at);
    const admitted = messageOf(message, content, at);
    found.push({ content: content ?? '', message: admitted });
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
  }
  requireResults(open);
  const { contents, files } = await admitFiles(found.map(({ content }) => content));
  const messages = found.map(({ message }, at): SeededMessage => {
    const content = contents[at];
    return message.role === 'assistant' || typeof content !== 'object' ? message : { ...message, content };
  });
  let bytes = 0;
  for (const message of messages) {
    bytes += encoder.encode(JSON.stringify(message)).length;
    if (bytes <= limits.seededBytes) continue;
    throw tooLarge(`has more than ${limits.seededBytes} bytes of JSON`, { limit_bytes: limits.seededBytes });
  }
  return { messages, files };
}

/** @throws EngineError `history_too_large` */
export function requireSeededCount(messages: number): void {
  if (messages <= limits.seededMessages) return;
  throw tooLarge(`has ${messages} messages (allowed: ${limits.seededMessages})`, {
    limit_messages: limits.seededMessages,
  });
}

interface PlacedFile {
  /** Of the message, and of the part in it. */
  readonly at: number;
  readonly index: number;
  readonly part: GivenFile;
}

/** Admits the files of all messages like those of one message. @param contents of the messages */
async function admitFiles(contents: readonly Content[]): Promise<{
  readonly contents: readonly MessageContent[];
  readonly files: ReadonlyMap<string, Uint8Array>;
}> {
  const placed = contents.flatMap((content, at): PlacedFile[] =>
    typeof content === 'string'
      ? []
      : content.flatMap((part, index) => (part.type === 'text' ? [] : [{ at, index, part: namedFile(part, index) }])),
  );
  if (placed.length > limits.seededFiles) {
    throw tooLarge(`has ${placed.length} images and files (allowed: ${limits.seededFiles})`, {
      limit_files: limits.seededFiles,
    });
  }
  const { content, files } = await withPlaces(placed, () =>
    admitContent(
      placed.map(({ part }) => part),
      async () => noArtifact(),
    ),
  );
  const admitted = filesOfContent(content);
  const size = admitted.reduce((sum, file) => sum + file.size, 0);
  if (size > limits.seededFileBytes) {
    throw tooLarge(`has images and files with ${size} bytes (allowed: ${limits.seededFileBytes})`, {
      limit_bytes: limits.seededFileBytes,
    });
  }
  let used = 0;
  const stored = (part: GivenPart): ContentPart[] => {
    if (part.type === 'text') return [part];
    used += 1;
    return admitted.slice(used - 1, used);
  };
  return { contents: contents.map((one) => (typeof one === 'string' ? one : one.flatMap(stored))), files };
}

/** Errors name a part of the list of all files; the client knows it by its message. */
async function withPlaces<T>(placed: readonly PlacedFile[], admit: () => Promise<T>): Promise<T> {
  try {
    return await admit();
  } catch (fault) {
    if (!(fault instanceof EngineError)) throw fault;
    const [label, number] = /^"content\[(\d+)\]"/.exec(fault.message) ?? [];
    const place = placed[Number(number)];
    if (label === undefined || place === undefined) throw fault;
    const message = placeOf(place.at, place.index) + fault.message.slice(label.length);
    throw new EngineError(fault.code, message, { ...fault.details, index: place.at }, fault.cause);
  }
}

function placeOf(at: number, index: number): string {
  return `history[${at}].content[${index}]`;
}

/** The default name counts the parts of its message. */
function namedFile(part: GivenFile, index: number): GivenFile {
  return part.name === undefined ? { ...part, name: `${part.type}-${index + 1}` } : part;
}

function noArtifact(): never {
  throw new EngineError('unknown_artifact', 'a new session has no artifacts: send the file as "data"');
}

/** Content without files is one text. @throws EngineError `unsupported_content`, `invalid_content`, `unknown_artifact` */
function contentOf(given: GivenMessage['content'], at: number): Content | null {
  if (given == null || typeof given === 'string') return given ?? null;
  const parts = given.map((part, index) => {
    try {
      const own = partOf(part);
      return own.type !== 'text' && own.artifact !== undefined ? noArtifact() : own;
    } catch (fault) {
      if (!(fault instanceof EngineError)) throw fault;
      throw new EngineError(fault.code, `${placeOf(at, index)}: ${fault.message}`, { index: at });
    }
  });
  return parts.some(({ type }) => type !== 'text') ? parts : textOf(parts);
}

function textOf(content: Content): string {
  if (typeof content === 'string') return content;
  return content.flatMap((part) => (part.type === 'text' ? [part.text] : [])).join('\n');
}

function messageOf(given: GivenMessage, content: Content | null, at: number): SeededMessage {
  const text = content === null ? null : textOf(content);
  const named = given.name == null ? {} : { name: given.name };
  switch (given.role) {
    case 'user':
      if (typeof content !== 'object' && !/\S/.test(text ?? '')) throw invalid(at, 'a user message must not be empty');
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

function tooLarge(message: string, details: JsonObject): EngineError {
  return new EngineError('history_too_large', `The history ${message}`, details);
}

function invalid(at: number, message: string): EngineError {
  return new EngineError('invalid_history', `history[${at}]: ${message}`, { index: at });
}

function excerpt(text: string): string {
  return text.slice(0, limits.excerptChars);
}
