/**
 * Images of tools: made from the files of their manifest, once for each content (R3).
 *
 * Owns: the tags `cortex-edge/tool:{hash}`. Does not own: base images; the jobs that wait for a build.
 * Invariants:
 * 1. A tag stands for one content and one base: what is in the engine already is not built again.
 * 2. Whoever asks for the same image at the same time waits for the same build.
 * 3. A build that failed leaves no image and no container.
 */
import { createHash } from 'node:crypto';
import { Readable } from 'node:stream';

import type Docker from 'dockerode';
import { pack } from 'tar-stream';

import { limits } from '../limits.ts';
import { startContainer } from '../sandbox/docker-container.ts';
import { LABEL, messageOf } from '../sandbox/docker-engine.ts';
import { CONTAINER, hardened } from '../sandbox/docker-hardening.ts';
import { BASE_ALIASES, type BaseImages, finished, hasImage } from './base-images.ts';
import { DOCKERFILE, type ImageBuild } from './image-build.ts';
import { isAllowed } from './image-name.ts';
import { SANDBOX_UID } from './local-parts.ts';

/** Changes when images are made in another way. */
const RECIPE = 1;
const HASH_CHARS = 24;
const APP = '/app';
const PACKAGES = `${APP}/packages`;
const REQUIREMENTS = 'requirements.txt';

/** The image could not be made; the message ends with what the build said last. */
export class BuildFailure extends Error {
  override readonly name = 'BuildFailure';
}

export interface ToolImageOptions {
  readonly docker: Docker;
  readonly base: BaseImages;
  readonly seccomp: string;
  /** Labels of the containers that a build needs. */
  readonly labels: Readonly<Record<string, string>>;
  /** Images that a Dockerfile may begin with. */
  readonly allowed: readonly string[];
  /** Where pip looks for packages; null = where it looks by itself. */
  readonly pipIndex: string | null;
}

export class ToolImages {
  readonly #options: ToolImageOptions;
  readonly #building = new Map<string, Promise<void>>();

  constructor(options: ToolImageOptions) {
    this.#options = options;
  }

  /**
   * Reference of the image, which is in the engine.
   *
   * @param progress told what the build says, as it comes
   * @throws BuildFailure
   */
  async ensure(build: ImageBuild, progress: (text: string) => void): Promise<string> {
    const { docker, base } = this.#options;
    const ground = await base.ensure(build.base).catch((fault: unknown) => {
      throw new BuildFailure(messageOf(fault));
    });
    const files = Object.entries(build.files).toSorted(([a], [b]) => (a < b ? -1 : 1));
    const identity = JSON.stringify([RECIPE, ground, files, build.entrypoint, build.requirements]);
    const reference = `${LABEL}/tool:${createHash('sha256').update(identity).digest('hex').slice(0, HASH_CHARS)}`;
    if (await hasImage(docker, reference)) return reference;
    const known = this.#building.get(reference);
    if (known === undefined) {
      const building = this.#build(build, ground, reference, progress).finally(() => this.#building.delete(reference));
      this.#building.set(reference, building);
      await building;
    } else {
      progress('the same image is being built already; waiting for it\n');
      await known;
    }
    return reference;
  }

  async #build(build: ImageBuild, ground: string, reference: string, progress: (text: string) => void): Promise<void> {
    const log = new Tail();
    function say(text: string): void {
      log.add(text);
      progress(text);
    }
    try {
      say(`building ${reference}\n`);
      if (build.files[DOCKERFILE] === undefined) await this.#assemble(build, ground, reference, say);
      else await this.#follow(build, reference, say);
      say(`built ${reference}\n`);
    } catch (fault) {
      throw new BuildFailure(`${messageOf(fault)}\n${log.text}`);
    }
  }

  /** Files, and packages where there are any, on top of a base image. */
  async #assemble(build: ImageBuild, ground: string, reference: string, say: (text: string) => void): Promise<void> {
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
        await container.putArchive(await this.#packages(build.requirements, say), { path: APP });
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
   * What pip installs, as an archive of the directory `packages`. pip runs as an unprivileged user in a
   * container that has the network but nothing else.
   */
  async #packages(requirements: readonly string[], say: (text: string) => void): Promise<NodeJS.ReadableStream> {
    const { docker, base, seccomp, labels, pipIndex } = this.#options;
    const image = await base.ensure('pip');
    const means = { ...limits.buildMeans, timeoutMs: limits.buildMs };
    const target = '/work/packages';
    const script = `cat > /tmp/${REQUIREMENTS}
python3 -m pip --no-cache-dir --disable-pip-version-check --no-input install --retries 1 --timeout 15 --target ${target} -r /tmp/${REQUIREMENTS} >&2 || exit 1
tar cf - -C /work packages`;
    const container = await startContainer(docker, {
      ...CONTAINER,
      NetworkDisabled: false,
      Image: image,
      Entrypoint: ['/bin/sh', '-c', script],
      Cmd: [],
      Env: ['HOME=/tmp', 'TMPDIR=/tmp', 'LANG=C.UTF-8', ...pipSettings(pipIndex)],
      Labels: { ...labels },
      HostConfig: { ...hardened(means, seccomp), NetworkMode: 'bridge' },
    });
    const process = container.run(Buffer.from(`${requirements.join('\n')}\n`));
    const timer = setTimeout(() => process.kill(), limits.buildMs);
    const chunks: Buffer[] = [];
    process.stdout.on('data', (chunk: Buffer) => chunks.push(chunk));
    process.stderr.on('data', (chunk: Buffer) => say(chunk.toString()));
    const { exitCode } = await process.ended;
    clearTimeout(timer);
    if (exitCode !== 0) {
      throw new Error(
        `pip could not install ${requirements.join(', ')} (exit code ${exitCode ?? 'none'}; allowed: ${limits.buildMs / 1_000} s)`,
      );
    }
    return Readable.from(chunks);
  }

  /** A Dockerfile, by the engine's own builder, without a network. */
  async #follow(build: ImageBuild, reference: string, say: (text: string) => void): Promise<void> {
    const { docker, labels } = this.#options;
    const files = { ...build.files, [DOCKERFILE]: await this.#onAllowedGround(build.files[DOCKERFILE] ?? '') };
    const stop = new AbortController();
    const timer = setTimeout(() => stop.abort(new Error(`not done in ${limits.buildMs / 1_000} s`)), limits.buildMs);
    try {
      const answer = await docker.buildImage(Readable.from([await archiveOf(files, '')]), {
        t: reference,
        version: '1',
        networkmode: 'none',
        rm: true,
        forcerm: true,
        memory: limits.buildMeans.memoryMb * 1_048_576,
        memswap: limits.buildMeans.memoryMb * 1_048_576,
        labels: { ...labels, [LABEL]: 'tool' },
        abortSignal: stop.signal,
      });
      await finished(docker, answer, say);
    } finally {
      clearTimeout(timer);
    }
  }

  /** The Dockerfile with the names of base images as the engine knows them. @throws Error for one that is not allowed */
  async #onAllowedGround(dockerfile: string): Promise<string> {
    const { docker, base, allowed } = this.#options;
    const stages = new Set<string>();
    const lines: string[] = [];
    for (const line of dockerfile.split('\n')) {
      const [, from, name = '', stage] = /^(\s*FROM\s+)(\S+)(?:\s+AS\s+(\S+))?\s*$/i.exec(line) ?? [];
      if (from === undefined) {
        if (/^\s*FROM\b/i.test(line)) throw new Error(`this FROM is not understood: ${line.trim().slice(0, 100)}`);
        lines.push(line);
        continue;
      }
      const alias = BASE_ALIASES.get(name.replace(/:latest$/, ''));
      if (stages.has(name) || name === 'scratch') lines.push(line);
      else if (alias !== undefined && !(await hasImage(docker, name))) {
        lines.push(`${from}${await base.ensure(alias)}${stage === undefined ? '' : ` AS ${stage}`}`);
      } else if (!isAllowed(name, allowed)) {
        throw new Error(`the operator does not allow the image ${name} (allowed: ${allowed.join(', ')})`);
      } else if (!(await hasImage(docker, name))) throw new Error(`the image ${name} is not in the engine`);
      else lines.push(line);
      if (stage !== undefined) stages.add(stage);
    }
    return lines.join('\n');
  }
}

/** An index that the operator named is trusted as it stands, also without TLS. */
function pipSettings(index: string | null): string[] {
  return index === null ? [] : [`PIP_INDEX_URL=${index}`, `PIP_TRUSTED_HOST=${new URL(index).host}`];
}

async function archiveOf(files: Readonly<Record<string, string>>, prefix: string): Promise<Buffer> {
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

/** The end of a build's log. */
class Tail {
  text = '';

  add(text: string): void {
    this.text = (this.text + text).slice(-limits.buildLogChars);
  }
}
