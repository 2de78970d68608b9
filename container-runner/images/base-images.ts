/**
 * Base images by purpose: the operator's image if one is configured, otherwise an image built from this machine's
 * programs, once per content.
 *
 * Owns the tags `cortex-edge/{name}:{hash of the content}`. Does not own other images.
 * Invariants:
 * 1. A tag identifies one content; an existing image is not built again.
 * 2. Concurrent requests share one build.
 */
import { createHash } from 'node:crypto';
import fs from 'node:fs/promises';
import { createReadStream } from 'node:fs';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';

import type Docker from 'dockerode';
import { pack, type Pack } from 'tar-stream';

import { LABEL, messageOf, statusOf } from '../sandbox/docker-engine.ts';
import type { ImageListener } from '../startup.ts';
import { nodeParts, type Part, pipParts, pythonParts, shellParts } from './local-parts.ts';

export const BASE_NAMES = ['shell', 'python3', 'node', 'pip'] as const;
export type BaseName = (typeof BASE_NAMES)[number];

const PARTS: Readonly<Record<BaseName, () => Promise<Part[]>>> = {
  shell: shellParts,
  python3: pythonParts,
  node: nodeParts,
  pip: pipParts,
};
/** Common names for these images. */
export const BASE_ALIASES: ReadonlyMap<string, BaseName> = new Map([
  ['busybox', 'shell'],
  ['shell', 'shell'],
  ['python', 'python3'],
  ['python3', 'python3'],
  ['node', 'node'],
]);
/** PATH of every base image that is built here. */
const PATH = '/usr/local/bin:/usr/bin:/bin';
const HASH_CHARS = 24;
/** Maximum length of a progress line; the engine splits output into much shorter lines. */
const MAX_LINE_CHARS = 4_194_304;

export interface BaseImageOptions {
  readonly docker: Docker;
  /** Images of the operator, by reference. */
  readonly own: Readonly<Partial<Record<BaseName, string>>>;
  /** Called with progress messages. */
  readonly progress: (line: string) => void;
  /** Called with the state of each image. */
  readonly onImage?: ImageListener | undefined;
}

export class BaseImages {
  readonly #options: BaseImageOptions;
  readonly #known = new Map<BaseName, Promise<string>>();

  constructor(options: BaseImageOptions) {
    this.#options = options;
  }

  /** Returns the reference of an existing image, building it if necessary. @throws Error with a message for users */
  ensure(name: BaseName): Promise<string> {
    const known = this.#known.get(name);
    if (known !== undefined) return known;
    const { onImage } = this.#options;
    onImage?.(name, 'waiting');
    const ensured = this.#ensure(name);
    this.#known.set(name, ensured);
    ensured.then(
      () => onImage?.(name, 'ready'),
      () => {
        // a retry may succeed, for example after the operator has installed a missing package
        this.#known.delete(name);
        onImage?.(name, 'failed');
      },
    );
    return ensured;
  }

  async #ensure(name: BaseName): Promise<string> {
    const { docker, own, progress, onImage } = this.#options;
    const chosen = own[name];
    if (chosen !== undefined) {
      if (await hasImage(docker, chosen)) return chosen;
      throw new Error(`the image ${chosen} is missing in the engine (run docker pull ${chosen})`);
    }
    const parts = await PARTS[name]();
    const content = await contentOf(parts);
    const repository = `${LABEL}/${name}`;
    const reference = `${repository}:${content.hash}`;
    if (await hasImage(docker, reference)) return reference;
    const megabytes = (content.bytes / 1_048_576).toFixed(0);
    onImage?.(name, 'building');
    progress(`building the image ${reference} from ${parts.length} parts of this machine (${megabytes} MB)`);
    const startedAt = performance.now();
    const archive = pack();
    const packed = packParts(archive, parts);
    const changes = [`ENV PATH=${PATH}`, `LABEL ${LABEL}=base`];
    const importing: Promise<NodeJS.ReadableStream> = docker.importImage(Readable.from(archive), {
      repo: repository,
      tag: content.hash,
      changes,
    });
    await Promise.all([packed, importing.then((answer) => finished(answer))]);
    progress(`built ${reference} in ${((performance.now() - startedAt) / 1_000).toFixed(1)} s`);
    return reference;
  }
}

/**
 * Whether the engine has an image with this name. The engine also takes a part of an id for a name, which would find any
 * image, such as a tool of another namespace.
 */
export async function hasImage(docker: Docker, reference: string): Promise<boolean> {
  return await docker
    .getImage(reference)
    .inspect()
    .then(
      ({ Id: id, RepoTags: tags }: { readonly Id: string; readonly RepoTags?: readonly string[] | null }) => {
        const isPart = id.startsWith(reference) || id.startsWith(`sha256:${reference}`);
        return !isPart || [reference, `${reference}:latest`].some((name) => tags?.includes(name) === true);
      },
      (fault: unknown) => {
        if (statusOf(fault) === 404) return false;
        throw new Error(messageOf(fault));
      },
    );
}

/**
 * Reads a progress stream to its end.
 *
 * @param onLine called with each line of output
 * @throws Error with the engine's message if it reports an error
 */
export async function finished(
  answer: NodeJS.ReadableStream,
  onLine: (line: string) => void = () => undefined,
): Promise<void> {
  const decoder = new TextDecoder();
  let rest = '';
  let fault: string | null = null;
  function take(text: string): void {
    const event = progressOf(text);
    if (typeof event?.['error'] === 'string') fault ??= event['error'];
    const line = typeof event?.['stream'] === 'string' ? event['stream'] : event?.['status'];
    if (typeof line === 'string' && line !== '') onLine(line);
  }
  for await (const chunk of answer) {
    const lines = (rest + decoder.decode(chunk as Buffer, { stream: true })).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) take(line);
    if (rest.length > MAX_LINE_CHARS) throw new Error('the engine sent a line that is too long');
  }
  take(rest);
  if (fault !== null) throw new Error(fault);
}

function progressOf(text: string): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : null;
  } catch {
    return null;
  }
}

/** Hash and size. Machines with the same files get the same image. */
async function contentOf(parts: readonly Part[]): Promise<{ readonly hash: string; readonly bytes: number }> {
  const hash = createHash('sha256');
  let bytes = 0;
  for (const part of parts) {
    hash.update(`${part.type} ${part.path}\0`);
    switch (part.type) {
      case 'directory':
        hash.update(String(part.mode));
        break;
      case 'link':
        hash.update(part.target);
        break;
      case 'text':
        hash.update(part.text);
        break;
      case 'file': {
        const content = await fs.readFile(part.source);
        bytes += content.length;
        hash.update(String(content.length)).update(content);
        break;
      }
    }
  }
  return { hash: hash.digest('hex').slice(0, HASH_CHARS), bytes };
}

async function packParts(archive: Pack, parts: readonly Part[]): Promise<void> {
  for (const part of parts) {
    const name = part.path.slice(1);
    switch (part.type) {
      case 'directory':
        archive.entry({ name: `${name}/`, type: 'directory', mode: part.mode });
        break;
      case 'link':
        archive.entry({ name, type: 'symlink', linkname: part.target });
        break;
      case 'text':
        archive.entry({ name, mode: 0o644 }, part.text);
        break;
      case 'file': {
        const known = await fs.stat(part.source);
        // Python ignores compiled files if the source has a different mtime
        const entry = archive.entry({ name, mode: known.mode & 0o755, size: known.size, mtime: known.mtime });
        await pipeline(createReadStream(part.source), entry);
        break;
      }
    }
  }
  archive.finalize();
}
