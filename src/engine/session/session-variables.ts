/**
 * Session variables over the journal: cached in memory, written through. Those of other branches are in memory only: their
 * changes are events (C4).
 *
 * Past `limits.variablesBytes` nothing may grow; a session that was larger before the limit existed keeps its
 * variables.
 */
import { EngineError } from '../../domain/errors.ts';
import type { Json, JsonObject } from '../../domain/json.ts';
import { limits } from '../../domain/limits.ts';
import type { VariableStore } from '../../domain/ports/session-stores.ts';
import type { Journal } from '../../journal/journal.ts';
import type { Stored } from '../../journal/variable-table.ts';

const encoder = new TextEncoder();

/** A variable as read, or already parsed. */
type Variable = { readonly bytes: number } & ({ readonly json: string } | { readonly value: Json });

export class SessionVariables implements VariableStore {
  readonly #journal: Journal;
  readonly #known: Map<string, Variable>;
  #allBytes = 0;
  #isDetached = false;

  /** @param known of another branch; default: the current ones */
  constructor(journal: Journal, known: Stored | null = null) {
    this.#journal = journal;
    this.#known = known ?? journal.variables.all();
    this.#isDetached = known !== null;
    for (const { bytes } of this.#known.values()) this.#allBytes += bytes;
  }

  /** From now on, changes are not written: the session continues with other variables. */
  detach(): void {
    this.#isDetached = true;
  }

  get(key: string): Json | undefined {
    const known = this.#known.get(key);
    if (known === undefined) return undefined;
    if ('value' in known) return known.value;
    // Parsed on demand: parsing all of them takes long.
    const value = JSON.parse(known.json) as Json;
    this.#known.set(key, { value, bytes: known.bytes });
    return value;
  }

  /**
   * @throws EngineError `invalid_request` past `limits.variables` or `limits.variableBytes`; `variables_quota` past
   *   `limits.variablesBytes`
   */
  set(key: string, value: Json): void {
    const bytes = checkedBytes(key, value);
    if (!this.#known.has(key) && this.#known.size >= limits.variables) {
      throw new EngineError('invalid_request', `A session may have at most ${limits.variables} variables`);
    }
    const growth = bytes - (this.#known.get(key)?.bytes ?? 0);
    if (growth > 0 && this.#allBytes + growth > limits.variablesBytes) throw tooMuch(key, this.#allBytes + growth);
    // First: what cannot be written is not changed.
    if (!this.#isDetached) this.#journal.variables.set(key, value);
    this.#journal.whenWritten(() => {
      this.#known.set(key, { value, bytes });
      this.#allBytes += growth;
    });
  }

  delete(key: string): boolean {
    const known = this.#known.get(key);
    if (known === undefined) return false;
    if (!this.#isDetached) this.#journal.variables.delete(key);
    this.#journal.whenWritten(() => {
      this.#known.delete(key);
      this.#allBytes -= known.bytes;
    });
    return true;
  }

  entries(): readonly (readonly [string, Json])[] {
    return [...this.#known.keys()].map((key) => [key, this.get(key) ?? null]);
  }

  /** All current variables; each is encoded as JSON on demand. */
  snapshot(): VariablesSnapshot {
    return [...this.#known].map(([key, known]) => [
      key,
      () => ('json' in known ? known.json : JSON.stringify(known.value)),
    ]);
  }
}

/** The variables of a run's branch: the current ones, as long as the session continues this branch. */
export class RunVariables implements VariableStore {
  /** Replaced when the session continues another branch, or this one again. */
  store: SessionVariables;

  constructor(store: SessionVariables) {
    this.store = store;
  }

  get(key: string): Json | undefined {
    return this.store.get(key);
  }

  set(key: string, value: Json): void {
    this.store.set(key, value);
  }

  delete(key: string): boolean {
    return this.store.delete(key);
  }

  entries(): readonly (readonly [string, Json])[] {
    return this.store.entries();
  }
}

/** Names, with functions that return the value as JSON. */
export type VariablesSnapshot = readonly (readonly [name: string, json: () => string])[];

/** @throws EngineError `invalid_request`, `variables_quota` for invalid initial variables of a new session */
export function checkVariables(values: JsonObject): void {
  const entries = Object.entries(values);
  if (entries.length > limits.variables) {
    throw new EngineError('invalid_request', `A session may have at most ${limits.variables} variables`);
  }
  let allBytes = 0;
  for (const [key, value] of entries) {
    allBytes += checkedBytes(key, value);
    if (allBytes > limits.variablesBytes) throw tooMuch(key, allBytes);
  }
}

/** Size of a variable in bytes; throws if it exceeds the limit for one. */
function checkedBytes(key: string, value: Json): number {
  const json = JSON.stringify(value);
  if (json.length <= limits.variableBytes) return encoder.encode(key).length + encoder.encode(json).length;
  throw new EngineError(
    'invalid_request',
    `Variable "${key.slice(0, limits.excerptChars)}" has ${json.length} bytes of JSON (allowed: ${limits.variableBytes})`,
  );
}

function tooMuch(key: string, bytes: number): EngineError {
  const named = key.slice(0, limits.excerptChars);
  return new EngineError(
    'variables_quota',
    `With "${named}" the variables of this session would have ${bytes} bytes in total (allowed: ${limits.variablesBytes})`,
  );
}
