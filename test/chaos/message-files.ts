/** The files of messages: what clients send, and what the session gives back for their hashes (C2). */
import type { GivenPart } from '../../src/policies/message-content.ts';
import type { MessageScript } from '../simulation/history.ts';
import type { StoredFiles } from '../simulation/observation.ts';
import { bytesOf, givenPart, hashOf } from '../simulation/world/files.ts';
import { markOf } from '../simulation/world/marks.ts';
import { download } from './client.ts';

/** The content of a message. Its text follows its first file. */
export function contentOf(message: number, { files }: MessageScript): string | readonly GivenPart[] {
  const text = `${markOf(message)} please`;
  if (files.length === 0) return text;
  // No tool of these histories has files in its results.
  const parts = files.map((file, place) => givenPart(message, place, file, null));
  return parts.toSpliced(1, 0, { type: 'text', text });
}

/** The hashes of the files that are sent. */
export function hashesOf(content: string | readonly GivenPart[]): string[] {
  if (typeof content === 'string') return [];
  return content.flatMap((part) =>
    part.type !== 'text' && part.data !== undefined ? [hashOf(bytesOf(atob(part.data)))] : [],
  );
}

/** Downloads the files with these hashes. @param url of the session */
export async function downloadFiles(url: string, hashes: Iterable<string>): Promise<StoredFiles> {
  const references = [...new Set(hashes)];
  const downloads = await Promise.all(
    references.map(async (name) => ({ name, bytes: await download(`${url}/content/${name}`) })),
  );
  const files = downloads.flatMap(({ name, bytes }) => (bytes === null ? [] : [{ name, hash: hashOf(bytes) }]));
  return { references, files };
}
