/**
 * An interpreted shell with virtual files, started by the runner under Node's permission model.
 * `shell.ts BUNDLE_URL PACKAGE_URL...` waits for one job and exits with its exit code. The interpreter buffers output
 * until the script ends.
 */
import { Buffer } from 'node:buffer';

import type * as JustBash from 'just-bash';

import { lockDown } from './lockdown.ts';
import { receiveJob, sayReady, writeAll } from './wire.ts';

const HOME = '/work';
const PROGRAM = '/cortex/program.sh';
const INPUTS = '/cortex/inputs.json';
/** Enough for the loops of ordinary scripts; the time limit stops endless ones. */
const STEPS = 5_000_000;
const MEBIBYTE = 1_048_576;

const [bundleUrl = '', ...packages] = process.argv.slice(2);
const { Bash } = (await import(bundleUrl)) as typeof JustBash;

// the first script loads modules that every script needs
await new Bash({ cwd: HOME, files: { [`${HOME}/.keep`]: '' } }).exec(
  'echo "${x:-1}" | cat | head -n 1 >/dev/null; [ -d / ] && ls',
);
const exit: (code: number) => never = process.exit.bind(process);
lockDown(packages);
sayReady();
const job = await receiveJob();
if (job === null) exit(0);

const half = (job.memoryMb * MEBIBYTE) / 2;
const shell = new Bash({
  cwd: HOME,
  env: { HOME, LANG: 'C.UTF-8', CORTEX_INPUTS: INPUTS, ...job.env },
  files: { [PROGRAM]: job.source, [INPUTS]: job.inputsJson, [`${HOME}/.keep`]: '' },
  executionLimits: {
    maxCommandCount: STEPS,
    maxLoopIterations: STEPS,
    maxAwkIterations: STEPS,
    maxSedIterations: STEPS,
    maxWorkUnits: STEPS * 10,
    maxExecutionTimeMs: job.timeoutMs + 1_000,
    maxFileSystemBytes: half,
    maxLiveBytes: half,
    maxOutputSize: Math.min(half, 8 * MEBIBYTE),
  },
});
await shell.fs.rm(`${HOME}/.keep`);

const command = job.entry === 'tool' ? `bash ${PROGRAM}` : job.source;
const result = await shell.exec(command, { rawScript: true, stdin: job.stdin, args: [...job.args] });
writeAll(1, outputOf(result));
writeAll(2, Buffer.from(result.stderr, 'utf8'));
exit(result.exitCode & 0xff);

function outputOf(result: JustBash.BashExecResult): Uint8Array {
  const binary = result.stdoutKind === 'bytes' || result.stdoutEncoding === 'binary';
  return Buffer.from(result.stdout, binary ? 'latin1' : 'utf8');
}
