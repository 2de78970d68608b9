/** From a failing history to one that can be read, printed and stored. */
import { writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { History } from './history.ts';
import { INVARIANTS } from './invariants/all.ts';
import { Thread } from './pool.ts';
import { historyText, violationsText } from './print/print.ts';
import { shrink } from './shrink.ts';
import { storedText } from './stored.ts';

/** Smaller histories end sooner, also if the thread is blocked. */
const MOST_SILENCE_MS = 10_000;

export interface Minimal {
  readonly history: History;
  /** What it violates, what it does and what happened. */
  readonly text: string;
  /** Histories that were run to find it. */
  readonly runs: number;
  readonly isMinimal: boolean;
}

/** Finds the smallest history that violates the same invariant. */
export async function minimalOf(
  history: History,
  invariant: string,
  bounds: { mostMs?: number } = {},
): Promise<Minimal> {
  await using thread = new Thread(MOST_SILENCE_MS);
  const fails = async (candidate: History): Promise<boolean> =>
    (await thread.run(candidate)).violations.some((violation) => violation.invariant === invariant);
  const shrunk = await shrink(history, fails, bounds);
  const { violations, seen } = await thread.run(shrunk.history, { isDetailed: true });
  return { ...shrunk, text: `${violationsText(violations)}\n\n${historyText(shrunk.history, seen)}` };
}

/**
 * Writes a failing history to the system's folder of temporary files, in the form of histories/.
 *
 * @returns the path
 */
export function storeFailure(history: History, seed: number | null, invariant: string): string {
  const name = INVARIANTS.find((other) => other.name === invariant)?.holds ?? invariant;
  const words = [seed === null ? 'history' : `seed-${seed}`, ...invariant.split(/\W+/)];
  const path = join(tmpdir(), `cortex-simulation-${words.join('-')}.json`);
  writeFileSync(path, storedText({ name, seed, history }));
  return path;
}
