/**
 * Stands between a service and the process that started it: the service ends when its starter is gone, whatever
 * ended that. Plain JavaScript, so that it is there at once.
 *
 * usage: node scripts/guard.mjs <grace in milliseconds> <command> [arguments…]
 *
 * Standard input is a pipe that the starter holds open; nothing is ever written to it. It closes when the starter
 * closes it or dies. File descriptor 3 takes how the service ended. The guard leads the process group of the service.
 */
import { spawn } from 'node:child_process';
import { writeSync } from 'node:fs';

/** What is left of a service whose main process has ended gets so long. */
const REST_MS = 1_000;

const [grace, command, ...args] = process.argv.slice(2);
const isWindows = process.platform === 'win32';
// Signals to the group are meant for the service.
for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP']) process.on(signal, () => undefined);
// A reader of its output that is gone is no reason to end before the service has.
for (const stream of [process.stdout, process.stderr]) stream.on('error', () => undefined);

const child = spawn(command, args, { stdio: ['ignore', 'inherit', 'inherit'] });
let ending = false;

function signalGroup(signal) {
  try {
    if (isWindows) child.kill(signal);
    else process.kill(-process.pid, signal);
  } catch {
    // nothing is left
  }
}

/** TERM to everything, then KILL to everything, this process included. */
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
