/** Tools in TypeScript. */
import type { ActionOutcome } from '../action.ts';
import type { JsonObject } from '../json.ts';

/** One attempt of a code tool (K2). */
export interface CodeToolCall {
  readonly name: string;
  readonly parameters: JsonObject;
  /** The same for every attempt of an action. */
  readonly idempotencyKey: string;
  readonly attempt: number;
  readonly bindings: readonly string[];
  readonly secrets: readonly string[];
}

/** Runs code tools apart from the session. */
export interface CodeTools {
  /** Settles soon after the signal aborts. @throws Error if the tool's host ended */
  run(
    call: CodeToolCall,
    options: {
      readonly signal: AbortSignal;
      readonly progress: (update: { readonly text: string; readonly percent?: number }) => void;
    },
  ): Promise<ActionOutcome>;
  /** Reports that the host of the session ended while this tool ran. */
  lost(name: string): Promise<void>;
}
