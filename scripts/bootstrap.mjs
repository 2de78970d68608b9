/**
 * Prepares a fresh clone and then runs a command: installs the pinned packages, including a current Node, if they
 * are missing or out of date, and bundles the manifests and builds the console if they never were. Plain JavaScript, because it runs on the
 * user's Node.
 *
 * usage: node scripts/bootstrap.mjs <command> [arguments…]
 */
import { spawn, spawnSync } from 'node:child_process';
import { existsSync, readFileSync, statSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const bin = join(root, 'node_modules', '.bin');
const major = Number(process.versions.node.split('.')[0]);

if (major < 18) {
  console.error(`Cortex Edge needs Node 18 or newer; this is ${process.version}.`);
  console.error('Install a current Node (https://nodejs.org) and run the same command again.');
  process.exit(1);
}

/** Whether node_modules exists and is at least as new as the lock file. */
function installed() {
  const marker = join(root, 'node_modules', '.package-lock.json');
  const lock = join(root, 'package-lock.json');
  if (!existsSync(marker) || !existsSync(join(bin, 'wrangler'))) return false;
  return !existsSync(lock) || statSync(marker).mtimeMs >= statSync(lock).mtimeMs;
}

if (!installed()) {
  console.error('Installing packages (once, about a minute) …');
  const npm = spawnSync('npm', ['ci', '--no-audit', '--no-fund', '--loglevel=error'], {
    cwd: root,
    stdio: ['ignore', 'inherit', 'inherit'],
    shell: process.platform === 'win32',
  });
  if (npm.status !== 0) {
    console.error('npm ci failed; see its output above. Check that the npm registry is reachable.');
    process.exit(npm.status ?? 1);
  }
}

/** What the sources need besides packages, and the program that makes it. */
const GENERATED = {
  'src/project.generated.ts': ['cli/main.ts', 'build'],
  'console/dist/index.html': ['scripts/build-console.ts'],
};
for (const [file, program] of Object.entries(GENERATED)) {
  if (existsSync(join(root, file))) continue;
  const node = join(bin, process.platform === 'win32' ? 'node.cmd' : 'node');
  const made = spawnSync(node, program, {
    cwd: root,
    stdio: ['ignore', 'ignore', 'inherit'],
    shell: process.platform === 'win32',
  });
  if (made.status !== 0) process.exit(made.status ?? 1);
}

const [command, ...args] = process.argv.slice(2);
const child = spawn(command, args, {
  cwd: root,
  stdio: 'inherit',
  env: { ...process.env, PATH: `${bin}${delimiter}${process.env.PATH ?? ''}`, CORTEX_STARTED_BY: String(process.pid) },
  shell: process.platform === 'win32',
});
child.on('error', (fault) => {
  console.error(`Could not start "${command}": ${fault.message}`);
  process.exit(1);
});
child.on('exit', (code, signal) => process.exit(signal === null ? (code ?? 1) : 128));
// Ctrl-C reaches the child directly, because it shares the terminal. Other signals are forwarded.
process.on('SIGINT', () => undefined);
for (const signal of ['SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal));

/** Interval of the checks whether npm is alive, and the grace period of the child after npm has gone. */
const NPM_POLL_MS = 1_000;
const STOP_MS = 15_000;

/** The parent of a process, or null if it is unknown. */
function parentOf(pid) {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]);
  } catch {
    return null;
  }
}

/** npm runs a script in a shell. If either of them is killed, the user can no longer stop the child. */
function isShell(pid) {
  try {
    return /^(ba|da|a|k|z)?sh$/.test(readFileSync(`/proc/${pid}/comm`, 'utf8').trim());
  } catch {
    return false;
  }
}

if (process.env.npm_lifecycle_event !== undefined) {
  const parent = process.ppid;
  const grandparent = isShell(parent) ? parentOf(parent) : null;
  const timer = setInterval(() => {
    if (process.ppid === parent && (grandparent === null || parentOf(parent) === grandparent)) return;
    clearInterval(timer);
    child.kill('SIGTERM');
    setTimeout(() => child.kill('SIGKILL'), STOP_MS).unref();
  }, NPM_POLL_MS);
  timer.unref();
}
