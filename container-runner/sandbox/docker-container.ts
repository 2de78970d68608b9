/**
 * One container, from its creation to its removal: it waits for a job, runs it, and is never used again.
 *
 * Owns: the container and the connection to it. Does not own: what it waits with (the guest), the pool.
 * Invariants:
 * 1. `ended` resolves once, whatever the engine does: with the program's end, or as `lost`.
 * 2. No end waits for a reader: the connection is cut before the engine is told to kill.
 * 3. A container that was created is removed, or left to the reaper with its label.
 */
import type { Duplex } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';

import type Docker from 'dockerode';

import { limits } from '../limits.ts';
import { demultiplex } from './docker-streams.ts';
import { statusOf, within } from './docker-engine.ts';
import type { ProcessEnd, SandboxProcess } from './sandbox.ts';
import type { Warmable } from './warm-pool.ts';

const KILLED = 128 + 9;
const REMOVE_ATTEMPTS = 20;
const REMOVE_EVERY_MS = 500;

export interface Container extends Warmable {
  readonly id: string;
  /** Changes what it may take, while it waits. */
  adjust(resources: Record<string, number>): Promise<void>;
  /** Gives it its job. */
  run(job: Buffer): SandboxProcess;
  /** Resolves when it is gone from the engine, or nobody can say. */
  readonly removed: Promise<void>;
}

/** @throws Error of the engine when it could not be created or started; nothing is left of it then */
export async function startContainer(docker: Docker, options: Docker.ContainerCreateOptions): Promise<Container> {
  // an engine that dies owes its answers for ever
  const container = await within(limits.engineStartMs, docker.createContainer(options));
  try {
    const attaching = container.attach({ stream: true, stdin: true, stdout: true, stderr: true, hijack: true });
    const connection = (await within(limits.engineStartMs, attaching)) as Duplex;
    connection.on('error', () => undefined);
    await within(limits.engineStartMs, container.start());
    return opened(container, connection);
  } catch (fault) {
    await remove(container);
    throw fault;
  }
}

function opened(container: Docker.Container, connection: Duplex): Container {
  const printed = demultiplex(connection);
  const killing = new AbortController();
  const ended = endOf(container, connection, killing.signal);
  const removed = ended.then(() => remove(container));

  function kill(): void {
    if (killing.signal.aborted) return;
    connection.destroy();
    killing.abort();
    void container.kill({ signal: 'SIGKILL' }).catch(() => undefined);
  }
  return {
    id: container.id,
    removed,
    async adjust(resources) {
      await container.update(resources);
    },
    run(job) {
      connection.end(job);
      return {
        ...printed,
        ended,
        terminate: () => void container.kill({ signal: 'SIGTERM' }).catch(() => undefined),
        kill,
      };
    },
    onDeath: (listener) => void ended.then(listener),
    async dispose() {
      kill();
      await removed;
    },
  };
}

async function endOf(container: Docker.Container, connection: Duplex, killing: AbortSignal): Promise<ProcessEnd> {
  const closed = new Promise<void>((resolve) => {
    connection.once('close', resolve);
    connection.once('end', resolve);
  });
  // an engine that does not even end what it was told to kill has lost it
  let impatience: NodeJS.Timeout | undefined;
  const given = new Promise<null>((resolve) => {
    killing.addEventListener('abort', () => {
      impatience = setTimeout(() => resolve(null), limits.engineKillMs);
    });
  });
  const settled = new AbortController();
  const status = await Promise.race([
    container.wait().then(
      ({ StatusCode: code }: { readonly StatusCode: number }) => code,
      () => null,
    ),
    given,
    closed.then(() => afterClosing(container, settled.signal)),
  ]);
  settled.abort();
  clearTimeout(impatience);
  // what it printed last may still be on its way
  let drain: NodeJS.Timeout | undefined;
  await Promise.race([closed, new Promise((resolve) => (drain = setTimeout(resolve, limits.drainMs)))]);
  clearTimeout(drain);
  connection.destroy();
  if (status === null) return { exitCode: null, signal: null, oom: false, lost: true };
  const state = await within(limits.engineMs, container.inspect()).then(
    ({ State }) => State,
    () => null,
  );
  // the engine is gone, and nobody knows by whom it was ended
  if (state === null && status === KILLED) return { exitCode: null, signal: null, oom: false, lost: true };
  return { exitCode: status, signal: null, oom: state?.OOMKilled === true };
}

/**
 * The connection has closed: as a rule because the program has ended, and the answer to `wait` is on its way.
 * An engine that went away owes that answer for ever, and its client does not say so; it is asked.
 *
 * @returns the exit code; null when there is nobody to ask
 */
async function afterClosing(container: Docker.Container, settled: AbortSignal): Promise<number | null> {
  for (;;) {
    await sleep(limits.drainMs);
    if (settled.aborted) return null;
    const state = await within(limits.engineMs, container.inspect()).then(
      ({ State }) => State,
      () => null,
    );
    if (state === null) return null;
    if (!state.Running) return state.ExitCode;
  }
}

/** Tries until the engine says that it is gone; what an engine that is away still has is the reaper's. */
async function remove(container: Docker.Container): Promise<void> {
  for (let attempt = 1; attempt <= REMOVE_ATTEMPTS; attempt += 1) {
    const gone = await within(limits.engineMs, container.remove({ force: true, v: true })).then(
      () => true,
      (fault: unknown) => statusOf(fault) === 404,
    );
    if (gone) return;
    await sleep(REMOVE_EVERY_MS);
  }
}
