/** Child services in process groups of their own: started, awaited, and stopped with all their children. */
import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { createServer } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';

export interface Service {
  readonly name: string;
  readonly process: ChildProcess;
  /** What it printed last, newest at the end; for the message when it fails. */
  readonly tail: readonly string[];
  /** Resolves with the exit code, or the signal's name. */
  readonly exited: Promise<number | string>;
}

/** Starts a command as the leader of its own process group. Its output is kept, and shown when `echo` says so. */
export function startService(
  name: string,
  command: string,
  args: readonly string[],
  options: { readonly env: NodeJS.ProcessEnv; readonly cwd: string; readonly echo: (line: string) => boolean },
): Service {
  const child = spawn(command, [...args], {
    cwd: options.cwd,
    env: options.env,
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: process.platform !== 'win32',
  });
  const tail: string[] = [];
  const read = (chunk: Buffer): void => {
    for (const line of chunk.toString().split('\n')) {
      if (line.trim() === '') continue;
      tail.push(line);
      if (tail.length > 40) tail.shift();
      if (options.echo(line)) console.error(`[${name}] ${line}`);
    }
  };
  child.stdout?.on('data', read);
  child.stderr?.on('data', read);
  const exited = new Promise<number | string>((resolve) => {
    child.on('exit', (code, signal) => resolve(signal ?? code ?? 0));
    child.on('error', (fault) => {
      tail.push(fault.message);
      resolve(1);
    });
  });
  return { name, process: child, tail, exited };
}

/** TERM to the whole group, then KILL to what is left after `graceMs`. */
export async function stopService(service: Service, graceMs = 5_000): Promise<void> {
  const { pid } = service.process;
  if (pid === undefined) return;
  signalGroup(pid, 'SIGTERM');
  await Promise.race([service.exited, delay(graceMs, undefined, { ref: false })]);
  signalGroup(pid, 'SIGKILL');
}

function signalGroup(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(process.platform === 'win32' ? pid : -pid, signal);
  } catch {
    // The group is gone already.
  }
}

/** Polls `url` until the service answers; rejects when it dies first or `timeoutMs` has passed. */
export async function waitUntilHealthy(service: Service, url: string, timeoutMs: number): Promise<void> {
  const deadline = Date.now() + timeoutMs;
  let died: number | string | null = null;
  void service.exited.then((code) => (died = code));
  while (Date.now() < deadline) {
    if (died !== null) throw new Error(`${service.name} ended at once (${died}):\n${service.tail.join('\n')}`);
    try {
      const response = await fetch(url, { signal: AbortSignal.timeout(2_000) });
      if (response.ok) return;
    } catch {
      // Not up yet.
    }
    await delay(50);
  }
  throw new Error(`${service.name} did not answer at ${url} within ${timeoutMs} ms:\n${service.tail.join('\n')}`);
}

/** Whether the port can be bound on loopback. */
export async function portIsFree(port: number): Promise<boolean> {
  return await new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(false));
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)));
  });
}

/** A port that is free on loopback right now. */
export async function freePort(): Promise<number> {
  return await new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const address = server.address();
      const port = typeof address === 'object' && address !== null ? address.port : 0;
      server.close(() => resolve(port));
    });
  });
}
