/** Matchers about runs: for `expect.extend(matchers)` of vitest, and for `assertRun(run)` without it. */
import { isDeepStrictEqual } from 'node:util';
import type { EventType } from '../src/domain/event.ts';
import type { JsonObject } from '../src/domain/json.ts';
import { nearestNames } from '../src/domain/nearest.ts';
import { describeRun, shown } from './describe-run.ts';
import type { TestAction, TestRun } from './test-run.ts';

/** A value in which only the given members must match; asymmetric matchers such as `expect.any(Number)` work. */
type Partially = unknown;

/** What `expect(run)` gets. `R`: what each matcher returns. */
export interface RunMatchers<R = void> {
  /** The run has completed. */
  toHaveCompleted(): R;
  /** The run has failed, with this code if one is given. */
  toHaveFailed(code?: string): R;
  /** The run waits for approvals or for the results of client tools. */
  toBeWaiting(): R;
  /** The answer contains this text, or matches the expression. */
  toHaveAnswered(text: string | RegExp): R;
  /** An action of this name or id has run, at least once with these parameters. */
  toHaveCalled(name: string, parameters?: Partially): R;
  /** Actions of this name have run this number of times. Attempts of one action count once. */
  toHaveCalledTimes(name: string, count: number): R;
  /** All these actions, by name or id, ran at one time. */
  toHaveRunInParallel(...names: string[]): R;
  /** Each of these actions, by name or id, ended before the next one started. */
  toHaveRunInOrder(...names: string[]): R;
  /** An event of this type occurred, at least once with this data. */
  toHaveEmitted(type: EventType, data?: Partially): R;
}

interface Result {
  readonly pass: boolean;
  readonly message: () => string;
}

type Matcher<Given extends unknown[]> = (run: TestRun, ...given: Given) => Result;

/** @param problem why it does not match; null: it matches */
function result(run: TestRun, expected: string, problem: string | null): Result {
  const message = (): string =>
    problem === null
      ? `Expected the run not to ${expected}, but it did.\n${describeRun(run)}`
      : `Expected the run to ${expected}, but ${problem}.\n${describeRun(run)}`;
  return { pass: problem === null, message };
}

export const matchers = {
  toHaveCompleted: (run) => result(run, 'complete', run.status === 'completed' ? null : statusOf(run)),

  toHaveFailed(run, code) {
    const expected = code === undefined ? 'fail' : `fail with the code "${code}"`;
    const isSame = run.status === 'failed' && (code === undefined || run.error?.code === code);
    return result(run, expected, isSame ? null : statusOf(run));
  },

  toBeWaiting: (run) => result(run, 'wait', run.status === 'waiting' ? null : statusOf(run)),

  toHaveAnswered(run, text) {
    const matches = typeof text === 'string' ? run.text.includes(text) : run.text.search(text) >= 0;
    const expected = typeof text === 'string' ? `answer with ${shown(text)}` : `answer with ${String(text)}`;
    return result(run, expected, matches ? null : `its answer is ${shown(run.text)}`);
  },

  toHaveCalled(run, name, parameters) {
    const calls = callsOf(run, name);
    const expected = `call "${name}"${parameters === undefined ? '' : ` with ${shown(parameters)}`}`;
    if (calls.length === 0) return result(run, expected, notCalled(run, name));
    if (parameters === undefined || calls.some((call) => matchesPart(call.parameters, parameters))) {
      return result(run, expected, null);
    }
    const given = calls.map((call) => shown(call.parameters)).join(', then ');
    return result(run, expected, `it called it with ${given}`);
  },

  toHaveCalledTimes(run, name, count) {
    const found = callsOf(run, name).length;
    return result(run, `call "${name}" ${times(count)}`, found === count ? null : `it did ${times(found)}`);
  },

  toHaveRunInParallel(run, ...names) {
    const spans = names.map((name) => spanOf(run, name));
    const expected = `run ${listOf(names)} in parallel`;
    const missing = names.find((_, at) => spans[at] === null);
    if (missing !== undefined) return result(run, expected, notCalled(run, missing));
    const known = spans.flatMap((span, at) => (span === null ? [] : [{ ...span, name: names[at] ?? '' }]));
    for (const first of known) {
      const later = known.find((other) => other.start > first.end);
      if (later !== undefined) return result(run, expected, `"${later.name}" started after the end of "${first.name}"`);
    }
    return result(run, expected, null);
  },

  toHaveRunInOrder(run, ...names) {
    const expected = `run ${listOf(names)} in this order`;
    let before: { readonly name: string; readonly end: number } | null = null;
    for (const name of names) {
      const span = spanOf(run, name);
      if (span === null) return result(run, expected, notCalled(run, name));
      if (before !== null && span.start < before.end) {
        return result(run, expected, `"${name}" started before the end of "${before.name}"`);
      }
      before = { name, end: span.end };
    }
    return result(run, expected, null);
  },

  toHaveEmitted(run, type, data) {
    const events = run.events.filter((event) => event.type === type);
    const expected = `emit ${type}${data === undefined ? '' : ` with ${shown(data)}`}`;
    if (events.length === 0) {
      const types = [...new Set(run.events.map((event) => event.type))];
      const [nearest] = nearestNames(type, types);
      return result(run, expected, `it did not${nearest === undefined ? '' : ` (it emitted ${nearest})`}`);
    }
    if (data === undefined || events.some((event) => matchesPart(event.data, data))) return result(run, expected, null);
    return result(run, expected, `its data was ${events.map((event) => shown(event.data)).join(', then ')}`);
  },
} satisfies { readonly [M in keyof RunMatchers]: Matcher<Parameters<RunMatchers[M]>> };

/** What actions of this name or id have run. */
function callsOf({ actions }: TestRun, name: string): TestAction[] {
  return actions.filter((action) => hasRun(action) && isCalled(action, name));
}

function isCalled({ name, id }: TestAction, wanted: string): boolean {
  return id === wanted || name === wanted || name?.split('.', 1)[0] === wanted;
}

/** Also of an equal action whose outcome was used again. */
function hasRun({ started_at: startedAt, status }: TestAction): boolean {
  return startedAt !== null || status === 'completed';
}

const ENDS: ReadonlySet<EventType> = new Set<EventType>([
  'action_completed',
  'action_failed',
  'action_cancelled',
  'action_skipped',
]);

/** From its first start to its end, as positions among the events of the run; null if it has not run. */
function spanOf({ events, actions }: TestRun, name: string): { readonly start: number; readonly end: number } | null {
  const action = actions.find((each) => hasRun(each) && isCalled(each, name));
  if (action === undefined) return null;
  const start = events.findIndex((event) => event.type === 'action_started' && event.action_id === action.id);
  const end = events.findIndex((event, at) => at > start && ENDS.has(event.type) && event.action_id === action.id);
  return { start, end: end < 0 ? Infinity : end };
}

/** Whether the expected members, and theirs, have these values. Arrays are compared as a whole. */
function matchesPart(actual: unknown, expected: unknown): boolean {
  if (isAsymmetric(expected)) return expected.asymmetricMatch(actual);
  if (!isPlain(expected)) return matchesWhole(actual, expected);
  if (!isPlain(actual)) return false;
  return Object.entries(expected).every(([key, value]) => matchesPart(actual[key], value));
}

function matchesWhole(actual: unknown, expected: unknown): boolean {
  if (!Array.isArray(expected)) return isDeepStrictEqual(actual, expected);
  if (!Array.isArray(actual) || actual.length !== expected.length) return false;
  return expected.every((item, at) => matchesPart(actual[at], item));
}

function isAsymmetric(value: unknown): value is { asymmetricMatch(actual: unknown): boolean } {
  return typeof value === 'object' && value !== null && 'asymmetricMatch' in value;
}

function isPlain(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function notCalled(run: TestRun, name: string): string {
  const known = [...new Set(run.actions.flatMap((action) => [action.name ?? [], action.id].flat()))];
  const declared = run.actions.find((action) => isCalled(action, name));
  if (declared !== undefined) return `"${name}" did not start: it is ${declared.status}`;
  const [nearest] = nearestNames(name, known);
  return `it called no "${name}"${nearest === undefined ? '' : `; did you mean "${nearest}"?`}`;
}

function statusOf({ status, error }: TestRun): string {
  return error === null ? `it is ${status}` : `it is ${status} with ${error.code}: ${error.message}`;
}

function times(count: number): string {
  return count === 1 ? 'once' : `${count} times`;
}

function listOf(names: readonly string[]): string {
  return names.map((name) => `"${name}"`).join(', ');
}
