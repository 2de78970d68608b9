/** Output items of a response (E2): https://platform.openai.com/docs/api-reference/responses/object */
import type { Json, JsonObject } from '../../../domain/json.ts';

export type ItemStatus = 'in_progress' | 'completed' | 'incomplete';

/** How a block of text is shown: an item with one part. */
export interface TextForm {
  readonly prefix: 'msg' | 'rs';
  readonly item: (id: string, status: ItemStatus, parts: JsonObject[]) => JsonObject;
  readonly part: (text: string) => JsonObject;
  /** Members of the part's frames, next to the item. */
  readonly place: JsonObject;
  /** Further members of the text's frames. */
  readonly extra: JsonObject;
  /** The frames, in order. */
  readonly frames: { readonly [Name in 'begin' | 'delta' | 'text' | 'end']: string };
}

export const MESSAGE: TextForm = {
  prefix: 'msg',
  item: (id, status, content) => ({ type: 'message', id, status, role: 'assistant', content }),
  part: (text) => ({ type: 'output_text', text, annotations: [], logprobs: [] }),
  place: { content_index: 0 },
  extra: { logprobs: [] },
  frames: {
    begin: 'response.content_part.added',
    delta: 'response.output_text.delta',
    text: 'response.output_text.done',
    end: 'response.content_part.done',
  },
};

export const REASONING: TextForm = {
  prefix: 'rs',
  item: (id, status, summary) => ({ type: 'reasoning', id, status, summary }),
  part: (text) => ({ type: 'summary_text', text }),
  place: { summary_index: 0 },
  extra: {},
  frames: {
    begin: 'response.reasoning_summary_part.added',
    delta: 'response.reasoning_summary_text.delta',
    text: 'response.reasoning_summary_text.done',
    end: 'response.reasoning_summary_part.done',
  },
};

/** The actions of an agent are shown as calls of one MCP server. */
const SERVER_LABEL = 'cortex';

export interface McpCall {
  readonly id: string;
  readonly name: string;
  readonly arguments: string;
  readonly approvalRequestId: string | null;
}

export type McpEnd =
  | { readonly status: 'completed'; readonly output: Json }
  | { readonly status: 'failed'; readonly error: string }
  | { readonly status: 'incomplete' };

/** @param end null while the action runs */
export function mcpCall({ id, name, arguments: text, approvalRequestId }: McpCall, end: McpEnd | null): JsonObject {
  return {
    type: 'mcp_call',
    id,
    server_label: SERVER_LABEL,
    name,
    arguments: text,
    status: end?.status ?? 'in_progress',
    output: end?.status === 'completed' ? textOf(end.output) : null,
    error: end?.status === 'failed' ? end.error : null,
    approval_request_id: approvalRequestId,
  };
}

const textOf = (output: Json): string => (typeof output === 'string' ? output : JSON.stringify(output));

export function approvalRequest(id: string, name: string, parameters: JsonObject): JsonObject {
  return {
    type: 'mcp_approval_request',
    id,
    server_label: SERVER_LABEL,
    name,
    arguments: JSON.stringify(parameters),
  };
}

export function functionCall(
  call: { readonly id: string; readonly callId: string; readonly name: string },
  status: ItemStatus,
  text: string,
): JsonObject {
  const { id, callId, name } = call;
  return { type: 'function_call', id, call_id: callId, name, arguments: text, status };
}
