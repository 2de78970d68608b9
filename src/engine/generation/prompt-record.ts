/** Keeps what was sent to the model, for `GET …/runs/{run}/prompt`: exactly the messages of the request, without secrets. */
import { redactJson } from '../../bounded/redact-json.ts';
import { isJsonObject } from '../../domain/json.ts';
import type { Json, JsonObject } from '../../domain/json.ts';
import type { Attachment, ChatMessage, ModelRequest } from '../../domain/ports/model.ts';
import { estimateMessages } from '../../domain/tokens.ts';
import type { RunContext } from '../run/run-context.ts';
import type { RunLog } from '../run/run-log.ts';

/** Nothing reads it but people, so it is written when the log writes something else. */
export function recordPrompt(
  { runNumber, model, clock, redact }: Pick<RunContext, 'runNumber' | 'model' | 'clock' | 'redact'>,
  log: Pick<RunLog, 'iteration' | 'keepPrompt'>,
  { messages, maxTokens, tools }: ModelRequest,
): void {
  log.keepPrompt({
    run: runNumber,
    iteration: log.iteration,
    at: clock.now(),
    request: {
      model: model.name,
      ...(maxTokens === null ? {} : { max_tokens: maxTokens }),
      ...(tools === undefined ? {} : { tools: tools.map(({ name }) => name) }),
      tokens: estimateMessages(messages),
    },
    messages: messages.map((message) => redactJson(messageJson(message), redact) as JsonObject),
  });
}

function messageJson({ role, content, attachments, toolCalls, toolCallId }: ChatMessage): JsonObject {
  return {
    role,
    content,
    ...(attachments === undefined ? {} : { attachments: attachments.map(attachmentJson) }),
    ...(toolCalls === undefined ? {} : { tool_calls: toolCalls.map((call) => ({ ...call }) as unknown as Json) }),
    ...(toolCallId === undefined ? {} : { tool_call_id: toolCallId }),
  };
}

/** Never the bytes. A file of a result has no hash; its artifact is named in the text. */
function attachmentJson({ kind, name, mediaType, size, sha256 }: Attachment): JsonObject {
  return { type: kind, name, media_type: mediaType, size, ...(sha256 === undefined ? {} : { sha256 }) };
}

/** Recorded messages as they leave the session: roles, ids, names of tools and files are not text (C9). */
export function outgoingPrompt(messages: readonly JsonObject[], json: (value: Json) => Json): JsonObject[] {
  return messages.map((message) => {
    const { content = null, tool_calls: calls } = message;
    const safe = { ...message, content: json(content) };
    return Array.isArray(calls) ? { ...safe, tool_calls: calls.map((call) => outgoingCall(call, json)) } : safe;
  });
}

function outgoingCall(call: Json, json: (value: Json) => Json): Json {
  if (!isJsonObject(call)) return call;
  const text = ['arguments', 'extra'].filter((name) => call[name] !== undefined);
  return { ...call, ...Object.fromEntries(text.map((name) => [name, json(call[name] ?? null)])) };
}
