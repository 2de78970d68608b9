/** Converts a model request to an OpenAI-compatible one, with the provider's deviations (L1). */
import type { JsonObject } from '../../domain/json.ts';
import type { ChatMessage, ModelRequest } from '../../domain/ports/model.ts';
import type { Quirk } from '../routing/endpoints.ts';
import type { AttachmentParts } from './attachment-parts.ts';
import type { ProviderQuirks } from './presets.ts';

/**
 * The body of a streaming request.
 *
 * @param refused fields that this model has rejected before
 * @param parts the attachments whose bytes were read
 */
export function requestBody(
  request: ModelRequest,
  {
    model,
    quirks,
    refused,
    parts = new Map(),
  }: {
    readonly model: string;
    readonly quirks: ProviderQuirks;
    readonly refused: ReadonlySet<Quirk>;
    readonly parts?: AttachmentParts;
  },
): JsonObject {
  const { temperature, maxTokens, extra, tools = [], answerOnly = false } = request;
  const body: JsonObject = {
    ...extra,
    model,
    messages: messagesFor(request.messages, { quirks, refused, parts }),
    stream: true,
  };
  if (quirks.streamOptions && !refused.has('stream_options')) body['stream_options'] = { include_usage: true };
  if (temperature !== null && !refused.has('temperature')) {
    body['temperature'] = Math.min(temperature, quirks.maxTemperature);
  }
  const most = maxTokens ?? (hasOwnLimit(extra) ? null : quirks.defaultMaxTokens);
  if (most !== null) body[refused.has('max_tokens') ? 'max_completion_tokens' : quirks.maxTokensField] = most;
  if (tools.length > 0) {
    body['tools'] = tools.map(({ name, summary, parameters }) => ({
      type: 'function',
      function: { name, description: summary, parameters },
    }));
    if (answerOnly && !refused.has('tool_choice')) body['tool_choice'] = 'none';
  }
  return body;
}

function hasOwnLimit(extra: JsonObject): boolean {
  return extra['max_completion_tokens'] !== undefined || extra['max_tokens'] !== undefined;
}

function messagesFor(
  messages: readonly ChatMessage[],
  {
    quirks,
    refused,
    parts,
  }: { readonly quirks: ProviderQuirks; readonly refused: ReadonlySet<Quirk>; readonly parts: AttachmentParts },
): JsonObject[] {
  let shown = messages;
  if (refused.has('system')) shown = systemAsUser(shown);
  if (!quirks.userAfterTool || refused.has('user_after_tool')) shown = bridged(shown);
  const idOf = quirks.callIds === 'nine' ? nineCharacters : (id: string) => id;
  return shown.map((message) => toWire(message, { idOf, parts }));
}

/** For models without a system role: moves the system prompt to the first user message. */
function systemAsUser(messages: readonly ChatMessage[]): ChatMessage[] {
  const system = messages.filter(({ role }) => role === 'system').map(({ content }) => content);
  const rest = messages.filter(({ role }) => role !== 'system');
  const [first, ...later] = rest;
  if (first?.role === 'user') return [{ ...first, content: [...system, first.content].join('\n\n') }, ...later];
  return [{ role: 'user', content: system.join('\n\n') }, ...rest];
}

/** For endpoints that require an assistant message between a tool's answer and a user message. */
function bridged(messages: readonly ChatMessage[]): ChatMessage[] {
  return messages.flatMap((message, index): ChatMessage[] =>
    message.role === 'user' && messages[index - 1]?.role === 'tool'
      ? [{ role: 'assistant', content: 'Noted.' }, message]
      : [message],
  );
}

/** Keeps an id of nine letters and digits; derives nine characters from any other id. */
function nineCharacters(id: string): string {
  if (/^[A-Za-z0-9]{9}$/.test(id)) return id;
  let hash = 0xcbf29ce484222325n;
  for (let index = 0; index < id.length; index += 1) {
    hash = BigInt.asUintN(64, (hash ^ BigInt(id.charCodeAt(index))) * 0x100000001b3n);
  }
  return hash.toString(36).padStart(9, '0').slice(-9);
}

function toWire(
  { role, content, attachments = [], toolCallId, toolCalls }: ChatMessage,
  { idOf, parts }: { readonly idOf: (id: string) => string; readonly parts: AttachmentParts },
): JsonObject {
  const attached = attachments.flatMap((attachment) => parts.get(attachment) ?? []);
  return {
    role,
    // With calls, the API uses null for missing text; some endpoints reject an empty string.
    content:
      attached.length > 0
        ? [{ type: 'text', text: content }, ...attached]
        : content === '' && toolCalls !== undefined
          ? null
          : content,
    ...(toolCallId === undefined ? {} : { tool_call_id: idOf(toolCallId) }),
    ...(toolCalls === undefined
      ? {}
      : {
          tool_calls: toolCalls.map((call) => ({
            id: idOf(call.id),
            type: 'function',
            function: { name: call.name, arguments: call.arguments },
            ...(call.extra === undefined ? {} : { extra_content: call.extra }),
          })),
        }),
  };
}
