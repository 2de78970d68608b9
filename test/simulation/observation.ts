/** What a world has seen of one history. The invariants read nothing else. */
import type { FilePart } from '../../src/domain/content.ts';
import type { DirectoryEntry } from '../../src/domain/directory.ts';
import type { SessionEvent } from '../../src/domain/event.ts';
import type { History, ViaScript } from './history.ts';
import type { Reading } from './protocols/client-protocol.ts';

/** Hashes of files. */
export interface StoredFiles {
  /** In stored messages. */
  readonly references: readonly string[];
  /** `hash`: of the stored bytes. */
  readonly files: readonly { readonly name: string; readonly hash: string }[];
}

/** An observed fact, in order. `at`: milliseconds of the world's clock. */
export type Fact = { readonly at: number } & (
  | { readonly type: 'host_started'; readonly life: number }
  | { readonly type: 'host_ended'; readonly life: number; readonly why: string }
  /** A statement or a sync has failed. */
  | { readonly type: 'disk_failed'; readonly what: 'write' | 'read' | 'sync' }
  /** The client got an answer: the run's number, or the error's code. `queued`: the queue up to this run, if it is known. */
  | {
      readonly type: 'message_answered';
      readonly message: number;
      readonly run: number | null;
      readonly code: string;
      readonly queued?: number;
    }
  /** The files of a message were admitted; it was sent to the session. */
  | { readonly type: 'message_sent'; readonly message: number; readonly files: readonly FilePart[] }
  /** The files on disk at this moment. */
  | ({ readonly type: 'files_stored' } & StoredFiles)
  /**
   * A message with a place of its own in the tree of runs is sent. `of`: the run that it names; null: it begins the conversation.
   * `action`: the one that runs again.
   */
  | {
      readonly type: 'branch_sent';
      readonly message: number;
      readonly of: number | null;
      readonly action: string | null;
    }
  /** The conversation shall continue after this run. */
  | { readonly type: 'head_sent'; readonly run: number }
  /** A fork was made at the end of a run. `events`: those of the fork. `open`: its runs that have not ended. */
  | {
      readonly type: 'forked';
      readonly run: number;
      readonly events: readonly SessionEvent[];
      readonly open: readonly number[];
    }
  /** A fork was not completed. `exists`: there is a session nevertheless. */
  | { readonly type: 'fork_lost'; readonly exists: boolean }
  /** `runs`: how many there were when it was moved; null if nothing had to be moved, or it was moved again. */
  | { readonly type: 'head_answered'; readonly run: number; readonly runs: number | null; readonly code: string }
  | { readonly type: 'cancel_answered'; readonly runs: readonly number[] }
  /** `isAsked`: a client or the expiry wanted the end of this session. */
  | { readonly type: 'deleted'; readonly isAsked: boolean }
  /** A client asked for something of an earlier session with the same id. */
  | {
      readonly type: 'late_answer';
      readonly what: 'run' | 'approval' | 'artifact' | 'call';
      readonly id: string;
      readonly code: string;
    }
  | { readonly type: 'approval_seen'; readonly approval: string }
  /** `isRecorded`: the decision was on disk; absent if that is unknown. */
  | {
      readonly type: 'decision_answered';
      readonly approval: string;
      readonly approved: boolean;
      readonly code: string;
      readonly isRecorded?: boolean;
    }
  /** A client posted a result. `isRecorded`: it was on disk; absent if that is unknown. */
  | {
      readonly type: 'call_answered';
      readonly call: string;
      readonly result: string;
      readonly code: string;
      readonly isRecorded?: boolean;
    }
  /** A client posted a result for a call that does not exist, or that it has not seen. */
  | { readonly type: 'wrong_call'; readonly call: string; readonly code: string }
  /** An event reached readers. `isDurable`: it was on disk as it was sent. */
  | { readonly type: 'published'; readonly event: SessionEvent; readonly isDurable: boolean }
  /** A model call of a run: `call` counts those of the message, from 0. */
  | {
      readonly type: 'model_called';
      readonly message: number;
      readonly call: number;
      /** The messages that the request shows, in order (seeded.ts); absent if that is unknown. */
      readonly marks?: readonly string[];
      /** The results of clients that it shows; absent if that is unknown. */
      readonly results?: readonly ShownResult[];
      /** Its run; absent if that is unknown. */
      readonly of?: ModelCallPlace;
    }
  /** The files of a model call: the messages and results that it shows, the markers of their files, and what is attached, in order. */
  | {
      readonly type: 'files_shown';
      readonly message: number;
      readonly call: number;
      /** Numbers of the messages. */
      readonly messages: readonly number[];
      /** How many results with an image. */
      readonly results: number;
      readonly markers: readonly ShownMarker[];
      /** `hash`: of the bytes; null if they could not be read. */
      readonly attached: readonly { readonly name: string; readonly hash: string | null }[];
      /** Files that are shown as text. `hash`: of the text. */
      readonly texts: readonly { readonly name: string; readonly hash: string }[];
      /** Whether the base64 of an image is in the text. */
      readonly isRaw: boolean;
    }
  /** The last part of a generation was handed over. */
  | { readonly type: 'generation_delivered'; readonly message: number; readonly call: number; readonly finish: string }
  /** A target did its work. `isRecorded`: the start of the attempt was on disk. */
  | {
      readonly type: 'effect';
      readonly token: string;
      readonly target: string;
      readonly key: string;
      readonly attempt: number;
      readonly isRecorded: boolean;
      /** Id of the action; null if several share the token. */
      readonly id: string | null;
      /** The parameters, as text; null if the target does not get them. */
      readonly parameters: string | null;
    }
  /** A tool that asks was called, with the answer to its question or without. `isRecorded`: the start of the attempt was on disk. */
  | {
      readonly type: 'tool_called';
      readonly id: string;
      readonly key: string;
      readonly attempt: number;
      readonly isRecorded: boolean;
      readonly answer: { readonly question: string; readonly content: string } | null;
    }
  /** A code tool was reported: its host has ended while it ran. */
  | { readonly type: 'tool_reported'; readonly name: string }
  | { readonly type: 'attempt_answered'; readonly token: string; readonly attempt: number; readonly end: string }
  /** What is on disk after a host was lost, or after a failed creation: the session, and messages of its history. */
  | { readonly type: 'stored'; readonly exists: boolean; readonly messages: number }
  /** An answer for an earlier session with the same id was given, or an event has such an id. */
  | { readonly type: 'earlier_answer'; readonly key: string }
  /** The session waits for people only. */
  | { readonly type: 'parked'; readonly timers: number; readonly holds: number }
  | { readonly type: 'work_failed'; readonly message: string }
);

/** Where a model call is in its session, and what was stored then. */
export interface ModelCallPlace {
  readonly run: number;
  readonly iteration: number;
  /** The last event that no crash can lose. */
  readonly durableSeq: number;
  /** Names of the variables. */
  readonly variables: readonly string[];
}

export interface ShownResult {
  /** Id of the action. */
  readonly token: string;
  readonly status: string;
  readonly text: string;
}

/** `artifact`: empty for a file of a message. */
export interface ShownMarker {
  readonly type: string;
  readonly name: string;
  readonly mediaType: string;
  readonly size: number;
  readonly artifact: string;
}

/** The frames that one reader got, over all of its connections. */
export interface ReaderLog {
  readonly name: string;
  /** The seq that it had at its beginning. */
  readonly from: number;
  readonly frames: readonly ReaderFrame[];
}

export interface ReaderFrame {
  readonly event: SessionEvent;
  /** The event as it is sent. */
  readonly text: string;
  /** The event as a client decodes it from the compact form. */
  readonly compact: string;
  /** Number of the connection, from 0: a new one continues after the last journaled event. */
  readonly connection: number;
}

/** One stream that a client of another protocol has read. */
export interface ClientStream {
  readonly asked: 'ask' | 'follow' | 'answer' | 'conversation';
  /** Ids of the calls and approvals that its request has answered. */
  readonly answered: readonly string[];
  /** What it got from the session. */
  readonly text: string;
  /** `left`: by the client. `lost`: with the host. */
  readonly end: 'ended' | 'left' | 'lost';
  /** What the client has then. */
  readonly reading: Reading;
}

/** What a client of another protocol got. */
export interface ClientLog {
  readonly name: string;
  readonly via: ViaScript;
  /** Null: its message was not accepted. */
  readonly runId: string | null;
  readonly streams: readonly ClientStream[];
  /** The list of messages that it got at the end; null: it has asked for none. */
  readonly conversation: { readonly text: string } | null;
}

export interface RunEnd {
  readonly run: number;
  readonly status: string;
  readonly isOpen: boolean;
}

/** Where a run is in the tree of runs (C4). */
export interface SeenPlace {
  /** 0: none. */
  readonly parent: number;
  readonly retryOf: number | null;
  /** The message that its request to the model shows; null: its text was posted, or it repeats an action. */
  readonly mark: number | null;
}

/** Sizes at the end. */
export interface Sizes {
  /** Rows, by table. */
  readonly rows: Readonly<Record<string, number>>;
  readonly mostTimers: number;
  readonly timersLeft: number;
  readonly holdsLeft: number;
  /** Notes about recoveries that the last host has written, of runs that have ended. */
  readonly staleNotes: number;
  /** Parts of long texts whose row is missing. */
  readonly orphans: number;
}

/** The state that a host shows, before and after it was replaced while nothing happened. */
export interface Replacement {
  readonly when: string;
  readonly before: unknown;
  readonly after: unknown;
}

/** An entry of the directory. */
export interface Listed {
  readonly incarnation: string;
  readonly entry: DirectoryEntry;
}

/** A run in the index of executions. */
export interface ListedRun {
  readonly id: string;
  readonly status: string;
}

/** The directory and the index of executions at the end. */
export interface Listing {
  /** What the session shows; null if it was deleted. */
  readonly expected: Listed | null;
  /** Everything that is listed. */
  readonly listed: readonly Listed[];
  /** The runs of the session that have ended or wait. */
  readonly expectedRuns: readonly ListedRun[];
  /** All runs that are listed. */
  readonly listedRuns: readonly ListedRun[];
}

/** What the collector has, and what it should have, at the end: spans as JSON. */
export interface Exported {
  readonly expected: readonly { readonly spanId: string; readonly text: string }[];
  /** Everything that arrived, repeats included. */
  readonly received: readonly { readonly spanId: string; readonly text: string }[];
}

/** What was seen of one session. */
export interface Observation {
  readonly history: History;
  /** The sessions that had its id before, and were deleted. */
  readonly earlier: readonly Observation[];
  readonly facts: readonly Fact[];
  /** Null: nothing is exported, or it is not known what should be. */
  readonly exported: Exported | null;
  /** The journal at the end, or before the session was deleted. */
  readonly events: readonly SessionEvent[];
  /** Whether `events` is the whole journal of a session that is at rest; otherwise it is what readers got. */
  readonly isWhole: boolean;
  readonly isDeleted: boolean;
  readonly readers: readonly ReaderLog[];
  readonly clients: readonly ClientLog[];
  readonly runs: readonly RunEnd[];
  /** The message of each run, by run number. */
  readonly messageOf: ReadonlyMap<number, number>;
  /** By run number; empty if that is unknown. */
  readonly places: ReadonlyMap<number, SeenPlace>;
  /** Names of the current variables at the end; null if that is unknown. */
  readonly variables: readonly string[] | null;
  /** The files of the workspace at the end, `text` null if the bytes are lost; null if that is unknown. */
  readonly workspace: readonly { readonly path: string; readonly text: string | null }[] | null;
  readonly replacements: readonly Replacement[];
  readonly sizes: Sizes | null;
  /** Null if there is no index, if the world did not come to rest, or if another session has the id now. */
  readonly listing: Listing | null;
  /** Why the world ended before everything was over; null if everything was over. */
  readonly stuck: string | null;
}
