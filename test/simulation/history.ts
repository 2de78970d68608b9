/**
 * A history: everything that happens to one session, as plain data. The world (world/world.ts) runs it, a failing one
 * is shrunk (shrink.ts), printed (print.ts) and stored as a named test (histories/).
 *
 * Times are milliseconds of the world's clock since the beginning.
 */
import type { FinishReason } from '../../src/domain/ports/model.ts';

/** Settings of the agent. */
export interface AgentSettings {
  readonly maxParallelActions: number;
  readonly maxIterations: number;
  readonly maxActions: number;
  readonly modelCalls: number;
  readonly seconds: number;
  readonly failFast: boolean;
  /** Unsafe actions need an approval. */
  readonly supervised: boolean;
  /** It has policies, which deny some actions, ask about others, and allow the rest (world/policies.ts). */
  readonly policies: boolean;
  /** It has a periodic feed, whose source is a pure tool. */
  readonly feed: boolean;
  /** The session expires after this time without use; null: after the simulated time. */
  readonly expiryMs: number | null;
  /** Its prompts show this many turns, and its model summarises older ones; absent: they show all turns. Not in generated histories. */
  readonly summarizeAfter?: number;
}

/**
 * What an action calls. `python` runs on the runner, `child` in another session, `client` by the client, `code` apart from the
 * session, in the Worker.
 */
export const TARGETS = [
  'pure',
  'idempotent',
  'unsafe',
  'late',
  'python',
  'child',
  'variable',
  'client',
  'code',
] as const;
export type Target = (typeof TARGETS)[number];

/** At most this many calls of the tool `idempotent` run at once. */
export const IDEMPOTENT_CONCURRENCY = 1;

/**
 * How an attempt ends.
 *
 *  - `fails`: retryable; the target may have done its work. `refuses`: not retryable.
 *  - `unreached`: retryable; the target has done nothing.
 *  - `silent`: no answer until it is aborted. `deaf`: as `ok`, and ignores an abort.
 *  - `throws`: an exception of the executor, after the work was done.
 *  - `lost`: the work is done, and its answer is lost.
 *  - `asks`: only of tools; the target has done nothing and asks a person. Without a further script, the next attempt asks again.
 *
 * The client posts its result this long after it has seen the call: `ok` an output, `unreached` an output after the call has
 * expired, `lost` the same output again and again, `deaf` another output as well, `silent` nothing, the others an error.
 */
export const ATTEMPT_ENDS = [
  'ok',
  'fails',
  'refuses',
  'unreached',
  'silent',
  'deaf',
  'throws',
  'lost',
  'asks',
] as const;
export type AttemptEnd = (typeof ATTEMPT_ENDS)[number];

export interface AttemptScript {
  readonly ms: number;
  readonly end: AttemptEnd;
}

export interface ActionScript {
  readonly target: Target;
  readonly mode: 'sync' | 'async' | 'fire_and_forget';
  /** Places of other actions, relative to this one; null: the field is absent. */
  readonly dependsOn: readonly number[] | null;
  /** Places of other actions whose results are parameters, relative to this one. */
  readonly refers: readonly number[];
  readonly when: boolean | null;
  readonly onError: 'skip' | 'retry' | null;
  readonly retries: number | null;
  readonly timeoutS: number | null;
  readonly priority: number;
  /** Number of an idempotency key that actions share. With 1 they have the same parameters, except for references. */
  readonly key: number | null;
  /** The last one repeats. */
  readonly attempts: readonly AttemptScript[];
}

export type Item =
  | { readonly type: 'action'; readonly action: ActionScript }
  | { readonly type: 'thought' | 'bare'; readonly words: number }
  /** `refers`: places of actions, counted from the first of the generation. */
  | { readonly type: 'response'; readonly final: boolean | null; readonly refers: readonly number[] }
  /** An action whose body is invalid JSON. */
  | { readonly type: 'broken' }
  /** A response that refers to the first action of the first generation of a message. */
  | { readonly type: 'recall'; readonly of: number };

/**
 * How an endpoint writes the arguments of a function call: in pieces, at once, `{}` first, each time with everything so far,
 * or as JSON in a JSON string.
 */
export const CALL_FORMS = ['pieces', 'whole', 'empty_first', 'snapshots', 'encoded_twice'] as const;
/** How the last chunk of an endpoint repeats the calls (N4). */
export const CALL_REPEATS = ['nothing', 'same', 'spaced', 'other_index', 'new_id', 'message', 'encoded_twice'] as const;

/** The actions of a generation are function calls. Their names and parameters are all that they have. */
export interface CallsScript {
  readonly written: (typeof CALL_FORMS)[number];
  readonly repeats: (typeof CALL_REPEATS)[number];
}

/**
 * How a generation is cut off. `host`: the host is lost. `dropped`: the connection is. `silent`: nothing more comes.
 * `length`: the model has reached its limit.
 */
export const CUT_CAUSES = ['host', 'dropped', 'silent', 'length'] as const;

/** A generation is cut off at any character of its text, or of its calls at any chunk. */
export interface CutScript {
  /** Number of the tag in which it is cut; null: anywhere. */
  readonly tag: number | null;
  /** From the beginning of the tag, or of the text. Longer ones begin anew. */
  readonly chars: number;
  /** The model waits this long before: readers see the text, and it is saved. */
  readonly pauseMs: number;
  readonly cause: (typeof CUT_CAUSES)[number];
  /** The part of the host's unsynced writes that persists. */
  readonly keeps: number;
}

/** One generation of the model. */
export interface GenerationScript {
  readonly items: readonly Item[];
  /** `throws`: the provider gives up. `silent`: it gives up after a minute of silence. */
  readonly finish: FinishReason | 'throws' | 'silent';
  readonly pieceChars: number;
  readonly gapMs: number;
  readonly reportsUsage: boolean;
  /** Null: its actions are protocol text. */
  readonly calls: CallsScript | null;
  /** Null: it is whole. */
  readonly cut: CutScript | null;
  /** The finish reason as the endpoint writes it, one that is not known (N1); null: that of `finish`. */
  readonly reason: string | null;
}

/**
 * How a client gives a file of a message: an image or a text as base64, or an artifact of the session, if it knows one.
 * The others are refused: too large, of another type than the stated one, or an artifact that does not exist.
 */
export const FILE_FORMS = ['image', 'text', 'artifact', 'large', 'false_type', 'unknown_artifact'] as const;

/** A file of a message. */
export interface FileScript {
  readonly form: (typeof FILE_FORMS)[number];
  /** Files with the same form and number have the same bytes. */
  readonly body: number;
}

/** Protocols of other systems' clients (E1 to E3); `chat` and `responses` are those of OpenAI. */
export const PROTOCOLS = ['ai-sdk', 'chat', 'responses', 'ag-ui'] as const;
export type ProtocolName = (typeof PROTOCOLS)[number];

/** A client of another protocol, which sends the message and reads its run. */
export interface ViaScript {
  readonly protocol: ProtocolName;
  /** It leaves after this many reads, and comes back; null: it stays. */
  readonly reads: number | null;
  /** Pause after each read. */
  readonly pauseMs: number;
}

/** Where a message is in the tree of runs (C4), or what it repeats. */
export const BRANCHES = ['follows', 'root', 'retry', 'edit', 'rerun'] as const;

/**
 * A message that has a place of its own in the tree of runs (C4).
 *
 *  - `follows`: it follows a run. `root`: it begins the conversation anew.
 *  - `retry`: the message of a run is sent again. `edit`: in its place, this one.
 *  - `rerun`: an action of a run runs again.
 *
 * Only `root` is possible before a run was accepted; the others are not sent then.
 */
export interface BranchScript {
  readonly how: (typeof BRANCHES)[number];
  /** Place of the run among those that were accepted, from the newest. */
  readonly back: number;
  /** Place of the action among those of the run. */
  readonly nth: number;
}

/** A message, or posted protocol text: then the first generation is the text. */
export interface MessageScript {
  readonly type: 'message' | 'text';
  readonly at: number;
  /** `steer`: a run that is active shows it to the model (C5). */
  readonly ifBusy: 'queue' | 'reject' | 'steer';
  /** Null: it follows the head. Posted text, and messages of other protocols, have none. */
  readonly branch: BranchScript | null;
  /** The client sends it again, with the same idempotency key, even if it was accepted. With `via`: another client does the same. */
  readonly repeats: boolean;
  /** The client of another protocol that sends it; null: one of our own. Posted text has none. */
  readonly via: ViaScript | null;
  /** Posted text, and messages of other protocols, have none. */
  readonly files: readonly FileScript[];
  readonly generations: readonly GenerationScript[];
}

/** What a person does about the nth approval request. */
export interface DecisionScript {
  /** After the request was seen. */
  readonly afterMs: number;
  readonly approved: boolean;
  readonly times: number;
}

/** Other requests of clients. */
export type Request =
  | { readonly type: 'cancel'; readonly at: number }
  | {
      readonly type: 'delete';
      readonly at: number;
      /** The client exports the session first, and takes this long to read it; null: it does not. */
      readonly exportMs: number | null;
      /** The session is made again under the same id this long after the answer; null: it is not. */
      readonly againMs: number | null;
    }
  /** The conversation continues after a run: `back` is its place among those that were accepted, from the newest. */
  | { readonly type: 'head'; readonly at: number; readonly back: number }
  /** A session is made of the conversation up to a run; `back` as above. */
  | { readonly type: 'fork'; readonly at: number; readonly back: number }
  /** An event stream of the session. */
  | {
      readonly type: 'reader';
      readonly at: number;
      /** It begins with the events that exist, rather than with the first. */
      readonly fromEnd: boolean;
      /** Pause after each read. */
      readonly pauseMs: number;
      /** It disconnects after this many reads, and reconnects. */
      readonly reads: number | null;
    };

/** What a failing statement names. */
export const STATEMENT_NAMES = [
  'events',
  'chunks',
  'runs',
  'session',
  'inputs',
  'prompts',
  'outcomes',
  'variables',
  'feeds',
  'seeded',
  'blobs',
  'message_files',
  'workspace',
  'workspace_commits',
  'head',
  'steered',
  'taken_up',
  'notes',
  'transaction',
  'alarm',
  'everything',
] as const;

export type Fault =
  /**
   * A host ends at its nth call of a port. Only these calls are visible from outside, so they cover every `await`.
   * `keeps`: the part of its unsynced writes that persists.
   */
  | { readonly type: 'crash'; readonly life: number; readonly call: number; readonly keeps: number }
  /** The host ends at a time. */
  | { readonly type: 'eviction'; readonly at: number; readonly keeps: number }
  /** The nth statement of a host that writes fails, and the host continues. */
  | { readonly type: 'write'; readonly life: number; readonly statement: number }
  /**
   * The nth statement of its kind fails, counted over all hosts, and the host continues. `in`: of the session, of its forks,
   * or of the index of all sessions. `does`: forks also read, page by page. `names`: a table that it names; `transaction`:
   * the end of a transaction; `alarm`: the alarm is set; `everything`: all tables are deleted; null: any.
   */
  | {
      readonly type: 'statement';
      readonly in: 'session' | 'fork' | 'index';
      readonly does: 'write' | 'read';
      readonly names: (typeof STATEMENT_NAMES)[number] | null;
      readonly statement: number;
    }
  /** The nth sync of a host fails, and the platform resets the host. */
  | { readonly type: 'sync'; readonly life: number; readonly sync: number; readonly keeps: number }
  /** Syncs take this long from now on. */
  | { readonly type: 'slow_disk'; readonly at: number; readonly ms: number }
  | { readonly type: 'full_disk'; readonly at: number; readonly forMs: number }
  | { readonly type: 'clock'; readonly at: number; readonly byMs: number }
  /**
   * The index of all sessions does not answer. `works`: it does what it is asked, at once or after this time. Only
   * histories with such a fault have an index, also if it always answers (`forMs` is 0).
   */
  | { readonly type: 'index'; readonly at: number; readonly forMs: number; readonly works: boolean }
  /**
   * One of several runners is lost with its jobs, and is back after this time. Only histories with such a fault have several
   * runners.
   */
  | { readonly type: 'runner'; readonly runner: number; readonly at: number; readonly forMs: number }
  /** The same as `index` for the collector of traces. `loses`: it takes them, and keeps none (for the test of the invariant). */
  | {
      readonly type: 'collector';
      readonly at: number;
      readonly forMs: number;
      readonly works: boolean;
      readonly loses?: true;
    };

/** A message of the history that the session begins with. `call`: a call of the assistant, and its result. */
export interface SeededScript {
  readonly type: 'user' | 'assistant' | 'call';
  readonly words: number;
}

export interface History {
  /** Decides what happens first among things that happen at the same time. */
  readonly order: number;
  readonly agent: AgentSettings;
  readonly messages: readonly MessageScript[];
  readonly decisions: readonly DecisionScript[];
  readonly requests: readonly Request[];
  readonly faults: readonly Fault[];
  /** The conversation before the session. */
  readonly seeded: readonly SeededScript[];
}
