/** Facts about a user that the sessions of one agent share: their rules, and what a prompt shows of them (C10). */
import type { JsonObject } from './json.ts';
import { limits } from './limits.ts';

/** The id of the feed that shows them, and its source. */
export const MEMORY_FEED = 'memory';
export const MEMORY_SOURCE = 'user_memory';

/** Keys are names that a reference can use: `$memory.KEY` (P12). They begin with a letter. */
export const FACT_KEY = new RegExp(`^[A-Za-z]\\w{0,${limits.factKeyChars - 1}}$`);

/** After "must be". */
export const FACT_KEY_RULE = `a letter, then letters, digits and _, at most ${limits.factKeyChars} characters`;
export const FACT_VALUE_RULE = `text of 1 to ${limits.factValueChars} characters`;

export interface Fact {
  readonly key: string;
  /** One line. */
  readonly value: string;
  /** Epoch milliseconds. */
  readonly updatedAt: number;
  /** The session and the run that wrote it; null: it was written by API. */
  readonly sessionId: string | null;
  readonly runId: string | null;
}

/** `memory.facts` of an agent: how many facts it keeps about each user, and their size in the prompt. */
export interface FactsPolicy {
  readonly max: number;
  readonly maxTokens: number;
}

/** Why a session has no facts although its agent keeps some. */
export type WithoutFacts = 'no_user' | 'sub_agent';

/**
 * The value of a fact as it is stored: one line, without invisible characters that spell text (U+E0000 to U+E007F).
 *
 * @returns null for a value that is blank or too long
 */
export function factText(value: string): string | null {
  // The cost of the expressions is bounded: a valid value has fewer white space characters than this.
  if (value.length > limits.factValueChars * 4) return null;
  const text = value
    .toWellFormed()
    .replace(/[\u{E0000}-\u{E007F}]/gu, '')
    .replace(/[\p{Cc}\p{Z}]+/gu, ' ')
    .trim();
  return text === '' || text.length > limits.factValueChars ? null : text;
}

/** Characters of all facts in the prompt, about four for each token. */
export function factsChars({ maxTokens }: Pick<FactsPolicy, 'maxTokens'>): number {
  return maxTokens * 4;
}

/** Characters that a fact takes in the JSON of all facts. */
export function factChars({ key, value }: Pick<Fact, 'key' | 'value'>): number {
  return JSON.stringify(key).length + JSON.stringify(value).length + 2;
}

/**
 * The facts as one object, by key. If they exceed the size, which can be only after it was reduced, the latest ones count.
 */
export function factsValue(facts: readonly Fact[], maxChars: number): JsonObject {
  const shown: [string, string][] = [];
  let chars = 2;
  for (const fact of facts.toSorted((one, other) => other.updatedAt - one.updatedAt)) {
    const value = FACT_KEY.test(fact.key) ? factText(fact.value) : null;
    if (value === null) continue;
    chars += factChars({ key: fact.key, value });
    if (chars > maxChars) break;
    shown.push([fact.key, value]);
  }
  // fromEntries defines own properties, whatever their names are.
  return Object.fromEntries(shown.toSorted(([one], [other]) => (one < other ? -1 : 1)));
}
