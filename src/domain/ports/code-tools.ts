/** Tools in TypeScript. */
import type { ActionOutcome } from '../action.ts';
import type { JsonObject } from '../json.ts';
import type { SessionRecord } from '../session.ts';

/** One attempt of a code tool (K2). */
export interface CodeToolCall {
  readonly name: string;
  readonly parameters: JsonObject;
  /** They are parsed. Absent: the tool parses them when it runs. */
  readonly parsed?: true;
  /** The same for every attempt of an action. */
  readonly idempotencyKey: string;
  readonly attempt: number;
  /** The `traceparent` for its requests (O1); absent: none. */
  readonly trace?: string;
  readonly bindings: readonly string[];
  readonly secrets: readonly string[];
}

/** The part of its session's record that a call needs. */
export type CodeToolSession = Pick<SessionRecord, 'session_id' | 'incarnation' | 'owner' | 'user_id' | 'agent'>;

/** What a running tool reports: a line of text, and how much of its work is done. */
export interface ToolUpdate {
  readonly text: string;
  readonly percent?: number;
}

/** Runs code tools apart from the session. */
export interface CodeTools {
  /**
   * Parses parameters by the schema of the tool, with its defaults and transformations. Settles soon after the signal aborts.
   *
   * @returns the parsed parameters as the output, a JSON object; or why there are none
   * @throws Error if the tool's host ended
   */
  parse(call: Pick<CodeToolCall, 'name' | 'parameters'>, signal: AbortSignal): Promise<ActionOutcome>;
  /** Settles soon after the signal aborts. @throws Error if the tool's host ended */
  run(
    call: CodeToolCall,
    options: {
      readonly signal: AbortSignal;
      readonly progress: (update: ToolUpdate) => void;
    },
  ): Promise<ActionOutcome>;
  /** Reports that the host of the session ended while this tool ran. */
  lost(name: string): Promise<void>;
}
