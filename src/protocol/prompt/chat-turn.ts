/** The conversation as input of the prompt: turns, their generations, and action results (L5). */
import type { TerminalStatus } from '../../domain/action.ts';
import type { Json } from '../../domain/json.ts';
import type { Attachment, FinishReason } from '../../domain/ports/model.ts';
import type { NativeCall } from '../native/tool-calls.ts';

/** A file in the result of an action; its bytes are an artifact, except in a seeded history. */
export interface ReportFile extends Attachment {
  /** The artifact's id. */
  readonly artifact?: string;
}

/** How one action ended, as shown to the model. */
export interface ActionReport {
  readonly id: string;
  /** Its position in its generation; a rejected action may have the same id. Null: it is of an earlier generation. */
  readonly ordinal?: number | null;
  readonly name: string | null;
  readonly status: TerminalStatus;
  readonly outputKey?: string | null;
  /** Duration in milliseconds; null when it never started. */
  readonly ms: number | null;
  /** Set if the action completed. Without the bytes of its files. */
  readonly output?: Json;
  readonly files?: readonly ReportFile[];
  /** The output is that of `load_skill`: its text is shown whole (C8). */
  readonly isSkill?: true;
  /** Set otherwise: the reason, in one line. */
  readonly note?: string | null;
}

/** A reference without a value, in a response or in the text of an action (P10). */
export interface MissingValue {
  /** As the model wrote it. */
  readonly reference: string;
  readonly name: string;
  /** The keys and types of the name's value; empty if the name is unknown. */
  readonly shape: string;
  /** It left a blank in the text of an action. */
  readonly inAction?: true;
}

/** The text and calls of one generation, with the results of its actions. */
export interface Generation {
  readonly text: string;
  /** Its native calls (P17); their results are messages of their own. */
  readonly calls?: readonly NativeCall[];
  readonly results: readonly ActionReport[];
  /** Set if it ended early (P15). */
  readonly cut?: Cut;
  /** Set if its response was not final because these values are missing. */
  readonly missing?: readonly MissingValue[];
  /** Its response was not final for another reason, such as a failed action (P10). */
  readonly rejected?: true;
}

/** The ways in which a generation can end early. */
export type Cut = Extract<FinishReason, 'length' | 'content_filter' | 'error' | 'abort'>;

/** One user message and the model's generations for it. */
export interface ChatTurn {
  /** With a placeholder line for each of its files. */
  readonly user: string;
  readonly files?: readonly Attachment[];
  readonly generations: readonly Generation[];
  /** Further messages that came during the turn, in order. `before`: the number of generations before the message (C5). */
  readonly received?: readonly {
    readonly before: number;
    readonly user: string;
    readonly files?: readonly Attachment[];
  }[];
  /**
   * What the user was told last: the last response of the last generation, references as written, else its bare text.
   * Absent while the turn is in progress.
   */
  readonly answer?: string;
  /** How the turn ended if not with an answer. Shown to the model. */
  readonly note?: string;
  /**
   * It is of the seeded history (C1): it took place before the session, and no name refers to its results. `user` is
   * empty if the history begins with the assistant.
   */
  readonly isSeeded?: boolean;
}

/** A summary of the conversation's first turns, written by a model (C10). */
export interface ConversationSummary {
  readonly text: string;
  /** How many turns it covers. */
  readonly turns: number;
}

/** What a prompt knows of turns that it does not show. */
export interface EarlierTurns {
  /** Number of turns before those of the history, which were not read. */
  readonly unread: number;
  /** The summary that covers the most, and at most this many turns; null if there is none. */
  readonly summaryOf: (turns: number) => ConversationSummary | null;
  /** How the model may read an earlier turn: by an action or a native function; null: it may not. */
  readonly recall: 'action' | 'function' | null;
}

/** The value of a feed at the start of an iteration (F2). */
export interface FeedReport {
  readonly id: string;
  readonly value: Json;
  readonly ageMs: number;
}

/** The turn in progress: its generations so far. */
export interface CurrentTurn extends ChatTurn {
  /** Instructions and tools that came with its message, as the model is shown them (C3). Empty texts are left out. */
  readonly passed?: readonly string[];
  /** The next generation may only answer (S11). */
  readonly last?: boolean;
  readonly feeds?: readonly FeedReport[];
}
