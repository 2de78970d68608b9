/**
 * The action: what the model declares, what the scheduler orders, what an executor runs.
 * Wire names are snake_case (`depends_on`); these are the same things inside.
 */
import type { ActionType, Effects } from './action-types.ts';
import type { Json, JsonObject } from './json.ts';
import type { Spent } from './spent.ts';

export type { ActionType, Effects };

export const ACTION_MODES = ['sync', 'async', 'fire_and_forget'] as const;
export type ActionMode = (typeof ACTION_MODES)[number];

export type Backoff = 'none' | 'linear' | 'exponential';

/** How often an action is tried and how long is waited between attempts (P6, S7). */
export interface RetryPolicy {
  /** Attempts in all, the first included; at least 1. */
  readonly maxAttempts: number;
  readonly backoff: Backoff;
  readonly delayMs: number;
  readonly maxDelayMs: number;
}

/** A place in the model's text. Offsets are UTF-16 code units from the start of the generation. */
export interface TextSpan {
  readonly start: number;
  readonly end: number;
}

/** One `<action>` as the parser read it: complete, well formed, not yet judged by the scheduler. */
export interface ActionDeclaration {
  /** Document order within the generation, from 0; rejected actions count too. */
  readonly ordinal: number;
  /** The model's id, or `auto_1`, `auto_2`, … in document order of the run (P6). */
  readonly id: string;
  readonly type: ActionType;
  readonly mode: ActionMode;
  /** Tool, agent, relic (or `relic.endpoint`), workflow or internal action; the type's own name for python, shell, docker and llm without one. */
  readonly name: string;
  readonly parameters: JsonObject;
  readonly outputKey: string | null;
  /** `null`: no such field; `[]`: explicitly on nothing (S4 tells them apart). */
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
   * Root names of every reference that makes a dependency: in the parameters (P12), in `when`
   * (S9), in a shell or docker command (P14). Each name once, in order of appearance. Whether a
   * name is known is not the parser's business.
   */
  readonly references: readonly string[];
  readonly embeddedInThought: boolean;
  /** The body was not strict JSON and was repaired (P8). */
  readonly repaired: boolean;
  readonly span: TextSpan;
}

/** A declaration that no text stands behind: fields that are not given are as if a model had left them out. */
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

/** An `<action>` that cannot be accepted, and what the model needs to know to correct it. */
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
  /** The text at the fault, cut to `limits.excerptChars`. */
  readonly excerpt: string;
}

/** Why an action was refused before it could start. Stable; clients and models branch on it. */
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

/** What the catalogue and the policy know about an action's target; the scheduler decides with it. */
export interface ActionPolicy {
  readonly effects: Effects;
  /** When neither the action nor its manifest says: see `limits`. */
  readonly timeoutMs: number;
  readonly retry: RetryPolicy;
  /** Simultaneous executions of this target, null = only the run's slots bound it (S5). */
  readonly concurrency: number | null;
  /** `after_generation` holds the action until its generation has ended well (S14). */
  readonly dispatch: 'eager' | 'after_generation';
  /** The action asks a human first (J8). */
  readonly needsApproval: boolean;
  /** Expected duration: learned, else the timeout. Orders waiting actions and feeds the plan report. */
  readonly estimateMs: number;
  /** An earlier outcome may stand for the action (`cache_ttl`, `idempotency_key`): the engine is asked before it starts (P6). */
  readonly reuse?: boolean;
  /** Set when the target may not run at all; the scheduler rejects the action with it. */
  readonly refusal: { readonly code: RejectionCode; readonly message: string } | null;
}

/** Identifies an action within its run: `iteration/ordinal`. Never derived from the model's id (P6). */
export type ActionKey = string;

/** The five terminal states of an action (S10). */
export type TerminalStatus = 'completed' | 'failed' | 'skipped' | 'cancelled' | 'rejected';

export type ActionStatus = 'waiting' | 'ready' | 'running' | 'retrying' | 'awaiting_approval' | TerminalStatus;

/** Why an attempt or an action failed. `code` is stable; `message` is for people and models. */
export interface ActionError {
  readonly code: string;
  readonly message: string;
  readonly retryable: boolean;
  /** The other side asked to be left alone for so long (R8). */
  readonly retryAfterMs?: number;
  /** The attempt is known never to have reached the target, so that even an unsafe action may be tried again (S7). */
  readonly beforeDispatch?: boolean;
  /** The other side has too much to do (HTTP 429, 503, a full runner): fewer are started at a time (S5). */
  readonly overloaded?: boolean;
}

/** What an executor returns for one attempt. */
export type ActionOutcome =
  /** `spent`: by a child on the parent's budget (S12). */
  | { readonly ok: true; readonly output: Json; readonly spent?: Spent }
  | { readonly ok: false; readonly error: ActionError; readonly spent?: Spent };
