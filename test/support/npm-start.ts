/** Runs `npm start` for a test: starts, observes and signals it, and cleans up afterwards. */
import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ProcessRef } from '../../container-runner/test/support/processes.ts';
import { treeOf } from '../../container-runner/test/support/processes.ts';
import { withSnapshot } from '../../container-runner/test/support/python-snapshot.ts';
import { freePort } from '../../cli/system/services.ts';
import { PACKAGE_ROOT } from '../../cli/project/folders.ts';

export interface Started {
  readonly url: string;
  readonly output: () => string;
  readonly process: ChildProcess;
  readonly exited: Promise<number | null>;
}

/** Longest time of a start or of an end. Only a process that hangs takes so long. */
const MOST_MS = 200_000;

const folders: string[] = [];
const launched: ChildProcess[] = [];

export function stateFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'cortex-e2e-'));
  folders.push(folder);
  return withSnapshot(folder);
}

/** @param command replaces the script, for example with the command that npm runs */
export function launch(
  env: Record<string, string>,
  command: readonly string[] = [process.execPath, 'cli/main.ts', 'dev'],
): Omit<Started, 'url'> {
  const [program = '', ...args] = command;
  const child = spawn(program, args, {
    cwd: PACKAGE_ROOT,
    // Prevents the detection of a model server on this machine.
    env: {
      ...process.env,
      ...(env['LLM_BASE_URL'] === undefined ? { LLM_PROVIDER: 'demo' } : {}),
      ...env,
      NO_COLOR: '1',
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  launched.push(child);
  let output = '';
  child.stdout.on('data', (chunk: Buffer) => (output += chunk.toString()));
  child.stderr.on('data', (chunk: Buffer) => (output += chunk.toString()));
  const exited = new Promise<number | null>((resolve, reject) => child.on('exit', resolve).on('error', reject));
  exited.catch(() => undefined);
  return { output: () => output, process: child, exited };
}

/** Resolves when the output reports that the system is ready. @throws Error with the output if it ends or hangs */
export async function start(env: Record<string, string> = {}, command?: readonly string[]): Promise<Started> {
  const port = Number(env['PORT'] ?? (await freePort()));
  const started = launch(
    { PORT: String(port), RUNNER_PORT: String(await freePort()), CORTEX_STATE_DIR: stateFolder(), ...env },
    command,
  );
  const ready = Promise.withResolvers<void>();
  started.process.stdout?.on('data', () => {
    if (started.output().includes('is ready')) ready.resolve();
  });
  const ended = started.exited.then((code) => {
    throw new Error(`npm start ended with ${code} before it was ready:\n${started.output()}`);
  });
  await within(started, Promise.race([ready.promise, ended]));
  return { ...started, url: `http://127.0.0.1:${port}` };
}

/** Waits for the exit code. @throws Error with the output if the process hangs */
export async function exitOf(started: Omit<Started, 'url'>): Promise<number | null> {
  return await within(started, started.exited);
}

/** Rejects after `MOST_MS` with the output, and with what each process of the system waits for. */
async function within<T>({ process: { pid = 0 }, output }: Omit<Started, 'url'>, expected: Promise<T>): Promise<T> {
  const { promise: late, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => {
    const processes = [{ pid, command: 'npm start' }, ...treeOf(pid)].map(
      (each) => `${each.pid} ${each.command}\n  ${stateOf(each.pid)}`,
    );
    reject(new Error(`npm start hangs. Output:\n${output()}\nProcesses:\n${processes.join('\n')}`));
  }, MOST_MS);
  try {
    return await Promise.race([expected, late]);
  } finally {
    clearTimeout(timer);
  }
}

function stateOf(pid: number): string {
  try {
    const [state, waitsIn] = ['status', 'wchan'].map((name) => readFileSync(`/proc/${pid}/${name}`, 'utf8'));
    return `${/^State:.*$/m.exec(state ?? '')?.[0] ?? ''}, waits in ${waitsIn}`;
  } catch {
    return 'has ended';
  }
}

export async function stop(started: Omit<Started, 'url'>): Promise<void> {
  started.process.kill('SIGTERM');
  await exitOf(started);
}

export async function post<T>(url: string, body: unknown, headers: Record<string, string> = {}): Promise<T> {
  const response = await fetch(url, { method: 'POST', body: JSON.stringify(body), headers });
  return (await response.json()) as T;
}

/** For `afterAll`: ends systems that a failed test left running. */
export async function cleanUp(): Promise<void> {
  const left = launched.filter(({ exitCode, signalCode }) => exitCode === null && signalCode === null);
  await Promise.all(left.map((child) => once(child, 'exit', { signal: kill(child) })));
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
}

/** Sends the signal to the process; gives up after a timeout. */
function kill(child: ChildProcess): AbortSignal {
  child.kill('SIGTERM');
  return AbortSignal.timeout(15_000);
}

/** All descendants of a system's starter. */
export function processesOf({ process: { pid } }: Pick<Started, 'process'>): ProcessRef[] {
  return pid === undefined ? [] : treeOf(pid);
}

export function withCommand(processes: readonly ProcessRef[], text: string): ProcessRef[] {
  return processes.filter(({ command }) => command.includes(text));
}
