/** Runs histories against a patched engine, in a process of its own. */
import { fork } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { Progress } from './child.ts';
import type { Patch } from './patch.ts';

/** The unpatched modules are compiled once for all processes; the cache compares their texts. */
const COMPILED = fileURLToPath(new URL('../../../node_modules/.cache/simulation', import.meta.url));

/** So many histories notice every mistake. */
export const MOST_HISTORIES = 9_000;
/** Processes at once. */
const MOST_PROCESSES = 2;
/** A history takes about 20 ms, and the start about a second. A patched engine that takes this long hangs. */
const HANGS_AFTER_MS = 180_000;

/** The first history in which the patch's invariant is violated. */
export interface Found {
  readonly seed: number;
  readonly what: string;
}

let running = 0;
const waiting: (() => void)[] = [];

/** The seeds that record.ts has found, by the names of the patches. They save the search as long as they are right. */
const SEEDS = JSON.parse(readFileSync(new URL('seeds.json', import.meta.url), 'utf8')) as Record<string, number>;

/**
 * @param histories at most this many, from seed 1; the one whose seed is known comes first
 * @throws if the invariant notices nothing, if the patch does not fit, or if the engine hangs
 */
export async function findViolation(patch: Patch, histories: number): Promise<Found> {
  if (running >= MOST_PROCESSES) await new Promise<void>((resolve) => void waiting.push(resolve));
  else running += 1;
  try {
    return await search(patch, histories);
  } finally {
    const next = waiting.shift();
    if (next === undefined) running -= 1;
    else next();
  }
}

async function search(patch: Patch, histories: number): Promise<Found> {
  const child = fork(
    fileURLToPath(new URL('child.ts', import.meta.url)),
    [patch.name, String(histories), String(SEEDS[patch.name] ?? 1)],
    {
      execArgv: [],
      env: { ...process.env, NODE_COMPILE_CACHE: COMPILED },
      stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
    },
  );
  const { promise, resolve, reject } = Promise.withResolvers<Found>();
  let seed = 0;
  let errors = '';
  const hangs = setTimeout(() => {
    child.kill('SIGKILL');
    reject(new Error(`History ${seed} did not end within ${HANGS_AFTER_MS / 1_000} s with the patch "${patch.name}"`));
  }, HANGS_AFTER_MS);
  child.stderr?.on('data', (text: Buffer) => (errors += text.toString()));
  child.on('message', (message) => {
    const progress = message as Progress;
    switch (progress.type) {
      case 'history':
        seed = progress.seed;
        hangs.refresh();
        return;
      case 'found':
        return resolve({ seed: progress.seed, what: progress.what });
      case 'missed':
        return reject(missed(patch, histories, progress.others));
    }
  });
  child.on('error', reject);
  child.on('exit', (code, signal) => {
    clearTimeout(hangs);
    reject(
      new Error(`The process of the patch "${patch.name}" ended with ${signal ?? code} at history ${seed}\n${errors}`),
    );
  });
  return await promise;
}

function missed(patch: Patch, histories: number, others: Readonly<Record<string, string>>): Error {
  const list = Object.entries(others).map(([invariant, what]) => `\n  ${invariant}: ${what}`);
  const noticed = list.length === 0 ? 'Nothing noticed it.' : `Noticed by:${list.join('')}`;
  return new Error(
    `"${patch.invariant}" did not notice the patch "${patch.name}" in ${histories} histories. ${noticed}`,
  );
}
