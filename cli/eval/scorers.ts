/** Scorers that need no model: whether a run is as a case expects (O3). Each is one entry of the table. */
import { compilePattern } from '../../src/bounded/pattern.ts';
import { exceededLimit, isJsonObject, parseJson } from '../../src/domain/json.ts';
import type { Json, JsonObject } from '../../src/domain/json.ts';
import { limits } from '../../src/domain/limits.ts';
import { WorkMeter } from '../../src/domain/work.ts';
import { evaluateCondition } from '../../src/bounded/conditions/condition.ts';
import { cutText } from './cut-text.ts';
import type { Expectation } from './dataset.ts';

/** A run as scorers see it: the document of the API. */
export interface ScoredRun {
  readonly response: string;
  readonly document: JsonObject;
}

/** Steps of one scorer: the files are the user's own, so this only ends mistakes. */
const STEPS = 50_000_000;
const SHOWN_CHARS = 200;

type Scorer<Given> = (given: Given, run: ScoredRun) => string | null;

/** Each returns null if the run is as expected, else the reason why not. */
const SCORERS = {
  exact: ((expected: string, { response }) =>
    response.trim() === expected.trim() ? null : `the answer is ${quoted(response)}`) satisfies Scorer<string>,
  contains: ((part: string, { response }) =>
    response.includes(part)
      ? null
      : `the answer does not contain ${quoted(part)}: ${quoted(response)}`) satisfies Scorer<string>,
  matches: ((pattern: string, { response }) => {
    const meter = new WorkMeter(STEPS);
    const compiled = compilePattern(pattern, meter);
    if (!compiled.ok) return `the pattern ${quoted(pattern)} ${compiled.reason}`;
    return compiled.pattern.test(response, meter) ? null : `the answer does not match ${pattern}: ${quoted(response)}`;
  }) satisfies Scorer<string>,
  json: ((expected: Json, { response }) => {
    // Such a value could not be quoted.
    if (exceededLimit(response, { depth: limits.jsonDepth }) !== null) {
      return `the answer is nested deeper than ${limits.jsonDepth} levels: ${quoted(response)}`;
    }
    const found = parsed(response);
    if (found === undefined) return `the answer is not JSON: ${quoted(response)}`;
    const place = firstDifference(expected, found, 'the answer');
    return place === null ? null : place;
  }) satisfies Scorer<Json>,
  cel: ((condition: string, { document }) => {
    const result = evaluateCondition(condition, document, new WorkMeter(STEPS));
    if (!result.ok) return `the condition cannot be evaluated: ${result.message}`;
    return result.value ? null : `the condition is false: ${condition}`;
  }) satisfies Scorer<string>,
} as const;

/**
 * @param expectation without a judge
 * @returns null, or why the run is not as expected
 */
export function score(expectation: Omit<Expectation, 'judge'>, run: ScoredRun): string | null {
  const [[name, given] = ['', null]] = Object.entries(expectation);
  const scorer = SCORERS[name as keyof typeof SCORERS] as Scorer<Json> | undefined;
  return scorer === undefined ? `no scorer is called "${name}"` : scorer(given, run);
}

/** A fenced block counts as its content. */
function parsed(text: string): Json | undefined {
  return parseJson(text.replace(/^\s*```(?:json)?\n([^]*?)\n```\s*$/, '$1'));
}

/** Objects may have further members; everything else must be equal. */
function firstDifference(expected: Json, found: Json | undefined, place: string): string | null {
  if (isJsonObject(expected)) {
    if (!isJsonObject(found ?? null)) return `${place} is ${quoted(JSON.stringify(found ?? null))}, not an object`;
    const members = found as JsonObject;
    for (const [name, value] of Object.entries(expected)) {
      const member = `${place}.${name}`;
      // Not what every object inherits, such as `constructor`.
      if (!Object.hasOwn(members, name)) return `${member} is missing`;
      const issue = firstDifference(value, members[name], member);
      if (issue !== null) return issue;
    }
    return null;
  }
  if (Array.isArray(expected)) {
    if (!Array.isArray(found) || found.length !== expected.length) {
      return `${place} is not a list of ${expected.length} items`;
    }
    return (
      expected.map((item, at) => firstDifference(item, found[at], `${place}[${at}]`)).find((one) => one !== null) ??
      null
    );
  }
  return expected === found
    ? null
    : `${place} is ${quoted(JSON.stringify(found ?? null))}, not ${JSON.stringify(expected)}`;
}

function quoted(text: string): string {
  return JSON.stringify(text.length > SHOWN_CHARS ? `${cutText(text, SHOWN_CHARS)}…` : text);
}
