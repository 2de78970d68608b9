/**
 * Earlier outcomes that stand for an action (P6): of an equal action while its `cache_ttl` lasts, of
 * the action that used the same `idempotency_key`.
 *
 * Owns who is asked for at this moment, over all runs of the session, so that equal actions that come
 * together run once. Does not own outcomes, which stand in the journal, nor the decision to start.
 *
 * Invariants:
 *  1. Only completed actions stand for others. The result is the one that the journal holds.
 *  2. Of the actions that share a claim (a cache key or an idempotency key) at most one is told
 *     `nothing` until it settles; then, if it did not complete, the next.
 *  3. Whoever asked gets one answer, unless it is released first; nobody who waits holds a claim, so
 *     nobody waits in a circle.
 */
import { bytesToHex } from '@noble/hashes/utils.js';
import type { ActionDeclaration, ActionError } from '../../domain/action.ts';
import type { Json, JsonObject } from '../../domain/json.ts';
import { limits } from '../../domain/limits.ts';
import type { Clock } from '../../domain/ports.ts';
import type { Journal } from '../../journal/journal.ts';

/** An action with its references resolved: what it would do if it ran now. Asked for once, when its turn has come. */
export interface ResolvedAction {
  readonly action: Pick<ActionDeclaration, 'id' | 'type' | 'name' | 'idempotencyKey'>;
  readonly call: () => { readonly parameters: JsonObject; readonly inputs: JsonObject };
  /** Of the tool's manifest: another version may answer otherwise. */
  readonly version: string | null;
  /** How old an equal action's result may be; null = it may not stand for this one. */
  readonly cacheTtlMs: number | null;
}

export type Recalled =
  | { readonly type: 'outcome'; readonly output: Json }
  | { readonly type: 'nothing' }
  | { readonly type: 'refused'; readonly error: ActionError };

interface Asked {
  readonly resolved: Omit<ResolvedAction, 'call'>;
  /** A digest of type, name, parameters and inputs. */
  readonly content: string;
  readonly claims: readonly string[];
  readonly answer: (found: Recalled) => void;
  state: 'waiting' | 'holding' | 'answered';
}

export class OutcomeCache {
  readonly #journal: Journal;
  readonly #clock: Clock;
  /** Those whose digest is being computed. */
  readonly #coming = new Set<string>();
  readonly #asked = new Map<string, Asked>();
  readonly #holders = new Map<string, Asked>();
  /** Resolves when everybody who asked so far has been considered. */
  #considering: Promise<void> = Promise.resolve();

  constructor(journal: Journal, clock: Clock) {
    this.#journal = journal;
    this.#clock = clock;
  }

  /**
   * Looks for an outcome that stands for the action; answers now, or when an equal action that is at
   * work has settled.
   *
   * @param owner identifies the asker within the session; `release` it in any case
   */
  async ask(owner: string, resolved: ResolvedAction, answer: (found: Recalled) => void): Promise<void> {
    const { call, ...about } = resolved;
    const { type, name } = about.action;
    this.#coming.add(owner);
    const before = this.#considering;
    // One after the other: who came first is considered first, and one call at a time is held as text.
    const consider = async (): Promise<void> => {
      await before;
      if (!this.#coming.has(owner)) return;
      const { parameters, inputs } = call();
      const content = await digest(canonical([type, name, parameters, inputs]));
      this.#enter(owner, about, content, answer);
    };
    const considered = consider();
    this.#considering = considered.catch(() => undefined);
    await considered;
  }

  #enter(owner: string, resolved: Asked['resolved'], content: string, answer: (found: Recalled) => void): void {
    const { action, version, cacheTtlMs } = resolved;
    if (!this.#coming.delete(owner)) return;
    const claims: string[] = [];
    if (action.idempotencyKey !== null) claims.push(onceKey(action.idempotencyKey));
    if (cacheTtlMs !== null) claims.push(cacheKey(content, version));
    const asked: Asked = { resolved, content, claims, answer, state: 'waiting' };
    this.#asked.set(owner, asked);
    this.#consider(asked);
  }

  /**
   * The owner has settled, or is gone.
   *
   * @param completed where the journal holds its result, and the result; null when there is none
   */
  release(owner: string, completed: { readonly seq: number; readonly output: Json } | null): void {
    this.#coming.delete(owner);
    const asked = this.#asked.get(owner);
    if (asked === undefined) return;
    this.#asked.delete(owner);
    if (completed !== null) this.#remember(asked, completed);
    for (const claim of asked.claims) if (this.#holders.get(claim) === asked) this.#holders.delete(claim);
    for (const other of this.#asked.values()) {
      if (other.state === 'waiting' && other.claims.some((claim) => asked.claims.includes(claim)))
        this.#consider(other);
    }
  }

  #consider(asked: Asked): void {
    const found = this.#find(asked);
    if (found !== null) {
      asked.state = 'answered';
      return asked.answer(found);
    }
    if (asked.claims.some((claim) => this.#holders.has(claim))) return;
    asked.state = 'holding';
    for (const claim of asked.claims) this.#holders.set(claim, asked);
    asked.answer({ type: 'nothing' });
  }

  #find({ resolved, content }: Asked): Recalled | null {
    const { action, version, cacheTtlMs } = resolved;
    if (action.idempotencyKey !== null) {
      const earlier = this.#journal.outcomes.get(onceKey(action.idempotencyKey));
      if (earlier !== null && earlier.content !== content) {
        const message = `Action "${action.id}" uses the idempotency key "${action.idempotencyKey}" of another action, with other parameters: give it a key of its own`;
        return { type: 'refused', error: { code: 'idempotency_mismatch', message, retryable: false } };
      }
      if (earlier !== null) return { type: 'outcome', output: earlier.output };
    }
    if (cacheTtlMs === null) return null;
    const now = this.#clock.now();
    const cached = this.#journal.outcomes.get(cacheKey(content, version));
    const fresh =
      cached !== null && now - cached.at < cacheTtlMs && cached.expiresAt !== null && now < cached.expiresAt;
    return fresh ? { type: 'outcome', output: cached.output } : null;
  }

  #remember(asked: Asked, { seq, output }: { readonly seq: number; readonly output: Json }): void {
    const { resolved, content, state } = asked;
    const { action, version, cacheTtlMs } = resolved;
    const at = this.#clock.now();
    if (action.idempotencyKey !== null && this.#journal.outcomes.get(onceKey(action.idempotencyKey)) === null) {
      this.#journal.outcomes.remember({ key: onceKey(action.idempotencyKey), content, seq, at, expiresAt: null });
    }
    // What was itself recalled is as old as it was before.
    if (cacheTtlMs === null || state !== 'holding') return;
    // A hit writes the result once more: what is long costs more than it saves.
    if (JSON.stringify(output).length > limits.cachedOutcomeChars) return;
    this.#journal.outcomes.remember({
      key: cacheKey(content, version),
      content,
      seq,
      at,
      expiresAt: at + cacheTtlMs,
    });
  }
}

function onceKey(idempotencyKey: string): string {
  return `once:${idempotencyKey}`;
}

function cacheKey(content: string, version: string | null): string {
  return `cache:${content}:${version ?? ''}`;
}

/** JSON with the members of every object in one order, so that equal values have equal texts. */
function canonical(value: Json): string {
  return JSON.stringify(value, (_key, member: unknown) =>
    typeof member === 'object' && member !== null && !Array.isArray(member)
      ? Object.fromEntries(Object.entries(member).sort(([a], [b]) => (a < b ? -1 : 1)))
      : member,
  );
}

/** SHA-256, in hexadecimal. */
async function digest(text: string): Promise<string> {
  const bytes = new Uint8Array(await crypto.subtle.digest('SHA-256', new TextEncoder().encode(text)));
  return bytesToHex(bytes);
}
