/**
 * Finds a small history that still fails: removes elements of arrays anywhere, gives members their usual values, and
 * then tries pairs of changes, as long as the predicate holds. Histories are plain data, so this works for stored ones too, and gets further
 * than the shrinking of fast-check, which leaves the choices of `oneof` as they are.
 */
import type { History } from './history.ts';
import { historySchema } from './stored.ts';
import { USUAL } from './usual.ts';

/** Bounds of one search. */
const MOST_SHRINK_MS = 60_000;
const MOST_SHRINK_RUNS = 5_000;
/** Bound of the pairs of changes that are tried on one history. */
const MOST_PAIRS = 1_500;

export interface Shrunk {
  readonly history: History;
  /** Histories that were run. */
  readonly runs: number;
  /** Whether no single step makes it smaller; otherwise a bound ended the search. */
  readonly isMinimal: boolean;
}

/**
 * @param fails whether a history has the failure; called with histories that are different from each other
 * @returns the smallest history that was found; the given one if nothing smaller fails
 */
export async function shrink(
  history: History,
  fails: (history: History) => Promise<boolean>,
  { mostMs = MOST_SHRINK_MS, mostRuns = MOST_SHRINK_RUNS } = {},
): Promise<Shrunk> {
  const end = performance.now() + mostMs;
  const tried = new Set([JSON.stringify(history)]);
  let smallest = history;
  let runs = 0;
  /** Tries the candidates until none is left. After a success, it continues at the same place with the new ones. */
  const pass = async (candidatesOf: Candidates): Promise<boolean> => {
    let hasShrunk = false;
    for (let place = 0, candidates = [...candidatesOf(smallest)]; place < candidates.length;) {
      const parsed = historySchema.safeParse(candidates[place]);
      place += 1;
      if (!parsed.success) continue;
      const text = JSON.stringify(parsed.data);
      if (tried.has(text)) continue;
      tried.add(text);
      if (runs >= mostRuns || performance.now() > end) return false;
      runs += 1;
      if (!(await fails(parsed.data))) continue;
      smallest = parsed.data;
      hasShrunk = true;
      candidates = [...candidatesOf(smallest)];
      place -= 1;
    }
    return hasShrunk;
  };
  // Without elements there are fewer members, so elements are removed first. Pairs are many, so they are last.
  const passes = [
    withoutElements,
    withUsualMembers,
    withSmallerNumbers,
    withoutPairs,
    withoutElementAndWithEarlierFault,
  ];
  for (let at = 0; at < passes.length;) {
    const candidatesOf = passes[at];
    at = candidatesOf !== undefined && (await pass(candidatesOf)) ? 0 : at + 1;
  }
  return { history: smallest, runs, isMinimal: runs < mostRuns && performance.now() <= end };
}

type Candidates = (history: unknown) => Iterable<unknown>;
type Change = (value: unknown, name: string) => Iterable<unknown>;

/** Each result of a change at one place of the data; outer places first. */
function* changed(value: unknown, change: Change, name = ''): Generator<unknown> {
  yield* change(value, name);
  if (Array.isArray(value)) {
    for (const [at, element] of value.entries()) {
      for (const other of changed(element, change, name)) yield value.with(at, other);
    }
  } else if (typeof value === 'object' && value !== null) {
    for (const [member, old] of Object.entries(value)) {
      for (const other of changed(old, change, member)) yield { ...value, [member]: other };
    }
  }
}

/** Without half of the elements of an array, without a quarter, and so on. */
const withoutElements: Candidates = (history) =>
  changed(history, function* (value) {
    if (!Array.isArray(value)) return;
    for (let size = value.length; size >= 1; size = Math.floor(size / 2)) {
      for (let from = 0; from < value.length; from += size) yield value.toSpliced(from, size);
    }
  });

/** With the usual values of all members of an object, then of one member. */
const withUsualMembers: Candidates = (history) =>
  changed(history, function* (value, name) {
    if (name === 'type') {
      if (value === 'text') yield 'message';
      if (value === 'bare') yield 'thought';
      return;
    }
    if (USUAL.has(name) && USUAL.get(name) !== value) yield USUAL.get(name);
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) {
      const usual = Object.entries(value).map(([member, old]) => [
        member,
        typeof old !== 'object' && USUAL.has(member) ? USUAL.get(member) : old,
      ]);
      yield Object.fromEntries(usual);
    }
  });

/** With a number that is nearer to the usual one, or rounder. */
const withSmallerNumbers: Candidates = (history) =>
  changed(history, function* (value, name) {
    const usual = USUAL.get(name) ?? 0;
    if (typeof value !== 'number' || typeof usual !== 'number' || value === usual) return;
    const nearer = [1_000, 100, 10, 1].map((step) => Math.trunc(value / step) * step);
    for (let distance = value - usual; Math.trunc(distance) !== 0; distance /= 2)
      nearer.push(value - Math.trunc(distance));
    yield* nearer.filter((number) => Math.abs(number - usual) < Math.abs(value - usual));
  });

/** Without two elements: where one sync more or less lets the history pass, for example. */
const withoutPairs: Candidates = (history) => pairs(history, withoutElements);

/** Without an element, and with a fault at an earlier call: a shorter history has fewer calls before the same moment. */
const withoutElementAndWithEarlierFault: Candidates = (history) =>
  pairs(history, (shorter) =>
    changed(shorter, function* (value, name) {
      if (typeof value !== 'number' || !['call', 'statement', 'sync'].includes(name)) return;
      for (let earlier = value - 1; earlier >= 1; earlier -= 1) yield earlier;
    }),
  );

/** Without an element, and then with another change. */
function* pairs(history: unknown, candidatesOf: Candidates): Iterable<unknown> {
  let count = 0;
  for (const shorter of withoutElements(history)) {
    for (const candidate of candidatesOf(shorter)) {
      count += 1;
      if (count > MOST_PAIRS) return;
      yield candidate;
    }
  }
}
