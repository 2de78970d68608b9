/**
 * Seeded history: the conversation that took place before a session, given at its creation (C1). It is context for the
 * model. It has no runs and no events, and names do not refer to it.
 */

import type { MessageContent } from './content.ts';

/** A call in a seeded history, in the form of the OpenAI protocol. */
export interface SeededCall {
  readonly id: string;
  readonly type: 'function';
  /** `arguments`: a JSON object as text. */
  readonly function: { readonly name: string; readonly arguments: string };
}

/**
 * One message of a seeded history. `name`: the client's, for a participant; not shown to the model. The bytes of its files
 * are in the session's blob store (C2).
 */
export type SeededMessage = { readonly name?: string } & (
  | { readonly role: 'user'; readonly content: MessageContent }
  | {
      readonly role: 'assistant';
      /** Null if there are only calls. */
      readonly content: string | null;
      readonly tool_calls?: readonly SeededCall[];
    }
  | { readonly role: 'tool'; readonly tool_call_id: string; readonly content: MessageContent }
);

/** The part of a message that a reader may have. @param called name of the function whose result it is; else null */
export type SeededView = (message: SeededMessage, called: string | null) => SeededMessage;

export interface SeededHistory {
  readonly messages: readonly SeededMessage[];
  /** The bytes of its files by their SHA-256, each once. */
  readonly files: ReadonlyMap<string, Uint8Array>;
}

export const NO_HISTORY: SeededHistory = { messages: [], files: new Map() };
