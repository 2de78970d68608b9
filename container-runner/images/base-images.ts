/**
 * Base images by what they are for: the operator's own where one is named, else built from the parts
 * of this machine, once for each content.
 *
 * Owns: the tags `cortex-edge/{name}:{hash of the content}`. Does not own: images that others made.
 * Invariants:
 * 1. A tag stands for one content: what is in the engine already is not built again.
 * 2. Whoever asks at the same time waits for the same build.
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
/** The plain names by which people ask for these images. */
export const BASE_ALIASES: ReadonlyMap<string, BaseName> = new Map([
  ['busybox', 'shell'],
  ['shell', 'shell'],
  ['python', 'python3'],
  ['python3', 'python3'],
  ['node', 'node'],
]);
/** Where every base image that is made here has its programs. */
const PATH = '/usr/local/bin:/usr/bin:/bin';
const HASH_CHARS = 24;
/** The engine cuts what a step prints into much shorter pieces. */
const MAX_LINE_CHARS = 4_194_304;

export interface BaseImageOptions {
  readonly docker: Docker;
  /** Images that the operator wants instead, by reference. */
  readonly own: Readonly<Partial<Record<BaseName, string>>>;
  /** Told what is being built, in lines for people. */
  readonly progress: (line: string) => void;
  /** Told how far each image is. */
  readonly onImage?: ImageListener | undefined;
}

export class BaseImages {
  readonly #options: BaseImageOptions;
  readonly #known = new Map<BaseName, Promise<string>>();

  constructor(options: BaseImageOptions) {
    this.#options = options;
  }

  /** Reference of the image, which is in the engine. @throws Error in words for people, when it cannot be had */
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
        // what failed may work later, when the operator has installed what is missing
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
      throw new Error(`the image ${chosen} is not in the engine (docker pull ${chosen})`);
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

export async function hasImage(docker: Docker, reference: string): Promise<boolean> {
  return await docker
    .getImage(reference)
    .inspect()
    .then(
      () => true,
      (fault: unknown) => {
        if (statusOf(fault) === 404) return false;
        throw new Error(messageOf(fault));
      },
    );
}

/**
 * Follows a stream of progress to its end.
 *
 * @param onLine told each line that the engine says
 * @throws Error with the engine's words, when it reports one
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
    const said = typeof event?.['stream'] === 'string' ? event['stream'] : event?.['status'];
    if (typeof said === 'string' && said !== '') onLine(said);
  }
  for await (const chunk of answer) {
    const lines = (rest + decoder.decode(chunk as Buffer, { stream: true })).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) take(line);
    if (rest.length > MAX_LINE_CHARS) throw new Error('the engine sent a line without an end');
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

/** Identity and size: two machines with the same files get the same image. */
async function contentOf(parts: readonly Part[]): Promise<{ readonly hash: string; readonly bytes: number }> {
  const hash = createHash('sha256');
  let bytes = 0;
  for (const part of parts) {
    hash.update(`${part.kind} ${part.path}\0`);
    switch (part.kind) {
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
    switch (part.kind) {
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
        // Python takes its compiled files for stale when the time of the source is another one
        const entry = archive.entry({ name, mode: known.mode & 0o755, size: known.size, mtime: known.mtime });
        await pipeline(createReadStream(part.source), entry);
        break;
      }
    }
  }
  archive.finalize();
}
