/** Starts the runner with settings from the environment. SIGTERM drains it; SIGINT or a second SIGTERM stops it at once. */
import { readConfig } from './config.ts';
import { closeInherited } from './descriptors.ts';
import { createRunner } from './runner.ts';
import { SERVICE, VERSION } from './version.ts';

function fail(message: string): never {
  process.stderr.write(`${SERVICE}: ${message}\n`);
  process.exit(1);
}

const runner = await Promise.resolve()
  .then(() => {
    closeInherited();
    return createRunner(readConfig(process.env));
  })
  .catch((fault: unknown) => fail(explain(fault)));

function explain(fault: unknown): string {
  if (!(fault instanceof Error)) return String(fault);
  if ('code' in fault && fault.code === 'EADDRINUSE') {
    return `port ${process.env['RUNNER_PORT'] ?? '8790'} is in use; set RUNNER_PORT to another port`;
  }
  return fault.message;
}

// before the ready line, because its reader may send a signal immediately
let stopping = false;
for (const signal of ['SIGTERM', 'SIGINT'] as const) {
  process.on(signal, () => {
    // Ctrl-C and a second signal do not wait
    const atOnce = stopping || signal === 'SIGINT';
    stopping = true;
    void (atOnce ? runner.close() : runner.drain()).then(() => process.exit(0));
  });
}

process.stdout.write(
  `${JSON.stringify({ ready: true, service: SERVICE, version: VERSION, url: runner.url, sandbox: runner.sandboxes.report().active })}\n`,
);
