/**
 * One container, from creation to removal: it waits for a job, runs it, and is never reused.
 *
 * Owns the container and its connection. Does not own the waiting program (the guest) and the pool.
 * Invariants:
 * 1. `ended` resolves once, whatever the engine does: with the program's end, or as `lost`.
 * 2. Killing does not wait for a reader: the connection is closed before the engine gets the request.
 * 3. Every created container is removed, either here or by the reaper through its label.
 */
import type { Duplex } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';

import type Docker from 'dockerode';

import { limits } from '../limits.ts';
import type { WorkspaceReceiver } from '../workspace/workspace.ts';
import { LOST } from './child.ts';
import { statusOf, within } from './docker-engine.ts';
import { demultiplex, splitAt } from './docker-streams.ts';
import { type Pieces, pour } from './given-files.ts';
import { collect, type Collection } from './left-archive.ts';
import type { ProcessEnd, SandboxProcess } from './sandbox.ts';
import type { Warmable } from './warm-pool.ts';

const KILLED = 128 + 9;
const REMOVE_ATTEMPTS = 20;
const REMOVE_EVERY_MS = 500;

export interface Container extends Warmable {
  readonly id: string;
  /** Changes its resource limits while it waits. */
  adjust(resources: Record<string, number>): Promise<void>;
  /** Starts its job. */
  run(job: ContainerJob): SandboxProcess;
  /** Resolves when it is removed, or when the engine does not answer. */
  readonly removed: Promise<void>;
}

export interface ContainerJob {
  /** For the guest's standard input. */
  readonly bytes: Pieces;
  /** Takes what follows the marker on standard output; null = the program has no workspace. */
  readonly left: { readonly marker: string; readonly receiver: WorkspaceReceiver } | null;
}

/** @throws Error of the engine if it could not be created or started; it is cleaned up then */
export async function startContainer(docker: Docker, options: Docker.ContainerCreateOptions): Promise<Container> {
  // an engine that dies never answers
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
  let collection: Collection | null = null;
  let unreadable = false;
  const ended = endOf(container, connection, killing.signal, () => collection).then(async (end) => {
    await collection?.finish();
    return unreadable ? LOST : end;
  });
  const removed = ended.then(() => remove(container));

  function kill(): void {
    if (killing.signal.aborted) return;
    collection?.abandon();
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
    run({ bytes, left }) {
      let { stdout } = printed;
      if (left !== null) {
        const { before, after } = splitAt(printed.stdout, left.marker, connection);
        stdout = before;
        collection = collect(after, left.receiver, kill);
      }
      pour(bytes, connection, () => {
        unreadable = true;
        kill();
      });
      return {
        stdout,
        stderr: printed.stderr,
        ended,
        terminate() {
          collection?.abandon();
          void container.kill({ signal: 'SIGTERM' }).catch(() => undefined);
        },
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

async function endOf(
  container: Docker.Container,
  connection: Duplex,
  killing: AbortSignal,
  collection: () => Collection | null,
): Promise<ProcessEnd> {
  const closed = new Promise<void>((resolve) => {
    connection.once('close', resolve);
    connection.once('end', resolve);
  });
  // if the engine cannot even kill the container, the container is lost
  let killTimer: NodeJS.Timeout | undefined;
  const given = new Promise<null>((resolve) => {
    killing.addEventListener('abort', () => {
      killTimer = setTimeout(() => resolve(null), limits.engineKillMs);
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
  clearTimeout(killTimer);
  // the last output may still be in transit, and the receiver of files may be slower than the guest
  if (status === null) collection()?.abandon();
  const patience = collection() === null ? limits.drainMs : limits.workspaceCollectMs;
  let drain: NodeJS.Timeout | undefined;
  await Promise.race([closed, new Promise((resolve) => (drain = setTimeout(resolve, patience)))]);
  clearTimeout(drain);
  connection.destroy();
  if (status === null) return LOST;
  const state = await within(limits.engineMs, container.inspect()).then(
    ({ State }) => State,
    () => null,
  );
  // the engine is gone, so it is unknown what killed the container
  if (state === null && status === KILLED) return LOST;
  return { exitCode: status, signal: null, oom: state?.OOMKilled === true };
}

/**
 * Called when the connection has closed. Usually the program has ended and the answer to `wait` follows. An engine that
 * died never sends that answer and its client reports no error, so the engine is queried.
 *
 * @returns the exit code; null if the engine does not answer
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

/** Retries until the container is removed; if the engine is unavailable, the reaper removes it later. */
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
