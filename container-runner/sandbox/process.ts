/**
 * No sandbox: programs run as plain processes of the runner's user, with its permissions and network. For machines that are
 * themselves a sandbox; only if the operator enables it. The environment contains only the job's variables, the work
 * directory is removed afterwards, and `prlimit` sets the limits, if available.
 */
import { spawn, spawnSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import fs from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

import { limits } from '../limits.ts';
import { ownerMark } from './abandoned.ts';
import { endOf, feed, spawned, withPipes } from './child.ts';
import { fillFolder, leaveFolder } from './process-workspace.ts';
import { probeBy } from './probe.ts';
import { descendantsOf, marked, signalAll } from './process-tree.ts';
import type { Availability, Interpreter, Launch, Sandbox, SandboxProcess } from './sandbox.ts';
import { baseEnvironment, commandOf, HARNESS, isHeapExhausted, PROGRAM_FILE } from './system-programs.ts';

/** Environment variable that marks a job's processes, to find those that left the group. */
const MARK = 'CORTEX_RUN';

/**
 * Kills the marked processes until two sweeps in a row find none: a process that is executing another program at the
 * moment shows no environment, and one that forks is faster than one sweep.
 */
async function sweep(variable: string): Promise<void> {
  let clean = 0;
  for (let count = 0; clean < 2 && count < limits.processSweeps; count += 1) {
    const left = marked(variable);
    signalAll(left, 'SIGKILL');
    clean = left.length === 0 ? clean + 1 : 0;
    await sleep(limits.processSweepMs);
  }
}

async function remove(directory: string): Promise<void> {
  await fs.rm(directory, { recursive: true, force: true }).catch(() => undefined);
}

export class ProcessSandbox implements Sandbox {
  readonly level = 'process';
  readonly #limiter = spawnSync('prlimit', ['--version'], { stdio: 'ignore' }).status === 0;

  async probe(): Promise<Readonly<Record<Interpreter, Availability>>> {
    const start = this.start.bind(this);
    const [python3, shell, node] = await Promise.all([
      probeBy(start, 'python3'),
      probeBy(start, 'shell'),
      probeBy(start, 'node'),
    ]);
    return { python3, shell, node };
  }

  async start(launch: Launch): Promise<SandboxProcess> {
    const directory = await fs.mkdtemp(path.join(os.tmpdir(), 'cortex-job-'));
    const work = path.join(directory, 'work');
    const program = path.join(directory, PROGRAM_FILE[launch.interpreter]);
    const inputs = path.join(directory, 'inputs.json');
    await fs.mkdir(work);
    await Promise.all([fs.writeFile(program, launch.source), fs.writeFile(inputs, launch.inputsJson)]);
    const { workspace } = launch;
    const files = path.join(directory, 'workspace');
    if (workspace !== undefined) {
      await fillFolder(files, workspace.files).catch(async (fault: unknown) => {
        await remove(directory);
        throw fault;
      });
    }
    const isInFiles = launch.entry === 'code' && workspace !== undefined;
    const mark = randomUUID();
    const [command = '', ...args] = [
      ...(this.#limiter
        ? [
            'prlimit',
            `--data=${(launch.memoryMb + (launch.interpreter === 'node' ? 512 : 0)) * 1_048_576}`,
            `--fsize=${launch.diskMb * 1_048_576}`,
            `--nofile=${limits.openFiles}`,
            `--cpu=${Math.ceil(launch.timeoutMs / 1_000) + 5}`,
            '--core=0',
            '--',
          ]
        : []),
      ...commandOf(launch, { program, harness: HARNESS, python: 'python3', shell: 'sh', node: process.execPath }),
    ];
    const child = spawn(command, args, {
      cwd: isInFiles ? files : work,
      env: {
        ...baseEnvironment(work, work, inputs),
        ...launch.env,
        ...(workspace === undefined ? {} : { CORTEX_WORKSPACE: files, PYTHONDONTWRITEBYTECODE: '1' }),
        ...ownerMark(),
        [MARK]: mark,
      },
      stdio: ['pipe', 'pipe', 'pipe'],
      // a separate group, to signal all processes
      detached: true,
    });
    const pipes = withPipes(child);
    feed(child.stdin, launch.stdin);
    function signalTree(signal: 'SIGTERM' | 'SIGKILL'): void {
      const { pid } = child;
      if (pid === undefined) return;
      signalAll([-pid, ...descendantsOf(pid), ...marked(`${MARK}=${mark}`)], signal);
    }
    const swept = (async () => {
      // rejects if the program could not be started
      const exited = await once(child, 'exit').catch(() => null);
      if (exited === null) return;
      signalTree('SIGKILL');
      await sweep(`${MARK}=${mark}`);
    })();
    const stop = new AbortController();
    const ended = endOf(pipes, (code) => isHeapExhausted(launch.interpreter, code)).then(async (end) => {
      await swept;
      if (workspace !== undefined) await leaveFolder(files, workspace.receiver, stop.signal);
      await remove(directory);
      return end;
    });
    await spawned(child);
    return {
      stdout: pipes.stdout,
      stderr: pipes.stderr,
      ended,
      terminate() {
        stop.abort();
        signalTree('SIGTERM');
      },
      kill() {
        stop.abort();
        signalTree('SIGKILL');
      },
    };
  }

  async close(): Promise<void> {
    // no warm instances
  }
}
