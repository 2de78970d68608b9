/** Interface of a running relic, independent of the host. */
import type { RelicCall, RelicSpec } from './definition.ts';

/** Identifies a relic across restarts. */
export interface RelicId {
  readonly scope: string;
  readonly name: string;
}

/** Result of one call. */
export type RelicAnswer =
  | { readonly end: 'answered'; readonly status: number; readonly type: string; readonly body: string }
  /** No connection; nothing was sent. */
  | { readonly end: 'refused' }
  /** The call was sent, and its outcome is unknown. */
  | { readonly end: 'broken'; readonly why: string }
  | { readonly end: 'timeout' }
  | { readonly end: 'too_large' };

export interface RelicService {
  ask(call: RelicCall, timeoutMs: number): Promise<RelicAnswer>;
  /** Resolves with its last output when it has ended. Never rejects. */
  readonly ended: Promise<string>;
  /** Stops it; resolves when only its state remains. */
  stop(): Promise<void>;
}

/** A host runs relics. */
export interface RelicHost {
  /** For messages: `docker`. */
  readonly level: string;
  /** Why it cannot run this relic; null if it can. */
  refusal(spec: RelicSpec): string | null;
  /**
   * @param tenant the owner; null if there is only one
   * @throws Error with a message for users if it did not start; everything is cleaned up then
   */
  start(id: RelicId, spec: RelicSpec, tenant: string | null): Promise<RelicService>;
  /** Deletes the stored state of a relic; with `name` null, of all relics of the scope. */
  forget(which: { readonly scope: string; readonly name: string | null }): Promise<void>;
  /** Called when the last relic of a scope is gone. */
  leave(scope: string): Promise<void>;
  /** Removes the remains of an earlier process. */
  open(): Promise<void>;
  close(): Promise<void>;
}
