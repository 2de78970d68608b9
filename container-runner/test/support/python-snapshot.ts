/**
 * One snapshot of the embedded Python for all test files. Creating one takes seconds of processor time, and every runner
 * with a new state folder would create its own.
 */
import { execFile } from 'node:child_process';
import { copyFileSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const FOLDER = 'CORTEX_TEST_SNAPSHOT';

/** Global setup of vitest: creates the snapshot, unless another project has. */
export async function setup(): Promise<() => void> {
  if (process.env[FOLDER] !== undefined) return () => undefined;
  const folder = mkdtempSync(path.join(os.tmpdir(), 'cortex-snapshot-'));
  // In a separate process, because vitest does not resolve the packages as Node does.
  const make = fileURLToPath(new URL('make-snapshot.ts', import.meta.url));
  await promisify(execFile)(process.execPath, [make, folder]);
  process.env[FOLDER] = path.join(folder, 'runner');
  return () => rmSync(folder, { recursive: true, force: true });
}

/** Copies the snapshot into this state folder, unless there is one. @returns `stateDir` */
export function withSnapshot(stateDir: string): string {
  const folder = process.env[FOLDER];
  if (folder === undefined) return stateDir;
  const own = path.join(stateDir, 'runner');
  mkdirSync(own, { recursive: true });
  if (snapshotsIn(own).length > 0) return stateDir;
  for (const name of snapshotsIn(folder)) copyFileSync(path.join(folder, name), path.join(own, name));
  return stateDir;
}

function snapshotsIn(folder: string): string[] {
  return readdirSync(folder).filter((name) => name.endsWith('.snapshot'));
}
