/** Sessions that an action starts. */
import type { Json, JsonObject } from '../json.ts';
import type { PolicyList } from '../policy.ts';
import type { Spent } from '../spent.ts';

/** The part of its parent's budget that a sub-agent or workflow may spend (S12); null means no limit. */
export interface ChildBudget {
  readonly seconds: number;
  readonly modelCalls: number;
  readonly tokens: number | null;
  /** US dollars. */
  readonly cost: number | null;
  readonly actions: number;
  /** Sessions that it may start itself, including nested ones (M7). */
  readonly children: number;
}

/** A run in a separate session, for an action of another session (M6, M7). */
export interface ChildRequest {
  /** Runtime key and attempt of the action: the same key always identifies the same child (J2). */
  readonly key: string;
  readonly type: 'agent' | 'workflow';
  readonly name: string;
  /** Of a definition that only the parent sees (M2). */
  readonly scope?: string;
  /** Message to a sub-agent; empty for a workflow. */
  readonly message: string;
  /** A sub-agent's initial variables; a workflow's inputs. */
  readonly inputs: JsonObject;
  readonly budget: ChildBudget | null;
  /** The policies of its parent, which bind it too (C9); absent: there are none. */
  readonly policies?: readonly PolicyList[];
  /** Patterns of text that does not leave the child either, at most `limits.redactPatternsPerRun` (C9). */
  readonly redact?: readonly string[];
  /** The `traceparent` of the attempt that starts it (O1); absent: it is not traced. */
  readonly trace?: string;
  /** What started a workflow by itself, so that no client follows it (M6, C3). */
  readonly trigger?: AutomaticTrigger;
}

/** A caller of `POST /events/{event}` gets the sessions and can follow them; these two have no such caller. */
export type AutomaticTrigger = 'schedule' | 'webhook';

/** How a workflow was started that is not a child: the members of its request without the inputs. */
export type StartedBy = Pick<ChildRequest, 'trigger' | 'trace'>;

/** How a child ended. */
export interface ChildEnd {
  readonly sessionId: string;
  readonly status: 'completed' | 'failed' | 'cancelled';
  /** A sub-agent's answer; a workflow's outputs. */
  readonly output: Json;
  readonly error: { readonly code: string; readonly message: string } | null;
  readonly spent: Spent;
}

export interface ChildObserver {
  /** Aborting it cancels the child and everything that the child has started. */
  readonly signal: AbortSignal;
  /** The child's events as its own clients see them, in order; some may repeat after a reconnect. */
  readonly event: (event: JsonObject) => void;
}

/** Starts child sessions. */
export interface ChildSessions {
  /** Starts the child, or joins the one with this key, and waits for its end. */
  run(child: ChildRequest, observer: ChildObserver): Promise<ChildEnd>;
}
