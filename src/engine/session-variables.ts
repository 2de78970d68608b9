/** Session variables over the journal: read from memory, written through. */
import { EngineError } from '../domain/errors.ts';
import type { Json, JsonObject } from '../domain/json.ts';
import { limits } from '../domain/limits.ts';
import type { VariableStore } from '../domain/ports.ts';
import type { Journal } from '../journal/journal.ts';

export class SessionVariables implements VariableStore {
  readonly #journal: Journal;
  readonly #values: Map<string, Json>;

  constructor(journal: Journal) {
    this.#journal = journal;
    this.#values = journal.variables();
  }

  get(key: string): Json | undefined {
    return this.#values.get(key);
  }

  /** @throws EngineError `invalid_request` past `limits.variables` or `limits.variableBytes` */
  set(key: string, value: Json): void {
    checkSize(key, value);
    if (!this.#values.has(key) && this.#values.size >= limits.variables) {
      throw new EngineError('invalid_request', `A session holds at most ${limits.variables} variables`);
    }
    this.#values.set(key, value);
    this.#journal.setVariable(key, value);
  }

  delete(key: string): boolean {
    const existed = this.#values.delete(key);
    if (existed) this.#journal.deleteVariable(key);
    return existed;
  }

  entries(): readonly (readonly [string, Json])[] {
    return [...this.#values];
  }
}

/** @throws EngineError `invalid_request` for variables that a new session cannot begin with */
export function checkVariables(values: JsonObject): void {
  const entries = Object.entries(values);
  if (entries.length > limits.variables) {
    throw new EngineError('invalid_request', `A session holds at most ${limits.variables} variables`);
  }
  for (const [key, value] of entries) checkSize(key, value);
}

function checkSize(key: string, value: Json): void {
  const bytes = JSON.stringify(value).length;
  if (bytes <= limits.variableBytes) return;
  throw new EngineError(
    'invalid_request',
    `Variable "${key.slice(0, limits.excerptChars)}" has ${bytes} bytes of JSON, allowed are ${limits.variableBytes}`,
  );
}
