/** Bytes that arrive for the cache (C7): hashed and counted; small ones are kept in memory, others in a new file. */
import { createHash } from 'node:crypto';
import fs from 'node:fs';

import { limits } from '../limits.ts';

export interface IncomingFile {
  readonly sha256: string;
  readonly size: number;
  /** The bytes, or the path of the file with them; it belongs to the caller. */
  readonly content: Buffer | string;
}

/**
 * Reads a stream to its end.
 *
 * @param file path for a file of this content; created if the content is larger than `limits.workspaceBufferBytes`
 * @param maxBytes what may be read; a longer stream is destroyed
 * @returns null: the stream is longer than `maxBytes`; nothing is left on disk
 * @throws Error of the stream or the file system; nothing is left on disk
 */
export async function receiveFile(
  bytes: AsyncIterable<Uint8Array>,
  file: string,
  maxBytes: number,
): Promise<IncomingFile | null> {
  const hash = createHash('sha256');
  const parts: Uint8Array[] = [];
  let size = 0;
  let handle: fs.promises.FileHandle | null = null;
  let complete = false;
  try {
    for await (const chunk of bytes) {
      size += chunk.length;
      if (size > maxBytes) return null;
      hash.update(chunk);
      if (handle === null) {
        parts.push(chunk);
        if (size <= limits.workspaceBufferBytes) continue;
        handle = await fs.promises.open(file, 'wx', 0o600);
        await handle.appendFile(Buffer.concat(parts.splice(0)));
      } else await handle.appendFile(chunk);
    }
    complete = true;
    const sha256 = hash.digest('hex');
    return { sha256, size, content: handle === null ? Buffer.concat(parts) : file };
  } finally {
    await handle?.close();
    if (handle !== null && !complete) fs.rmSync(file, { force: true });
  }
}
