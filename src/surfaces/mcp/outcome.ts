/** What a call of the Model Context Protocol comes to, between the session and the Worker (E4). */
import type { Json, JsonObject } from '../../domain/json.ts';

/** A block of the content of a result. */
export type McpContent = JsonObject & { readonly type: string };

export interface McpResult {
  readonly content: readonly McpContent[];
  readonly structuredContent?: JsonObject;
  readonly isError?: true;
  readonly _meta: JsonObject;
}

/** An approval that a run waits for. */
export interface McpApproval {
  readonly approval_id: string;
  /** Of the tool, or the type of the action. */
  readonly name: string;
  /** As a text for people, cut. */
  readonly call: string;
  /** What the target of the action asks, in place of whether it may be called. */
  readonly question?: {
    readonly message: string;
    /** JSON Schema of the values that it asks for; absent: a yes or no is enough. */
    readonly schema?: JsonObject;
  };
}

/** How the run is when the call ends. */
export interface McpOutcome {
  readonly session_id: string;
  readonly run_id: string;
  /** `lost`: the stream ended before the run did. */
  readonly status: 'completed' | 'failed' | 'cancelled' | 'waiting' | 'running' | 'lost';
  readonly created_at: number;
  readonly updated_at: number;
  /** Open approvals, oldest first. */
  readonly approvals: readonly McpApproval[];
  readonly result: McpResult;
}

export interface McpProgress {
  /** Grows with each report. */
  readonly progress: number;
  readonly total?: number;
  readonly message: string;
}

/** A frame of the stream from the session to the Worker. The last one has `end`, or `task`: the run goes on without it. */
export type McpFrame =
  | { readonly progress: McpProgress }
  | { readonly end: McpOutcome }
  | { readonly task: McpOutcome };

/** The `_meta` of a result: for programs, as the content is for models. */
export const RUN_META = 'cortex-edge/run';
const ERROR_META = 'cortex-edge/error';

/** The result of a call that failed before it had a run. */
export function errorResult(code: string, message: string, details: JsonObject = {}): McpResult {
  return {
    content: [textBlock(`${code}: ${message}`)],
    isError: true,
    _meta: { [ERROR_META]: { ...details, code, message } },
  };
}

export function textBlock(text: string): McpContent {
  return { type: 'text', text };
}

/** The JSON schema of the answer to an approval. */
export const DECISION_SCHEMA = {
  type: 'object',
  properties: {
    approved: { type: 'boolean', title: 'Approve', description: 'Whether the call may be executed' },
    note: { type: 'string', title: 'Note', description: 'For the agent' },
  },
  required: ['approved'],
} as const;

/**
 * The decision in a client's response to an elicitation. Anything but an acceptance with `approved: true` denies. A question
 * for values is answered by the values.
 *
 * @returns null if it is no response
 */
export function decisionOf(
  response: unknown,
  asksValues = false,
): { readonly approved: boolean; readonly note: unknown; readonly content?: JsonObject } | null {
  if (!isObject(response) || typeof response['action'] !== 'string') return null;
  const isAccepted = response['action'] === 'accept';
  const content = isObject(response['content']) ? response['content'] : {};
  if (asksValues) return isAccepted ? { approved: true, note: null, content } : { approved: false, note: null };
  return { approved: isAccepted && content['approved'] === true, note: content['note'] };
}

function isObject(value: unknown): value is Readonly<Record<string, Json>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
