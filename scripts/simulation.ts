/**
 * `npm run test:simulation [-- count [seed]]`: runs this many histories of simulated sessions on all cores, and prints the
 * smallest history that violates each broken invariant. `npm run test:simulation -- file.json` runs a stored history.
 */
import { randomInt } from 'node:crypto';
import { historyOf } from '../test/simulation/arbitrary.ts';
import { minimalOf, storeFailure } from '../test/simulation/failure.ts';
import { checkSeeds, Thread } from '../test/simulation/pool.ts';
import type { Failure } from '../test/simulation/pool.ts';
import { historyText, violationsText } from '../test/simulation/print/print.ts';
import { readHistory } from '../test/simulation/stored.ts';
import type { StoredHistory } from '../test/simulation/stored.ts';
import { ProgressLine } from '../cli/terminal/progress.ts';

const COMMAND = 'npm run test:simulation --';
/** The search ends when so many different invariants have failed. */
const MOST_INVARIANTS = 5;
const SHOWN_CHARS = 160;
/** Seeds of fast-check are 32-bit integers. */
const MOST_SEED = 2 ** 31 - 1;

const args = process.argv.slice(2);
const [first = '10000', second = String(randomInt(2 ** 30))] = args;
const areNumbers = [first, second].every((text) => /^\d{1,10}$/.test(text));
const [count, seed] = [Number(first), Number(second)];
if (args.length === 1 && first.endsWith('.json')) process.exit(await runFile(first));
if (args.length > 2 || !areNumbers || count === 0 || seed + count - 1 > MOST_SEED) {
  console.error(
    `usage: ${COMMAND} [count [seed]], both integers: the seeds from seed to seed + count - 1, at most ${MOST_SEED}\n` +
      `       ${COMMAND} <file.json>`,
  );
  process.exit(2);
}
process.exit(await runSeeds());

async function runSeeds(): Promise<number> {
  console.log(`${historiesText(count)} from seed ${seed} (again: ${COMMAND} ${count} ${seed})`);
  const startedAt = performance.now();
  const line = new ProgressLine(startedAt);
  const onDone = (done: number, failed: number): void =>
    line.show(() => {
      const seconds = (performance.now() - startedAt) / 1_000;
      const perSecond = done / seconds;
      const left = timeText((count - done) / perSecond);
      return `${done} of ${count}, ${perSecond.toFixed(0)} per second, ${timeText(seconds)} so far, ${left} left, ${failed} failed`;
    });
  const onFailure = ({ invariant, seed: failing, what }: Failure): void => {
    line.clear();
    console.log(`seed ${failing} violates "${invariant}": ${what.split('\n')[0]?.slice(0, SHOWN_CHARS)}`);
  };
  const stop = new AbortController();
  // The first Ctrl+C ends the search and reports what it found; the second one ends the command.
  process.once('SIGINT', () => stop.abort());
  const { signal } = stop;
  const options = { first: seed, count, mostInvariants: MOST_INVARIANTS, onDone, onFailure, signal };
  const { done, failed, failures } = await checkSeeds(options);
  line.clear();
  for (const failure of failures) await report(failure);
  if (done < count && !signal.aborted)
    console.log(`The search ended early, because ${failures.length} different invariants were violated.`);
  const seconds = (performance.now() - startedAt) / 1_000;
  console.log(`${done} of ${historiesText(count)}, ${failed} failed, in ${timeText(seconds)}`);
  if (count === 1 && failed === 0) return await show({ history: historyOf(seed) });
  return failed === 0 ? 0 : 1;
}

async function report({ invariant, seed, count }: Failure): Promise<void> {
  console.log(
    `\n=== ${invariant}: ${historiesText(count)} failed, the first with seed ${seed}. Searching for a smaller one …`,
  );
  const { history, text, runs, isMinimal } = await minimalOf(historyOf(seed), invariant);
  const path = storeFailure(history, seed, invariant);
  console.log(
    `\n${text}\n\n` +
      `Shrunk in ${runs} runs${isMinimal ? '' : ', until a bound was reached'}.\n` +
      `The whole history:   ${COMMAND} 1 ${seed}\n` +
      `The shrunk history:  ${COMMAND} ${path}\n` +
      `As a test: copy this file to test/simulation/histories/, and say in "name" what holds.\n`,
  );
}

async function runFile(path: string): Promise<number> {
  let stored: StoredHistory;
  try {
    stored = readHistory(path);
  } catch (fault) {
    console.error(fault instanceof Error ? fault.message : String(fault));
    return 2;
  }
  console.log(stored.name);
  return await show(stored);
}

async function show({ history }: Pick<StoredHistory, 'history'>): Promise<number> {
  await using thread = new Thread();
  const { violations, seen } = await thread.run(history, { isDetailed: true });
  console.log(violations.length === 0 ? 'No invariant is violated.' : violationsText(violations));
  console.log(`\n${historyText(history, seen)}`);
  return violations.length === 0 ? 0 : 1;
}

function historiesText(count: number): string {
  return `${count} ${count === 1 ? 'history' : 'histories'}`;
}

function timeText(seconds: number): string {
  if (seconds < 60) return `${seconds.toFixed(0)} s`;
  return seconds < 3_600 ? `${(seconds / 60).toFixed(1)} min` : `${(seconds / 3_600).toFixed(1)} h`;
}
