/**
 * Limits what the engine's builder does not limit: the processes of a step, and the disk space of a build. Each image and
 * container of a build has a unique label (`sanitizeDockerfile` adds it after each FROM).
 *
 * Owns the images and containers with that label, except the tagged one. Does not own the build itself.
 * Invariants:
 * 1. A step gets its process limit some milliseconds after its start.
 * 2. A build that exceeds its disk limit is aborted at the next check.
 * 3. After the build, only the tagged image and its layers remain.
 */
import type { Readable } from 'node:stream';

import type Docker from 'dockerode';

import { limits } from '../limits.ts';
import { LABEL, within } from '../sandbox/docker-engine.ts';

export const BUILD_LABEL = `${LABEL}.build`;
const MEBIBYTE = 1_048_576;
/** Images are removed leaf by leaf, if the engine does not remove the whole chain. */
const MOST_PASSES = 4;

export interface BuildMonitor {
  /** Stops monitoring and removes the remains of the build. */
  end(): Promise<void>;
}

/**
 * @param mark the unique value of the label
 * @param stop called with the reason to abort the build
 */
export async function monitorBuild(docker: Docker, mark: string, stop: (reason: Error) => void): Promise<BuildMonitor> {
  const { processes, diskMb } = limits.buildResources;
  const filters = { label: [`${BUILD_LABEL}=${mark}`] };
  const events = (await docker.getEvents({
    filters: { ...filters, type: ['container'], event: ['start'] },
  })) as Readable;
  events.on('error', () => undefined);
  events.on('data', (chunk: Buffer) => {
    for (const [, id = ''] of chunk.toString().matchAll(/"id":"([0-9a-f]{64})"/g)) void bound(id);
  });

  async function bound(id: string): Promise<void> {
    // fails if the container has already ended
    await docker
      .getContainer(id)
      .update({ PidsLimit: processes })
      .catch(() => undefined);
  }

  async function measure(): Promise<number> {
    const [images, containers] = await Promise.all([
      docker.listImages({ all: true, filters }),
      docker.listContainers({ all: true, filters, size: true }) as Promise<
        { readonly Id: string; readonly SizeRw?: number }[]
      >,
    ]);
    // in case the start event was missed
    await Promise.all(containers.map(({ Id: id }) => bound(id)));
    const sizes = new Map(images.map(({ Id: id, Size: size }) => [id, size]));
    const layers = images.map(({ ParentId: parent, Size: size }) => size - (sizes.get(parent) ?? size));
    return [...layers, ...containers.map(({ SizeRw: size = 0 }) => size)].reduce((sum, size) => sum + size, 0);
  }

  async function look(): Promise<void> {
    try {
      if ((await measure()) > diskMb * MEBIBYTE) stop(new Error(`it wrote more than ${diskMb} MiB`));
    } catch {
      // if the engine does not answer, the build fails anyway
    }
  }

  let looking: Promise<void> | null = null;
  const timer = setInterval(() => {
    looking ??= look().finally(() => {
      looking = null;
    });
  }, limits.buildPollMs);

  return {
    async end() {
      clearInterval(timer);
      events.destroy();
      await looking;
      await within(limits.engineStartMs, remove(docker, filters)).catch(() => undefined);
    },
  };
}

async function remove(docker: Docker, filters: { readonly label: string[] }): Promise<void> {
  const containers = await docker.listContainers({ all: true, filters });
  await Promise.allSettled(containers.map(({ Id: id }) => docker.getContainer(id).remove({ force: true, v: true })));
  for (let pass = 1; pass <= MOST_PASSES; pass += 1) {
    const images = await docker.listImages({ all: true, filters });
    const parents = new Set(images.map(({ ParentId: parent }) => parent));
    const leaves = images.filter(
      ({ Id: id, RepoTags: tags }) => !parents.has(id) && (tags ?? []).every((tag) => tag === '<none>:<none>'),
    );
    if (leaves.length === 0) return;
    // the engine also removes parents without other children
    await Promise.allSettled(leaves.map(({ Id: id }) => docker.getImage(id).remove()));
  }
}
