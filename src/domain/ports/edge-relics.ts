/** Relics that need no runner. */
import type { ActionOutcome } from '../action.ts';
import type { JsonObject } from '../json.ts';
import type { RelicDefinition } from '../manifests/relic.ts';

/** One request to an edge relic (R6). */
export interface EdgeRelicCall {
  /** Scope: the session's id, or a name shared by all sessions of a namespace. */
  readonly space: string;
  /** Namespace of the calling session; null without keys. */
  readonly owner: string | null;
  readonly relic: RelicDefinition;
  readonly endpoint: string;
  readonly parameters: JsonObject;
  /** Runtime key: repeating a call with the same key changes nothing and returns the same answer. */
  readonly key: string;
}

/** Edge relics: stores that need no runner (R6). */
export interface EdgeRelics {
  /** @throws Error if the store could not be reached, or its answer was lost */
  call(call: EdgeRelicCall): Promise<ActionOutcome>;
  /** The result of an earlier call; null if the call is unknown. */
  lookup(call: Pick<EdgeRelicCall, 'space' | 'relic' | 'key'>): Promise<ActionOutcome | null>;
}
