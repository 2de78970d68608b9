/** The files of a session's messages as lines of its export (C2). */
import { base64Of } from '../../domain/base64.ts';
import type { SessionRecord } from '../../domain/session.ts';
import type { StoredFile } from '../../journal/blobs.ts';
import type { Journal } from '../../journal/journal.ts';

/** Encoded at a time; a multiple of three, so that the pieces are one base64 text. */
const PIECE_BYTES = 196_608;

interface FileReader {
  /** Null if they are lost. @throws EngineError `storage_unavailable` */
  readonly bytesOf: (sha256: string) => Promise<Uint8Array | null>;
  /** Called with the number of characters read; yields to other work. */
  readonly took: (chars: number) => Promise<void>;
}

/**
 * One line for each file, in pieces: `{"file": {sha256, name, media_type, size, path, base64?, lost?}}`.
 *
 * @param most bytes of all files in the lines; the further ones have only their path
 */
export function exportedFiles(
  journal: Journal,
  record: SessionRecord,
  most: number,
  reader: FileReader,
): AsyncGenerator<string> {
  // Files of later messages are left out.
  return lines(journal.blobs.files(), record, most, reader);
}

async function* lines(
  files: Iterable<StoredFile>,
  { session_id: id }: SessionRecord,
  most: number,
  { bytesOf, took }: FileReader,
): AsyncGenerator<string> {
  let left = most;
  for (const { sha256, name, mediaType, sizeBytes } of files) {
    const path = `/agent/session/${id}/content/${sha256}`;
    const file = { sha256, name, media_type: mediaType, size: sizeBytes, path };
    await took(PIECE_BYTES / 64);
    if (sizeBytes > left) {
      yield `${JSON.stringify({ file })}\n`;
      continue;
    }
    left -= sizeBytes;
    const bytes = await bytesOf(sha256);
    if (bytes === null) {
      yield `${JSON.stringify({ file: { ...file, lost: true } })}\n`;
      continue;
    }
    yield `${JSON.stringify({ file }).slice(0, -2)},"base64":"`;
    for (let from = 0; from < bytes.length; from += PIECE_BYTES) {
      const piece = base64Of(bytes.subarray(from, from + PIECE_BYTES));
      yield piece;
      await took(piece.length);
    }
    yield '"}}\n';
  }
}
