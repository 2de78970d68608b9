/**
 * Runs a service for a starter and ends the service when the starter dies, for whatever reason. Plain JavaScript,
 * for a fast start.
 *
 * usage: node cli/system/guard.mjs <grace in milliseconds> <command> [arguments…]
 *
 * The starter holds the other end of standard input open and writes nothing to it. It closes when the starter closes
 * it or dies. The service's exit status is written to file descriptor 3. The guard leads the service's process group.
 */
import { spawn } from 'node:child_process';
import { writeSync } from 'node:fs';

/** Grace period of the remaining processes after the service's main process has ended. */
const REST_MS = 1_000;

const [grace, command, ...args] = process.argv.slice(2);
const isWindows = process.platform === 'win32';
// Signals to the group are for the service; the guard ignores them.
for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP']) process.on(signal, () => undefined);
// Ignore write errors: the guard must outlive the reader of its output.
for (const stream of [process.stdout, process.stderr]) stream.on('error', () => undefined);

const child = spawn(command, args, { stdio: ['ignore', 'inherit', 'inherit'] });
let ending = false;

function signalGroup(signal) {
  try {
    if (isWindows) child.kill(signal);
    else process.kill(-process.pid, signal);
  } catch {
    // the group has no processes
  }
}

/** Sends TERM to the group, then KILL to the group including this process. */
function end(graceMs) {
  if (ending) return;
  ending = true;
  signalGroup('SIGTERM');
  setTimeout(() => {
    signalGroup('SIGKILL');
    process.exit(1);
  }, graceMs);
}

function report(outcome) {
  try {
    writeSync(3, `${JSON.stringify(outcome)}\n`);
  } catch {
    // the starter is gone
  }
}

child.on('error', (fault) => {
  process.stderr.write(`${fault.message}\n`);
  report({ code: 1 });
  process.exit(1);
});
child.on('exit', (code, signal) => {
  report({ code: signal ?? code ?? 0 });
  ending = false;
  end(REST_MS);
});
for (const event of ['end', 'close', 'error']) process.stdin.on(event, () => end(Number(grace)));
process.stdin.resume();
