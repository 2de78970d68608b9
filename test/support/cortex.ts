/** Runs the program `cortex` as a process. */
import { spawn } from 'node:child_process';
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { PACKAGE_ROOT } from '../../cli/project/folders.ts';
import { compileCache } from '../../container-runner/test/support/compile-cache.ts';

const PROGRAM = join(PACKAGE_ROOT, 'cli/main.ts');

export interface CortexResult {
  readonly out: string;
  readonly err: string;
  readonly code: unknown;
}

/** @param env besides PATH and the compile cache: nothing else of this process's environment is passed on */
export async function cortex(
  args: readonly string[],
  {
    cwd,
    env = {},
    input = '',
  }: { readonly cwd: string; readonly env?: Record<string, string>; readonly input?: string },
): Promise<CortexResult> {
  const child = spawn(process.execPath, [PROGRAM, ...args], {
    cwd,
    env: { PATH: process.env['PATH'], ...compileCache(), NO_COLOR: '1', ...env },
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  child.stdin.end(input);
  const closed = new Promise((resolve) => child.once('close', resolve));
  const [out, err, code] = await Promise.all([text(child.stdout), text(child.stderr), closed]);
  return { out, err, code };
}

/** Makes the program `cortex` in a folder, for the PATH of a shell. */
export function installCortex(folder: string): void {
  mkdirSync(folder, { recursive: true });
  const file = join(folder, 'cortex');
  writeFileSync(file, `#!/bin/sh\nNO_COLOR=1 exec '${process.execPath}' '${PROGRAM}' "$@"\n`);
  chmodSync(file, 0o755);
}
