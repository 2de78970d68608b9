/** Servers of the Model Context Protocol (E5). */
import type { ActionOutcome } from '../action.ts';
import type { JsonObject } from '../json.ts';
import type { ToolUpdate } from './code-tools.ts';

/** How a server is reached. */
export interface McpEndpoint {
  /** The agent's name for it. */
  readonly server: string;
  readonly url: string;
  /** The name of the secret that is sent as a bearer token; null: none. */
  readonly auth: string | null;
  /** Whether a bundled manifest names the secret (X3). */
  readonly bundled: boolean;
}

/** One attempt of a tool of a server. */
export interface McpCall {
  readonly endpoint: McpEndpoint;
  /** The server's name of the tool; null: a resource is read, whose `uri` is the argument. */
  readonly tool: string | null;
  readonly parameters: JsonObject;
  /** JSON Schemas of its parameters and of its result, as the server lists them. */
  readonly inputSchema: JsonObject;
  readonly outputSchema: JsonObject | null;
  /** Identifies the action: the same for all of its attempts. */
  readonly key: string;
  readonly timeoutMs: number;
  /** The `traceparent` of the call (O1); absent: it is not traced. */
  readonly trace?: string;
  /** A person's answer to the question of the attempt before. */
  readonly answer?: { readonly state: JsonObject; readonly content: JsonObject };
}

export interface McpServers {
  /** Settles soon after the signal aborts. Failures are values. */
  call(
    call: McpCall,
    options: { readonly signal: AbortSignal; readonly progress: (update: ToolUpdate) => void },
  ): Promise<ActionOutcome>;
  /** The question of this action gets no answer: cancels the call that waits for it. */
  withdraw(key: string): void;
}
