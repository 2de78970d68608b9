/**
 * Relics in containers (R5). A relic is a pair of containers: a proxy, which is attached to the network, and the service,
 * which shares the proxy's network namespace and nothing else.
 *
 * Owns the containers, networks and volumes with this runner's label and the word `relic`. Does not own existing images.
 *
 * Invariants:
 * 1. Each scope has a separate network without a gateway, so the machine and the internet are unreachable.
 * 2. No port is published and no directory of the machine is mounted.
 * 3. State is in a volume that belongs to the scope and the name, not to a container.
 * 4. A network is created only after the last one of its scope is removed: a container could not start in that one.
 */
import { createHash } from 'node:crypto';
import type { Duplex } from 'node:stream';
import { finished } from 'node:stream/promises';

import type Docker from 'dockerode';

import { type BaseImages, hasImage } from '../images/base-images.ts';
import { isAllowed } from '../images/image-name.ts';
import { SANDBOX_UID } from '../images/local-parts.ts';
import type { ToolImages } from '../images/tool-images.ts';
import { limits } from '../limits.ts';
import { LABEL, messageOf, statusOf, within } from '../sandbox/docker-engine.ts';
import { hardened, placesOf } from '../sandbox/docker-hardening.ts';
import { demultiplex } from '../sandbox/docker-streams.ts';
import { hasCapacity } from '../fair-share.ts';
import type { RelicSpec } from './definition.ts';
import { RelicProxy, proxyCommand, tailOf } from './relic-proxy.ts';
import type { RelicHost, RelicId, RelicService } from './relic-service.ts';

export interface DockerHostOptions {
  readonly docker: Docker;
  readonly images: BaseImages;
  /** Builder of images from a manifest's files. */
  readonly built: ToolImages;
  /** Images that manifests may name, as patterns. */
  readonly allowed: readonly string[];
  /** The system call filter in the engine's format. */
  readonly seccomp: string;
  /** Identity of this runner. */
  readonly owner: string;
  readonly ownerLabel: string;
  readonly log: (message: string) => void;
  /** Maximum disk scope of one relic's state. */
  readonly stateBytes: number;
}

const STATE = '/state';
const USER = `${SANDBOX_UID}:${SANDBOX_UID}`;
const DOOR_MEMORY_MB = 64;
/** Label of the namespace that owns a volume. */
const TENANT = `${LABEL}.tenant`;
/** In the proxy's network namespace, where no program can bind this port. */
const NO_NAME_SERVER = '127.0.0.1';

export class DockerRelicHost implements RelicHost {
  readonly level = 'docker';
  readonly #options: DockerHostOptions;
  readonly #networks = new Map<string, Promise<string>>();
  /** Networks that are being removed, by scope. */
  readonly #leaving = new Map<string, Promise<void>>();
  /** Volumes whose owner this process has set. */
  readonly #prepared = new Set<string>();

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
    await Promise.all([...this.#networks.keys()].map((scope) => this.leave(scope)));
  }

  async leave(scope: string): Promise<void> {
    const network = this.#networks.get(scope);
    if (network === undefined) return;
    this.#networks.delete(scope);
    const left = this.#quietly(network.then((name) => this.#options.docker.getNetwork(name).remove()));
    this.#leaving.set(scope, left);
    await left;
    if (this.#leaving.get(scope) === left) this.#leaving.delete(scope);
  }

  async forget({ scope, name }: { readonly scope: string; readonly name: string | null }): Promise<void> {
    const { docker } = this.#options;
    const label = [...this.#labels('relic'), ...labelsOf(scope, name)].map(([key, value]) => `${key}=${value}`);
    const { Volumes: volumes } = await docker.listVolumes({ filters: { label } });
    for (const { Name: volume } of volumes) this.#prepared.delete(volume);
    await Promise.all(volumes.map(({ Name: volume }) => this.#quietly(docker.getVolume(volume).remove())));
  }

  async start(id: RelicId, spec: RelicSpec, tenant: string | null): Promise<RelicService> {
    const { docker, images } = this.#options;
    const [proxyImage, image] = await Promise.all([images.ensure('python3'), this.#imageOf(spec)]);
    // one after the other: what a failed start has begun would still be created after its scope was forgotten
    const network = await this.#network(id.scope);
    const volume = spec.persistent ? await this.#volume(id, tenant) : null;
    const proxyContainer = await docker.createContainer(this.#proxyOptions(id, spec, proxyImage, network, volume));
    let service: Docker.Container | null = null;
    let issue: string | null = null;
    try {
      const proxyStream = (await proxyContainer.attach({
        stream: true,
        stdin: true,
        stdout: true,
        stderr: true,
        hijack: true,
      })) as Duplex;
      proxyStream.on('error', () => undefined);
      await proxyContainer.start();
      const printed = demultiplex(proxyStream);
      printed.stderr.resume();
      const proxy = new RelicProxy(proxyStream, printed.stdout, (why) => {
        if (issue !== null) return;
        issue = `its state exceeds a limit: ${why}`;
        // the proxy would otherwise answer for a stopped service until it is killed
        proxy.close(issue);
        void this.#quietly(proxyContainer.kill());
      });
      const { Config: config } = await docker.getImage(image).inspect();
      const options = this.#serviceOptions(id, spec, image, proxyContainer.id, volume, config.Volumes);
      service = await docker.createContainer(options);
      const output = (await service.attach({ stream: true, stdout: true, stderr: true })) as Duplex;
      output.on('error', () => undefined);
      const { stdout, stderr } = demultiplex(output);
      const printedLast = tailOf([stdout, stderr]);
      const last = {
        words: (): string => issue ?? printedLast(),
        said: Promise.allSettled([finished(stdout), finished(stderr)]),
      };
      await service.start();
      return this.#running(service, proxyContainer, proxy, proxyStream, output, last);
    } catch (fault) {
      await Promise.all([service, proxyContainer].map((container) => container && this.#discard(container)));
      // the operator may have removed the network; the next start creates it again, or finds it
      if (statusOf(fault) === 404) this.#networks.delete(id.scope);
      throw new Error(issue ?? messageOf(fault), { cause: fault });
    }
  }

  #running(
    service: Docker.Container,
    proxyContainer: Docker.Container,
    proxy: RelicProxy,
    proxyStream: Duplex,
    output: Duplex,
    last: { readonly words: () => string; readonly said: Promise<unknown> },
  ): RelicService {
    const exit = service.wait().then(
      async ({ StatusCode: code }: { readonly StatusCode: number }) => {
        // its exit can be known before its last output has arrived
        await this.#quietly(within(limits.relicLastWordsMs, last.said));
        return `exit code ${code}`;
      },
      () => 'the engine lost the container',
    );
    const shut = proxyContainer.wait().then(
      () => 'its proxy ended',
      () => 'the engine lost the proxy',
    );
    const ended = Promise.race([exit, shut]).then(async (how) => {
      proxy.close();
      // close the connections first, because killing a container waits for readers
      proxyStream.destroy();
      output.destroy();
      const words = last.words();
      await Promise.all([this.#discard(service), this.#discard(proxyContainer)]);
      return words === '' ? `it ended (${how})` : `it ended (${how}): ${words}`;
    });
    return {
      ask: (call, timeoutMs) => proxy.ask(call, timeoutMs),
      ended,
      stop: async () => {
        // the engine sends TERM, waits, and sends KILL
        await this.#quietly(within(limits.engineMs, service.stop({ t: Math.ceil(limits.killGraceMs / 1_000) })));
        await this.#quietly(service.kill());
        await ended;
      },
    };
  }

  #proxyOptions(
    id: RelicId,
    spec: RelicSpec,
    image: string,
    network: string,
    volume: string | null,
  ): Docker.ContainerCreateOptions {
    const state = volume === null ? null : { place: STATE, bytes: this.#options.stateBytes };
    return {
      Image: image,
      Entrypoint: proxyCommand('python3', spec.port, state),
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
        // without this, the engine would forward DNS queries to the machine's name servers, outside of the network
        Dns: [NO_NAME_SERVER],
        DnsOptions: [],
        DnsSearch: [],
        Tmpfs: {},
        // for measuring it
        Mounts: volume === null ? [] : [{ Type: 'volume', Source: volume, Target: STATE, ReadOnly: true }],
      } as Docker.HostConfig,
      NetworkingConfig: { EndpointsConfig: { [network]: { Aliases: [id.name] } } },
    };
  }

  #serviceOptions(
    id: RelicId,
    spec: RelicSpec,
    image: string,
    proxyId: string,
    volume: string | null,
    declared: unknown,
  ): Docker.ContainerCreateOptions {
    const host = hardened(meansOf(spec), this.#options.seccomp);
    const scratch = `rw,nosuid,nodev,mode=1777,size=${limits.diskMb}m,nr_inodes=${limits.inodes}`;
    const state = spec.state ?? STATE;
    const places = { '/tmp': scratch, '/dev/shm': scratch, ...(volume === null ? { [state]: scratch } : {}) };
    const own = Object.entries(spec.environment).map(([name, value]) => `${name}=${value}`);
    return {
      Image: image,
      ...(spec.command === null ? {} : { Entrypoint: spec.command.slice(), Cmd: [] }),
      User: USER,
      Env: [`RELIC_STATE=${state}`, `RELIC_PORT=${spec.port}`, `PORT=${spec.port}`, 'HOME=/tmp', ...own],
      Labels: this.#labelled(id),
      // the runner checks the health through the proxy
      Healthcheck: { Test: ['NONE'] },
      AttachStdout: true,
      AttachStderr: true,
      HostConfig: {
        ...host,
        NetworkMode: `container:${proxyId}`,
        // pid 1 ignores TERM by default; with an init process, every program ends on TERM
        Init: true,
        Tmpfs: places,
        Mounts: [
          // the image's own directory must not replace the owner of the volume
          ...(volume === null
            ? []
            : [{ Type: 'volume', Source: volume, Target: state, VolumeOptions: { NoCopy: true } }]),
          ...placesOf(declared, limits.diskMb, [state, ...Object.keys(places)]),
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
      throw new Error(`the image ${name} is missing in the engine (run docker pull ${name})`);
    return name;
  }

  #network(scope: string): Promise<string> {
    const known = this.#networks.get(scope);
    if (known !== undefined) return known;
    const { docker } = this.#options;
    const name = `${LABEL}-relics-${idOf(this.#options.owner, scope)}`;
    const made = docker
      .createNetwork({
        Name: name,
        Internal: true,
        CheckDuplicate: true,
        // an interface without an address on the bridge has no gateway and cannot reach the host
        Options: { 'com.docker.network.bridge.inhibit_ipv4': 'true' },
        Labels: Object.fromEntries([...this.#labels('relic'), ...labelsOf(scope, null)]),
      } as Docker.NetworkCreateOptions)
      .then(
        () => name,
        (fault: unknown) => {
          if (statusOf(fault) === 409) return name;
          this.#networks.delete(scope);
          throw new Error(messageOf(fault));
        },
      );
    this.#networks.set(scope, made);
    return made;
  }

  /** The volume of a relic's state, writable by the unprivileged user. */
  async #volume(id: RelicId, tenant: string | null): Promise<string> {
    const { docker, images, owner } = this.#options;
    const name = `${LABEL}-relic-${idOf(owner, id.scope, id.name)}`;
    const known = await docker
      .getVolume(name)
      .inspect()
      .then(
        () => true,
        () => false,
      );
    if (known && this.#prepared.has(name)) return name;
    if (!known) {
      await this.#admitState(tenant);
      await docker.createVolume({
        Name: name,
        Labels: Object.fromEntries([
          ...this.#labels('relic'),
          ...labelsOf(id.scope, id.name),
          ...(tenant === null ? [] : [[TENANT, tenant] as const]),
        ]),
      });
    }
    // the first mount of a volume sets its owner; an earlier runner may have been killed before it
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
      if (!known) await this.#quietly(docker.getVolume(name).remove());
      throw fault;
    }
    await this.#discard(container);
    this.#prepared.add(name);
    return name;
  }

  /** @throws Error if the maximum number of states is reached */
  async #admitState(tenant: string | null): Promise<void> {
    const label = this.#labels('relic').map(([key, value]) => `${key}=${value}`);
    const { Volumes: volumes } = await this.#options.docker.listVolumes({ filters: { label } });
    const own = volumes.filter(({ Labels: labels }) => (labels?.[TENANT] ?? null) === tenant).length;
    if (hasCapacity(tenant, { own, used: volumes.length, most: limits.relicStates })) return;
    throw new Error(
      `${volumes.length} relics have stored state, ${own} of them of this namespace (maximum ${limits.relicStates}); deleting a session deletes its states`,
    );
  }

  #labels(kind: string): (readonly [string, string])[] {
    const { owner, ownerLabel } = this.#options;
    return [
      [LABEL, kind],
      [ownerLabel, owner],
    ];
  }

  #labelled({ scope, name }: RelicId): Record<string, string> {
    return Object.fromEntries([...this.#labels('relic'), ...labelsOf(scope, name)]);
  }

  async #discard(container: Docker.Container): Promise<void> {
    await this.#quietly(within(limits.engineMs, container.remove({ force: true, v: false })));
  }

  /** Ignores errors: the next start removes what remains. */
  async #quietly(work: Promise<unknown>): Promise<void> {
    await work.catch(() => undefined);
  }
}

function meansOf({ memory_mb: memoryMb, cpus }: RelicSpec): Parameters<typeof hardened>[0] {
  return { memoryMb, cpus, processes: limits.relicProcesses, diskMb: limits.diskMb, timeoutMs: limits.maxTimeoutMs };
}

function labelsOf(scope: string, name: string | null): (readonly [string, string])[] {
  // the label's name is part of stored volumes
  return [[`${LABEL}.space`, scope], ...(name === null ? [] : ([[`${LABEL}.name`, name]] as const))];
}

/** A valid engine name for strings with any characters. */
function idOf(...parts: readonly string[]): string {
  return createHash('sha256').update(parts.join('\0')).digest('hex').slice(0, 32);
}
