/**
 * What the engine's builder has no bounds for: how many processes a step starts, and how much a build writes to the
 * machine's disk. Every image and container of a build carries a label of its own (`followable` puts it behind each FROM).
 *
 * Owns: images and containers with that label, but for the one that is tagged. Does not own: the build itself.
 * Invariants:
 * 1. A step has its limit of processes some milliseconds after its start.
 * 2. A build that has written more than it may is ended at the next look.
 * 3. Afterwards nothing of it is left but the image that was tagged, and what that stands on.
 */
import type { Readable } from 'node:stream';

import type Docker from 'dockerode';

import { limits } from '../limits.ts';
import { LABEL, within } from '../sandbox/docker-engine.ts';

export const BUILD_LABEL = `${LABEL}.build`;
const MEBIBYTE = 1_048_576;
/** A chain of images goes leaf by leaf, where the engine does not take the chain at once. */
const MOST_PASSES = 4;

export interface BuildWatch {
  /** Resolves when it is over and what is left of the build is removed. */
  end(): Promise<void>;
}

/**
 * @param mark the label's value, which no other build has
 * @param stop told why the build has to end
 */
export async function watchBuild(docker: Docker, mark: string, stop: (reason: Error) => void): Promise<BuildWatch> {
  const { processes, diskMb } = limits.buildMeans;
  const filters = { label: [`${BUILD_LABEL}=${mark}`] };
  const events = (await docker.getEvents({
    filters: { ...filters, type: ['container'], event: ['start'] },
  })) as Readable;
  events.on('error', () => undefined);
  events.on('data', (chunk: Buffer) => {
    for (const [, id = ''] of chunk.toString().matchAll(/"id":"([0-9a-f]{64})"/g)) void bound(id);
  });

  async function bound(id: string): Promise<void> {
    // one that has ended already needs none
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
    // in case the event was missed
    await Promise.all(containers.map(({ Id: id }) => bound(id)));
    const sizes = new Map(images.map(({ Id: id, Size: size }) => [id, size]));
    const layers = images.map(({ ParentId: parent, Size: size }) => size - (sizes.get(parent) ?? size));
    return [...layers, ...containers.map(({ SizeRw: size = 0 }) => size)].reduce((sum, size) => sum + size, 0);
  }

  async function look(): Promise<void> {
    try {
      if ((await measure()) > diskMb * MEBIBYTE) stop(new Error(`it wrote more than ${diskMb} MiB`));
    } catch {
      // an engine that does not answer ends the build by itself
    }
  }

  let looking: Promise<void> | null = null;
  const timer = setInterval(() => {
    looking ??= look().finally(() => {
      looking = null;
    });
  }, limits.buildLookMs);

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
    // the engine takes what a leaf alone stands on with it
    await Promise.allSettled(leaves.map(({ Id: id }) => docker.getImage(id).remove()));
  }
}
