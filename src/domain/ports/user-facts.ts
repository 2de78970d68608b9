/** The facts about users, outside of the sessions that share them (C10). */
import type { Fact } from '../facts.ts';

/** Whose facts: those of one user with one agent of a namespace. */
export interface FactsOwner {
  /** The namespace; null without keys. */
  readonly owner: string | null;
  readonly agent: string;
  readonly userId: string;
}

/** The call of an action. */
export interface FactCall {
  /** Runtime key: a repeated call changes nothing. */
  readonly id: string;
  /** When the action began, and when this attempt is given up, epoch milliseconds. */
  readonly since: number;
  readonly until: number;
  /** An earlier attempt may have been lost on its way: it must not write what was forgotten since the action began. */
  readonly isRepeated: boolean;
}

export type FactChange =
  | {
      readonly type: 'remember';
      readonly key: string;
      /** As stored (`factText`). */
      readonly value: string;
      /** Number of facts, and characters of all of them, that may be stored. */
      readonly room: { readonly facts: number; readonly chars: number };
      /** Null: by API. */
      readonly by: { readonly sessionId: string; readonly runId: string; readonly call: FactCall } | null;
    }
  | { readonly type: 'forget'; readonly key: string; readonly call: FactCall | null }
  | { readonly type: 'forget_all' };

/** All facts at one moment. `version` grows with every change. */
export interface FactsSnapshot {
  readonly version: number;
  /** By key. */
  readonly facts: readonly Fact[];
}

/** `changed`: how many facts were stored or removed; as the first time if the call is repeated. */
export type FactAnswer =
  | { readonly ok: true; readonly changed: number; readonly after: FactsSnapshot }
  | { readonly ok: false; readonly code: 'memory_full' | 'superseded'; readonly message: string };

/** Stores facts. Every method throws EngineError `memory_unavailable` if the store does not answer. */
export interface UserFacts {
  read(of: FactsOwner): Promise<FactsSnapshot>;
  /** The change is durable when this resolves. */
  change(of: FactsOwner, change: FactChange): Promise<FactAnswer>;
  /** What the call with this runtime key has changed; null if it is unknown. */
  lookup(of: FactsOwner, call: string): Promise<{ readonly changed: number } | null>;
}
