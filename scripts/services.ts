/** Child services in process groups of their own: started, awaited, and stopped with all their children. */
import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { createServer } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { startLimits } from './start-limits.ts';

const GUARD = fileURLToPath(new URL('guard.mjs', import.meta.url));

export interface Service {
  readonly name: string;
  /** Leads the process group of the service; ends it when this process ends, whatever ends it (guard.mjs). */
  readonly process: ChildProcess;
  /** What it printed last, newest at the end; for the message when it fails. */
  readonly tail: readonly string[];
  /** Resolves with the exit code, or the signal's name. */
  readonly exited: Promise<number | string>;
}

/** Starts a command in a process group of its own. Its output is kept, and shown when `echo` says so. */
export function startService(
  name: string,
  command: string,
  args: readonly string[],
  options: {
    readonly env: NodeJS.ProcessEnv;
    readonly cwd: string;
    readonly echo: (line: string) => boolean;
    /** Lines that say nothing about a failure, and are not kept either. */
    readonly noise?: (line: string) => boolean;
    /** What it gets to end by itself when this process is gone. */
    readonly graceMs?: number;
  },
): Service {
  const grace = String(options.graceMs ?? startLimits.stopGraceMs);
  const child = spawn(process.execPath, [GUARD, grace, command, ...args], {
    cwd: options.cwd,
    env: options.env,
    // the first is what the guard holds on to, the last is how it tells the end of the service
    stdio: ['pipe', 'pipe', 'pipe', 'pipe'],
    detached: process.platform !== 'win32',
  });
  const tail: string[] = [];
  const read = (chunk: Buffer): void => {
    for (const line of chunk.toString().split('\n')) {
      if (line.trim() === '' || options.noise?.(line) === true) continue;
      tail.push(line);
      if (tail.length > 40) tail.shift();
      if (options.echo(line)) console.error(`[${name}] ${line}`);
    }
  };
  child.stdout.on('data', read);
  child.stderr.on('data', read);
  child.stdin.on('error', () => undefined);
  const exited = new Promise<number | string>((resolve) => {
    child.stdio[3]?.on('data', (chunk: Buffer) => {
      resolve((JSON.parse(chunk.toString()) as { code: number | string }).code);
    });
    child.on('exit', (code, signal) => resolve(signal ?? code ?? 0));
    child.on('error', (fault) => {
      tail.push(fault.message);
      resolve(1);
    });
  });
  return { name, process: child, tail, exited };
}

/** TERM to the whole group, then KILL to what is left after `graceMs`. Resolves when nothing is left. */
export async function stopService(service: Service, graceMs: number = startLimits.stopGraceMs): Promise<void> {
  const { pid } = service.process;
  if (pid === undefined) return;
  signalGroup(pid, 'SIGTERM');
  await Promise.race([service.exited, delay(graceMs, undefined, { ref: false })]);
  await killService(service);
}

/** KILL to the whole group, without a word before. Resolves when its leader is gone. */
export async function killService({ process: leader }: Service): Promise<void> {
  if (leader.pid === undefined) return;
  const isGone = leader.exitCode !== null || leader.signalCode !== null;
  const gone = isGone ? null : new Promise<void>((resolve) => leader.once('exit', () => resolve()));
  signalGroup(leader.pid, 'SIGKILL');
  await Promise.race([gone, delay(startLimits.killedMs, undefined, { ref: false })]);
}

function signalGroup(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(process.platform === 'win32' ? pid : -pid, signal);
  } catch {
    // The group is gone already.
  }
}

/** Why a service does not serve. */
export class ServiceError extends Error {
  override readonly name = 'ServiceError';
  /** `ended` by itself; `frozen`: it takes connections and answers none; `silent`: it does not even do that. */
  readonly reason: 'ended' | 'frozen' | 'silent';

  constructor(reason: ServiceError['reason'], message: string) {
    super(message);
    this.reason = reason;
  }
}

/** The answer of a service to one question, as far as it matters. */
export type Answer =
  | { readonly is: 'answer'; readonly ok: boolean; readonly body: unknown }
  | { readonly is: 'refused' | 'silent' };

/** Asks once. `refused`: nothing listens, or the connection broke; `silent`: no answer within `timeoutMs`. */
export async function ask(url: string, timeoutMs: number, headers: Record<string, string> = {}): Promise<Answer> {
  const signal = AbortSignal.timeout(timeoutMs);
  try {
    const response = await fetch(url, { signal, headers });
    const body: unknown = await response.json().catch(() => null);
    return { is: 'answer', ok: response.ok, body };
  } catch {
    return { is: signal.aborted ? 'silent' : 'refused' };
  }
}

/** What a service says of itself: `starting` means that it is up and takes no work yet. */
export function statusOf(answer: Answer): string | null {
  if (answer.is !== 'answer' || typeof answer.body !== 'object' || answer.body === null) return null;
  const { status } = answer.body as { readonly status?: unknown };
  return typeof status === 'string' ? status : null;
}

export interface StreamTimeout {
  /** Until it answers for the first time. */
  readonly startMs: number;
  /** Until it says that it is not `starting` any more; default: `startMs`. 0 = it is enough that it answers well. */
  readonly startingMs?: number;
  /** Told what it answers meanwhile. */
  readonly onAnswer?: (body: unknown) => void;
  /** Told when it takes connections and has answered none of them for `startLimits.lateMs`. */
  readonly onLate?: () => void;
}

/**
 * Polls `url` until the service answers well and is not `starting` any more.
 *
 * @throws ServiceError when it ends first, freezes, or takes longer than it may
 */
export async function waitUntilHealthy(service: Service, url: string, patience: number | StreamTimeout): Promise<void> {
  const {
    startMs,
    startingMs = startMs,
    onAnswer,
    onLate,
  } = typeof patience === 'number' ? { startMs: patience } : patience;
  const startedAt = Date.now();
  let died: number | string | null = null;
  let silentSince: number | null = null;
  let isStarting = false;
  void service.exited.then((code) => (died = code));
  while (Date.now() - startedAt < (isStarting ? startingMs : startMs)) {
    if (died !== null)
      throw new ServiceError('ended', `${service.name} ended at once (${died}):\n${lastLines(service)}`);
    const answer = await ask(url, startLimits.startAnswerMs);
    isStarting = startingMs > 0 && statusOf(answer) === 'starting';
    if (answer.is === 'answer') onAnswer?.(answer.body);
    if (answer.is === 'answer' && answer.ok && !isStarting) return;
    silentSince = answer.is === 'silent' ? (silentSince ?? Date.now()) : null;
    const silentMs = silentSince === null ? 0 : Date.now() - silentSince;
    if (silentMs > startLimits.lateMs) onLate?.();
    if (silentMs > startLimits.startFreezeMs) {
      const message = `${service.name} takes connections at ${url} and answers none:\n${lastLines(service)}`;
      throw new ServiceError('frozen', message);
    }
    await delay(startLimits.startPollMs);
  }
  const message = `${service.name} did not answer at ${url} within ${startMs} ms:\n${lastLines(service)}`;
  throw new ServiceError('silent', message);
}

function lastLines({ tail }: Service): string {
  return tail.join('\n');
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
