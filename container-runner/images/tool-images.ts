/**
 * Tool images: built from the files of a manifest, once per content (R3).
 *
 * Owns the tags `cortex-edge/tool:{hash}`. Does not own base images, or the jobs that wait for a build.
 * Invariants:
 * 1. A tag identifies one content and one base; an existing image is not built again.
 * 2. Concurrent requests for an image share one build. A build without waiting requests is aborted.
 * 3. A failed build leaves no image and no container.
 * 4. At most `limits.toolImages` are kept, the most recently used ones.
 */
import { createHash, randomUUID } from 'node:crypto';
import { Readable } from 'node:stream';

import type Docker from 'dockerode';
import { pack } from 'tar-stream';

import { limits } from '../limits.ts';
import { startContainer } from '../sandbox/docker-container.ts';
import { LABEL, messageOf } from '../sandbox/docker-engine.ts';
import { CONTAINER, hardened } from '../sandbox/docker-hardening.ts';
import { BASE_ALIASES, type BaseImages, finished, hasImage } from './base-images.ts';
import { BUILD_LABEL, monitorBuild } from './build-monitor.ts';
import { sanitizeDockerfile } from './dockerfile.ts';
import { withPackages } from './dockerfile-packages.ts';
import { DOCKERFILE, type ImageBuild } from './image-build.ts';
import { imageReference, isAllowed } from './image-name.ts';
import { pythonVersion, SANDBOX_UID } from './local-parts.ts';

/** Version of the build procedure; part of the content hash. */
const RECIPE = 1;
const HASH_CHARS = 24;
const APP = '/app';
const PACKAGES = `${APP}/packages`;
const REQUIREMENTS = 'requirements.txt';
const MEBIBYTE = 1_048_576;
const CPU_PERIOD_US = 100_000;

/** The image could not be built; the message ends with the last output of the build. */
export class BuildFailure extends Error {
  override readonly name = 'BuildFailure';
}

export interface ToolImageOptions {
  readonly docker: Docker;
  readonly base: BaseImages;
  readonly seccomp: string;
  /** Labels of the build's containers. */
  readonly labels: Readonly<Record<string, string>>;
  /** Images that a Dockerfile may use. */
  readonly allowed: readonly string[];
  /** Package index for pip; null = pip's default. */
  readonly pipIndex: string | null;
}

interface Building {
  readonly done: Promise<void>;
  readonly stop: AbortController;
  /** Number of waiting requests. */
  askers: number;
}

export class ToolImages {
  readonly #options: ToolImageOptions;
  readonly #building = new Map<string, Building>();
  /** Last use of images by reference; images that this process has not used count as older. */
  readonly #used = new Map<string, number>();

  constructor(options: ToolImageOptions) {
    this.#options = options;
  }

  /**
   * Returns the reference of an existing image, building it if necessary.
   *
   * @param progress called with the output of the build
   * @param signal cancels this request; the build continues for other requests
   * @throws BuildFailure
   */
  async ensure(build: ImageBuild, progress: (text: string) => void, signal?: AbortSignal): Promise<string> {
    const { docker, base } = this.#options;
    const ground = await base.ensure(build.base).catch((fault: unknown) => {
      throw new BuildFailure(messageOf(fault));
    });
    const files = Object.entries(build.files).toSorted(([a], [b]) => (a < b ? -1 : 1));
    const identity = JSON.stringify([RECIPE, ground, files, build.entrypoint, build.requirements]);
    const reference = `${LABEL}/tool:${createHash('sha256').update(identity).digest('hex').slice(0, HASH_CHARS)}`;
    this.#used.delete(reference);
    this.#used.set(reference, performance.now());
    for (;;) {
      if (await hasImage(docker, reference)) return reference;
      const known = this.#building.get(reference);
      if (known?.stop.signal.aborted === true) {
        await known.done.catch(() => undefined);
        continue;
      }
      if (known !== undefined) progress('waiting for a running build of the same image\n');
      await this.#ask(known ?? this.#begin(build, ground, reference, progress), signal);
      return reference;
    }
  }

  /** Aborts all builds; resolves when they are cleaned up. */
  async close(): Promise<void> {
    const building = [...this.#building.values()];
    for (const { stop } of building) stop.abort(new Error('the runner is stopping'));
    await Promise.allSettled(building.map(({ done }) => done));
  }

  #begin(build: ImageBuild, ground: string, reference: string, progress: (text: string) => void): Building {
    const stop = new AbortController();
    const done = this.#build(build, ground, reference, progress, stop)
      .finally(() => this.#building.delete(reference))
      .then(() => this.#forgetOld());
    done.catch(() => this.#used.delete(reference));
    const building: Building = { done, stop, askers: 0 };
    this.#building.set(reference, building);
    return building;
  }

  async #ask(building: Building, signal: AbortSignal | undefined): Promise<void> {
    building.askers += 1;
    try {
      await (signal === undefined ? building.done : Promise.race([building.done, abortion(signal)]));
    } finally {
      building.askers -= 1;
      if (building.askers === 0) building.stop.abort(new Error('no job waits for it any more'));
    }
  }

  /** Removes tool images beyond the limit, except those that containers use. */
  async #forgetOld(): Promise<void> {
    const { docker } = this.#options;
    const images = await docker.listImages({ filters: { reference: [`${LABEL}/tool`] } }).catch(() => []);
    const old = leastUsed(images, this.#used, limits.toolImages);
    for (const tag of old) {
      this.#used.delete(tag);
      await docker
        .getImage(tag)
        .remove()
        .catch(() => undefined);
    }
  }

  async #build(
    build: ImageBuild,
    ground: string,
    reference: string,
    progress: (text: string) => void,
    stop: AbortController,
  ): Promise<void> {
    const log = new Tail();
    const { buildMs, buildLogBytes } = limits;
    const timer = setTimeout(() => stop.abort(new Error(`it took longer than ${buildMs / 1_000} s`)), buildMs);
    let room: number = buildLogBytes;
    function say(text: string): void {
      if (stop.signal.aborted) return;
      const legal = text.replaceAll('\0', '\uFFFD').toWellFormed();
      room -= Buffer.byteLength(legal);
      if (room < 0) {
        stop.abort(new Error(`its log exceeded ${buildLogBytes} bytes`));
        return;
      }
      log.add(legal);
      progress(legal);
    }
    try {
      say(`building ${reference}\n`);
      if (build.files[DOCKERFILE] === undefined) await this.#assemble(build, ground, reference, say, stop.signal);
      else await this.#follow(build, reference, say, stop);
      say(`built ${reference}\n`);
    } catch (fault) {
      // after an abort, the reason of the abort is the useful message
      throw new BuildFailure(`${messageOf(stop.signal.aborted ? stop.signal.reason : fault)}\n${log.text}`);
    } finally {
      clearTimeout(timer);
    }
  }

  /** Adds files and packages to a base image. */
  async #assemble(
    build: ImageBuild,
    ground: string,
    reference: string,
    say: (text: string) => void,
    stop: AbortSignal,
  ): Promise<void> {
    const { docker, labels } = this.#options;
    const container = await docker.createContainer({
      Image: ground,
      Cmd: ['true'],
      NetworkDisabled: true,
      Labels: { ...labels },
      HostConfig: { NetworkMode: 'none' },
    });
    try {
      await container.putArchive(await archiveOf(build.files, 'app/'), { path: '/' });
      if (build.requirements.length > 0) {
        await container.putArchive(await this.#packages(build.requirements, say, stop), { path: APP });
      }
      const runs = { python3: 'python3', node: '/usr/bin/node', shell: '/bin/sh' }[build.base];
      const options = build.base === 'python3' ? ['-X', 'utf8'] : [];
      const [repo = '', tag = ''] = reference.split(':');
      await container.commit({
        repo,
        tag,
        changes: [
          `ENTRYPOINT ${JSON.stringify([runs, ...options, `${APP}/${build.entrypoint}`])}`,
          'CMD []',
          ...(build.requirements.length > 0 ? [`ENV PYTHONPATH=${PACKAGES}`] : []),
          `LABEL ${LABEL}=tool`,
        ].join('\n'),
      });
    } finally {
      await container.remove({ force: true, v: true }).catch(() => undefined);
    }
  }

  /**
   * Installs packages with the machine's pip, or that of an image, and returns an archive of the directory `packages`. pip runs as an unprivileged user in a
   * separate container with a network, and installs wheels only: a source package is a program that would run with that
   * network.
   */
  async #packages(
    requirements: readonly string[],
    say: (text: string) => void,
    stop: AbortSignal,
    own: string | null = null,
  ): Promise<NodeJS.ReadableStream> {
    const { docker, base, seccomp, labels, pipIndex } = this.#options;
    const image = own ?? (await base.ensure('pip'));
    const resources = { ...limits.buildResources, timeoutMs: limits.buildMs };
    const target = '/work/packages';
    const script = `cat > /tmp/${REQUIREMENTS}
python3 -m pip --no-cache-dir --disable-pip-version-check --no-input install --only-binary :all: --retries 1 --timeout 15 --target ${target} -r /tmp/${REQUIREMENTS} >&2 || exit 1
tar cf - -C /work packages`;
    const container = await startContainer(docker, {
      ...CONTAINER,
      NetworkDisabled: false,
      Image: image,
      Entrypoint: ['/bin/sh', '-c', script],
      Cmd: [],
      Env: ['HOME=/tmp', 'TMPDIR=/tmp', 'LANG=C.UTF-8', ...pipSettings(pipIndex)],
      Labels: { ...labels },
      HostConfig: { ...hardened(resources, seccomp), NetworkMode: 'bridge' },
    });
    const process = container.run({ bytes: [Buffer.from(`${requirements.join('\n')}\n`)], left: null });
    const kill = (): void => process.kill();
    stop.addEventListener('abort', kill, { once: true });
    if (stop.aborted) kill();
    const chunks: Buffer[] = [];
    process.stdout.on('data', (chunk: Buffer) => chunks.push(chunk));
    process.stderr.on('data', (chunk: Buffer) => say(chunk.toString()));
    const { exitCode } = await process.ended;
    stop.removeEventListener('abort', kill);
    stop.throwIfAborted();
    if (exitCode !== 0) {
      throw new Error(`pip could not install ${requirements.join(', ')} (exit code ${exitCode ?? 'none'})`);
    }
    return Readable.from(chunks);
  }

  /** Builds a Dockerfile with the engine's builder, without a network. */
  async #follow(
    build: ImageBuild,
    reference: string,
    say: (text: string) => void,
    stop: AbortController,
  ): Promise<void> {
    const { docker, labels } = this.#options;
    const { memoryMb, cpus } = limits.buildResources;
    const mark = randomUUID();
    const lookUp = (name: string): Promise<string> => this.#groundOf(name);
    const dockerfile = await sanitizeDockerfile(build.files[DOCKERFILE] ?? '', lookUp, `${BUILD_LABEL}=${mark}`);
    const prepared = withPackages(dockerfile, build.files);
    const files: Record<string, string | Buffer> = { ...build.files, [DOCKERFILE]: prepared.dockerfile };
    let left = limits.buildResources.diskMb * MEBIBYTE;
    for (const { archive, requirements, image } of prepared.steps) {
      say(`installing ${requirements.join(', ')}\n`);
      // the base image has no pip of its own
      const own = image === (await this.#options.base.ensure('python3')) ? null : image;
      const packages = await bufferOf(await this.#packages(requirements, say, stop.signal, own));
      left -= packages.length;
      if (left < 0) throw new Error(`its packages have more than ${limits.buildResources.diskMb} MiB in total`);
      files[archive] = packages;
    }
    const watch = await monitorBuild(docker, mark, (reason) => stop.abort(reason));
    try {
      const answer = await docker.buildImage(Readable.from([await archiveOf(files, '')]), {
        t: reference,
        version: '1',
        networkmode: 'none',
        // The label makes a hit impossible, and the engine's search fails if another build's image is removed meanwhile.
        nocache: true,
        rm: true,
        forcerm: true,
        memory: memoryMb * MEBIBYTE,
        memswap: memoryMb * MEBIBYTE,
        cpuperiod: CPU_PERIOD_US,
        cpuquota: cpus * CPU_PERIOD_US,
        labels: { ...labels, [LABEL]: 'tool' },
        // the builder stops when the connection is closed
        abortSignal: stop.signal,
      });
      await finished(answer, say);
    } finally {
      await watch.end();
    }
  }

  /** Resolves an image in a Dockerfile. @throws Error if it is not allowed or missing */
  async #groundOf(name: string): Promise<string> {
    const { docker, base, allowed } = this.#options;
    const plain = imageReference.safeParse(name).success;
    if (!plain) throw new Error(`"${name}" must be the name of an image, such as python:3.12-slim`);
    const alias = BASE_ALIASES.get(name.replace(/:latest$/, ''));
    const isThere = await hasImage(docker, name);
    if (alias !== undefined && !isThere) return await base.ensure(alias);
    // the same Python: `python:3.12-slim` on a machine with Python 3.12
    const version = /^python:(\d+\.\d+)(?:-slim)?$/.exec(name)?.[1];
    if (version !== undefined && !isThere && version === (await pythonVersion())) return await base.ensure('python3');
    if (!isAllowed(name, allowed)) {
      throw new Error(`the operator does not allow the image ${name} (allowed: ${allowed.join(', ')})`);
    }
    if (!isThere) throw new Error(`the image ${name} is missing in the engine (run docker pull ${name})`);
    return name;
  }
}

/** An index of the operator is trusted, also without TLS. */
function pipSettings(index: string | null): string[] {
  return index === null ? [] : [`PIP_INDEX_URL=${index}`, `PIP_TRUSTED_HOST=${new URL(index).host}`];
}

async function bufferOf(stream: NodeJS.ReadableStream): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of stream) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}

async function archiveOf(files: Readonly<Record<string, string | Buffer>>, prefix: string): Promise<Buffer> {
  const tar = pack();
  const owner = { uid: SANDBOX_UID, gid: SANDBOX_UID };
  if (prefix !== '') tar.entry({ name: prefix, type: 'directory', mode: 0o755, ...owner });
  for (const [name, text] of Object.entries(files))
    tar.entry({ name: `${prefix}${name}`, mode: 0o755, ...owner }, text);
  tar.finalize();
  const chunks: Buffer[] = [];
  for await (const chunk of tar) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}

/** Tags of the images beyond `most`: first those that this process has not used, oldest first. */
export function leastUsed(
  images: readonly { readonly RepoTags?: readonly string[] | undefined; readonly Created: number }[],
  used: ReadonlyMap<string, number>,
  most: number,
): string[] {
  const lastUse = ({ RepoTags: tags = [] }: (typeof images)[number]): number =>
    Math.max(0, ...tags.map((tag) => used.get(tag) ?? 0));
  return images
    .toSorted((a, b) => lastUse(a) - lastUse(b) || a.Created - b.Created)
    .slice(0, Math.max(0, images.length - most))
    .flatMap(({ RepoTags: tags = [] }) => tags);
}

/** Rejects when the signal aborts. */
function abortion(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    const stop = (): void => reject(new Error('stopped while its image was being built'));
    signal.addEventListener('abort', stop, { once: true });
    if (signal.aborted) stop();
  });
}

/** The end of a build's log. */
class Tail {
  text = '';

  add(text: string): void {
    this.text = (this.text + text).slice(-limits.buildLogChars);
  }
}
