/**
 * Session variables over the journal: read from memory, written through.
 *
 * Past `limits.variablesBytes` nothing grows any more; a session that held more before there was that limit keeps it.
 */
import { EngineError } from '../domain/errors.ts';
import type { Json, JsonObject } from '../domain/json.ts';
import { limits } from '../domain/limits.ts';
import type { VariableStore } from '../domain/ports.ts';
import type { Journal } from '../journal/journal.ts';

const encoder = new TextEncoder();

export class SessionVariables implements VariableStore {
  readonly #journal: Journal;
  readonly #values: Map<string, Json>;
  readonly #bytes: Map<string, number>;
  #allBytes = 0;

  constructor(journal: Journal) {
    this.#journal = journal;
    this.#values = journal.variables();
    this.#bytes = journal.variableBytes();
    for (const bytes of this.#bytes.values()) this.#allBytes += bytes;
  }

  get(key: string): Json | undefined {
    return this.#values.get(key);
  }

  /**
   * @throws EngineError `invalid_request` past `limits.variables` or `limits.variableBytes`; `variables_quota` past
   *   `limits.variablesBytes`
   */
  set(key: string, value: Json): void {
    const bytes = checkedBytes(key, value);
    if (!this.#values.has(key) && this.#values.size >= limits.variables) {
      throw new EngineError('invalid_request', `A session holds at most ${limits.variables} variables`);
    }
    const growth = bytes - (this.#bytes.get(key) ?? 0);
    if (growth > 0 && this.#allBytes + growth > limits.variablesBytes) throw tooMuch(key, this.#allBytes + growth);
    this.#values.set(key, value);
    this.#bytes.set(key, bytes);
    this.#allBytes += growth;
    this.#journal.setVariable(key, value);
  }

  delete(key: string): boolean {
    const existed = this.#values.delete(key);
    if (!existed) return false;
    this.#allBytes -= this.#bytes.get(key) ?? 0;
    this.#bytes.delete(key);
    this.#journal.deleteVariable(key);
    return true;
  }

  entries(): readonly (readonly [string, Json])[] {
    return [...this.#values];
  }
}

/** @throws EngineError `invalid_request`, `variables_quota` for variables that a new session cannot begin with */
export function checkVariables(values: JsonObject): void {
  const entries = Object.entries(values);
  if (entries.length > limits.variables) {
    throw new EngineError('invalid_request', `A session holds at most ${limits.variables} variables`);
  }
  let allBytes = 0;
  for (const [key, value] of entries) {
    allBytes += checkedBytes(key, value);
    if (allBytes > limits.variablesBytes) throw tooMuch(key, allBytes);
  }
}

/** What a variable takes up; throws where that is too much for one. */
function checkedBytes(key: string, value: Json): number {
  const json = JSON.stringify(value);
  if (json.length <= limits.variableBytes) return encoder.encode(key).length + encoder.encode(json).length;
  throw new EngineError(
    'invalid_request',
    `Variable "${key.slice(0, limits.excerptChars)}" has ${json.length} bytes of JSON, allowed are ${limits.variableBytes}`,
  );
}

function tooMuch(key: string, bytes: number): EngineError {
  const named = key.slice(0, limits.excerptChars);
  return new EngineError(
    'variables_quota',
    `With "${named}" the variables of this session have ${bytes} bytes, allowed are ${limits.variablesBytes} together`,
  );
}
