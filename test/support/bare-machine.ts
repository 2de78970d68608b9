/** Runs commands of this repository as on a fresh machine: with Node, npm, Git and a shell, and without a network. */
import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { PACKAGE_ROOT } from '../../cli/project/folders.ts';

/** Libraries, and what Git and npm consist of. No programs. */
const LIBRARIES = [
  '/lib',
  '/lib64',
  '/usr/lib',
  '/usr/lib64',
  '/usr/local/lib',
  '/usr/share/git-core',
  '/usr/share/nodejs',
  '/etc',
];
const PROGRAMS = ['git', 'sh', 'env', 'npm', 'npx'];

function pathOf(program: string): string {
  const found = (process.env['PATH'] ?? '')
    .split(delimiter)
    .filter((folder) => !folder.startsWith(PACKAGE_ROOT))
    .map((folder) => join(folder, program))
    .find((path) => existsSync(path));
  if (found === undefined) throw new Error(`${program} is not installed`);
  return realpathSync(found);
}

/** Nothing but loopback, in a root of its own; only this repository and a home can be written. */
export async function onBareMachine(
  command: readonly string[],
): Promise<{ readonly status: number | null; readonly output: string }> {
  const home = mkdtempSync(join(tmpdir(), 'cortex-bare-'));
  // A script of npm finds the rest of it beside itself.
  const programs = PROGRAMS.flatMap((name) => {
    const path = pathOf(name);
    return path.endsWith('.js') ? ['--symlink', path, `/usr/bin/${name}`] : ['--ro-bind', path, `/usr/bin/${name}`];
  });
  const child = spawn(
    'bwrap',
    [
      LIBRARIES.flatMap((path) => ['--ro-bind-try', path, path]),
      programs,
      ['--ro-bind', join(PACKAGE_ROOT, 'node_modules/node/bin/node'), '/usr/bin/node'],
      ['--symlink', 'usr/bin', '/bin', '--proc', '/proc', '--dev', '/dev', '--tmpfs', '/tmp'],
      ['--bind', PACKAGE_ROOT, PACKAGE_ROOT, '--bind', home, home, '--chdir', PACKAGE_ROOT],
      ['--unshare-pid', '--unshare-net', '--die-with-parent', '--clearenv'],
      ['--setenv', 'PATH', '/usr/bin', '--setenv', 'HOME', home, '--setenv', 'CI', 'true', '--setenv', 'NO_COLOR', '1'],
      command,
    ].flat(),
    { stdio: ['ignore', 'pipe', 'pipe'] },
  );
  let output = '';
  child.stdout.on('data', (chunk: Buffer) => (output += chunk.toString()));
  child.stderr.on('data', (chunk: Buffer) => (output += chunk.toString()));
  try {
    const status = await new Promise<number | null>((resolve, reject) => {
      child.once('error', reject);
      child.once('close', resolve);
    });
    return { status, output };
  } finally {
    rmSync(home, { recursive: true, force: true });
  }
}
