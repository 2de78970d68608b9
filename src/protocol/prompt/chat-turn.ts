/** The conversation as the prompt is made of it: turns, their generations, and the results of their actions (L5). */
import type { TerminalStatus } from '../../domain/action.ts';
import type { Json } from '../../domain/json.ts';
import type { FinishReason } from '../../domain/ports.ts';
import type { NativeCall } from '../native/tool-calls.ts';

/** How one action ended, as the model is told. */
export interface ActionReport {
  readonly id: string;
  /** Its place in its generation; an id may belong to a rejected action as well. */
  readonly ordinal?: number;
  readonly name: string | null;
  readonly status: TerminalStatus;
  readonly outputKey?: string | null;
  /** Duration in milliseconds; null when it never started. */
  readonly ms: number | null;
  /** Of a completed action. */
  readonly output?: Json;
  /** Of any other: why, in a line. */
  readonly note?: string | null;
}

/** The text and calls of one generation, with the results of its actions. */
export interface Generation {
  readonly text: string;
  /** Its native calls (P17); their results are messages of their own. */
  readonly calls?: readonly NativeCall[];
  readonly results: readonly ActionReport[];
  /** How it ended, where that was before its end (P15). */
  readonly cut?: Cut;
}

/** The ways in which a generation breaks off. */
export type Cut = Extract<FinishReason, 'length' | 'content_filter' | 'error' | 'abort'>;

/** One message of the user and what the model made of it, generation by generation. */
export interface ChatTurn {
  readonly user: string;
  readonly generations: readonly Generation[];
  /** How the turn ended when it did not end with an answer: the model is told. */
  readonly note?: string;
}

/** The value of a feed at the start of an iteration (F2). */
export interface FeedReport {
  readonly id: string;
  readonly value: Json;
  readonly ageMs: number;
}

/** The turn in progress: its generations so far. */
export interface CurrentTurn extends ChatTurn {
  /** The next generation may only answer (S11). */
  readonly last?: boolean;
  readonly feeds?: readonly FeedReport[];
}
