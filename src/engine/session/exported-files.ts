/** The files of a session's messages (C2) and of its workspace (C7) as lines of its export. */
import { base64Of } from '../../domain/base64.ts';
import type { SessionRecord } from '../../domain/session.ts';
import type { JsonObject } from '../../domain/json.ts';
import type { StoredFile } from '../../journal/blobs.ts';
import type { WorkspaceFile } from '../../domain/workspace.ts';
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
 * One line for each file, in pieces: `{"file": {sha256, name, media_type, size, path, base64?, lost?}}` for those of messages,
 * then `{"workspace": {path, sha256, size, executable, modified_at, download, base64?, lost?}}`.
 *
 * @param most bytes of all files in the lines; the further ones have only their path
 */
export function exportedFiles(
  journal: Journal,
  record: SessionRecord,
  most: number,
  reader: FileReader,
): AsyncGenerator<string> {
  // Files of later messages, and later changes of the workspace, are left out.
  return lines({ messages: journal.blobs.files(), workspace: journal.workspace.list() }, record, most, reader);
}

async function* lines(
  files: { readonly messages: Iterable<StoredFile>; readonly workspace: readonly WorkspaceFile[] },
  { session_id: id }: SessionRecord,
  most: number,
  reader: FileReader,
): AsyncGenerator<string> {
  let left = most;
  const withBytes = (sizeBytes: number): boolean => {
    if (sizeBytes > left) return false;
    left -= sizeBytes;
    return true;
  };
  for (const { sha256, name, mediaType, sizeBytes } of files.messages) {
    const path = `/agent/session/${id}/content/${sha256}`;
    const file = { sha256, name, media_type: mediaType, size: sizeBytes, path };
    yield* line('file', file, withBytes(sizeBytes) ? sha256 : null, reader);
  }
  for (const { path, sha256, size, executable, modifiedAt } of files.workspace) {
    const download = `/agent/session/${id}/files/${path.split('/').map(encodeURIComponent).join('/')}`;
    const file = { path, sha256, size, executable, modified_at: modifiedAt, download };
    yield* line('workspace', file, withBytes(size) ? sha256 : null, reader);
  }
}

/** @param sha256 null: without the bytes */
async function* line(
  kind: string,
  file: JsonObject,
  sha256: string | null,
  { bytesOf, took }: FileReader,
): AsyncGenerator<string> {
  await took(PIECE_BYTES / 64);
  if (sha256 === null) {
    yield `${JSON.stringify({ [kind]: file })}\n`;
    return;
  }
  const bytes = await bytesOf(sha256);
  if (bytes === null) {
    yield `${JSON.stringify({ [kind]: { ...file, lost: true } })}\n`;
    return;
  }
  yield `${JSON.stringify({ [kind]: file }).slice(0, -2)},"base64":"`;
  for (let from = 0; from < bytes.length; from += PIECE_BYTES) {
    const piece = base64Of(bytes.subarray(from, from + PIECE_BYTES));
    yield piece;
    await took(piece.length);
  }
  yield '"}}\n';
}
