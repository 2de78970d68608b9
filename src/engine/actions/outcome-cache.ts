/**
 * Earlier outcomes that an action can reuse (P6): of an equal action within its `cache_ttl`, or of the action with the
 * same `idempotency_key`.
 *
 * Owns the pending lookups of all runs of the session, so that equal concurrent actions run once. Does not own the
 * outcomes, which are in the journal, or the decision to start.
 *
 * Invariants:
 *  1. Only completed actions are reused. The result is the one in the journal.
 *  2. Of the actions that share a claim (a cache key or an idempotency key), at most one gets the answer `nothing`
 *     until it settles. If it did not complete, the next one gets it.
 *  3. Every lookup gets one answer, unless it is released first. A waiting lookup holds no claim, so there are no
 *     deadlocks.
 */
import { sha256 } from '@noble/hashes/sha2.js';
import { bytesToHex, utf8ToBytes } from '@noble/hashes/utils.js';
import type { ActionDeclaration, ActionError } from '../../domain/action.ts';
import type { Json, JsonObject } from '../../domain/json.ts';
import { limits } from '../../domain/limits.ts';
import type { Clock } from '../../domain/ports/clock.ts';
import type { Journal } from '../../journal/journal.ts';

/** An action with resolved references, as it would run now. `call` is evaluated once, when its turn has come. */
export interface ResolvedAction {
  readonly action: Pick<ActionDeclaration, 'id' | 'type' | 'name' | 'idempotencyKey'>;
  readonly call: () => { readonly parameters: JsonObject; readonly inputs: JsonObject };
  /** Version of the tool's manifest: another version may give another result. */
  readonly version: string | null;
  /** Maximum age of an equal action's result; null means that none may be reused. */
  readonly cacheTtlMs: number | null;
}

export type LookupResult =
  | { readonly type: 'outcome'; readonly output: Json }
  | { readonly type: 'nothing' }
  | { readonly type: 'refused'; readonly error: ActionError };

interface Lookup {
  readonly resolved: Omit<ResolvedAction, 'call'>;
  /** Digest of type, name, parameters and inputs. */
  readonly content: string;
  readonly claims: readonly string[];
  readonly answer: (found: LookupResult) => void;
  state: 'waiting' | 'holding' | 'answered';
}

export class OutcomeCache {
  readonly #journal: Journal;
  readonly #clock: Clock;
  /** Owners whose digest is being computed. */
  readonly #hashing = new Set<string>();
  readonly #lookups = new Map<string, Lookup>();
  readonly #holders = new Map<string, Lookup>();
  /** Resolves when all lookups so far have been considered. */
  #considering: Promise<void> = Promise.resolve();

  constructor(journal: Journal, clock: Clock) {
    this.#journal = journal;
    this.#clock = clock;
  }

  /**
   * Looks up a reusable outcome for the action. Answers immediately, or when an equal running action has settled.
   *
   * @param owner identifies the caller within the session; must be released in any case
   */
  async lookup(owner: string, resolved: ResolvedAction, answer: (found: LookupResult) => void): Promise<void> {
    const { call, ...about } = resolved;
    const { type, name } = about.action;
    this.#hashing.add(owner);
    const before = this.#considering;
    // One after the other: the first comes first, and only one call at a time is in memory as text.
    const consider = async (): Promise<void> => {
      await before;
      if (!this.#hashing.has(owner)) return;
      const { parameters, inputs } = call();
      const content = await digest(canonical([type, name, parameters, inputs]));
      this.#enter(owner, about, content, answer);
    };
    const considered = consider();
    this.#considering = considered.catch(() => undefined);
    await considered;
  }

  /**
   * Claims again what an earlier host had looked up: the action goes on, and equal actions wait for it. At once, because
   * its attempt may be over soon.
   */
  reclaim(owner: string, { call, ...about }: ResolvedAction): void {
    const { type, name } = about.action;
    const { parameters, inputs } = call();
    const content = bytesToHex(sha256(utf8ToBytes(canonical([type, name, parameters, inputs]))));
    this.#hashing.add(owner);
    this.#enter(owner, about, content, () => undefined);
  }

  #enter(owner: string, resolved: Lookup['resolved'], content: string, answer: (found: LookupResult) => void): void {
    const { action, version, cacheTtlMs } = resolved;
    if (!this.#hashing.delete(owner)) return;
    const claims: string[] = [];
    if (action.idempotencyKey !== null) claims.push(idempotencyClaim(action.idempotencyKey));
    if (cacheTtlMs !== null) claims.push(cacheKey(content, version));
    const asked: Lookup = { resolved, content, claims, answer, state: 'waiting' };
    this.#lookups.set(owner, asked);
    this.#consider(asked);
  }

  /** The owner has completed. In the transaction with its event; `release` follows. */
  keep(owner: string, completed: { readonly seq: number; readonly output: Json }): void {
    const asked = this.#lookups.get(owner);
    if (asked !== undefined) this.#remember(asked, completed);
  }

  /** The owner has settled, or is gone. */
  release(owner: string): void {
    this.#hashing.delete(owner);
    const asked = this.#lookups.get(owner);
    if (asked === undefined) return;
    this.#lookups.delete(owner);
    for (const claim of asked.claims) if (this.#holders.get(claim) === asked) this.#holders.delete(claim);
    for (const other of this.#lookups.values()) {
      if (other.state === 'waiting' && other.claims.some((claim) => asked.claims.includes(claim)))
        this.#consider(other);
    }
  }

  #consider(asked: Lookup): void {
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

  #find({ resolved, content }: Lookup): LookupResult | null {
    const { action, version, cacheTtlMs } = resolved;
    if (action.idempotencyKey !== null) {
      const earlier = this.#journal.outcomes.get(idempotencyClaim(action.idempotencyKey));
      if (earlier !== null && earlier.content !== content) {
        const message = `Action "${action.id}" uses the idempotency key "${action.idempotencyKey}" of another action with other parameters: use a different key`;
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

  #remember(asked: Lookup, { seq, output }: { readonly seq: number; readonly output: Json }): void {
    const { resolved, content, state } = asked;
    const { action, version, cacheTtlMs } = resolved;
    const at = this.#clock.now();
    if (
      action.idempotencyKey !== null &&
      this.#journal.outcomes.get(idempotencyClaim(action.idempotencyKey)) === null
    ) {
      this.#journal.outcomes.remember({
        key: idempotencyClaim(action.idempotencyKey),
        content,
        seq,
        at,
        expiresAt: null,
      });
    }
    // A reused outcome keeps its original age.
    if (cacheTtlMs === null || state !== 'holding') return;
    // A hit writes the result again, so caching a long result costs more than it saves.
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

function idempotencyClaim(idempotencyKey: string): string {
  return `once:${idempotencyKey}`;
}

function cacheKey(content: string, version: string | null): string {
  return `cache:${content}:${version ?? ''}`;
}

/** JSON with sorted object members, so that equal values have equal texts. */
function canonical(value: Json): string {
  return JSON.stringify(value, (_key, member: unknown) =>
    typeof member === 'object' && member !== null && !Array.isArray(member)
      ? Object.fromEntries(Object.entries(member).sort(([a], [b]) => (a < b ? -1 : 1)))
      : member,
  );
}

/** SHA-256 in hexadecimal. */
async function digest(text: string): Promise<string> {
  const bytes = new Uint8Array(await crypto.subtle.digest('SHA-256', new TextEncoder().encode(text)));
  return bytesToHex(bytes);
}
