/**
 * The copies of definitions that an isolate keeps for its namespaces, so that a message does not wait for the catalogue's object,
 * which may be on another continent (Z1).
 *
 * Owns the copies and the rules of their age. Does not own the catalogue or the request to it: `ask` is a port.
 *
 * Invariants:
 *  1. A copy is used without a request for `limits.manifestStalenessMs` after it was asked for; after that it is used at
 *     once and asked for again afterwards; after `limits.manifestMaxAgeMs` the message waits for the catalogue.
 *  2. A copy that was asked for before a known change of its catalogue is not used, and neither is one whose time is in the
 *     future, because the clock was set back.
 *  3. Copies are values, and no promise is shared: a request must not wait for another request of its isolate.
 */
import { limits } from '../../domain/limits.ts';
import type { Clock } from '../../domain/ports/clock.ts';

/** When a value of a catalogue was asked for. */
export interface Checked {
  /** The latest change of the catalogue that was known then. */
  readonly revision: number;
  /** Epoch milliseconds. */
  readonly checkedAt: number;
}

/** A copy. */
export interface CachedText extends Checked {
  /** A JSON text; null: the catalogue has nothing of this name. */
  readonly text: string | null;
}

interface Lookup {
  readonly owner: string | null;
  /** Identifies the value within its catalogue. */
  readonly key: string;
  /** Another copy, which is read only if the isolate has none. Default: there is none. */
  readonly known?: () => CachedText | null;
  /** The latest change from which the session has used a definition: it never uses an older one. Default: none. */
  readonly seen?: number;
  readonly ask: () => Promise<string | null>;
  /** Keeps the request alive for work that nothing waits for; the work never rejects. */
  readonly behind: (work: Promise<void>) => void;
}

export class DefinitionCache {
  readonly #clock: Pick<Clock, 'now'>;
  /** Least recently used first. */
  readonly #copies = new Map<string, CachedText>();
  #chars = 0;
  /** Of the namespaces whose catalogues have changed, least recently changed first. */
  readonly #revisions = new Map<string, number>();
  /** When a copy was last asked for behind a message. */
  readonly #asked = new Map<string, number>();

  constructor(clock: Pick<Clock, 'now'>) {
    this.#clock = clock;
  }

  /** The latest known change of the catalogue; 0: none is known. */
  revision(owner: string | null): number {
    return this.#revisions.get(keyOf(owner, '')) ?? 0;
  }

  /**
   * From here on, copies that were asked for before this change are not used.
   *
   * @param revision of a change, from its catalogue, whose numbers only grow, also if its clock is set back
   */
  changed(owner: string | null, revision: number): void {
    if (revision <= this.revision(owner)) return;
    const key = keyOf(owner, '');
    this.#revisions.delete(key);
    this.#revisions.set(key, revision);
    drop(this.#revisions, limits.cachedDefinitions);
  }

  /** The same for a number that a caller presents. One in the future is ignored, because it would hide later changes. */
  require(owner: string | null, revision: number): void {
    if (revision <= this.#clock.now() + limits.clockSkewMs) this.changed(owner, revision);
  }

  /** The copy, if a message may use it; null: it must be asked for. */
  peek(owner: string | null, key: string): CachedText | null {
    const copy = this.#copies.get(keyOf(owner, key)) ?? null;
    return copy !== null && copy.text !== null && this.#mayUse(copy, owner) ? copy : null;
  }

  /** Takes a copy over from another isolate, unless the own one may be used and is newer. */
  take(owner: string | null, key: string, copy: CachedText): void {
    const own = this.#copies.get(keyOf(owner, key)) ?? null;
    if (own === null || !this.#mayUse(own, owner) || newer(own, copy) === copy) this.#keep(keyOf(owner, key), copy);
  }

  /** @throws what `ask` throws, if no copy may be used */
  async find(lookup: Lookup): Promise<CachedText> {
    const { owner, key, known = () => null, seen = 0, behind } = lookup;
    this.changed(owner, seen);
    const id = keyOf(owner, key);
    const own = this.#copies.get(id) ?? null;
    const copy = own !== null && this.#mayUse(own, owner) ? own : newer(own, known());
    if (copy === null || copy.text === null || !this.#mayUse(copy, owner)) return await this.#ask(lookup);
    this.#keep(id, copy);
    const now = this.#clock.now();
    if (now - copy.checkedAt > limits.manifestStalenessMs) {
      // Several messages at the same time ask once. The age of the request counts: a cancelled one has no answer.
      if (Math.abs(now - (this.#asked.get(id) ?? -Infinity)) > limits.manifestStalenessMs) {
        this.#asked.delete(id);
        this.#asked.set(id, now);
        drop(this.#asked, limits.cachedDefinitions);
        behind(
          this.#ask(lookup).then(
            () => undefined,
            // The next message asks again, and after the maximum age it fails with the error.
            () => undefined,
          ),
        );
      }
    }
    return copy;
  }

  #mayUse({ revision, checkedAt }: Checked, owner: string | null): boolean {
    const age = this.#clock.now() - checkedAt;
    return revision >= this.revision(owner) && age <= limits.manifestMaxAgeMs && age >= -limits.clockSkewMs;
  }

  async #ask({ owner, key, ask }: Lookup): Promise<CachedText> {
    const checked = { revision: this.revision(owner), checkedAt: this.#clock.now() };
    const copy = { ...checked, text: await ask() };
    this.take(owner, key, copy);
    return copy;
  }

  #keep(id: string, copy: CachedText): void {
    const before = this.#copies.get(id);
    if (before !== undefined) this.#chars -= charsOf(before);
    this.#copies.delete(id);
    this.#copies.set(id, copy);
    this.#chars += charsOf(copy);
    for (const [oldest, { text }] of this.#copies) {
      if (this.#copies.size <= limits.cachedDefinitions && this.#chars <= limits.cachedDefinitionChars) break;
      this.#copies.delete(oldest);
      this.#chars -= charsOf({ text });
    }
  }
}

/** The copy that was asked for later; the second one of equals. */
function newer(one: CachedText | null, other: CachedText | null): CachedText | null {
  if (one === null || other === null) return one ?? other;
  if (one.revision !== other.revision) return one.revision > other.revision ? one : other;
  return one.checkedAt > other.checkedAt ? one : other;
}

function keyOf(owner: string | null, key: string): string {
  return JSON.stringify([owner, key]);
}

function charsOf({ text }: Pick<CachedText, 'text'>): number {
  return text?.length ?? 0;
}

/** Removes the oldest entries beyond a size. */
function drop(map: Map<string, unknown>, size: number): void {
  for (const key of map.keys()) {
    if (map.size <= size) return;
    map.delete(key);
  }
}
