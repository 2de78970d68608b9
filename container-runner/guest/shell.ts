/**
 * An interpreted shell with virtual files, started by the runner under Node's permission model.
 * `shell.ts BUNDLE_URL PACKAGE_URL...` waits for one job and exits with its exit code. The interpreter buffers output
 * until the script ends.
 */
import { Buffer } from 'node:buffer';

import type * as JustBash from 'just-bash';

import { leaveFiles, type VirtualFiles } from './left-files.ts';
import { lockDown } from './lockdown.ts';
import { CHANNEL_FD, receiveJob, sayReady, writeAll } from './wire.ts';

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

const { workspace } = job;
const half = (job.memoryMb * MEBIBYTE) / 2;
const shell = new Bash({
  cwd: HOME,
  env: {
    HOME,
    LANG: 'C.UTF-8',
    CORTEX_INPUTS: INPUTS,
    ...job.env,
    ...(workspace === null ? {} : { CORTEX_WORKSPACE: workspace.folder }),
  },
  files: {
    [PROGRAM]: job.source,
    [INPUTS]: job.inputsJson,
    [`${HOME}/.keep`]: '',
    ...Object.fromEntries(
      job.files.map(({ path, content, mode, modifiedAt }) => [path, { content, mode, mtime: modifiedAt }]),
    ),
  },
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
if (workspace !== null) await shell.fs.mkdir(workspace.folder, { recursive: true });

const command = job.entry === 'tool' ? `bash ${PROGRAM}` : job.source;
const cwd = workspace !== null && job.entry === 'code' ? workspace.folder : HOME;
const result = await shell.exec(command, { rawScript: true, stdin: job.stdin, args: [...job.args], cwd });
writeAll(1, outputOf(result));
writeAll(2, Buffer.from(result.stderr, 'utf8'));
if (workspace !== null) await leaveFiles(virtualFiles(shell.fs), workspace.folder, CHANNEL_FD);
exit(result.exitCode & 0xff);

function outputOf(result: JustBash.BashExecResult): Uint8Array {
  const binary = result.stdoutKind === 'bytes' || result.stdoutEncoding === 'binary';
  return Buffer.from(result.stdout, binary ? 'latin1' : 'utf8');
}

function virtualFiles(files: JustBash.IFileSystem): VirtualFiles {
  return {
    list: (folder) => files.readdir(folder),
    async look(path) {
      const known = await files.lstat(path).catch(() => null);
      if (known === null) return null;
      const kind = known.isSymbolicLink ? 'symlink' : known.isDirectory ? 'folder' : known.isFile ? 'file' : 'unknown';
      return { kind, mode: known.mode };
    },
    read: (path) => files.readFileBuffer(path),
  };
}
