/** What a running relic is to its keeper, whatever it runs in: something that is asked and that ends. */
import type { RelicCall, RelicSpec } from './definition.ts';

/** Which relic: the same over restarts. */
export interface RelicId {
  readonly space: string;
  readonly name: string;
}

/** What came of one call. */
export type RelicAnswer =
  | { readonly end: 'answered'; readonly status: number; readonly type: string; readonly body: string }
  /** Nobody listened, so that nothing was sent. */
  | { readonly end: 'refused' }
  /** It was sent, and what became of it is not known. */
  | { readonly end: 'broken'; readonly why: string }
  | { readonly end: 'timeout' }
  | { readonly end: 'too_large' };

export interface RelicService {
  ask(call: RelicCall, timeoutMs: number): Promise<RelicAnswer>;
  /** Resolves when it has ended, with what it said last. Never rejects. */
  readonly ended: Promise<string>;
  /** Ends it; resolves when nothing of it is left but its state. */
  stop(): Promise<void>;
}

/** Where relics run. */
export interface RelicHost {
  /** For people: `docker`, `bubblewrap`. */
  readonly level: string;
  /** Why it cannot run this relic; null when it can. */
  refusal(spec: RelicSpec): string | null;
  /**
   * @param tenant whose it is; null where there is one
   * @throws Error in words for people, when it could not be started; nothing is left of it then
   */
  start(id: RelicId, spec: RelicSpec, tenant: string | null): Promise<RelicService>;
  /** Removes the state that a relic kept; with `name` null that of all relics of the space. */
  forget(which: { readonly space: string; readonly name: string | null }): Promise<void>;
  /** The last relic of a space has gone. */
  leave(space: string): Promise<void>;
  /** Removes what is left of an earlier life. */
  open(): Promise<void>;
  close(): Promise<void>;
}
