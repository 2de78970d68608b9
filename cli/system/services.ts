/** Starts services in their own process groups, waits for them, and stops them with all their children. */
import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { createServer } from 'node:net';
import { createInterface } from 'node:readline';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { startLimits } from './start-limits.ts';

const GUARD = fileURLToPath(new URL('guard.mjs', import.meta.url));

export interface Service {
  readonly name: string;
  /** The guard (guard.mjs). It leads the service's process group and ends the service if this process dies. */
  readonly process: ChildProcess;
  /** The last lines of output, for error messages. */
  readonly tail: readonly string[];
  /** Resolves with the exit code or the name of the signal. */
  readonly exited: Promise<number | string>;
}

/** Services that are being stopped: what they complain about then is not printed. */
const stopping = new WeakSet<ChildProcess>();

/** Starts a command in its own process group. Keeps the last lines of output, and prints lines that `echo` accepts. */
export function startService(
  name: string,
  command: string,
  args: readonly string[],
  options: {
    readonly env: NodeJS.ProcessEnv;
    readonly cwd: string;
    readonly echo: (line: string) => boolean;
    /** Converts an entry of the service's log; undefined: no entry, null: it is not printed. */
    readonly entry?: (line: string) => string | null | undefined;
    /** Time to end after this process has died. */
    readonly graceMs?: number;
    /** Default: that of this process. */
    readonly umask?: number;
  },
): Service {
  const grace = String(options.graceMs ?? startLimits.stopGraceMs);
  // the umask is that of the service; this process gets its own back before anything else runs
  const umask = options.umask === undefined ? null : process.umask(options.umask);
  const child = spawn(process.execPath, [GUARD, grace, command, ...args], {
    cwd: options.cwd,
    env: options.env,
    // stdin is the guard's life line, fd 3 reports the service's exit status
    stdio: ['pipe', 'pipe', 'pipe', 'pipe'],
    detached: process.platform !== 'win32',
  });
  if (umask !== null) process.umask(umask);
  const tail: string[] = [];
  const read = (line: string): void => {
    if (line.trim() === '') return;
    const entry = options.entry?.(line);
    if (entry === null) return;
    tail.push(entry ?? line);
    if (tail.length > 40) tail.shift();
    if (entry !== undefined) console.error(entry);
    else if (!stopping.has(child) && options.echo(line)) console.error(`[${name}] ${line}`);
  };
  for (const stream of [child.stdout, child.stderr]) createInterface({ input: stream }).on('line', read);
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

/** Sends TERM to the whole group, then KILL after `graceMs`. Resolves when the group is gone. */
export async function stopService(service: Service, graceMs: number = startLimits.stopGraceMs): Promise<void> {
  const { pid } = service.process;
  if (pid === undefined) return;
  stopping.add(service.process);
  signalGroup(pid, 'SIGTERM');
  await Promise.race([service.exited, delay(graceMs, undefined, { ref: false })]);
  await killService(service);
}

/** Sends KILL to the whole group. Resolves when its leader is gone. */
async function killService({ process: leader }: Service): Promise<void> {
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
    // the group has no processes
  }
}

/** The reason why a service does not serve. */
export class ServiceError extends Error {
  override readonly name = 'ServiceError';
  /** `ended`: it exited; `frozen`: it accepts connections but does not answer; `silent`: it accepts no connections. */
  readonly reason: 'ended' | 'frozen' | 'silent';

  constructor(reason: ServiceError['reason'], message: string) {
    super(message);
    this.reason = reason;
  }
}

/** The answer to one health check. */
export type Answer =
  | { readonly type: 'answer'; readonly ok: boolean; readonly body: unknown }
  | { readonly type: 'refused' | 'silent' };

/** Sends one request. `refused`: no connection, or it broke; `silent`: no answer within `timeoutMs`. */
export async function ask(url: string, timeoutMs: number, headers: Record<string, string> = {}): Promise<Answer> {
  const signal = AbortSignal.timeout(timeoutMs);
  try {
    const response = await fetch(url, { signal, headers });
    const body: unknown = await response.json().catch(() => null);
    return { type: 'answer', ok: response.ok, body };
  } catch {
    return { type: signal.aborted ? 'silent' : 'refused' };
  }
}

/** The `status` in a health document; `starting` means that the service does not accept work yet. */
export function statusOf(answer: Answer): string | null {
  if (answer.type !== 'answer' || typeof answer.body !== 'object' || answer.body === null) return null;
  const { status } = answer.body as { readonly status?: unknown };
  return typeof status === 'string' ? status : null;
}

export interface StartTimeouts {
  /** Until the first answer. */
  readonly startMs: number;
  /** Until the status is no longer `starting`; default `startMs`. 0 = any successful answer is sufficient. */
  readonly startingMs?: number;
  /** Called with the body of each answer. */
  readonly onAnswer?: (body: unknown) => void;
  /** Called when the service has accepted connections without answering for `startLimits.lateMs`. */
  readonly onLate?: () => void;
}

/**
 * Polls `url` until the service answers successfully and is not `starting`.
 *
 * @throws ServiceError if it exits, freezes, or exceeds its time limit
 */
export async function waitUntilHealthy(service: Service, url: string, timeouts: number | StartTimeouts): Promise<void> {
  const {
    startMs,
    startingMs = startMs,
    onAnswer,
    onLate,
  } = typeof timeouts === 'number' ? { startMs: timeouts } : timeouts;
  const startedAt = Date.now();
  let died: number | string | null = null;
  let silentSince: number | null = null;
  let isStarting = false;
  void service.exited.then((code) => (died = code));
  while (Date.now() - startedAt < (isStarting ? startingMs : startMs)) {
    if (died !== null) throw new ServiceError('ended', `${service.name} exited (${died}):\n${lastLines(service)}`);
    const answer = await ask(url, startLimits.startAnswerMs);
    isStarting = startingMs > 0 && statusOf(answer) === 'starting';
    if (answer.type === 'answer') onAnswer?.(answer.body);
    if (answer.type === 'answer' && answer.ok && !isStarting) return;
    silentSince = answer.type === 'silent' ? (silentSince ?? Date.now()) : null;
    const silentMs = silentSince === null ? 0 : Date.now() - silentSince;
    if (silentMs > startLimits.lateMs) onLate?.();
    if (silentMs > startLimits.startFreezeMs) {
      const message = `${service.name} accepts connections at ${url} but does not answer:\n${lastLines(service)}`;
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

/** Whether the port is free on loopback. */
export async function portIsFree(port: number): Promise<boolean> {
  return await new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(false));
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)));
  });
}

/** Below the ranges from which operating systems take the local ports of outgoing connections and of `listen(0)`. */
const SELDOM_TAKEN = { from: 10_240, to: 32_768 };
const MOST_TRIES = 100;

/**
 * Returns a random port that is free on loopback, and that no other program is likely to take before the caller uses it.
 *
 * @throws Error when 100 random ports are all in use
 */
export async function freePort(): Promise<number> {
  for (let tries = 0; tries < MOST_TRIES; tries += 1) {
    const port = randomInt(SELDOM_TAKEN.from, SELDOM_TAKEN.to);
    if (await portIsFree(port)) return port;
  }
  throw new Error(`${MOST_TRIES} random ports of loopback are all in use`);
}
