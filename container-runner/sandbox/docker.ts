/**
 * Programs in containers of a Docker engine (R2): the strongest level. Each program has its own container, which is used
 * once. Some containers are warm, with a preloaded interpreter.
 *
 * Owns the containers with this runner's label. Does not own images (images/).
 * Invariants:
 * 1. Every container has the complete hardening; if a part is unavailable, the level is unavailable.
 * 2. Containers of an earlier process are removed before the first program starts.
 */
import { createHash, randomUUID } from 'node:crypto';
import fs from 'node:fs/promises';

import type Docker from 'dockerode';

import { BASE_ALIASES, type BaseImageOptions, BaseImages, hasImage } from '../images/base-images.ts';
import type { ImageBuild } from '../images/image-build.ts';
import { ToolImages } from '../images/tool-images.ts';
import { limits } from '../limits.ts';
import type { StateFolder } from '../state.ts';
import { type Container, type ContainerJob, startContainer } from './docker-container.ts';
import { connectEngine, LABEL, messageOf } from './docker-engine.ts';
import { imageJobBytes, jobBytes, TOOLS, waitingFor, waitingInImage } from './docker-guest.ts';
import { adjustable, CONTAINER, hardened, placesOf } from './docker-hardening.ts';
import { newMarker } from './docker-streams.ts';
import { probeBy } from './probe.ts';
import {
  type Availability,
  everywhere,
  type Held,
  type ImageLaunch,
  type Interpreter,
  INTERPRETERS,
  isStandard,
  type Launch,
  type ResourceLimits,
  type Sandbox,
  type SandboxProcess,
  STANDARD,
  unavailable,
} from './sandbox.ts';
import { seccompProfile } from './seccomp.ts';
import { deathOf, stateOf, WarmPool, type WarmState } from './warm-pool.ts';

/** Label with the runner that owns a container. */
export const OWNER = `${LABEL}.runner`;

export interface DockerOptions {
  /** Path of the engine's socket; null = `DOCKER_HOST`, or else the default. */
  readonly socket: string | null;
  readonly state: StateFolder;
  /** Number of warm containers of each kind. */
  readonly warm: number;
  readonly images: BaseImageOptions['own'];
  /** Images that a Dockerfile may use, as patterns. */
  readonly allowed: readonly string[];
  readonly pipIndex: string | null;
  readonly log: (message: string) => void;
  /** Called with the state of each base image. */
  readonly onImage?: BaseImageOptions['onImage'];
}

interface Connected {
  readonly docker: Docker;
  readonly images: BaseImages;
  readonly tools: ToolImages;
  readonly seccomp: string;
  readonly owner: string;
}

export class DockerSandbox implements Sandbox {
  readonly level = 'docker';
  readonly hardening = [
    'no network',
    'read-only root',
    'no capabilities',
    'unprivileged user',
    'system call filter',
    'control groups',
  ];
  readonly #options: DockerOptions;
  readonly #pools: Readonly<Record<Interpreter, WarmPool<Container>>>;
  readonly #removals = new Set<Promise<void>>();
  /** Images whose last job had no workspace; their next reserved container has none either. */
  readonly #withoutWorkspace = new Set<string>();
  #connected: Connected | null = null;
  #tools: Promise<string> | null = null;

  constructor(options: DockerOptions) {
    this.#options = options;
    const pool = (interpreter: Interpreter): WarmPool<Container> =>
      new WarmPool(options.warm, () => this.#create(interpreter, STANDARD));
    this.#pools = { python3: pool('python3'), shell: pool('shell'), node: pool('node') };
  }

  get warm(): WarmState {
    return stateOf(this.#pools);
  }

  async probe(): Promise<Readonly<Record<Interpreter, Availability>>> {
    const { socket, state, images: own, allowed, pipIndex, log, onImage } = this.#options;
    const seccomp = seccompProfile(process.arch);
    if (seccomp === null) return everywhere(unavailable(`there is no system call filter for ${process.arch}`));
    let docker: Docker;
    try {
      docker = await connectEngine(socket);
    } catch (fault) {
      return everywhere(unavailable(messageOf(fault)));
    }
    const images = new BaseImages({ docker, own, progress: log, onImage });
    const owner = await identityOf(state);
    const labels = { [LABEL]: 'build', [OWNER]: owner };
    const tools = new ToolImages({ docker, base: images, seccomp, labels, allowed, pipIndex });
    this.#connected = { docker, images, tools, seccomp, owner };
    await this.#reap();
    const availabilities = await Promise.all(
      INTERPRETERS.map(async (interpreter): Promise<readonly [Interpreter, Availability]> => {
        const image = await images.ensure(interpreter).then(
          () => null,
          (fault: unknown) => unavailable(`no image: ${messageOf(fault)}`),
        );
        return [interpreter, image ?? (await probeBy((launch) => this.#cold(launch), interpreter))];
      }),
    );
    return Object.fromEntries(availabilities) as Record<Interpreter, Availability>;
  }

  prepare(interpreter: Interpreter): void {
    this.#pools[interpreter].fill();
  }

  async start(launch: Launch): Promise<SandboxProcess> {
    // the size of a tmpfs cannot be changed
    if (launch.diskMb !== STANDARD.diskMb) return await this.#cold(launch);
    return await give(await this.#pools[launch.interpreter].take(), launch);
  }

  async hold(interpreter: Interpreter): Promise<Held> {
    const pool = this.#pools[interpreter];
    const container = await pool.reserve();
    const hasDied = deathOf(container);
    return {
      start: async (launch) => {
        if (hasDied()) return await this.start(launch);
        if (launch.diskMb === STANDARD.diskMb) return await give(container, launch);
        pool.giveBack(container);
        return await this.#cold(launch);
      },
      release: () => pool.giveBack(container),
    };
  }

  async startImage(launch: ImageLaunch): Promise<SandboxProcess> {
    const withWorkspace = launch.workspace !== undefined;
    if (!withWorkspace) this.#withoutWorkspace.add(launch.image);
    else this.#withoutWorkspace.delete(launch.image);
    if (this.#withoutWorkspace.size > limits.prewarmSessions) this.#withoutWorkspace.clear();
    const { container, own } = await this.#createInImage(launch.image, launch, withWorkspace);
    return await giveToImage(container, launch, own);
  }

  async holdImage(image: string): Promise<Held<ImageLaunch>> {
    const withWorkspace = !this.#withoutWorkspace.has(image);
    const { container, own } = await this.#createInImage(image, STANDARD, withWorkspace);
    const hasDied = deathOf(container);
    return {
      start: async (launch) => {
        if (hasDied()) return await this.startImage(launch);
        const fits = launch.diskMb === STANDARD.diskMb && (launch.workspace !== undefined) === withWorkspace;
        if (fits) return await giveToImage(container, launch, own, !isStandard(launch));
        void container.dispose();
        return await this.startImage(launch);
      },
      release: () => void container.dispose(),
    };
  }

  /** Creates a container of an image that waits for its program, and returns the image's own command. */
  async #createInImage(
    name: string,
    resources: ResourceLimits,
    withWorkspace: boolean,
  ): Promise<{ readonly container: Container; readonly own: readonly string[] }> {
    const { docker } = this.#engine();
    const image = await this.#imageOf(name);
    const { Config: config } = await docker.getImage(image).inspect();
    const host = hardened(resources, this.#engine().seccomp, withWorkspace);
    const container = await this.#createFrom(image, waitingInImage(), {
      ...host,
      Mounts: [
        { Type: 'volume', Source: await this.#toolsVolume(), Target: TOOLS, ReadOnly: true },
        ...placesOf(config.Volumes, resources.diskMb, [TOOLS, ...Object.keys(host.Tmpfs ?? {})]),
      ],
    });
    return { container, own: [config.Entrypoint ?? [], config.Cmd ?? []].flat() };
  }

  async buildImage(build: ImageBuild, progress: (text: string) => void, signal: AbortSignal): Promise<string> {
    return await this.#engine().tools.ensure(build, progress, signal);
  }

  /** Resolves an image of the engine. Common names fall back to the base images. */
  async #imageOf(name: string): Promise<string> {
    const { docker, images } = this.#engine();
    if (await hasImage(docker, name)) return name;
    const base = BASE_ALIASES.get(name.replace(/:latest$/, ''));
    if (base !== undefined) return await images.ensure(base);
    throw new Error(`the image ${name} is missing in the engine (the operator can run docker pull ${name})`);
  }

  async close(): Promise<void> {
    await Promise.all([...Object.values(this.#pools).map((pool) => pool.close()), this.#connected?.tools.close()]);
    await Promise.all(this.#removals);
  }

  async #cold(launch: Launch): Promise<SandboxProcess> {
    return (await this.#create(launch.interpreter, launch)).run(jobOf(launch));
  }

  async #create(interpreter: Interpreter, resources: ResourceLimits): Promise<Container> {
    const image = await this.#engine().images.ensure(interpreter);
    const host = hardened(resources, this.#engine().seccomp, true);
    return await this.#createFrom(image, waitingFor(interpreter), host);
  }

  async #createFrom(image: string, command: readonly string[], host: Docker.HostConfig): Promise<Container> {
    const { docker, owner } = this.#engine();
    const container = await startContainer(docker, {
      ...CONTAINER,
      Image: image,
      Entrypoint: [...command],
      Cmd: [],
      Labels: { [LABEL]: 'job', [OWNER]: owner },
      HostConfig: host,
    });
    this.#removals.add(container.removed);
    void container.removed.finally(() => this.#removals.delete(container.removed));
    return container;
  }

  /** A volume with busybox, for images without one; the engine fills it from the shell image. */
  #toolsVolume(): Promise<string> {
    this.#tools ??= this.#makeTools().catch((fault: unknown) => {
      this.#tools = null;
      throw fault;
    });
    return this.#tools;
  }

  async #makeTools(): Promise<string> {
    const { docker, images, owner } = this.#engine();
    const image = await images.ensure('shell');
    const name = `${LABEL}-tools-${createHash('sha256').update(image).digest('hex').slice(0, 24)}`;
    await docker.createVolume({ Name: name, Labels: { [LABEL]: 'tools' } });
    const filler = await docker.createContainer({
      Image: image,
      Cmd: ['true'],
      NetworkDisabled: true,
      Labels: { [LABEL]: 'tools', [OWNER]: owner },
      HostConfig: { NetworkMode: 'none', Mounts: [{ Type: 'volume', Source: name, Target: '/bin' }] },
    } as Docker.ContainerCreateOptions);
    await filler.remove({ force: true });
    return name;
  }

  /** Removes containers of an earlier process, and exited ones of any dead runner; a live runner removes its own. */
  async #reap(): Promise<void> {
    const { docker, owner } = this.#engine();
    const all = await docker.listContainers({ all: true, filters: { label: [OWNER] } });
    const abandoned = await Promise.all(
      all.map(async ({ Id: id, Labels: labels, State: state }) => {
        if (labels[OWNER] === owner) return id;
        if (labels[LABEL] !== 'job' || state !== 'exited') return null;
        const known = await docker
          .getContainer(id)
          .inspect()
          .catch(() => null);
        const endedAt = Date.parse(known?.State.FinishedAt ?? '');
        return Date.now() - endedAt > limits.abandonedMs ? id : null;
      }),
    );
    const found = abandoned.filter((id) => id !== null);
    if (found.length > 0) this.#options.log(`removing ${found.length} containers of an earlier run`);
    await Promise.all(
      found.map((id) =>
        docker
          .getContainer(id)
          .remove({ force: true, v: true })
          .catch((fault: unknown) => this.#options.log(`the container ${id} was not removed: ${messageOf(fault)}`)),
      ),
    );
  }

  #engine(): Connected {
    if (this.#connected === null) throw new Error('There was no Docker engine when the runner started');
    return this.#connected;
  }
}

function jobOf(launch: Launch): ContainerJob {
  const marker = newMarker();
  return { bytes: jobBytes(launch, marker), left: leftBy(launch, marker) };
}

function leftBy({ workspace }: Launch | ImageLaunch, marker: string): ContainerJob['left'] {
  return workspace === undefined ? null : { marker, receiver: workspace.receiver };
}

/** Starts the container's job with its resources. */
async function give(container: Container, launch: Launch): Promise<SandboxProcess> {
  try {
    if (!isStandard(launch)) await container.adjust(adjustable(launch));
    return container.run(jobOf(launch));
  } catch (fault) {
    void container.dispose();
    throw fault;
  }
}

async function giveToImage(
  container: Container,
  launch: ImageLaunch,
  own: readonly string[],
  otherMeans = false,
): Promise<SandboxProcess> {
  try {
    if (launch.command === null && own.length === 0) {
      throw new Error(`the image ${launch.image} has no default command, so the job must specify one`);
    }
    if (otherMeans) await container.adjust(adjustable(launch));
    const marker = newMarker();
    return container.run({ bytes: imageJobBytes(launch, own, marker), left: leftBy(launch, marker) });
  } catch (fault) {
    void container.dispose();
    throw fault;
  }
}

const IDENTITY = 'instance';

/** Identity of this runner, stable across restarts, to recognise its own containers. */
export async function identityOf(state: StateFolder): Promise<string> {
  state.requireFile(IDENTITY);
  const file = state.file(IDENTITY);
  const known = await fs.readFile(file, 'utf8').catch(() => null);
  if (known !== null && /^[\w-]{36}$/.test(known)) return known;
  if (known !== null) state.setAside(IDENTITY, 'it does not contain an id');
  const fresh = randomUUID();
  await fs.mkdir(state.directory, { recursive: true });
  await fs.writeFile(file, fresh, { mode: 0o600 });
  return fresh;
}
