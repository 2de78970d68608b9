/** The names that a mistyped one was most likely meant to be (M3). */

/** Names compared at most: a huge catalogue must not make one typing mistake expensive. */
const COMPARED_NAMES = 2_000;
const SUGGESTIONS = 3;

/**
 * The up to three nearest of `names`, best first: by edits (insert, delete, replace, swap of
 * neighbours), letter case and `-`/`_` ignored; a name that contains the other counts as near.
 */
export function nearestNames(wanted: string, names: readonly string[]): string[] {
  const target = fold(wanted);
  const allowed = Math.max(2, Math.floor(target.length / 3));
  return names
    .slice(0, COMPARED_NAMES)
    .map((name) => ({ name, distance: distance(target, fold(name), allowed) }))
    .filter((entry) => entry.distance <= allowed)
    .sort((a, b) => a.distance - b.distance || (a.name < b.name ? -1 : 1))
    .slice(0, SUGGESTIONS)
    .map((entry) => entry.name);
}

function fold(name: string): string {
  return name.slice(0, 64).toLowerCase().replaceAll('-', '_');
}

function distance(a: string, b: string, allowed: number): number {
  if (a === b) return 0;
  if (a.length >= 3 && b.length >= 3 && (a.includes(b) || b.includes(a))) return 1;
  if (Math.abs(a.length - b.length) > allowed) return allowed + 1;
  return editDistance(a, b);
}

/** Optimal string alignment: the usual edits plus swaps of neighbours. */
function editDistance(a: string, b: string): number {
  let beforeLast: number[] = [];
  let last = Array.from({ length: b.length + 1 }, (_, column) => column);
  for (let row = 1; row <= a.length; row += 1) {
    const current = [row];
    for (let column = 1; column <= b.length; column += 1) {
      const same = a[row - 1] === b[column - 1];
      let best = Math.min(
        (last[column] ?? 0) + 1,
        (current[column - 1] ?? 0) + 1,
        (last[column - 1] ?? 0) + (same ? 0 : 1),
      );
      if (row > 1 && column > 1 && a[row - 1] === b[column - 2] && a[row - 2] === b[column - 1]) {
        best = Math.min(best, (beforeLast[column - 2] ?? 0) + 1);
      }
      current.push(best);
    }
    beforeLast = last;
    last = current;
  }
  return last[b.length] ?? 0;
}
