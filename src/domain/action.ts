/**
 * Actions: declared by the model, ordered by the scheduler, run by an executor.
 * Wire names are snake_case (`depends_on`); these types are the internal form.
 */
import type { ActionType, Effects } from './action-types.ts';
import type { Json, JsonObject } from './json.ts';
import type { Spent } from './spent.ts';

export type { ActionType, Effects };

export const ACTION_MODES = ['sync', 'async', 'fire_and_forget'] as const;
export type ActionMode = (typeof ACTION_MODES)[number];

export type Backoff = 'none' | 'linear' | 'exponential';

/** Number of attempts, and the delay between them (P6, S7). */
export interface RetryPolicy {
  /** Maximum number of attempts, including the first; at least 1. */
  readonly maxAttempts: number;
  readonly backoff: Backoff;
  readonly delayMs: number;
  readonly maxDelayMs: number;
}

/** A range in the model's text. Offsets are UTF-16 code units from the start of the generation. */
export interface TextSpan {
  readonly start: number;
  readonly end: number;
}

/** One `<action>` as read by the parser: complete and well formed, not yet checked by the scheduler. */
export interface ActionDeclaration {
  /** Document order within the generation, 0-based; rejected actions count too. */
  readonly ordinal: number;
  /** The model's id, or `auto_1`, `auto_2`, … in document order of the run (P6). */
  readonly id: string;
  readonly type: ActionType;
  readonly mode: ActionMode;
  /** Tool, agent, relic (or `relic.endpoint`), workflow or internal action; the type's own name for python, shell, docker and llm without one. */
  readonly name: string;
  readonly parameters: JsonObject;
  readonly outputKey: string | null;
  /** `null`: the field is absent; `[]`: explicitly no dependencies (S4 distinguishes them). */
  readonly dependsOn: readonly string[] | null;
  readonly waitForAll: boolean;
  readonly timeoutMs: number | null;
  readonly retry: RetryPolicy | null;
  readonly onError: 'fail' | 'skip' | 'retry' | null;
  /** A CEL expression, or null. */
  readonly when: string | null;
  readonly priority: number;
  readonly idempotencyKey: string | null;
  readonly cacheTtlMs: number | null;
  /**
   * Root names of all references that create dependencies: in the parameters (P12), in `when` (S9), in a shell or
   * docker command (P14). Each name once, in order of appearance. The parser does not check whether a name is known.
   */
  readonly references: readonly string[];
  /** Of an action that the runtime has declared: what is known of its values, instead of references in its texts. */
  readonly bound?: BoundValues;
  readonly embeddedInThought: boolean;
  /** The body was not strict JSON and was repaired (P8). */
  readonly repaired: boolean;
  readonly span: TextSpan;
}

/**
 * Values of a declared action as data. Its texts are no templates: a `$` in them is no reference, and conditions get values by
 * name.
 */
export interface BoundValues {
  /** The texts in its parameters that are replaced by values, by their position. */
  readonly texts: readonly BoundText[];
  /** The names in its `when`. */
  readonly names: Readonly<Record<string, BoundName>>;
}

/** A single reference becomes its value; several parts become one text. */
export interface BoundText {
  readonly at: readonly (string | number)[];
  readonly parts: readonly (string | ResultReference)[];
}

/** The result of the action with the id `name`, at a path. */
export interface ResultReference {
  readonly name: string;
  readonly path: readonly string[];
  /** As its author has written it, for messages. */
  readonly raw: string;
}

/** A known value, the result of an action, the inputs of the workflow, or an object of such members. */
export type BoundName =
  | { readonly value: Json }
  | { readonly result: string; readonly path: readonly string[] }
  | { readonly input: true }
  | { readonly members: Readonly<Record<string, BoundName>> };

/** An action as the runtime declares it: always `async`, with an id. Missing fields have the same defaults as in text. */
export type DeclaredAction = Partial<Omit<ActionDeclaration, 'ordinal' | 'mode'>> &
  Pick<ActionDeclaration, 'id' | 'type' | 'name'>;

/** A declaration that does not come from text. Missing fields have the same defaults as in text. */
export function plainDeclaration(
  given: Partial<ActionDeclaration> & Pick<ActionDeclaration, 'id' | 'type' | 'mode' | 'name'>,
): ActionDeclaration {
  return {
    ordinal: 0,
    parameters: {},
    outputKey: null,
    dependsOn: null,
    waitForAll: true,
    timeoutMs: null,
    retry: null,
    onError: null,
    when: null,
    priority: 0,
    idempotencyKey: null,
    cacheTtlMs: null,
    references: [],
    embeddedInThought: false,
    repaired: false,
    span: { start: 0, end: 0 },
    ...given,
  };
}

/** An `<action>` that cannot be accepted, with the information that the model needs to correct it. */
export interface ActionRejection {
  readonly ordinal: number;
  readonly id: string;
  readonly type: ActionType | null;
  readonly mode: ActionMode | null;
  readonly name: string | null;
  readonly code: RejectionCode;
  readonly message: string;
  /** 1-based, in the generation's text. */
  readonly line: number;
  readonly column: number;
  /** The text around the error, cut to `limits.excerptChars`. */
  readonly excerpt: string;
}

/** Why an action was rejected before it could start. Stable: clients and models branch on it. */
export type RejectionCode =
  // by the parser
  | 'invalid_json'
  | 'invalid_action'
  | 'invalid_id'
  | 'unclosed'
  | 'too_large'
  | 'too_deep'
  | 'too_many_actions'
  | 'repair_refused'
  // by the scheduler and the engine
  | 'duplicate_id'
  | 'unknown_dependency'
  | 'dependency_cycle'
  | 'unknown_name'
  | 'not_allowed'
  | 'budget_exceeded';

/** The scheduler's input about an action's target, from the catalogue and the policy. */
export interface ActionPolicy {
  readonly effects: Effects;
  /** Timeout of one attempt; the defaults are in `limits`. */
  readonly timeoutMs: number;
  readonly retry: RetryPolicy;
  /** Maximum concurrent executions of this target; null means that only the run's slots limit it (S5). */
  readonly concurrency: number | null;
  /** `after_generation` holds the action until its generation has ended normally (S14). */
  readonly dispatch: 'eager' | 'after_generation';
  /** The action needs a person's approval first (J8). */
  readonly needsApproval: boolean;
  /**
   * Policies decide about it once its parameters are known: the engine judges it first (C9). The type and name of its target,
   * by which calls are counted.
   */
  readonly judged?: string;
  /** Expected duration: learned, else the timeout. Used to order waiting actions and in the plan report. */
  readonly estimateMs: number;
  /** An earlier outcome may be reused (`cache_ttl`, `idempotency_key`): the engine looks it up first (P6). */
  readonly reuse?: boolean;
  /** The caller executes it (C3): it holds no slot, and is never repeated. */
  readonly byClient?: true;
  /** The feed that the action adds or switches on: a later `$name` means the feed once the action has settled (P12). */
  readonly provides?: string;
  /** Set if the target must not run; the scheduler rejects the action with it. */
  readonly refusal: { readonly code: RejectionCode; readonly message: string } | null;
}

/** Identifies an action within its run: `iteration/ordinal`. Never derived from the model's id (P6). */
export type ActionKey = string;

/** The five terminal states of an action (S10). */
export type TerminalStatus = 'completed' | 'failed' | 'skipped' | 'cancelled' | 'rejected';

export type ActionStatus =
  | 'waiting'
  | 'ready'
  | 'running'
  | 'retrying'
  | 'awaiting_approval'
  | 'awaiting_client'
  | TerminalStatus;

/** Why an attempt or an action failed. `code` is stable; `message` is for people and models. */
export interface ActionError {
  readonly code: string;
  readonly message: string;
  readonly retryable: boolean;
  /** The target asked the caller to wait this long (R8). */
  readonly retryAfterMs?: number;
  /** It is certain that the attempt never reached the target, so even an unsafe action may be retried (S7). */
  readonly beforeDispatch?: boolean;
  /** The target is overloaded (HTTP 429, 503, a full runner): fewer calls are started at a time (S5). */
  readonly overloaded?: boolean;
}

/** What a target asks a person before it goes on (J8). */
export interface Question {
  /** Who asks, for example `MCP server "github"`. */
  readonly from: string;
  /** Text for people. It is data of the target, cut to `limits.questionChars`. */
  readonly message: string;
  /** JSON Schema of the values that it asks for: a flat object of primitives. Null: a yes or no is enough. */
  readonly schema: JsonObject | null;
  /** An HTTP(S) page that the person is asked to open. It is shown, never opened. */
  readonly url?: string;
  /**
   * What the executor needs to go on, at most `limits.questionStateChars`. It is journaled without secrets, opaque to the
   * engine, and never shown.
   */
  readonly state: JsonObject;
}

/** What an executor returns for one attempt. */
export type ActionOutcome =
  /** `spent`: what a child charged to the parent's budget (S12). */
  | { readonly ok: true; readonly output: Json; readonly spent?: Spent }
  /**
   * `question`: the target asks a person, and the next attempt has the answer. Then `error` is what the action fails with
   * if the question cannot be asked (J8).
   */
  | { readonly ok: false; readonly error: ActionError; readonly spent?: Spent; readonly question?: Question };
