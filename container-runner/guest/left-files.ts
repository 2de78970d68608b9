/** Writes the files of a virtual file system as an archive, after the program has ended. */
import { type TarEntry, tarEnd, tarHeader, tarPadding } from './tar-writer.ts';
import { writeAll } from './wire.ts';

/** What the archive needs to know of a virtual file system. Nothing follows links. */
export interface VirtualFiles {
  /** Names in a folder; only called for folders. */
  list(folder: string): Promise<readonly string[]> | readonly string[];
  /** Null if there is nothing. */
  look(path: string): Promise<VirtualEntry | null> | VirtualEntry | null;
  /** The bytes of a file. */
  read(path: string): Promise<Uint8Array> | Uint8Array;
}

export interface VirtualEntry {
  readonly kind: TarEntry['kind'];
  readonly mode: number;
}

/**
 * Writes everything below `root` to the descriptor. If `root` is not a folder any more, if something cannot be read, and if
 * the runner reads no more, the archive is not completed.
 */
export async function leaveFiles(files: VirtualFiles, root: string, fd: number): Promise<void> {
  await writeFiles(files, root, fd).catch(() => undefined);
}

async function writeFiles(files: VirtualFiles, root: string, fd: number): Promise<void> {
  let written = 0;
  function put(bytes: Uint8Array): void {
    writeAll(fd, bytes);
    written += bytes.length;
  }
  const top = await files.look(root);
  if (top !== null && top.kind !== 'folder') return;
  const folders = top === null ? [] : [''];
  for (let folder = folders.pop(); folder !== undefined; folder = folders.pop()) {
    for (const name of await files.list(root + folder)) {
      const path = `${folder}/${name}`;
      const known = await files.look(root + path);
      if (known === null) continue;
      const { kind, mode } = known;
      const content = kind === 'file' ? await files.read(root + path) : null;
      put(tarHeader({ path: path.slice(1), kind, mode, size: content?.length ?? 0, modifiedAt: 0 }));
      if (content !== null) {
        put(content);
        put(tarPadding(content.length));
      } else if (kind === 'folder') folders.push(path);
    }
  }
  put(tarEnd(written));
  put(new TextEncoder().encode('complete'));
}
