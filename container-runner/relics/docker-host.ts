/**
 * Relics in containers (R5). A relic is two of them: its proxy, which has the network and speaks for us, and
 * the service, which shares the proxy's network and nothing else.
 *
 * Owns: containers, networks and volumes with this runner's label and the word `relic`.
 * Does not own: images that were there before.
 *
 * Invariants:
 * 1. A space has a network of its own without a way out: no gateway, so that the machine itself is out of reach.
 * 2. No port is published and nothing of the machine is mounted.
 * 3. State stands in a volume that belongs to the space and the name, and to no container.
 */
import { createHash } from 'node:crypto';
import type { Duplex } from 'node:stream';

import type Docker from 'dockerode';

import { type BaseImages, hasImage } from '../images/base-images.ts';
import { isAllowed } from '../images/image-name.ts';
import { SANDBOX_UID } from '../images/local-parts.ts';
import type { ToolImages } from '../images/tool-images.ts';
import { limits } from '../limits.ts';
import { LABEL, messageOf, statusOf, within } from '../sandbox/docker-engine.ts';
import { hardened, placesOf } from '../sandbox/docker-hardening.ts';
import { demultiplex } from '../sandbox/docker-streams.ts';
import { mayTake } from '../share.ts';
import type { RelicSpec } from './definition.ts';
import { RelicProxy, doorCommand, tailOf } from './relic-proxy.ts';
import type { RelicHost, RelicId, RelicService } from './service.ts';

export interface DockerHostOptions {
  readonly docker: Docker;
  readonly images: BaseImages;
  /** Images that are made of a manifest's files. */
  readonly built: ToolImages;
  /** Images that may be named, as patterns. */
  readonly allowed: readonly string[];
  /** The system call filter, as the engine takes it. */
  readonly seccomp: string;
  /** Which runner made it. */
  readonly owner: string;
  readonly ownerLabel: string;
  readonly log: (message: string) => void;
  /** What the state of one relic may take on the disk. */
  readonly stateBytes: number;
}

const STATE = '/state';
const USER = `${SANDBOX_UID}:${SANDBOX_UID}`;
const DOOR_MEMORY_MB = 64;
/** Whose state a volume holds. */
const TENANT = `${LABEL}.tenant`;
/** In the proxy itself, where no program may listen on such a port. */
const NO_NAME_SERVER = '127.0.0.1';

export class DockerRelicHost implements RelicHost {
  readonly level = 'docker';
  readonly #options: DockerHostOptions;
  readonly #networks = new Map<string, Promise<string>>();

  constructor(options: DockerHostOptions) {
    this.#options = options;
  }

  refusal(): string | null {
    return null;
  }

  async open(): Promise<void> {
    const { docker } = this.#options;
    const filters = { label: this.#labels('relic').map(([name, value]) => `${name}=${value}`) };
    const containers = await docker.listContainers({ all: true, filters });
    await Promise.all(containers.map(({ Id: id }) => this.#discard(docker.getContainer(id))));
    const networks = await docker.listNetworks({ filters });
    await Promise.all(networks.map(({ Id: id }) => this.#quietly(docker.getNetwork(id).remove())));
  }

  async close(): Promise<void> {
    await this.#options.built.close();
    await Promise.all([...this.#networks.keys()].map((space) => this.leave(space)));
  }

  async leave(space: string): Promise<void> {
    const network = this.#networks.get(space);
    this.#networks.delete(space);
    const name = await network?.catch(() => undefined);
    if (name !== undefined) await this.#quietly(this.#options.docker.getNetwork(name).remove());
  }

  async forget({ space, name }: { readonly space: string; readonly name: string | null }): Promise<void> {
    const { docker } = this.#options;
    const label = [...this.#labels('relic'), ...labelsOf(space, name)].map(([key, value]) => `${key}=${value}`);
    const { Volumes: volumes } = await docker.listVolumes({ filters: { label } });
    await Promise.all(volumes.map(({ Name: volume }) => this.#quietly(docker.getVolume(volume).remove())));
  }

  async start(id: RelicId, spec: RelicSpec, tenant: string | null): Promise<RelicService> {
    const { docker, images } = this.#options;
    const [doorImage, image, network, volume] = await Promise.all([
      images.ensure('python3'),
      this.#imageOf(spec),
      this.#network(id.space),
      spec.persistent ? this.#volume(id, tenant) : null,
    ]);
    const doorContainer = await docker.createContainer(this.#doorOptions(id, spec, doorImage, network, volume));
    let service: Docker.Container | null = null;
    let issue: string | null = null;
    try {
      const doorStream = (await doorContainer.attach({
        stream: true,
        stdin: true,
        stdout: true,
        stderr: true,
        hijack: true,
      })) as Duplex;
      doorStream.on('error', () => undefined);
      await doorContainer.start();
      const printed = demultiplex(doorStream);
      printed.stderr.resume();
      const proxy = new RelicProxy(doorStream, printed.stdout, (why) => {
        if (issue !== null) return;
        issue = `its state is not kept within bounds: ${why}`;
        // the proxy lives until it is killed: without this it would still answer for a service that must not serve
        proxy.close(issue);
        void this.#quietly(doorContainer.kill());
      });
      const { Config: config } = await docker.getImage(image).inspect();
      const options = this.#serviceOptions(id, spec, image, doorContainer.id, volume, config.Volumes);
      service = await docker.createContainer(options);
      const said = (await service.attach({ stream: true, stdout: true, stderr: true })) as unknown as Duplex;
      said.on('error', () => undefined);
      const { stdout, stderr } = demultiplex(said);
      const printedLast = tailOf([stdout, stderr]);
      const tail = (): string => issue ?? printedLast();
      await service.start();
      return this.#running(service, doorContainer, proxy, doorStream, said, tail);
    } catch (fault) {
      await Promise.all([service, doorContainer].map((container) => container && this.#discard(container)));
      throw new Error(issue ?? messageOf(fault), { cause: fault });
    }
  }

  #running(
    service: Docker.Container,
    doorContainer: Docker.Container,
    proxy: RelicProxy,
    doorStream: Duplex,
    said: Duplex,
    tail: () => string,
  ): RelicService {
    const exit = service.wait().then(
      ({ StatusCode: code }: { readonly StatusCode: number }) => `exit code ${code}`,
      () => 'the engine lost it',
    );
    const shut = doorContainer.wait().then(
      () => 'its proxy ended',
      () => 'the engine lost its proxy',
    );
    const ended = Promise.race([exit, shut]).then(async (how) => {
      proxy.close();
      // first the connections, then the containers: a kill waits for readers
      doorStream.destroy();
      said.destroy();
      const words = tail();
      await Promise.all([this.#discard(service), this.#discard(doorContainer)]);
      return words === '' ? `it ended (${how})` : `it ended (${how}): ${words}`;
    });
    return {
      ask: (call, timeoutMs) => proxy.ask(call, timeoutMs),
      ended,
      stop: async () => {
        // the engine sends TERM, waits, and kills
        await this.#quietly(within(limits.engineMs, service.stop({ t: Math.ceil(limits.killGraceMs / 1_000) })));
        await this.#quietly(service.kill());
        await ended;
      },
    };
  }

  #doorOptions(
    id: RelicId,
    spec: RelicSpec,
    image: string,
    network: string,
    volume: string | null,
  ): Docker.ContainerCreateOptions {
    const state = volume === null ? null : { place: STATE, bytes: this.#options.stateBytes };
    return {
      Image: image,
      Entrypoint: doorCommand('python3', spec.port, state),
      Cmd: [],
      User: USER,
      Hostname: id.name,
      Labels: this.#labelled(id),
      OpenStdin: true,
      StdinOnce: true,
      AttachStdin: true,
      AttachStdout: true,
      AttachStderr: true,
      HostConfig: {
        ...hardened({ ...meansOf(spec), memoryMb: DOOR_MEMORY_MB }, this.#options.seccomp),
        NetworkMode: network,
        // the engine asks these for names that it does not know: by itself it would ask the machine's, past the network
        Dns: [NO_NAME_SERVER],
        DnsOptions: [],
        DnsSearch: [],
        Tmpfs: {},
        // to measure it
        Mounts: volume === null ? [] : [{ Type: 'volume', Source: volume, Target: STATE, ReadOnly: true }],
      } as Docker.HostConfig,
      NetworkingConfig: { EndpointsConfig: { [network]: { Aliases: [id.name] } } },
    };
  }

  #serviceOptions(
    id: RelicId,
    spec: RelicSpec,
    image: string,
    doorId: string,
    volume: string | null,
    declared: unknown,
  ): Docker.ContainerCreateOptions {
    const host = hardened(meansOf(spec), this.#options.seccomp);
    const scratch = `rw,nosuid,nodev,mode=1777,size=${limits.diskMb}m,nr_inodes=${limits.inodes}`;
    const places = { '/tmp': scratch, '/dev/shm': scratch, ...(volume === null ? { [STATE]: scratch } : {}) };
    return {
      Image: image,
      ...(spec.command === null ? {} : { Entrypoint: spec.command.slice(), Cmd: [] }),
      User: USER,
      Env: [`RELIC_STATE=${STATE}`, `RELIC_PORT=${spec.port}`, `PORT=${spec.port}`, 'HOME=/tmp'],
      Labels: this.#labelled(id),
      // the runner asks by itself, over the proxy
      Healthcheck: { Test: ['NONE'] },
      AttachStdout: true,
      AttachStderr: true,
      HostConfig: {
        ...host,
        NetworkMode: `container:${doorId}`,
        // a first process has no default for TERM: with another one before it every program ends when asked to
        Init: true,
        Tmpfs: places,
        Mounts: [
          ...(volume === null ? [] : [{ Type: 'volume', Source: volume, Target: STATE }]),
          ...placesOf(declared, limits.diskMb, [STATE, ...Object.keys(places)]),
        ],
      } as Docker.HostConfig,
    };
  }

  async #imageOf({ image, build }: RelicSpec): Promise<string> {
    const { docker, built, allowed, log } = this.#options;
    if (build !== null) return await built.ensure(build, (text) => log(text.trimEnd()));
    const name = image ?? '';
    if (!isAllowed(name, allowed)) {
      throw new Error(`the operator does not allow the image ${name} (allowed: ${allowed.join(', ')})`);
    }
    if (!(await hasImage(docker, name)))
      throw new Error(`the image ${name} is not in the engine (docker pull ${name})`);
    return name;
  }

  #network(space: string): Promise<string> {
    const known = this.#networks.get(space);
    if (known !== undefined) return known;
    const { docker } = this.#options;
    const name = `${LABEL}-relics-${idOf(this.#options.owner, space)}`;
    const made = docker
      .createNetwork({
        Name: name,
        Internal: true,
        CheckDuplicate: true,
        // without an address of the machine on it there is no gateway to reach the machine by
        Options: { 'com.docker.network.bridge.inhibit_ipv4': 'true' },
        Labels: Object.fromEntries([...this.#labels('relic'), ...labelsOf(space, null)]),
      } as Docker.NetworkCreateOptions)
      .then(
        () => name,
        (fault: unknown) => {
          if (statusOf(fault) === 409) return name;
          this.#networks.delete(space);
          throw new Error(messageOf(fault));
        },
      );
    this.#networks.set(space, made);
    return made;
  }

  /** The volume of a relic's state, which the unprivileged user may write. */
  async #volume(id: RelicId, tenant: string | null): Promise<string> {
    const { docker, images, owner } = this.#options;
    const name = `${LABEL}-relic-${idOf(owner, id.space, id.name)}`;
    const known = await docker
      .getVolume(name)
      .inspect()
      .then(
        () => true,
        () => false,
      );
    if (known) return name;
    await this.#admitState(tenant);
    await docker.createVolume({
      Name: name,
      Labels: Object.fromEntries([
        ...this.#labels('relic'),
        ...labelsOf(id.space, id.name),
        ...(tenant === null ? [] : [[TENANT, tenant] as const]),
      ]),
    });
    // whoever mounts it first decides about its owner
    const container = await docker.createContainer({
      Image: await images.ensure('shell'),
      Cmd: ['/bin/chown', USER, STATE],
      User: '0:0',
      NetworkDisabled: true,
      Labels: this.#labelled(id),
      HostConfig: {
        NetworkMode: 'none',
        ReadonlyRootfs: true,
        CapDrop: ['ALL'],
        CapAdd: ['CHOWN'],
        LogConfig: { Type: 'none', Config: {} },
        Mounts: [{ Type: 'volume', Source: name, Target: STATE }],
      } as Docker.HostConfig,
    });
    try {
      await container.start();
      const { StatusCode: code } = (await container.wait()) as { readonly StatusCode: number };
      if (code !== 0) throw new Error(`its volume could not be prepared (exit code ${code})`);
    } catch (fault) {
      await this.#discard(container);
      await this.#quietly(docker.getVolume(name).remove());
      throw fault;
    }
    await this.#discard(container);
    return name;
  }

  /** @throws Error when as many states are kept as may be */
  async #admitState(tenant: string | null): Promise<void> {
    const label = this.#labels('relic').map(([key, value]) => `${key}=${value}`);
    const { Volumes: volumes } = await this.#options.docker.listVolumes({ filters: { label } });
    const own = volumes.filter(({ Labels: labels }) => (labels?.[TENANT] ?? null) === tenant).length;
    if (mayTake(tenant, { own, used: volumes.length, most: limits.relicStates })) return;
    throw new Error(
      `${volumes.length} relics keep their state here, ${own} of them of this API key (allowed: ${limits.relicStates}); those of sessions go with them`,
    );
  }

  #labels(kind: string): (readonly [string, string])[] {
    const { owner, ownerLabel } = this.#options;
    return [
      [LABEL, kind],
      [ownerLabel, owner],
    ];
  }

  #labelled({ space, name }: RelicId): Record<string, string> {
    return Object.fromEntries([...this.#labels('relic'), ...labelsOf(space, name)]);
  }

  async #discard(container: Docker.Container): Promise<void> {
    await this.#quietly(within(limits.engineMs, container.remove({ force: true, v: false })));
  }

  /** What cannot be removed now is removed at the next start. */
  async #quietly(work: Promise<unknown>): Promise<void> {
    await work.catch(() => undefined);
  }
}

function meansOf({ memory_mb: memoryMb, cpus }: RelicSpec): Parameters<typeof hardened>[0] {
  return { memoryMb, cpus, processes: limits.relicProcesses, diskMb: limits.diskMb, timeoutMs: limits.maxTimeoutMs };
}

function labelsOf(space: string, name: string | null): (readonly [string, string])[] {
  return [[`${LABEL}.space`, space], ...(name === null ? [] : ([[`${LABEL}.name`, name]] as const))];
}

/** A name of the engine's for what may have any characters. */
function idOf(...parts: readonly string[]): string {
  return createHash('sha256').update(parts.join('\0')).digest('hex').slice(0, 32);
}
