/** Suggests names that are similar to an unknown one (M3). */
import type { WorkMeter } from './work.ts';

/** Maximum number of names compared: one typing mistake must not be expensive in a huge catalogue. */
const COMPARED_NAMES = 500;
const COMPARED_CHARS = 48;
const MOST_EDITS = 6;
const SUGGESTIONS = 3;

/** Remaining work for suggestions in the current operation; null outside of one. */
let budget: WorkMeter | null = null;

/**
 * Runs `work` with a limit for all suggestions made in it; past the limit there are none. A folder of manifests may
 * contain a hundred thousand mistakes.
 *
 * @param meter charged for the suggestions; several parts of one operation share it
 */
export function withSuggestions<T>(meter: WorkMeter, work: () => T): T {
  const outer = budget;
  budget = meter;
  try {
    return work();
  } finally {
    budget = outer;
  }
}

/**
 * Up to three names nearest to `wanted`, best first: by edits (insert, delete, replace, swap of adjacent characters),
 * ignoring case and `-`/`_`. A name that contains the other one, or is its plural, counts as near.
 */
export function nearestNames(wanted: string, names: readonly string[] | (() => readonly string[])): string[] {
  const target = fold(wanted);
  const allowed = Math.min(MOST_EDITS, Math.max(2, Math.floor(target.length / 3)));
  if (budget?.exceeded === true) return [];
  const compared = (typeof names === 'function' ? names() : names).slice(0, COMPARED_NAMES);
  try {
    budget?.charge(compared.length * (1 + target.length * (2 * MOST_EDITS + 1)));
  } catch {
    return [];
  }
  return compared
    .map((name) => ({ name, distance: distance(target, fold(name), allowed) }))
    .filter((entry) => entry.distance <= allowed)
    .sort((a, b) => a.distance - b.distance || (a.name < b.name ? -1 : 1))
    .slice(0, SUGGESTIONS)
    .map((entry) => entry.name);
}

function fold(name: string): string {
  return name.slice(0, COMPARED_CHARS).toLowerCase().replaceAll('-', '_');
}

function distance(a: string, b: string, allowed: number): number {
  if (a === b) return 0;
  if (a.length >= 3 && b.length >= 3 && (a.includes(b) || b.includes(a) || singular(a) === singular(b))) return 1;
  if (Math.abs(a.length - b.length) > allowed) return allowed + 1;
  return editDistance(a, b, allowed);
}

function singular(name: string): string {
  return name.replace(/ies$/, 'y').replace(/s$/, '');
}

/** Optimal string alignment distance, bounded: searches only where the result can be at most `most`. */
function editDistance(a: string, b: string, most: number): number {
  const beyond = most + 1;
  let beforeLast: number[] = [];
  let last = Array.from({ length: b.length + 1 }, (_, column) => column);
  for (let row = 1; row <= a.length; row += 1) {
    const current = [row];
    let least = row;
    for (let column = 1; column < row - most; column += 1) current.push(beyond);
    for (let column = Math.max(1, row - most); column <= Math.min(b.length, row + most); column += 1) {
      const same = a[row - 1] === b[column - 1];
      let best = Math.min(
        (last[column] ?? beyond) + 1,
        (current[column - 1] ?? beyond) + 1,
        (last[column - 1] ?? beyond) + (same ? 0 : 1),
      );
      if (row > 1 && column > 1 && a[row - 1] === b[column - 2] && a[row - 2] === b[column - 1]) {
        best = Math.min(best, (beforeLast[column - 2] ?? beyond) + 1);
      }
      current.push(best);
      least = Math.min(least, best);
    }
    if (least > most) return beyond;
    beforeLast = last;
    last = current;
  }
  return last[b.length] ?? beyond;
}
