/** wrangler, which builds, runs and deploys Workers. */
import { spawnSync } from 'node:child_process';
import type { SpawnSyncReturns } from 'node:child_process';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { messageOf } from '../../src/domain/errors.ts';
import { PROJECT_ROOT } from '../project/folders.ts';

/** Environment in which wrangler asks no questions, sends no statistics, and prints plain text. */
export const QUIET = { WRANGLER_SEND_METRICS: 'false', FORCE_COLOR: '0', CI: 'true' } as const;

/** The file of the program. It is found as the package finds it, wherever it is installed. @throws Error if it is not installed */
export function wranglerProgram(): string {
  let manifest: string;
  try {
    manifest = fileURLToPath(import.meta.resolve('wrangler/package.json'));
  } catch (fault) {
    throw new Error(`wrangler is not installed (npm install --save-dev wrangler): ${messageOf(fault)}`, {
      cause: fault,
    });
  }
  return join(dirname(manifest), 'bin/wrangler.js');
}

function runWrangler(args: readonly string[], env: Readonly<Record<string, string>> = {}): SpawnSyncReturns<string> {
  return spawnSync(process.execPath, [wranglerProgram(), ...args], {
    cwd: PROJECT_ROOT,
    encoding: 'utf8',
    env: { ...process.env, ...env, ...QUIET },
  });
}

/** The JSON that a command of wrangler prints, without questions; null if the command fails. */
export function wranglerJson(args: readonly string[]): unknown {
  const { status, stdout } = runWrangler(args);
  try {
    return status === 0 ? JSON.parse(stdout) : null;
  } catch {
    return null;
  }
}

/** Runs wrangler in the project's folder, without questions. @returns its output. @throws Error with it if it fails */
export function wranglerOutput(args: readonly string[], env: Readonly<Record<string, string>> = {}): string {
  const { status, stdout, stderr, error } = runWrangler(args, env);
  if (status === 0) return `${stdout}${stderr}`;
  const reason = error === undefined ? withoutStack(`${stdout}${stderr}`) : error.message;
  throw new Error(`wrangler ${args.join(' ')} failed:\n${reason.trim()}`);
}

/** Without the stacks of wrangler's errors, and without the members of the error objects that it prints after them. */
export function withoutStack(output: string): string {
  return output.replaceAll(/(\n +at [^\n]+)+(?<= \{)\n[^]*?\n {2}\}(?=\n|$)/g, '').replaceAll(/\n +at [^\n]+/g, '');
}
