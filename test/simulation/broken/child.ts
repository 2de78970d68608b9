/**
 * The process of one patched engine: runs histories until the patch's invariant notices it. Arguments: the patch's name, the
 * most histories, and the seed of the one that is tried first.
 */
import { applyPatch } from './apply-patch.ts';
import { PATCHES } from './patches.ts';

/** A message to the parent: a history begins, or the search is over. */
export type Progress =
  | { readonly type: 'history'; readonly seed: number }
  | { readonly type: 'found'; readonly seed: number; readonly what: string }
  /** `others`: what other invariants have noticed, each with its first seed. */
  | { readonly type: 'missed'; readonly others: Readonly<Record<string, string>> };

const [, , name, histories, first] = process.argv;
const patch = PATCHES.find((candidate) => candidate.name === name);
if (patch === undefined) throw new Error(`Unknown patch "${name}"`);

const unhandled: unknown[] = [];
process.on('unhandledRejection', (fault) => {
  // The work of a host that has ended.
  if (!(fault instanceof Error) || fault.name !== 'HostGone') unhandled.push(fault);
});

applyPatch(patch);
// Imported after the patch, which does not affect modules that are loaded already.
const { checkHistory } = await import('../check.ts');
const { historyOf } = await import('../arbitrary.ts');
const { exportingHistoryOf } = await import('../exporting.ts');
const { fleetHistoryOf } = await import('../fleet.ts');
const historyOfSeed =
  patch.exportsTraces === true ? exportingHistoryOf : patch.losesRunners === true ? fleetHistoryOf : historyOf;

report(await search(patch.invariant, Number(histories), Number(first)));
process.disconnect();

async function search(invariant: string, most: number, first: number): Promise<Progress> {
  const others: Record<string, string> = {};
  for (let at = 0; at < most; at += 1) {
    const seed = at === 0 ? first : at <= first - 1 ? at : at + 1;
    report({ type: 'history', seed });
    const { violations } = await checkHistory(historyOfSeed(seed));
    const found = violations.find((violation) => violation.invariant === invariant);
    if (found !== undefined) return { type: 'found', seed, what: found.what };
    for (const { invariant: other, what } of violations) others[other] ??= `history ${seed}: ${what}`;
    for (const fault of unhandled.splice(0)) others['unhandled rejection'] ??= `history ${seed}: ${String(fault)}`;
  }
  return { type: 'missed', others };
}

function report(progress: Progress): void {
  process.send?.(progress);
}
